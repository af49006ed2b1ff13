//! Which of the rows with one key is kept: [`KeepPolicy`].
//!
//! Every policy is a total order that ends with the position in the input, so that the kept row depends on the input
//! alone. [`KeepPolicy::compare`] is that order, for programs that choose rows elsewhere, such as in a shuffle of a
//! cluster. Deduplication itself compares the numbers of [`KeepPolicy::rank`].

use std::cmp::Ordering;

/// Which of the rows with one key is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepPolicy {
    /// The first of the input. The only policy that can be decided while rows are read.
    #[default]
    First,
    /// The last of the input.
    Last,
    /// The row fetched last; rows without a time come after rows with one. The first of several.
    Newest,
    /// The row fetched first; rows without a time come after rows with one. The first of several.
    Oldest,
    /// The best status: 2xx, 3xx, 4xx, 5xx, any other, none; then the newest, https before other schemes, the shortest URI,
    /// the lexicographically smallest URI, the first.
    Best,
}

/// The values of a row that policies compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Time of the fetch, in milliseconds since 1970 (UTC).
    pub time: Option<i64>,
    /// HTTP status of the fetch. A status of more than 16 bits counts as none, as in the column `fetch_status`.
    pub status: Option<i32>,
    /// The canonical URI.
    pub uri: &'a [u8],
    /// Position in the input.
    pub ordinal: u64,
}

/// What decides between two rows: the rank, then the bytes of the URI if the policy compares them, then the position.
pub(super) struct RankedRow<'a> {
    /// See [`KeepPolicy::rank`].
    pub(super) rank: u128,
    pub(super) uri: &'a [u8],
    pub(super) ordinal: u64,
}

const SCHEME_BIT: u32 = 32;
const TIME_BIT: u32 = 33;
const HAS_TIME_BIT: u32 = 97;
const STATUS_BIT: u32 = 98;

impl KeepPolicy {
    /// All policies.
    pub const ALL: [KeepPolicy; 5] =
        [KeepPolicy::First, KeepPolicy::Last, KeepPolicy::Newest, KeepPolicy::Oldest, KeepPolicy::Best];

    /// The name for `--keep`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            KeepPolicy::First => "first",
            KeepPolicy::Last => "last",
            KeepPolicy::Newest => "newest",
            KeepPolicy::Oldest => "oldest",
            KeepPolicy::Best => "best",
        }
    }

    /// Compares two rows: the smallest of the rows with one key is kept. No two rows are equal, because their ordinals
    /// differ.
    ///
    /// ```
    /// use irikey::dedup::{Candidate, KeepPolicy};
    /// let old = Candidate { time: Some(1), status: Some(200), uri: b"http://a/", ordinal: 0 };
    /// let new = Candidate { time: Some(2), status: Some(404), uri: b"https://a/", ordinal: 1 };
    /// assert!(KeepPolicy::Newest.compare(&new, &old).is_lt());
    /// assert!(KeepPolicy::Best.compare(&old, &new).is_lt());
    /// ```
    pub fn compare<'a>(self, a: &Candidate<'a>, b: &Candidate<'a>) -> Ordering {
        let ranked = |row: &Candidate<'a>| RankedRow { rank: self.rank(row), uri: row.uri, ordinal: row.ordinal };
        self.compare_ranked(&ranked(a), &ranked(b))
    }

    /// [`KeepPolicy::compare`] for rows whose ranks are known.
    pub(super) fn compare_ranked(self, a: &RankedRow<'_>, b: &RankedRow<'_>) -> Ordering {
        let by_uri = || if self == KeepPolicy::Best { a.uri.cmp(b.uri) } else { Ordering::Equal };
        let by_position = if self == KeepPolicy::Last { b.ordinal.cmp(&a.ordinal) } else { a.ordinal.cmp(&b.ordinal) };
        b.rank.cmp(&a.rank).then_with(by_uri).then(by_position)
    }

    /// The policy compares times.
    pub(crate) const fn compares_time(self) -> bool {
        matches!(self, KeepPolicy::Newest | KeepPolicy::Oldest | KeepPolicy::Best)
    }

    /// The policy compares statuses.
    pub(crate) const fn compares_status(self) -> bool {
        matches!(self, KeepPolicy::Best)
    }

    /// The order as a number, without the bytes of the URI and the position in the input. The greatest rank is kept.
    pub(crate) fn rank(self, row: &Candidate<'_>) -> u128 {
        let time = |earlier_is_better: bool| {
            let since = row.time.map_or(0, |time| (time as u64) ^ (1 << 63));
            let since = if earlier_is_better && row.time.is_some() { !since } else { since };
            u128::from(row.time.is_some()) << HAS_TIME_BIT | u128::from(since) << TIME_BIT
        };
        match self {
            KeepPolicy::First | KeepPolicy::Last => 0,
            KeepPolicy::Newest => time(false),
            KeepPolicy::Oldest => time(true),
            KeepPolicy::Best => {
                let is_https = row.uri.starts_with(b"https:");
                let shortness = u32::MAX - u32::try_from(row.uri.len()).unwrap_or(u32::MAX);
                u128::from(5 - status_class(row.status)) << STATUS_BIT
                    | time(false)
                    | u128::from(is_https) << SCHEME_BIT
                    | u128::from(shortness)
            }
        }
    }
}

