//! The text of a record: decodes it from its charset (RFC 3987 section 3.1, step 1) and applies the repairs of the policy
//! and of the profile.
//!
//! Offsets of faults refer to the bytes of the record as long as it is unchanged, and afterwards to the changed text.

use std::borrow::Cow;

use super::policy::Policy;
use crate::encoding::Charset;
use crate::iri::{Changes, Component, Fault, FaultKind, Flags};
use crate::kernel::Span;
use crate::record::Records;

/// The decoded and repaired text of a record.
pub(super) struct RecordText<'a> {
    /// The bytes of the record.
    pub(super) bytes: &'a [u8],
    /// The text; that of the record if it needed no changes.
    pub(super) text: Cow<'a, [u8]>,
    pub(super) flags: Flags,
    pub(super) changes: Changes,
}

/// The charsets of one record: its own, and that of the document that contained it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordCharsets {
    pub(super) text: Option<Charset>,
    pub(super) query: Option<Charset>,
}

impl RecordCharsets {
    /// Returns the charsets of the records that have no labels. The charset in which the source was decoded takes precedence
    /// over that of the policy, which does not apply to text (RFC 3987 section 3.1, step 1).
    pub(super) fn common(policy: &Policy, records: &Records<'_>) -> RecordCharsets {
        let of_bytes = policy.charset.filter(|_| !records.is_text);
        RecordCharsets { text: records.charset.or(of_bytes), query: policy.query_charset }
    }
}

/// The last label of a column and its charset. Adjacent records often have the same label.
#[derive(Debug, Default)]
struct CachedLabel {
    text: Vec<u8>,
    charset: Option<Charset>,
}

/// Looks up the charset labels of records.
#[derive(Debug, Default)]
pub(super) struct CharsetLabels {
    text: CachedLabel,
    query: CachedLabel,
}

impl CharsetLabels {
    /// Returns the charsets of record `i`. The labels of the record take precedence over `common`, and the charset in which
    /// the source was decoded takes precedence over both.
    ///
    /// # Errors
    /// A label is unknown or contradicts the source: text in UTF-16 cannot be split at the byte LF.
    pub(super) fn charsets(
        &mut self,
        records: &Records<'_>,
        i: usize,
        common: RecordCharsets,
    ) -> Result<RecordCharsets, Fault> {
        let label = self.text.charset_of(records, records.charsets.get(i))?;
        let contradicts = |label: Charset| match records.charset {
            Some(_) => !label.is_unicode(),
            None => label.is_utf16() && !records.may_be_utf16,
        };
        if label.is_some_and(contradicts) {
            return Err(Fault::of_reference(FaultKind::Undecodable));
        }
        let query = self.query.charset_of(records, records.query_charsets.get(i))?;
        Ok(RecordCharsets { text: records.charset.or(label).or(common.text), query: query.or(common.query) })
    }
}

impl CachedLabel {
    fn charset_of(&mut self, records: &Records<'_>, label: Option<&Option<Span>>) -> Result<Option<Charset>, Fault> {
        let label = label.copied().flatten().map_or(&[][..], |span| span.of(records.text)).trim_ascii();
        if label.is_empty() {
            return Ok(None);
        }
        if label != self.text {
            let name = std::str::from_utf8(label).ok();
            *self = CachedLabel { text: label.to_vec(), charset: name.and_then(Charset::named) };
        }
        self.charset.map(Some).ok_or(Fault::of_reference(FaultKind::UnknownCharset))
    }
}

/// Decodes `record` from `charset`, if there is one, and repairs it by the policy and its profile.
///
/// # Errors
/// As [`repair_record`].
pub(super) fn read_record<'a>(
    record: &'a [u8],
    charset: Option<Charset>,
    policy: &Policy,
) -> Result<RecordText<'a>, Fault> {
    let mut result = repair_record(record, charset, policy)?;
    if !policy.profile.is_rfc3987() && !policy.profile.is_whatwg() {
        let (text, flags, changes) = policy.profile.prepare(&result.text);
        let text = text.into_owned();
        result.flags |= flags;
        result.change(text.into(), changes);
    }
    Ok(result)
}

/// Decodes `record` from `charset`, if there is one, and applies the repairs of the policy.
///
/// # Errors
/// The bytes cannot be decoded, or a character reference does not refer to a character.
pub(super) fn repair_record<'a>(
    record: &'a [u8],
    charset: Option<Charset>,
    policy: &Policy,
) -> Result<RecordText<'a>, Fault> {
    let mut result = RecordText { bytes: record, text: record.into(), flags: Flags::NONE, changes: Changes::NONE };
    if let Some(charset) = charset {
        let text = decode(charset, record)?;
        result.change(text, Changes::TRANSCODED);
    }
    if !policy.preprocess.is_nothing() {
        let (text, flags) = crate::iri::repair(&result.text, &policy.preprocess)?;
        let text = text.into_owned();
        result.flags |= flags;
        result.change(text.into(), Changes::REPAIRED);
    }
    Ok(result)
}

impl<'a> RecordText<'a> {
    /// Replaces the text and records `change` if the text differs.
    fn change(&mut self, text: Cow<'a, [u8]>, change: Changes) {
        if text != self.text {
            self.changes |= change;
            self.text = text;
        }
    }
}

/// Decodes the text or the base of a record.
pub(super) fn decode(charset: Charset, bytes: &[u8]) -> Result<Cow<'_, [u8]>, Fault> {
    let undecodable = |at| Fault::new(FaultKind::Undecodable, Component::Reference, at);
    let text = charset.decode(bytes).map_err(|error| undecodable(error.offset()))?;
    Ok(match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Bitmaps;
    use crate::record::{TextDecoder, lines::Lines};

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
        let mut found = |source: Option<&str>, may_be_utf16| {
            records.may_be_utf16 = may_be_utf16;
            records.charset = source.and_then(Charset::named);
            let mut charset = |i| labels_of.charsets(&records, i, RecordCharsets::default());
            [0, 1, 2].map(|i| charset(i).map(|charsets| charsets.text).map_err(|fault| fault.kind))
        };
        let [utf8, latin1, utf16] = ["utf-8", "iso-8859-1", "utf-16le"].map(Charset::named);
        let contradicts = Err(FaultKind::Undecodable);
        assert_eq!(found(None, false), [Ok(utf8), Ok(latin1), contradicts]);
        assert_eq!(found(None, true), [Ok(utf8), Ok(latin1), Ok(utf16)]);
        // A source in UTF-16 was transcoded, and a label of any Unicode charset means the same text.
        assert_eq!(found(Some("utf-16le"), false), [Ok(utf16), contradicts, Ok(utf16)]);
    }
}
