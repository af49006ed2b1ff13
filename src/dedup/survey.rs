//! A survey of duplicates in bounded memory: how large groups of duplicates are, which step made rows duplicates, where
//! members of a group have different content, and which hosts have the most records.
//!
//! ```text
//! rows of a row group --RowGroupSurvey::add--> groups and hosts --DuplicateSurvey::add, in input order-->
//!     sample of groups, counts of hosts --DuplicateSurvey::finish--> Findings
//! ```
//!
//! Groups are sampled by their key: the sample has the groups whose low key bits are at most a bound, which is lowered
//! when the sample becomes too large. A group is sampled as a whole or not at all, the sample depends on the keys alone,
//! and the findings are exact if all groups fit. Of a large group the smallest members are remembered, so that the order
//! of rows does not matter. Hosts are counted with the algorithm of Misra and Gries, which states its error.

use crate::iri::Parts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most spellings, URIs and digests in the sample: about 30 MB with their texts.
const MAX_SAMPLE_WEIGHT: usize = 1 << 17;

/// Most different spellings and URIs of a group.
const MAX_SPELLINGS: usize = 4096;

/// Most different digests of a URI.
const MAX_DIGESTS: usize = 4;

/// Most hosts that are counted at a time.
const MAX_HOSTS: usize = 1 << 16;

/// Hosts in the findings.
const REPORTED_HOSTS: usize = 20;

/// Most examples of a rule.
const MAX_EXAMPLES: usize = 3;

/// A row without a fault, as the survey sees it.
#[derive(Clone, Debug)]
pub(crate) struct SurveyRow<'a> {
    /// The key that the row competes for.
    pub(crate) key: u128,
    /// First bits of its keys of the rungs `simple` and `syntax`, and of the policy's rung.
    pub(crate) rungs: [u64; 3],
    pub(crate) uri: &'a [u8],
    /// Hash of the digest of its content, if the response had content.
    pub(crate) digest: Option<u64>,
}

/// Low bits of a key, by which groups are sampled, and the key.
type GroupKey = (u64, u128);

/// A sampled group of duplicates.
#[derive(Debug, Default)]
struct GroupSample {
    rows: u64,
    simple: BTreeSet<u64>,
    syntax: BTreeSet<u64>,
    /// URIs, by their key of the policy's rung.
    uris: BTreeMap<u64, UriSample>,
}

#[derive(Debug, Default)]
struct UriSample {
    uri: Vec<u8>,
    rows_with_digest: u64,
    digests: BTreeSet<u64>,
}

/// Inserts a value unless the set has `max` smaller values.
fn insert_smallest(set: &mut BTreeSet<u64>, value: u64, max: usize) {
    if set.len() < max || set.last().is_some_and(|last| value < *last) {
        set.insert(value);
        if set.len() > max {
            set.pop_last();
        }
    }
}

impl GroupSample {
    fn weight(&self) -> usize {
        let digests: usize = self.uris.values().map(|uri| uri.digests.len()).sum();
        self.simple.len() + self.syntax.len() + 2 * self.uris.len() + digests
    }

    fn trim(&mut self) {
        while self.uris.len() > MAX_SPELLINGS {
            self.uris.pop_last();
        }
    }

    fn merge(&mut self, other: GroupSample) {
        self.rows += other.rows;
        other.simple.into_iter().for_each(|key| insert_smallest(&mut self.simple, key, MAX_SPELLINGS));
        other.syntax.into_iter().for_each(|key| insert_smallest(&mut self.syntax, key, MAX_SPELLINGS));
        for (key, sample) in other.uris {
            let uri = self.uris.entry(key).or_insert_with(|| UriSample { uri: sample.uri, ..UriSample::default() });
            uri.rows_with_digest += sample.rows_with_digest;
            sample.digests.into_iter().for_each(|digest| insert_smallest(&mut uri.digests, digest, MAX_DIGESTS));
        }
        self.trim();
    }
}

/// The groups and hosts of one row group.
#[derive(Debug, Default)]
pub(crate) struct RowGroupSurvey {
    groups: BTreeMap<GroupKey, GroupSample>,
    hosts: HashMap<Vec<u8>, u64>,
}

