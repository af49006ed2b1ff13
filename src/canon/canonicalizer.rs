//! Turns each record into a row: copies it if it is canonical, otherwise resolves, checks and normalizes it; then computes
//! the keys.

use std::ops::Range;
use std::sync::Arc;

use super::carry::{Carrier, ChunkRecords};
use super::policy::{Policy, Rung};
use super::recipe_evaluator::RecipeEvaluator;
use super::record_text::{CharsetLabels, RecordCharsets};
use super::reference::{PreparedReference, ReferenceWriter};
use super::rows::{MAX_TEXT_LEN, Rows};
#[cfg(feature = "cli")]
use crate::iri::CLASSIFIER;
use crate::iri::{
    CanonicalHead, Changes, CharacterReferences, Fault, FaultKind, Flags, MarkedReference, ParseMode, ReferenceHead,
    spoofing_flags,
};
use crate::kernel::{Appender, Bitmaps, COPY_LEN, SimdTask, Span, append, run_with_simd};
use crate::key::KeyBytes;
use crate::learn::{KeyResolver, UrlColumn};
use crate::record::{RecordOffsets, Records};

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
///     "relative in reference at byte 0: a relative reference needs a base (--base)");
/// ```
#[derive(Debug)]
pub struct Canonicalizer {
    policy: Arc<Policy>,
    writer: ReferenceWriter,
    labels: CharsetLabels,
    /// The only key of a row is the key of its URI.
    has_key_of_uri: bool,
    /// Buffer for the text of a further rung.
    rung_text: Vec<u8>,
    /// The keys of the current chunk that differ from the key of their row's URI.
    deviating_keys: Vec<DeviatingKey>,
    resolver: KeyResolver,
    carrier: Carrier,
    evaluator: RecipeEvaluator,
    /// [`MAX_TEXT_LEN`], except in tests.
    max_text_len: usize,
}

/// A key of a row that is not the hash of its URI.
#[derive(Debug)]
struct DeviatingKey {
    row: usize,
    /// 0 for the key, then the further keys.
    column: usize,
    key: KeyBytes,
}

/// Appends everything except the keys of all records. There are three paths, from the fastest to the most general: copy a
/// canonical record, normalize an http or https reference directly, and prepare a reference before it is normalized.
struct AppendTexts<'a> {
    canonicalizer: &'a mut Canonicalizer,
    records: &'a Records<'a>,
    bitmaps: &'a Bitmaps,
    rows: &'a mut Rows,
}

impl SimdTask for AppendTexts<'_> {
    #[inline(always)]
    fn run(self) {
        let AppendTexts { canonicalizer, records, bitmaps, rows } = self;
        let policy = &canonicalizer.policy;
        let has_labels = records.has_charset_labels();
        let common = RecordCharsets { text: records.charset.or(policy.charset), query: policy.query_charset };
        // The two fast paths do not check the length of columns. Normalization alone makes a text less than 8 times as long.
        let max_fast_len = canonicalizer.max_text_len.saturating_sub(8 * records.text.len());
        let mut can_copy = !has_labels && rows.text_len() <= max_fast_len && canonicalizer.can_copy();
        let mut can_normalize = can_copy && common == RecordCharsets::default() && canonicalizer.only_normalizes();
        let max_url_len = policy.max_url_len.0;
        let mut faults = records.faults.iter().peekable();
        let mut i = 0;
        while i < records.urls.len() {
            let mut head = None;
            if can_copy {
                let next_fault = faults.peek().map_or(records.urls.len(), |(row, _)| *row as usize);
                let count;
                (count, head) = rows.copy_canonical(records, i..next_fault, bitmaps, &canonicalizer.policy);
                i += count;
                if i == records.urls.len() {
                    break;
                }
            }
            let span = &records.urls[i];
            let line = span.of(records.text);
            let reference = MarkedReference { text: records.text, bitmaps, span: *span };
            if let Some((_, fault)) = faults.next_if(|(row, _)| *row as usize == i) {
                canonicalizer.push_fault(line, *fault, rows);
            } else if line.len() > max_url_len {
                canonicalizer.push_fault(line, Fault::of_reference(FaultKind::TooLong), rows);
            } else if can_normalize && let Some(start) = ReferenceHead::of(&reference, head) {
                canonicalizer.push_http(reference, start, rows);
            } else {
                let base = records.bases.get(i).map_or(&[][..], |base| base.of(records.text));
                let labels = &mut canonicalizer.labels;
                let charsets = if has_labels { labels.charsets(records, i, common) } else { Ok(common) };
                match charsets {
                    Ok(charsets) => canonicalizer.push_prepared(reference, base, charsets, rows),
                    Err(fault) => canonicalizer.push_fault(line, fault, rows),
                }
                if rows.text_len() > max_fast_len {
                    (can_copy, can_normalize) = (false, false);
                }
            }
            i += 1;
        }
    }
}

