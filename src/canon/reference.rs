//! Writes the canonical URI of any reference: decodes and repairs it in its charset and profile, resolves it against its
//! base, checks it as the policy asks, and normalizes it; or appends it to a part of its base. http and https references that
//! only need normalization do not come here.

use std::borrow::Cow;
use std::sync::Arc;

use super::base::{Bases, read_base};
use super::policy::Policy;
use super::record_text::{RecordCharsets, RecordText, decode, read_record, repair_record};
use crate::encoding::{Charset, UnmappableMode};
use crate::iri::{
    CLASSIFIER, Changes, Fault, FaultKind, Flags, HttpHead, MarkedReference, Normalizer, ParseMode, QueryCharset, Rung,
    check_authority, check_utf8, encode_query, find_scheme, octets, uses_query_charset,
};
use crate::kernel::{Bitmaps, append, find_byte};

/// A reference that is ready to be normalized, and how it was changed so far.
pub(super) struct PreparedReference {
    /// The text is in [`ReferenceWriter::target`], otherwise it is the record.
    pub(super) in_target: bool,
    /// The text of the simple rung is in [`ReferenceWriter::simple`].
    has_simple: bool,
    pub(super) flags: Flags,
    pub(super) changes: Changes,
}

impl PreparedReference {
    /// The record itself, unchanged.
    pub(super) const UNCHANGED: PreparedReference =
        PreparedReference { in_target: false, has_simple: false, flags: Flags::NONE, changes: Changes::NONE };
}

/// Prepares and normalizes references; keeps the text of the last one if it is not in the chunk.
#[derive(Debug)]
pub(super) struct ReferenceWriter {
    policy: Arc<Policy>,
    bases: Bases,
    /// Records without a charset need neither decoding nor repairs.
    pub(super) needs_no_preparation: bool,
    /// The text of the reference if it is not the record, for example after resolution, and its bitmaps.
    target: Vec<u8>,
    target_bitmaps: Bitmaps,
    /// The text of the simple rung if it is neither the record nor the target.
    simple: Vec<u8>,
    pub(super) normalizer: Normalizer,
}

impl ReferenceWriter {
    pub(super) fn new(policy: Arc<Policy>) -> ReferenceWriter {
        ReferenceWriter {
            bases: Bases::new(&policy),
            needs_no_preparation: policy.profile.is_rfc3987() && policy.preprocess.is_nothing(),
            policy,
            target: Vec::new(),
            target_bitmaps: Bitmaps::default(),
            simple: Vec::new(),
            normalizer: Normalizer::default(),
        }
    }

