//! What a source is, by its first bytes: compression, byte-order marks, and formats that hold no lines. Names and
//! suffixes are not asked: they lie.

use crate::encoding::ByteOrder;

/// How many bytes [`packing`] and [`content_type`] want to see, if the source has as many.
pub const SNIFF_LEN: usize = 16;

/// How the bytes of a source are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As they are.
    Plain,
    /// RFC 1952: one or more members.
    Gzip,
    /// RFC 8878: one or more frames, skippable ones among them.
    Zstd,
    /// LZ4 frames, one or more.
    Lz4,
    /// bzip2 streams, one or more.
    Bzip2,
    /// xz streams, one or more.
    Xz,
}

/// The packing of a source that begins with `head`.
///
/// ```
/// use irikey::input::detect::{Packing, packing};
/// assert_eq!(packing(&[0x1f, 0x8b, 8, 0]), Packing::Gzip);
/// assert_eq!(packing(b"http://example.org/x.gz"), Packing::Plain);
/// ```
pub fn packing(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        // Magic number of a frame, little-endian 0xFD2FB528; and 0x184D2A50 to 0x184D2A5F of a skippable one.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
        [0x04, 0x22, 0x4d, 0x18, ..] => Packing::Lz4,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
        // "BZh", the level, and then the 48 bits of pi that begin a block, or of its square root that end a stream.
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
            if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
        {
            Packing::Bzip2
        }
        _ => Packing::Plain,
    }
}

/// What unpacked bytes begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// Records, after this many bytes of byte-order mark (0 or 3).
    Records(usize),
    /// UTF-16, after its byte order mark of 2 bytes.
    Utf16(ByteOrder),
    /// Text in an encoding that lines cannot be found in: its name.
    Encoding(&'static str),
    /// A format that is not text: its name.
    Binary(&'static str),
}

/// Beginnings of files that people hand over by mistake. Only such as no line of text begins with.
const BINARY: [(&[u8], &str); 9] = [
    (b"\x1f\x8b\x08", "gzip within gzip or another packing"),
    (b"\x28\xb5\x2f\xfd", "zstd within zstd or another packing"),
    (b"\xfd7zXZ\0", "xz within another packing"),
    (b"\x04\x22\x4d\x18", "lz4 within another packing"),
    (b"PK\x03\x04", "zip"),
    (b"PAR1\x15", "Parquet"),
    (b"ARROW1\0\0", "Arrow IPC"),
    (b"\x89PNG\r\n", "PNG"),
    (b"SQLite format 3\0", "SQLite"),
];

/// What unpacked bytes that begin with `head` hold.
///
/// ```
/// use irikey::input::detect::{ContentType, content_type};
/// assert_eq!(content_type(b"\xEF\xBB\xBFhttp://example.org/"), ContentType::Records(3));
/// assert_eq!(content_type(b"\0\0\xFE\xFF\0\0\0h"), ContentType::Encoding("UTF-32 (big-endian)"));
/// ```
pub fn content_type(head: &[u8]) -> ContentType {
    match head {
        [0xef, 0xbb, 0xbf, ..] => return ContentType::Records(3),
        [0xff, 0xfe, 0, 0, ..] => return ContentType::Encoding("UTF-32 (little-endian)"),
        [0, 0, 0xfe, 0xff, ..] => return ContentType::Encoding("UTF-32 (big-endian)"),
        [0xff, 0xfe, ..] => return ContentType::Utf16(ByteOrder::Little),
        [0xfe, 0xff, ..] => return ContentType::Utf16(ByteOrder::Big),
        _ => (),
    }
    if packing(head) == Packing::Bzip2 {
        return ContentType::Binary("bzip2 within another packing");
    }
    match BINARY.iter().find(|(magic, _)| head.starts_with(magic)) {
        Some((_, name)) => ContentType::Binary(name),
        None => ContentType::Records(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_heads_are_plain_records() {
        for head in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"\xef\xbb", b"h", b"\xff", b"BZh9"] {
            assert_eq!((packing(head), content_type(head)), (Packing::Plain, ContentType::Records(0)), "{head:?}");
        }
    }

    #[test]
    fn magic_numbers() {
        assert_eq!(packing(b"\x28\xb5\x2f\xfd"), Packing::Zstd);
        assert_eq!(packing(b"\x5a\x2a\x4d\x18\0\0\0\0"), Packing::Zstd);
        assert_eq!(packing(b"BZh91AY&SY\0"), Packing::Bzip2);
        assert_eq!(packing(b"\x04\x22\x4d\x18@"), Packing::Lz4);
        assert_eq!(packing(b"\xfd7zXZ\0\0"), Packing::Xz);
        assert_eq!(content_type(b"PK\x03\x04"), ContentType::Binary("zip"));
        assert_eq!(content_type(b"\xff\xfe\0\0"), ContentType::Encoding("UTF-32 (little-endian)"));
        assert_eq!(content_type(b"\xfe\xff\0h"), ContentType::Utf16(ByteOrder::Big));
    }
}
