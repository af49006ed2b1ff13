//! Charsets: validates UTF-8, and decodes documents in other charsets (RFC 3987 section 3.1, step 1).
//!
//! ```text
//! is_utf8        bytes of a chunk -> valid UTF-8 or not
//! nfc_of         text -> text in NFC
//! charset        label -> Charset; text in a charset <-> text
//! transcode      document in a charset -> text, the number of malformed sequences, offsets back into the document
//! piece_decoder  bytes in a charset -> pieces of UTF-8, offsets of malformed sequences; for charset and transcode
//! utf16          stream of UTF-16 -> UTF-8
//! ```

mod charset;
mod piece_decoder;
mod transcode;
mod utf16;

pub use charset::{Charset, Encoded, Undecodable, UnmappableMode};
pub(crate) use transcode::DocumentCursor;
pub(crate) use utf16::{ByteOrder, Utf16Decoder, push_code_point, utf16_len};

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Returns whether `bytes` are valid UTF-8. The check uses SIMD instructions and is meant for whole chunks: a call costs
/// as much as 45 bytes.
///
/// ```
/// assert!(irikey::encoding::is_utf8("é".as_bytes()) && !irikey::encoding::is_utf8(b"\xC0\xAF"));
/// ```
#[inline]
pub fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Returns the beginning of `text` of at most `max_len` bytes that ends at the end of a character.
pub(crate) fn truncated(text: &[u8], max_len: usize) -> &[u8] {
    if text.len() <= max_len {
        return text;
    }
    let is_start = |at: &usize| text[*at] & 0xC0 != 0x80;
    let end = (max_len.saturating_sub(3)..=max_len).rev().find(is_start).unwrap_or(max_len);
    &text[..end]
}

/// Returns `text` in NFC, or `None` if it is already in NFC.
pub(crate) fn nfc_of(text: &str) -> Option<String> {
    (!is_nfc(text)).then(|| text.nfc().collect())
}
