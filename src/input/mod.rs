//! Files in, blocks of bytes out. Opens, maps, reads and unpacks; knows nothing of URLs and little of records.
//!
//! ```text
//! arguments --list--> Sources --open--> Opened::Mapped(Mapping)            --> Block (a range of the map)
//!                                       Opened::Stream(plain | gzip | zstd) --> Block (an owned buffer)
//! ```
//!
//! What a source is follows from its first bytes, never from its name: [`detect`]. Regular files are mapped, all else
//! is read. A source that turns out damaged gives a [`Defect`], which ends that source and not the run.

mod block;
pub mod detect;
mod error;
mod inflate;
mod list;
pub mod mmap;
mod open;
mod read;
mod utf16;

pub use block::{Block, Buffer, Pool};
pub use error::{Defect, InputError, ListError};
pub use list::{Origin, Source, Sources, list};
pub use mmap::{forget, remove_on_signal};
pub use open::{OpenOptions, Opened, Stream, open};

/// The record format that a file's name speaks of; see [`sniff_format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatName {
    /// One URL a line.
    Lines,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
}

/// The format that `name` ends in, a final `.gz` or `.zst` aside: `.csv` and `.tsv` are themselves, all else is lines.
///
/// ```
/// use irikey::input::{FormatName, sniff_format};
/// assert_eq!(sniff_format("crawl/seeds.TSV.gz"), FormatName::Tsv);
/// assert_eq!(sniff_format("-"), FormatName::Lines);
/// ```
pub fn sniff_format(name: &str) -> FormatName {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    if name.ends_with(".csv") {
        FormatName::Csv
    } else if name.ends_with(".tsv") {
        FormatName::Tsv
    } else {
        FormatName::Lines
    }
}
