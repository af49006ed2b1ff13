//! Sets of rules: [`RuleSet`].

/// A set of rules. Bit `i` represents `RULES[i]`.
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
