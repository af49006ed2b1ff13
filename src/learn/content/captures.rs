//! The captures of one host: its URLs and what content each had. [`HostCaptures`].
//!
//! Some ten thousand URLs are enough to learn the rules of a host, so a sample of the URLs of larger hosts is kept. URLs with
//! similar paths and equal numbers are kept or dropped together, because rules compare them. The sample depends only on the
//! set of URLs.

use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Most URLs of a host that are kept.
const MAX_URLS: usize = 100_000;

/// Most bytes of URLs of a host that are kept.
const MAX_TEXT_LEN: usize = 10 << 20;

/// Most different contents of one URL that are kept.
const MAX_CONTENTS: usize = 8;

/// A hash of a content's digest.
pub(crate) type Content = u64;

/// The URLs of a host in order, with the contents that they had.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCaptures {
    texts: Vec<u8>,
    urls: Vec<CapturedUrl>,
    contents: Vec<(Content, u32)>,
    sampling: Sampling,
    captures: u64,
}

/// Which URLs are kept.
#[derive(Clone, Copy, Debug, Default)]
struct Sampling {
    /// One of `2^groups` groups of like URLs is kept.
    groups: u32,
    /// One of `2^urls` URLs of these is kept.
    urls: u32,
}

impl Sampling {
    fn contains(self, uri: &[u8]) -> bool {
        let has_zeros = |hash: u64, count: u32| count == 0 || hash >> (64 - count) == 0;
        (self.groups == 0 || has_zeros(hash_of_group(uri), self.groups))
            && (self.urls == 0 || has_zeros(xxh3_64(uri), self.urls))
    }
}

#[derive(Clone, Copy, Debug)]
struct CapturedUrl {
    at: u32,
    len: u32,
    contents_at: u32,
    contents_len: u32,
}

impl HostCaptures {
    /// Adds a capture. Captures come in the order of their URLs, and those of a URL in the order of their contents.
    pub(crate) fn push(&mut self, uri: &[u8], content: Content) {
        self.captures += 1;
        let is_last = self.urls.last().is_some_and(|last| self.text(last) == uri);
        if !is_last {
            if !self.sampling.contains(uri) {
                return;
            }
            self.shrink(uri.len());
            if !self.sampling.contains(uri) {
                return;
            }
            let (at, contents_at) = (self.texts.len() as u32, self.contents.len() as u32);
            self.texts.extend_from_slice(uri);
            self.urls.push(CapturedUrl { at, len: uri.len() as u32, contents_at, contents_len: 0 });
        }
        let Some(last) = self.urls.last_mut() else { return };
        match self.contents.last_mut() {
            Some((known, count)) if last.contents_len > 0 && *known == content => *count = count.saturating_add(1),
            _ if last.contents_len as usize >= MAX_CONTENTS => (),
            _ => {
                self.contents.push((content, 1));
                last.contents_len += 1;
            }
        }
    }

    /// Makes the sample smaller until another URL of `len` bytes fits.
    fn shrink(&mut self, len: usize) {
        while (self.urls.len() >= MAX_URLS || self.texts.len() + len > MAX_TEXT_LEN) && !self.urls.is_empty() {
            let Sampling { groups, urls } = self.sampling;
            let sample = self.sampled(Sampling { groups: groups + 1, urls });
            // If most URLs are in one group, the group is sampled.
            let is_even = sample.len() >= self.len() / 8 && groups < 32;
            *self = if is_even { sample } else { self.sampled(Sampling { groups, urls: urls + 1 }) };
        }
    }

    fn sampled(&self, sampling: Sampling) -> HostCaptures {
        let mut sample = HostCaptures { sampling, captures: self.captures, ..HostCaptures::default() };
        for url in self.urls.iter().filter(|url| sampling.contains(self.text(url))) {
            let (at, contents_at) = (sample.texts.len() as u32, sample.contents.len() as u32);
            sample.texts.extend_from_slice(self.text(url));
            sample.contents.extend_from_slice(self.contents_of(url));
            sample.urls.push(CapturedUrl { at, contents_at, ..*url });
        }
        sample
    }

    fn text(&self, url: &CapturedUrl) -> &[u8] {
        &self.texts[url.at as usize..][..url.len as usize]
    }

    fn contents_of(&self, url: &CapturedUrl) -> &[(Content, u32)] {
        &self.contents[url.contents_at as usize..][..url.contents_len as usize]
    }

