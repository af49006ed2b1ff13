//! The capacity of pipes: [`enlarge_pipe`].

/// Bytes that a pipe holds: as many as Linux allows every user by default (`/proc/sys/fs/pipe-max-size`).
#[cfg(target_os = "linux")]
const CAPACITY: libc::c_int = 1 << 20;

/// Enlarges the pipe of a handle, if it is one. By default it holds 64 KiB, so that the programs at its ends often wait for each
/// other. Does nothing if the system does not allow it, because the user has many pipes.
#[cfg(target_os = "linux")]
pub(crate) fn enlarge_pipe(handle: &impl std::os::fd::AsFd) {
    use std::os::fd::AsRawFd;
    let handle = handle.as_fd().as_raw_fd();
    // SAFETY: these calls have no effects on memory; they fail if the handle is not that of a pipe.
    unsafe {
        let capacity = libc::fcntl(handle, libc::F_GETPIPE_SZ);
        if (0..CAPACITY).contains(&capacity) {
            libc::fcntl(handle, libc::F_SETPIPE_SZ, CAPACITY);
        }
    }
}

/// Other systems have no call for this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn enlarge_pipe<H>(_handle: &H) {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_pipes_are_enlarged() {
        // SAFETY: these calls have no effects on memory.
        let capacity = |handle: &dyn AsRawFd| unsafe { libc::fcntl(handle.as_raw_fd(), libc::F_GETPIPE_SZ) };
        // SAFETY: as above.
        let enlarge = |handle: &dyn AsRawFd| unsafe { libc::fcntl(handle.as_raw_fd(), libc::F_SETPIPE_SZ, CAPACITY) };
        let [(reader, _writer), (other, _other_writer)] = [(); 2].map(|()| std::io::pipe().unwrap());
        enlarge_pipe(&reader);
        // A user with many pipes may not enlarge any.
        let expected = if enlarge(&other) < 0 { capacity(&other) } else { CAPACITY };
        assert_eq!(capacity(&reader), expected);
        let file = File::open("/dev/null").unwrap();
        enlarge_pipe(&file);
        assert_eq!(capacity(&file), -1);
    }
}
