//! Files that get their name when they are complete and on disk: [`PendingFile`].
//!
//! A pending file is locked as long as its process lives. The next process that creates one in the same directory removes
//! those whose lock it can take: their processes were killed. Age and process numbers do not matter.

use super::TemporaryFileGuard;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use tempfile::TempPath;

const PREFIX: &str = ".irikey-";
const SUFFIX: &str = ".tmp";

/// Threads that wait for the disk when many files are committed.
const SYNC_THREADS: usize = 16;

/// Maximum number of attempts to create a file. Another process may remove it before it is locked, because it looks like that
/// of a killed process.
const MAX_ATTEMPTS: usize = 100;

/// A file under a temporary name in the directory of its final name. Dropping it removes the file, and so does a signal
/// that terminates the process.
#[derive(Debug)]
pub(crate) struct PendingFile {
    temporary: TempPath,
    /// Another handle of the file, which keeps its lock.
    file: File,
    /// The bytes are on disk. A second sync would wait for the disk again, although there is nothing to write.
    is_synced: AtomicBool,
    _guard: TemporaryFileGuard,
}

/// What happens to a file that has the name already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It is replaced.
    #[default]
    Replace,
    /// It is kept, and the new file is removed.
    Keep,
}

/// Why a file did not get its name durably.
#[derive(Debug)]
pub(crate) struct CommitError {
    /// The name.
    pub(crate) path: PathBuf,
    pub(crate) operation: &'static str,
    pub(crate) error: io::Error,
    /// The file has its name, but may lose it if the power fails.
    pub(crate) is_named: bool,
}

impl PendingFile {
    /// Creates a file in `directory`, and removes the pending files that killed processes left there.
    pub(crate) fn create(directory: &Path) -> io::Result<(File, PendingFile)> {
        if is_first_use(directory) {
            remove_leftovers(directory);
        }
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX);
        for _ in 0..MAX_ATTEMPTS {
            // The mode of an ordinary new file; the umask applies.
            let create = |path: &Path| File::options().read(true).write(true).create_new(true).open(path);
            let created = builder.make_in(directory, |path| TemporaryFileGuard::create(path, || create(path)))?;
            let ((file, _guard), temporary) = created.into_parts();
            // If the job ends here, the file is removed before its guard.
            let pending = PendingFile { temporary, file, is_synced: AtomicBool::new(false), _guard };
            // Between creation and lock, another process may take the lock and remove the file. A file system without
            // locks refuses the lock to both.
            let is_lost = matches!(pending.file.try_lock(), Err(TryLockError::WouldBlock)) || !pending.path().exists();
            if !is_lost {
                return Ok((pending.file.try_clone()?, pending));
            }
        }
        Err(io::Error::other("temporary files are removed by another process as soon as they are created"))
    }

    /// The temporary name.
    pub(crate) fn path(&self) -> &Path {
        &self.temporary
    }

    /// Writes all bytes of the file to disk. Nothing may be written to the file afterwards.
    pub(crate) fn sync(&self) -> io::Result<()> {
        if !self.is_synced.load(Ordering::Acquire) {
            self.file.sync_all()?;
            self.is_synced.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Writes the file to disk, renames it to `path` and makes the name durable.
    pub(crate) fn commit(self, path: &Path, existing: Existing) -> Result<(), CommitError> {
        self.rename(path, existing)?;
        sync_directory(parent(path)).map_err(failed(path, "sync the directory", true))
    }

    /// [`PendingFile::commit`] without the last step: the caller makes several names durable together.
    pub(crate) fn rename(self, path: &Path, existing: Existing) -> Result<(), CommitError> {
        if existing == Existing::Replace
            && let Ok(replaced) = fs::metadata(path)
        {
            // Whoever could not read the old file cannot read the new one. Some file systems have no modes.
            let _ = self.file.set_permissions(replaced.permissions());
        }
        self.sync().map_err(failed(path, "write to disk", false))?;
        let PendingFile { temporary, file, _guard, .. } = self;
        let renamed = match existing {
            Existing::Replace => temporary.persist(path),
            Existing::Keep => temporary.persist_noclobber(path),
        };
        // Without its lock, another process would take the file for one that was left.
        drop(file);
        renamed.map_err(|error| failed(path, "rename to its final name", false)(error.error))
    }

    pub(crate) fn remove(self) -> io::Result<()> {
        self.temporary.close()
    }
}

/// Commits many files. Several threads wait for the disk at a time, and a directory is synced once: for small files this takes
/// a small part of the time of committing one after the other.
pub(crate) fn commit_all(files: Vec<(PendingFile, PathBuf)>, existing: Existing) -> Result<(), CommitError> {
    sync_all(&files)?;
    let directories: BTreeSet<PathBuf> = files.iter().map(|(_, path)| parent(path).to_path_buf()).collect();
    files.into_iter().try_for_each(|(file, path)| file.rename(&path, existing))?;
    let sync = |directory: &PathBuf| sync_directory(directory).map_err(failed(directory, "sync the directory", true));
    directories.iter().try_for_each(sync)
}

/// Syncs many files at a time, because the file system writes what they wait for together.
fn sync_all(files: &[(PendingFile, PathBuf)]) -> Result<(), CommitError> {
    let sync = |(file, path): &(PendingFile, PathBuf)| file.sync().map_err(failed(path, "write to disk", false));
    let mut results = Vec::new();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for chunk in files.chunks(files.len().div_ceil(SYNC_THREADS).max(1)) {
            let work = move || chunk.iter().try_for_each(sync);
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(_) => results.push(work()),
            }
        }
        let join = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        results.extend(threads.into_iter().map(join));
    });
    results.into_iter().collect()
}

