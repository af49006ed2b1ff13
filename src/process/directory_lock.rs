//! Locks of directories that one job at a time writes: [`DirectoryLock`].

use super::pending_file::{parent, sync_directory};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A lock file. The system releases the lock when the process ends, however it ends.
///
/// The file is removed with the lock, unless it has a *mark*: a text that states that the directory is incomplete. The next
/// job finds the mark of a job that was interrupted.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    path: PathBuf,
    file: File,
    is_marked: bool,
}

/// Locks the directory of `path` until the file is dropped; waits for other processes. `None` if the file system has no locks.
pub(crate) fn lock_directory_of(path: &Path) -> Option<File> {
    let directory = File::open(parent(path)).ok()?;
    directory.lock().ok()?;
    Some(directory)
}

impl DirectoryLock {
    /// Creates the lock file at `path`, or opens that of a job that was interrupted, and locks it. `None` if another process has
    /// the lock.
    ///
    /// # Errors
    /// The file cannot be created or locked.
    pub(crate) fn acquire(path: &Path) -> io::Result<Option<DirectoryLock>> {
        loop {
            let file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Its last owner may have removed the file after it was opened here.
            if is_at(&file, path) {
                let is_marked = file.metadata()?.len() > 0;
                return Ok(Some(DirectoryLock { path: path.to_path_buf(), file, is_marked }));
            }
        }
    }

    /// The directory is incomplete: a job left its mark.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked
    }

    /// The path of the lock file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a durable mark. The file remains until [`DirectoryLock::complete`].
    pub(crate) fn mark(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        self.is_marked = true;
        sync_directory(parent(&self.path))
    }

    /// Removes the mark durably, and the lock: the directory is complete.
    pub(crate) fn complete(self) {
        // If this fails, the next job makes a complete directory again.
        let _ = fs::remove_file(&self.path).and_then(|()| sync_directory(parent(&self.path)));
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // The path may belong to the next job already, if this job is complete.
        if !self.is_marked && is_at(&self.file, &self.path) {
            // A lock file that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The path is that of the open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    matches!((file.metadata().map(id), fs::metadata(path).map(id)), (Ok(file), Ok(path)) if file == path)
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_by_one_job_and_a_mark_outlives_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("_incomplete");
        let acquire = || DirectoryLock::acquire(&path).unwrap();
        let mut lock = acquire().unwrap();
        assert!(!lock.is_marked());
        assert!(acquire().is_none());
        lock.mark("incomplete\n").unwrap();
        drop(lock);
        let lock = acquire().unwrap();
        assert!(lock.is_marked());
        lock.complete();
        assert!(!path.exists());
        drop(acquire().unwrap());
        assert!(!path.exists());
    }

    /// The file may be removed and created again by others.
    #[cfg(unix)]
    #[test]
    fn a_lock_does_not_remove_that_of_another_job() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("_incomplete");
        let acquire = || DirectoryLock::acquire(&path).unwrap().unwrap();
        let first = acquire();
        fs::remove_file(&path).unwrap();
        let second = acquire();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}