impl Rows {
    /// Appends the rows of the leading records of `range` that are canonical and not too long. Returns their number, and the
    /// head of the record that follows them, if that is canonical.
    ///
    /// This loop does nothing else, so that its variables stay in registers.
    #[inline(always)]
    fn copy_canonical(
        &mut self,
        records: &Records<'_>,
        range: Range<usize>,
        bitmaps: &Bitmaps,
        policy: &Policy,
    ) -> (usize, Option<CanonicalHead>) {
        let (text, urls) = (records.text, &records.urls[range]);
        let (max_url_len, keep_fragment) = (policy.max_url_len.0, !policy.drop_fragment);
        let mut ends = Appender::new(&mut self.uri.offsets, urls.len());
        let text_len = urls.first().map_or(0, |first| text.len() - first.at as usize);
        let mut values = Appender::new(&mut self.uri.values, text_len + COPY_LEN);
        let (mut count, mut next_head) = (0, None);
        for span in urls {
            let reference = MarkedReference { text, bitmaps, span: *span };
            let head = CanonicalHead::of(&reference);
            let len = span.len as usize;
            let is_canonical = head.is_some_and(|head| head.is_canonical(&reference, keep_fragment));
            // There is always room if the records follow each other in the text.
            if !is_canonical || len > max_url_len || len.max(COPY_LEN) > values.room() {
                next_head = head;
                break;
            }
            values.append_range(text, span.at as usize, len);
            ends.push(values.len() as i32);
            count += 1;
        }
        values.finish();
        ends.finish();
        self.input.offsets.resize(self.input.offsets.len() + count, self.input.values.len() as i32);
        self.tally.unchanged += count as u64;
        (count, next_head)
    }
}

impl Canonicalizer {
    /// Returns a canonicalizer for `policy`.
    ///
    /// # Panics
    /// If the profile is `whatwg` and the crate was built without the feature `whatwg`.
    pub fn new(policy: &Policy) -> Canonicalizer {
        let needs_whatwg = policy.profile.is_whatwg() && !cfg!(feature = "whatwg");
        assert!(!needs_whatwg, "the profile whatwg requires the feature whatwg of this crate");
        let policy = Arc::new(policy.clone());
        Canonicalizer {
            writer: ReferenceWriter::new(Arc::clone(&policy)),
            carrier: Carrier::new(&policy),
            labels: CharsetLabels::default(),
            has_key_of_uri: policy.rung != Rung::Simple && policy.more_keys.is_empty(),
            policy,
            rung_text: Vec::new(),
            deviating_keys: Vec::new(),
            resolver: KeyResolver::default(),
            evaluator: RecipeEvaluator::default(),
            max_text_len: MAX_TEXT_LEN,
        }
    }

