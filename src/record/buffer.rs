//! Columns of decoded records: [`RecordColumns`] holds spans of a text that someone else owns, [`RecordBuffer`] owns
//! the text too.
//!
//! A decoder keeps one of the two from chunk to chunk and clears it before each, so that decoding allocates nothing
//! once the vectors have grown. Formats whose fields are slices of the chunk (CDX, logs) fill `RecordColumns`. Formats
//! whose fields are unescaped or assembled (JSON, CSV, tables, archives) copy them into a `RecordBuffer`.

use super::fields::{FieldBuffers, FieldSet, FieldValues, gather};
use super::records::{RecordOffsets, Records};
use crate::encoding::Charset;
use crate::iri::{Fault, FaultKind, Flags};
use crate::kernel::{Appender, Bitmaps, COPY_LEN, SimdTask, Span, append_line, prefetch, run_with_simd};
use std::ops::Range;

/// Records of tables and archives can share a base. Their buffers and row groups count at least this part of the bases, so
/// that resolved references do not exceed the texts of a row group.
#[cfg(feature = "pipeline")]
pub(crate) const BASE_SHARE: usize = 12;

/// Columns of records; spans point into the text that [`RecordColumns::records`] is given.
///
/// A record is built by `begin`, then `refuse`, `flag` and `push_base` as needed, and ends with `push`.
#[derive(Debug, Default)]
pub(super) struct RecordColumns {
    pub(super) urls: Vec<Span>,
    bases: Vec<Span>,
    charsets: Vec<Option<Span>>,
    query_charsets: Vec<Option<Span>>,
    offsets: Vec<u64>,
    faults: Vec<(u32, Fault)>,
    flags: Vec<(u32, Flags)>,
    pub(super) fields: FieldBuffers,
    headers: Vec<u32>,
}

impl RecordColumns {
    /// Removes all records; keeps the memory and the choice of fields.
    pub(super) fn clear(&mut self) {
        self.urls.clear();
        self.bases.clear();
        self.charsets.clear();
        self.query_charsets.clear();
        self.offsets.clear();
        self.faults.clear();
        self.flags.clear();
        self.fields.clear();
        self.headers.clear();
    }

    /// Sets the fields that are stored from now on.
    pub(super) fn set_carry(&mut self, carry: FieldSet) {
        self.fields.set_carry(carry);
    }

    /// The fields that are stored.
    pub(super) fn carry(&self) -> FieldSet {
        self.fields.carry()
    }

    /// Counts a line that is a header or a comment.
    pub(super) fn count_header(&mut self) {
        self.headers.push(self.urls.len() as u32);
    }

    /// Begins a record at byte `offset` of the source.
    pub(super) fn begin(&mut self, offset: u64) {
        self.offsets.push(offset);
    }

    /// Gives the current record a fault.
    pub(super) fn refuse(&mut self, kind: FaultKind) {
        self.faults.push((self.urls.len() as u32, Fault::of_reference(kind)));
    }

    /// Gives records that have no fault one. Afterwards, faults are in the order of their records again.
    pub(super) fn refuse_each(&mut self, records: &[u32], kind: FaultKind) {
        self.faults.extend(records.iter().map(|record| (*record, Fault::of_reference(kind))));
        self.faults.sort_unstable_by_key(|(record, _)| *record);
    }

    /// Sets flags of the current record.
    pub(super) fn flag(&mut self, flags: Flags) {
        self.flags.push((self.urls.len() as u32, flags));
    }

    /// Sets the base of the current record. Either all records of a format have a base, or no record has.
    pub(super) fn push_base(&mut self, base: Span) {
        self.bases.push(base);
    }

    /// Ends the current record with its URL (the whole line if the record has a fault) and its fields.
    pub(super) fn push(&mut self, url: Span, values: &FieldValues) {
        self.urls.push(url);
        self.fields.push(values);
    }

    /// Replaces all columns except the URLs: record i gets the values of record `origins[i]` of `from`.
    pub(super) fn gather(&mut self, origins: &[u32], from: &Records<'_>) {
        gather(origins, from.bases, &mut self.bases);
        gather(origins, from.charsets, &mut self.charsets);
        gather(origins, from.query_charsets, &mut self.query_charsets);
        if let RecordOffsets::Each(offsets) = from.offsets {
            gather(origins, offsets, &mut self.offsets);
        }
        gather_notes(origins, from.faults, &mut self.faults);
        gather_notes(origins, from.flags, &mut self.flags);
        self.fields.gather(origins, &from.fields);
    }