/// 0 for the best class of statuses.
fn status_class(status: Option<i32>) -> u8 {
    match status.and_then(|status| i16::try_from(status).ok()) {
        Some(200..=299) => 0,
        Some(300..=399) => 1,
        Some(400..=499) => 2,
        Some(500..=599) => 3,
        Some(_) => 4,
        None => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Reverse;

    fn candidates() -> Vec<Candidate<'static>> {
        let mut all = Vec::new();
        for time in [None, Some(i64::MIN), Some(-1), Some(0), Some(1), Some(i64::MAX)] {
            for status in [None, Some(200), Some(204), Some(301), Some(404), Some(503), Some(-4), Some(70_000)] {
                for uri in ["http://a/", "https://a/", "http://b/", "http://aa/"] {
                    let ordinal = all.len() as u64 * 7_919 % 192;
                    all.push(Candidate { time, status, uri: uri.as_bytes(), ordinal });
                }
            }
        }
        all
    }

    /// The order as the documentation of [`KeepPolicy`] states it.
    fn documented_order(keep: KeepPolicy, a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
        let class = |status: Option<i32>| match status.filter(|status| *status < 1 << 15) {
            Some(status @ 200..600) => status / 100,
            Some(_) => 6,
            None => 7,
        };
        let best = |row: &Candidate<'_>| {
            let newest = (row.time.is_none(), Reverse(row.time));
            (class(row.status), newest, !row.uri.starts_with(b"https:"), row.uri.len(), row.uri.to_vec())
        };
        let by_policy = match keep {
            KeepPolicy::First => Ordering::Equal,
            KeepPolicy::Last => b.ordinal.cmp(&a.ordinal),
            // `None` is less than any time.
            KeepPolicy::Newest => b.time.cmp(&a.time),
            KeepPolicy::Oldest => (a.time.is_none(), a.time).cmp(&(b.time.is_none(), b.time)),
            KeepPolicy::Best => best(a).cmp(&best(b)),
        };
        by_policy.then(a.ordinal.cmp(&b.ordinal))
    }

    #[test]
    fn the_order_is_as_documented() {
        let all = candidates();
        for keep in KeepPolicy::ALL {
            for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
                assert_eq!(keep.compare(a, b), documented_order(keep, a, b), "{keep:?} {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn missing_values_come_last() {
        let (dated, undated) =
            (Candidate { time: Some(i64::MIN), ordinal: 9, ..Candidate::default() }, Candidate::default());
        for keep in [KeepPolicy::Newest, KeepPolicy::Oldest, KeepPolicy::Best] {
            assert!(keep.compare(&dated, &undated).is_lt(), "{keep:?}");
        }
        let mut all = candidates();
        all.sort_by(|a, b| KeepPolicy::Best.compare(a, b));
        let classes: Vec<_> = all.iter().map(|row| status_class(row.status)).collect();
        assert!(classes.is_sorted() && classes[0] == 0 && classes[classes.len() - 1] == 5);
        assert_eq!((all[0].time, all[0].uri), (Some(i64::MAX), b"https://a/".as_slice()));
    }
}
