//! One record in, one row out: proven canonical and copied, or resolved, checked, normalised; then its keys.

use std::sync::Arc;

use super::carry::Carrier;
use super::prepare::{Charsets, Labels};
use super::recipes::Cook;
use super::take::{Taken, Taker};
use super::{Policy, Rows, Rung, browser};
use crate::iri::{
    CanonicalHead, Changes, CharacterReferences, Fault, Flags, MarkedReference, Normalizer, ParseMode, ReferenceHead,
    spoofing_flags,
};
use crate::kernel::{Bitmaps, SimdTask, Span, append, append_range, prefetch_behind, run_with_simd};
use crate::key::KeyBytes;
use crate::learn::{Equivalences, KeyOrigin};
use crate::record::{Offsets, Records};

/// Turns records into rows under one policy; one a worker, reused. Its rows depend on records and policy alone.
///
/// ```
/// use irikey::canon::{Canonicalizer, Policy, Rows};
/// use irikey::{kernel::Bitmaps, record::lines::Lines};
/// let (mut lines, mut bitmaps, mut rows) = (Lines::default(), Bitmaps::default(), Rows::new(0));
/// let records = lines.decode(b"HTTP://Example.org:80\n../x\n", 0, &mut bitmaps);
/// Canonicalizer::new(&Policy::default()).append(&records, &bitmaps, &mut rows);
/// assert_eq!(rows.uri.get(0), b"http://example.org/");
/// assert_eq!(rows.faults[0].1.to_string(),
///     "relative in reference at byte 0: a relative reference needs a base (--base or --base-column)");
/// ```
#[derive(Debug)]
pub struct Canonicalizer {
    policy: Arc<Policy>,
    taker: Taker,
    labels: Labels,
    /// A row has one key, and it is that of its URI.
    has_key_of_uri: bool,
    normalizer: Normalizer,
    /// Text of a further key's rung.
    rung_text: Vec<u8>,
    /// Keys of the chunk at hand that are not of their row's URI.
    keys_apart: Vec<KeyApart>,
    carrier: Carrier,
    cook: Cook,
}

/// A key of a row that is not the hash of its URI.
#[derive(Debug)]
struct KeyApart {
    row: usize,
    /// 0 for the key, then the further ones.
    column: usize,
    key: KeyBytes,
}

/// Appends the texts of all records, and what goes with them but the keys. Three ways, the narrowest first: proven
/// canonical and copied; normalised as it stands; taken as the policy, the base and the charsets have it.
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
        let keep_fragment = !policy.drop_fragment;
        let has_labels = !(records.charsets.is_empty() && records.query_charsets.is_empty());
        let common = Charsets { text: records.charset.or(policy.charset), query: policy.query_charset };
        let may_prove = !has_labels && canonicalizer.may_prove();
        let may_walk = may_prove && common == Charsets::default() && canonicalizer.only_normalizes();
        let mut faults = records.faults.iter().peekable();
        for (i, span) in records.urls.iter().enumerate() {
            prefetch_behind(records.text, span.at as usize);
            let line = span.of(records.text);
            if let Some((_, fault)) = faults.next_if(|(row, _)| *row as usize == i) {
                canonicalizer.push_fault(line, *fault, rows);
                continue;
            }
            let reference = MarkedReference { text: records.text, bitmaps, span: *span };
            let head = if may_prove { CanonicalHead::of(&reference) } else { None };
            if let Some(head) = head
                && head.is_canonical(&reference, keep_fragment)
            {
                append_range(&mut rows.uri.values, records.text, span.at as usize, span.len as usize);
                rows.uri.end();
                rows.input.end();
                rows.tally.unchanged += 1;
            } else if may_walk && let Some(start) = ReferenceHead::of(&reference, head) {
                canonicalizer.push_web(reference, start, rows);
            } else {
                let base = records.bases.get(i).map_or(&[][..], |base| base.of(records.text));
                let labels = &mut canonicalizer.labels;
                let charsets = if has_labels { labels.charsets(records, i, common) } else { Ok(common) };
                match charsets {
                    Ok(charsets) => canonicalizer.push_taken(reference, base, charsets, rows),
                    Err(fault) => canonicalizer.push_fault(line, fault, rows),
                }
            }
        }
    }
}

impl Canonicalizer {
    /// A canonicalizer for `policy`.
    ///
    /// # Panics
    /// If the profile is `whatwg` and the library was built without its feature of that name.
    pub fn new(policy: &Policy) -> Canonicalizer {
        let needs_whatwg = policy.profile.is_whatwg() && !cfg!(feature = "whatwg");
        assert!(!needs_whatwg, "profile whatwg needs the feature whatwg of this crate");
        let policy = Arc::new(policy.clone());
        Canonicalizer {
            taker: Taker::new(&policy),
            labels: Labels::default(),
            has_key_of_uri: policy.rung != Rung::Simple && policy.more_keys.is_empty(),
            policy,
            normalizer: Normalizer::default(),
            rung_text: Vec::new(),
            keys_apart: Vec::new(),
            carrier: Carrier::default(),
            cook: Cook::default(),
        }
    }

