//! Which row represents those that share its key: [`Keep`]. Every policy is a total order, whose last word is the order
//! of the input, so that the representative depends on the input alone. [`Keep::compare`] is that order, for whoever
//! chooses elsewhere, such as a cluster's shuffle, and wants the same rows; [`Keep::rank`] is what a dedup goes by.

use std::cmp::{Ordering, Reverse};

/// Which of the rows of one key is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first of the input. The only one that can be told as rows come.
    #[default]
    First,
    /// The last of the input.
    Last,
    /// The one fetched last; one that has no time only where none has. Of several the first.
    Newest,
    /// The one fetched first; likewise.
    Oldest,
    /// The best status, 2xx before 3xx, 4xx, 5xx, any other and none; then the newest, https before other schemes, the
    /// shortest URI, the least bytes of it, the first.
    Best,
}

/// What policies look at in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// When it was fetched, in milliseconds since 1970 (UTC).
    pub time: Option<i64>,
    /// The status that the fetch had; one beyond 16 bits counts as none, as in the column `fetch_status`.
    pub status: Option<i32>,
    /// The canonical URI.
    pub uri: &'a [u8],
    /// Place in the input.
    pub ordinal: u64,
}

const SCHEME_BIT: u32 = 32;
const TIME_BIT: u32 = 33;
const HAS_TIME_BIT: u32 = 97;
const STATUS_BIT: u32 = 98;

impl Keep {
    /// Every policy.
    pub const ALL: [Keep; 5] = [Keep::First, Keep::Last, Keep::Newest, Keep::Oldest, Keep::Best];

    /// The name in `--keep`.
    pub const fn name(self) -> &'static str {
        match self {
            Keep::First => "first",
            Keep::Last => "last",
            Keep::Newest => "newest",
            Keep::Oldest => "oldest",
            Keep::Best => "best",
        }
    }

    /// The order: the least of the rows of a key is kept. No two rows are equal, for no two have the same ordinal.
    ///
    /// ```
    /// use irikey::dedup::{Candidate, Keep};
    /// let old = Candidate { time: Some(1), status: Some(200), uri: b"http://a/", ordinal: 0 };
    /// let new = Candidate { time: Some(2), status: Some(404), uri: b"https://a/", ordinal: 1 };
    /// assert!(Keep::Newest.compare(&new, &old).is_lt());
    /// assert!(Keep::Best.compare(&old, &new).is_lt());
    /// ```
    pub fn compare(self, a: &Candidate<'_>, b: &Candidate<'_>) -> Ordering {
        let best = |row: &Candidate<'_>| {
            let not_https = !row.uri.starts_with(b"https:");
            (status_class(row.status), row.time.is_none(), Reverse(row.time), not_https, row.uri.len())
        };
        let by_policy = match self {
            Keep::First => Ordering::Equal,
            Keep::Last => return b.ordinal.cmp(&a.ordinal),
            // No time is less than any.
            Keep::Newest => b.time.cmp(&a.time),
            Keep::Oldest => (a.time.is_none(), a.time).cmp(&(b.time.is_none(), b.time)),
            Keep::Best => best(a).cmp(&best(b)).then_with(|| a.uri.cmp(b.uri)),
        };
        by_policy.then(a.ordinal.cmp(&b.ordinal))
    }

    /// The policy looks at times.
    pub const fn wants_time(self) -> bool {
        matches!(self, Keep::Newest | Keep::Oldest | Keep::Best)
    }

    /// The policy looks at statuses.
    pub const fn wants_status(self) -> bool {
        matches!(self, Keep::Best)
    }

    /// All but the bytes of the URI and the place in the input as a number: the greatest is kept.
    pub fn rank(self, row: &Candidate<'_>) -> u128 {
        let time = |earlier_is_better: bool| {
            let since = row.time.map_or(0, |time| (time as u64) ^ (1 << 63));
            let since = if earlier_is_better && row.time.is_some() { !since } else { since };
            u128::from(row.time.is_some()) << HAS_TIME_BIT | u128::from(since) << TIME_BIT
        };
        match self {
            Keep::First | Keep::Last => 0,
            Keep::Newest => time(false),
            Keep::Oldest => time(true),
            Keep::Best => {
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

/// 0 is best.
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

    /// What a dedup goes by is the order.
    #[test]
    fn ranks_bytes_and_ordinals_are_the_order() {
        let all = candidates();
        for keep in Keep::ALL {
            for a in &all {
                for b in &all {
                    let by_bytes = if keep == Keep::Best { a.uri.cmp(b.uri) } else { Ordering::Equal };
                    let by_place = a.ordinal.cmp(&b.ordinal);
                    let by_place = if keep == Keep::Last { by_place.reverse() } else { by_place };
                    let by_rank = keep.rank(b).cmp(&keep.rank(a)).then(by_bytes).then(by_place);
                    assert_eq!(by_rank, keep.compare(a, b), "{keep:?} {a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_missing_comes_last() {
        let (dated, undated) =
            (Candidate { time: Some(i64::MIN), ordinal: 9, ..Candidate::default() }, Candidate::default());
        for keep in [Keep::Newest, Keep::Oldest, Keep::Best] {
            assert!(keep.compare(&dated, &undated).is_lt(), "{keep:?}");
        }
        let mut all = candidates();
        all.sort_by(|a, b| Keep::Best.compare(a, b));
        let classes: Vec<_> = all.iter().map(|row| status_class(row.status)).collect();
        assert!(classes.is_sorted() && classes[0] == 0 && classes[classes.len() - 1] == 5);
        assert_eq!((all[0].time, all[0].uri), (Some(i64::MAX), b"https://a/".as_slice()));
    }
}
