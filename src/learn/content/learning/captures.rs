//! The captures of one host: its URLs and what content each had. [`HostCaptures`].
//!
//! Some ten thousand URLs are enough to learn the rules of a host, so a sample of the URLs of larger hosts is kept. URLs with
//! similar paths and equal numbers are kept or dropped together, because rules compare them. The sample depends only on the
//! set of URLs.

use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of URLs of a host that are kept.
const MAX_URLS: usize = 100_000;

/// Maximum length of the URLs of a host that are kept, in bytes.
const MAX_TEXT_LEN: usize = 10 << 20;

/// Maximum number of different contents of one URL that are kept: those with the least hashes, so that contents that URLs have in
/// common tend to be kept for all of them. The periods of the kept contents are complete.
const MAX_CONTENTS: usize = 8;

/// Maximum share of a host's pairs of captures of one URL that may differ, so that unequal contents show that URLs are
/// different pages. Two variants of each page differ in half of the pairs.
pub(super) const MAX_CLEAR_NOISE: f64 = 0.4;

/// A hash of a content's digest.
pub(crate) type ContentHash = u64;

/// When a content was seen: the times of the first and of the last capture with it, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Period {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Period {
    /// The period of a capture without a time: it may be of any time.
    pub(crate) const UNKNOWN: Period = Period { first: 0, last: u32::MAX };

    /// Returns the period of a capture; `time` is in milliseconds since 1970.
    fn of(time: Option<i64>) -> Period {
        let at = |time: i64| (time / 1000).clamp(0, i64::from(u32::MAX)) as u32;
        time.map(at).map_or(Period::UNKNOWN, |time| Period { first: time, last: time })
    }

    /// Returns the shortest period that contains both.
    pub(super) fn with(self, other: Period) -> Period {
        Period { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Returns the period as it would be if time ran backwards.
    pub(super) fn reversed(self) -> Period {
        Period { first: u32::MAX - self.last, last: u32::MAX - self.first }
    }
}

/// A content of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UrlContent {
    pub(crate) content: ContentHash,
    /// Number of captures of different times with the content; 0 if no times are known.
    pub(crate) count: u32,
    pub(crate) period: Period,
}

impl UrlContent {
    /// Adds captures with the same content.
    fn add(&mut self, other: &UrlContent) {
        self.count = self.count.saturating_add(other.count);
        self.period = self.period.with(other.period);
    }
}

/// The URLs of a host in order, with the contents that they had.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostCaptures {
    texts: Vec<u8>,
    urls: Vec<CapturedUrl>,
    contents: Vec<UrlContent>,
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
    times: CaptureTimes,
}

/// When a URL was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaptureTimes {
    Unknown,
    One(i64),
    Several,
}

impl CaptureTimes {
    fn add(&mut self, time: i64) {
        *self = match *self {
            CaptureTimes::Unknown => CaptureTimes::One(time),
            CaptureTimes::One(known) if known == time => CaptureTimes::One(known),
            _ => CaptureTimes::Several,
        };
    }
}

impl HostCaptures {
    /// Adds a capture. Captures come in the order of their URLs, and those of a URL in the order of their contents; identical
    /// captures are given once. Captures without a time may be the same one, so they add their content but are not counted.
    pub(crate) fn push_at(&mut self, uri: &[u8], content: ContentHash, time: Option<i64>) {
        self.captures += 1;
        if let Some(url) =
            self.add(uri, UrlContent { content, count: u32::from(time.is_some()), period: Period::of(time) })
        {
            time.into_iter().for_each(|time| url.times.add(time));
        }
    }

    /// Adds captures of several times with one content, in the same order.
    pub(crate) fn push_repeated(&mut self, uri: &[u8], captured: UrlContent) {
        self.captures += u64::from(captured.count.max(1));
        if let Some(url) = self.add(uri, captured) {
            url.times = CaptureTimes::Several;
        }
    }

    /// Adds a capture of an unknown time of its own, in the same order.
    #[cfg(test)]
    pub(crate) fn push(&mut self, uri: &[u8], content: ContentHash) {
        self.push_repeated(uri, UrlContent { content, count: 1, period: Period::UNKNOWN });
    }

