//! Turns each record into a row: copies it if it is canonical, otherwise resolves, checks and normalizes it; then computes
//! the keys.

#[cfg(feature = "cli")]
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::base::base_of;
use super::carry::{ChunkRecords, field_writer};
use super::policy::{Policy, Rung};
use super::recipe_evaluator::{RecipeEvaluator, has_readable_url};
use super::record_text::{CharsetLabels, RecordCharsets};
#[cfg(feature = "cli")]
use super::record_text::{RecordText, read_record};
use super::reference::{PreparedReference, ReferenceWriter};
use super::rows::{MAX_TEXT_LEN, Rows};
use super::tally::count_bits;
#[cfg(feature = "cli")]
use crate::iri::CLASSIFIER;
use crate::iri::{
    CanonicalHead, Changes, CharacterReferences, Fault, FaultKind, Flags, MAX_GROWTH, MarkedReference, ParseMode,
    ReferenceHead, SpoofingFlags, WEB_PREFIXES,
};
use crate::kernel::{Appender, Bitmaps, COPY_LEN, PrefixMarks, SimdTask, Span, append, prefetch, run_with_simd};
use crate::key::KeyBytes;
use crate::learn::{KeyResolver, UrlColumn};
use crate::record::Records;

/// Turns records into rows by one policy. Each worker reuses one canonicalizer. Rows only depend on records and policy.
///
/// ```
/// use irikey::canon::{Canonicalizer, Policy, Rows};
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, lines::Lines}};
/// let (mut lines, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::default());
/// let records = lines.decode(b"HTTP://Example.org:80\n../x\n", 0, &mut bitmaps);
/// Canonicalizer::new(&Policy::default()).append(&records, &bitmaps, &mut rows);
/// assert_eq!(rows.uri.get(0), b"http://example.org/");
/// assert_eq!(rows.faults[0].1.to_string(),
///     "relative in reference at byte 0: a relative reference needs a base (--base); \
///      a host without a scheme needs --assume-scheme");
/// ```
#[derive(Debug)]
pub struct Canonicalizer {
    policy: Arc<Policy>,
    writer: ReferenceWriter,
    labels: CharsetLabels,
    /// The only key of a row is the key of its URI.
    has_key_of_uri: bool,
    /// Absolute references only need to be normalized to the scheme rung.
    only_normalizes: bool,
    /// Buffer for the text of a further rung.
    rung_text: Vec<u8>,
    /// The keys of the current chunk that differ from the key of their row's URI.
    deviating_keys: Vec<DeviatingKey>,
    /// Buffer for the marks of the heads of the current chunk.
    marks: Vec<PrefixMarks>,
    resolver: KeyResolver,
    /// Writes the URIs among carried fields.
    field_writer: ReferenceWriter,
    evaluator: RecipeEvaluator,
    /// [`MAX_TEXT_LEN`], except in tests.
    pub(super) max_text_len: usize,
}

/// A key of a row that is not the hash of its URI.
#[derive(Debug)]
struct DeviatingKey {
    row: usize,
    /// 0 for the key, then the further keys.
    column: usize,
    key: KeyBytes,
}

/// Appends everything except the keys of all records. There are five paths, from the fastest to the most general: copy a
/// canonical http or https record, normalize an http or https reference directly, copy a canonical record of any other scheme,
/// append a relative reference to its base, and prepare a reference before it is normalized.
struct AppendTexts<'a, const HAS_MARKS: bool> {
    canonicalizer: &'a mut Canonicalizer,
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