    /// Appends one row per record to `rows`. `bitmaps` are those of `records.text` by [`CLASSIFIER`](crate::iri::CLASSIFIER), as
    /// decoders and [`RecordBuffer::classified_records`](crate::record::RecordBuffer::classified_records) make them.
    ///
    /// If the URIs would exceed 2000 MiB, [`Rows::is_overfull`] is set and the remaining rows are empty.
    ///
    /// The keys are computed after all texts, because hashing many texts at once is faster.
    ///
    /// # Panics
    /// Bitmaps of a shorter text may cause a panic; those of another text give wrong rows.
    pub fn append(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let first = rows.len();
        rows.more_keys.resize_with(self.policy.more_keys.len(), Vec::new);
        rows.reserve(records.urls.len(), records.text.len());
        run_with_simd(AppendTexts { canonicalizer: self, records, bitmaps, rows });
        self.push_keys(first, rows);
        if let Some(equivalences) = &self.policy.equivalences {
            let Rows { uri, key, protocol, tally, .. } = &mut *rows;
            protocol.extend_from_slice(&key[first..]);
            let urls = UrlColumn { texts: &uri.values, ends: &uri.offsets[first..] };
            tally.add_representatives(self.resolver.resolve(equivalences, urls, &mut protocol[first..]));
        }
        let count = (rows.len() - first) as u64;
        rows.tally.rows += count;
        rows.differs.resize(rows.len().div_ceil(64), 0);
        rows.flags.resize(rows.len(), 0);
        push_flags(records, first, rows);
        push_offsets(records, &mut rows.offset);
        if self.policy.spoofing_flags {
            push_spoofing_flags(records, first, rows);
        }
        let (Rows { uri, carried, tally, .. }, policy, carrier) = (&mut *rows, &*self.policy, &mut self.carrier);
        carried.append(&mut ChunkRecords { carrier, policy, records, bitmaps, uris: uri, first, tally });
        self.evaluator.append(&self.policy, records, rows);
    }

    /// Returns the text of the simple rung of a record, and how the record was changed to make it: decoded, repaired, resolved.
    ///
    /// # Errors
    /// The fault that this finds. A row may have others, such as its length.
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

    /// Returns whether absolute references only need to be normalized to the scheme rung.
    fn only_normalizes(&self) -> bool {
        self.writer.is_plain && self.policy.intake == ParseMode::Lenient && self.policy.rung == Rung::Scheme
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
        let has_references = self.policy.preprocess.character_references != CharacterReferences::Kept;
        !self.policy.profile.is_whatwg() && !has_references
    }

    /// Appends the row of a reference that must be prepared: decoded, repaired, resolved or checked.
    fn push_prepared(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        charsets: RecordCharsets,
        rows: &mut Rows,
    ) {
        let uri_at = rows.uri.values.len();
        if rows.is_overfull || rows.input.values.len() + reference.line().len() > self.max_text_len {
            return push_left_out(rows);
        }
        let result = self.writer.prepare(reference, base, charsets).and_then(|prepared| {
            let written = self.writer.write_rung(reference, &prepared, self.policy.rung, &mut rows.uri.values)?;
            Ok((prepared, written))
        });
        match result {
            Ok(_) if rows.uri.values.len() > self.max_text_len => {
                rows.uri.values.truncate(uri_at);
                push_left_out(rows);
            }
            Ok((prepared, written)) => self.push_row(reference, &prepared, uri_at, written, rows),
            Err(fault) => {
                rows.uri.values.truncate(uri_at);
                self.push_fault(reference.line(), fault, rows);
            }
        }
    }

