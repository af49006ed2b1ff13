//! Learns patterns: what a host does to all of its URLs.
//!
//! For every scheme of a host and for every ending of its paths, URLs vote for a pattern. The pattern with the most votes is
//! learned if enough URLs confirm it and hardly any contradicts it.
//!
//! | observation of a URL | vote for the origin's pattern | vote for the ending's pattern |
//! |---|---|---|
//! | redirect to another origin of the same host | that pattern | none |
//! | redirect that also changes the slash | that pattern | that pattern, at the target's host |
//! | redirect that changes only the slash | none | that pattern |
//! | redirect elsewhere, or a response with success | against | against |
//!
//! Redirects that are weak, part of a loop, or from a URL to itself do not vote.

use super::graph::{NOWHERE, mark_loops};
use super::redirect::LearnLimits;
use super::rewrite_pattern::{OriginPattern, RewritePattern};
use super::sorter::{FieldReader, RecordFields, SortRecords};
use super::spelling::{PathEnding, Spelling, without_www};
use std::collections::{BTreeMap, BTreeSet};

/// Number of examples, and of counter-examples, per pattern.
const EXAMPLES: usize = 3;

/// A pattern of a host, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The authority, as in URIs.
    pub host: Vec<u8>,
    /// How URLs are rewritten.
    pub rewrite: RewritePattern,
    /// Number of distinct URLs that confirm the pattern.
    pub support: u64,
    /// Number of distinct URLs that the pattern applies to and that contradict it.
    pub counter: u64,
    /// The first URLs that confirm the pattern, by bytes.
    pub examples: Vec<Vec<u8>>,
    /// The first URLs that contradict the pattern, by bytes.
    pub counter_examples: Vec<Vec<u8>>,
}

/// Numbers of patterns that some URLs confirmed and that were not learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedPatterns {
    /// Too few URLs confirmed them.
    pub support: u64,
    /// Too many URLs contradicted them.
    pub confidence: u64,
    /// They would loop together with other patterns.
    pub circular: u64,
}

impl Pattern {
    /// Writes the pattern as a record; records of a host are in the order of [`RewritePattern::number`].
    pub(super) fn write(&self, record: &mut Vec<u8>) {
        record.clear();
        record.put_text(&self.host);
        record.push(self.rewrite.number());
        for (count, first) in [(self.support, &self.examples), (self.counter, &self.counter_examples)] {
            UrlSample { count, first: first.clone() }.write(record);
        }
    }

    /// Reads what [`Self::write`] wrote.
    pub(super) fn read(record: &[u8]) -> Option<Pattern> {
        let mut fields = FieldReader(record);
        let (host, rewrite) = (fields.text().to_vec(), RewritePattern::numbered(fields.u8())?);
        let [confirming, against] = std::array::from_fn(|_| UrlSample::read(&mut fields));
        let (support, counter) = (confirming.count, against.count);
        Some(Pattern { host, rewrite, support, counter, examples: confirming.first, counter_examples: against.first })
    }

    /// Returns the share of URLs that confirm the pattern among those it applies to.
    pub(crate) fn confidence(&self) -> f64 {
        self.support as f64 / (self.support + self.counter).max(1) as f64
    }
}

/// A number of distinct URLs and the first of them.
#[derive(Clone, Debug, Default)]
struct UrlSample {
    count: u64,
    first: Vec<Vec<u8>>,
}

impl UrlSample {
    fn add(&mut self, uri: &[u8]) {
        self.count += 1;
        self.add_example(uri);
    }

    fn add_example(&mut self, uri: &[u8]) {
        let at = self.first.partition_point(|first| &first[..] < uri);
        if at < EXAMPLES && self.first.get(at).is_none_or(|first| first != uri) {
            self.first.insert(at, uri.to_vec());
            self.first.truncate(EXAMPLES);
        }
    }

    fn add_all(&mut self, other: &UrlSample) {
        self.count += other.count;
        other.first.iter().for_each(|uri| self.add_example(uri));
    }

    fn write(&self, record: &mut Vec<u8>) {
        record.put_u64(self.count);
        record.push(self.first.len() as u8);
        self.first.iter().for_each(|uri| record.put_text(uri));
    }

    fn read(fields: &mut FieldReader<'_>) -> UrlSample {
        let count = fields.u64();
        UrlSample { count, first: (0..fields.u8()).map(|_| fields.text().to_vec()).collect() }
    }
}

/// The votes of the URLs that one pattern can apply to.
#[derive(Debug, Default)]
pub(super) struct RuleVotes {
    rules: BTreeMap<RewritePattern, UrlSample>,
    against: UrlSample,
}

/// What one pattern is learned for: a scheme of a host, or an ending of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum VoteSlot {
    Origin { is_https: bool },
    PathEnding(PathEnding),
}

/// Votes by host, ordered so that results are deterministic.
pub(super) type HostVotes = BTreeMap<Vec<u8>, BTreeMap<VoteSlot, RuleVotes>>;