impl RowGroupSurvey {
    /// Adds a row.
    pub(crate) fn add(&mut self, survey: &DuplicateSurvey, row: &SurveyRow<'_>) {
        let host = Parts::split(row.uri).host(row.uri).unwrap_or_default();
        match self.hosts.get_mut(host) {
            _ if host.is_empty() => (),
            Some(count) => *count += 1,
            None => {
                self.hosts.insert(host.to_vec(), 1);
            }
        }
        let low_bits = row.key as u64;
        if low_bits > survey.bound.load(Ordering::Relaxed) {
            return;
        }
        let group = self.groups.entry((low_bits, row.key)).or_default();
        group.rows += 1;
        let [simple, syntax, rung] = row.rungs;
        insert_smallest(&mut group.simple, simple, MAX_SPELLINGS);
        insert_smallest(&mut group.syntax, syntax, MAX_SPELLINGS);
        let uri = group.uris.entry(rung).or_insert_with(|| UriSample { uri: row.uri.to_vec(), ..UriSample::default() });
        if let Some(digest) = row.digest {
            uri.rows_with_digest += 1;
            insert_smallest(&mut uri.digests, digest, MAX_DIGESTS);
        }
        group.trim();
    }
}

/// The survey of a run.
#[derive(Debug)]
pub(crate) struct DuplicateSurvey {
    /// Groups with greater low key bits are not in the sample.
    bound: AtomicU64,
    totals: Mutex<SurveyTotals>,
}

#[derive(Debug, Default)]
struct SurveyTotals {
    groups: BTreeMap<GroupKey, GroupSample>,
    /// Sum of the weights of `groups`.
    weight: usize,
    hosts: HashMap<Vec<u8>, u64>,
    /// Most records by which a count of `hosts` is too low.
    host_error: u64,
}

impl Default for DuplicateSurvey {
    fn default() -> DuplicateSurvey {
        DuplicateSurvey { bound: AtomicU64::new(u64::MAX), totals: Mutex::default() }
    }
}

impl DuplicateSurvey {
    /// Adds a row group. Row groups have to be added in input order, because the counts of hosts depend on it.
    pub(crate) fn add(&self, row_group: RowGroupSurvey) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, group) in row_group.groups {
            let sample = totals.groups.entry(key).or_default();
            let before = sample.weight();
            sample.merge(group);
            let after = sample.weight();
            totals.weight = totals.weight - before + after;
        }
        while totals.weight > MAX_SAMPLE_WEIGHT && totals.groups.len() > 1 {
            let Some(((low_bits, _), group)) = totals.groups.pop_last() else { break };
            totals.weight -= group.weight();
            self.bound.fetch_min(low_bits.saturating_sub(1), Ordering::Relaxed);
        }
        // A row group that was surveyed before the bound was lowered may have added groups above the bound.
        let bound = self.bound.load(Ordering::Relaxed);
        while let Some(last) = totals.groups.last_entry().filter(|last| last.key().0 > bound) {
            let group = last.remove();
            totals.weight -= group.weight();
        }
        for (host, count) in row_group.hosts {
            *totals.hosts.entry(host).or_default() += count;
        }
        totals.forget_rare_hosts();
    }

    /// The findings. `rules` names the rules that give two URIs the same key.
    pub(crate) fn finish(self, rules: impl Fn(&[u8], &[u8]) -> Vec<String>) -> Findings {
        let bound = self.bound.into_inner();
        let totals = self.totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        let share = if bound == u64::MAX { 1.0 } else { (bound as f64 + 1.0) / (u64::MAX as f64) };
        let mut findings = Findings { share, sampled: totals.groups.len() as u64, ..Findings::default() };
        let mut duplicates: HashMap<Vec<u8>, f64> = HashMap::new();
        for group in totals.groups.values() {
            findings.add(group, share, &rules);
            if let Some(first) = group.uris.values().map(|uri| &uri.uri[..]).min() {
                let host = Parts::split(first).host(first).unwrap_or_default();
                *duplicates.entry(host.to_vec()).or_default() += (group.rows - 1) as f64 / share;
            }
        }
        findings.host_error = totals.host_error;
        let mut hosts: Vec<_> = totals.hosts.into_iter().collect();
        hosts.sort_unstable_by(|(a, a_count), (b, b_count)| (b_count, a).cmp(&(a_count, b)));
        let host_findings = |(host, records): (Vec<u8>, u64)| HostFindings {
            duplicates: duplicates.get(&host).copied().unwrap_or(0.0),
            host: String::from_utf8_lossy(&host).into_owned(),
            records,
        };
        findings.hosts = hosts.into_iter().take(REPORTED_HOSTS).map(host_findings).collect();
        findings
    }
}