    /// The records; their spans point into `text`.
    pub(super) fn records<'a>(&'a self, text: &'a [u8]) -> Records<'a> {
        Records {
            text,
            urls: &self.urls,
            bases: &self.bases,
            offsets: if self.offsets.is_empty() { RecordOffsets::From(0) } else { RecordOffsets::Each(&self.offsets) },
            faults: &self.faults,
            charsets: &self.charsets,
            query_charsets: &self.query_charsets,
            fields: self.fields.views(),
            flags: &self.flags,
            headers: &self.headers,
            ..Records::default()
        }
    }
}

/// Copies notes, each with the index of its record, to all places that have this record as their origin.
fn gather_notes<T: Copy>(origins: &[u32], from: &[(u32, T)], into: &mut Vec<(u32, T)>) {
    into.clear();
    for (record, note) in from {
        let first = origins.partition_point(|origin| origin < record);
        let places = (first as u32..).zip(&origins[first..]).take_while(|(_, origin)| *origin == record);
        into.extend(places.map(|(place, _)| (place, *note)));
    }
}

/// Records with their own text, into which the fields are copied.
///
/// A record begins with `RecordBuffer::begin`, if the records have offsets, and [`RecordBuffer::push_url`]; its other
/// columns follow. Every record fills the same columns.
///
/// ```
/// use irikey::record::RecordBuffer;
/// let mut buffer = RecordBuffer::default();
/// for path in ["a", "b"] {
///     buffer.push_url(path.as_bytes());
///     buffer.push_base(b"http://example.org/");
/// }
/// let records = buffer.records();
/// assert_eq!(records.urls[1].of(records.text), b"b");
/// // Equal neighbors share one copy.
/// assert_eq!(records.bases[1], records.bases[0]);
/// ```
#[derive(Debug, Default)]
pub struct RecordBuffer {
    pub(super) text: Vec<u8>,
    pub(super) columns: RecordColumns,
    /// The charset of the whole source, if it is known.
    charset: Option<Charset>,
    /// See [`Records::is_text`].
    is_text: bool,
}

/// How much [`RecordBuffer::push_prefixed_urls`] copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlLimits {
    /// Maximum number of URLs.
    pub(crate) count: usize,
    /// Bytes of text of the buffer at which no more URLs are copied.
    pub(crate) text_len: usize,
    /// Longest URL.
    pub(crate) url_len: usize,
}

impl RecordBuffer {
    /// An empty buffer that stores the fields of `carry`.
    pub(crate) fn new(carry: FieldSet) -> RecordBuffer {
        let mut buffer = RecordBuffer::default();
        buffer.columns.set_carry(carry);
        buffer
    }

    /// Sets the charset of all records.
    #[cfg(feature = "pipeline")]
    pub(crate) fn set_charset(&mut self, charset: Charset) {
        self.charset = Some(charset);
    }

    /// Declares whether all records are text, see [`Records::is_text`].
    pub(crate) fn set_text(&mut self, is_text: bool) {
        self.is_text = is_text;
    }

    /// Removes all records; keeps the memory and the choice of fields.
    pub fn clear(&mut self) {
        self.text.clear();
        self.columns.clear();
    }

    /// Reserves memory for `records` more records and `text_len` more bytes of text.
    pub(crate) fn reserve(&mut self, records: usize, text_len: usize) {
        self.columns.offsets.reserve(records);
        self.columns.urls.reserve(records);
        self.text.reserve(text_len);
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.columns.urls.len()
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.columns.urls.is_empty()
    }

    /// Bytes of text, separators included.
    pub(crate) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Bytes of the bases of all records; a base counts once for each record.
    pub(crate) fn base_len(&self) -> usize {
        self.columns.bases.iter().map(|base| base.len as usize).sum()
    }

    /// Sets the offset of the next record: the byte of the source at which it begins, or its row number in a table.
    pub(crate) fn begin(&mut self, offset: u64) {
        self.columns.begin(offset);
    }

    /// Gives the record whose URL comes next a fault.
    pub(crate) fn refuse(&mut self, kind: FaultKind) {
        self.columns.refuse(kind);
    }

    /// Sets flags of the record whose URL comes next.
    pub(super) fn flag(&mut self, flags: Flags) {
        self.columns.flag(flags);
    }

    /// Copies the URL of the next record.
    ///
    /// # Panics
    /// If the texts of all records have 4 GiB or more, as the methods that copy other texts do.
    pub fn push_url(&mut self, url: &[u8]) {
        let url = append(&mut self.text, url);
        self.columns.urls.push(url);
    }

