//! Which URLs agree in their contents: [`Agreement`].
//!
//! URLs agree if they have a content in common, or if a chain of such URLs connects them. But a content may be common for some
//! time only, such as a placeholder on the day of launch. It does not connect URLs that *changed apart* from it: their last
//! contents are newer than the common one, differ, and were seen at the same time. The same holds for their first contents, if
//! these are older than the common one.
//!
//! ```text
//! time         1            2        3        4
//! /item?id=1   placeholder  item 1 ---------> item 1     The last contents were seen at the same time: the URLs
//! /item?id=2   placeholder           item 2              changed apart, and the placeholder does not connect them.
//!
//! http:        version 1    version 2                    The last contents were not seen at the same time: one page may
//! https:       version 1                      version 3  have changed, and its first version connects the URLs.
//! ```
//!
//! Only the last and the first content of a URL are compared. If all were, every further capture of a page whose contents have
//! noise could separate its URLs. For the same reason, URLs did not change apart if more than half of them changed to one
//! content. Captures without a time may be of any time, so they do not show that URLs changed.

use super::captures::{ContentHash, UrlContent};
use crate::learn::graph::UnionFind;
use std::collections::{HashMap, HashSet};

/// Two contents were seen at the same time if the time between them is at most this part of the time since the common content.
/// Crawlers capture the URLs of a host one after the other.
const GAP_DIVISOR: u32 = 100;

/// Which content of a URL is compared with those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Last,
    First,
}

/// A URL had a content that others had, too, and changed to its last (or from its first) content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    common: ContentHash,
    /// When the other content was seen, and half of the time that may be between two contents of one time.
    from: u32,
    to: u32,
    content: ContentHash,
    /// The number of the URL.
    url: u32,
}

/// Common contents that do not connect a URL with others, each with the number of the URL.
type Refuted = HashSet<(ContentHash, u32)>;

/// Which of some URLs agree. The URLs have numbers from 0.
pub(super) struct Agreement {
    /// A number for each URL that agreeing URLs share; `None` if all contents of the URL are sinks.
    pub(super) sets: Vec<Option<u64>>,
    /// The contents of each set of URLs, with the first URL and the number of URLs of the set that have it.
    pub(super) contents: Vec<(ContentHash, (u32, usize))>,
}

impl Agreement {
    /// Compares the contents of `count` URLs, except for `sinks`.
    pub(super) fn of<'c>(
        count: usize,
        contents: impl Fn(usize) -> &'c [UrlContent],
        sinks: &HashSet<ContentHash>,
    ) -> Agreement {
        let contents_of = |at: u32| contents(at as usize).iter().filter(|known| !sinks.contains(&known.content));
        let (mut sets, mut is_sink) = (UnionFind::new(count), vec![true; count]);
        // The first URL and the number of URLs with a content.
        let mut first: HashMap<ContentHash, (u32, usize)> = HashMap::with_capacity(count);
        for at in 0..count as u32 {
            for UrlContent { content, .. } in contents_of(at) {
                is_sink[at as usize] = false;
                let (first, count) = first.entry(*content).or_insert((at, 0));
                *count += 1;
                sets.join(*first, at);
            }
        }
        // Most URLs have one content.
        let changing: Vec<u32> = (0..count as u32).filter(|at| contents(*at as usize).len() > 1).collect();
        if changing.len() > 1 {
            let is_common = |change: &Change| first[&change.common].1 > 1;
            let refuted = [Side::Last, Side::First].map(|side| {
                let changes = changing.iter().flat_map(|at| changes_of(contents_of(*at), *at, side));
                refuted(changes.filter(is_common).collect())
            });
            if refuted.iter().any(|refuted| !refuted.is_empty()) {
                return Agreement::without(&refuted, count, contents_of);
            }
        }
        let set_of = |(at, is_sink)| if is_sink { None } else { Some(u64::from(sets.find(at))) };
        Agreement { sets: (0..).zip(is_sink).map(set_of).collect(), contents: first.into_iter().collect() }
    }

    /// Compares contents some of which are refuted: `refuted` by the last contents, and by the first ones. URLs agree if they are
    /// connected in spite of the last contents, and also in spite of the first ones.
    fn without<'c, C: Iterator<Item = &'c UrlContent>>(
        refuted: &[Refuted; 2],
        count: usize,
        contents_of: impl Fn(u32) -> C,
    ) -> Agreement {
        let mut by_side = refuted.each_ref().map(|refuted| {
            let (mut sets, mut first) = (UnionFind::new(count), HashMap::new());
            for at in 0..count as u32 {
                for content in contents_of(at).map(|known| known.content) {
                    if !refuted.contains(&(content, at)) {
                        sets.join(*first.entry(content).or_insert(at), at);
                    }
                }
            }
            sets
        });
        let (mut sets, mut all) = (Vec::with_capacity(count), HashMap::new());
        for at in 0..count as u32 {
            let [last, first] = by_side.each_mut().map(|sets| u64::from(sets.find(at)));
            let set = last << 32 | first;
            for content in contents_of(at).map(|known| known.content) {
                let (_, count) = all.entry((set, content)).or_insert((at, 0));
                *count += 1;
            }
            sets.push(contents_of(at).next().map(|_| set));
        }
        Agreement { sets, contents: all.into_iter().map(|((_, content), urls)| (content, urls)).collect() }
    }
}

