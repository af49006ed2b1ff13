//! Finds the hosts of many URLs, and those of them that may have rules: [`HostFilter::find_places`].
//!
//! Most URLs of a crawl are of hosts without rules. They cost one lookup of the end of their host in a filter, which fits
//! into a cache of the processor, and no branch that depends on the URL.

use super::content::UrlOrigin;
use super::text_map::KeyFilter;
use crate::kernel::{BufferedText, SimdTask, append_some, masks_of, positions_of, prefetch, run_with_simd};

/// Canonical URLs of the rung `scheme`, one after the other: URL `i` is `texts[ends[i]..ends[i + 1]]`. Those of rows with
/// faults are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlColumn<'a> {
    pub(crate) texts: &'a [u8],
    pub(crate) ends: &'a [i32],
}

impl<'a> UrlColumn<'a> {
    /// Returns URL `i`.
    #[inline(always)]
    pub(super) fn buffered(&self, i: usize) -> BufferedText<'a> {
        let at = self.ends[i] as usize;
        BufferedText::within(self.texts, at, self.ends[i + 1] as usize - at)
    }

    /// Prefetches URL `i`.
    #[inline(always)]
    pub(super) fn prefetch(&self, i: usize) {
        let at = self.ends[i] as usize;
        prefetch(self.texts, at);
        prefetch(self.texts, at + 64);
    }
}

/// A URL whose host may have rules, if its scheme is http or https.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostPlace {
    /// The number of the URL in its column.
    pub(super) url: u32,
    /// The number of bytes of scheme, `://` and authority.
    pub(super) origin_len: u32,
}

/// The hosts that may have rules.
#[derive(Clone, Debug, Default)]
pub(super) struct HostFilter {
    keys: KeyFilter,
    /// The keys are those of [`site_key`]; otherwise they are those of [`end_key`].
    is_by_site: bool,
}

impl HostFilter {
    /// Returns a filter of hosts and of all hosts of domains. Each name comes with whether it is that of a domain. The empty
    /// domain contains every host.
    pub(super) fn of<'h>(names: impl Iterator<Item = (bool, &'h [u8])> + Clone) -> HostFilter {
        let mut domains = names.clone().filter(|(is_domain, _)| *is_domain).map(|(_, domain)| domain);
        let is_by_site = domains.clone().next().is_some();
        let names = names.map(|(_, name)| name);
        // A domain of one label contains hosts with any second label.
        let keys = match is_by_site {
            _ if domains.any(|domain| !domain.contains(&b'.')) => KeyFilter::of_everything(),
            true => KeyFilter::new(names.map(site_key)),
            false => KeyFilter::new(names.map(end_key)),
        };
        HostFilter { keys, is_by_site }
    }

    /// Returns whether a host may have rules.
    #[inline]
    pub(super) fn may_contain(&self, host: &[u8]) -> bool {
        self.keys.may_contain(if self.is_by_site { site_key(host) } else { end_key(host) })
    }

    /// Replaces the contents of `found` by the URLs of hosts that may have rules. All http and https URLs are among them, and
    /// perhaps URLs of other schemes.
    pub(super) fn find_places(&self, urls: UrlColumn<'_>, found: &mut Vec<HostPlace>) {
        found.clear();
        let keys = &self.keys;
        match self.is_by_site {
            true => run_with_simd(FindPlaces::<true> { urls, keys, found }),
            false => run_with_simd(FindPlaces::<false> { urls, keys, found }),
        }
    }
}

struct FindPlaces<'a, const BY_SITE: bool> {
    urls: UrlColumn<'a>,
    keys: &'a KeyFilter,
    found: &'a mut Vec<HostPlace>,
}

impl<const BY_SITE: bool> SimdTask for FindPlaces<'_, BY_SITE> {
    #[inline(always)]
    fn run(self) {
        let FindPlaces { urls, keys, found } = self;
        for (i, ends) in urls.ends.windows(2).enumerate() {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            let (origin_len, key) = near_origin::<BY_SITE>(urls.texts, from, to)
                .unwrap_or_else(|| any_origin::<BY_SITE>(&urls.texts[from..to]));
            let place = HostPlace { url: i as u32, origin_len: origin_len as u32 };
            append_some(found, [place], usize::from((origin_len > 0) & keys.may_contain(key)));
        }
    }
}

/// Returns the length of the origin of the URL `texts[from..to]`, whose scheme must be http or https, and the key of its
/// host. Returns `None` if the origin is longer than 71 bytes, or if there are not enough bytes around it.
#[inline(always)]
fn near_origin<const BY_SITE: bool>(texts: &[u8], from: usize, to: usize) -> Option<(usize, u128)> {
    const HTTP_LEN: usize = b"http://".len();
    let block = texts.get(from..)?.first_chunk::<{ HTTP_LEN + 64 }>()?;
    let is_https = u64::from_le_bytes(*block.first_chunk()?) == u64::from_le_bytes(*b"https://");
    // The authority of a canonical URL ends with a slash.
    let [slashes] = masks_of(block.last_chunk::<64>()?, [b'/'])?;
    let slashes = slashes >> u32::from(is_https);
    let start = HTTP_LEN + usize::from(is_https);
    let len = (start + slashes.trailing_zeros() as usize).min(to - from);
    let last = texts.get((from + len).checked_sub(16)?..)?.first_chunk::<16>()?;
    (slashes != 0).then_some((len, key_of_block::<BY_SITE>(last, len.saturating_sub(start))))
}

