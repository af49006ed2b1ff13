//! The number of distinct keys that an input will have: [`KeyGrowth`].

/// Distinct keys by the length of the input that has them, and an extrapolation.
#[derive(Debug, Default)]
pub(super) struct KeyGrowth {
    /// Length of the input and number of keys; both ascend.
    samples: Vec<(u64, usize)>,
}

/// Maximum number of samples.
const MAX_SAMPLES: usize = 64;

impl KeyGrowth {
    /// Adds that `done` bytes of the input have `count` distinct keys.
    pub(super) fn add(&mut self, done: u64, count: usize) {
        if self.samples.last().is_some_and(|last| last.0 >= done || last.1 > count) {
            return;
        }
        if self.samples.len() == MAX_SAMPLES {
            let mut number = 0;
            self.samples.retain(|_| {
                number += 1;
                number % 2 == 0
            });
        }
        self.samples.push((done, count));
    }

    /// The number of distinct keys of `total` bytes. New keys become rarer as they did between the two halves of the input so
    /// far, exponentially: exact for lines that are new at a constant rate, and for random choices among a number of lines.
    pub(super) fn expected(&self, total: u64) -> usize {
        let Some(&(done, count)) = self.samples.last() else { return 0 };
        let middle = self.samples.partition_point(|sample| sample.0 <= done / 2);
        let (half, half_count) = middle.checked_sub(1).map_or((0, 0), |middle| self.samples[middle]);
        let (length, rest) = ((done - half) as f64, total.saturating_sub(done) as f64);
        let late = (count - half_count) as f64 / length.max(1.0);
        let early = if half == 0 { late } else { half_count as f64 / half as f64 };
        if late <= 0.0 {
            return count;
        }
        // The rates are those in the middle of both halves.
        let decay = (early / late).ln().max(0.0) / (done as f64 / 2.0);
        let rate = late * (-decay * length / 2.0).exp();
        let more = if decay * rest < 1e-3 { rate * rest } else { rate / decay * (1.0 - (-decay * rest).exp()) };
        count.saturating_add(more as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_and_decreasing_rates_are_extrapolated() {
        let check = |count_of: fn(f64) -> f64, tolerance: f64| {
            let mut growth = KeyGrowth::default();
            assert_eq!(growth.expected(1_000_000), 0);
            for done in (0..=300_000).step_by(1_000) {
                growth.add(done, count_of(done as f64) as usize);
            }
            // What is late or contradicts is ignored.
            growth.add(2_000, 5);
            growth.add(400_000, 5);
            let (expected, right) = (growth.expected(1_000_000) as f64, count_of(1e6));
            assert!((expected / right - 1.0).abs() < tolerance, "{expected} {right}");
            assert!(growth.samples.len() <= MAX_SAMPLES);
        };
        check(|done| done * 0.6, 0.01);
        check(|done| 200_000.0 * (1.0 - (-done / 200_000.0).exp()), 0.02);
        check(|done| done.min(10_000.0), 0.01);
        let mut none = KeyGrowth::default();
        none.add(10, 0);
        none.add(20, 0);
        assert_eq!(none.expected(1_000), 0);
        let mut many = KeyGrowth::default();
        many.add(1, 1 << 30);
        assert_eq!(many.expected(u64::MAX), usize::MAX);
    }
}