/// Returns the least content that two URLs have in common, if they agree.
pub(super) fn common_content(a: &[UrlContent], b: &[UrlContent]) -> Option<ContentHash> {
    let is_of_both = |known: &&UrlContent| b.iter().any(|other| other.content == known.content);
    let common = a.iter().find(is_of_both)?.content;
    let may_be_refuted = a.len() > 1 && b.len() > 1;
    let agree = || {
        let Agreement { sets, .. } = Agreement::of(2, |at| [a, b][at], &HashSet::new());
        sets[0] == sets[1]
    };
    (!may_be_refuted || agree()).then_some(common)
}

/// Returns the changes from contents of a URL to its last one if they are older, or to its first one if they are newer.
fn changes_of<'c>(
    contents: impl Iterator<Item = &'c UrlContent> + Clone,
    url: u32,
    side: Side,
) -> impl Iterator<Item = Change> {
    // The first content is the last one if time runs backwards.
    let period_of = move |known: &UrlContent| match side {
        Side::Last => known.period,
        Side::First => known.period.reversed(),
    };
    let last = contents.clone().map(|known| (period_of(known).last, period_of(known).first, known.content)).max();
    last.into_iter().flat_map(move |(to, from, content)| {
        let common = contents.clone().filter(move |known| period_of(known).last < from);
        common.map(move |known| {
            let gap = (from - period_of(known).last) / (2 * GAP_DIVISOR);
            Change { common: known.content, from: from - gap, to: to.saturating_add(gap), content, url }
        })
    })
}

/// Returns the contents from which URLs changed apart.
fn refuted(mut changes: Vec<Change>) -> Refuted {
    let mut refuted = Refuted::new();
    changes.sort_unstable();
    for changes in changes.chunk_by(|a, b| a.common == b.common) {
        let (mut from, mut end) = (0, 0);
        for at in 1..=changes.len() {
            end = changes[at - 1].to.max(end);
            if changes.get(at).is_some_and(|next| next.from <= end) {
                continue;
            }
            let of_one_time = &changes[std::mem::replace(&mut from, at)..at];
            if are_apart(of_one_time) {
                refuted.extend(of_one_time.iter().map(|change| (change.common, change.url)));
            }
        }
    }
    refuted
}

/// Returns whether URLs changed to different contents. If more than half of them changed to one content, the others are noise.
fn are_apart(changes: &[Change]) -> bool {
    let mut contents: Vec<ContentHash> = changes.iter().map(|change| change.content).collect();
    contents.sort_unstable();
    contents.chunk_by(|a, b| a == b).all(|equal| 2 * equal.len() <= changes.len())
}

#[cfg(test)]
mod tests {
    use super::super::captures::Period;
    use super::*;

    /// The contents of a URL: hash, and the times of the first and of the last capture.
    type Contents = Vec<(u64, u32, u32)>;

    /// Returns for each URL the first one with which it agrees; `None` if all contents are the sink 0.
    fn firsts(urls: &[Contents]) -> Vec<Option<usize>> {
        let known = |(content, first, last): &(u64, u32, u32)| UrlContent {
            content: *content,
            count: 1,
            period: Period { first: *first, last: *last },
        };
        let urls: Vec<Vec<UrlContent>> = urls.iter().map(|contents| contents.iter().map(known).collect()).collect();
        let found = Agreement::of(urls.len(), |at| &urls[at], &HashSet::from([0]));
        for (content, (first, count)) in &found.contents {
            let has = |at: &usize| urls[*at].iter().any(|known| known.content == *content);
            let of_set = || (0..urls.len()).filter(has).filter(|at| found.sets[*at] == found.sets[*first as usize]);
            assert_eq!((of_set().next(), of_set().count()), (Some(*first as usize), *count));
        }
        found.sets.iter().map(|set| set.and(found.sets.iter().position(|other| other == set))).collect()
    }

    /// Reverses the times.
    fn reversed(urls: &[Contents]) -> Vec<Contents> {
        let reverse = |(content, first, last): &(u64, u32, u32)| (*content, u32::MAX - last, u32::MAX - first);
        urls.iter().map(|contents| contents.iter().map(reverse).collect()).collect()
    }

