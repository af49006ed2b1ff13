//! Writes the row of each record without its keys: copies the record if it is canonical, otherwise resolves, checks and
//! normalizes it.

use std::ops::Range;
use std::sync::Arc;

use super::base::base_of;
use super::policy::{Policy, Rung};
use super::record_text::{CharsetLabels, RecordCharsets};
use super::reference::{PreparedReference, ReferenceWriter};
use super::row_keys::{RowKeys, WrittenRow};
use super::rows::{MAX_TEXT_LEN, Rows};
use super::tally::count_bits;
use crate::iri::{
    CanonicalHead, Changes, CharacterReferences, Fault, FaultKind, Flags, MAX_GROWTH, MarkedReference, ParseMode,
    ReferenceHead, WEB_PREFIXES,
};
use crate::kernel::{Appender, Bitmaps, COPY_LEN, PrefixMarks, SimdTask, Span, append, prefetch, run_with_simd};
use crate::record::Records;

/// Writes rows by one policy, and collects the keys that are not those of their URIs.
#[derive(Debug)]
pub(super) struct UrlRowWriter {
    policy: Arc<Policy>,
    pub(super) references: ReferenceWriter,
    labels: CharsetLabels,
    pub(super) keys: RowKeys,
    /// Absolute references only need to be normalized to the scheme rung.
    only_normalizes: bool,
    /// Buffer for the marks of the heads of the current chunk.
    marks: Vec<PrefixMarks>,
    /// [`MAX_TEXT_LEN`], except in tests.
    pub(super) max_text_len: usize,
}

/// Writes the rows of the records of a chunk. There are five paths, from the fastest to the most general: copy a
/// canonical http or https record, normalize an http or https reference directly, copy a canonical record of any other scheme,
/// append a relative reference to its base, and prepare a reference before it is normalized.
struct WriteRows<'a, const HAS_MARKS: bool> {
    writer: &'a mut UrlRowWriter,
    records: &'a Records<'a>,
    references: References<'a, HAS_MARKS>,
    rows: &'a mut Rows,
}

/// References of a chunk, and with `HAS_MARKS` the marks of their heads.
#[derive(Clone, Copy)]
struct References<'a, const HAS_MARKS: bool> {
    text: &'a [u8],
    bitmaps: &'a Bitmaps,
    urls: &'a [Span],
    /// One for each reference, or none at all.
    marks: &'a [PrefixMarks],
}

impl<'a, const HAS_MARKS: bool> References<'a, HAS_MARKS> {
    #[inline(always)]
    fn get(&self, i: usize) -> MarkedReference<'a> {
        MarkedReference { text: self.text, bitmaps: self.bitmaps, span: self.urls[i] }
    }

    /// Returns the references of `range`.
    #[inline(always)]
    fn part(self, range: Range<usize>) -> References<'a, HAS_MARKS> {
        let urls = &self.urls[range.clone()];
        let marks = if HAS_MARKS { &self.marks[range] } else { &[] };
        References { urls, marks, ..self }
    }
}

impl<const HAS_MARKS: bool> SimdTask for WriteRows<'_, HAS_MARKS> {
    #[inline(always)]
    fn run(self) {
        let WriteRows { writer, records, references, rows } = self;
        let policy = &writer.policy;
        let has_labels = records.has_charset_labels();
        let common = RecordCharsets::common(policy, records);
        // The first three paths do not check the length of columns. They only normalize.
        let max_fast_len = writer.max_text_len.checked_sub(MAX_GROWTH * records.text.len());
        let mut can_copy = !has_labels && Some(rows.text_len()) <= max_fast_len && writer.can_copy();
        let mut can_normalize = can_copy && common == RecordCharsets::default() && writer.only_normalizes;
        // With an assumed scheme, `localhost:8080` is a host and a port.
        let mut can_copy_any_scheme = can_copy && policy.assume_scheme.is_none();
        let max_url_len = policy.max_url_len.0;
        let mut faults = records.faults.iter().peekable();
        let mut i = 0;
        while i < records.urls.len() {
            let mut head = None;
            if can_copy {
                let next_fault = faults.peek().map_or(records.urls.len(), |(row, _)| *row as usize);
                let count;
                (count, head) = rows.copy_canonical(references.part(i..next_fault), &writer.policy);
                i += count;
                if i == records.urls.len() {
                    break;
                }
            }
            let reference = references.get(i);
            prefetch_next_chunk(records.text, reference.span);
            let record = reference.bytes();
            if HAS_MARKS {
                head = CanonicalHead::at_marks(&reference, references.marks[i]);
            }
            if let Some((_, fault)) = faults.next_if(|(row, _)| *row as usize == i) {
                writer.push_fault(record, *fault, rows);
            } else if record.len() > max_url_len {
                writer.push_fault(record, Fault::of_reference(FaultKind::TooLong), rows);
            } else if can_normalize && let Some(start) = ReferenceHead::of(&reference, head) {
                writer.push_http(reference, start, rows);
            } else if can_copy_any_scheme && reference.is_canonical_of_any_scheme() {
                let uri_at = rows.uri.values.len();
                reference.append_to(&mut rows.uri.values);
                let written = (Flags::NONE, Changes::NONE);
                writer.push_row(reference, &PreparedReference::UNCHANGED, uri_at, written, rows);
            } else {
                writer.push_record(records, i, reference, rows);
                if Some(rows.text_len()) > max_fast_len {
                    (can_copy, can_normalize, can_copy_any_scheme) = (false, false, false);
                }
            }
            i += 1;
        }
    }
}

