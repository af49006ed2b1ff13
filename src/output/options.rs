//! What an output contains and how it is encoded: formats, codecs, columns, metadata.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use parquet::basic::{self as codec, ZstdLevel};

use super::packing::TextPacking;
use crate::batch::ColumnSet;
use crate::canon::Policy;
use crate::process::Existing;
use crate::sort::{SORT_METADATA_KEY, SortBy};

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file with this path. It replaces the file that has the path, when it is complete.
    File(PathBuf),
    /// A file with this path, which must not exist. A file that appears before the output is complete is kept.
    NewFile(PathBuf),
    /// Standard output.
    Stdout,
}

impl Destination {
    pub(crate) fn new(path: PathBuf, existing: Existing) -> Destination {
        match existing {
            Existing::Replace => Destination::File(path),
            Existing::Keep => Destination::NewFile(path),
        }
    }

    /// What happens to a file that has the path.
    pub(crate) fn existing(&self) -> Existing {
        match self {
            Destination::NewFile(_) => Existing::Keep,
            Destination::File(_) | Destination::Stdout => Existing::Replace,
        }
    }

    /// Returns the path, unless it is standard output.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Destination::File(path) | Destination::NewFile(path) => Some(path),
            Destination::Stdout => None,
        }
    }
}

/// What an output contains and how it is encoded.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// The format.
    pub format: OutputFormat,
    /// Codec of text columns; only Parquet uses it.
    pub compression: Compression,
    /// Columns in order; [`OutputFormat::Text`] ignores them and writes the URI.
    pub columns: ColumnSet,
    /// Policy of the rows, which metadata describe: that of the run, see [`Encoder::policy`](super::Encoder::policy).
    pub policy: Policy,
    /// Names of the sources; `source` of a run is an index of this list.
    pub sources: Vec<String>,
}

impl OutputOptions {
    /// Returns whether threads encode row groups together, see [`super::Encoder::joins_slices`].
    pub(crate) fn joins_slices(&self) -> bool {
        self.format == OutputFormat::Parquet && self.compression.has_page_codec()
    }

    /// The metadata of a file with this arrangement; only Parquet and Arrow store it.
    pub(super) fn metadata(&self, arrangement: &Arrangement) -> Vec<(String, String)> {
        let order = (!arrangement.by.is_empty()).then(|| (SORT_METADATA_KEY.to_string(), arrangement.by.to_string()));
        metadata(&self.policy, self.sources.len()).into_iter().chain(order).collect()
    }
}

#[cfg(test)]
impl OutputOptions {
    /// An output of URIs.
    pub(super) fn of_uris(format: OutputFormat) -> OutputOptions {
        OutputOptions {
            format,
            compression: Compression::default(),
            columns: ColumnSet::named(["uri"]).unwrap(),
            policy: Policy::default(),
            sources: Vec::new(),
        }
    }
}

/// Returns the metadata of a file: the policy, the version of this library, and the number of sources.
pub(crate) fn metadata(policy: &Policy, sources: usize) -> Vec<(String, String)> {
    let mut pairs: Vec<_> =
        policy.describe().into_iter().map(|(name, value)| (format!("irikey.{name}"), value)).collect();
    pairs.push(("irikey.version".to_string(), env!("CARGO_PKG_VERSION").to_string()));
    pairs.push(("irikey.sources".to_string(), sources.to_string()));
    pairs
}

/// The order of the rows of an output, and its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// Columns that the rows are sorted by; empty if they are not sorted. Parquet declares the order and stores statistics
    /// of these columns.
    pub by: SortBy,
    /// Parquet row groups have a bloom filter of the column `key`.
    pub bloom: bool,
}

/// Reads a file before it gets its final name. Returns the number of its rows, or why it is not as written.
pub(crate) type ReadBack = Box<dyn FnMut(&Path) -> Result<u64, ReadBackError> + Send>;

/// Why a file was not read back. An [`std::io::Error`] is that of a read; others are about the rows.
pub(crate) type ReadBackError = Box<dyn Error + Send + Sync>;

