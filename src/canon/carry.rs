//! What a format says beside the URL, carried from records to rows where the policy wants it. In: the records' fields
//! and the rows just made of them. Out: one entry a row in every wanted column.
//!
//! A redirect is resolved against its row's URI (RFC 9110 section 10.2.2) and brought to the row's rung; so is the URL
//! that redirected here. One that is no reference is null: what a format says of a record is no fault of its URL.

use super::{Policy, Rows, Rung, Texts};
use crate::iri::{Base, CLASSIFIER, Fault, MarkedReference, Normalizer, check_authority, find_scheme};
use crate::kernel::Bitmaps;
use crate::kernel::Span;
use crate::record::Records;

pub use crate::record::fields::Carry;

/// Carried columns: as long as the rows where the policy wants them, else empty.
#[derive(Clone, Debug)]
pub struct Carried {
    /// When it was fetched: milliseconds since 1970-01-01T00:00:00Z.
    pub times: Vec<Option<i64>>,
    /// Status of the fetch.
    pub statuses: Vec<Option<i32>>,
    /// URI that the response redirects to; empty if there is none.
    pub redirects: Texts,
    /// URI whose response redirected to this record's; empty if there is none.
    pub redirected_from: Texts,
    /// Of the content, in the format's notation less `sha1:`; empty if there is none.
    pub digests: Texts,
    /// Label of the content's charset; empty if there is none.
    pub charsets: Texts,
    /// Media type as the server named it; empty if there is none.
    pub mimes: Texts,
    /// Media type as it was found out; empty if there is none.
    pub detected_mimes: Texts,
    /// Languages of the content; empty if there are none.
    pub languages: Texts,
    /// The archive that the capture lies in; empty if there is none.
    pub filenames: Texts,
    /// Where it begins there.
    pub capture_offsets: Vec<Option<i64>>,
    /// How long it is there.
    pub capture_lengths: Vec<Option<i64>>,
}

impl Default for Carried {
    fn default() -> Carried {
        let texts = Texts::new;
        Carried {
            times: Vec::new(),
            statuses: Vec::new(),
            redirects: texts(),
            redirected_from: texts(),
            digests: texts(),
            charsets: texts(),
            mimes: texts(),
            detected_mimes: texts(),
            languages: texts(),
            filenames: texts(),
            capture_offsets: Vec::new(),
            capture_lengths: Vec::new(),
        }
    }
}

impl Carried {
    pub(super) fn clear(&mut self) {
        self.times.clear();
        self.statuses.clear();
        self.capture_offsets.clear();
        self.capture_lengths.clear();
        self.texts_mut().into_iter().for_each(Texts::clear);
    }

    /// Its columns of texts.
    pub(super) fn texts_mut(&mut self) -> [&mut Texts; 8] {
        [
            &mut self.redirects,
            &mut self.redirected_from,
            &mut self.digests,
            &mut self.charsets,
            &mut self.mimes,
            &mut self.detected_mimes,
            &mut self.languages,
            &mut self.filenames,
        ]
    }
}

/// Carries; keeps its scratch.
#[derive(Debug, Default)]
pub(super) struct Carrier {
    normalizer: Normalizer,
    target: Vec<u8>,
    bitmaps: Bitmaps,
}

