//! Captures on which rules about content are tried instead of being learned from them: [`HoldOut`] chooses them, and
//! [`HeldOutSpool`] keeps them until the rules are known.
//!
//! A share of the sites is held out as a whole, unless there is only one site; only rules for all hosts apply to them. Of the
//! other sites, the latest captures are held out; if all captures are of one day, a share of the URLs.

use crate::learn::content::{HostCaptures, Period, RuleScores, UrlContent, site_of};
use crate::learn::{Equivalences, FieldReader, RecordFields};
use crate::spill::{FileRange, ScratchFile, SpillError};
use parking_lot::Mutex;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Returns the day of a time, from 1970. The time is in milliseconds since 1970; the day is 0 if it is unknown.
pub(super) fn day_of(time: Option<i64>) -> u16 {
    const MS: i64 = 24 * 60 * 60 * 1000;
    time.map_or(0, |time| (time / MS).clamp(0, i64::from(u16::MAX)) as u16)
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
    pub(super) fn add(&self, days: &[u16], sites: SiteCount) {
        let (counts, known) = &mut *self.0.lock();
        known.add(sites);
        counts.resize(usize::from(u16::MAX) + 1, 0);
        days.iter().for_each(|day| counts[usize::from(*day)] += 1);
    }

    fn has_several_sites(&self) -> bool {
        self.0.lock().1 == SiteCount::Several
    }

    /// Returns the first day of the last days that have at most this share of all captures; `None` if there is no such day.
    fn first_held_out(&self, share: f64) -> Option<u16> {
        let (counts, _) = &*self.0.lock();
        let limit = counts.iter().sum::<u64>() as f64 * share;
        let (mut sum, mut first) = (0, None);
        for (day, count) in counts.iter().enumerate().rev().filter(|(_, count)| **count > 0) {
            sum += count;
            if sum as f64 > limit {
                break;
            }
            first = Some(day as u16);
        }
        first
    }
}

/// Which captures are held out.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldOut {
    /// The share of the captures, above 0.
    share: f64,
    /// The first day that is held out; `None` if URLs are chosen instead.
    first_day: Option<u16>,
    has_several_sites: bool,
}

impl HoldOut {
    /// Holds out a share of the captures, which is above 0.
    pub(super) fn new(share: f64, days: &DayCounts) -> HoldOut {
        HoldOut { share, first_day: days.first_held_out(share), has_several_sites: days.has_several_sites() }
    }

    /// Returns whether all captures of the host's site are held out.
    pub(super) fn contains_site(&self, host: &[u8]) -> bool {
        self.has_several_sites && self.is_chosen(xxh3_64_with_seed(site_of(host), 1))
    }

    /// Returns whether a capture is held out.
    pub(super) fn contains(&self, uri: &[u8], day: u16) -> bool {
        self.first_day.map_or_else(|| self.is_chosen(xxh3_64(uri)), |first| day >= first)
    }

    /// Returns whether a hash is in the share. Its upper 53 bits are a fraction without rounding.
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

impl HeldOutHost<'_> {
    /// Appends the captures as a record that [`HeldOutSpool`] reads; nothing if there are none.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let captures = self.captures;
        if captures.len() == 0 {
            return;
        }
        out.put_text(self.host);
        out.put_u64(self.noise.to_bits());
        out.push(u8::from(self.is_site));
        out.put_u32((0..captures.len()).map(|url| captures.contents(url).len() as u32).sum());
        for url in 0..captures.len() {
            for (UrlContent { content, period, .. }, count) in captures.contents(url).iter().zip(captures.counts(url)) {
                out.put_text(captures.uri(url));
                out.put_u64(*content);
                [count, period.first, period.last].into_iter().for_each(|number| out.put_u32(number));
            }
        }
    }
}

/// Held out captures in a temporary file.
#[derive(Debug)]
pub(super) struct HeldOutSpool {
    file: ScratchFile,
    ranges: Vec<FileRange>,
}

impl HeldOutSpool {
    pub(super) fn new(directory: &Path) -> HeldOutSpool {
        HeldOutSpool { file: ScratchFile::new(directory), ranges: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Adds what [`HeldOutHost::write`] wrote.
    pub(super) fn append(&mut self, hosts: &[u8]) -> Result<(), SpillError> {
        if !hosts.is_empty() {
            self.ranges.push(self.file.append_lz4(hosts)?);
        }
        Ok(())
    }

    /// Tries rules on all captures.
    pub(super) fn validate(&self, rules: &Equivalences) -> Result<Validation, SpillError> {
        let (mut validation, mut buffer) = (Validation::default(), Vec::new());
        for range in &self.ranges {
            let hosts = self.file.read_lz4(*range, &mut buffer)?;
            let mut fields = FieldReader(&hosts);
            while !fields.0.is_empty() {
                validation.add_host(&mut fields, rules);
            }
        }
        Ok(validation)
    }
}

/// Scores of rules on held out captures.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Validation {
    /// Later captures, or other URLs, of sites that rules were learned from.
    pub(crate) known_sites: RuleScores,
    /// Captures of other sites.
    pub(crate) other_sites: RuleScores,
}

impl Validation {
    /// Reads the captures of a host, and tries rules on them.
    fn add_host(&mut self, fields: &mut FieldReader<'_>, rules: &Equivalences) {
        let (host, noise, is_site) = (fields.text(), f64::from_bits(fields.u64()), fields.u8() != 0);
        let captures = read_captures(fields);
        let scores = if is_site { &mut self.other_sites } else { &mut self.known_sites };
        scores.add(&captures, &rules.rules_of(host), noise);
    }
}

fn read_captures(fields: &mut FieldReader<'_>) -> HostCaptures {
    let mut captures = HostCaptures::default();
    for _ in 0..fields.u32() {
        let (uri, content, count) = (fields.text(), fields.u64(), fields.u32());
        let period = Period { first: fields.u32(), last: fields.u32() };
        captures.push_repeated(uri, UrlContent { content, count, period });
    }
    captures
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
        let some = HoldOut::new(0.3, &days);
        assert!(some.contains(b"http://a/", 12) && !some.contains(b"http://a/", 11));
        let chosen = (0..1000).filter(|i| some.contains_site(format!("a{i}.example").as_bytes())).count();
        assert!((250..350).contains(&chosen), "{chosen}");
    }

    #[test]
    fn held_out_captures_keep_their_times() {
        let (mut captures, mut written) = (HostCaptures::default(), Vec::new());
        for (content, time) in [(1, 2_000), (1, 7_000), (2, 90_000)] {
            captures.push_at(b"http://a.example/", content, Some(time));
        }
        captures.push_at(b"http://a.example/x", 1, Some(5_000));
        let host = HeldOutHost { host: b"a.example", captures: &captures, noise: 0.5, is_site: true };
        host.write(&mut written);
        let mut fields = FieldReader(&written);
        assert_eq!((fields.text(), f64::from_bits(fields.u64()), fields.u8()), (&b"a.example"[..], 0.5, 1));
        let read = read_captures(&mut fields);
        assert_eq!((read.len(), read.contents(0)), (2, captures.contents(0)));
        assert_eq!(read.contents(0)[0].period, Period { first: 2, last: 7 });
        assert!(fields.0.is_empty());
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