    /// Copies the URLs of the next records, each the bytes of a range of a text, as [`RecordBuffer::push_url`] does one by one.
    /// This is faster if the URLs follow each other in a long text, as in an array of Arrow.
    ///
    /// ```
    /// use irikey::record::RecordBuffer;
    /// let mut buffer = RecordBuffer::default();
    /// let text: &[u8] = b"http://a/../b";
    /// buffer.push_urls([(text, 0..9), (text, 9..13)].into_iter());
    /// let records = buffer.records();
    /// assert_eq!(records.urls[1].of(records.text), b"../b");
    /// ```
    ///
    /// # Panics
    /// If a range is not within its text, or as [`RecordBuffer::push_url`].
    pub fn push_urls<'a>(&mut self, urls: impl Iterator<Item = (&'a [u8], Range<usize>)>) {
        run_with_simd(CopyUrls { buffer: self, urls });
    }

    /// Copies URLs that follow each other in `bytes`, each after its length in four bytes (`PLAIN` texts of Parquet),
    /// until `limits` are reached. They are numbered from `first` on. Returns the number of URLs and of the bytes that
    /// they took; `None` if a length reaches past `bytes` or exceeds the limit, after which the buffer must not be
    /// used.
    pub(crate) fn push_prefixed_urls(&mut self, bytes: &[u8], first: u64, limits: UrlLimits) -> Option<(usize, usize)> {
        let RecordBuffer { text, columns, .. } = self;
        let first_record = columns.urls.len();
        let mut at = 0;
        while columns.urls.len() - first_record < limits.count && text.len() < limits.text_len {
            let (len, rest) = bytes.get(at..)?.split_first_chunk()?;
            let len = u32::from_le_bytes(*len) as usize;
            if len > limits.url_len.min(rest.len()) {
                return None;
            }
            columns.urls.push(Span::new(text.len(), len));
            append_line(text, rest, len);
            at += size_of::<u32>() + len;
        }
        let count = columns.urls.len() - first_record;
        columns.offsets.extend(first..first + count as u64);
        Some((count, at))
    }

    /// Copies the base of the current record.
    pub fn push_base(&mut self, base: &[u8]) {
        let base = append_shared(&mut self.text, self.columns.bases.last().copied(), base);
        self.columns.bases.push(base);
    }

    /// Copies the label of the charset in which the current record is written.
    pub fn push_charset(&mut self, label: &[u8]) {
        let last = self.columns.charsets.last().copied().flatten();
        self.columns.charsets.push(Some(append_shared(&mut self.text, last, label)));
    }

    /// Copies the label of the charset of the document that contained the URL.
    pub fn push_query_charset(&mut self, label: &[u8]) {
        let last = self.columns.query_charsets.last().copied().flatten();
        self.columns.query_charsets.push(Some(append_shared(&mut self.text, last, label)));
    }

    /// Copies a text for [`RecordBuffer::push_fields`]; `None` if it is absent or empty.
    pub(crate) fn copy(&mut self, text: Option<&[u8]>) -> Option<Span> {
        text.filter(|text| !text.is_empty()).map(|text| append(&mut self.text, text))
    }

    /// Copies a text if its field is carried and it is not empty.
    pub(super) fn copy_carried(&mut self, is_carried: bool, text: &[u8]) -> Option<Span> {
        self.copy(Some(text).filter(|_| is_carried))
    }

    /// Copies a text, unless it is the one at `last`; returns where it is.
    pub(crate) fn copy_or_share(&mut self, text: &[u8], last: Option<Span>) -> Option<Span> {
        last.filter(|span| span.of(&self.text) == text).or_else(|| self.copy(Some(text)))
    }

    /// Sets the fields of the current record.
    pub(crate) fn push_fields(&mut self, values: &FieldValues) {
        self.columns.fields.push(values);
    }

    /// The records.
    pub fn records(&self) -> Records<'_> {
        Records { charset: self.charset, is_text: self.is_text, ..self.columns.records(&self.text) }
    }

    /// The records, after their text was classified into `bitmaps`, as [`crate::canon::Canonicalizer::append`] needs them.
    pub fn classified_records(&self, bitmaps: &mut Bitmaps) -> Records<'_> {
        let records = self.records();
        records.classify(bitmaps);
        records
    }
}

/// See [`RecordBuffer::push_urls`].
struct CopyUrls<'a, Urls> {
    buffer: &'a mut RecordBuffer,
    urls: Urls,
}

/// How far ahead of a URL text is loaded into the cache: most arrays are too long to be there.
const PREFETCH_LEN: usize = 4096;

