//! One record in, one row out: proven canonical and copied, or resolved, checked, normalised; then its keys.

use std::borrow::Cow;

use super::carry::Carrier;
use super::prepare::{Charsets, Labels, Prepared, decode, prepare};
use super::recipes::Cook;
use super::{KeyBytes, Policy, Rows, Rung, browser};
use crate::encoding::{Charset, Lacking};
use crate::iri::{
    Base, CLASSIFIER, Changes, CharacterReferences, Component, Fault, FaultKind, Flags, Intake, Marked, Normalizer,
    PlainHead, QueryCharset, Start, WebStart, check_authority, encode_query, find_scheme, looks,
};
use crate::kernel::{Bitmaps, Task, append, append_range, prefetch_behind, run};
use crate::learn::{Equivalences, Fired};
use crate::record::{Offsets, Records, Span};

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
    policy: Policy,
    /// The policy's base, if it brings one.
    base: Option<Result<Base, Fault>>,
    /// The base of the last record that brought one: crawl data repeats them.
    last_base: (Vec<u8>, Result<Base, Fault>),
    labels: Labels,
    /// The profile is the URL Standard's.
    is_whatwg: bool,
    /// Records are references as they are, unless they name a charset.
    is_plain: bool,
    /// A row has one key, and it is that of its URI.
    has_key_of_uri: bool,
    normalizer: Normalizer,
    /// Text that stands in no chunk (a resolved target), and its bitmaps.
    target: Vec<u8>,
    target_bitmaps: Bitmaps,
    /// Text of the simple rung, where it is neither the record's nor the target.
    simple: Vec<u8>,
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

/// An IRI ready to be normalised: where its text is, and what was done to it so far.
struct Taken {
    in_target: bool,
    /// `simple` holds the text of the simple rung.
    has_simple: bool,
    flags: Flags,
    changes: Changes,
}

impl Taken {
    const AS_IT_STANDS: Taken =
        Taken { in_target: false, has_simple: false, flags: Flags::NONE, changes: Changes::NONE };
}

/// Appends the texts of all records, and what goes with them but the keys. Three ways, the narrowest first: proven
/// canonical and copied; normalised as it stands; taken as the policy, the base and the charsets have it.
struct AppendTexts<'a> {
    canonicalizer: &'a mut Canonicalizer,
    records: &'a Records<'a>,
    bitmaps: &'a Bitmaps,
    rows: &'a mut Rows,
}

