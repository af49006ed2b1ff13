//! A directory of files that do not outlive the process: [`TemporaryDirectory`].

use super::{TemporaryFileGuard, without_termination};
use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// A directory with files. Dropping it removes them, and so does a signal that terminates the process.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory {
    directory: TempDir,
    /// Guards of the directory and of its files, which are dropped after these are removed.
    guards: Vec<TemporaryFileGuard>,
}

impl TemporaryDirectory {
    /// Creates a directory in `parent`.
    pub(crate) fn create(parent: &Path) -> io::Result<TemporaryDirectory> {
        without_termination(|| {
            let directory = tempfile::tempdir_in(parent)?;
            let guards = vec![TemporaryFileGuard::register(directory.path())];
            Ok(TemporaryDirectory { directory, guards })
        })
    }

    /// Creates a file in the directory.
    pub(crate) fn create_file(&mut self, name: &str) -> io::Result<File> {
        let path = self.directory.path().join(name);
        let (file, guard) = TemporaryFileGuard::create(&path, || File::create_new(&path))?;
        self.guards.push(guard);
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}
