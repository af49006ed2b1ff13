//! Detects compression, byte order marks and binary formats from the first bytes of a source. File names are not used,
//! because they are often wrong.

use crate::encoding::ByteOrder;
use crate::record::{ENCRYPTED_PARQUET, UnsupportedFormat};

/// Bytes that [`packing`] and [`content_type`] need, unless the source is shorter.
pub(crate) const SNIFF_LEN: usize = 512;

/// The first frame after skippable ones shows the compression if it begins up to this byte. The longest dictionary of a web
/// archive is as long.
const MAX_SKIPPED_LEN: usize = 32 << 20;

/// Length of the magic number and the length of a skippable frame, before its contents.
pub(super) const FRAME_HEAD_LEN: usize = 8;

/// Magic number of an LZ4 frame, little-endian 0x184D2204.
const LZ4_FRAME: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

/// Compression of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// None.
    Plain,
    /// Gzip (RFC 1952): one or more members.
    Gzip,
    /// Zstandard (RFC 8878): one or more frames, which may be skippable.
    Zstd,
    /// One or more LZ4 frames, which may be skippable.
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
        // Magic number of a frame, little-endian 0xFD2FB528.
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Packing::Zstd,
        _ if head.starts_with(&LZ4_FRAME) => Packing::Lz4,
        _ if is_skippable_frame(head) => packing_of_frames(|at| frame_head(head, at)),
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

/// Whether `head` begins with the magic number of a skippable frame, little-endian 0x184D2A50 to 0x184D2A5F. Zstandard and LZ4
/// have the same skippable frames.
pub(super) fn is_skippable_frame(head: &[u8]) -> bool {
    matches!(head, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The compression of a source that begins with a skippable frame: that of the first other frame. If this begins too late, or
/// not at all, it is Zstandard, whose files of archives begin with a dictionary. `head_at` returns the [`frame_head`] at a
/// byte of the source.
pub(super) fn packing_of_frames(mut head_at: impl FnMut(usize) -> [u8; FRAME_HEAD_LEN]) -> Packing {
    let mut at = 0;
    loop {
        let head = head_at(at);
        let [_, _, _, _, a, b, c, d] = head;
        let next = (at + FRAME_HEAD_LEN).saturating_add(u32::from_le_bytes([a, b, c, d]) as usize);
        if !is_skippable_frame(&head) || next > MAX_SKIPPED_LEN {
            return if head.starts_with(&LZ4_FRAME) { Packing::Lz4 } else { Packing::Zstd };
        }
        at = next;
    }
}

/// The first bytes of the frame at byte `at`, with zeros after the end of `bytes`.
pub(super) fn frame_head(bytes: &[u8], at: usize) -> [u8; FRAME_HEAD_LEN] {
    let frame = bytes.get(at..).unwrap_or_default();
    std::array::from_fn(|i| frame.get(i).copied().unwrap_or(0))
}

/// Kind of a decompressed source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentType {
    /// Text, after a byte order mark of this many bytes (0 or 3).
    Records(usize),
    /// UTF-16 text, after a byte order mark of 2 bytes.
    Utf16(ByteOrder),
    /// Text in the named encoding, in which lines do not end with the byte LF.
    Encoding(&'static str),
    /// UTF-16 text without a byte order mark, judged by its first bytes.
    UnmarkedUtf16(ByteOrder),
    /// A table in a binary format.
    Table(TableFormat),
    /// A format that is not read.
    Unsupported(UnsupportedFormat),
}

/// A binary format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableFormat {
    Parquet,
    /// Arrow IPC, the file format.
    Arrow,
    /// Arrow IPC, the streaming format.
    ArrowStream,
}

impl TableFormat {
    /// The name of the format in reports.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            TableFormat::Parquet => "parquet",
            TableFormat::Arrow | TableFormat::ArrowStream => "arrow",
        }
    }
}

