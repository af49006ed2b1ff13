//! What a survey found: [`Findings`]. Every number is a share of a sample, applied to a total that is known exactly, so that
//! parts never exceed their total.

use super::groups::{GroupSample, GroupSet, UriSample};
use super::records::{RecordSample, RowFate};
use crate::iri::Parts;
use std::collections::{BTreeMap, HashMap};

/// Hosts in the findings.
const REPORTED_HOSTS: usize = 20;

/// Keys in the findings.
const REPORTED_KEYS: usize = 10;

/// Minimum number of sampled records of a key whose number of records is estimated.
const MIN_SAMPLED: u64 = 16;

/// Maximum number of pairs of URIs whose rules are found, because that takes about 10 microseconds per pair.
const MAX_PAIRS: u64 = 4096;

/// Maximum number of examples of a rule.
const MAX_EXAMPLES: usize = 3;

/// Numbers of rows without a fault, by what became of them. They are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SurveyTotals {
    pub(crate) kept: u64,
    pub(crate) duplicates: u64,
    pub(crate) seen: u64,
}

/// A number that was counted, or estimated from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) value: u64,
    /// The true number differs by more than this in one of 20 cases; 0 if it was counted.
    pub(crate) margin: u64,
}

/// A sample and what it was taken from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    pub(crate) sampled: u64,
    pub(crate) all: u64,
}

impl Coverage {
    /// Everything was counted.
    pub(crate) fn is_whole(self) -> bool {
        self.sampled >= self.all
    }

    /// The share of the sample, applied to all.
    fn scale(self, part: u64) -> u64 {
        match self.sampled {
            0 => 0,
            _ if self.is_whole() => part,
            sampled => (u128::from(part) * u128::from(self.all) / u128::from(sampled)) as u64,
        }
    }

    /// The margin of a sum of `all` values: twice the standard error of `sampled` of them, of which the sum and the sum of
    /// the squares are known.
    fn margin(self, sum: f64, squares: f64) -> f64 {
        if self.is_whole() || self.sampled < 2 {
            return 0.0;
        }
        let (sampled, all) = (self.sampled as f64, self.all as f64);
        let variance = ((squares - sum * sum / sampled) / (sampled - 1.0)).max(0.0);
        let margin = 2.0 * (variance / sampled * (1.0 - sampled / all)).sqrt();
        // If no member or every member of a sample has a property, the true share still differs by up to 3 divided by the size
        // of the sample in 19 of 20 cases.
        all * margin.max(3.0 / sampled)
    }

    /// The number of members of all with a property that `part` members of the sample have.
    fn estimate(self, part: u64) -> Estimate {
        Estimate { value: self.scale(part), margin: self.margin(part as f64, part as f64).ceil() as u64 }
    }
}

/// Divides `total` in the proportions of `parts`. The result adds up to `total`, unless all parts are 0.
fn apportion(total: u64, parts: &[u64]) -> Vec<u64> {
    let sum: u128 = parts.iter().map(|part| u128::from(*part)).sum();
    if sum == 0 {
        return vec![0; parts.len()];
    }
    let product = |part: u64| u128::from(part) * u128::from(total);
    let mut shares: Vec<u64> = parts.iter().map(|part| (product(*part) / sum) as u64).collect();
    let mut by_remainder: Vec<usize> = (0..parts.len()).collect();
    by_remainder.sort_by_key(|&i| std::cmp::Reverse(product(parts[i]) % sum));
    let missing = total - shares.iter().sum::<u64>();
    by_remainder.iter().take(missing as usize).for_each(|&i| shares[i] += 1);
    shares
}

/// The result of a survey.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Findings {
    /// Groups of records with the same key, one per kept record.
    pub(crate) groups: Coverage,
    /// Records without a fault.
    pub(crate) records: Coverage,
    /// Groups by their size. They add up to the number of groups.
    pub(crate) sizes: Vec<SizeClass>,
    /// Duplicates by the lowest rung that makes them equal: `simple`, `syntax`, the policy's rung, and the compared key.
    /// They add up to the number of duplicates.
    pub(crate) by_step: [Estimate; 4],
    /// Effects of the rules that give different URIs the same key.
    pub(crate) rules: BTreeMap<String, RuleFindings>,
    /// URIs of sampled groups with several rows that have digests, and the number of those whose digests differ: pages
    /// that change by themselves.
    pub(crate) repeated: (u64, u64),
    /// Hosts with the most records.
    pub(crate) hosts: Vec<HostFindings>,
    /// Keys with the most records.
    pub(crate) keys: Vec<KeyFindings>,
}