    /// Appends the URI of a relative reference on the rung `scheme` to `out`, if it only has to be appended to a part of its
    /// base, which is that of the policy if `base` is empty.
    #[inline(always)]
    pub(super) fn append_to_base(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<(Flags, Changes)> {
        let relative = reference.relative(!self.policy.drop_fragment)?;
        let part = self.bases.get(base)?.part(relative.part, &mut self.normalizer)?;
        append(out, part.without_segments(relative.parent_count)?);
        reference.append_rest(relative, out);
        Some((part.flags, part.changes))
    }

    /// Appends the text of `rung` to `out`, for [`Rung::Simple`] that of the syntax rung. `reference` was prepared before.
    pub(super) fn write_rung(
        &mut self,
        reference: MarkedReference<'_>,
        prepared: &PreparedReference,
        rung: Rung,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        let drop_fragment = self.policy.drop_fragment;
        let reference = match prepared.in_target {
            true => MarkedReference::whole(&self.target, &self.target_bitmaps),
            false => reference,
        };
        let (flags, changes) = match self.policy.profile.is_whatwg() {
            true => (Flags::NONE, write_href(reference.bytes(), drop_fragment, out)),
            false => self.normalizer.normalize(reference, rung, drop_fragment, out)?,
        };
        Ok((prepared.flags | flags, prepared.changes | changes))
    }

    /// Prepares a record in any charset and profile. If the document has a charset, the query is encoded in it.
    pub(super) fn prepare(
        &mut self,
        reference: MarkedReference<'_>,
        base: &[u8],
        charsets: RecordCharsets,
    ) -> Result<PreparedReference, Fault> {
        let bytes = reference.bytes();
        if self.needs_no_preparation && charsets == RecordCharsets::default() {
            return self.prepare_text(bytes, base);
        }
        let record = read_record(bytes, charsets.text, &self.policy)?;
        let needs_base = self.policy.profile.is_whatwg() || find_scheme(&record.text).is_none();
        let base = match charsets.text.filter(|_| needs_base) {
            Some(charset) => decode(charset, base).map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?,
            None => base.into(),
        };
        if self.policy.profile.is_whatwg() {
            return self.prepare_href(&record, &base, charsets.query);
        }
        let mut prepared = self.prepare_text(&record.text, &base)?;
        prepared.flags |= record.flags;
        prepared.changes |= record.changes;
        if *record.text != *bytes && !prepared.in_target {
            self.set_target(&record.text, &mut prepared);
        }
        if let Some(charset) = charsets.query {
            let encoded = self.encode_query(bytes, charset, &mut prepared);
            // The target is unchanged after a fault.
            let text = if prepared.in_target { &self.target[..] } else { bytes };
            encoded.map_err(|fault| in_record(fault, text, &record.text))?;
        }
        Ok(prepared)
    }

    /// Prepares the `href` of a browser. The text of the simple rung is the record, or the `href` if it also depends on a base or
    /// a charset.
    fn prepare_href(
        &mut self,
        record: &RecordText<'_>,
        base: &[u8],
        charset: Option<Charset>,
    ) -> Result<PreparedReference, Fault> {
        let has_base = self.has_base(base);
        let is_assumed = self.may_assume_scheme(&record.text, base) && self.assume_scheme(&record.text)?;
        let text = if is_assumed { Cow::Owned(std::mem::take(&mut self.target)) } else { Cow::Borrowed(&*record.text) };
        let query = charset.map(|charset| QueryCharset { charset, unmappable: self.policy.profile.unmappable });
        let base = if base.is_empty() { self.policy.base.as_deref() } else { Some(base) };
        let href = whatwg_href(&text, base, query).map_err(|fault| in_record(fault, &text, &record.text))?;
        self.simple.clear();
        self.simple.extend_from_slice(if has_base || charset.is_some() { href.as_bytes() } else { &text });
        let mut changes = record.changes;
        if href.as_bytes() != record.bytes {
            changes |= Changes::WHATWG;
        }
        self.target = href.into_bytes();
        let flags = record.flags | if is_assumed { Flags::ASSUMED_SCHEME } else { Flags::NONE };
        Ok(PreparedReference { in_target: true, has_simple: true, flags, changes })
    }

    /// Returns the text that is searched for misleading properties: the record, decoded and repaired, after the scheme that the
    /// policy assumes for it. A record that cannot be decoded or repaired stays as it is.
    pub(super) fn spoofing_text<'a>(
        &'a mut self,
        record: &'a [u8],
        base: &[u8],
        charset: Option<Charset>,
    ) -> Cow<'a, [u8]> {
        let text = repair_record(record, charset, &self.policy).map_or(record.into(), |record| record.text);
        match self.may_assume_scheme(&text, base) && self.assume_scheme(&text) == Ok(true) {
            true => Cow::Borrowed(&self.target),
            false => text,
        }
    }

    /// Returns the text of the simple rung.
    pub(super) fn simple_text<'a>(&'a self, record: &'a [u8], prepared: &PreparedReference) -> &'a [u8] {
        match prepared {
            PreparedReference { has_simple: true, .. } => &self.simple,
            PreparedReference { in_target: true, .. } => &self.target,
            _ => record,
        }
    }

    /// Makes a reference absolute if possible, and checks it if the policy is strict.
    fn prepare_text(&mut self, record: &[u8], base: &[u8]) -> Result<PreparedReference, Fault> {
        let mut prepared = PreparedReference::UNCHANGED;
        if HttpHead::of(record).is_none() && (find_scheme(record).is_none() || self.is_host_and_port(record)) {
            if !self.may_assume_scheme(record, base) {
                self.resolve(record, base)?;
                prepared.changes = Changes::RESOLVED;
                prepared.in_target = true;
            } else if self.assume_scheme(record)? {
                prepared.flags = Flags::ASSUMED_SCHEME;
                prepared.in_target = true;
            }
            if prepared.in_target {
                self.target_bitmaps.classify(&self.target, &CLASSIFIER);
            }
        }
        if self.policy.mode == ParseMode::Strict {
            let text = if prepared.in_target { &self.target } else { record };
            self.policy.profile.check_strict(text).map_err(|fault| in_record(fault, text, record))?;
        }
        Ok(prepared)
    }

    fn set_target(&mut self, text: &[u8], prepared: &mut PreparedReference) {
        self.target.clear();
        self.target.extend_from_slice(text);
        self.target_bitmaps.classify(&self.target, &CLASSIFIER);
        prepared.in_target = true;
    }

    /// Encodes the query of an http or https reference in the charset of its document (draft-weber-iri-guidelines-00
    /// section 6.1), unless the query is not UTF-8. Unmappable characters are a fault in strict mode; in lenient mode they make
    /// the query UTF-8.
    fn encode_query(&mut self, record: &[u8], charset: Charset, prepared: &mut PreparedReference) -> Result<(), Fault> {
        let text = if prepared.in_target { &self.target[..] } else { record };
        if !uses_query_charset(text) {
            return Ok(());
        }
        let unmappable =
            if self.policy.mode == ParseMode::Strict { UnmappableMode::Fail } else { UnmappableMode::Utf8 };
        if let Some(encoded) = encode_query(text, QueryCharset { charset, unmappable })? {
            prepared.flags |= encoded.flags;
            if encoded.has_unmappable {
                prepared.flags |= Flags::QUERY_CHARSET;
            }
            prepared.changes |= Changes::QUERY_CHARSET;
            self.set_target(&encoded.reference, prepared);
        }
        Ok(())
    }

    /// Resolves `reference` and writes the result to `self.target`.
    fn resolve(&mut self, reference: &[u8], base: &[u8]) -> Result<(), Fault> {
        if self.policy.mode == ParseMode::Strict {
            self.policy.profile.check_iri_reference(check_utf8(reference)?)?;
        }
        check_authority(reference)?;
        self.target.clear();
        match self.bases.get(base) {
            Some(base) => base.base()?.write_resolved(reference, &mut self.target),
            None => Err(Fault::of_reference(FaultKind::Relative)),
        }
    }

    /// Returns whether references have a base: `base`, which is that of the record and may be empty, or that of the policy.
    fn has_base(&self, base: &[u8]) -> bool {
        !base.is_empty() || self.policy.base.is_some()
    }

    /// Returns whether a scheme can be assumed for `text`: it has neither a scheme nor a base, or looks like a host and a port.
    fn may_assume_scheme(&self, text: &[u8], base: &[u8]) -> bool {
        !self.has_base(base) && find_scheme(text).is_none() || self.is_host_and_port(text)
    }

    /// Whether a scheme is to be assumed for `text`, which looks like `host:port...`: the part before the colon is
    /// `localhost` or contains a dot, and only digits follow it. Escapes of digits count, because the ladder decodes them.
    fn is_host_and_port(&self, text: &[u8]) -> bool {
        if self.policy.assume_scheme.is_none() {
            return false;
        }
        let is_end = |byte| matches!(byte, b':' | b'/' | b'?' | b'#');
        let Some(colon) = find_byte(text, is_end).filter(|at| text[*at] == b':') else { return false };
        let (host, rest) = (&text[..colon], &text[colon + 1..]);
        let is_host = memchr::memchr(b'.', host).is_some() || host.eq_ignore_ascii_case(b"localhost");
        let are_decoded = !self.policy.profile.is_whatwg();
        let mut octets = octets(rest).peekable();
        let is_digit = |(octet, is_escaped): &(u8, bool)| octet.is_ascii_digit() && (are_decoded || !is_escaped);
        let digit_count = std::iter::from_fn(|| octets.next_if(is_digit)).take(6).count();
        let is_port = matches!(octets.peek(), None | Some((b'/' | b'?' | b'#', false)));
        is_host && is_port && (1..=5).contains(&digit_count)
    }

    /// Writes `text` with the assumed scheme to `self.target` and returns true, if it looks like `//host...` or begins with
    /// a host that contains a dot, or with a host and a port.
    fn assume_scheme(&mut self, text: &[u8]) -> Result<bool, Fault> {
        let Some(scheme) = &self.policy.assume_scheme else { return Ok(false) };
        let host_end = memchr::memchr3(b'/', b'?', b'#', text).unwrap_or(text.len());
        let has_host = memchr::memchr(b'.', &text[..host_end]).is_some_and(|at| at > 0);
        if !text.starts_with(b"//") && !has_host && !self.is_host_and_port(text) {
            return Ok(false);
        }
        self.target.clear();
        [scheme.as_bytes(), assumed_delimiter(text), text].iter().for_each(|part| self.target.extend_from_slice(part));
        check_authority(&self.target).map_err(|fault| in_record(fault, &self.target, text))?;
        Ok(true)
    }
}

