//! Numbers of pairs of URLs, which measure how good rules are: [`PairCounts`], [`PairShare`].

/// Returns the number of pairs of `count` things.
pub(super) fn pairs_of(count: u64) -> u64 {
    count * count.saturating_sub(1) / 2
}

/// Numbers of pairs of URLs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairCounts {
    /// Pairs that rules make equal, and those of them with equal contents.
    pub(crate) merged: PairShare,
    /// Pairs with equal contents that are not sinks, and those of them that rules make equal.
    pub(crate) equal: PairShare,
}

impl PairCounts {
    pub(super) fn add(&mut self, other: &PairCounts) {
        self.merged.add(&other.merged);
        self.equal.add(&other.equal);
    }
}

/// Pairs of things, such as URLs, in groups: those of one group are not independent of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PairShare {
    pub(crate) all: u64,
    /// Those of them that have what is counted.
    pub(crate) part: u64,
    /// Sum of the squares of the numbers of pairs of each group.
    squares: f64,
}

impl PairShare {
    /// Adds a group of pairs.
    pub(super) fn add_group(&mut self, part: u64, all: u64) {
        self.all += all;
        self.part += part;
        self.squares += all as f64 * all as f64;
    }

    fn add(&mut self, other: &PairShare) {
        self.all += other.all;
        self.part += other.part;
        self.squares += other.squares;
    }

    /// Returns the share and its bounds (Wilson, 95 %); `None` without pairs. Groups count as many as if all were of one size
    /// (Kish's effective size), because the pairs of a group tend to be alike.
    pub(crate) fn interval(&self) -> Option<(f64, (f64, f64))> {
        if self.all == 0 {
            return None;
        }
        let (all, share) = (self.all as f64, self.part as f64 / self.all as f64);
        let size = all * all / self.squares;
        Some((share, wilson_interval(share, size)))
    }
}

/// Returns bounds of a share in a sample of this size (Wilson, 95 %).
pub(crate) fn wilson_interval(share: f64, size: f64) -> (f64, f64) {
    wilson_bounds(share, size, 1.96)
}

/// Returns bounds of a share in a sample of this size: the score interval of Wilson, for a quantile `z` of the normal
/// distribution.
pub(super) fn wilson_bounds(share: f64, size: f64, z: f64) -> (f64, f64) {
    let middle = share + z * z / (2.0 * size);
    let spread = z * (share * (1.0 - share) / size + z * z / (4.0 * size * size)).sqrt();
    (((middle - spread) / (1.0 + z * z / size)).max(0.0), ((middle + spread) / (1.0 + z * z / size)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_one_group_count_less_than_those_of_many() {
        let share = |groups: u64, part: u64, all: u64| {
            let mut pairs = PairShare::default();
            (0..groups).for_each(|_| pairs.add_group(part, all));
            pairs.interval()
        };
        assert_eq!(share(3, 0, 0), None);
        let (_, (low, high)) = share(100, 1, 1).unwrap();
        assert!(low > 0.96 && high > 0.999, "{low}");
        // Ten groups of ten pairs.
        let (value, (low, high)) = share(10, 10, 10).unwrap();
        assert!(value == 1.0 && (0.71..0.73).contains(&low) && high > 0.999, "{low}");
        let (value, (low, high)) = share(100, 99, 100).unwrap();
        assert!(value == 0.99 && low > 0.94 && low < 0.96 && high > 0.99 && high < 1.0, "{low} {high}");
    }
}
