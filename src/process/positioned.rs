//! Reads and writes at positions of a file. Threads can share the file without a lock, because there is no cursor.

use std::fs::File;
use std::io;

#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// Reads up to `into.len()` bytes at byte `at`; 0 at the end of the file. An interrupted read is repeated, which not all
/// callers do: the reader of ZIP archives does not.
pub(crate) fn read_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    repeat_interrupted(|| {
        #[cfg(unix)]
        return file.read_at(into, at);
        #[cfg(windows)]
        file.seek_read(into, at)
    })
}

/// Calls `operation` again as long as a signal interrupts it.
pub(crate) fn repeat_interrupted<T>(mut operation: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match operation() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            done => return done,
        }
    }
}

/// Fills `into` with the bytes at byte `at`.
///
/// # Errors
/// The file cannot be read, or ends before.
pub(crate) fn read_exact_at(file: &File, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
    while !into.is_empty() {
        match read_at(file, into, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                into = &mut into[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

/// Writes all `bytes` at byte `at`.
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let write = || {
            #[cfg(unix)]
            return file.write_at(bytes, at);
            #[cfg(windows)]
            file.seek_write(bytes, at)
        };
        match repeat_interrupted(write)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                bytes = &bytes[count..];
                at += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_at_their_positions() {
        let file = tempfile::tempfile().unwrap();
        write_all_at(&file, b"cd", 2).unwrap();
        write_all_at(&file, b"ab", 0).unwrap();
        let mut bytes = [0; 3];
        read_exact_at(&file, &mut bytes, 1).unwrap();
        assert_eq!(bytes, *b"bcd");
        let error = read_exact_at(&file, &mut bytes, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
