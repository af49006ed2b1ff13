//! What rules remove from URLs: [`RemovalObserver`].

/// A hash of what a rule removed from a URL; 0 if it removed nothing. URLs that the rule makes equal may differ in it.
pub(crate) type Removed = u64;

/// Observes what rules remove from a URL.
pub(crate) trait RemovalObserver {
    /// Adds what the rule with this number removed.
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed);
}

/// What rules removed from a URL, each with the number of the rule.
impl RemovalObserver for Vec<(u16, Removed)> {
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed) {
        self.push((rule, removed()));
    }
}

/// Ignores what rules remove. Then `removed` is not computed.
pub(super) struct IgnoredRemovals;

impl RemovalObserver for IgnoredRemovals {
    #[inline(always)]
    fn add(&mut self, _rule: u16, _removed: impl FnOnce() -> Removed) {}
}
