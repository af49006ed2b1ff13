//! Captures on which rules about content are tried instead of being learned from them: [`HoldOut`], [`validate`].
//!
//! A share of the sites is held out as a whole, unless there is only one site; only rules for all hosts apply to them. Of the
//! other sites, the latest captures are held out; if all captures are of one day, a share of the URLs.

use super::rule_collector::BatchSpool;
use crate::learn::Equivalences;
use crate::learn::content::{HostCaptures, RuleScores, ScopedRule, site_of};
use crate::spill::SpillError;
use arrow::array::{
    ArrayRef, AsArray, BinaryBuilder, BooleanBuilder, Float64Array, RecordBatch, UInt32Array, UInt64Array,
};
use arrow::datatypes::{Float64Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use parking_lot::Mutex;
use std::sync::Arc;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Days that captures are counted by, from 1970.
const DAYS: usize = 1 << 16;

/// Returns the day of a time since 1970 in milliseconds; 0 if it is unknown.
pub(super) fn day_of(time: Option<i64>) -> i32 {
    const MS: i64 = 24 * 60 * 60 * 1000;
    time.map_or(0, |time| (time / MS).clamp(0, DAYS as i64 - 1) as i32)
}

/// Of how many sites captures are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SiteCount {
    #[default]
    None,
    /// One, with this hash.
    One(u64),
    Several,
}

impl SiteCount {
    pub(super) fn add_host(&mut self, host: &[u8]) {
        if *self != SiteCount::Several {
            self.add(SiteCount::One(xxh3_64(site_of(host))));
        }
    }

    fn add(&mut self, other: SiteCount) {
        *self = match (*self, other) {
            (SiteCount::None, known) | (known, SiteCount::None) => known,
            (a, b) if a == b => a,
            _ => SiteCount::Several,
        };
    }
}

/// What decides which captures are held out: numbers of captures by day, and of how many sites they are.
#[derive(Debug, Default)]
pub(super) struct DayCounts(Mutex<(Vec<u64>, SiteCount)>);

impl DayCounts {
    pub(super) fn add(&self, days: &[i32], sites: SiteCount) {
        let (counts, known) = &mut *self.0.lock();
        known.add(sites);
        counts.resize(DAYS, 0);
        for day in days {
            if let Some(count) = usize::try_from(*day).ok().and_then(|day| counts.get_mut(day)) {
                *count += 1;
            }
        }
    }

    fn has_several_sites(&self) -> bool {
        self.0.lock().1 == SiteCount::Several
    }

    /// Returns the first day of the last days that have at most this share of all captures; `None` if there is no such day.
    fn first_held_out(&self, share: f64) -> Option<i32> {
        let (counts, _) = &*self.0.lock();
        let limit = counts.iter().sum::<u64>() as f64 * share;
        let (mut sum, mut first) = (0, None);
        for (day, count) in counts.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
            sum += count;
            if sum as f64 > limit {
                break;
            }
            first = Some(day as i32);
        }
        first
    }
}

/// Which captures are held out.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldOut {
    share: f64,
    first_day: Option<i32>,
    has_several_sites: bool,
}

impl HoldOut {
    /// Holds out a share of the captures; nothing if it is 0.
    pub(super) fn new(share: f64, days: &DayCounts) -> HoldOut {
        let first_day = if share > 0.0 { days.first_held_out(share) } else { None };
        HoldOut { share, first_day, has_several_sites: days.has_several_sites() }
    }

    /// Returns whether all captures of the host's site are held out.
    pub(super) fn contains_site(&self, host: &[u8]) -> bool {
        self.has_several_sites && self.is_chosen(xxh3_64_with_seed(site_of(host), 1))
    }

    /// Returns whether a capture is held out.
    pub(super) fn contains(&self, uri: &[u8], day: i32) -> bool {
        match self.first_day {
            _ if self.share <= 0.0 => false,
            Some(first) => day >= first,
            None => self.is_chosen(xxh3_64(uri)),
        }
    }

    fn is_chosen(&self, hash: u64) -> bool {
        ((hash >> 11) as f64 / (1u64 << 53) as f64) < self.share
    }
}

/// Held out captures of a host.
#[derive(Debug)]
pub(super) struct HeldOutHost<'a> {
    pub(super) host: &'a [u8],
    pub(super) captures: &'a HostCaptures,
    /// How much the contents of the host change, as the captures show that are not held out.
    pub(super) noise: f64,
    /// The whole site is held out.
    pub(super) is_site: bool,
}

