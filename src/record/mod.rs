//! Decoders: whole records of a chunk in, borrowed views of their fields out. They open nothing.
//!
//! ```text
//! head of a source --Layout::sniff--> Layout
//! chunk bytes --Decoder, by the layout--> Records { text, urls, bases, offsets, faults, fields } --canon--> rows
//! ```
//!
//! Archives are no lines. Their records pass [`archive::Archive`] first, which leaves a line of text of each:
//!
//! ```text
//! bytes of an archive --Archive::push--> lines of captures --(cut into chunks like others)--> Records
//! ```
//!
//! Nor are tables of columns: what decodes these gives its rows to [`table::TableRecords`].
//!
//! Each decoder owns the rule where its records end, and what it does with its format's defects.

pub mod access_log;
pub mod archive;
pub mod boundary;
pub mod capture;
pub mod cdx;
pub mod cdxj;
mod collected;
pub mod copies;
pub mod crawl_log;
pub mod csv;
pub mod fields;
mod format;
pub mod http;
mod index_member;
pub mod journal;
pub mod json;
pub mod json_lines;
pub mod lines;
mod shape;
pub mod split;
pub mod table;
pub mod time;
mod wat;
pub mod zipnum;

pub use format::{Archived, Decoder, Format, Guess, Layout};

use crate::encoding::Charset;
use crate::iri::{Fault, Flags};
pub use crate::kernel::Span;
use fields::FieldViews;

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
    /// What the format says beside the URL; empty columns if it says nothing.
    pub fields: FieldViews<'a>,
    /// Records that the decoder repaired or that showed something: row number within `urls`, ascending, and what.
    pub flags: &'a [(u32, Flags)],
    /// Lines that are no records: headers and comments. Blank lines are not counted.
    pub header_count: u32,
}
