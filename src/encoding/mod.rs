//! Bytes in, verdict on them as text out; and text in a document's charset in, text out (RFC 3987 section 3.1, step 1).
//!
//! ```text
//! is_utf8   one verdict a chunk                  charset     label -> charset: bytes -> text -> bytes
//! utf16     a stream of UTF-16 -> UTF-8          transcode   a document: bytes -> text, and offsets back
//! ```

mod charset;
mod transcode;
mod utf16;

pub use charset::{Charset, Encoded, Lacking, Undecodable};
pub use transcode::{Malformed, Transcoded};
pub use utf16::{ByteOrder, Utf16Decoder, utf16_len};

/// `bytes` are UTF-8. One SIMD pass, meant for a chunk at a time: a call costs as much as 45 bytes do.
///
/// ```
/// assert!(irikey::encoding::is_utf8("é".as_bytes()) && !irikey::encoding::is_utf8(b"\xC0\xAF"));
/// ```
#[inline]
pub fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}
