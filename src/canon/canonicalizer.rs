//! One record in, one row out: proven canonical and copied, or resolved, checked, normalised; then its keys.

use std::borrow::Cow;

use super::prepare::{Charsets, Labels, Prepared, decode, prepare};
use super::{Policy, Rows, Rung, browser};
use crate::encoding::{Charset, Lacking, is_utf8};
use crate::iri::{
    Base, CLASSIFIER, Changes, CharacterReferences, Component, Fault, FaultKind, Flags, Intake, Marked, Normalizer,
    QueryCharset, check_authority, encode_query, find_scheme, is_canonical, looks, web_scheme,
};
use crate::kernel::{Bitmaps, append_range};
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
    normalizer: Normalizer,
    /// Text that stands in no chunk (a resolved target), and its bitmaps.
    target: Vec<u8>,
    target_bitmaps: Bitmaps,
    /// Text of the simple rung, where it is neither the record's nor the target.
    simple: Vec<u8>,
    /// Text of a further key's rung.
    rung_text: Vec<u8>,
}

/// An IRI ready to be normalised: where its text is, and what was done to it so far.
struct Taken {
    in_target: bool,
    /// `simple` holds the text of the simple rung.
    has_simple: bool,
    flags: Flags,
    changes: Changes,
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
            base: policy.base.as_deref().map(|base| make_base(base, policy)),
            last_base: (Vec::new(), make_base(b"", policy)),
            policy: policy.clone(),
            normalizer: Normalizer::default(),
            target: Vec::new(),
            target_bitmaps: Bitmaps::default(),
            simple: Vec::new(),
            rung_text: Vec::new(),
        }
    }

    /// Appends one row a record to `rows`; `bitmaps` describe `records.text`.
    pub fn append(&mut self, records: &Records<'_>, bitmaps: &Bitmaps, rows: &mut Rows) {
        let is_utf8 = is_utf8(records.text);
        let first = rows.len();
        reserve(rows, records);
        let keep_fragment = !self.policy.drop_fragment;
        let has_labels = !(records.charsets.is_empty() && records.query_charsets.is_empty());
        let may_prove = !has_labels && self.may_prove();
        let common = Charsets { text: records.charset.or(self.policy.charset), query: self.policy.query_charset };
        let mut faults = records.faults.iter().peekable();
        for (i, span) in records.urls.iter().enumerate() {
            let line = span.of(records.text);
            if let Some((_, fault)) = faults.next_if(|(row, _)| *row as usize == i) {
                self.push_fault(line, *fault, rows);
                continue;
            }
            let reference = Marked { text: records.text, bitmaps, span: *span, is_utf8 };
            if may_prove && is_canonical(&reference, keep_fragment) {
                self.push_canonical(records.text, *span, rows);
                rows.tally.unchanged += 1;
            } else {
                let base = records.bases.get(i).map_or(&[][..], |base| base.of(records.text));
                let charsets = if has_labels { self.labels.charsets(records, i, common) } else { Ok(common) };
                match charsets {
                    Ok(charsets) => self.push_walked(reference, base, charsets, rows),
                    Err(fault) => self.push_fault(line, fault, rows),
                }
            }
        }
        let count = (rows.len() - first) as u64;
        rows.tally.rows += count;
        rows.differs.resize(rows.len().div_ceil(64), 0);
        rows.input.offsets.resize(rows.len() + 1, rows.input.values.len() as i32);
        rows.flags.resize(rows.len(), 0);
        push_offsets(records, &mut rows.offset);
        flag_siblings(records, first, rows);
        if self.policy.looks {
            push_looks(records, first, rows);
        }
    }

    /// A record that is canonical by RFC 3987 is its own row: it has nothing to repair, is the same in any charset that
    /// it may be in, and no profile but `whatwg` differs on it.
    fn may_prove(&self) -> bool {
        let has_references = self.policy.preprocess.character_references != CharacterReferences::Kept;
        !self.is_whatwg && !has_references
    }

    /// The row of a reference that is its own URI on every rung.
    #[inline(always)]
    fn push_canonical(&self, text: &[u8], span: Span, rows: &mut Rows) {
        append_range(&mut rows.uri.values, text, span.at as usize, span.len as usize);
        rows.uri.end();
        let key = self.policy.algorithm.key(span.of(text));
        rows.key.push(key);
        rows.more_keys.iter_mut().for_each(|keys| keys.push(key));
    }

    /// The row of any other reference.
    fn push_walked(&mut self, reference: Marked<'_>, base: &[u8], charsets: Charsets, rows: &mut Rows) {
        let uri_at = rows.uri.values.len();
        let result = self.take(reference, base, charsets).and_then(|taken| {
            let (flags, changes) = self.write_rung(reference, &taken, self.policy.rung, &mut rows.uri.values)?;
            Ok((taken, flags, changes))
        });
        let (taken, flags, changes) = match result {
            Ok(written) => written,
            Err(fault) => {
                rows.uri.values.truncate(uri_at);
                return self.push_fault(reference.line(), fault, rows);
            }
        };
        let uri = &rows.uri.values[uri_at..];
        // Every step that changed something left a difference, unless the guard of a path put back what was removed.
        let is_changed = if taken.in_target || changes.intersects(Changes::PATH_GUARD) {
            uri != reference.line()
        } else {
            !changes.is_empty()
        };
        let key = if self.policy.rung == Rung::Simple {
            self.policy.algorithm.key(self.simple_text(reference.line(), &taken))
        } else {
            self.policy.algorithm.key(uri)
        };
        rows.uri.end();
        rows.key.push(key);
        for i in 0..rows.more_keys.len() {
            let key = self.rung_key(reference, &taken, self.policy.more_keys[i]);
            rows.more_keys[i].push(key);
        }
        let row = rows.key.len() - 1;
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
            rows.tally.unchanged += 1;
        }
    }

    fn push_fault(&mut self, line: &[u8], fault: Fault, rows: &mut Rows) {
        let row = rows.key.len();
        let key = self.policy.algorithm.key(line);
        rows.uri.end();
        rows.key.push(key);
        rows.more_keys.iter_mut().for_each(|keys| keys.push(key));
        rows.faults.push((row as u32, fault));
        rows.tally.faulty += 1;
        rows.tally.faults[fault.kind as usize] += 1;
        self.push_input(line, row, rows);
    }

    /// Marks `row` as differing from its record, and keeps the record where the policy wants it.
    fn push_input(&self, line: &[u8], row: usize, rows: &mut Rows) {
        rows.differs.resize(row / 64 + 1, 0);
        rows.differs[row / 64] |= 1 << (row % 64);
        rows.input.offsets.resize(row + 1, rows.input.values.len() as i32);
        if self.policy.keep_input {
            rows.input.values.extend_from_slice(line);
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
        let mut taken = Taken { in_target: false, has_simple: false, flags: Flags::NONE, changes: Changes::NONE };
        if web_scheme(line).is_none() && find_scheme(line).is_none() {
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
        let Some(text) = web_scheme(text).and_then(|_| std::str::from_utf8(text).ok()) else { return Ok(()) };
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
                is_utf8: is_utf8(&self.target),
            }
        } else if !reference.is_utf8 && is_utf8(reference.line()) {
            Marked { is_utf8: true, ..reference }
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
    rows.key.reserve(records.urls.len());
    rows.more_keys.iter_mut().for_each(|keys| keys.reserve(records.urls.len()));
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