/// Groups of similar size.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SizeClass {
    /// Minimum number of rows of a group.
    pub(crate) from: u64,
    /// Maximum number of rows of a group.
    pub(crate) to: u64,
    /// Number of groups.
    pub(crate) groups: Estimate,
}

/// The effect of a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleFindings {
    /// URIs that the rule merged with the first URI of their group.
    pub(crate) merged: Estimate,
    /// Those of them in the sample where both URIs have a digest.
    pub(crate) compared: u64,
    /// Those of the compared ones that have no digest in common.
    pub(crate) differing: u64,
    /// Pairs of such URIs.
    pub(crate) examples: Vec<(String, String)>,
}

/// A host and its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HostFindings {
    /// The host.
    pub(crate) host: String,
    /// Its records.
    pub(crate) records: Estimate,
    /// Those of them that are duplicates.
    pub(crate) duplicates: Estimate,
}

/// A key and its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct KeyFindings {
    /// One of the URIs with the key, cut after some hundred bytes.
    pub(crate) uri: String,
    /// Records with the key.
    pub(crate) records: Estimate,
}

impl Findings {
    /// The findings of two samples.
    pub(super) fn new(
        groups: &GroupSet,
        records: &[RecordSample],
        totals: &SurveyTotals,
        rules: impl Fn(&[u8], &[u8]) -> Vec<String>,
    ) -> Findings {
        let sampled = groups.iter().len() as u64;
        let all = if groups.is_whole() { sampled } else { totals.kept.max(sampled) };
        let coverage = Coverage { sampled, all };
        let by_step = by_step(groups, coverage, totals.duplicates);
        let mut findings = Findings {
            groups: coverage,
            records: Coverage { sampled: records.len() as u64, all: totals.kept + totals.duplicates + totals.seen },
            sizes: sizes(groups, coverage),
            by_step,
            repeated: repeated(groups),
            hosts: hosts(records, totals),
            keys: keys(records, totals),
            ..Findings::default()
        };
        findings.find_rules(groups, rules);
        findings
    }

    /// The rules that merged pairs of URIs, in the first groups of the sample, and whether their contents differ.
    fn find_rules(&mut self, groups: &GroupSet, rules: impl Fn(&[u8], &[u8]) -> Vec<String>) {
        let (mut pairs, mut merged) = (0, BTreeMap::<String, u64>::new());
        let with_several = groups.iter().filter(|group| group.uris.len() > 1);
        for group in with_several {
            let mut uris: Vec<&UriSample> = group.uris.iter().filter(|uri| !uri.uri.is_empty()).collect();
            uris.sort_unstable_by(|a, b| a.uri.cmp(&b.uri));
            let others = uris.get(1..).unwrap_or_default();
            for other in &others[..others.len().min((MAX_PAIRS - pairs) as usize)] {
                pairs += 1;
                for rule in rules(&uris[0].uri, &other.uri) {
                    *merged.entry(rule.clone()).or_default() += 1;
                    self.rules.entry(rule).or_default().compare(uris[0], other);
                }
            }
        }
        // Each pair is one of the records that only the compared key makes duplicates.
        let Estimate { value: all, margin } = self.by_step[3];
        let coverage = Coverage { sampled: pairs, all };
        for (name, rule) in &mut self.rules {
            let Estimate { value, margin: own } = coverage.estimate(merged[name].min(pairs));
            let inherited = u128::from(margin) * u128::from(value) / u128::from(all.max(1));
            rule.merged = Estimate { value, margin: own + inherited as u64 };
        }
    }
}

impl RuleFindings {
    fn compare(&mut self, first: &UriSample, other: &UriSample) {
        let have_digests = !first.digests.is_empty() && !other.digests.is_empty();
        let differ = have_digests && !first.digests.iter().any(|digest| other.digests.contains(digest));
        self.compared += u64::from(have_digests);
        self.differing += u64::from(differ);
        if differ && self.examples.len() < MAX_EXAMPLES {
            let text = |sample: &UriSample| String::from_utf8_lossy(&sample.uri).into_owned();
            self.examples.push((text(first), text(other)));
        }
    }
}