impl Policy {
    /// Checks [`Policy::base`] by the profile and the mode. A wrong base is a fault of every relative record.
    ///
    /// ```
    /// use irikey::{canon::Policy, iri::ParseMode};
    /// let lenient = Policy { base: Some(b"http://h/a b".to_vec()), ..Policy::default() };
    /// assert!(lenient.check_base().is_ok());
    /// assert_eq!(Policy { mode: ParseMode::Strict, ..lenient }.check_base().unwrap_err().at, 10);
    /// ```
    ///
    /// # Errors
    /// A fault of the kind [`FaultKind::Base`]; `at` is an offset into the base.
    pub fn check_base(&self) -> Result<(), Fault> {
        let Some(base) = self.base.as_deref() else { return Ok(()) };
        let checked = match self.profile.is_whatwg() {
            true => whatwg_href(base, None, None).map(|_| ()),
            false => read_base(base, self).map(|_| ()),
        };
        checked.map_err(|fault| Fault { kind: FaultKind::Base, ..fault })
    }
}

/// Returns what is written between an assumed scheme and `text`.
pub(crate) fn assumed_delimiter(text: &[u8]) -> &'static [u8] {
    if text.starts_with(b"//") { b":" } else { b"://" }
}

/// A fault in `text` at its position in `record`. `text` is the record, or ends like it: after an assumed scheme, or with its
/// query after resolution. A fault before that has position 0.
fn in_record(fault: Fault, text: &[u8], record: &[u8]) -> Fault {
    Fault { at: (fault.at + record.len() as u32).saturating_sub(text.len() as u32), ..fault }
}

