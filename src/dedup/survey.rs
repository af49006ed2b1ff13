//! What a dedup bought, in bounded memory: [`Survey`]. In: rows in the order of the input, with the keys that they compete
//! for and those of lower rungs. Out: [`Findings`]: how large groups are, which step made rows duplicates, where members
//! of a group disagree in their content, and which hosts have the most records.
//!
//! Groups are sampled by their keys: those whose key's low bits are below a bound, which falls when the sample takes more
//! than its room. So a group is in it whole or not at all, the sample depends on the keys alone, and a run whose groups
//! have room is told exactly. Hosts are counted by the method of Misra and Gries, with the error that it states.

use super::findings::{Findings, HostFindings};
use super::sample::{Group, MOST_DIGESTS, MOST_SPELLINGS, Member, insert_least};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Spellings, URIs and digests that the sample holds: some 30 MB with their texts.
const ROOM: usize = 1 << 17;

/// Hosts that are counted at a time.
const MOST_HOSTS: usize = 1 << 16;

/// Hosts that are told.
const TOLD_HOSTS: usize = 20;

/// A row as it is looked at.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// The key that it competes for.
    pub key: u128,
    /// First bits of its keys of `simple`, `syntax` and the policy's rung.
    pub rungs: [u64; 3],
    /// Its URI.
    pub uri: &'a [u8],
    /// Hash of its content's digest, where it answered with content.
    pub digest: Option<u64>,
}

/// What a span's rows showed.
#[derive(Debug, Default)]
pub struct SpanLook {
    groups: BTreeMap<(u64, u128), Group>,
    hosts: HashMap<Vec<u8>, u64>,
}

/// What rows share, and what each URI has by itself.
#[derive(Debug)]
pub struct Survey {
    /// Groups whose low bits are above it are not in the sample.
    bound: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    groups: BTreeMap<(u64, u128), Group>,
    weight: usize,
    hosts: HashMap<Vec<u8>, u64>,
    hosts_lost: u64,
}

impl Default for Survey {
    fn default() -> Survey {
        Survey { bound: AtomicU64::new(u64::MAX), state: Mutex::default() }
    }
}

impl SpanLook {
    /// Takes a row in, if its group is in the sample.
    pub fn add(&mut self, survey: &Survey, look: &Look<'_>) {
        let host = crate::iri::Parts::split(look.uri).host(look.uri).unwrap_or_default();
        match self.hosts.get_mut(host) {
            _ if host.is_empty() => (),
            Some(count) => *count += 1,
            None => {
                self.hosts.insert(host.to_vec(), 1);
            }
        }
        let place = look.key as u64;
        if place > survey.bound.load(Ordering::Relaxed) {
            return;
        }
        let group = self.groups.entry((place, look.key)).or_default();
        group.rows += 1;
        let [simple, syntax, rung] = look.rungs;
        insert_least(&mut group.simple, simple, MOST_SPELLINGS);
        insert_least(&mut group.syntax, syntax, MOST_SPELLINGS);
        let member =
            group.members.entry(rung).or_insert_with(|| Member { uri: look.uri.to_vec(), ..Member::default() });
        if let Some(digest) = look.digest {
            member.digested += 1;
            insert_least(&mut member.digests, digest, MOST_DIGESTS);
        }
        group.trim();
    }
}

impl Survey {
    /// Takes in what a span's rows showed; spans in the order of the input, on which hosts' counts depend.
    pub fn add(&self, span: SpanLook) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (place, group) in span.groups {
            let mine = state.groups.entry(place).or_default();
            let before = mine.weight();
            mine.merge(group);
            let after = mine.weight();
            state.weight = state.weight - before + after;
        }
        while state.weight > ROOM && state.groups.len() > 1 {
            let Some(((place, _), group)) = state.groups.pop_last() else { break };
            state.weight -= group.weight();
            self.bound.fetch_min(place.saturating_sub(1), Ordering::Relaxed);
        }
        // A span that looked before the bound fell may have brought groups that are above it.
        let bound = self.bound.load(Ordering::Relaxed);
        while let Some(last) = state.groups.last_entry().filter(|last| last.key().0 > bound) {
            let group = last.remove();
            state.weight -= group.weight();
        }
        for (host, count) in span.hosts {
            *state.hosts.entry(host).or_default() += count;
        }
        state.forget_hosts();
    }

    /// What was found; `rules` names what makes one of two URIs.
    pub fn finish(self, rules: impl Fn(&[u8], &[u8]) -> Vec<String>) -> Findings {
        let bound = self.bound.into_inner();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let share = if bound == u64::MAX { 1.0 } else { (bound as f64 + 1.0) / (u64::MAX as f64) };
        let mut findings = Findings { share, sampled: state.groups.len() as u64, ..Findings::default() };
        let mut duplicates: HashMap<Vec<u8>, f64> = HashMap::new();
        for group in state.groups.values() {
            findings.add(group, share, &rules);
            if let Some(first) = group.members.values().map(|member| &member.uri[..]).min() {
                let host = crate::iri::Parts::split(first).host(first).unwrap_or_default();
                *duplicates.entry(host.to_vec()).or_default() += (group.rows - 1) as f64 / share;
            }
        }
        findings.host_error = state.hosts_lost;
        let mut hosts: Vec<_> = state.hosts.into_iter().collect();
        hosts.sort_unstable_by(|(a, many), (b, more)| (more, a).cmp(&(many, b)));
        findings.hosts = hosts
            .into_iter()
            .take(TOLD_HOSTS)
            .map(|(host, records)| HostFindings {
                duplicates: duplicates.get(&host).copied().unwrap_or(0.0),
                host: String::from_utf8_lossy(&host).into_owned(),
                records,
            })
            .collect();
        findings
    }
}