/// Duplicates by the rung that makes them equal. The number of different texts of a group does not depend on how often each
/// occurs, so that the estimates of the last three steps are good even if few groups have most records; what remains of the
/// exact number of duplicates are records with identical texts.
fn by_step(groups: &GroupSet, coverage: Coverage, duplicates: u64) -> [Estimate; 4] {
    let mut sums = [0; 3];
    // Sums and sums of squares, of each step and of all three.
    let mut moments = [(0.0, 0.0); 4];
    for group in groups.iter() {
        let [simple, syntax, rung] = group.distinct();
        let steps = [simple - syntax, syntax - rung, rung - 1];
        sums.iter_mut().zip(steps).for_each(|(sum, step)| *sum += step);
        for (moment, step) in moments.iter_mut().zip([steps[0], steps[1], steps[2], simple - 1]) {
            *moment = (moment.0 + step as f64, moment.1 + (step as f64).powi(2));
        }
    }
    let mut values: Vec<u64> = sums.iter().map(|sum| coverage.scale(*sum)).collect();
    if values.iter().sum::<u64>() > duplicates {
        values = apportion(duplicates, &values);
    }
    let margin = |step: usize| coverage.margin(moments[step].0, moments[step].1).ceil() as u64;
    let estimate = |step: usize| Estimate { value: values[step], margin: margin(step) };
    let identical = Estimate { value: duplicates - values.iter().sum::<u64>(), margin: margin(3) };
    [identical, estimate(0), estimate(1), estimate(2)]
}

/// Groups by their sizes, which double from class to class.
fn sizes(groups: &GroupSet, coverage: Coverage) -> Vec<SizeClass> {
    let mut classes: BTreeMap<u64, u64> = BTreeMap::new();
    groups.iter().for_each(|group| *classes.entry(group.rows.next_power_of_two()).or_default() += 1);
    let counts: Vec<u64> = classes.values().copied().collect();
    let values = apportion(coverage.all, &counts);
    let class = |((to, count), value): ((u64, u64), u64)| SizeClass {
        from: to / 2 + 1,
        to,
        groups: Estimate { value, ..coverage.estimate(count) },
    };
    classes.into_iter().zip(values).map(class).collect()
}

fn repeated(groups: &GroupSet) -> (u64, u64) {
    let uris = groups.iter().flat_map(|group: &GroupSample| &group.uris).filter(|uri| uri.rows_with_digest > 1);
    uris.fold((0, 0), |(all, differing), uri| (all + 1, differing + u64::from(uri.digests.len() > 1)))
}

/// Sampled records by what became of them, and all records.
struct FateCounts {
    sampled: [u64; 3],
    totals: [u64; 3],
}

impl FateCounts {
    fn index(fate: RowFate) -> usize {
        match fate {
            RowFate::Kept => 0,
            RowFate::Duplicate | RowFate::Pending => 1,
            RowFate::Seen => 2,
        }
    }

    fn new(records: &[RecordSample], totals: &SurveyTotals) -> FateCounts {
        let mut sampled = [0; 3];
        records.iter().for_each(|record| sampled[FateCounts::index(record.fate)] += 1);
        FateCounts { sampled, totals: [totals.kept, totals.duplicates, totals.seen] }
    }

    /// The number of all records that correspond to `parts` sampled ones, and the number of duplicates among them.
    fn estimate(&self, parts: [u64; 3]) -> (Estimate, Estimate) {
        let estimates = [0, 1, 2].map(|i| {
            let coverage = Coverage { sampled: self.sampled[i], all: self.totals[i] };
            coverage.estimate(parts[i])
        });
        // The margins of independent estimates add up as the sides of a right triangle.
        let margin = estimates.iter().map(|estimate| (estimate.margin as f64).powi(2)).sum::<f64>().sqrt();
        let value = estimates.iter().map(|estimate| estimate.value).sum();
        (Estimate { value, margin: margin.ceil() as u64 }, estimates[1])
    }
}

