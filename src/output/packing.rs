//! Compressed text outputs: the suffix of the file chooses gzip or zstd ([`TextPacking`]). Workers compress each row group as a
//! member or frame of its own, so that the bytes depend on the rows alone, and members can be concatenated.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// How the bytes of a text output are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPacking {
    None,
    Gzip,
    Zstd,
}

/// Level of zstd, the default of its command.
const ZSTD_LEVEL: i32 = 3;

impl TextPacking {
    /// The compression of an output at this path. Formats that are not plain text ignore the suffix.
    pub(super) fn of(path: Option<&Path>, is_packable: bool) -> TextPacking {
        let name = path.filter(|_| is_packable).and_then(Path::file_name);
        name.map_or(TextPacking::None, |name| TextPacking::of_name(&name.to_string_lossy()).0)
    }

    /// The compression that the suffix of a file name selects, and the name without this suffix.
    pub(super) fn of_name(name: &str) -> (TextPacking, &str) {
        let is = |suffix: &str| {
            let at = name.len().checked_sub(suffix.len())?;
            name.get(at..).filter(|end| end.eq_ignore_ascii_case(suffix)).map(|_| &name[..at])
        };
        match (is(".gz"), is(".zst")) {
            (Some(stem), _) => (TextPacking::Gzip, stem),
            (_, Some(stem)) => (TextPacking::Zstd, stem),
            _ => (TextPacking::None, name),
        }
    }

    /// Compresses bytes as one member or frame.
    pub(super) fn pack(self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        match self {
            TextPacking::None => Ok(bytes),
            TextPacking::Gzip => gzip(&bytes),
            TextPacking::Zstd => zstd::bulk::compress(&bytes, ZSTD_LEVEL),
        }
    }
}

/// Compresses bytes as one gzip member.
pub(super) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
    gzip.write_all(bytes)?;
    gzip.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_choose_the_packing_of_text() {
        let packing = |name: &str| TextPacking::of(Some(Path::new(name)), true);
        assert_eq!(packing("a/x.csv.gz"), TextPacking::Gzip);
        assert_eq!(packing("x.JSONL.ZST"), TextPacking::Zstd);
        assert_eq!(packing("é"), TextPacking::None);
        assert_eq!(TextPacking::of(Some(Path::new("x.cdx.gz")), false), TextPacking::None);
        assert_eq!(TextPacking::of(None, true), TextPacking::None);
    }
}