impl Task for AppendTexts<'_> {
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
            let reference = Marked { text: records.text, bitmaps, span: *span };
            let head = if may_prove { PlainHead::of(&reference) } else { None };
            if let Some(head) = head
                && head.is_canonical(&reference, keep_fragment)
            {
                append_range(&mut rows.uri.values, records.text, span.at as usize, span.len as usize);
                rows.uri.end();
                rows.input.end();
                rows.tally.unchanged += 1;
            } else if may_walk && let Some(start) = Start::of(&reference, head) {
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
        let is_whatwg = policy.profile.is_whatwg();
        assert!(cfg!(feature = "whatwg") || !is_whatwg, "profile whatwg needs the feature whatwg of this crate");
        Canonicalizer {
            labels: Labels::default(),
            is_whatwg,
            is_plain: policy.profile.is_rfc3987() && policy.preprocess.is_nothing(),
            has_key_of_uri: policy.rung != Rung::Simple && policy.more_keys.is_empty(),
            base: policy.base.as_deref().map(|base| make_base(base, policy)),
            last_base: (Vec::new(), make_base(b"", policy)),
            policy: policy.clone(),
            normalizer: Normalizer::default(),
            target: Vec::new(),
            target_bitmaps: Bitmaps::default(),
            simple: Vec::new(),
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
        reserve(rows, records);
        run(AppendTexts { canonicalizer: self, records, bitmaps, rows });
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
        if self.policy.looks {
            push_looks(records, first, rows);
        }
        self.carrier.append(&self.policy, records, first, rows);
        self.cook.append(&self.policy, records, first, rows);
    }

    /// Of an absolute reference nothing is asked but its scheme rung.
    fn only_normalizes(&self) -> bool {
        self.is_plain
            && self.has_key_of_uri
            && self.policy.intake == Intake::Lenient
            && self.policy.rung == Rung::Scheme
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
        !self.is_whatwg && !has_references
    }

    /// The row of a reference that may need a base or a scheme, or whose policy asks for more than to normalise it.
    fn push_taken(&mut self, reference: Marked<'_>, base: &[u8], charsets: Charsets, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let result = self.take(reference, base, charsets).and_then(|taken| {
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
    fn push_web(&mut self, reference: Marked<'_>, start: Start, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let drop_fragment = self.policy.drop_fragment;
        match self.normalizer.normalize_web(reference, start, drop_fragment, &mut rows.uri.values) {
            Ok(written) => self.push_written(reference, &Taken::AS_IT_STANDS, uri_at, written, rows),
            Err(fault) => self.push_unwritten(reference, uri_at, fault, rows),
        }
    }

    fn push_unwritten(&mut self, reference: Marked<'_>, uri_at: usize, fault: Fault, rows: &mut Rows) {
        rows.uri.values.truncate(uri_at);
        self.push_fault(reference.line(), fault, rows);
    }

    /// The rest of the row whose URI was written at `uri_at`.
    #[inline(always)]
    fn push_written(
        &mut self,
        reference: Marked<'_>,
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
            self.set_keys_apart(row, reference, taken);
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

    /// Makes the keys of a row that are not of its URI.
    fn set_keys_apart(&mut self, row: usize, reference: Marked<'_>, taken: &Taken) {
        if self.policy.rung == Rung::Simple {
            let key = self.rung_key(reference, taken, Rung::Simple);
            self.keys_apart.push(KeyApart { row, column: 0, key });
        }
        for i in 0..self.policy.more_keys.len() {
            let key = self.rung_key(reference, taken, self.policy.more_keys[i]);
            self.keys_apart.push(KeyApart { row, column: i + 1, key });
        }
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

    /// Makes a record in any charset and profile what [`Canonicalizer::take_text`] takes, then writes its query in the
    /// document's charset where that is asked for.
    fn take(&mut self, reference: Marked<'_>, base: &[u8], charsets: Charsets) -> Result<Taken, Fault> {
        let line = reference.line();
        if self.is_plain && charsets == Charsets::default() {
            return self.take_text(line, base);
        }
        let prepared = prepare(line, charsets.text, &self.policy)?;
        let needs_base = self.is_whatwg || find_scheme(&prepared.text).is_none();
        let base = match charsets.text.filter(|_| needs_base) {
            Some(charset) => decode(charset, base).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?,
            None => base.into(),
        };
        if self.is_whatwg {
            return self.browse(line, &prepared, &base, charsets.query);
        }
        let mut taken = self.take_text(&prepared.text, &base)?;
        taken.flags |= prepared.flags;
        taken.changes |= prepared.changes;
        if *prepared.text != *line && !taken.in_target {
            self.set_target(&prepared.text, &mut taken);
        }
        if let Some(charset) = charsets.query {
            self.encode_query(line, charset, &mut taken)?;
        }
        Ok(taken)
    }

    /// What a browser takes: the `href`, whole. Its simple rung is the text, unless a base may have had a part in it.
    fn browse(
        &mut self,
        line: &[u8],
        prepared: &Prepared<'_>,
        base: &[u8],
        charset: Option<Charset>,
    ) -> Result<Taken, Fault> {
        let has_base = !base.is_empty() || self.policy.base.is_some();
        let assumed = !has_base && find_scheme(&prepared.text).is_none() && self.assume_scheme(&prepared.text)?;
        let text = if assumed { Cow::Owned(std::mem::take(&mut self.target)) } else { Cow::Borrowed(&*prepared.text) };
        let query = charset.map(|charset| QueryCharset { charset, lacking: self.policy.profile.lacking });
        let base = if base.is_empty() { self.policy.base.as_deref() } else { Some(base) };
        let (href, flags) = browser::href(&text, base, query)?;
        self.simple.clear();
        self.simple.extend_from_slice(if has_base { href.as_bytes() } else { &text });
        let mut changes = prepared.changes;
        if href.as_bytes() != line {
            changes |= Changes::WHATWG;
        }
        self.target = href.into_bytes();
        let flags = prepared.flags | flags | if assumed { Flags::ASSUMED_SCHEME } else { Flags::NONE };
        Ok(Taken { in_target: true, has_simple: true, flags, changes })
    }

    /// The text of the simple rung.
    fn simple_text<'a>(&'a self, line: &'a [u8], taken: &Taken) -> &'a [u8] {
        match taken {
            Taken { has_simple: true, .. } => &self.simple,
            Taken { in_target: true, .. } => &self.target,
            _ => line,
        }
    }

    /// Makes a reference absolute if it can be, and checks it as the policy's intake wants.
    fn take_text(&mut self, line: &[u8], base: &[u8]) -> Result<Taken, Fault> {
        let mut taken = Taken::AS_IT_STANDS;
        if WebStart::of(line).is_none() && find_scheme(line).is_none() {
            if !base.is_empty() || self.base.is_some() {
                self.resolve(line, base)?;
                taken.changes = Changes::RESOLVED;
                taken.in_target = true;
            } else if self.assume_scheme(line)? {
                taken.flags = Flags::ASSUMED_SCHEME;
                taken.in_target = true;
            }
            if taken.in_target {
                self.target_bitmaps.classify(&self.target, &CLASSIFIER);
            }
        }
        if self.policy.intake == Intake::Strict {
            let text = if taken.in_target { &self.target } else { line };
            self.policy.profile.check_strict(text)?;
        }
        Ok(taken)
    }

    fn set_target(&mut self, text: &[u8], taken: &mut Taken) {
        self.target.clear();
        self.target.extend_from_slice(text);
        self.target_bitmaps.classify(&self.target, &CLASSIFIER);
        taken.in_target = true;
    }

    /// Writes the query of an http or https reference in the charset of its document (draft-weber-iri-guidelines-00
    /// section 6.1). What the charset lacks is a fault for strict intake; for lenient intake the query is UTF-8 then.
    fn encode_query(&mut self, line: &[u8], charset: Charset, taken: &mut Taken) -> Result<(), Fault> {
        let text = if taken.in_target { &self.target[..] } else { line };
        let Some(text) = WebStart::of(text).and_then(|_| std::str::from_utf8(text).ok()) else { return Ok(()) };
        let lacking = if self.policy.intake == Intake::Strict { Lacking::Refused } else { Lacking::Utf8 };
        let (encoded, has_lacking) = encode_query(text, QueryCharset { charset, lacking })?;
        if has_lacking {
            taken.flags |= Flags::QUERY_CHARSET;
        }
        if encoded != text {
            let encoded = encoded.into_owned();
            taken.changes |= Changes::QUERY_CHARSET;
            self.set_target(encoded.as_bytes(), taken);
        }
        Ok(())
    }

    /// Writes the target of `line` to `self.target`.
    fn resolve(&mut self, line: &[u8], base: &[u8]) -> Result<(), Fault> {
        if self.policy.intake == Intake::Strict {
            let text = std::str::from_utf8(line)
                .map_err(|error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to()))?;
            self.policy.profile.check_iri_reference(text)?;
        }
        check_authority(line)?;
        if !base.is_empty() && base != self.last_base.0 {
            self.last_base = (base.to_vec(), make_base(base, &self.policy));
        }
        let base = match &self.base {
            Some(own) if base.is_empty() => own,
            _ => &self.last_base.1,
        };
        self.target.clear();
        base.as_ref().map_err(|fault| *fault)?.write_target(line, &mut self.target)
    }

    /// Writes `line` with the assumed scheme before it to `self.target`, if it looks like `//host...` or like a host
    /// with a dot and what may follow one.
    fn assume_scheme(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let Some(scheme) = &self.policy.assume_scheme else { return Ok(false) };
        let host_end = memchr::memchr3(b'/', b'?', b'#', line).unwrap_or(line.len());
        let has_host = memchr::memchr(b'.', &line[..host_end]).is_some_and(|at| at > 0);
        let slashes: &[u8] = match line {
            [b'/', b'/', ..] => b"",
            _ if has_host => b"//",
            _ => return Ok(false),
        };
        self.target.clear();
        [scheme.as_bytes(), b":", slashes, line].iter().for_each(|part| self.target.extend_from_slice(part));
        // A fault's offset is one into the record, not into what was made of it.
        let shift = (self.target.len() - line.len()) as u32;
        check_authority(&self.target).map_err(|fault| Fault { at: fault.at.saturating_sub(shift), ..fault })?;
        Ok(true)
    }

    /// Appends the text of `rung` ([`Rung::Simple`]: of the syntax rung) to `out`.
    fn write_rung(
        &mut self,
        reference: Marked<'_>,
        taken: &Taken,
        rung: Rung,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        if self.is_whatwg {
            let changes = browser::write_href(&self.target, self.policy.drop_fragment, out);
            return Ok((taken.flags, taken.changes | changes));
        }
        let reference = if taken.in_target {
            Marked {
                text: &self.target,
                bitmaps: &self.target_bitmaps,
                span: Span { at: 0, len: self.target.len() as u32 },
            }
        } else {
            reference
        };
        let drop_fragment = self.policy.drop_fragment;
        let (flags, changes) = match rung {
            Rung::Scheme => self.normalizer.normalize::<true>(reference, drop_fragment, out)?,
            Rung::Simple | Rung::Syntax => self.normalizer.normalize::<false>(reference, drop_fragment, out)?,
        };
        Ok((taken.flags | flags, taken.changes | changes))
    }

    /// The key of a further rung of a reference that was normalised before.
    fn rung_key(&mut self, reference: Marked<'_>, taken: &Taken, rung: Rung) -> [u8; 16] {
        let algorithm = self.policy.algorithm;
        if rung == Rung::Simple {
            return algorithm.key(self.simple_text(reference.line(), taken));
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
            b"" => (rows.key[row], Fired::None),
            uri => equivalences.key(uri, rows.key[row]),
        };
        rows.tally.by_class += u64::from(fired == Fired::Class);
        rows.tally.by_pattern += u64::from(fired == Fired::Pattern);
        rows.protocol.push(key);
    }
}

fn make_base(base: &[u8], policy: &Policy) -> Result<Base, Fault> {
    let (base, ..) = policy.profile.take_in(base);
    if policy.intake == Intake::Strict {
        policy.profile.check_strict(&base).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?;
    }
    if policy.literal_base { Base::literal(&base) } else { Base::new(&base) }
}

fn count_bits(mut bits: u32, counts: &mut [u64]) {
    while bits != 0 {
        counts[bits.trailing_zeros() as usize] += 1;
        bits &= bits - 1;
    }
}

/// Makes room for a chunk's rows at once.
fn reserve(rows: &mut Rows, records: &Records<'_>) {
    rows.uri.values.reserve(records.text.len() + records.text.len() / 8);
    rows.uri.offsets.reserve(records.urls.len());
    rows.input.offsets.reserve(records.urls.len());
    rows.key.reserve(records.urls.len());
    rows.more_keys.iter_mut().for_each(|keys| keys.reserve(records.urls.len()));
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
        let found = looks(url.of(records.text), rows.uri.get(first + i));
        rows.looks.push(found.0);
        count_bits(found.0, &mut rows.tally.looks);
    }
}
