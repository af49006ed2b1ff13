//! Reads small files whole, also from stores: [`read_file`].

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::remote::{OpenedObject, RemoteObject, RemoteReader, RemoteUrl};

/// Longest object that is read whole, bytes.
const MAX_LEN: u64 = 1 << 30;

/// The bytes of a file, or of an object.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let Some(url) = path.to_str().and_then(RemoteUrl::parse) else { return fs::read(path) };
    let body: Box<dyn Read> = match RemoteObject::named(&url)?.open()? {
        OpenedObject::Ranges(blocks) => Box::new(RemoteReader::new(blocks, 0)),
        OpenedObject::Stream(body) => body,
    };
    let mut bytes = Vec::new();
    body.take(MAX_LEN + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_LEN {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the object is longer than 1 GiB; fetch it first")),
        false => Ok(bytes),
    }
}

/// The path without credentials.
pub(crate) fn shown_path(path: &Path) -> PathBuf {
    path.to_str().and_then(RemoteUrl::parse).map_or_else(|| path.to_path_buf(), |url| url.name().into())
}
