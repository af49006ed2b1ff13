//! Shows that a directory of parts is incomplete: [`DirectoryMark`].

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::OutputError;
use super::sink::open_error;
use crate::process::DirectoryLock;
use crate::process::part_names::INCOMPLETE;
use crate::remote::{RemoteUrl, RemoteWriter, delete_objects};

const MARK: &str = "An irikey job writes this directory, or was interrupted. Run the job again: it starts anew.\n";

const STORE_MARK: &str = "An irikey job writes the objects below this prefix, or was interrupted. If it does not run any more, \
                          remove them, and run it again.\n";

/// The file `_incomplete` of a directory, or the object of this name below a prefix in a store.
pub(crate) enum DirectoryMark {
    /// A lock, which has a mark as soon as there are parts.
    Lock(DirectoryLock),
    Store(StoreMark),
}

impl DirectoryMark {
    /// Marks the directory before the file at `path` is written.
    pub(super) fn add_file(&mut self, path: &Path) -> Result<(), OutputError> {
        match self {
            DirectoryMark::Lock(lock) if lock.is_marked() => Ok(()),
            DirectoryMark::Lock(lock) => {
                let marked = lock.mark(MARK);
                marked.map_err(|error| open_error(lock.path(), "write", error, "choose a writable directory"))
            }
            DirectoryMark::Store(mark) => mark.add_object(path),
        }
    }

    /// The directory is one of this system.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, DirectoryMark::Lock(_))
    }

    /// Returns what becomes of the parts if the mark is not removed.
    pub(crate) fn consequence(&self) -> &'static str {
        match self {
            DirectoryMark::Lock(_) => "the parts are complete, but marked as incomplete; run the job again",
            DirectoryMark::Store(_) => "the parts are removed; run the job again",
        }
    }

    /// Removes the mark: the directory is complete.
    ///
    /// # Errors
    /// The mark of a prefix in a store cannot be removed.
    pub(crate) fn complete(self) -> Result<(), OutputError> {
        match self {
            DirectoryMark::Lock(lock) => {
                lock.complete();
                Ok(())
            }
            DirectoryMark::Store(mark) => mark.complete(),
        }
    }
}

/// The mark of a prefix in a store, where there are no locks. If it is dropped before it is complete, the objects of the job are
/// removed, and then the mark. If an object cannot be removed, the mark stays.
pub(crate) struct StoreMark {
    path: PathBuf,
    /// The objects that the job writes. The mark exists as soon as there are some.
    objects: Vec<RemoteUrl>,
}

impl StoreMark {
    /// The mark of the prefix `root`, which is not written yet.
    pub(super) fn new(root: &Path) -> StoreMark {
        StoreMark { path: root.join(INCOMPLETE), objects: Vec::new() }
    }

    fn add_object(&mut self, path: &Path) -> Result<(), OutputError> {
        if self.objects.is_empty() {
            self.write(STORE_MARK)
                .map_err(|error| self.error("write", error, "choose a prefix that can be written"))?;
        }
        self.objects.extend(RemoteUrl::of_path(path));
        Ok(())
    }

    fn complete(mut self) -> Result<(), OutputError> {
        if std::mem::take(&mut self.objects).is_empty() {
            return Ok(());
        }
        // Who may write objects may have no right to remove them. An empty object is no mark.
        let removed = self.remove().or_else(|error| self.write("").map_err(|_| error));
        removed.map_err(|error| self.error("remove", error, "the parts are complete; remove this object"))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let Some(url) = RemoteUrl::of_path(&self.path) else { return Ok(()) };
        let mut writer = RemoteWriter::create(&url, false)?;
        writer.write_all(text.as_bytes())?;
        writer.finish()
    }

    fn remove(&self) -> io::Result<()> {
        delete_objects(&RemoteUrl::of_path(&self.path).into_iter().collect::<Vec<_>>())
    }

    fn error(&self, operation: &'static str, error: io::Error, advice: &'static str) -> OutputError {
        open_error(&self.path, operation, error, advice)
    }
}

impl Drop for StoreMark {
    fn drop(&mut self) {
        if !self.objects.is_empty() && delete_objects(&self.objects).is_ok() {
            // If this fails, the next job reports the mark.
            let _ = self.remove();
        }
    }
}
