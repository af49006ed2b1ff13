//! Memory of responses, which is used again: [`ResponseBuffer`].
//!
//! The pages of new memory cost more time than the bytes that are copied into them.

use parking_lot::Mutex;

use bytes::Bytes;

use super::error::RemoteError;
use super::options::read_ahead;
use crate::process::try_reserve_exact;

/// Shorter buffers are freed instead of kept.
const MIN_KEPT_LEN: usize = 256 << 10;

/// Buffers that are not in use. They have at most a quarter of [`read_ahead`] together.
static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Memory for the body of a response.
#[derive(Debug)]
pub(super) struct ResponseBuffer(Vec<u8>);

impl ResponseBuffer {
    /// An empty buffer for `len` bytes.
    pub(super) fn new(len: u64) -> Result<ResponseBuffer, RemoteError> {
        let error = || RemoteError::new(format!("not enough memory for {len} bytes"), "use fewer with --threads");
        let len = usize::try_from(len).map_err(|_| error())?;
        if let Some(bytes) = take(len) {
            return Ok(ResponseBuffer(bytes));
        }
        let mut bytes = Vec::new();
        // Row groups have different lengths. A little more memory than necessary is used again more often.
        let reserved = if len < MIN_KEPT_LEN { len } else { len.next_multiple_of(MIN_KEPT_LEN) };
        try_reserve_exact(&mut bytes, reserved).map_err(|_| error())?;
        Ok(ResponseBuffer(bytes))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends as many of `bytes` as fit until the buffer has `len` bytes.
    pub(super) fn extend_to(&mut self, len: usize, bytes: &[u8]) {
        self.0.extend_from_slice(&bytes[..bytes.len().min(len.saturating_sub(self.0.len()))]);
    }

    /// The memory is used again when the last part of the bytes is dropped.
    pub(super) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for ResponseBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for ResponseBuffer {
    fn drop(&mut self) {
        let mut bytes = std::mem::take(&mut self.0);
        bytes.clear();
        let mut free = FREE.lock();
        let kept: usize = free.iter().map(Vec::capacity).sum();
        if bytes.capacity() >= MIN_KEPT_LEN && kept.saturating_add(bytes.capacity()) <= read_ahead() / 4 {
            free.push(bytes);
        }
    }
}

/// Takes the shortest buffer for `len` bytes that is not twice as long.
fn take(len: usize) -> Option<Vec<u8>> {
    let mut free = FREE.lock();
    let fitting =
        free.iter().enumerate().filter(|(_, bytes)| (len..=len.saturating_mul(2)).contains(&bytes.capacity()));
    let (place, _) = fitting.min_by_key(|(_, bytes)| bytes.capacity())?;
    Some(free.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again() {
        let mut buffer = ResponseBuffer::new(3 << 20).unwrap();
        buffer.extend_to(4, b"abcdef");
        let place = buffer.as_ref().as_ptr();
        let bytes = buffer.into_bytes();
        let part = bytes.slice(1..3);
        drop(bytes);
        assert_eq!(&part[..], b"bc");
        assert!(FREE.lock().iter().all(|bytes| bytes.as_ptr() != place));
        drop(part);
        // Other tests may have taken it.
        let again = ResponseBuffer::new(2 << 20).unwrap();
        assert!(again.len() == 0 && again.0.capacity() >= 2 << 20);
        assert!(FREE.lock().iter().map(Vec::capacity).sum::<usize>() <= read_ahead() / 4);
        assert!(take(8 << 20).is_none_or(|bytes| bytes.capacity() >= 8 << 20));
    }
}
