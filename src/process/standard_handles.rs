//! Standard input and output that are closed.
//!
//! The runtime of Rust opens `/dev/null` in place of a standard handle that is closed when the process starts, and its writer
//! ignores the error of a handle that is closed later: rows would be lost without an error. The same handle may also be
//! `/dev/null` because the caller wants that, so the difference must be found before the runtime starts.

use std::io;

/// Opens `/dev/null` in place of each standard handle that is closed, so that no file of the job gets its number. Standard
/// input is opened for writing only and the others for reading only, so that their use is an error (gnulib's `stdopen` does the
/// same). Handles that are open stay as they are.
///
/// The command calls this before its runtime starts. Allocates nothing and uses no state of the runtime.
#[doc(hidden)]
pub extern "C" fn reserve_standard_handles() {
    #[cfg(unix)]
    for (handle, access) in [
        (libc::STDIN_FILENO, libc::O_WRONLY),
        (libc::STDOUT_FILENO, libc::O_RDONLY),
        (libc::STDERR_FILENO, libc::O_RDONLY),
    ] {
        // SAFETY: fcntl with this command, open and close have no effects on memory, and the path is a C string that lives as
        // long as the process.
        unsafe {
            if libc::fcntl(handle, libc::F_GETFD) != -1 {
                continue;
            }
            // The lowest number that is free, which is that of the handle unless another thread opens a file now.
            let opened = libc::open(c"/dev/null".as_ptr(), access);
            if opened > handle {
                libc::close(opened);
            }
        }
    }
}

/// Returns an error if standard input cannot be read, because it is closed.
pub(crate) fn check_stdin() -> io::Result<()> {
    #[cfg(unix)]
    check(libc::STDIN_FILENO, libc::O_WRONLY)?;
    Ok(())
}

/// Returns an error if standard output cannot be written, because it is closed.
pub(crate) fn check_stdout() -> io::Result<()> {
    #[cfg(unix)]
    check(libc::STDOUT_FILENO, libc::O_RDONLY)?;
    Ok(())
}

/// Fails if `handle` is closed, or its access is only `wrong`.
#[cfg(unix)]
fn check(handle: libc::c_int, wrong: libc::c_int) -> io::Result<()> {
    // SAFETY: this call has no effects on memory.
    let flags = unsafe { libc::fcntl(handle, libc::F_GETFL) };
    match flags & libc::O_ACCMODE {
        _ if flags == -1 => Err(io::Error::last_os_error()),
        access if access == wrong => Err(io::Error::from_raw_os_error(libc::EBADF)),
        _ => Ok(()),
    }
}
