//! Finds the URLs whose hosts have rules, and sorts them by the rules: [`find_targets`].

use super::content::UrlOrigin;
use super::equivalences::Equivalences;
use super::host_places::{HostPlace, UrlColumn};
use super::host_rules::{HostRules, RANKS};
use crate::key::KeyBytes;

/// A URL of a host with rules.
#[derive(Clone, Copy)]
pub(super) struct Target<'e> {
    pub(super) place: HostPlace,
    pub(super) rules: &'e HostRules,
}

/// Returns the URLs at `places` whose host has rules, except for those in classes, in the order of the ranks of the rules. When
/// URLs with the same rules are processed one after the other, the processor predicts most branches.
pub(super) fn find_targets<'e>(
    equivalences: &'e Equivalences,
    urls: UrlColumn<'_>,
    places: &[HostPlace],
    keys: &[KeyBytes],
) -> Vec<Target<'e>> {
    let mut found = Vec::with_capacity(places.len());
    // The number of targets of each rank, then where the next one belongs.
    let mut next = [0_u32; RANKS];
    let mut hosts = HostCache { equivalences, origin: b"", rules: None };
    for place in places {
        let url = urls.buffered(place.url as usize).text();
        if UrlOrigin::is_of(url)
            && let Some(rules) = hosts.find_rules(&url[..place.origin_len as usize])
            // A class has precedence, and every representative is in its own class.
            && equivalences.representative(&keys[place.url as usize]).is_none()
        {
            next[usize::from(rules.rank)] += 1;
            found.push(Target { place: *place, rules });
        }
    }
    let mut sum = 0;
    for next in &mut next {
        sum += std::mem::replace(next, sum);
    }
    let mut sorted = found.clone();
    for target in found {
        let next = &mut next[usize::from(target.rules.rank)];
        sorted[*next as usize] = target;
        *next += 1;
    }
    sorted
}

/// The rules of the last host: successive URLs are often of one host.
struct HostCache<'e, 't> {
    equivalences: &'e Equivalences,
    /// The origin of the last URL.
    origin: &'t [u8],
    rules: Option<&'e HostRules>,
}

impl<'e, 't> HostCache<'e, 't> {
    /// Returns the rules of the host of an origin.
    #[inline(always)]
    fn find_rules(&mut self, origin: &'t [u8]) -> Option<&'e HostRules> {
        if !is_equal(self.origin, origin) {
            self.origin = origin;
            self.rules = self.equivalences.by_host.find_at_place(UrlOrigin::of_text(origin).authority);
        }
        self.rules
    }
}

/// Returns whether two texts are equal. Those of 16 to 32 bytes, such as most origins, are compared without a call.
#[inline(always)]
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match (a.first_chunk::<16>(), a.last_chunk::<16>(), b.first_chunk::<16>(), b.last_chunk::<16>()) {
        (Some(a_first), Some(a_last), Some(b_first), Some(b_last)) => {
            let differs = |a: &[u8; 16], b: &[u8; 16]| u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b);
            differs(a_first, b_first) | differs(a_last, b_last) == 0 && (a.len() <= 32 || a == b)
        }
        _ => a == b,
    }
}
