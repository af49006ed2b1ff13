//! Names of formats and codecs, as flags and file suffixes have them.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use parquet::basic::{self as codec, ZstdLevel};

/// A format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC file (Feather version 2).
    Arrow,
    /// Arrow IPC stream.
    ArrowStream,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// One JSON object a line.
    JsonLines,
    /// CDXJ: a line a capture, in the order of its key.
    Cdxj,
    /// The same in gzip members, with an index of these.
    Zipnum,
    /// One canonical URI a line; an empty line where the record has a fault, so that line n is record n.
    Text,
}

impl OutputFormat {
    /// Every format.
    pub const ALL: [OutputFormat; 9] = [
        OutputFormat::Parquet,
        OutputFormat::Arrow,
        OutputFormat::ArrowStream,
        OutputFormat::Csv,
        OutputFormat::Tsv,
        OutputFormat::JsonLines,
        OutputFormat::Cdxj,
        OutputFormat::Zipnum,
        OutputFormat::Text,
    ];

    /// The name in `--output-format`.
    pub const fn name(self) -> &'static str {
        match self {
            OutputFormat::Parquet => "parquet",
            OutputFormat::Arrow => "arrow",
            OutputFormat::ArrowStream => "arrow-stream",
            OutputFormat::Csv => "csv",
            OutputFormat::Tsv => "tsv",
            OutputFormat::JsonLines => "jsonl",
            OutputFormat::Cdxj => "cdxj",
            OutputFormat::Zipnum => "zipnum",
            OutputFormat::Text => "text",
        }
    }

    /// Suffixes of file names that mean it.
    pub const fn suffixes(self) -> &'static [&'static str] {
        match self {
            OutputFormat::Parquet => &["parquet", "pq"],
            OutputFormat::Arrow => &["arrow", "feather"],
            OutputFormat::ArrowStream => &["arrows"],
            OutputFormat::Csv => &["csv"],
            OutputFormat::Tsv => &["tsv"],
            OutputFormat::JsonLines => &["jsonl", "ndjson"],
            OutputFormat::Cdxj => &["cdxj"],
            OutputFormat::Zipnum => &["cdx.gz", "cdxj.gz"],
            OutputFormat::Text => &["txt"],
        }
    }

    /// The format that the suffix of `path` means, whatever its case.
    pub fn of_path(path: &Path) -> Option<OutputFormat> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let ends = |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|stem| stem.ends_with('.'));
        OutputFormat::ALL.into_iter().find(|format| format.suffixes().iter().any(ends))
    }

    /// Files of it tell in which order their rows stand: what is written can be checked.
    pub const fn has_order(self) -> bool {
        matches!(self, OutputFormat::Parquet | OutputFormat::Arrow | OutputFormat::Cdxj | OutputFormat::Zipnum)
    }

    /// It is an index of captures: its columns and its order are its own.
    pub const fn is_index(self) -> bool {
        matches!(self, OutputFormat::Cdxj | OutputFormat::Zipnum)
    }

    /// The byte between fields, if the format is a table of delimited text.
    pub(crate) const fn delimiter(self) -> Option<u8> {
        match self {
            OutputFormat::Csv => Some(b','),
            OutputFormat::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// It is not for a terminal.
    pub const fn is_binary(self) -> bool {
        matches!(self, OutputFormat::Parquet | OutputFormat::Arrow | OutputFormat::ArrowStream | OutputFormat::Zipnum)
    }
}

/// A codec of Parquet's text columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Zstandard at a level from 1 to 22.
    Zstd(u8),
    /// LZ4 in Parquet's `LZ4_RAW` framing.
    Lz4,
    /// Snappy.
    Snappy,
    /// As it is.
    None,
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Zstd(1)
    }
}

impl Compression {
    pub(super) fn codec(self) -> codec::Compression {
        match self {
            // Levels are checked where they are parsed; a level out of range made by hand is the default one.
            Compression::Zstd(level) => {
                codec::Compression::ZSTD(ZstdLevel::try_new(i32::from(level)).unwrap_or_default())
            }
            Compression::Lz4 => codec::Compression::LZ4_RAW,
            Compression::Snappy => codec::Compression::SNAPPY,
            Compression::None => codec::Compression::UNCOMPRESSED,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::Zstd(level) => write!(f, "zstd:{level}"),
            Compression::Lz4 => f.write_str("lz4"),
            Compression::Snappy => f.write_str("snappy"),
            Compression::None => f.write_str("none"),
        }
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Compression, String> {
        match text {
            "zstd" => return Ok(Compression::default()),
            "lz4" => return Ok(Compression::Lz4),
            "snappy" => return Ok(Compression::Snappy),
            "none" => return Ok(Compression::None),
            _ => {}
        }
        let level = text.strip_prefix("zstd:").ok_or("expected zstd, zstd:LEVEL, lz4, snappy or none")?;
        match level.parse() {
            Ok(level @ 1..=22) => Ok(Compression::Zstd(level)),
            _ => Err("a zstd level is a number from 1 to 22".to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_tell_the_format() {
        assert_eq!(OutputFormat::of_path(Path::new("a.b/x.PARQUET")), Some(OutputFormat::Parquet));
        assert_eq!(OutputFormat::of_path(Path::new("x.arrows")), Some(OutputFormat::ArrowStream));
        assert_eq!(OutputFormat::of_path(Path::new("x.ndjson")), Some(OutputFormat::JsonLines));
        assert_eq!(OutputFormat::of_path(Path::new("a/x.cdx.gz")), Some(OutputFormat::Zipnum));
        assert_eq!(OutputFormat::of_path(Path::new("parquet")), None);
        assert_eq!(OutputFormat::of_path(Path::new("x.xlsx")), None);
    }

    #[test]
    fn codecs_print_as_they_parse() {
        for name in ["zstd:1", "zstd:22", "lz4", "snappy", "none"] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(1)));
        for name in ["zstd:0", "zstd:23", "zstd:", "gzip", ""] {
            assert!(name.parse::<Compression>().is_err(), "{name}");
        }
    }
}
