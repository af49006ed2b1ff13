//! What was learned of redirects: [`Learned`], and as sorted records [`LearnedRedirects`].

use super::patterns::{Pattern, RefusedPatterns};
use super::redirect::{RecordPlace, RedirectCode, RedirectVerdict};
use super::sorter::{FieldReader, ReadRecords, ReaderOf, RecordFields, SorterFactory};
use crate::key::{KeyAlgorithm, KeyBytes};

/// Why a URL is in its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberReason {
    /// It is the representative: the URL where the redirects end.
    Representative,
    /// It redirected; the strongest code that was observed.
    Redirect(RedirectCode),
    /// The redirects of its class end here, it never responded with a success status, and a pattern of its host applies.
    Pattern,
}

impl MemberReason {
    /// Returns the name in files.
    #[cfg(feature = "batch")]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            MemberReason::Representative => "representative",
            MemberReason::Redirect(code) => code.name(),
            MemberReason::Pattern => "pattern",
        }
    }

    const fn number(self) -> u8 {
        match self {
            MemberReason::Representative => 0,
            MemberReason::Redirect(code) => code as u8 + 1,
            MemberReason::Pattern => u8::MAX,
        }
    }

    const fn numbered(number: u8) -> MemberReason {
        match number {
            0 => MemberReason::Representative,
            u8::MAX => MemberReason::Pattern,
            number => MemberReason::Redirect(RedirectCode::numbered(number - 1)),
        }
    }
}

/// A URL of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMember {
    /// The canonical URL.
    pub uri: Vec<u8>,
    /// Its key on the rung `scheme`.
    pub key: KeyBytes,
    /// The representative of the class.
    pub representative: Vec<u8>,
    /// The key of the representative.
    pub representative_key: KeyBytes,
    /// Why the URL is in the class.
    pub how: MemberReason,
    /// The target of its redirect; `None` for the representative.
    pub target: Option<Vec<u8>>,
    /// Number of records that state the redirect.
    pub records: u64,
    /// The first of these records.
    pub first: Option<RecordPlace>,
}

/// Counts of redirects by verdict, and of what was learned. The records of all verdicts add up to [`LearnCounts::read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnCounts {
    /// Redirects that records state.
    pub read: u64,
    /// Records by [`RedirectVerdict::ALL`].
    pub records: [u64; RedirectVerdict::ALL.len()],
    /// Distinct redirects by [`RedirectVerdict::ALL`]; those of other statuses and unparsable ones are not counted.
    pub redirects: [u64; RedirectVerdict::ALL.len()],
    /// Distinct accepted redirects that change the scheme or `www.`, and nothing else except the final slash.
    pub origin_changes: u64,
    /// Distinct accepted redirects that change the final slash, and nothing else except the origin.
    pub slash_changes: u64,
    /// Classes.
    pub classes: u64,
    /// URLs in classes.
    pub members: u64,
    /// Members of the largest class.
    pub largest: u64,
    /// Distinct URLs that responded with a success status.
    pub served: u64,
    /// Patterns.
    pub patterns: u64,
    /// Rules that were not learned.
    pub refused: RefusedPatterns,
}

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Members of classes, including representatives, sorted by representative and URL.
    pub members: Vec<ClassMember>,
    /// Patterns, sorted by host and rule.
    pub patterns: Vec<Pattern>,
    /// Counts of redirects and results.
    pub counts: LearnCounts,
}

/// The row of a member without its representative.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberRow<'a> {
    pub(super) how: MemberReason,
    /// Number of records that state the redirect, and the first of them.
    pub(super) records: u64,
    pub(super) first: RecordPlace,
    pub(super) uri: &'a [u8],
    /// Empty for the representative.
    pub(super) target: &'a [u8],
}

impl<'a> MemberRow<'a> {
    /// Returns the row of a URL whose redirect no record states.
    pub(super) fn without_records(how: MemberReason, uri: &'a [u8], target: &'a [u8]) -> MemberRow<'a> {
        MemberRow { how, records: 0, first: RecordPlace::default(), uri, target }
    }

    /// Appends the fields in the order of rows: the URL first.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_text(self.uri);
        out.push(self.how.number());
        out.put_u64(self.records);
        out.put_place(self.first);
        out.extend_from_slice(self.target);
    }

    /// Reads what [`Self::write`] wrote.
    pub(super) fn read(fields: &mut FieldReader<'a>) -> MemberRow<'a> {
        let (uri, how) = (fields.text(), MemberReason::numbered(fields.u8()));
        MemberRow { uri, how, records: fields.u64(), first: fields.place(), target: fields.0 }
    }
}

/// What was learned of redirects, as sorted records.
pub(crate) struct LearnedRedirects<S: SorterFactory> {
    pub(super) algorithm: KeyAlgorithm,
    /// Counts of redirects and results.
    pub(crate) counts: LearnCounts,
    /// By representative and URL.
    pub(super) members: ReaderOf<S>,
    /// By host and rule.
    pub(super) patterns: ReaderOf<S>,
}

impl<S: SorterFactory> LearnedRedirects<S> {
    /// Returns the next member, in the order of [`Learned::members`].
    pub(crate) fn next_member(&mut self) -> Result<Option<ClassMember>, S::Error> {
        let algorithm = self.algorithm;
        Ok(self.members.next_record()?.map(|record| member(record, algorithm)))
    }

    /// Returns the next pattern, in the order of [`Learned::patterns`].
    pub(crate) fn next_pattern(&mut self) -> Result<Option<Pattern>, S::Error> {
        Ok(self.patterns.next_record()?.and_then(Pattern::read))
    }
}

fn member(record: &[u8], algorithm: KeyAlgorithm) -> ClassMember {
    let mut fields = FieldReader(record);
    let representative = fields.text();
    let MemberRow { how, records, first, uri, target } = MemberRow::read(&mut fields);
    ClassMember {
        uri: uri.to_vec(),
        key: algorithm.key(uri),
        representative: representative.to_vec(),
        representative_key: algorithm.key(representative),
        how,
        target: (how != MemberReason::Representative).then(|| target.to_vec()),
        records,
        first: (records > 0).then_some(first),
    }
}

impl Learned {
    /// Reads all rows.
    pub(super) fn read<S: SorterFactory>(mut redirects: LearnedRedirects<S>) -> Result<Learned, S::Error> {
        let mut learned = Learned { counts: redirects.counts.clone(), ..Learned::default() };
        while let Some(member) = redirects.next_member()? {
            learned.members.push(member);
        }
        while let Some(pattern) = redirects.next_pattern()? {
            learned.patterns.push(pattern);
        }
        Ok(learned)
    }
}