impl<'a, Urls: Iterator<Item = (&'a [u8], Range<usize>)>> SimdTask for CopyUrls<'_, Urls> {
    #[inline(always)]
    fn run(self) {
        let RecordBuffer { text, columns, .. } = self.buffer;
        let mut texts = Appender::new(text, 0);
        let mut spans = Appender::new(&mut columns.urls, self.urls.size_hint().0);
        for (bytes, Range { start, end }) in self.urls {
            prefetch(bytes, start.saturating_add(PREFETCH_LEN));
            let len = bytes[start..end].len();
            texts.reserve(len.max(COPY_LEN) + 1);
            spans.reserve(1);
            spans.push(checked_span(texts.len(), texts.len() + len));
            texts.append_range(bytes, start, len);
            texts.push(b'\n');
        }
        texts.finish();
        spans.finish();
    }
}

/// Appends the bytes that `write` writes, and an `LF`: without it, the last byte of a text and the first byte of the
/// next one could look like one UTF-8 character.
pub(super) fn append_with(text: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Span {
    let at = text.len();
    write(text);
    let span = checked_span(at, text.len());
    text.push(b'\n');
    span
}

/// Returns the span from byte `at` to byte `end` of a buffer.
///
/// # Panics
/// If the buffer has 4 GiB or more: a span that is cut off would stand for another text.
#[inline]
fn checked_span(at: usize, end: usize) -> Span {
    assert!(u32::try_from(end).is_ok(), "the texts of a record buffer must be shorter than 4 GiB; use several buffers");
    Span::new(at, end - at)
}

/// Appends `field` and an `LF`.
pub(super) fn append(text: &mut Vec<u8>, field: &[u8]) -> Span {
    append_with(text, |text| text.extend_from_slice(field))
}

/// Like [`append`], but returns `last` if it has the same text: neighbors often share a base or a charset.
fn append_shared(text: &mut Vec<u8>, last: Option<Span>, field: &[u8]) -> Span {
    last.filter(|last| last.of(text) == field).unwrap_or_else(|| append(text, field))
}

/// Iterates over the lines of `chunk` without `LF`, each with its offset in the chunk.
pub(super) fn lines(chunk: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = chunk.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = (at, &rest[..len]);
        at += len + 1;
        Some(line)
    })
}

/// Iterates over the lines of `chunk` that are not blank, without `LF` or `CR LF`, each with its offset in the chunk.
pub(super) fn filled_lines(chunk: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let filled = lines(chunk).filter(|(_, line)| !line.trim_ascii().is_empty());
    filled.map(|(at, line)| (at, without_cr(line)))
}

/// A line without the `CR` before its `LF`.
pub(super) fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_short_buffers_are_those_of_their_texts() {
        let last = u32::MAX as usize;
        assert_eq!(checked_span(3, 7), Span { at: 3, len: 4 });
        assert_eq!(checked_span(last - 1, last), Span { at: u32::MAX - 1, len: 1 });
    }

    #[test]
    fn urls_that_are_pushed_together_are_those_that_are_pushed_one_by_one() {
        let bytes: Vec<u8> = (0..1000).map(|i| b'a' + (i % 23) as u8).collect();
        let ranges = [3..3, 3..4, 4..40, 40..167, 167..295, 296..600, 0..999, 872..1000, 1000..1000, 990..1000];
        for ranges in [&ranges[..], &ranges[2..3], &[]] {
            let (mut together, mut one_by_one) = (RecordBuffer::default(), RecordBuffer::default());
            together.push_url(b"first");
            one_by_one.push_url(b"first");
            together.push_urls(ranges.iter().map(|range| (&bytes[..], range.clone())));
            ranges.iter().for_each(|range| one_by_one.push_url(&bytes[range.clone()]));
            assert_eq!((&together.text, &together.columns.urls), (&one_by_one.text, &one_by_one.columns.urls));
        }
    }

    #[test]
    #[expect(clippy::reversed_empty_ranges, reason = "a wrong range")]
    fn urls_outside_their_text_are_refused() {
        for range in [0..5, 2..1, 5..5, 0..usize::MAX] {
            let push = || RecordBuffer::default().push_urls([(&b"text"[..], range.clone())].into_iter());
            assert!(std::panic::catch_unwind(push).is_err(), "{range:?}");
        }
    }

    #[test]
    #[should_panic(expected = "use several buffers")]
    fn longer_buffers_are_refused() {
        checked_span(1 << 32, (1 << 32) + 1);
    }
}
