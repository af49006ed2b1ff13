//! Finds the hosts of many URLs, and those of them that may have rules: [`find_places`].
//!
//! Most URLs of a crawl are of hosts without rules. They cost one lookup of the last two labels of their host in a filter, which
//! fits into a cache of the processor, and no branch that depends on the URL.

use super::content::UrlOrigin;
use super::text_map::KeyFilter;
use crate::kernel::{SimdTask, append_some, masks_of, positions_of, run_with_simd};

/// Canonical URLs of the rung `scheme`, one after the other: URL `i` is `texts[ends[i]..ends[i + 1]]`. Those of rows with faults
/// are empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlColumn<'a> {
    pub(crate) texts: &'a [u8],
    pub(crate) ends: &'a [i32],
}

impl<'a> UrlColumn<'a> {
    pub(super) fn get(&self, i: usize) -> &'a [u8] {
        &self.texts[self.ends[i] as usize..self.ends[i + 1] as usize]
    }
}

/// A URL whose host may have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostPlace {
    /// The number of the URL in its column.
    pub(super) url: u32,
    /// The number of bytes of scheme, `://` and authority.
    pub(super) origin_len: u32,
}

/// Replaces the contents of `found` by the http and https URLs of hosts that `sites` may contain.
pub(super) fn find_places(urls: UrlColumn<'_>, sites: &KeyFilter, found: &mut Vec<HostPlace>) {
    found.clear();
    run_with_simd(FindPlaces { urls, sites, found });
}

struct FindPlaces<'a> {
    urls: UrlColumn<'a>,
    sites: &'a KeyFilter,
    found: &'a mut Vec<HostPlace>,
}

impl SimdTask for FindPlaces<'_> {
    #[inline(always)]
    fn run(self) {
        let FindPlaces { urls, sites, found } = self;
        for (i, ends) in urls.ends.windows(2).enumerate() {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            let (origin_len, key) =
                near_origin(urls.texts, from, to).unwrap_or_else(|| any_origin(&urls.texts[from..to]));
            let place = HostPlace { url: i as u32, origin_len: origin_len as u32 };
            append_some(found, [place], usize::from((origin_len > 0) & sites.may_contain(key)));
        }
    }
}

/// Returns the length of the origin of the URL `texts[from..to]`, which is 0 if the scheme is neither http nor https, and the
/// key of its site. Returns `None` if the origin is longer than 71 bytes, or if there are not enough bytes around it.
#[inline(always)]
fn near_origin(texts: &[u8], from: usize, to: usize) -> Option<(usize, u128)> {
    const HTTP_LEN: usize = b"http://".len();
    let block = texts.get(from..)?.first_chunk::<{ HTTP_LEN + 64 }>()?;
    let head = u64::from_le_bytes(*block.first_chunk()?);
    let is_https = head == u64::from_le_bytes(*b"https://");
    let is_http = head << 8 == u64::from_le_bytes(*b"\0http://");
    // The authority of a canonical URL ends with a slash.
    let [slashes] = masks_of(block.last_chunk::<64>()?, [b'/'])?;
    let slashes = slashes >> u32::from(is_https);
    let start = HTTP_LEN + usize::from(is_https);
    let len = (start + slashes.trailing_zeros() as usize).min(to - from);
    let last = texts.get((from + len).checked_sub(16)?..)?.first_chunk::<16>()?;
    let is_url = is_http | is_https;
    let found = (if is_url { len } else { 0 }, key_of_block(last, len.saturating_sub(start)));
    ((slashes != 0) | !is_url).then_some(found)
}

/// Does what [`near_origin`] does, for any URL.
#[cold]
fn any_origin(url: &[u8]) -> (usize, u128) {
    UrlOrigin::of(url).map_or((0, 0), |origin| (origin.len(), site_key(origin.authority)))
}

/// Returns the last two labels of a host as a number: their last 16 bytes. A host with fewer than two dots is taken whole.
pub(super) fn site_key(host: &[u8]) -> u128 {
    let mut block = [0; 16];
    let last = &host[host.len().saturating_sub(16)..];
    block[16 - last.len()..].copy_from_slice(last);
    key_of_block(&block, host.len())
}

/// Returns the key of the site of a host that has `len` bytes and ends where `block` ends.
#[inline(always)]
fn key_of_block(block: &[u8; 16], len: usize) -> u128 {
    let before_host = 16 - len.min(16) as u32;
    let dots = positions_of(b'.', block) >> before_host << before_host;
    // The dots without the last one.
    let before = dots & !(1 << (31 - (dots | 1).leading_zeros()));
    let start = if before == 0 { before_host } else { 32 - before.leading_zeros() };
    // Nothing remains of a block without a host.
    u128::from_le_bytes(*block).checked_shr(8 * start).unwrap_or(0)
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
                        let any = any_origin(url.as_bytes());
                        let found = near_origin(text.as_bytes(), from, to);
                        (near, other) = (near + u32::from(found.is_some()), other + u32::from(found.is_none()));
                        let is_right = |found: (usize, u128)| found == any || (found.0, any.0) == (0, 0);
                        assert!(found.is_none_or(is_right), "{text}");
                    }
                }
            }
        }
        assert!(near > 300 && other > 300, "{near} {other}");
    }
}
