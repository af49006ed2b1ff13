//! Reads small files whole, also from stores: [`read_file`]. Copies objects to files: [`copy_objects`].

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::process::TemporaryDirectory;
use crate::remote::{RemoteObject, RemoteUrl, list};

/// Longest object that is read whole, bytes.
const MAX_LEN: u64 = 1 << 30;

/// Copies the objects below a prefix, which have names of one part, to files in `directory`.
pub(crate) fn copy_objects(url: &RemoteUrl, directory: &mut TemporaryDirectory) -> io::Result<()> {
    for object in list(url, |_| true)? {
        // Listed names have no part that is `..`.
        let name = object.name().rsplit('/').next().unwrap_or_default();
        let mut file = directory.create_file(name)?;
        io::copy(&mut object.open()?.into_reader(), &mut file)?;
    }
    Ok(())
}

/// The bytes of a file, or of an object.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let Some(url) = RemoteUrl::of_path(path) else { return fs::read(path) };
    read_object(&RemoteObject::named(&url)?)
}

/// The bytes of an object.
pub(super) fn read_object(object: &RemoteObject) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    object.open()?.into_reader().take(MAX_LEN + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_LEN {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "the object is longer than 1 GiB; fetch it first")),
        false => Ok(bytes),
    }
}

/// The path without credentials.
pub(crate) fn shown_path(path: &Path) -> PathBuf {
    RemoteUrl::of_path(path).map_or_else(|| path.to_path_buf(), |url| url.name().into())
}
