//! From a record's bytes to the text that is read as a reference: its charset (RFC 3987 section 3.1, step 1), what was
//! asked for of white space, character references and backslashes, and what the profile adds. In: a record, its labels,
//! a policy. Out: text, flags and changes; or the fault that the bytes are no text, or the label no charset.
//!
//! Offsets of faults are those of the record as long as nothing was done to it, afterwards of what became of it.

use std::borrow::Cow;

use super::Policy;
use crate::encoding::Charset;
use crate::iri::{Changes, Component, Fault, FaultKind, Flags};
use crate::kernel::Span;
use crate::record::Records;

/// A record's text on its way to a reference.
pub(super) struct Prepared<'a> {
    pub text: Cow<'a, [u8]>,
    pub flags: Flags,
    pub changes: Changes,
}

/// The charsets of one record: its own, and that of the document that it stood in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Charsets {
    pub text: Option<Charset>,
    pub query: Option<Charset>,
}

/// The last label of a column and what it means: neighbours often bear the same one.
#[derive(Debug, Default)]
struct Label {
    text: Vec<u8>,
    charset: Option<Charset>,
}

/// Reads labels.
#[derive(Debug, Default)]
pub(super) struct Labels {
    text: Label,
    query: Label,
}

impl Labels {
    /// The charsets of record `i`: what it names goes before what is `common` to all, but for what the source is in as a
    /// whole: a label that agrees with that says nothing new.
    ///
    /// # Errors
    /// A label that is unknown, or that cannot be true: records of UTF-16 are not cut at the byte LF.
    pub fn charsets(&mut self, records: &Records<'_>, i: usize, common: Charsets) -> Result<Charsets, Fault> {
        let label = self.text.read(records, records.charsets.get(i))?;
        let contradicts = |label: Charset| match records.charset {
            Some(_) => !label.is_unicode(),
            None => label.is_unicode() && label != Charset::UTF_8,
        };
        if label.is_some_and(contradicts) {
            return Err(Fault::new(FaultKind::Undecodable, Component::Reference, 0));
        }
        let query = self.query.read(records, records.query_charsets.get(i))?;
        Ok(Charsets { text: records.charset.or(label).or(common.text), query: query.or(common.query) })
    }
}

impl Label {
    fn read(&mut self, records: &Records<'_>, label: Option<&Option<Span>>) -> Result<Option<Charset>, Fault> {
        let label = label.copied().flatten().map_or(&[][..], |span| span.of(records.text)).trim_ascii();
        if label.is_empty() {
            return Ok(None);
        }
        if label != self.text {
            let name = std::str::from_utf8(label).ok();
            *self = Label { text: label.to_vec(), charset: name.and_then(Charset::named) };
        }
        self.charset.map(Some).ok_or(Fault::new(FaultKind::UnknownCharset, Component::Reference, 0))
    }
}

/// Makes `line`, which is in `charset`, a reference of the policy's profile.
///
/// # Errors
/// Bytes that are no text in it; character references to no character.
pub(super) fn prepare<'a>(line: &'a [u8], charset: Option<Charset>, policy: &Policy) -> Result<Prepared<'a>, Fault> {
    let mut prepared = Prepared { text: line.into(), flags: Flags::NONE, changes: Changes::NONE };
    if let Some(charset) = charset {
        let text = decode(charset, line)?;
        prepared.change(text, Changes::TRANSCODED);
    }
    if !policy.preprocess.is_nothing() {
        let (text, flags) = crate::iri::repair(&prepared.text, &policy.preprocess)?;
        let text = text.into_owned();
        prepared.flags |= flags;
        prepared.change(text.into(), Changes::REPAIRED);
    }
    if !policy.profile.is_rfc3987() && !policy.profile.is_whatwg() {
        let (text, flags, changes) = policy.profile.prepare(&prepared.text);
        let text = text.into_owned();
        prepared.flags |= flags;
        prepared.change(text.into(), changes);
    }
    Ok(prepared)
}

impl<'a> Prepared<'a> {
    fn change(&mut self, text: Cow<'a, [u8]>, change: Changes) {
        if text != self.text {
            self.changes |= change;
            self.text = text;
        }
    }
}

/// A record's text, or base.
pub(super) fn decode(charset: Charset, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    let undecodable = |at| Fault::new(FaultKind::Undecodable, Component::Reference, at);
    let text = charset.decode(bytes).map_err(|error| undecodable(error.offset()))?;
    Ok(match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    })
}