fn failed(path: &Path, operation: &'static str, is_named: bool) -> impl FnOnce(io::Error) -> CommitError {
    let path = path.to_path_buf();
    move |error| CommitError { path, operation, error, is_named }
}

/// Syncs a directory, which makes the names in it durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    #[cfg(unix)]
    return sync_names(|| File::open(directory)?.sync_all());
    #[cfg(not(unix))]
    let _ = directory;
    #[cfg(not(unix))]
    Ok(())
}

/// Calls `sync`. If it fails because the directory may not be read, or because its file system syncs no directories, syncs
/// everything instead.
#[cfg(unix)]
fn sync_names(sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    const REFUSED: [i32; 5] = [libc::EACCES, libc::EPERM, libc::EINVAL, libc::EBADF, libc::EOPNOTSUPP];
    match sync() {
        Err(error) if error.raw_os_error().is_some_and(|code| REFUSED.contains(&code)) => {
            // SAFETY: sync takes no arguments and has no effects on memory. Linux waits until everything is on disk.
            unsafe { libc::sync() };
            Ok(())
        }
        synced => synced,
    }
}

/// Creates a directory and those above it, and makes their names durable. Adds those that did not exist to `created`, outermost
/// first.
fn create_missing(path: &Path, created: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    create_missing(parent(path), created)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        result => {
            result?;
            created.push(path.to_path_buf());
        }
    }
    sync_directory(parent(path))
}

/// Directories that a job has created. Those that are still empty when this is dropped are removed, so that a job that cannot
/// begin leaves nothing.
#[derive(Debug)]
pub(crate) struct NewDirectories(Vec<PathBuf>);

impl NewDirectories {
    /// Creates `path` and those above it that do not exist.
    pub(crate) fn create(path: &Path) -> io::Result<NewDirectories> {
        let mut directories = NewDirectories(Vec::new());
        create_missing(path, &mut directories.0)?;
        Ok(directories)
    }
}

impl Drop for NewDirectories {
    fn drop(&mut self) {
        // Removes empty directories from the innermost outward; stops at the first one that is not empty or cannot be removed.
        let _ = self.0.iter().rev().try_for_each(fs::remove_dir);
    }
}

pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The names of everything in a directory.
///
/// # Errors
/// The directory cannot be listed to its end.
pub(crate) fn file_names(directory: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// This process creates its first file in the directory. A directory may have very many files, so it is listed once.
fn is_first_use(directory: &Path) -> bool {
    static USED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    USED.lock().insert(directory.to_path_buf())
}

/// Removes the pending files of killed processes.
fn remove_leftovers(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_pending = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if is_pending && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            remove_if_abandoned(&entry.path());
        }
    }
}

/// Removes a pending file whose process has ended. A file that cannot be removed does no harm.
fn remove_if_abandoned(path: &Path) {
    let Ok(file) = File::options().read(true).write(true).open(path) else { return };
    if file.try_lock().is_ok() {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// File systems that sync no directories return different errors.
    #[cfg(unix)]
    #[test]
    fn directories_that_cannot_be_synced_are_no_error() {
        let synced = |code| sync_names(|| Err(io::Error::from_raw_os_error(code)));
        assert!(synced(libc::EINVAL).is_ok() && synced(libc::EACCES).is_ok());
        assert_eq!(synced(libc::EIO).unwrap_err().raw_os_error(), Some(libc::EIO));
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_of_a_replaced_file_stays() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let write = || PendingFile::create(directory.path()).unwrap().1.commit(&path, Existing::Replace).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write();
        let usual = mode();
        for changed in [0o600, 0o444, usual] {
            fs::set_permissions(&path, fs::Permissions::from_mode(changed)).unwrap();
            write();
            assert_eq!(mode(), changed);
        }
    }

    #[test]
    fn a_file_gets_its_name_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let write = |text: &str| {
            let (mut file, pending) = PendingFile::create(directory.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            pending
        };
        drop(write("dropped"));
        assert!(names(directory.path()).is_empty());
        write("old").commit(&path, Existing::Keep).unwrap();
        let error = write("other").commit(&path, Existing::Keep).unwrap_err();
        assert_eq!((error.error.kind(), error.is_named), (io::ErrorKind::AlreadyExists, false));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        write("new").commit(&path, Existing::Replace).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(directory.path())), (b"new".to_vec(), vec!["x".to_string()]));
    }

    #[test]
    fn only_files_of_ended_processes_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let (_file, pending) = PendingFile::create(directory.path()).unwrap();
        for name in [".irikey-left.tmp", ".irikey-left", "irikey-left.tmp", "x.tmp"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        fs::create_dir(directory.path().join(".irikey-d.tmp")).unwrap();
        remove_leftovers(directory.path());
        let own = pending.path().file_name().unwrap().to_string_lossy().into_owned();
        let mut expected = [&own, ".irikey-d.tmp", ".irikey-left", "irikey-left.tmp", "x.tmp"];
        expected.sort();
        assert_eq!(names(directory.path()), expected);
        pending.commit(&directory.path().join("y"), Existing::Replace).unwrap();
        assert!(directory.path().join("y").exists());
    }
}