impl SurveyTotals {
    /// If there are too many hosts, subtracts the median count from all, which removes half of them.
    fn forget_rare_hosts(&mut self) {
        if self.hosts.len() <= MAX_HOSTS {
            return;
        }
        let mut counts: Vec<u64> = self.hosts.values().copied().collect();
        let middle = counts.len() - MAX_HOSTS / 2;
        let (_, subtracted, _) = counts.select_nth_unstable(middle);
        let subtracted = *subtracted;
        self.host_error += subtracted;
        self.hosts.retain(|_, count| {
            *count = count.saturating_sub(subtracted);
            *count > 0
        });
    }
}

/// The result of a survey. Numbers that are not whole are estimates from a sample, unless `share` is 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// The share of all keys that the sample has.
    pub share: f64,
    /// Groups in the sample.
    pub sampled: u64,
    /// Groups by their size.
    pub sizes: Vec<SizeClass>,
    /// Duplicates by the lowest rung that makes them equal: `simple`, `syntax`, the policy's rung, and the compared key.
    pub by_step: [f64; 4],
    /// Effects of the rules that give different URIs the same key.
    pub rules: BTreeMap<String, RuleFindings>,
    /// URIs with several rows that have digests, and the number of those whose digests differ: pages that change by
    /// themselves.
    pub repeated: (u64, u64),
    /// Hosts with the most records.
    pub hosts: Vec<HostFindings>,
    /// Most records by which [`HostFindings::records`] is too low.
    pub host_error: u64,
}

/// Groups of similar size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SizeClass {
    /// Least rows of a group.
    pub from: u64,
    /// Most rows of a group.
    pub to: u64,
    /// Number of groups.
    pub groups: f64,
    /// Rows in these groups.
    pub rows: f64,
}

/// The effect of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleFindings {
    /// URIs that the rule merged with the first URI of their group.
    pub merged: f64,
    /// Those of them in the sample where both URIs have a digest.
    pub compared: u64,
    /// Those of the compared ones that have no digest in common.
    pub differing: u64,
    /// Pairs of such URIs.
    pub examples: Vec<(String, String)>,
}

/// A host and its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostFindings {
    /// The host.
    pub host: String,
    /// A lower bound of its records.
    pub records: u64,
    /// Its duplicates.
    pub duplicates: f64,
}

impl Findings {
    fn add(&mut self, group: &GroupSample, share: f64, rules: &impl Fn(&[u8], &[u8]) -> Vec<String>) {
        let to = group.rows.next_power_of_two();
        let class = match self.sizes.iter().position(|class| class.to == to) {
            Some(at) => &mut self.sizes[at],
            None => {
                let at = self.sizes.partition_point(|class| class.to < to);
                self.sizes.insert(at, SizeClass { from: to / 2 + 1, to, ..SizeClass::default() });
                &mut self.sizes[at]
            }
        };
        class.groups += 1.0 / share;
        class.rows += group.rows as f64 / share;
        let [simple, syntax, uris] =
            [group.simple.len(), group.syntax.len(), group.uris.len()].map(|count| count as u64);
        let steps = [group.rows - simple, simple.saturating_sub(syntax), syntax.saturating_sub(uris), uris - 1];
        self.by_step.iter_mut().zip(steps).for_each(|(all, count)| *all += count as f64 / share);
        let mut uris: Vec<&UriSample> = group.uris.values().collect();
        uris.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
        for uri in uris.iter().filter(|uri| uri.rows_with_digest > 1) {
            self.repeated.0 += 1;
            self.repeated.1 += u64::from(uri.digests.len() > 1);
        }
        for other in &uris[1..] {
            self.compare(uris[0], other, share, rules);
        }
    }

