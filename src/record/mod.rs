//! Decoders: whole records of a chunk in, borrowed views of their fields out. They open nothing.
//!
//! ```text
//! chunk bytes --decoder--> Records { text, urls, bases, offsets, faults } --canon--> rows
//! ```
//!
//! Each decoder owns the rule where its records end, and what it does with its format's defects.

pub mod boundary;
pub mod cdx;
pub mod cdxj;
pub mod crawl_log;
pub mod csv;
pub mod fields;
pub mod json;
pub mod lines;
pub mod split;
pub mod time;

use crate::encoding::Charset;
use crate::iri::Fault;
use crate::kernel::Bitmaps;

/// Where a field stands in [`Records::text`], in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub at: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Span {
    /// The bytes of `text` that the span covers.
    #[inline(always)]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.at as usize..self.at as usize + self.len as usize]
    }
}

/// Where each record began in the decompressed source, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum Offsets<'a> {
    /// `text` is the source itself from this offset on: a record begins where its URL does.
    From(u64),
    /// One offset a record.
    Each(&'a [u64]),
}

impl Default for Offsets<'_> {
    fn default() -> Self {
        Offsets::From(0)
    }
}

/// Decoded records: one URL each, in the order of the source. A column that a source has nothing to say in is empty;
/// every other one has an entry a record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    /// The bytes that the spans point into; shorter than 4 GiB.
    pub text: &'a [u8],
    /// The URL of each record; ascending and disjoint in `text`.
    pub urls: &'a [Span],
    /// The base of each record, or empty when the format has none.
    pub bases: &'a [Span],
    /// Where each record stood.
    pub offsets: Offsets<'a>,
    /// Records that the decoder itself refuses: row number within `urls`, ascending, and why.
    pub faults: &'a [(u32, Fault)],
    /// Label of the charset that a record is written in; none, or an empty one, says nothing.
    pub charsets: &'a [Option<Span>],
    /// Label of the charset of the document that a record's URL stood in, likewise.
    pub query_charsets: &'a [Option<Span>],
    /// The charset that the source as a whole turned out to be in, by its byte order mark for one.
    pub charset: Option<Charset>,
    /// Records that are one of several references of their field: row numbers, ascending.
    pub siblings: &'a [u32],
}

/// How records are written.
#[derive(Clone, Debug, Default)]
pub enum Format {
    /// One URL a line.
    #[default]
    Lines,
    /// Fields between delimiters.
    Csv(csv::CsvOptions),
}

impl Format {
    /// What hides the end of a record, if anything does.
    pub fn quoting(&self) -> Option<boundary::Quoting> {
        match self {
            Format::Lines => None,
            Format::Csv(options) => Some(options.quoting()),
        }
    }
}

/// The decoder of a format.
#[derive(Debug)]
pub enum Decoder {
    /// Of lines.
    Lines(lines::Lines),
    /// Of CSV and TSV.
    Csv(Box<csv::Csv>),
}

impl Decoder {
    /// A decoder of `format`.
    pub fn new(format: &Format) -> Decoder {
        match format {
            Format::Lines => Decoder::Lines(lines::Lines::default()),
            Format::Csv(options) => Decoder::Csv(Box::new(csv::Csv::new(options))),
        }
    }

    /// The chunks that follow have their fields in these columns; lines have none.
    pub fn set_columns(&mut self, columns: csv::Columns) {
        if let Decoder::Csv(csv) = self {
            csv.set_columns(columns);
        }
    }

    /// The records of `chunk`, which holds whole ones and begins at byte `offset` of its source; `bitmaps` describe
    /// their text afterwards.
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        match self {
            Decoder::Lines(lines) => lines.decode(chunk, offset, bitmaps),
            Decoder::Csv(csv) => csv.decode(chunk, offset, bitmaps),
        }
    }
}
