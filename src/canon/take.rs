//! A record of any charset and profile in; out the IRI that is normalised then: decoded and repaired as the policy has
//! it, resolved against its base, checked as the intake wants. A web reference of which no more is asked than to
//! normalise it never comes here.

use std::borrow::Cow;
use std::sync::Arc;

use super::prepare::{Charsets, Prepared, decode, prepare};
use super::{Policy, browser};
use crate::encoding::{Charset, UnmappableMode};
use crate::iri::{
    Base, CLASSIFIER, Changes, Component, Fault, FaultKind, Flags, HttpHead, MarkedReference, ParseMode, QueryCharset,
    check_authority, encode_query, find_scheme,
};
use crate::kernel::Bitmaps;
use crate::kernel::Span;

/// An IRI ready to be normalised: where its text is, and what was done to it so far.
pub(super) struct Taken {
    pub(super) in_target: bool,
    /// `simple` holds the text of the simple rung.
    pub(super) has_simple: bool,
    pub(super) flags: Flags,
    pub(super) changes: Changes,
}

impl Taken {
    pub(super) const AS_IT_STANDS: Taken =
        Taken { in_target: false, has_simple: false, flags: Flags::NONE, changes: Changes::NONE };
}

/// Takes records; keeps what it made of the last one where that stands in no chunk.
#[derive(Debug)]
pub(super) struct Taker {
    policy: Arc<Policy>,
    /// The policy's base, if it brings one.
    base: Option<Result<Base, Fault>>,
    /// The base of the last record that brought one: crawl data repeats them.
    last_base: (Vec<u8>, Result<Base, Fault>),
    /// Records are references as they are, unless they name a charset.
    pub(super) is_plain: bool,
    /// The IRI, where it is not the record's text (a resolved target), and its bitmaps.
    target: Vec<u8>,
    target_bitmaps: Bitmaps,
    /// Text of the simple rung, where it is neither the record's nor the target.
    simple: Vec<u8>,
}

impl Taker {
    pub(super) fn new(policy: &Arc<Policy>) -> Taker {
        Taker {
            policy: Arc::clone(policy),
            base: policy.base.as_deref().map(|base| make_base(base, policy)),
            last_base: (Vec::new(), make_base(b"", policy)),
            is_plain: policy.profile.is_rfc3987() && policy.preprocess.is_nothing(),
            target: Vec::new(),
            target_bitmaps: Bitmaps::default(),
            simple: Vec::new(),
        }
    }

    /// What is to be normalised: `reference` itself, or the target that was made of it.
    pub(super) fn marked<'a>(&'a self, reference: MarkedReference<'a>, taken: &Taken) -> MarkedReference<'a> {
        if !taken.in_target {
            return reference;
        }
        let span = Span { at: 0, len: self.target.len() as u32 };
        MarkedReference { text: &self.target, bitmaps: &self.target_bitmaps, span }
    }

    /// Makes a record in any charset and profile what [`Taker::take_text`] takes, then writes its query in the
    /// document's charset where that is asked for.
    pub(super) fn take(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        charsets: Charsets,
    ) -> Result<Taken, Fault> {
        let line = reference.line();
        if self.is_plain && charsets == Charsets::default() {
            return self.take_text(line, base);
        }
        let prepared = prepare(line, charsets.text, &self.policy)?;
        let needs_base = self.policy.profile.is_whatwg() || find_scheme(&prepared.text).is_none();
        let base = match charsets.text.filter(|_| needs_base) {
            Some(charset) => decode(charset, base).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?,
            None => base.into(),
        };
        if self.policy.profile.is_whatwg() {
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
        let query = charset.map(|charset| QueryCharset { charset, unmappable: self.policy.profile.unmappable });
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
    pub(super) fn simple_text<'a>(&'a self, line: &'a [u8], taken: &Taken) -> &'a [u8] {
        match taken {
            Taken { has_simple: true, .. } => &self.simple,
            Taken { in_target: true, .. } => &self.target,
            _ => line,
        }
    }

    /// Makes a reference absolute if it can be, and checks it as the policy's intake wants.
    fn take_text(&mut self, line: &[u8], base: &[u8]) -> Result<Taken, Fault> {
        let mut taken = Taken::AS_IT_STANDS;
        if HttpHead::of(line).is_none() && find_scheme(line).is_none() {
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
        if self.policy.intake == ParseMode::Strict {
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
        let Some(text) = HttpHead::of(text).and_then(|_| std::str::from_utf8(text).ok()) else { return Ok(()) };
        let unmappable =
            if self.policy.intake == ParseMode::Strict { UnmappableMode::Fail } else { UnmappableMode::Utf8 };
        let (encoded, has_unmappable) = encode_query(text, QueryCharset { charset, unmappable })?;
        if has_unmappable {
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
        if self.policy.intake == ParseMode::Strict {
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
}

fn make_base(base: &[u8], policy: &Policy) -> Result<Base, Fault> {
    let (base, ..) = policy.profile.prepare(base);
    if policy.intake == ParseMode::Strict {
        policy.profile.check_strict(&base).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?;
    }
    if policy.literal_base { Base::literal(&base) } else { Base::new(&base) }
}