    fn compare(
        &mut self,
        first: &UriSample,
        other: &UriSample,
        share: f64,
        rules: &impl Fn(&[u8], &[u8]) -> Vec<String>,
    ) {
        let have_digests = !first.digests.is_empty() && !other.digests.is_empty();
        let differ = have_digests && first.digests.is_disjoint(&other.digests);
        for rule in rules(&first.uri, &other.uri) {
            let findings = self.rules.entry(rule).or_default();
            findings.merged += 1.0 / share;
            findings.compared += u64::from(have_digests);
            findings.differing += u64::from(differ);
            if differ && findings.examples.len() < MAX_EXAMPLES {
                let text = |sample: &UriSample| String::from_utf8_lossy(&sample.uri).into_owned();
                findings.examples.push((text(first), text(other)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_set::key_number;
    use super::*;
    use crate::key::KeyAlgorithm;

    fn number(text: &str) -> u128 {
        key_number(&KeyAlgorithm::Xxh3.key(text.as_bytes()))
    }

    /// Surveys rows of `groups` groups: three spellings, two URIs, and digests that differ in every tenth group.
    fn survey(rows: &[usize], groups: usize, row_groups: usize) -> Findings {
        let survey = DuplicateSurvey::default();
        for rows in rows.chunks(rows.len().div_ceil(row_groups)) {
            let mut row_group = RowGroupSurvey::default();
            for &i in rows {
                let (group, uri) =
                    (i % groups, format!("http{}://h{}.test/{}", ["", "s"][i / groups % 2], i % 7, i % groups));
                let spelling = number(&format!("{uri} {}", i / groups % 3)) as u64;
                let rung = number(&uri) as u64;
                let row = SurveyRow {
                    key: number(&group.to_string()),
                    rungs: [spelling, rung, rung],
                    uri: uri.as_bytes(),
                    digest: Some(if group.is_multiple_of(10) { rung } else { 1 }),
                };
                row_group.add(&survey, &row);
            }
            survey.add(row_group);
        }
        survey.finish(|_, _| vec!["scheme".to_string()])
    }

    #[test]
    fn small_runs_are_exact_in_any_order() {
        let rows: Vec<usize> = (0..7_000).collect();
        let findings = survey(&rows, 1_000, 3);
        assert_eq!((findings.share, findings.sampled), (1.0, 1_000));
        assert_eq!(findings.sizes, [SizeClass { from: 5, to: 8, groups: 1_000.0, rows: 7_000.0 }]);
        assert_eq!(findings.by_step.iter().sum::<f64>(), 6_000.0);
        let rule = &findings.rules["scheme"];
        assert!(rule.differing * 9 < rule.compared && rule.differing > 0 && rule.examples.len() == MAX_EXAMPLES);
        let mut reversed = rows.clone();
        reversed.reverse();
        assert_eq!(survey(&reversed, 1_000, 5), findings);
    }

    #[test]
    fn large_runs_are_estimated_from_whole_groups() {
        let rows: Vec<usize> = (0..400_000).collect();
        let findings = survey(&rows, 100_000, 9);
        assert!(findings.share < 0.6 && findings.sampled > 1_000, "{} {}", findings.share, findings.sampled);
        let is_near = |value: f64, expected: f64| (value / expected - 1.0).abs() < 0.05;
        assert!(is_near(findings.sizes.iter().map(|class| class.groups).sum(), 100_000.0));
        assert!(is_near(findings.by_step.iter().sum(), 300_000.0));
        assert_eq!(findings.sizes.len(), 1);
        let mut rotated = rows;
        rotated.rotate_left(123_456);
        let other = survey(&rotated, 100_000, 4);
        assert_eq!((other.share, other.sampled, other.by_step), (findings.share, findings.sampled, findings.by_step));
    }

    #[test]
    fn the_most_frequent_hosts_are_kept() {
        let survey = DuplicateSurvey::default();
        for i in 0..10u64 {
            let mut row_group = RowGroupSurvey::default();
            row_group.hosts.insert(b"often".to_vec(), 1_000);
            row_group.hosts.extend((0..20_000u64).map(|host| ((i << 32 | host).to_be_bytes().to_vec(), 1)));
            survey.add(row_group);
        }
        let findings = survey.finish(|_, _| Vec::new());
        assert_eq!(findings.hosts[0].host, "often");
        assert!(findings.host_error > 0 && findings.hosts[0].records + findings.host_error >= 10_000);
    }
}
