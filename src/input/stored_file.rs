//! The files that are read in any order, in the file system or in a store: [`StoredFile`].

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;
use std::sync::Arc;

use crate::remote::{RemoteError, RemoteObject, RemoteReader};

/// Where the bytes of a table or of a ZIP archive are.
#[derive(Clone, Debug)]
pub(crate) enum StoredFile {
    Path(PathBuf),
    Remote(RemoteObject),
}

/// A file that is read in any order. Types have no other way to name several traits.
pub(super) trait SeekableFile: Read + Seek + Send {}

impl<F: Read + Seek + Send> SeekableFile for F {}

impl StoredFile {
    /// The same file; an object with its version, which is requested unless it is known. All reads are then of this version.
    pub(crate) fn found(&self) -> io::Result<StoredFile> {
        Ok(match self {
            StoredFile::Path(_) => self.clone(),
            StoredFile::Remote(object) => StoredFile::Remote(object.clone().found()?),
        })
    }

    pub(super) fn open(&self) -> io::Result<Box<dyn SeekableFile>> {
        Ok(match self {
            StoredFile::Path(path) => Box::new(File::open(path)?),
            StoredFile::Remote(object) => {
                let opened = object.open()?;
                let blocks = opened.blocks().ok_or_else(RemoteError::without_ranges)?;
                Box::new(RemoteReader::new(Arc::clone(blocks), 0))
            }
        })
    }
}