    /// Adds a URL with a content, or further captures with its last content. Returns the URL if it is kept.
    fn add(&mut self, uri: &[u8], captured: UrlContent) -> Option<&mut CapturedUrl> {
        let is_last = self.urls.last().is_some_and(|last| self.text(last) == uri);
        if !is_last {
            if !self.sampling.contains(uri) {
                return None;
            }
            self.shrink(uri.len());
            if !self.sampling.contains(uri) {
                return None;
            }
            let (at, contents_at) = (self.texts.len() as u32, self.contents.len() as u32);
            self.texts.extend_from_slice(uri);
            let times = CaptureTimes::Unknown;
            self.urls.push(CapturedUrl { at, len: uri.len() as u32, contents_at, contents_len: 0, times });
        }
        let last = self.urls.last_mut()?;
        match self.contents.last_mut() {
            Some(known) if last.contents_len > 0 && known.content == captured.content => known.add(&captured),
            _ if last.contents_len as usize >= MAX_CONTENTS => (),
            _ => {
                self.contents.push(captured);
                last.contents_len += 1;
            }
        }
        Some(last)
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

    fn contents_of(&self, url: &CapturedUrl) -> &[UrlContent] {
        &self.contents[url.contents_at as usize..][..url.contents_len as usize]
    }

    /// Replaces contents by others.
    pub(super) fn replace_contents(&mut self, by: &HashMap<ContentHash, ContentHash>) {
        let mut contents: Vec<UrlContent> = Vec::with_capacity(self.contents.len());
        for url in &mut self.urls {
            let old = &self.contents[url.contents_at as usize..][..url.contents_len as usize];
            let replace = |known: &UrlContent| UrlContent {
                content: *by.get(&known.content).unwrap_or(&known.content),
                ..*known
            };
            let mut new: Vec<UrlContent> = old.iter().map(replace).collect();
            new.sort_unstable();
            url.contents_at = contents.len() as u32;
            for equal in new.chunk_by(|a, b| a.content == b.content) {
                let mut all = equal[0];
                equal[1..].iter().for_each(|other| all.add(other));
                contents.push(all);
            }
            url.contents_len = contents.len() as u32 - url.contents_at;
        }
        self.contents = contents;
    }

    /// Returns the number of URLs in the sample.
    pub(crate) fn len(&self) -> usize {
        self.urls.len()
    }

    /// Returns the length of all URLs in the sample, in bytes.
    pub(crate) fn text_len(&self) -> usize {
        self.texts.len()
    }

    /// Returns URL `i`.
    pub(crate) fn uri(&self, i: usize) -> &[u8] {
        self.text(&self.urls[i])
    }

    /// Returns the contents of URL `i`, in the order of their hashes.
    pub(crate) fn contents(&self, i: usize) -> &[UrlContent] {
        self.contents_of(&self.urls[i])
    }

    /// Returns the number of all captures, with those that are not in the sample.
    pub(crate) fn captures(&self) -> u64 {
        self.captures
    }

    /// Returns the share of pairs of captures of one URL whose contents differ: how much the content of this host changes
    /// by itself. It is 0 if too few URLs were captured repeatedly to measure it. It is limited: although some contents always
    /// change, differences between the contents of other URLs still count.
    pub(crate) fn noise(&self) -> f64 {
        const MIN_URLS: u64 = 10;
        const MAX_NOISE: f64 = 0.5;
        let (mut urls, mut sum) = (0, 0.0);
        for share in (0..self.urls.len()).filter_map(|url| self.disagreement(url)) {
            (urls, sum) = (urls + 1, sum + share);
        }
        if urls < MIN_URLS { 0.0 } else { (sum / urls as f64).min(MAX_NOISE) }
    }

    /// Returns the number of captures of URL `i` with each of its contents. Without captures of different times there are none:
    /// they do not show how the contents change.
    pub(crate) fn counts(&self, i: usize) -> impl Iterator<Item = u32> {
        let has_times = self.urls[i].times == CaptureTimes::Several;
        self.contents(i).iter().map(move |known| if has_times { known.count } else { 0 })
    }

    /// Returns the share of pairs of captures of URL `i` whose contents differ; `None` if it was captured once.
    pub(super) fn disagreement(&self, i: usize) -> Option<f64> {
        let counts = || self.counts(i).map(f64::from);
        let all: f64 = counts().sum();
        let equal: f64 = counts().map(|count| count * (count - 1.0)).sum();
        (all > 1.0).then(|| 1.0 - equal / (all * (all - 1.0)))
    }
}

/// Returns the [`HostCaptures::noise`] that may explain counter-examples of a rule. If most captures of a URL may differ, equal
/// contents may be a coincidence as well, so that a rule must be confirmed at least as often as it is contradicted.
pub(super) fn explaining_noise(noise: f64, support: u64, counter: u64) -> f64 {
    if noise > MAX_CLEAR_NOISE && support < counter { 0.0 } else { noise }
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
        let counts = |url| host.contents(url).iter().map(|known| (known.content, known.count)).collect::<Vec<_>>();
        assert_eq!((counts(0), counts(1)), (vec![(1, 2), (2, 1)], vec![(2, 1)]));
        assert_eq!(host.noise(), 0.0);
    }

    #[test]
    fn periods_contain_all_captures_with_a_content() {
        let mut host = HostCaptures::default();
        let captures =
            [(1, Some(5_999)), (1, Some(2_000)), (2, Some(-1)), (3, Some(1_000)), (3, None), (4, Some(i64::MAX))];
        captures.into_iter().for_each(|(content, time)| host.push_at(b"http://a/", content, time));
        let periods = |host: &HostCaptures| {
            host.contents(0).iter().map(|known| (known.content, known.count, known.period)).collect::<Vec<_>>()
        };
        let at = |first, last| Period { first, last };
        let (before, after) = (at(0, 0), at(u32::MAX, u32::MAX));
        assert_eq!(periods(&host), [(1, 2, at(2, 5)), (2, 1, before), (3, 1, Period::UNKNOWN), (4, 1, after)]);
        assert_eq!((at(2, 5).reversed().reversed(), Period::UNKNOWN.reversed()), (at(2, 5), Period::UNKNOWN));
        host.replace_contents(&HashMap::from([(1, 4)]));
        assert_eq!(periods(&host), [(2, 1, before), (3, 1, Period::UNKNOWN), (4, 3, at(2, u32::MAX))]);
    }

    #[test]
    fn only_captures_of_different_times_show_noise() {
        let noise = |time: fn(i64) -> Option<i64>| {
            let mut host = HostCaptures::default();
            for page in 0..20 {
                for (content, number) in [(1, 0), (1, 1), (2, 2)] {
                    host.push_at(format!("http://a/{page:02}").as_bytes(), content, time(number));
                }
            }
            assert!((0..20).all(|page| host.contents(page).len() == 2) && host.captures() == 60);
            host.noise()
        };
        assert_eq!(noise(Some), 0.5);
        assert_eq!(noise(|_| None), 0.0);
        assert_eq!(noise(|_| Some(7)), 0.0);
        // The time of one of the captures is known.
        assert_eq!(noise(|number| (number == 2).then_some(number)), 0.0);
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