    /// Replaces contents by others.
    pub(super) fn replace_contents(&mut self, by: &HashMap<Content, Content>) {
        let mut contents: Vec<(Content, u32)> = Vec::with_capacity(self.contents.len());
        for url in &mut self.urls {
            let old = &self.contents[url.contents_at as usize..][..url.contents_len as usize];
            let mut new: Vec<(Content, u32)> =
                old.iter().map(|(content, count)| (*by.get(content).unwrap_or(content), *count)).collect();
            new.sort_unstable();
            url.contents_at = contents.len() as u32;
            for equal in new.chunk_by(|a, b| a.0 == b.0) {
                contents.push((equal[0].0, equal.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))));
            }
            url.contents_len = contents.len() as u32 - url.contents_at;
        }
        self.contents = contents;
    }

    /// Returns the number of URLs in the sample.
    pub(crate) fn len(&self) -> usize {
        self.urls.len()
    }

    /// Returns URL `i`.
    pub(crate) fn uri(&self, i: usize) -> &[u8] {
        self.text(&self.urls[i])
    }

    /// Returns the contents of URL `i` and the number of captures with each.
    pub(crate) fn contents(&self, i: usize) -> &[(Content, u32)] {
        self.contents_of(&self.urls[i])
    }

    /// Returns the number of all captures, with those that are not in the sample.
    pub(crate) fn captures(&self) -> u64 {
        self.captures
    }

    /// Returns the share of pairs of captures of one URL whose contents differ: how much the content of this host changes
    /// by itself. It is 0 if too few URLs were captured repeatedly to tell, and limited: contents that always change are no
    /// reason to ignore that those of other URLs differ.
    pub(super) fn noise(&self) -> f64 {
        const MIN_URLS: u64 = 10;
        const MAX_NOISE: f64 = 0.5;
        let (mut urls, mut sum) = (0, 0.0);
        for share in (0..self.urls.len()).filter_map(|url| self.disagreement(url)) {
            (urls, sum) = (urls + 1, sum + share);
        }
        if urls < MIN_URLS { 0.0 } else { (sum / urls as f64).min(MAX_NOISE) }
    }

    /// Returns the share of pairs of captures of URL `i` whose contents differ; `None` if it was captured once.
    pub(super) fn disagreement(&self, i: usize) -> Option<f64> {
        let counts = || self.contents(i).iter().map(|(_, count)| f64::from(*count));
        let all: f64 = counts().sum();
        let equal: f64 = counts().map(|count| count * (count - 1.0)).sum();
        (all > 1.0).then(|| 1.0 - equal / (all * (all - 1.0)))
    }
}

/// Returns a hash of what spellings of a URL usually share: the last segment of its path with letters, without letter case, `;`
/// and usual names of documents; and the numbers in its query.
fn hash_of_group(uri: &[u8]) -> u64 {
    let end = memchr::memchr2(b'?', b'#', uri).unwrap_or(uri.len());
    let path_at =
        memchr::memmem::find(uri, b"://").and_then(|at| Some(at + 3 + memchr::memchr(b'/', uri.get(at + 3..end)?)?));
    let path = uri.get(path_at.unwrap_or(end)..end).unwrap_or_default();
    let before = |segment: &[u8], byte: u8| segment.iter().position(|other| *other == byte).unwrap_or(segment.len());
    let mut segments = path.rsplit(|byte| *byte == b'/').map(|segment| &segment[..before(segment, b';')]);
    let is_word = |segment: &&[u8]| {
        let stem = segment[..before(segment, b'.')].to_ascii_lowercase();
        !stem.is_empty() && !matches!(&stem[..], b"index" | b"default" | b"home" | b"print" | b"amp")
    };
    let word = xxh3_64(&segments.find(is_word).unwrap_or_default().to_ascii_lowercase());
    let values = uri[end..].split(|byte| b"?&#".contains(byte)).map(|parameter| &parameter[before(parameter, b'=')..]);
    let is_number = |value: &&[u8]| (2..10).contains(&value.len()) && value[1..].iter().all(u8::is_ascii_digit);
    // The order of parameters makes no difference.
    values.filter(is_number).fold(word, |hash, value| hash ^ xxh3_64(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_counted() {
        let mut host = HostCaptures::default();
        for (uri, content) in [("http://a/", 1), ("http://a/", 1), ("http://a/", 2), ("http://a/x", 2)] {
            host.push(uri.as_bytes(), content);
        }
        assert_eq!((host.len(), host.captures()), (2, 4));
        assert_eq!((host.contents(0), host.contents(1)), (&[(1, 2), (2, 1)][..], &[(2, 1)][..]));
        assert_eq!(host.noise(), 0.0);
    }

    #[test]
    fn large_hosts_are_sampled_by_path() {
        let mut host = HostCaptures::default();
        for page in 0..70_000 {
            for session in 0..4 {
                host.push(format!("http://a/{page:06}?sid=s{session}").as_bytes(), page);
            }
        }
        assert!(host.captures() == 280_000 && (20_000..=MAX_URLS).contains(&host.len()), "{}", host.len());
        let pages: Vec<&[u8]> = (0..host.len()).map(|i| &host.uri(i)[..15]).collect();
        assert!(pages.chunks(4).all(|page| page.iter().all(|uri| *uri == page[0])));
    }

    #[test]
    fn one_path_with_many_queries_is_sampled_too() {
        let mut host = HostCaptures::default();
        (0..250_000).for_each(|i| host.push(format!("http://a/x?id=x{i:07}").as_bytes(), i));
        assert!((20_000..=MAX_URLS).contains(&host.len()), "{}", host.len());
    }
}
