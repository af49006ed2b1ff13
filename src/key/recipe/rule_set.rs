//! Sets of rules: [`RuleSet`].

/// A set of rules, for example those that changed a URL ([`Recipe::write_key`](super::Recipe::write_key)). Bit `i` represents
/// `RULES[i]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RuleSet(u64);

impl RuleSet {
    /// The empty set.
    pub(crate) const NONE: RuleSet = RuleSet(0);

    /// Returns the set if `is_applied`, otherwise the empty set.
    pub(super) fn filter(self, is_applied: bool) -> RuleSet {
        if is_applied { self } else { RuleSet::NONE }
    }

    /// Returns the rules of both sets.
    pub(super) fn or(self, other: RuleSet) -> RuleSet {
        RuleSet(self.0 | other.0)
    }

    /// Returns the set with the rule at `index` of [`super::RULES`].
    pub(super) const fn with(self, index: usize) -> RuleSet {
        RuleSet(self.0 | 1 << index)
    }

    /// Returns the set without the rule at `index` of [`super::RULES`].
    pub(super) const fn without(self, index: usize) -> RuleSet {
        RuleSet(self.0 & !(1 << index))
    }

    /// Returns whether the set contains the rule at `index` of [`super::RULES`].
    pub(super) const fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 != 0
    }

    /// Returns the rules of one of the sets that are not in the other.
    pub(super) const fn symmetric_difference(self, other: RuleSet) -> RuleSet {
        RuleSet(self.0 ^ other.0)
    }

    /// Returns the set as a number, whose bit `i` represents `RULES[i]`.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the indices in [`super::RULES`], in ascending order.
    pub(crate) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let index = rest.trailing_zeros() as usize;
            rest &= rest.checked_sub(1)?;
            Some(index)
        })
    }
}

/// Counts in how many sets each rule is. Adding a set takes the same few instructions, whatever its rules are: the counters
/// are bits of words, of which each has one bit per rule.
#[derive(Debug, Default)]
pub(super) struct RuleCounter {
    /// Word `i` has bit `i` of each rule's count.
    digits: [u64; RuleCounter::DIGITS],
    added: u32,
}

impl RuleCounter {
    const DIGITS: usize = 4;

    /// Adds a set. `totals`, indexed by rule, has the counts after [`RuleCounter::finish`].
    #[inline(always)]
    pub(super) fn add(&mut self, set: RuleSet, totals: &mut [u64]) {
        let mut carry = set.0;
        for digit in &mut self.digits {
            (*digit, carry) = (*digit ^ carry, *digit & carry);
        }
        self.added += 1;
        if self.added == (1 << RuleCounter::DIGITS) - 1 {
            self.finish(totals);
        }
    }

    /// Adds the counts to `totals` and starts again from zero.
    #[inline(never)]
    pub(super) fn finish(&mut self, totals: &mut [u64]) {
        for (place, digit) in self.digits.iter().enumerate() {
            RuleSet(*digit).iter().for_each(|rule| totals[rule] += 1 << place);
        }
        *self = RuleCounter::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_counted() {
        let mut seed = 1_u64;
        for count in 0..100 {
            let (mut counter, mut totals, mut expected) = (RuleCounter::default(), [0; 64], [0; 64]);
            for _ in 0..count {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let set = RuleSet(seed ^ seed >> 32);
                counter.add(set, &mut totals);
                set.iter().for_each(|rule| expected[rule] += 1);
            }
            counter.finish(&mut totals);
            assert_eq!(totals, expected);
        }
    }
}