/// Returns the kind of a decompressed source that begins with `head`.
pub(crate) fn content_type(head: &[u8]) -> ContentType {
    match head {
        [0xef, 0xbb, 0xbf, ..] => return ContentType::Records(3),
        [0xff, 0xfe, 0, 0, ..] => return ContentType::Encoding("UTF-32 (little-endian)"),
        [0, 0, 0xfe, 0xff, ..] => return ContentType::Encoding("UTF-32 (big-endian)"),
        [0xff, 0xfe, ..] => return ContentType::Utf16(ByteOrder::Little),
        [0xfe, 0xff, ..] => return ContentType::Utf16(ByteOrder::Big),
        _ => (),
    }
    let nested_bzip2 = UnsupportedFormat {
        name: "bzip2 within another compression",
        advice: "decompress it once, and pipe the rest to irikey",
    };
    let unsupported = || (packing(head) == Packing::Bzip2).then_some(nested_bzip2);
    match head {
        [b'P', b'A', b'R', b'1', 0x15, ..] => ContentType::Table(TableFormat::Parquet),
        // An encrypted page begins with its length.
        [b'P', b'A', b'R', b'1' | b'E', _, _, _, 0, ..] => ContentType::Unsupported(ENCRYPTED_PARQUET),
        // The reader reports the damage.
        [b'P', b'A', b'R', b'1', 0..=8 | 14..=31 | 0xff, ..] => ContentType::Table(TableFormat::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', 0, 0, ..] => ContentType::Table(TableFormat::Arrow),
        // A continuation marker, the length of the schema message, and its position in the message, which is small.
        [0xff, 0xff, 0xff, 0xff, _, _, _, 0, _, 0, 0, 0, ..] => ContentType::Table(TableFormat::ArrowStream),
        _ => match (unsupported().or_else(|| UnsupportedFormat::of_binary(head)), unmarked_utf16(head)) {
            (Some(format), _) => ContentType::Unsupported(format),
            (None, Some(order)) => ContentType::UnmarkedUtf16(order),
            (None, None) => ContentType::Records(0),
        },
    }
}

/// The byte order of a text whose first 4 to 8 units are ASCII in UTF-16.
fn unmarked_utf16(head: &[u8]) -> Option<ByteOrder> {
    let units = &head.as_chunks::<2>().0[..(head.len() / 2).min(8)];
    let is_ascii = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    match units.len() {
        4.. if units.iter().all(|[low, high]| *high == 0 && is_ascii(*low)) => Some(ByteOrder::Little),
        4.. if units.iter().all(|[high, low]| *high == 0 && is_ascii(*low)) => Some(ByteOrder::Big),
        _ => None,
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
        // Of no bytes.
        assert_eq!(packing(b"BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0"), Packing::Bzip2);
        assert_eq!(packing(b"\x04\x22\x4d\x18@"), Packing::Lz4);
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc";
        let frame = b"\x04\x22\x4d\x18@";
        assert_eq!(packing(&[&skippable[..], frame].concat()), Packing::Lz4);
        assert_eq!(packing(&[&skippable.repeat(9)[..], frame].concat()), Packing::Lz4);
        assert_eq!(
            packing(&[&skippable.repeat(1 + MAX_SKIPPED_LEN / skippable.len())[..], frame].concat()),
            Packing::Zstd
        );
        for len in 4..=skippable.len() {
            assert_eq!(packing(&skippable[..len]), Packing::Zstd, "{len}");
        }
        assert_eq!(packing(b"\xfd7zXZ\0\0"), Packing::Xz);
        assert!(matches!(content_type(b"PK\x03\x04"), ContentType::Unsupported(format) if format.name.contains("ZIP")));
        assert!(matches!(content_type(b"BZh91AY&SY\0"), ContentType::Unsupported(_)));
        assert_eq!(content_type(b"PAR1\x15\x04\x15\0"), ContentType::Table(TableFormat::Parquet));
        assert_eq!(content_type(b"PARENT,URL\n"), ContentType::Records(0));
        for encrypted in [b"PAREx\x01\0\0", b"PAR1x\x01\0\0"] {
            assert_eq!(content_type(encrypted), ContentType::Unsupported(ENCRYPTED_PARQUET));
        }
        for damaged in [b"PAR1\x15\0", b"PAR1\xff\0", b"PAR1\0\0"] {
            assert_eq!(content_type(damaged), ContentType::Table(TableFormat::Parquet));
        }
        assert_eq!(content_type(b"PAR1\t\n"), ContentType::Records(0));
        assert_eq!(
            content_type(b"\xff\xff\xff\xff\x08\x01\0\0\x10\0\0\0\0"),
            ContentType::Table(TableFormat::ArrowStream)
        );
        assert_eq!(content_type(b"h\0t\0t\0p\0:"), ContentType::UnmarkedUtf16(ByteOrder::Little));
        assert_eq!(content_type(b"\0h\0t\0t\0p\0:"), ContentType::UnmarkedUtf16(ByteOrder::Big));
        assert_eq!(content_type(b"h\0t\0t\0"), ContentType::Records(0));
        assert_eq!(content_type(b"\xEF\xBB\xBFhttp://example.org/"), ContentType::Records(3));
        assert_eq!(content_type(b"\0\0\xFE\xFF\0\0\0h"), ContentType::Encoding("UTF-32 (big-endian)"));
        assert_eq!(content_type(b"\xff\xfe\0\0"), ContentType::Encoding("UTF-32 (little-endian)"));
        assert_eq!(content_type(b"\xfe\xff\0h"), ContentType::Utf16(ByteOrder::Big));
    }
}