/// Encodes held out captures for [`BatchSpool::append`].
pub(super) fn encode_held_out<'a>(hosts: impl Iterator<Item = HeldOutHost<'a>>) -> Result<Vec<u8>, SpillError> {
    let (mut names, mut uris, mut is_site) = (BinaryBuilder::new(), BinaryBuilder::new(), BooleanBuilder::new());
    let (mut contents, mut counts, mut noises) = (Vec::new(), Vec::new(), Vec::new());
    for host in hosts {
        for url in 0..host.captures.len() {
            for ((content, _), count) in host.captures.contents(url).iter().zip(host.captures.counts(url)) {
                names.append_value(host.host);
                uris.append_value(host.captures.uri(url));
                contents.push(*content);
                counts.push(count);
                noises.push(host.noise);
                is_site.append_value(host.is_site);
            }
        }
    }
    if contents.is_empty() {
        return Ok(Vec::new());
    }
    let columns: [(&str, ArrayRef); 6] = [
        ("host", Arc::new(names.finish())),
        ("uri", Arc::new(uris.finish())),
        ("content", Arc::new(UInt64Array::from(contents))),
        ("count", Arc::new(UInt32Array::from(counts))),
        ("noise", Arc::new(Float64Array::from(noises))),
        ("is_site", Arc::new(is_site.finish())),
    ];
    BatchSpool::encode(&RecordBatch::try_from_iter(columns)?)
}

/// Scores of rules on held out captures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Validation {
    /// Later captures, or other URLs, of sites that rules were learned from.
    pub(crate) known_sites: RuleScores,
    /// Captures of other sites.
    pub(crate) other_sites: RuleScores,
}

/// Tries rules on all captures.
pub(super) fn validate(held_out: &BatchSpool, rules: &Equivalences) -> Result<Validation, SpillError> {
    let mut validation = Validation::default();
    for batch in held_out.batches() {
        add_scores(&batch?, rules, &mut validation)?;
    }
    Ok(validation)
}

fn add_scores(batch: &RecordBatch, rules: &Equivalences, validation: &mut Validation) -> Result<(), SpillError> {
    let missing = || SpillError::Arrow(ArrowError::SchemaError("held out captures have other columns".to_string()));
    let text = |at: usize| batch.column(at).as_binary_opt::<i32>().ok_or_else(missing);
    let (hosts, uris) = (text(0)?, text(1)?);
    let contents = batch.column(2).as_primitive_opt::<UInt64Type>().ok_or_else(missing)?;
    let counts = batch.column(3).as_primitive_opt::<UInt32Type>().ok_or_else(missing)?;
    let noises = batch.column(4).as_primitive_opt::<Float64Type>().ok_or_else(missing)?;
    let is_site = batch.column(5).as_boolean_opt().ok_or_else(missing)?;
    let mut row = 0;
    while row < batch.num_rows() {
        let (host, first, mut captures) = (hosts.value(row), row, HostCaptures::default());
        while row < batch.num_rows() && hosts.value(row) == host {
            captures.push_repeated(uris.value(row), contents.value(row), counts.value(row));
            row += 1;
        }
        let rules: Vec<ScopedRule> = rules.rules_of(host);
        let scores = if is_site.value(first) { &mut validation.other_sites } else { &mut validation.known_sites };
        scores.add(&captures, &rules, noises.value(first));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_days_are_held_out() {
        let days = DayCounts::default();
        days.add(&[10, 10, 10, 10, 10, 11, 11, 12, 13, 14], SiteCount::Several);
        let first = |share| HoldOut::new(share, &days).first_day;
        assert_eq!((first(0.3), first(0.39), first(0.5), first(0.05)), (Some(12), Some(12), Some(11), None));
        let (none, some) = (HoldOut::new(0.0, &days), HoldOut::new(0.3, &days));
        assert!(!none.contains(b"http://a/", 14) && !none.contains_site(b"a"));
        assert!(some.contains(b"http://a/", 12) && !some.contains(b"http://a/", 11));
        let chosen = (0..1000).filter(|i| some.contains_site(format!("a{i}.example").as_bytes())).count();
        assert!((250..350).contains(&chosen), "{chosen}");
    }

    #[test]
    fn a_single_site_is_not_held_out() {
        let of_hosts = |hosts: &[&[&str]]| {
            let days = DayCounts::default();
            for group in hosts {
                let mut sites = SiteCount::default();
                group.iter().for_each(|host| sites.add_host(host.as_bytes()));
                days.add(&[10], sites);
            }
            let hold_out = HoldOut::new(0.9, &days);
            hosts.iter().flat_map(|group| group.iter()).any(|host| hold_out.contains_site(host.as_bytes()))
        };
        assert!(!of_hosts(&[&["a.example", "www.a.example"], &[], &["a.example"]]));
        assert!(of_hosts(&[&["a.example", "a.test"]]) && of_hosts(&[&["a.example"], &["a.test"]]));
    }
}