impl<const HAS_MARKS: bool> SimdTask for AppendTexts<'_, HAS_MARKS> {
    #[inline(always)]
    fn run(self) {
        let AppendTexts { canonicalizer, records, references, rows } = self;
        let policy = &canonicalizer.policy;
        let has_labels = records.has_charset_labels();
        let common = RecordCharsets::common(policy, records);
        // The first three paths do not check the length of columns. They only normalize.
        let max_fast_len = canonicalizer.max_text_len.checked_sub(MAX_GROWTH * records.text.len());
        let mut can_copy = !has_labels && Some(rows.text_len()) <= max_fast_len && canonicalizer.can_copy();
        let mut can_normalize = can_copy && common == RecordCharsets::default() && canonicalizer.only_normalizes;
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
                (count, head) = rows.copy_canonical(references.part(i..next_fault), &canonicalizer.policy);
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
                canonicalizer.push_fault(record, *fault, rows);
            } else if record.len() > max_url_len {
                canonicalizer.push_fault(record, Fault::of_reference(FaultKind::TooLong), rows);
            } else if can_normalize && let Some(start) = ReferenceHead::of(&reference, head) {
                canonicalizer.push_http(reference, start, rows);
            } else if can_copy_any_scheme && reference.is_canonical_of_any_scheme() {
                let uri_at = rows.uri.values.len();
                reference.append_to(&mut rows.uri.values);
                let written = (Flags::NONE, Changes::NONE);
                canonicalizer.push_row(reference, &PreparedReference::UNCHANGED, uri_at, written, rows);
            } else {
                canonicalizer.push_record(records, i, reference, rows);
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

impl Canonicalizer {
    /// Returns a canonicalizer for `policy`.
    ///
    /// # Panics
    /// If [`Policy::check`] fails.
    pub fn new(policy: &Policy) -> Canonicalizer {
        policy.check().unwrap_or_else(|error| panic!("unusable policy: {error}"));
        let policy = Arc::new(policy.clone());
        let writer = ReferenceWriter::new(Arc::clone(&policy));
        Canonicalizer {
            has_key_of_uri: policy.rung != Rung::Simple && policy.more_keys.is_empty(),
            only_normalizes: writer.needs_no_preparation
                && policy.mode == ParseMode::Lenient
                && policy.rung == Rung::Scheme,
            writer,
            field_writer: field_writer(&policy),
            labels: CharsetLabels::default(),
            policy,
            rung_text: Vec::new(),
            deviating_keys: Vec::new(),
            marks: Vec::new(),
            resolver: KeyResolver::default(),
            evaluator: RecipeEvaluator::default(),
            max_text_len: MAX_TEXT_LEN,
        }
    }

    /// Appends one row per record to `rows`. `bitmaps` are those of `records.text`, as decoders and [`Records::classify`] make
    /// them.
    ///
    /// If a column of texts would exceed 2000 MiB, [`Rows::is_overfull`] is set, and the rows must not be used.
    ///
    /// The keys are computed after all texts, because hashing many texts at once is faster.
    ///
    /// # Panics
    /// Bitmaps of a shorter text may cause a panic; those of another text give wrong rows.
    pub fn append(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let first = rows.len();
        rows.more_keys.resize_with(self.policy.more_keys.len(), Vec::new);
        let row_count = first + records.urls.len();
        rows.reserve(records.urls.len(), records.text.len());
        rows.differs.resize(row_count.div_ceil(64), 0);
        rows.flags.resize(row_count, 0);
        self.append_texts(records, bitmaps, rows);
        self.push_keys(first, rows);
        if let Some(equivalences) = &self.policy.equivalences {
            let Rows { uri, key, protocol, tally, .. } = &mut *rows;
            protocol.extend_from_slice(&key[first..]);
            let urls = UrlColumn { texts: &uri.values, ends: &uri.offsets[first..] };
            tally.add_representatives(self.resolver.resolve(equivalences, urls, &mut protocol[first..]));
        }
        let count = (rows.len() - first) as u64;
        rows.tally.rows += count;
        rows.add_record_flags(records, first);
        rows.push_offsets(records);
        if self.policy.spoofing_flags {
            self.push_spoofing_flags(records, rows);
        }
        let (Rows { uri, carried, tally, .. }, policy, writer) = (&mut *rows, &*self.policy, &mut self.field_writer);
        carried.append(&mut ChunkRecords { writer, policy, records, bitmaps, uris: uri, first, tally });
        self.evaluator.append(&self.policy, records, rows);
        rows.is_overfull |= rows.longest_texts().1 > self.max_text_len;
    }

    /// Appends everything except the keys of all records.
    fn append_texts(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let (text, urls) = (records.text, records.urls);
        let mut marks = std::mem::take(&mut self.marks);
        marks.clear();
        if self.can_copy() && bitmaps.push_prefix_marks((text, urls), &WEB_PREFIXES, &mut marks) {
            let references = References::<true> { text, bitmaps, urls, marks: &marks };
            run_with_simd(AppendTexts { canonicalizer: self, records, references, rows });
        } else {
            let references = References::<false> { text, bitmaps, urls, marks: &[] };
            run_with_simd(AppendTexts { canonicalizer: self, records, references, rows });
        }
        self.marks = marks;
    }

    /// Returns the text of the simple rung of a record, and how the record was changed to make it: decoded, repaired, resolved.
    ///
    /// # Errors
    /// A fault of the charset, the repair or the base. The row may have another one, such as its length.
    #[cfg(feature = "cli")]
    pub(crate) fn simple_text(&mut self, record: &[u8]) -> Result<(Vec<u8>, Flags, Changes), Fault> {
        let mut bitmaps = Bitmaps::default();
        bitmaps.classify(record, &CLASSIFIER);
        let reference = MarkedReference::whole(record, &bitmaps);
        let charsets = RecordCharsets { text: self.policy.charset, query: self.policy.query_charset };
        let prepared = self.writer.prepare(reference, b"", charsets)?;
        let text = self.writer.simple_text(record, &prepared).to_vec();
        Ok((text, prepared.flags, prepared.changes))
    }

    /// Returns the text of a record after it was decoded and repaired, and how it was changed; `None` if this finds a fault.
    #[cfg(feature = "cli")]
    pub(crate) fn repaired_text(&self, record: &[u8]) -> Option<(Vec<u8>, Flags, Changes)> {
        let RecordText { text, flags, changes, .. } = read_record(record, self.policy.charset, &self.policy).ok()?;
        Some((text.into_owned(), flags, changes))
    }

    /// Returns the text of a record that is searched for misleading properties: decoded, repaired, with an assumed scheme.
    #[cfg(feature = "cli")]
    pub(crate) fn spoofing_text<'a>(&'a mut self, record: &'a [u8]) -> Cow<'a, [u8]> {
        self.writer.spoofing_text(record, b"", self.policy.charset)
    }

    /// Appends the spoofing flags of the rows of `records`.
    fn push_spoofing_flags(&mut self, records: &Records<'_>, rows: &mut Rows) {
        let common = RecordCharsets::common(&self.policy, records);
        let first = rows.len() - records.urls.len();
        for (i, url) in records.urls.iter().enumerate() {
            if rows.fault(first + i).is_some_and(|fault| !has_readable_url(fault.kind)) {
                rows.spoofing_flags.push(SpoofingFlags::NONE.0);
                continue;
            }
            // A record with an unknown charset has a fault and stays as it is.
            let charsets = self.charsets(records, i, common).unwrap_or_default();
            let text = self.writer.spoofing_text(url.of(records.text), base_of(records, i), charsets.text);
            rows.push_spoofing_flags(&text);
        }
    }

    /// Returns the charsets of record `i`; `common` are those of the records that have none of their own.
    ///
    /// # Errors
    /// As [`CharsetLabels::charsets`].
    fn charsets(&mut self, records: &Records<'_>, i: usize, common: RecordCharsets) -> Result<RecordCharsets, Fault> {
        if records.has_charset_labels() { self.labels.charsets(records, i, common) } else { Ok(common) }
    }

    /// Appends the keys of the rows from `first` on: those of their URIs, except for the deviating keys.
    fn push_keys(&mut self, first: usize, rows: &mut Rows) {
        self.policy.algorithm.push_keys(&rows.uri.values, &rows.uri.offsets[first..], &mut rows.key);
        rows.more_keys.iter_mut().for_each(|keys| keys.extend_from_slice(&rows.key[first..]));
        for DeviatingKey { row, column, key } in self.deviating_keys.drain(..) {
            match column {
                0 => rows.key[row] = key,
                further => rows.more_keys[further - 1][row] = key,
            }
        }
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
        let common = RecordCharsets::common(&self.policy, records);
        match self.charsets(records, i, common) {
            Ok(charsets) => self.push_resolved(reference, base_of(records, i), charsets, rows),
            Err(fault) => self.push_fault(reference.bytes(), fault, rows),
        }
    }

    /// Appends the row of a reference that is resolved, or must be prepared otherwise: decoded, repaired or checked.
    fn push_resolved(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        charsets: RecordCharsets,
        rows: &mut Rows,
    ) {
        let uri_at = rows.uri.values.len();
        if rows.is_overfull || rows.input.values.len() + reference.bytes().len() > self.max_text_len {
            return rows.push_left_out();
        }
        let can_append = self.only_normalizes && self.has_key_of_uri && charsets == RecordCharsets::default();
        let uris = &mut rows.uri.values;
        let appended = if can_append {
            self.writer.append_to_base(reference, base, uris)
        } else if self.can_copy_href(base) && reference.is_canonical_href(!self.policy.drop_fragment) {
            reference.append_to(uris);
            Some((Flags::NONE, Changes::NONE))
        } else {
            None
        };
        let result = match appended {
            Some(written) => Ok((PreparedReference::UNCHANGED, written)),
            None => self.writer.prepare(reference, base, charsets).and_then(|prepared| {
                let written = self.writer.write_rung(reference, &prepared, self.policy.rung, uris)?;
                Ok((prepared, written))
            }),
        };
        match result {
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

    /// Appends the row of an http or https reference that only needs to be normalized; inlined into the loop over records.
    #[inline(always)]
    fn push_http(&mut self, reference: MarkedReference<'_>, start: ReferenceHead, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let drop_fragment = self.policy.drop_fragment;
        match self.writer.normalizer.normalize_http(reference, start, drop_fragment, &mut rows.uri.values) {
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
        if !self.has_key_of_uri {
            self.push_deviating_keys(row, reference, prepared, changes);
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

    /// Computes the keys of a row that are not the key of its URI. `changes` led from the reference to the URI.
    fn push_deviating_keys(
        &mut self,
        row: usize,
        reference: MarkedReference<'_>,
        prepared: &PreparedReference,
        changes: Changes,
    ) {
        let is_simple = changes.is_empty() && !prepared.in_target;
        let is_syntax = self.policy.rung != Rung::Scheme || !changes.intersects(Changes::OF_SCHEME);
        for column in 0..=self.policy.more_keys.len() {
            let (rung, deviates) = match column.checked_sub(1).map(|further| self.policy.more_keys[further]) {
                None => (Rung::Simple, self.policy.rung == Rung::Simple && !is_simple),
                Some(Rung::Simple) => (Rung::Simple, !is_simple),
                Some(Rung::Syntax) => (Rung::Syntax, !is_syntax),
                Some(Rung::Scheme) => (Rung::Scheme, self.policy.rung != Rung::Scheme),
            };
            if deviates {
                let key = self.rung_key(reference, prepared, rung);
                self.deviating_keys.push(DeviatingKey { row, column, key });
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn push_fault(&mut self, record: &[u8], fault: Fault, rows: &mut Rows) {
        let row = rows.len();
        let key = self.policy.algorithm.fault_key(record);
        rows.push_fault(record, fault);
        rows.uri.end();
        self.deviating_keys.extend((0..=rows.more_keys.len()).map(|column| DeviatingKey { row, column, key }));
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

    /// Returns the key of a further rung of a reference whose URI has been written.
    fn rung_key(&mut self, reference: MarkedReference<'_>, prepared: &PreparedReference, rung: Rung) -> KeyBytes {
        let algorithm = self.policy.algorithm;
        if rung == Rung::Simple {
            return algorithm.key(self.writer.simple_text(reference.bytes(), prepared));
        }
        let mut text = std::mem::take(&mut self.rung_text);
        text.clear();
        // Faults do not depend on the rung, and the URI was written without one.
        let written = self.writer.write_rung(reference, prepared, rung, &mut text);
        debug_assert!(written.is_ok());
        let key = algorithm.key(&text);
        self.rung_text = text;
        key
    }
}

/// Prefetches the text at the offset of `record` in the next chunk, which often follows `chunk` in memory. The loop over records
/// leaves the memory idle; the classification of the next chunk would wait for it.
#[inline(always)]
fn prefetch_next_chunk(chunk: &[u8], record: Span) {
    prefetch(chunk, chunk.len() + record.at as usize);
}

#[cfg(test)]
mod tests;
