//! Names of open handles, such as `/dev/stdout` and `/proc/self/fd/3`: [`HandleName`].
//!
//! The handle may be that of a regular file, for example a log to which a shell appends. A new file under the name of this
//! file would destroy what the log contains, and what others write to their handles later would be lost.

use super::pending_file::parent;
use std::fs::{self, File};
use std::io;
use std::iter;
use std::path::{Path, PathBuf};

/// Returns `path`, and where it leads if it is a symbolic link, one link after the other: as many as Linux follows.
pub(crate) fn links(path: &Path) -> impl Iterator<Item = PathBuf> {
    const MAX_LINKS: usize = 40;
    let follow = |path: &PathBuf| Some(parent(path).join(fs::read_link(path).ok()?));
    iter::successors(Some(path.to_path_buf()), follow).take(1 + MAX_LINKS)
}

/// A path that names an open handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandleName {
    /// A handle of this process, by its number.
    Own(i32),
    /// A handle of another process, by its path.
    Other(PathBuf),
}

impl HandleName {
    /// Returns the handle that `path` names, also if it is a link to such a name; `None` for other paths.
    pub(crate) fn of(path: &Path) -> Option<HandleName> {
        links(path).find_map(|path| HandleName::named(&path))
    }

    /// Returns the handle that `path` itself names.
    fn named(path: &Path) -> Option<HandleName> {
        let number = path.file_name()?.to_str()?.parse().ok()?;
        let directory = fs::canonicalize(parent(path)).ok()?;
        let is_own = directory == Path::new("/dev/fd")
            || fs::canonicalize("/proc/self").is_ok_and(|process| directory.starts_with(process));
        match directory.starts_with("/proc") && directory.ends_with("fd") {
            _ if is_own => Some(HandleName::Own(number)),
            true => Some(HandleName::Other(path.to_path_buf())),
            false => None,
        }
    }

    /// Opens the file of the handle for writing, without a change of what it contains. Own handles share their position with
    /// the result; files of other processes are appended to.
    ///
    /// # Errors
    /// The handle is not open, or its file cannot be opened.
    pub(crate) fn open(&self) -> io::Result<File> {
        match self {
            HandleName::Own(number) => duplicate(*number),
            HandleName::Other(path) => File::options().append(true).open(path),
        }
    }
}

#[cfg(unix)]
fn duplicate(number: i32) -> io::Result<File> {
    use std::os::fd::FromRawFd;
    // SAFETY: this call has no effects on memory. It fails if no handle has the number.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
    if copy < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle was created by the line above, so that nothing else owns it.
    Ok(unsafe { File::from_raw_fd(copy) })
}

#[cfg(not(unix))]
fn duplicate(_number: i32) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::io::{Seek, Write};
    use std::os::fd::AsRawFd;

    #[test]
    fn handles_are_recognized_by_all_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/stderr", &link).unwrap();
        let of = |path: &str| HandleName::of(Path::new(path));
        assert_eq!(HandleName::of(&link), Some(HandleName::Own(2)));
        assert_eq!(of("/dev/stdout"), Some(HandleName::Own(1)));
        assert_eq!(of("/dev/fd/7"), Some(HandleName::Own(7)));
        assert_eq!(of("/proc/self/fd/../fd/0"), Some(HandleName::Own(0)));
        assert_eq!(of(&format!("/proc/{}/task/../fd/3", std::process::id())), Some(HandleName::Own(3)));
        assert_eq!(of("/proc/1/fd/1"), Some(HandleName::Other("/proc/1/fd/1".into())));
        std::os::unix::fs::symlink("loop", directory.path().join("loop")).unwrap();
        let others = [directory.path().join("loop"), directory.path().join("7"), "/dev/null".into(), "1".into()];
        for other in others {
            assert_eq!(HandleName::of(&other), None, "{other:?}");
        }
    }

    /// An own handle shares its position, so that nothing is overwritten.
    #[test]
    fn an_own_handle_continues_where_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"first ").unwrap();
        let name = HandleName::of(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd()))).unwrap();
        name.open().unwrap().write_all(b"second ").unwrap();
        file.write_all(b"third").unwrap();
        file.rewind().unwrap();
        assert_eq!(io::read_to_string(file).unwrap(), "first second third");
        assert!(HandleName::Own(-1).open().is_err());
    }
}
