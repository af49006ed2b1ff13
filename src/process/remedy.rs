//! What to do about errors of the system that a limit of the process or of the machine causes: [`remedy`].

use super::plain_error;
use std::io;

/// What to do if a limit of the process, of its user or of the machine is exhausted. `None` for other errors, about which the
/// caller knows more. The file that an error is reported for is not the cause of these.
pub(crate) fn remedy(error: &io::Error) -> Option<&'static str> {
    #[cfg(unix)]
    let remedy = match error.raw_os_error()? {
        libc::EMFILE => "allow more open files (ulimit -n)",
        libc::ENFILE => "too many files are open on this machine; end other programs, or run again later",
        libc::ENOMEM => "allow more memory (ulimit -v), or use fewer threads (-j) or less --memory",
        libc::ENOSPC => "free disk space, or choose another directory",
        libc::EDQUOT => "free disk space of this user, or choose another directory",
        libc::EFBIG => "allow longer files (ulimit -f), or choose another file system",
        libc::EBADF => "open this handle, or name a file",
        libc::ENAMETOOLONG => "choose a shorter name",
        _ => return None,
    };
    #[cfg(not(unix))]
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull => "free disk space, or choose another directory",
        io::ErrorKind::InvalidFilename => "choose another name",
        _ => return None,
    };
    Some(remedy)
}

/// [`plain_error`], followed by the [`remedy`] if there is one.
pub(crate) fn error_and_remedy(error: &io::Error) -> String {
    let text = plain_error(error);
    remedy(error).map_or_else(|| text.clone(), |remedy| format!("{text}; {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn limits_are_named_and_other_errors_are_not_explained() {
        let text = |code| error_and_remedy(&io::Error::from_raw_os_error(code));
        assert_eq!(text(libc::EMFILE), "too many open files; allow more open files (ulimit -n)");
        assert_eq!(text(libc::EACCES), "permission denied");
        assert_eq!(error_and_remedy(&io::Error::other("lost")), "lost");
    }
}
