//! What decoders return: [`Records`], borrowed columns with one URL per record.

use super::fields::FieldViews;
use crate::encoding::Charset;
#[cfg(test)]
use crate::iri::FaultKind;
use crate::iri::{CLASSIFIER, Fault, Flags};
use crate::kernel::{Bitmaps, Span};

/// The offset in the decompressed source at which each record begins, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum RecordOffsets<'a> {
    /// `text` is the source itself from this offset on, and a record begins where its URL begins.
    From(u64),
    /// One offset per record.
    Each(&'a [u64]),
}

impl Default for RecordOffsets<'_> {
    fn default() -> Self {
        RecordOffsets::From(0)
    }
}

/// Decoded records in the order of the source, one URL per record.
///
/// A column that a format does not have is empty; every other column has one entry per record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    /// The bytes into which the spans point; at most [`Span::MAX_TEXT_LEN`].
    pub text: &'a [u8],
    /// The URL of each record; ascending and disjoint in `text`. An `LF` after each keeps searches within it: without one, they go on
    /// to the next byte that is sought, and canonicalizing takes longer.
    pub urls: &'a [Span],
    /// The base of each record.
    pub bases: &'a [Span],
    /// The offset of each record.
    pub offsets: RecordOffsets<'a>,
    /// Records that the decoder refuses: index in `urls`, ascending, and the reason.
    pub faults: &'a [(u32, Fault)],
    /// Label of the charset in which each record is written; `None` and an empty label mean that it is not known.
    pub charsets: &'a [Option<Span>],
    /// These labels may be those of UTF-16: the records are fields of their own, and were not found by a search for bytes such as
    /// LF, which occur within the characters of UTF-16.
    pub may_be_utf16: bool,
    /// Label of the charset of the document that contained each URL; absent as in `charsets`.
    pub query_charsets: &'a [Option<Span>],
    /// The charset of the whole source, if the decoder knows it, for example from a byte order mark.
    pub charset: Option<Charset>,
    /// The records are text in UTF-8, as in a column of strings or in JSON (RFC 8259 section 8.1), and not bytes in the charset of
    /// the policy.
    pub is_text: bool,
    /// Records that are one of several references of one field: indexes, ascending.
    pub siblings: &'a [u32],
    /// Further fields of each record.
    pub fields: FieldViews<'a>,
    /// Records that the decoder repaired or noticed something about: index in `urls`, ascending, and the flags.
    pub flags: &'a [(u32, Flags)],
    /// Header and comment lines, which are not records: index in `urls` of the record that follows, ascending. Blank
    /// lines are not included.
    pub headers: &'a [u32],
}

impl Records<'_> {
    /// Replaces `bitmaps` by those of the text, which [`Canonicalizer::append`](crate::canon::Canonicalizer::append) needs.
    /// Decoders do the same.
    ///
    /// # Panics
    /// If the text is longer than [`Span::MAX_TEXT_LEN`].
    pub fn classify(&self, bitmaps: &mut Bitmaps) {
        bitmaps.classify(self.text, &CLASSIFIER);
    }

    /// Returns whether records may have labels of charsets, of their own or of their documents.
    pub(crate) fn has_charset_labels(&self) -> bool {
        !(self.charsets.is_empty() && self.query_charsets.is_empty())
    }

    /// Keeps the first `len` records and the headers before the last of them.
    pub(crate) fn truncate(&mut self, len: usize) {
        fn first<T>(column: &[T], len: usize) -> &[T] {
            &column[..len.min(column.len())]
        }
        self.headers = &self.headers[..self.headers.partition_point(|index| (*index as usize) < len)];
        if len >= self.urls.len() {
            return;
        }
        self.fields.truncate(len);
        self.urls = first(self.urls, len);
        self.bases = first(self.bases, len);
        self.charsets = first(self.charsets, len);
        self.query_charsets = first(self.query_charsets, len);
        if let RecordOffsets::Each(offsets) = self.offsets {
            self.offsets = RecordOffsets::Each(first(offsets, len));
        }
        self.faults = &self.faults[..self.faults.partition_point(|(index, _)| (*index as usize) < len)];
        self.flags = &self.flags[..self.flags.partition_point(|(index, _)| (*index as usize) < len)];
        self.siblings = &self.siblings[..self.siblings.partition_point(|index| (*index as usize) < len)];
    }
}

/// What tests look at.
#[cfg(test)]
impl Records<'_> {
    /// The text of a span.
    pub(crate) fn show(&self, span: Span) -> String {
        String::from_utf8_lossy(span.of(self.text)).into_owned()
    }

    /// The URLs.
    pub(crate) fn shown_urls(&self) -> Vec<String> {
        self.urls.iter().map(|url| self.show(*url)).collect()
    }

    /// The fault of a record that the decoder refuses.
    pub(crate) fn fault(&self, record: usize) -> Option<FaultKind> {
        self.faults.iter().find(|(row, _)| *row as usize == record).map(|(_, fault)| fault.kind)
    }

    /// The offset of each record, if they are stored.
    pub(crate) fn each_offset(&self) -> &[u64] {
        if let RecordOffsets::Each(offsets) = self.offsets { offsets } else { &[] }
    }
}