impl State {
    /// Takes from every host what the lesser half has, where there are too many.
    fn forget_hosts(&mut self) {
        if self.hosts.len() <= MOST_HOSTS {
            return;
        }
        let mut counts: Vec<u64> = self.hosts.values().copied().collect();
        let middle = counts.len() - MOST_HOSTS / 2;
        let (_, least, _) = counts.select_nth_unstable(middle);
        let least = *least;
        self.hosts_lost += least;
        self.hosts.retain(|_, count| {
            *count = count.saturating_sub(least);
            *count > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::{EXAMPLES, SizeClass};
    use super::*;
    use crate::key::KeyAlgorithm;

    fn number(text: &str) -> u128 {
        crate::dedup::number(&KeyAlgorithm::Xxh3.key(text.as_bytes()))
    }

    /// Row `i` of `groups` groups: three spellings, two URIs, and digests that differ where the path says so.
    fn survey(rows: &[usize], groups: usize, spans: usize) -> Findings {
        let survey = Survey::default();
        for span in rows.chunks(rows.len().div_ceil(spans)) {
            let mut look = SpanLook::default();
            for &i in span {
                let (group, uri) =
                    (i % groups, format!("http{}://h{}.test/{}", ["", "s"][i / groups % 2], i % 7, i % groups));
                let spelling = number(&format!("{uri} {}", i / groups % 3)) as u64;
                let rung = number(&uri) as u64;
                let digest = Some(if group.is_multiple_of(10) { rung } else { 1 });
                look.add(
                    &survey,
                    &Look {
                        key: number(&group.to_string()),
                        rungs: [spelling, rung, rung],
                        uri: uri.as_bytes(),
                        digest,
                    },
                );
            }
            survey.add(look);
        }
        survey.finish(|_, _| vec!["scheme".to_string()])
    }

    #[test]
    fn small_runs_are_told_exactly_in_any_order() {
        let rows: Vec<usize> = (0..7_000).collect();
        let found = survey(&rows, 1_000, 3);
        assert_eq!((found.share, found.sampled), (1.0, 1_000));
        assert_eq!(found.sizes, [SizeClass { from: 5, to: 8, groups: 1_000.0, rows: 7_000.0 }]);
        // 7 rows: 14 different hosts, schemes and spellings give 7, of 7 URIs.
        assert_eq!(found.by_step.iter().sum::<f64>(), 6_000.0);
        let rule = &found.rules["scheme"];
        assert!(rule.differing * 9 < rule.compared && rule.differing > 0 && rule.examples.len() == EXAMPLES);
        let mut turned = rows.clone();
        turned.reverse();
        assert_eq!(survey(&turned, 1_000, 5), found);
    }

    #[test]
    fn large_runs_are_estimated_from_whole_groups() {
        let rows: Vec<usize> = (0..400_000).collect();
        let found = survey(&rows, 100_000, 9);
        assert!(found.share < 0.6 && found.sampled > 1_000, "{} {}", found.share, found.sampled);
        let near = |value: f64, want: f64| (value / want - 1.0).abs() < 0.05;
        assert!(near(found.sizes.iter().map(|class| class.groups).sum(), 100_000.0));
        assert!(near(found.by_step.iter().sum(), 300_000.0));
        assert_eq!(found.sizes.len(), 1);
        let mut turned = rows;
        turned.rotate_left(123_456);
        let other = survey(&turned, 100_000, 4);
        assert_eq!((other.share, other.sampled, other.by_step), (found.share, found.sampled, found.by_step));
    }

    #[test]
    fn the_most_frequent_hosts_survive() {
        let survey = Survey::default();
        for span in 0..10u64 {
            let mut look = SpanLook::default();
            look.hosts.insert(b"often".to_vec(), 1_000);
            look.hosts.extend((0..20_000u64).map(|i| ((span << 32 | i).to_be_bytes().to_vec(), 1)));
            survey.add(look);
        }
        let found = survey.finish(|_, _| Vec::new());
        assert_eq!(found.hosts[0].host, "often");
        assert!(found.host_error > 0 && found.hosts[0].records + found.host_error >= 10_000);
    }
}