    #[test]
    fn urls_that_changed_apart_do_not_agree() {
        let cases: [(&str, Contents, Contents, bool); 13] = [
            ("one content", vec![(7, 1, 1)], vec![(7, 9, 9)], true),
            ("no content", vec![(1, 1, 1)], vec![(2, 1, 1)], false),
            ("at the same time", vec![(7, 1, 1), (1, 90, 90)], vec![(7, 1, 1), (2, 90, 90)], false),
            ("periods overlap", vec![(7, 1, 1), (1, 50, 90)], vec![(7, 2, 2), (2, 70, 99)], false),
            ("a page that changes", vec![(7, 1, 1), (1, 50, 60)], vec![(7, 2, 2), (2, 70, 80)], true),
            ("together", vec![(7, 1, 1), (1, 50, 60)], vec![(7, 2, 2), (1, 55, 55)], true),
            ("one changed", vec![(7, 1, 1), (1, 50, 60)], vec![(7, 2, 70)], true),
            ("back again", vec![(7, 1, 9), (1, 5, 5)], vec![(7, 1, 9), (2, 5, 5)], true),
            ("common still", vec![(7, 1, 50), (1, 20, 60)], vec![(7, 1, 50), (2, 20, 60)], true),
            ("common again", vec![(7, 1, 1), (1, 5, 5), (8, 9, 9)], vec![(7, 1, 1), (2, 5, 5), (8, 9, 9)], true),
            ("nearly", vec![(7, 0, 0), (1, 1000, 1000)], vec![(7, 0, 0), (2, 1010, 1010)], false),
            ("not so nearly", vec![(7, 0, 0), (1, 1000, 1000)], vec![(7, 0, 0), (2, 1011, 1011)], true),
            ("unknown times", vec![(7, 1, 1), (1, 0, u32::MAX)], vec![(7, 1, 1), (2, 0, u32::MAX)], true),
        ];
        for (name, a, b, agree) in cases {
            let expected = [Some(0), Some(usize::from(!agree))];
            assert_eq!(firsts(&[a.clone(), b.clone()]), expected, "{name}");
            assert_eq!(firsts(&reversed(&[a, b])), expected, "{name}, reversed");
        }
    }

    #[test]
    fn spellings_of_pages_that_changed_apart_agree() {
        // Three pages of two spellings each had one placeholder; the last URL was captured only then, another one later.
        let page = |page: u64, spelling: u32| vec![(7, 1, 1), (page, 50 + spelling, 90)];
        let mut urls: Vec<Contents> = (1..4).flat_map(|number| [page(number, 0), page(number, 1)]).collect();
        urls.extend([vec![(7, 1, 1)], vec![(7, 1, 99)]]);
        let expected = [0, 0, 2, 2, 4, 4, 6, 6].map(Some);
        assert_eq!((firsts(&urls), firsts(&reversed(&urls))), (expected.to_vec(), expected.to_vec()));
    }

    #[test]
    fn noise_of_few_urls_does_not_separate_them() {
        let changed = |count: u64| -> Vec<Contents> {
            (0..10).map(|url| vec![(7, 1, 1), (if url < count { 1 } else { 10 + url }, 90, 90)]).collect()
        };
        assert!(firsts(&changed(6)).iter().all(|first| *first == Some(0)));
        assert_eq!(firsts(&changed(5))[4..7], [Some(0), Some(5), Some(6)]);
    }

    #[test]
    fn urls_must_agree_both_at_last_and_at_first() {
        // The first two URLs changed apart from 8, the last two to 7, and the second one has both contents.
        let urls = [
            vec![(8, 10, 10), (1, 90, 90)],
            vec![(8, 10, 10), (2, 90, 90)],
            vec![(3, 1, 1), (9, 50, 50)],
            vec![(4, 1, 1), (9, 50, 50)],
            vec![(8, 10, 10), (9, 50, 50)],
        ];
        assert_eq!(firsts(&urls), [0, 1, 2, 3, 4].map(Some));
        let urls = &urls[1..];
        assert_eq!(firsts(urls), [0, 1, 2, 0].map(Some));
    }

    #[test]
    fn sinks_are_not_compared() {
        let urls = [vec![(0, 1, 1)], vec![(0, 1, 1)], vec![(7, 1, 1), (0, 9, 9)], vec![(7, 1, 1), (2, 9, 9)]];
        assert_eq!(firsts(&urls), [None, None, Some(2), Some(2)]);
    }

    #[test]
    fn two_urls_have_the_least_content_in_common() {
        let known = |content, time| UrlContent { content, count: 1, period: Period { first: time, last: time } };
        let (a, b) = ([known(3, 1), known(4, 1)], [known(2, 1), known(3, 1), known(4, 1)]);
        assert_eq!(common_content(&a, &b), Some(3));
        assert_eq!(common_content(&a[..1], &b[..1]), None);
        assert_eq!(common_content(&[known(3, 1), known(4, 9)], &[known(3, 1), known(5, 9)]), None);
    }
}