/// Returns the `href` that a browser makes of `text`.
///
/// # Errors
/// The fault that is nearest to the browser's reason for failure, or bytes that are not UTF-8, which a browser would
/// replace by U+FFFD.
#[cfg(feature = "whatwg")]
fn whatwg_href(text: &[u8], base: Option<&[u8]>, query: Option<QueryCharset>) -> Result<String, Fault> {
    let text = check_utf8(text)?;
    if text.is_empty() && base.is_none() {
        return Err(Fault::of_reference(FaultKind::Empty));
    }
    let base = base.map(check_utf8).transpose().map_err(|fault| Fault { kind: FaultKind::Base, ..fault })?;
    crate::iri::whatwg_href(text, base, query)
}

/// Without the feature the profile does not exist, see [`crate::iri::Profile::ALL`].
#[cfg(not(feature = "whatwg"))]
fn whatwg_href(text: &[u8], _: Option<&[u8]>, _: Option<QueryCharset>) -> Result<String, Fault> {
    check_utf8(text).and(Err(Fault::of_reference(FaultKind::Relative)))
}

/// Appends a browser's `href`, optionally without its fragment, and returns the change.
fn write_href(href: &[u8], drop_fragment: bool, out: &mut Vec<u8>) -> Changes {
    let end = memchr::memchr(b'#', href).filter(|_| drop_fragment);
    out.extend_from_slice(&href[..end.unwrap_or(href.len())]);
    if end.is_some() { Changes::FRAGMENT } else { Changes::NONE }
}