impl Rows {
    /// Appends the rows of the leading references that are canonical and not too long. Returns their number, and the head of
    /// the reference that follows them, if that is canonical.
    ///
    /// This loop does nothing else, so that its variables stay in registers.
    #[inline(always)]
    fn copy_canonical<const HAS_MARKS: bool>(
        &mut self,
        references: References<'_, HAS_MARKS>,
        policy: &Policy,
    ) -> (usize, Option<CanonicalHead>) {
        let References { text, bitmaps, urls, marks } = references;
        let (max_url_len, keep_fragment) = (policy.max_url_len.0, !policy.drop_fragment);
        let mut ends = Appender::new(&mut self.uri.offsets, urls.len());
        let text_len = urls.first().map_or(0, |first| text.len() - first.at as usize);
        let mut values = Appender::new(&mut self.uri.values, text_len + COPY_LEN);
        let (mut count, mut next_head) = (0, None);
        for (i, span) in urls.iter().enumerate() {
            let reference = MarkedReference { text, bitmaps, span: *span };
            let head = match HAS_MARKS {
                true => CanonicalHead::at_marks(&reference, marks[i]),
                false => CanonicalHead::of(&reference),
            };
            let (at, len) = (span.at as usize, span.len as usize);
            let is_canonical = head.is_some_and(|head| head.is_canonical(&reference, keep_fragment));
            // There is always room if the records follow each other in the text.
            if !is_canonical || len > max_url_len || !values.try_append_range(text, at, len) {
                // With marks, the caller finds it again, and the loop need not keep it in registers.
                next_head = head.filter(|_| !HAS_MARKS);
                break;
            }
            prefetch_next_chunk(text, *span);
            ends.push(values.len() as i32);
            count += 1;
        }
        values.finish();
        ends.finish();
        self.input.end_times(count);
        self.tally.unchanged += count as u64;
        (count, next_head)
    }
}

impl UrlRowWriter {
    pub(super) fn new(policy: &Arc<Policy>) -> UrlRowWriter {
        let references = ReferenceWriter::new(Arc::clone(policy));
        UrlRowWriter {
            only_normalizes: references.needs_no_preparation
                && policy.mode == ParseMode::Lenient
                && policy.rung == Rung::Scheme,
            references,
            labels: CharsetLabels::default(),
            keys: RowKeys::new(policy),
            policy: Arc::clone(policy),
            marks: Vec::new(),
            max_text_len: MAX_TEXT_LEN,
        }
    }

    /// Appends the rows of `records`, of which `bitmaps` are the bitmaps, to `rows`. [`RowKeys::append`] adds their keys.
    pub(super) fn write(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let (text, urls) = (records.text, records.urls);
        let mut marks = std::mem::take(&mut self.marks);
        marks.clear();
        if self.can_copy() && bitmaps.push_prefix_marks((text, urls), &WEB_PREFIXES, &mut marks) {
            let references = References::<true> { text, bitmaps, urls, marks: &marks };
            run_with_simd(WriteRows { writer: self, records, references, rows });
        } else {
            let references = References::<false> { text, bitmaps, urls, marks: &[] };
            run_with_simd(WriteRows { writer: self, records, references, rows });
        }
        self.marks = marks;
    }

    /// Returns the charsets of record `i`; `common` are those of the records that have none of their own.
    ///
    /// # Errors
    /// As [`CharsetLabels::charsets`].
    pub(super) fn charsets(
        &mut self,
        records: &Records<'_>,
        i: usize,
        common: RecordCharsets,
    ) -> Result<RecordCharsets, Fault> {
        if records.has_charset_labels() { self.labels.charsets(records, i, common) } else { Ok(common) }
    }

    /// Returns whether a record that is canonical by RFC 3987 can be copied: it needs no repairs, is the same text in every
    /// possible charset, and only the profile `whatwg` might change it.
    fn can_copy(&self) -> bool {
        !self.policy.profile.is_whatwg() && self.keeps_character_references()
    }

    fn keeps_character_references(&self) -> bool {
        self.policy.preprocess.character_references == CharacterReferences::Kept
    }

    /// Returns whether a record that is canonical for the URL Standard can be copied, too. A base may be a fault.
    fn can_copy_href(&self, base: &[u8]) -> bool {
        let Policy { profile, base: common_base, .. } = &*self.policy;
        profile.is_whatwg() && common_base.is_none() && base.is_empty() && self.keeps_character_references()
    }

