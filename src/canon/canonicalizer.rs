//! Turns records into rows: their URIs and keys, carried fields, keys of recipes, and flags.

#[cfg(feature = "cli")]
use std::borrow::Cow;
use std::sync::Arc;

use super::base::base_of;
use super::carry::{ChunkRecords, field_writer};
use super::policy::Policy;
use super::recipe_evaluator::{RecipeEvaluator, has_readable_url};
use super::record_text::RecordCharsets;
#[cfg(feature = "cli")]
use super::record_text::{RecordText, read_record};
use super::reference::ReferenceWriter;
use super::row_writer::UrlRowWriter;
use super::rows::Rows;
use crate::iri::SpoofingFlags;
#[cfg(feature = "cli")]
use crate::iri::{CLASSIFIER, Changes, Fault, Flags, MarkedReference};
use crate::kernel::Bitmaps;
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
    pub(super) writer: UrlRowWriter,
    resolver: KeyResolver,
    /// Writes the URIs among carried fields.
    field_writer: ReferenceWriter,
    evaluator: RecipeEvaluator,
}

impl Canonicalizer {
    /// Returns a canonicalizer for `policy`.
    ///
    /// # Panics
    /// If [`Policy::check`] fails.
    pub fn new(policy: &Policy) -> Canonicalizer {
        policy.check().unwrap_or_else(|error| panic!("unusable policy: {error}"));
        let policy = Arc::new(policy.clone());
        Canonicalizer {
            writer: UrlRowWriter::new(&policy),
            field_writer: field_writer(&policy),
            policy,
            resolver: KeyResolver::default(),
            evaluator: RecipeEvaluator::default(),
        }
    }

    /// Appends one row per record to `rows`. `bitmaps` are those of `records.text`, as decoders and [`Records::classify`] make
    /// them.
    ///
    /// If a column of texts would exceed 2000 MiB, [`Rows::is_overfull`] is set, and the rows must not be used.
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
        self.writer.write(records, bitmaps, rows);
        self.writer.keys.append(first, rows);
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
        rows.is_overfull |= rows.longest_texts().1 > self.writer.max_text_len;
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
        let prepared = self.writer.references.prepare(reference, b"", charsets)?;
        let text = self.writer.references.simple_text(record, &prepared).to_vec();
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
        self.writer.references.spoofing_text(record, b"", self.policy.charset)
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
            let charsets = self.writer.charsets(records, i, common).unwrap_or_default();
            let text = self.writer.references.spoofing_text(url.of(records.text), base_of(records, i), charsets.text);
            rows.push_spoofing_flags(&text);
        }
    }
}

#[cfg(test)]
mod tests;
