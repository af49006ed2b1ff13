//! Bytes in, verdict on them as text out.

/// `bytes` are UTF-8. One SIMD pass, meant for a chunk at a time: a call costs as much as 45 bytes do.
///
/// ```
/// assert!(irikey::encoding::is_utf8("é".as_bytes()) && !irikey::encoding::is_utf8(b"\xC0\xAF"));
/// ```
#[inline]
pub fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}