impl Carrier {
    /// Appends the columns of `records`, whose rows begin at row `first`.
    pub(super) fn append(&mut self, policy: &Policy, records: &Records<'_>, first: usize, rows: &mut Rows) {
        let carry = policy.carry;
        if carry.is_none() {
            return;
        }
        let (fields, len) = (&records.fields, rows.len());
        if carry.time {
            push_values(fields.times, len, &mut rows.carried.times);
        }
        if carry.status {
            push_values(fields.statuses, len, &mut rows.carried.statuses);
        }
        if carry.capture_offset {
            push_values(fields.capture_offsets, len, &mut rows.carried.capture_offsets);
        }
        if carry.capture_length {
            push_values(fields.capture_lengths, len, &mut rows.carried.capture_lengths);
        }
        if carry.digest {
            push_texts(records, fields.digests, len, bare_digest, &mut rows.carried.digests);
        }
        let texts = [
            (carry.charset, fields.charsets, &mut rows.carried.charsets),
            (carry.mime, fields.mimes, &mut rows.carried.mimes),
            (carry.detected_mime, fields.detected_mimes, &mut rows.carried.detected_mimes),
            (carry.languages, fields.languages, &mut rows.carried.languages),
            (carry.filename, fields.filenames, &mut rows.carried.filenames),
        ];
        for (_, spans, column) in texts.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
            push_texts(records, spans, len, |text| text, column);
        }
        if carry.redirect {
            let mut column = std::mem::replace(&mut rows.carried.redirects, Texts::new());
            let counts = self.push_uris(policy, records, fields.redirects, first, rows, &mut column);
            rows.carried.redirects = column;
            rows.tally.add_redirects(counts);
        }
        if carry.redirected_from {
            let mut column = std::mem::replace(&mut rows.carried.redirected_from, Texts::new());
            let counts = self.push_uris(policy, records, fields.redirected_from, first, rows, &mut column);
            rows.carried.redirected_from = column;
            rows.tally.add_redirects(counts);
        }
    }

    /// Appends the URIs that `spans` mean beside their rows' URIs. Gives how many there were, and how many mean none.
    fn push_uris(
        &mut self,
        policy: &Policy,
        records: &Records<'_>,
        spans: &[Option<Span>],
        first: usize,
        rows: &Rows,
        out: &mut Texts,
    ) -> (u64, u64) {
        let (mut all, mut unreadable) = (0, 0);
        for (i, span) in spans.iter().enumerate() {
            if let Some(span) = span {
                all += 1;
                let at = out.values.len();
                let made = self.write_uri(policy, span.of(records.text), rows.uri.get(first + i), &mut out.values);
                if made.is_err() {
                    unreadable += 1;
                    out.values.truncate(at);
                }
            }
            out.end();
        }
        fill(rows.len(), out);
        (all, unreadable)
    }

    fn write_uri(&mut self, policy: &Policy, text: &[u8], base: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.target.clear();
        if find_scheme(text).is_none() {
            check_authority(text)?;
            Base::new(base)?.write_target(text, &mut self.target)?;
        } else {
            self.target.extend_from_slice(text);
        }
        policy.intake.check(&self.target)?;
        self.bitmaps.classify(&self.target, &CLASSIFIER);
        let marked = MarkedReference {
            text: &self.target,
            bitmaps: &self.bitmaps,
            span: Span { at: 0, len: self.target.len() as u32 },
        };
        match policy.rung {
            Rung::Scheme => self.normalizer.normalize::<true>(marked, policy.drop_fragment, out)?,
            Rung::Simple | Rung::Syntax => self.normalizer.normalize::<false>(marked, policy.drop_fragment, out)?,
        };
        Ok(())
    }
}

/// Appends `values`, and nulls where the format has none, up to `len` entries.
fn push_values<T: Copy>(values: &[Option<T>], len: usize, out: &mut Vec<Option<T>>) {
    out.extend_from_slice(values);
    out.resize(len, None);
}

/// SHA-1 is what indexes have, and they do not name it; other digests keep their name.
fn bare_digest(digest: &[u8]) -> &[u8] {
    match digest.split_at_checked(5) {
        Some((name, bare)) if name.eq_ignore_ascii_case(b"sha1:") => bare,
        _ => digest,
    }
}

fn push_texts(
    records: &Records<'_>,
    spans: &[Option<Span>],
    len: usize,
    written: impl Fn(&[u8]) -> &[u8],
    out: &mut Texts,
) {
    for span in spans {
        if let Some(span) = span {
            out.values.extend_from_slice(written(span.of(records.text)));
        }
        out.end();
    }
    fill(len, out);
}

/// Empty texts up to `len` of them.
fn fill(len: usize, out: &mut Texts) {
    out.offsets.resize(len + 1, out.values.len() as i32);
}