/// URLs of an origin that responded with a success status, by the ending of their paths.
#[derive(Debug, Default)]
pub(super) struct OriginResponses {
    counts: [u64; 4],
    /// The least URL by bytes.
    examples: [Option<Vec<u8>>; 4],
}

impl OriginResponses {
    /// Adds a URL.
    pub(super) fn add(&mut self, ending: PathEnding, uri: &[u8]) {
        self.counts[ending as usize] += 1;
        let least = &mut self.examples[ending as usize];
        if least.as_deref().is_none_or(|least| uri < least) {
            *least = Some(uri.to_vec());
        }
    }
}

/// Returns the group of a host: the host without `www.`. Patterns lead from a host to hosts of its group only.
pub(super) fn group_of(authority: &[u8]) -> &[u8] {
    without_www(authority)
}

fn votes_of<'v>(votes: &'v mut HostVotes, host: &[u8], slot: VoteSlot) -> &'v mut RuleVotes {
    votes.entry(host.to_vec()).or_default().entry(slot).or_default()
}

/// Counts the votes of an accepted redirect.
pub(super) fn count_accepted(votes: &mut HostVotes, from_uri: &[u8], to_uri: &[u8]) {
    let (Some(from), Some(to)) = (Spelling::of(from_uri), Spelling::of(to_uri)) else {
        return count_against(votes, from_uri);
    };
    let Some(change) = from.change_to(&to) else { return count_against(votes, from_uri) };
    let (origin, ending) = (VoteSlot::Origin { is_https: from.is_https }, VoteSlot::PathEnding(from.ending()));
    if let Some(rule) = OriginPattern::between(&from, &to) {
        votes_of(votes, from.authority, origin).rules.entry(RewritePattern::Origin(rule)).or_default().add(from_uri);
    }
    if let Some(rule) = RewritePattern::of_change(change, from.ending()) {
        votes_of(votes, to.authority, ending).rules.entry(rule).or_default().add(from_uri);
    }
}

/// Counts the votes of a URL that contradicts the patterns of its host.
pub(super) fn count_against(votes: &mut HostVotes, uri: &[u8]) {
    let Some(from) = Spelling::of(uri) else { return };
    for slot in [VoteSlot::Origin { is_https: from.is_https }, VoteSlot::PathEnding(from.ending())] {
        votes_of(votes, from.authority, slot).against.add(uri);
    }
}

/// Marks the records of a group that are about a host; they come before those of ends.
const ABOUT_HOST: u8 = 1;

/// Marks the records of a group that are ends: URLs that redirects lead to and that never respond with a success status.
pub(super) const END: u8 = 2;

/// The pattern of votes against all patterns.
const AGAINST: u8 = u8::MAX;

/// Adds votes to the records of their groups. `record` is a buffer.
pub(super) fn write_votes<S: SortRecords>(
    votes: &HostVotes,
    record: &mut Vec<u8>,
    groups: &mut S,
) -> Result<(), S::Error> {
    for (host, slots) in votes {
        for (slot, votes) in slots {
            let rules = votes.rules.iter().map(|(rule, sample)| (rule.number(), sample));
            for (rule, sample) in rules.chain([(AGAINST, &votes.against)]).filter(|(_, sample)| sample.count > 0) {
                begin_record(host, record);
                record.extend_from_slice(&[slot.number(), rule]);
                sample.write(record);
                groups.push(record)?;
            }
        }
    }
    Ok(())
}

/// Adds the responses of the two origins of a host, as [`write_votes`] does.
pub(super) fn write_responses<S: SortRecords>(
    host: &[u8],
    responses: &[OriginResponses; 2],
    record: &mut Vec<u8>,
    groups: &mut S,
) -> Result<(), S::Error> {
    for (is_https, responses) in [false, true].into_iter().zip(responses) {
        for ending in PathEnding::ALL {
            let (count, example) = (responses.counts[ending as usize], &responses.examples[ending as usize]);
            if count > 0 {
                begin_record(host, record);
                // After the votes of the host, whose slots have lower numbers.
                record.extend_from_slice(&[FIRST_RESPONSE + u8::from(is_https), ending as u8]);
                UrlSample { count, first: example.iter().cloned().collect() }.write(record);
                groups.push(record)?;
            }
        }
    }
    Ok(())
}

fn begin_record(host: &[u8], record: &mut Vec<u8>) {
    record.clear();
    record.put_text(group_of(host));
    record.push(ABOUT_HOST);
    record.put_text(host);
}

/// The number of responses of `http` among the slots of votes.
const FIRST_RESPONSE: u8 = 16;

impl VoteSlot {
    fn number(self) -> u8 {
        match self {
            VoteSlot::Origin { is_https } => u8::from(is_https),
            VoteSlot::PathEnding(ending) => 2 + ending as u8,
        }
    }

