//! Decompresses whole deflate streams in memory, about twice as fast as the streaming decompressor: [`WholeInflater`].

use std::ffi::c_void;
use std::ptr::NonNull;

/// A function of libdeflate: decompressor, input and its length, output and its length, lengths of what was read and written.
type Decompress = unsafe extern "C" fn(
    *mut libdeflate_sys::libdeflate_decompressor,
    *const c_void,
    usize,
    *mut c_void,
    usize,
    *mut usize,
    *mut usize,
) -> libdeflate_sys::libdeflate_result;

/// A decompressor of libdeflate, whose memory is reused.
pub(super) struct WholeInflater {
    decompressor: NonNull<libdeflate_sys::libdeflate_decompressor>,
}

/// Lengths of a stream that was decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InflatedLen {
    pub(super) packed: usize,
    pub(super) unpacked: usize,
}

// SAFETY: a decompressor is memory without ties to a thread, and this value is its only owner.
unsafe impl Send for WholeInflater {}

impl WholeInflater {
    /// Returns `None` if there is no memory.
    pub(super) fn new() -> Option<WholeInflater> {
        // SAFETY: the function has no arguments; it returns null if it cannot allocate.
        let decompressor = unsafe { libdeflate_sys::libdeflate_alloc_decompressor() };
        NonNull::new(decompressor).map(|decompressor| WholeInflater { decompressor })
    }

    /// Decompresses the deflate stream at the start of `packed` into the start of `into`. Returns `None` if the stream is
    /// damaged, not whole, or does not fit; then `into` holds anything.
    pub(super) fn inflate(&mut self, packed: &[u8], into: &mut [u8]) -> Option<InflatedLen> {
        self.unpack(libdeflate_sys::libdeflate_deflate_decompress_ex, packed, into)
    }

    /// Decompresses the gzip member at the start of `packed` as [`WholeInflater::inflate`] does, and checks its checksum.
    pub(super) fn inflate_member(&mut self, packed: &[u8], into: &mut [u8]) -> Option<InflatedLen> {
        self.unpack(libdeflate_sys::libdeflate_gzip_decompress_ex, packed, into)
    }

    fn unpack(&mut self, decompress: Decompress, packed: &[u8], into: &mut [u8]) -> Option<InflatedLen> {
        let mut len = InflatedLen { packed: 0, unpacked: 0 };
        // SAFETY: `decompress` is a function of libdeflate. The decompressor is alive and not shared. The pointers and lengths
        // are those of two slices, the second of which is writable, and of two integers. libdeflate reads and writes within
        // these bounds for any input.
        let result = unsafe {
            decompress(
                self.decompressor.as_ptr(),
                packed.as_ptr().cast(),
                packed.len(),
                into.as_mut_ptr().cast(),
                into.len(),
                &mut len.packed,
                &mut len.unpacked,
            )
        };
        (result == libdeflate_sys::libdeflate_result_LIBDEFLATE_SUCCESS).then_some(len)
    }
}

impl Drop for WholeInflater {
    fn drop(&mut self) {
        // SAFETY: `new` allocated the decompressor, and nothing uses it afterwards.
        unsafe { libdeflate_sys::libdeflate_free_decompressor(self.decompressor.as_ptr()) }
    }
}

pub(super) fn crc32(bytes: &[u8]) -> u32 {
    // SAFETY: pointer and length are those of a slice, which is only read.
    unsafe { libdeflate_sys::libdeflate_crc32(0, bytes.as_ptr().cast(), bytes.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::write::DeflateEncoder;
    use flate2::{Compression, Crc};
    use std::io::Write;

    fn deflate(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn whole_streams_are_unpacked_and_nothing_else() {
        let text: Vec<u8> = (0..5_000u32).flat_map(|i| i.wrapping_mul(i).to_string().into_bytes()).collect();
        let mut inflater = WholeInflater::new().unwrap();
        for len in [0, 1, 100, text.len()] {
            let packed = deflate(&text[..len]);
            let followed = [&packed[..], b"more"].concat();
            let mut into = vec![0; len + 3];
            let want = InflatedLen { packed: packed.len(), unpacked: len };
            assert_eq!(inflater.inflate(&followed, &mut into), Some(want));
            assert_eq!(into[..len], text[..len]);
            assert_eq!(inflater.inflate(&followed, &mut into[..len]), Some(want));
            if len > 0 {
                assert_eq!(inflater.inflate(&followed, &mut into[..len - 1]), None);
            }
            assert_eq!(inflater.inflate(&packed[..packed.len() - 1], &mut into), None);
            let mut crc = Crc::new();
            crc.update(&text[..len]);
            assert_eq!(crc32(&text[..len]), crc.sum());
        }
    }
}