/// Does what [`near_origin`] does, for any URL. The length is 0 if the scheme is neither http nor https.
#[cold]
fn any_origin<const BY_SITE: bool>(url: &[u8]) -> (usize, u128) {
    let key = if BY_SITE { site_key } else { end_key };
    UrlOrigin::of(url).map_or((0, 0), |origin| (origin.len(), key(origin.authority)))
}

/// Returns the last two labels of a host as a number: their last 16 bytes. A host with fewer than two dots is taken whole.
fn site_key(host: &[u8]) -> u128 {
    key_of_end::<true>(host)
}

/// Returns the last 16 bytes of a host as a number.
fn end_key(host: &[u8]) -> u128 {
    key_of_end::<false>(host)
}

#[inline]
fn key_of_end<const BY_SITE: bool>(host: &[u8]) -> u128 {
    let mut block = [0; 16];
    let last = &host[host.len().saturating_sub(16)..];
    block[16 - last.len()..].copy_from_slice(last);
    key_of_block::<BY_SITE>(&block, host.len())
}

/// Returns the key of a host that has `len` bytes and ends where `block` ends.
#[inline(always)]
fn key_of_block<const BY_SITE: bool>(block: &[u8; 16], len: usize) -> u128 {
    /// Item `i` keeps the last `i` of 16 bytes.
    const LAST_BYTES: [u128; 17] = {
        let (mut masks, mut len) = ([0; 17], 1);
        while len <= 16 {
            masks[len] = !0 << (8 * (16 - len));
            len += 1;
        }
        masks
    };
    let number = u128::from_le_bytes(*block);
    if !BY_SITE {
        return number & LAST_BYTES[len.min(16)];
    }
    let before_host = 16 - len.min(16) as u32;
    let dots = positions_of(b'.', block) >> before_host << before_host;
    // The dots without the last one.
    let before = dots & !(1 << (31 - (dots | 1).leading_zeros()));
    let start = if before == 0 { before_host } else { 32 - before.leading_zeros() };
    // Nothing remains of a block without a host.
    number.checked_shr(8 * start).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_key_of_their_last_two_labels() {
        let short = ["d", "c.d", "d.", "x:80", "a.b:80", "0123456789.abcd", "0123456789a.abcd", "0123456789ab.abcd"];
        for site in short.into_iter().chain(["a-long-name-of-a-site.example", "a.long-top-level-domain"]) {
            let key = site_key(site.as_bytes());
            for before in ["w.", "www.", "a.b.", "0123456789abcdef.", "-.0123456789abcdef0123456789abcdef."] {
                let is_below = site.contains('.');
                assert_eq!(site_key(format!("{before}{site}").as_bytes()) == key, is_below, "{before}{site}");
            }
            let others = short.iter().filter(|other| **other != site);
            assert!(others.into_iter().all(|other| site_key(other.as_bytes()) != key), "{site}");
        }
        assert_eq!((site_key(b""), site_key(b"."), site_key(b"..")), (0, u128::from(b'.'), u128::from(b'.')));
    }

    #[test]
    fn hosts_have_the_key_of_their_last_bytes() {
        let hosts = ["", "d", "c.d", "0123456789.abcd", "0123456789a.abcd", "-0123456789a.abcd", "0123456789b.abcd"];
        for (i, a) in hosts.iter().enumerate() {
            for (j, b) in hosts.iter().enumerate() {
                let is_equal = i == j || [i, j] == [4, 5] || [i, j] == [5, 4];
                assert_eq!(end_key(a.as_bytes()) == end_key(b.as_bytes()), is_equal, "{a} {b}");
            }
        }
    }

    #[test]
    fn near_origins_are_those_of_any_url() {
        let hosts =
            ["", "a", "a.b", "www.a.b:80", "u@a.b", "[::1]", &"h".repeat(47), &"h.i".repeat(19), &"h.".repeat(40)];
        let (mut near, mut other) = (0, 0);
        for host in hosts {
            for scheme in ["http://", "https://", "ftp://", "http:", "httpss://", "Http://"] {
                for rest in ["/", "/?a.b/c", "/#a/b", "/c.d.e/f"] {
                    let url = format!("{scheme}{host}{rest}");
                    for (before, after) in [("", ""), ("x.y.z", "/"), ("http://a.b/0123456789", "?"), ("..", "")] {
                        let padding = "/".repeat(if after.is_empty() { 0 } else { 80 });
                        let text = format!("{before}{url}{after}{padding}");
                        let (from, to) = (before.len(), before.len() + url.len());
                        let any = [any_origin::<true>(url.as_bytes()), any_origin::<false>(url.as_bytes())];
                        let text = text.as_bytes();
                        let found = [near_origin::<true>(text, from, to), near_origin::<false>(text, from, to)];
                        (near, other) = (near + u32::from(found[0].is_some()), other + u32::from(found[0].is_none()));
                        let is_right = |(found, any): (Option<(usize, u128)>, (usize, u128))| {
                            found.is_none_or(|found| found == any || any.0 == 0)
                        };
                        assert!(found.into_iter().zip(any).all(is_right), "{url}");
                    }
                }
            }
        }
        assert!(near > 300 && other > 300, "{near} {other}");
    }
}