    /// Appends one row a record to `rows`; `bitmaps` describe `records.text`.
    ///
    /// First all texts, then all keys: hashing many at once is cheaper, and nothing that lines differ in gets in its way.
    pub fn append(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let first = rows.len();
        rows.reserve(records.urls.len(), records.text.len());
        run_with_simd(AppendTexts { canonicalizer: self, records, bitmaps, rows });
        self.push_keys(first, rows);
        if let Some(equivalences) = &self.policy.equivalences {
            push_protocol_keys(equivalences, first, rows);
        }
        let count = (rows.len() - first) as u64;
        rows.tally.rows += count;
        rows.differs.resize(rows.len().div_ceil(64), 0);
        rows.flags.resize(rows.len(), 0);
        push_flags(records, first, rows);
        push_offsets(records, &mut rows.offset);
        flag_siblings(records, first, rows);
        if self.policy.spoofing_flags {
            push_looks(records, first, rows);
        }
        self.carrier.append(&self.policy, records, first, rows);
        self.cook.append(&self.policy, records, first, rows);
    }

    /// Of an absolute reference no text is asked but that of its scheme rung.
    fn only_normalizes(&self) -> bool {
        self.taker.is_plain && self.policy.intake == ParseMode::Lenient && self.policy.rung == Rung::Scheme
    }

    /// The keys of the rows from `first` on: of their URIs, which are those of every rung, unless they are set apart.
    fn push_keys(&mut self, first: usize, rows: &mut Rows) {
        self.policy.algorithm.push_keys(&rows.uri.values, &rows.uri.offsets[first..], &mut rows.key);
        rows.more_keys.iter_mut().for_each(|keys| keys.extend_from_slice(&rows.key[first..]));
        for KeyApart { row, column, key } in self.keys_apart.drain(..) {
            match column {
                0 => rows.key[row] = key,
                further => rows.more_keys[further - 1][row] = key,
            }
        }
    }

    /// A record that is canonical by RFC 3987 is its own row: it has nothing to repair, is the same in any charset that
    /// it may be in, and no profile but `whatwg` differs on it.
    fn may_prove(&self) -> bool {
        let has_references = self.policy.preprocess.character_references != CharacterReferences::Kept;
        !self.policy.profile.is_whatwg() && !has_references
    }

