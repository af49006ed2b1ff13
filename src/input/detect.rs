//! Detects compression, byte order marks and binary formats from the first bytes of a source. File names are not used,
//! because they are often wrong.

use crate::encoding::ByteOrder;

/// Bytes that [`packing`] and [`content_type`] need, unless the source is shorter.
pub(crate) const SNIFF_LEN: usize = 16;

/// Compression of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// None.
    Plain,
    /// Gzip (RFC 1952): one or more members.
    Gzip,
    /// Zstandard (RFC 8878): one or more frames, which may be skippable.
    Zstd,
    /// One or more LZ4 frames.
    Lz4,
    /// One or more bzip2 streams.
    Bzip2,
    /// One or more xz streams.
    Xz,
}

/// Returns the compression of a source that begins with `head`.
pub(crate) fn packing(head: &[u8]) -> Packing {
    match head {
        [0x1f, 0x8b, ..] => Packing::Gzip,
        // Magic number of a frame, little-endian 0xFD2FB528, or 0x184D2A50 to 0x184D2A5F of a skippable frame.
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Packing::Zstd,
        [0x04, 0x22, 0x4d, 0x18, ..] => Packing::Lz4,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Packing::Xz,
        // "BZh", the level, and the 48-bit magic number of a block or of the end of a stream.
        [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
            if rest.starts_with(b"1AY&SY") || rest.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
        {
            Packing::Bzip2
        }
        _ => Packing::Plain,
    }
}

/// Kind of an unpacked source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    /// Text, after a byte order mark of this many bytes (0 or 3).
    Records(usize),
    /// UTF-16 text, after a byte order mark of 2 bytes.
    Utf16(ByteOrder),
    /// Text in the named encoding, in which lines do not end with the byte LF.
    Encoding(&'static str),
    /// The named binary format.
    Binary(&'static str),
}

/// Magic numbers of binary formats, each of which no line of text begins with.
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

/// Returns the kind of an unpacked source that begins with `head`.
pub(crate) fn content_type(head: &[u8]) -> ContentType {
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
    fn short_heads_are_plain_text() {
        for head in [&b""[..], b"\x1f", b"\x28\xb5\x2f", b"\xef\xbb", b"h", b"\xff", b"BZh9"] {
            assert_eq!((packing(head), content_type(head)), (Packing::Plain, ContentType::Records(0)), "{head:?}");
        }
    }

    #[test]
    fn magic_numbers_are_detected() {
        assert_eq!(packing(&[0x1f, 0x8b, 8, 0]), Packing::Gzip);
        assert_eq!(packing(b"http://example.org/x.gz"), Packing::Plain);
        assert_eq!(packing(b"\x28\xb5\x2f\xfd"), Packing::Zstd);
        assert_eq!(packing(b"\x5a\x2a\x4d\x18\0\0\0\0"), Packing::Zstd);
        assert_eq!(packing(b"BZh91AY&SY\0"), Packing::Bzip2);
        assert_eq!(packing(b"\x04\x22\x4d\x18@"), Packing::Lz4);
        assert_eq!(packing(b"\xfd7zXZ\0\0"), Packing::Xz);
        assert_eq!(content_type(b"PK\x03\x04"), ContentType::Binary("zip"));
        assert_eq!(content_type(b"\xEF\xBB\xBFhttp://example.org/"), ContentType::Records(3));
        assert_eq!(content_type(b"\0\0\xFE\xFF\0\0\0h"), ContentType::Encoding("UTF-32 (big-endian)"));
        assert_eq!(content_type(b"\xff\xfe\0\0"), ContentType::Encoding("UTF-32 (little-endian)"));
        assert_eq!(content_type(b"\xfe\xff\0h"), ContentType::Utf16(ByteOrder::Big));
    }
}