    /// Appends the row of record `i`, which takes more than to copy or to normalize its reference.
    fn push_record(&mut self, records: &Records<'_>, i: usize, reference: MarkedReference<'_>, rows: &mut Rows) {
        if rows.is_overfull || rows.input.values.len() + reference.bytes().len() > self.max_text_len {
            return rows.push_left_out();
        }
        let uri_at = rows.uri.values.len();
        let common = RecordCharsets::common(&self.policy, records);
        let written = self
            .charsets(records, i, common)
            .and_then(|charsets| self.write_uri(reference, base_of(records, i), charsets, &mut rows.uri.values));
        match written {
            Ok(_) if rows.uri.values.len() > self.max_text_len => {
                rows.uri.values.truncate(uri_at);
                rows.push_left_out();
            }
            Ok((prepared, written)) => self.push_row(reference, &prepared, uri_at, written, rows),
            Err(fault) => {
                rows.uri.values.truncate(uri_at);
                self.push_fault(reference.bytes(), fault, rows);
            }
        }
    }

    /// Appends the URI of a reference to `out`: appends the reference to its base or copies it, if one of these is enough,
    /// otherwise prepares it, and normalizes what results. Returns what was prepared, and the flags and changes.
    ///
    /// # Errors
    /// The fault of the row. Bytes may have been appended to `out` by then.
    fn write_uri(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        charsets: RecordCharsets,
        out: &mut Vec<u8>,
    ) -> Result<(PreparedReference, (Flags, Changes)), Fault> {
        let can_append = self.only_normalizes && self.keys.has_key_of_uri && charsets == RecordCharsets::default();
        if can_append && let Some(written) = self.references.append_to_base(reference, base, out) {
            return Ok((PreparedReference::UNCHANGED, written));
        }
        if self.can_copy_href(base) && reference.is_canonical_href(!self.policy.drop_fragment) {
            reference.append_to(out);
            return Ok((PreparedReference::UNCHANGED, (Flags::NONE, Changes::NONE)));
        }
        let prepared = self.references.prepare(reference, base, charsets)?;
        let written = self.references.write_rung(reference, &prepared, self.policy.rung, out)?;
        Ok((prepared, written))
    }

    /// Appends the row of an http or https reference that only needs to be normalized; inlined into the loop over records.
    #[inline(always)]
    fn push_http(&mut self, reference: MarkedReference<'_>, start: ReferenceHead, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let drop_fragment = self.policy.drop_fragment;
        match self.references.normalizer.normalize_http(reference, start, drop_fragment, &mut rows.uri.values) {
            Ok(written) => self.push_row(reference, &PreparedReference::UNCHANGED, uri_at, written, rows),
            Err(fault) => {
                rows.uri.values.truncate(uri_at);
                self.push_fault(reference.bytes(), fault, rows);
            }
        }
    }

    /// Completes the row whose URI was written at `uri_at`.
    #[inline(always)]
    fn push_row(
        &mut self,
        reference: MarkedReference<'_>,
        prepared: &PreparedReference,
        uri_at: usize,
        (flags, changes): (Flags, Changes),
        rows: &mut Rows,
    ) {
        let uri = &rows.uri.values[uri_at..];
        // Every step that changed the text left a difference, except that the guard of a path may restore what was removed.
        let is_changed = if prepared.in_target || changes.intersects(Changes::PATH_GUARD) {
            uri != reference.bytes()
        } else {
            !changes.is_empty()
        };
        let row = rows.len();
        rows.uri.end();
        if !self.keys.has_key_of_uri {
            self.keys.push_deviating(&WrittenRow { row, reference, prepared, changes }, &mut self.references);
        }
        if !flags.is_empty() {
            rows.flags[row] = flags.0;
            count_bits(flags.0, &mut rows.tally.flags);
        }
        if is_changed {
            count_bits(changes.0, &mut rows.tally.changes);
            rows.tally.changed += 1;
            self.push_input(reference.bytes(), row, rows);
        } else {
            rows.input.end();
            rows.tally.unchanged += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn push_fault(&mut self, record: &[u8], fault: Fault, rows: &mut Rows) {
        let row = rows.len();
        rows.push_fault(record, fault);
        rows.uri.end();
        self.keys.push_fault(row, record);
        self.push_input(record, row, rows);
    }

    /// Marks `row` as different from its record, and keeps the record if the policy asks for it.
    #[inline(always)]
    fn push_input(&self, record: &[u8], row: usize, rows: &mut Rows) {
        rows.differs[row / 64] |= 1 << (row % 64);
        if self.policy.keep_input {
            append(&mut rows.input.values, record);
        }
        rows.input.end();
    }
}

/// Prefetches the text at the offset of `record` in the next chunk, which often follows `chunk` in memory. The loop over records
/// leaves the memory idle; the classification of the next chunk would wait for it.
#[inline(always)]
fn prefetch_next_chunk(chunk: &[u8], record: Span) {
    prefetch(chunk, chunk.len() + record.at as usize);
}