    fn numbered(number: u8) -> VoteSlot {
        match number {
            0 | 1 => VoteSlot::Origin { is_https: number == 1 },
            _ => VoteSlot::PathEnding(PathEnding::numbered(number - 2)),
        }
    }
}

/// The votes of the hosts of a group.
#[derive(Debug, Default)]
pub(super) struct GroupVotes(HostVotes);

impl GroupVotes {
    /// Adds the votes that a record contains about a host; `fields` begin after the group. Returns false if
    /// the record contains no votes.
    pub(super) fn add(&mut self, mut fields: FieldReader<'_>) -> bool {
        if fields.u8() != ABOUT_HOST {
            return false;
        }
        let (host, slot, rule) = (fields.text(), fields.u8(), fields.u8());
        let sample = UrlSample::read(&mut fields);
        if let Some(is_https) = slot.checked_sub(FIRST_RESPONSE) {
            self.add_responses(host, is_https == 1, PathEnding::numbered(rule), &sample);
            return true;
        }
        let votes = votes_of(&mut self.0, host, VoteSlot::numbered(slot));
        match RewritePattern::numbered(rule) {
            Some(rule) => votes.rules.entry(rule).or_default().add_all(&sample),
            None => votes.against.add_all(&sample),
        }
        true
    }

    /// Counts URLs that responded with a success status. They only matter where a redirect voted.
    fn add_responses(&mut self, host: &[u8], is_https: bool, ending: PathEnding, responses: &UrlSample) {
        let Some(slots) = self.0.get_mut(host) else { return };
        for slot in [VoteSlot::Origin { is_https }, VoteSlot::PathEnding(ending)] {
            if let Some(votes) = slots.get_mut(&slot) {
                votes.against.add_all(responses);
            }
        }
    }

    /// Returns the patterns of the group, and adds the numbers of patterns that were not learned.
    pub(super) fn learn(self, limits: &LearnLimits, refused: &mut RefusedPatterns) -> Vec<Pattern> {
        let mut patterns = Vec::new();
        for (host, slots) in self.0 {
            for pattern in slots.into_values().filter_map(|votes| best_rule(&host, votes)) {
                match pattern {
                    _ if pattern.support < limits.min_support.max(1) => refused.support += 1,
                    _ if pattern.confidence() < limits.min_confidence => refused.confidence += 1,
                    _ => patterns.push(pattern),
                }
            }
        }
        let learned = patterns.len();
        remove_loops(&mut patterns);
        refused.circular += (learned - patterns.len()) as u64;
        patterns
    }
}

/// Returns the pattern with the most votes; votes for other patterns count against it.
fn best_rule(host: &[u8], votes: RuleVotes) -> Option<Pattern> {
    let RuleVotes { mut rules, mut against } = votes;
    let (&rule, _) = rules.iter().rev().max_by_key(|(_, urls)| urls.count)?;
    let confirming = rules.remove(&rule)?;
    rules.values().for_each(|other| against.add_all(other));
    let (support, counter) = (confirming.count, against.count);
    Some(Pattern {
        host: host.to_vec(),
        rewrite: rule,
        support,
        counter,
        examples: confirming.first,
        counter_examples: against.first,
    })
}

/// Removes patterns that would never end when they are applied one after the other: origins that lead to each other in a
/// loop, and slashes that one pattern of a host adds and another removes.
fn remove_loops(patterns: &mut Vec<Pattern>) {
    let mut numbers = BTreeMap::new();
    let mut number = |host: Vec<u8>, is_https: bool| {
        let next = numbers.len();
        *numbers.entry((host, is_https)).or_insert(next)
    };
    let mut steps = Vec::new();
    for pattern in patterns.iter() {
        let RewritePattern::Origin(rule) = pattern.rewrite else { continue };
        let Some(host) = rule.host(&pattern.host) else { continue };
        steps.push((number(pattern.host.clone(), rule.from_https), number(host, rule.to_https)));
    }
    let mut next = vec![NOWHERE; numbers.len()];
    steps.into_iter().for_each(|(from, to)| next[from] = to as u32);
    let loops = mark_loops(&next);
    let stripped: BTreeSet<Vec<u8>> = hosts_with(patterns, |rule| rule == RewritePattern::StripSlash);
    let added = hosts_with(patterns, |rule| matches!(rule, RewritePattern::AddSlash | RewritePattern::AddSlashToFiles));
    patterns.retain(|pattern| match pattern.rewrite {
        RewritePattern::Origin(rule) => {
            numbers.get(&(pattern.host.clone(), rule.from_https)).is_some_and(|at| !loops[*at])
        }
        _ => !(stripped.contains(&pattern.host) && added.contains(&pattern.host)),
    });
}

fn hosts_with(patterns: &[Pattern], predicate: impl Fn(RewritePattern) -> bool) -> BTreeSet<Vec<u8>> {
    patterns.iter().filter(|pattern| predicate(pattern.rewrite)).map(|pattern| pattern.host.clone()).collect()
}
