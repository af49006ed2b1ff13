//! Finds the URLs whose hosts have rules, and sorts them by the rules: [`Targets`].

use super::content::UrlOrigin;
use super::equivalences::Equivalences;
use super::host_places::{HostPlace, UrlColumn};
use super::host_rules::HostRuleIndex;
use super::host_table::HostLookup;
use crate::kernel::{SimdTask, run_with_simd};
use crate::key::KeyBytes;

/// A URL of a host with rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) place: HostPlace,
    /// The number of the rules.
    pub(super) rules: u32,
}

/// The URLs of a column whose hosts have rules.
#[derive(Debug, Default)]
pub(super) struct Targets {
    found: Vec<Target>,
    sorted: Vec<Target>,
}

/// The most parts into which targets are sorted.
const MAX_PARTS: usize = 1024;

impl Targets {
    /// Returns the URLs at `places` whose host has rules, except for those in classes, sorted by their rules. When URLs with
    /// the same rules, or similar ones, are processed one after the other, the processor predicts most branches.
    pub(super) fn find(
        &mut self,
        equivalences: &Equivalences,
        urls: UrlColumn<'_>,
        places: &[HostPlace],
        keys: &[KeyBytes],
    ) -> &[Target] {
        self.found.clear();
        run_with_simd(FindTargets { equivalences, urls, places, keys, found: &mut self.found });
        self.sort(equivalences.by_host.len());
        &self.sorted
    }

    /// Sorts the targets by the numbers of their rules, which are less than `count`, or by the higher digits of the numbers.
    fn sort(&mut self, count: usize) {
        let shift = count.div_ceil(MAX_PARTS).next_power_of_two().trailing_zeros();
        let part = |target: &Target| (target.rules >> shift) as usize % MAX_PARTS;
        // The number of targets of each part, then where the next one belongs.
        let mut next = [0_u32; MAX_PARTS];
        self.found.iter().for_each(|target| next[part(target)] += 1);
        let mut sum = 0;
        for next in &mut next {
            sum += std::mem::replace(next, sum);
        }
        self.sorted.clone_from(&self.found);
        for target in &self.found {
            let next = &mut next[part(target)];
            self.sorted[*next as usize] = *target;
            *next += 1;
        }
    }
}

/// Looks up the rules of the hosts of URLs.
struct FindTargets<'a> {
    equivalences: &'a Equivalences,
    urls: UrlColumn<'a>,
    places: &'a [HostPlace],
    keys: &'a [KeyBytes],
    found: &'a mut Vec<Target>,
}

/// How many hosts are looked up together, so that the memory that they need is read at the same time.
const HOSTS_AT_ONCE: usize = 32;

/// Lookups of the hosts of a few URLs.
struct Lookups<'t> {
    /// Bit `i` is set if URL `i` has another origin than the one before it: successive URLs are often of one host.
    is_other: u32,
    /// The lookups of these URLs. Those of other schemes than http and https have none.
    started: [Option<HostLookup<'t>>; HOSTS_AT_ONCE],
    count: usize,
    /// The origin of the last URL.
    last: &'t [u8],
}

impl SimdTask for FindTargets<'_> {
    #[inline(always)]
    fn run(self) {
        let index = &self.equivalences.by_host;
        let mut lookups = Lookups { is_other: 0, started: [None; HOSTS_AT_ONCE], count: 0, last: b"" };
        let mut rules = None;
        for places in self.places.chunks(HOSTS_AT_ONCE) {
            lookups.start(index, self.urls, places);
            let mut started = lookups.started[..lookups.count].iter();
            for (i, place) in places.iter().enumerate() {
                if lookups.is_other >> i & 1 == 1 {
                    rules = started.next().and_then(Option::as_ref).and_then(|lookup| index.find_number(lookup));
                }
                // A class has precedence, and every representative is in its own class.
                let is_in_class = || self.equivalences.representative(&self.keys[place.url as usize]).is_some();
                if let Some(rules) = rules.filter(|_| !is_in_class()) {
                    self.found.push(Target { place: *place, rules });
                }
            }
        }
    }
}

impl<'t> Lookups<'t> {
    /// Starts the lookups of these URLs, and prefetches what they read.
    #[inline(always)]
    fn start(&mut self, index: &HostRuleIndex, urls: UrlColumn<'t>, places: &[HostPlace]) {
        (self.is_other, self.count) = (0, 0);
        for (i, place) in places.iter().enumerate() {
            let url = urls.buffered(place.url as usize);
            let origin = &url.text()[..place.origin_len as usize];
            if !is_equal(self.last, origin) {
                let host_len = UrlOrigin::of_text(origin).authority.len();
                let from_host = &url.buffer()[origin.len() - host_len..];
                let is_sought = UrlOrigin::is_of(url.text());
                self.started[self.count] = is_sought.then(|| index.start(from_host, host_len));
                (self.last, self.count, self.is_other) = (origin, self.count + 1, self.is_other | 1 << i);
            }
        }
        self.started[..self.count].iter().flatten().for_each(|lookup| index.prefetch(lookup));
    }
}

/// Returns whether two texts are equal. There is no branch that depends on texts of 16 to 32 bytes, such as most origins.
#[inline(always)]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    match (a.first_chunk::<16>(), a.last_chunk::<16>(), b.first_chunk::<16>(), b.last_chunk::<16>()) {
        (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) => {
            let differs = |a: &[u8; 16], b: &[u8; 16]| u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b);
            let has_other_len = u128::from(a.len() as u64 ^ b.len() as u64);
            differs(a_first, b_first) | differs(a_last, b_last) | has_other_len == 0 && (a.len() <= 32 || a == b)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_sorted_by_their_rules() {
        for count in [1, 2, MAX_PARTS, MAX_PARTS + 1, 100_000] {
            let target = |url: u32| {
                let rules = url.wrapping_mul(2_654_435_761) % count as u32;
                Target { place: HostPlace { url, origin_len: 0 }, rules }
            };
            let mut targets = Targets { found: (0..5000).map(target).collect(), sorted: Vec::new() };
            targets.sort(count);
            let mut expected = targets.found.clone();
            let width = count.div_ceil(MAX_PARTS).next_power_of_two() as u32;
            expected.sort_by_key(|target| target.rules / width);
            let urls = |targets: &[Target]| targets.iter().map(|target| target.place.url).collect::<Vec<u32>>();
            assert_eq!(urls(&targets.sorted), urls(&expected), "{count}");
        }
    }

    #[test]
    fn texts_are_equal_if_all_bytes_are() {
        for len in 0..70 {
            let text = vec![b'a'; len];
            assert!(is_equal(&text, &text) && !is_equal(&text, &[b'a'; 70]) && !is_equal(&[b'a'; 70], &text));
            for at in 0..len {
                let mut other = text.clone();
                other[at] = b'b';
                assert!(!is_equal(&text, &other), "{len} {at}");
            }
        }
    }
}