/// The hosts with the most records.
fn hosts(records: &[RecordSample], totals: &SurveyTotals) -> Vec<HostFindings> {
    let fates = FateCounts::new(records, totals);
    let mut hosts: HashMap<&[u8], [u64; 3]> = HashMap::new();
    for record in records {
        let host = Parts::split(&record.uri).host(&record.uri).unwrap_or_default();
        if !host.is_empty() {
            hosts.entry(host).or_default()[FateCounts::index(record.fate)] += 1;
        }
    }
    let mut hosts: Vec<_> = hosts
        .into_iter()
        .map(|(host, parts)| (fates.estimate(parts), host))
        .map(|((records, duplicates), host)| {
            (records.value, host, HostFindings { host: String::new(), records, duplicates })
        })
        .collect();
    hosts.sort_unstable_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    let named = |(_, host, found): (u64, &[u8], HostFindings)| HostFindings {
        host: String::from_utf8_lossy(host).into_owned(),
        ..found
    };
    hosts.into_iter().take(REPORTED_HOSTS).map(named).collect()
}

/// The keys with the most records: at least two, or [`MIN_SAMPLED`] if `records` are a sample.
fn keys(records: &[RecordSample], totals: &SurveyTotals) -> Vec<KeyFindings> {
    let fates = FateCounts::new(records, totals);
    let is_whole = records.len() as u64 >= fates.totals.iter().sum();
    let mut keys: HashMap<u128, ([u64; 3], &[u8])> = HashMap::new();
    for record in records {
        let (parts, uri) = keys.entry(record.key).or_insert(([0; 3], &record.uri));
        parts[FateCounts::index(record.fate)] += 1;
        *uri = (*uri).min(&record.uri);
    }
    let least = if is_whole { 2 } else { MIN_SAMPLED };
    let frequent = keys.into_iter().filter(|(_, (parts, _))| parts.iter().sum::<u64>() >= least);
    // At most one record of a key is kept, and no share of a sample is needed to know that.
    let estimate = |[kept, duplicates, seen]: [u64; 3]| {
        let left_out = fates.estimate([0, duplicates, seen]).0;
        Estimate { value: left_out.value + u64::from(seen == 0 || kept > 0), ..left_out }
    };
    let mut frequent: Vec<_> = frequent.map(|(key, (parts, uri))| (estimate(parts), uri, key)).collect();
    // URIs are cut, so several keys may have the same one.
    frequent.sort_unstable_by(|a, b| (b.0.value, a.1, a.2).cmp(&(a.0.value, b.1, b.2)));
    let named = |(records, uri, _): (Estimate, &[u8], u128)| KeyFindings {
        uri: String::from_utf8_lossy(uri).into_owned(),
        records,
    };
    frequent.into_iter().take(REPORTED_KEYS).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twice the standard error, from the textbook: the square root of variance / n * (1 - n / N), times N.
    #[test]
    fn estimates_have_the_margin_of_a_sample() {
        let sample = Coverage { sampled: 100, all: 10_000 };
        assert_eq!(sample.estimate(0), Estimate { value: 0, margin: 300 });
        let Estimate { value, margin } = sample.estimate(20);
        assert!(value == 2000 && margin.abs_diff(800) <= 1, "{margin}");
        // Values with the sum 300 and the variance 400 / 99.
        assert!((sample.margin(300.0, 1300.0) - 4000.0).abs() < 0.001);
        // Half of all is in the sample.
        let half = Coverage { sampled: 100, all: 200 };
        assert!((half.margin(300.0, 1300.0) - 200.0 * 2.0 * (2.0f64 / 99.0).sqrt()).abs() < 0.001);
        assert_eq!(Coverage { sampled: 2, all: 10 }.estimate(0).margin, 15);
        assert_eq!(Coverage { sampled: 1, all: 10 }.estimate(1), Estimate { value: 10, margin: 0 });
        assert_eq!(Coverage { sampled: 100, all: 100 }.estimate(20), Estimate { value: 20, margin: 0 });
        assert_eq!(Coverage { sampled: 0, all: 100 }.estimate(0), Estimate { value: 0, margin: 0 });
    }

    /// What is left goes to the shares that lost most by rounding.
    #[test]
    fn shares_add_up_to_the_total() {
        assert_eq!(apportion(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(apportion(10, &[1, 3, 5]), [1, 3, 6]);
        assert_eq!(apportion(11, &[8, 5, 7]), [4, 3, 4]);
        assert_eq!(apportion(7, &[0, 0]), [0, 0]);
    }
}