    /// The row of a reference that may need a base or a scheme, or whose policy asks for more than to normalise it.
    fn push_taken(&mut self, reference: MarkedReference<'_>, base: &[u8], charsets: Charsets, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let result = self.taker.take(reference, base, charsets).and_then(|taken| {
            let written = self.write_rung(reference, &taken, self.policy.rung, &mut rows.uri.values)?;
            Ok((taken, written))
        });
        match result {
            Ok((taken, written)) => self.push_written(reference, &taken, uri_at, written, rows),
            Err(fault) => self.push_unwritten(reference, uri_at, fault, rows),
        }
    }

    /// The row of a web reference of which no more is asked: the same, at the pace of the loop over lines.
    #[inline(always)]
    fn push_web(&mut self, reference: MarkedReference<'_>, start: ReferenceHead, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let drop_fragment = self.policy.drop_fragment;
        match self.normalizer.normalize_http(reference, start, drop_fragment, &mut rows.uri.values) {
            Ok(written) => self.push_written(reference, &Taken::AS_IT_STANDS, uri_at, written, rows),
            Err(fault) => self.push_unwritten(reference, uri_at, fault, rows),
        }
    }

    fn push_unwritten(&mut self, reference: MarkedReference<'_>, uri_at: usize, fault: Fault, rows: &mut Rows) {
        rows.uri.values.truncate(uri_at);
        self.push_fault(reference.line(), fault, rows);
    }

    /// The rest of the row whose URI was written at `uri_at`.
    #[inline(always)]
    fn push_written(
        &mut self,
        reference: MarkedReference<'_>,
        taken: &Taken,
        uri_at: usize,
        (flags, changes): (Flags, Changes),
        rows: &mut Rows,
    ) {
        let uri = &rows.uri.values[uri_at..];
        // Every step that changed something left a difference, unless the guard of a path put back what was removed.
        let is_changed = if taken.in_target || changes.intersects(Changes::PATH_GUARD) {
            uri != reference.line()
        } else {
            !changes.is_empty()
        };
        let row = rows.len();
        rows.uri.end();
        if !self.has_key_of_uri {
            self.set_keys_apart(row, reference, taken, changes);
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

    /// Makes the keys of a row that are not of its URI, which `changes` made of the reference.
    fn set_keys_apart(&mut self, row: usize, reference: MarkedReference<'_>, taken: &Taken, changes: Changes) {
        let is_simple = changes.is_empty() && !taken.in_target;
        let is_syntax = self.policy.rung != Rung::Scheme || !changes.intersects(Changes::OF_SCHEME);
        if self.policy.rung == Rung::Simple && !is_simple {
            self.set_key_apart(row, 0, reference, taken, Rung::Simple);
        }
        for i in 0..self.policy.more_keys.len() {
            let rung = self.policy.more_keys[i];
            if rung == Rung::Simple && !is_simple || rung == Rung::Syntax && !is_syntax || rung == Rung::Scheme {
                self.set_key_apart(row, i + 1, reference, taken, rung);
            }
        }
    }

    fn set_key_apart(&mut self, row: usize, column: usize, reference: MarkedReference<'_>, taken: &Taken, rung: Rung) {
        let key = self.rung_key(reference, taken, rung);
        self.keys_apart.push(KeyApart { row, column, key });
    }

    fn push_fault(&mut self, line: &[u8], fault: Fault, rows: &mut Rows) {
        let row = rows.len();
        let key = self.policy.algorithm.key(line);
        rows.uri.end();
        self.keys_apart.extend((0..=rows.more_keys.len()).map(|column| KeyApart { row, column, key }));
        rows.faults.push((row as u32, fault));
        rows.tally.faulty += 1;
        rows.tally.faults[fault.kind as usize] += 1;
        self.push_input(line, row, rows);
    }

    /// Marks `row` as differing from its record, and keeps the record where the policy wants it.
    fn push_input(&self, line: &[u8], row: usize, rows: &mut Rows) {
        rows.differs.resize(row / 64 + 1, 0);
        rows.differs[row / 64] |= 1 << (row % 64);
        if self.policy.keep_input {
            append(&mut rows.input.values, line);
        }
        rows.input.end();
    }

    /// Appends the text of `rung` ([`Rung::Simple`]: of the syntax rung) to `out`.
    fn write_rung(
        &mut self,
        reference: MarkedReference<'_>,
        taken: &Taken,
        rung: Rung,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        let reference = self.taker.marked(reference, taken);
        if self.policy.profile.is_whatwg() {
            let changes = browser::write_href(reference.line(), self.policy.drop_fragment, out);
            return Ok((taken.flags, taken.changes | changes));
        }
        let drop_fragment = self.policy.drop_fragment;
        let (flags, changes) = match rung {
            Rung::Scheme => self.normalizer.normalize::<true>(reference, drop_fragment, out)?,
            Rung::Simple | Rung::Syntax => self.normalizer.normalize::<false>(reference, drop_fragment, out)?,
        };
        Ok((taken.flags | flags, taken.changes | changes))
    }

    /// The key of a further rung of a reference that was normalised before.
    fn rung_key(&mut self, reference: MarkedReference<'_>, taken: &Taken, rung: Rung) -> [u8; 16] {
        let algorithm = self.policy.algorithm;
        if rung == Rung::Simple {
            return algorithm.key(self.taker.simple_text(reference.line(), taken));
        }
        let mut text = std::mem::take(&mut self.rung_text);
        text.clear();
        // What one rung takes every rung takes: faults are found before the rungs part.
        let written = self.write_rung(reference, taken, rung, &mut text);
        debug_assert!(written.is_ok());
        let key = algorithm.key(&text);
        self.rung_text = text;
        key
    }
}

/// The keys of representatives of the rows from `first` on; a row with a fault stands for itself.
fn push_protocol_keys(equivalences: &Equivalences, first: usize, rows: &mut Rows) {
    for row in first..rows.len() {
        let uri = rows.uri.get(row);
        let (key, fired) = match uri {
            b"" => (rows.key[row], KeyOrigin::None),
            uri => equivalences.key(uri, rows.key[row]),
        };
        rows.tally.by_class += u64::from(fired == KeyOrigin::Class);
        rows.tally.by_pattern += u64::from(fired == KeyOrigin::Pattern);
        rows.protocol.push(key);
    }
}

fn count_bits(mut bits: u32, counts: &mut [u64]) {
    while bits != 0 {
        counts[bits.trailing_zeros() as usize] += 1;
        bits &= bits - 1;
    }
}

/// What the decoder noticed.
fn push_flags(records: &Records<'_>, first: usize, rows: &mut Rows) {
    for (row, flags) in records.flags {
        rows.flags[first + *row as usize] |= flags.0;
        count_bits(flags.0, &mut rows.tally.flags);
    }
}

fn push_offsets(records: &Records<'_>, offsets: &mut Vec<u64>) {
    match records.offsets {
        Offsets::From(base) => offsets.extend(records.urls.iter().map(|&Span { at, .. }| base + u64::from(at))),
        Offsets::Each(each) => offsets.extend_from_slice(each),
    }
}

/// Says of rows that they are one of several of their field.
fn flag_siblings(records: &Records<'_>, first: usize, rows: &mut Rows) {
    for &sibling in records.siblings {
        rows.flags[first + sibling as usize] |= Flags::SPLIT.0;
        count_bits(Flags::SPLIT.0, &mut rows.tally.flags);
    }
}

fn push_looks(records: &Records<'_>, first: usize, rows: &mut Rows) {
    for (i, url) in records.urls.iter().enumerate() {
        let found = spoofing_flags(url.of(records.text), rows.uri.get(first + i));
        rows.spoofing_flags.push(found.0);
        count_bits(found.0, &mut rows.tally.spoofing_flags);
    }
}