    /// Appends the row of an http or https reference that only needs to be normalized; inlined into the loop over lines.
    #[inline(always)]
    fn push_http(&mut self, reference: MarkedReference<'_>, start: ReferenceHead, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let drop_fragment = self.policy.drop_fragment;
        match self.writer.normalizer.normalize_http(reference, start, drop_fragment, &mut rows.uri.values) {
            Ok(written) => self.push_row(reference, &PreparedReference::UNCHANGED, uri_at, written, rows),
            Err(fault) => {
                rows.uri.values.truncate(uri_at);
                self.push_fault(reference.line(), fault, rows);
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
            uri != reference.line()
        } else {
            !changes.is_empty()
        };
        let row = rows.len();
        rows.uri.end();
        if !self.has_key_of_uri {
            self.push_deviating_keys(row, reference, prepared, changes);
        }
        if !flags.is_empty() {
            rows.flags.resize(row, 0);
            rows.flags.push(flags.0);
            count_bits(flags.0, &mut rows.tally.flags);
        }
        if is_changed {
            count_bits(changes.0, &mut rows.tally.changes);
            rows.tally.changed += 1;
            self.push_input(reference.line(), row, rows);
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
    fn push_fault(&mut self, line: &[u8], fault: Fault, rows: &mut Rows) {
        let row = rows.len();
        let key = self.policy.algorithm.fault_key(line);
        rows.push_fault(line, fault);
        rows.uri.end();
        self.deviating_keys.extend((0..=rows.more_keys.len()).map(|column| DeviatingKey { row, column, key }));
        self.push_input(line, row, rows);
    }

    /// Marks `row` as different from its record, and keeps the record if the policy asks for it.
    fn push_input(&self, line: &[u8], row: usize, rows: &mut Rows) {
        rows.differs.resize(row / 64 + 1, 0);
        rows.differs[row / 64] |= 1 << (row % 64);
        if self.policy.keep_input {
            append(&mut rows.input.values, line);
        }
        rows.input.end();
    }

    /// Returns the key of a further rung of a reference whose URI has been written.
    fn rung_key(&mut self, reference: MarkedReference<'_>, prepared: &PreparedReference, rung: Rung) -> KeyBytes {
        let algorithm = self.policy.algorithm;
        if rung == Rung::Simple {
            return algorithm.key(self.writer.simple_text(reference.line(), prepared));
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

/// Appends the empty row of a record whose texts do not fit into the columns.
#[cold]
fn push_left_out(rows: &mut Rows) {
    rows.is_overfull = true;
    rows.uri.end();
    rows.input.end();
    rows.tally.unchanged += 1;
}

fn count_bits(mut bits: u32, counts: &mut [u64]) {
    while bits != 0 {
        counts[bits.trailing_zeros() as usize] += 1;
        bits &= bits - 1;
    }
}

/// Adds the flags of the decoder, and one for each record whose field contains several references.
fn push_flags(records: &Records<'_>, first: usize, rows: &mut Rows) {
    let siblings = records.siblings.iter().map(|row| (*row, Flags::SPLIT));
    for (row, flags) in records.flags.iter().copied().chain(siblings) {
        rows.flags[first + row as usize] |= flags.0;
        count_bits(flags.0, &mut rows.tally.flags);
    }
}

fn push_offsets(records: &Records<'_>, offsets: &mut Vec<u64>) {
    match records.offsets {
        RecordOffsets::From(base) => offsets.extend(records.urls.iter().map(|&Span { at, .. }| base + u64::from(at))),
        RecordOffsets::Each(each) => offsets.extend_from_slice(each),
    }
}

fn push_spoofing_flags(records: &Records<'_>, first: usize, rows: &mut Rows) {
    for (i, url) in records.urls.iter().enumerate() {
        let flags = spoofing_flags(url.of(records.text), rows.uri.get(first + i));
        rows.spoofing_flags.push(flags.0);
        count_bits(flags.0, &mut rows.tally.spoofing_flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::MaxUrlLen;
    use crate::encoding::Charset;
    use crate::iri::{CLASSIFIER, Profile};
    use crate::key::KeyAlgorithm;
    use crate::record::{TextDecoder, lines::Lines};

    /// The limit is lowered, because the real one needs 2 GB of memory.
    #[test]
    fn texts_that_do_not_fit_are_left_out() {
        let policy = Policy { base: Some([&b"http://h/"[..], &[b'b'; 1000], b"/"].concat()), ..Policy::default() };
        let (mut lines, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::default());
        let mut canonicalizer = Canonicalizer::new(&policy);
        canonicalizer.max_text_len = 10_000;
        let text = "a\nhttp://h/\nHTTP://h/\n".repeat(20);
        let records = lines.decode(text.as_bytes(), 0, &mut bitmaps);
        canonicalizer.append(&records, &bitmaps, &mut rows);
        assert!(rows.is_overfull);
        assert_eq!((rows.len(), rows.key.len(), rows.tally.unchanged + rows.tally.changed), (60, 60, 60));
        assert!((8_900..=10_000).contains(&rows.uri.values.len()), "{}", rows.uri.values.len());
        assert_eq!((rows.uri.get(0).len(), rows.uri.get(1)), (1011, &b"http://h/"[..]));
        let mut expected = Rows::default();
        Canonicalizer::new(&policy).append(&records, &bitmaps, &mut expected);
        let whole = (0..60).take_while(|&i| !rows.uri.get(i).is_empty()).count();
        assert!((25..30).contains(&whole) && (0..whole).all(|i| rows.uri.get(i) == expected.uri.get(i)));
        assert!((whole..60).all(|i| rows.uri.get(i).is_empty() && rows.input.get(i).is_empty()));
        assert!(!expected.is_overfull);
        rows.clear();
        assert!(!rows.is_overfull);
    }

    fn rows_of(policy: &Policy, lines: &str) -> Rows {
        let (mut decoder, mut bitmaps) = (Lines::default(), Bitmaps::default());
        let mut rows = Rows::default();
        let records = decoder.decode(lines.as_bytes(), 0, &mut bitmaps);
        Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
        rows
    }

    /// On the simple rung, two references are equal if their texts are, after relative ones were resolved.
    #[test]
    fn simple_keys_are_those_of_the_absolute_text() {
        let lines = "http://h/%41\nHTTP://h:80/../x\n../%41\nhttp://h/b\nhttp://h/%41\n";
        let texts = ["http://h/%41", "HTTP://h:80/../x", "http://h/%41", "http://h/b", "http://h/%41"];
        let syntax = ["http://h/A", "http://h:80/x", "http://h/A", "http://h/b", "http://h/A"];
        let base = Some(b"http://h/c/d".to_vec());
        for algorithm in [KeyAlgorithm::Xxh3, KeyAlgorithm::Blake3] {
            let expected = texts.map(|text| algorithm.key(text.as_bytes()));
            let policy = Policy { rung: Rung::Simple, base: base.clone(), algorithm, ..Policy::default() };
            let rows = rows_of(&policy, lines);
            assert_eq!(rows.key, expected);
            for (i, uri) in syntax.iter().enumerate() {
                assert_eq!(rows.uri.get(i), uri.as_bytes());
            }
            let policy = Policy { more_keys: vec![Rung::Simple], base: base.clone(), algorithm, ..Policy::default() };
            assert_eq!(rows_of(&policy, lines).more_keys, [expected]);
        }
    }

    #[test]
    fn the_charset_of_a_record_may_not_contradict_that_of_its_source() {
        // The texts are their own labels.
        let text = "utf-8\niso-8859-1\nutf-16le\n";
        let spans = [(0, 5), (6, 10), (17, 8)].map(|(at, len)| Span { at, len });
        let labels = spans.map(Some);
        let (mut decoder, mut bitmaps, mut labels_of) =
            (Lines::default(), Bitmaps::default(), CharsetLabels::default());
        let mut records = decoder.decode(text.as_bytes(), 0, &mut bitmaps);
        records.charsets = &labels;
        let mut found = |source: Option<&str>| {
            records.charset = source.and_then(Charset::named);
            let mut charset = |i| labels_of.charsets(&records, i, RecordCharsets::default());
            [0, 1, 2].map(|i| charset(i).map(|charsets| charsets.text).map_err(|fault| fault.kind))
        };
        let [utf8, latin1, utf16] = ["utf-8", "iso-8859-1", "utf-16le"].map(Charset::named);
        let contradicts = Err(FaultKind::Undecodable);
        assert_eq!(found(None), [Ok(utf8), Ok(latin1), contradicts]);
        // A source in UTF-16 was transcoded, and a label of any Unicode charset means the same text.
        assert_eq!(found(Some("utf-16le")), [Ok(utf16), contradicts, Ok(utf16)]);
    }

    /// The counts of flags are those of the rows, wherever a flag comes from.
    #[test]
    fn flags_are_counted() {
        let text = "http://h/%zz\nHTTP://h/#a#b\nhttp://h/\u{fffd}\nhttp://h/\nhttp://[/\n";
        let policy = Policy { spoofing_flags: true, ..Policy::default() };
        let (mut decoder, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::default());
        let decoded = [(1, Flags::CUT), (3, Flags::CUT)];
        for _ in 0..2 {
            let mut records = decoder.decode(text.as_bytes(), 0, &mut bitmaps);
            (records.siblings, records.flags) = (&[1, 2], &decoded);
            Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
        }
        let has = |row: usize, flag: Flags| rows.flags[row] & flag.0 != 0;
        assert_eq!(rows.flags.len(), 10);
        assert!((0..10).all(|row| has(row, Flags::SPLIT) == [1, 2].contains(&(row % 5))));
        assert!((0..10).all(|row| has(row, Flags::CUT) == [1, 3].contains(&(row % 5))));
        assert!(has(0, Flags::STRAY_PERCENT) && has(6, Flags::STRAY_DELIM));
        let count = |column: &[u32], bit: usize| column.iter().filter(|flags| **flags >> bit & 1 == 1).count() as u64;
        for (bit, counted) in rows.tally.flags.iter().enumerate() {
            assert_eq!(*counted, count(&rows.flags, bit), "{bit}");
        }
        for (bit, counted) in rows.tally.spoofing_flags.iter().enumerate() {
            assert_eq!(*counted, count(&rows.spoofing_flags, bit), "{bit}");
        }
    }

    /// Returns the redirect of a record to `text`, and the URI of the record after it, whose URL is `text`.
    fn redirect_and_uri(policy: &Policy, text: &str) -> [String; 2] {
        let chunk = format!("http://h/p/q {text}");
        let (page, target) = (Span::new(0, 12), Span::new(13, text.len()));
        let (urls, redirects) = ([page, target], [Some(target), None]);
        let mut records = Records { text: chunk.as_bytes(), urls: &urls, ..Records::default() };
        records.fields.redirects = &redirects;
        let (mut bitmaps, mut rows) = (Bitmaps::default(), Rows::default());
        bitmaps.classify(chunk.as_bytes(), &CLASSIFIER);
        Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
        [rows.carried.redirects.get(0), rows.uri.get(1)].map(|uri| uri.escape_ascii().to_string())
    }

    /// A redirect can be joined with the record to which it leads.
    #[test]
    fn redirects_are_written_like_urls_by_every_profile() {
        let texts = "HTTP://h:80/a|b%7E http://h/A\u{30A} http://a@b@c/[ http://0x7f.1/\\..\\x http://h/\u{A0} \
                     http://h/a?b#c ../x|y //h2/\u{e9} %2e%2e/../\u{e9} http:y 1:b %zz/../x";
        let mut made = std::collections::BTreeSet::new();
        for profile in Profile::ALL.into_iter().filter(|it| !it.is_whatwg() || cfg!(feature = "whatwg")) {
            for intake in [ParseMode::Lenient, ParseMode::Strict] {
                let carry = crate::record::fields::FieldSet { redirect: true, ..Default::default() };
                let base = Some(b"http://h/p/q".to_vec());
                let policy = Policy { profile, intake, carry, base, drop_fragment: true, ..Policy::default() };
                for text in texts.split(' ') {
                    let [redirect, uri] = redirect_and_uri(&policy, text);
                    assert_eq!(redirect, uri, "{} {intake:?} {text}", profile.name);
                    made.insert((text, uri));
                }
            }
        }
        // Profiles differ, the profile whatwg most.
        let least = if cfg!(feature = "whatwg") { 20 } else { 15 };
        assert!(made.len() > least, "{made:?}");
    }

    #[test]
    fn pages_are_canonical_uris_or_null() {
        let long = format!("http://h/{}", "x".repeat(100));
        let pages = ["HTTP://P:80/%7Ea", "", "HTTP://P:80/%7Ea", "http://q", "p/a", "http://[/", &long, "http://h/b"];
        let expected = ["http://p/~a", "", "http://p/~a", "http://q/", "", "", "", "http://h/b"];
        let (mut text, mut spans) = (b"http://h/ ".to_vec(), Vec::new());
        for page in pages {
            // Two links of each page.
            let span = Span::new(text.len(), page.len());
            spans.extend([Some(span).filter(|_| !page.is_empty()); 2]);
            text.extend_from_slice(page.as_bytes());
        }
        let urls = vec![Span { at: 0, len: 9 }; spans.len()];
        let mut records = Records { text: &text, urls: &urls, ..Records::default() };
        records.fields.pages = &spans;
        let carry = crate::record::fields::FieldSet { page: true, ..Default::default() };
        let policy = Policy { carry, max_url_len: MaxUrlLen(100), ..Policy::default() };
        let (mut bitmaps, mut rows) = (Bitmaps::default(), Rows::default());
        bitmaps.classify(&text, &CLASSIFIER);
        for _ in 0..2 {
            Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
        }
        let found: Vec<_> = (0..32).map(|row| std::str::from_utf8(rows.carried.pages.get(row)).unwrap()).collect();
        let both: Vec<_> = expected.iter().flat_map(|page| [*page; 2]).collect();
        assert_eq!((&found[..16], &found[16..]), (&both[..], &both[..]));
    }
}