/// Defines the formats with their names and suffixes.
macro_rules! output_formats {
    ($($(#[$doc:meta])* $format:ident $name:literal [$($suffix:literal),*];)*) => {
        /// A format of outputs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum OutputFormat {
            $($(#[$doc])* $format,)*
        }

        impl OutputFormat {
            /// All formats.
            pub const ALL: [OutputFormat; 9] = [$(OutputFormat::$format),*];

            /// Returns the name in `--output-format`.
            pub const fn name(self) -> &'static str {
                match self { $(OutputFormat::$format => $name,)* }
            }

            /// Returns the suffixes of file names that select the format.
            pub const fn suffixes(self) -> &'static [&'static str] {
                match self { $(OutputFormat::$format => &[$($suffix),*],)* }
            }
        }
    };
}
output_formats! {
    /// Apache Parquet.
    Parquet "parquet" ["parquet", "pq"];
    /// Arrow IPC file (Feather version 2).
    Arrow "arrow" ["arrow", "feather"];
    /// Arrow IPC stream.
    ArrowStream "arrow-stream" ["arrows"];
    /// Comma-separated values with a header.
    Csv "csv" ["csv"];
    /// Tab-separated values with a header.
    Tsv "tsv" ["tsv"];
    /// One JSON object per line.
    JsonLines "jsonl" ["jsonl", "ndjson"];
    /// CDXJ: one line per capture, sorted by key.
    Cdxj "cdxj" ["cdxj"];
    /// CDXJ in gzip members, with an index of the members.
    Zipnum "zipnum" ["cdx.gz", "cdxj.gz"];
    /// One canonical URI per line. The line of a record with a fault is empty, so that canon writes a line for each record.
    Text "text" ["txt"];
}

impl OutputFormat {
    /// Returns the format that the suffix of `path` selects, ignoring case. `.gz` or `.zst` may follow the suffix of a text
    /// format.
    pub(crate) fn of_path(path: &Path) -> Option<OutputFormat> {
        let of_name = |name: &str| {
            let name = name.to_ascii_lowercase();
            let ends = |suffix: &&str| name.strip_suffix(*suffix).is_some_and(|stem| stem.ends_with('.'));
            OutputFormat::ALL.into_iter().find(|format| format.suffixes().iter().any(ends))
        };
        // The suffix counts, also if bytes before it are not UTF-8.
        let name = path.file_name()?.to_string_lossy();
        let packed = || of_name(TextPacking::of_name(&name).1).filter(|format| format.is_packable());
        of_name(&name).or_else(packed)
    }

    /// Returns whether files declare or imply the order of their rows, so that it can be verified.
    pub(crate) const fn has_order(self) -> bool {
        matches!(self, OutputFormat::Parquet | OutputFormat::Arrow | OutputFormat::Cdxj | OutputFormat::Zipnum)
    }

    /// Returns whether the format is an index of captures, which has fixed columns and a fixed order.
    pub(crate) const fn is_index(self) -> bool {
        matches!(self, OutputFormat::Cdxj | OutputFormat::Zipnum)
    }

    /// Returns whether files of the format may be compressed as a whole: plain text of any order.
    pub(crate) const fn is_packable(self) -> bool {
        matches!(self, OutputFormat::Csv | OutputFormat::Tsv | OutputFormat::JsonLines | OutputFormat::Text)
    }

    /// Returns the byte between fields, if the format is delimited text.
    pub(crate) const fn delimiter(self) -> Option<u8> {
        match self {
            OutputFormat::Csv => Some(b','),
            OutputFormat::Tsv => Some(b'\t'),
            _ => None,
        }
    }

    /// Returns whether the format is not readable on a terminal.
    pub(crate) const fn is_binary(self) -> bool {
        matches!(self, OutputFormat::Parquet | OutputFormat::Arrow | OutputFormat::ArrowStream | OutputFormat::Zipnum)
    }
}

/// A codec of Parquet's text columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Zstandard at a level from 1 to 22.
    Zstd(u8),
    /// LZ4 in Parquet's `LZ4_RAW` framing.
    Lz4,
    /// Snappy.
    Snappy,
    /// No compression.
    None,
}

/// Why a text is not the name of a codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// The codec is unknown.
    #[error("unknown codec; expected zstd, zstd:LEVEL, lz4, snappy or none")]
    UnknownCodec,
    /// The level of zstd is not supported.
    #[error("unsupported zstd level; expected a number from 1 to 22")]
    Level,
}

impl Default for Compression {
    fn default() -> Compression {
        Compression::Zstd(1)
    }
}

impl Compression {
    /// Returns whether pages of texts are encoded and compressed by [`super::pages`]; otherwise the crate parquet does both.
    pub(super) fn has_page_codec(self) -> bool {
        self != Compression::Snappy
    }

    pub(super) fn codec(self) -> codec::Compression {
        match self {
            // Parsing checks the level. A level out of range that a caller constructs becomes the default.
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
    type Err = CompressionError;

    fn from_str(text: &str) -> Result<Compression, CompressionError> {
        match text {
            "zstd" => return Ok(Compression::default()),
            "lz4" => return Ok(Compression::Lz4),
            "snappy" => return Ok(Compression::Snappy),
            "none" => return Ok(Compression::None),
            _ => {}
        }
        let level = text.strip_prefix("zstd:").ok_or(CompressionError::UnknownCodec)?;
        match level.parse() {
            Ok(level @ 1..=22) => Ok(Compression::Zstd(level)),
            _ => Err(CompressionError::Level),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_found_by_suffix() {
        assert_eq!(OutputFormat::of_path(Path::new("a.b/x.PARQUET")), Some(OutputFormat::Parquet));
        assert_eq!(OutputFormat::of_path(Path::new("x.arrows")), Some(OutputFormat::ArrowStream));
        assert_eq!(OutputFormat::of_path(Path::new("x.ndjson")), Some(OutputFormat::JsonLines));
        assert_eq!(OutputFormat::of_path(Path::new("a/x.cdx.gz")), Some(OutputFormat::Zipnum));
        assert_eq!(OutputFormat::of_path(Path::new("x.csv.GZ")), Some(OutputFormat::Csv));
        assert_eq!(OutputFormat::of_path(Path::new("x.jsonl.zst")), Some(OutputFormat::JsonLines));
        assert_eq!(OutputFormat::of_path(Path::new("x.parquet.gz")), None);
        assert_eq!(OutputFormat::of_path(Path::new("x.gz")), None);
        assert_eq!(OutputFormat::of_path(Path::new("parquet")), None);
        assert_eq!(OutputFormat::of_path(Path::new("x.xlsx")), None);
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let path = |name| Path::new(std::ffi::OsStr::from_bytes(name));
            assert_eq!(OutputFormat::of_path(path(b"caf\xe9.txt")), Some(OutputFormat::Text));
            assert_eq!(TextPacking::of(Some(path(b"caf\xe9.csv.gz")), true), TextPacking::Gzip);
        }
    }

    #[test]
    fn codecs_are_displayed_as_they_are_parsed() {
        for name in ["zstd:1", "zstd:22", "lz4", "snappy", "none"] {
            assert_eq!(name.parse::<Compression>().unwrap().to_string(), name);
        }
        assert_eq!("zstd".parse(), Ok(Compression::Zstd(1)));
        for name in ["zstd:0", "zstd:23", "zstd:", "gzip", ""] {
            assert!(name.parse::<Compression>().is_err(), "{name}");
        }
    }
}
