//! What rules remove from URLs: [`RemovalLog`].

/// A hash of what a rule removed from a URL; 0 if it removed nothing. URLs that the rule makes equal may differ in it.
pub(crate) type Removed = u64;

/// Takes note of the rules that change a URL.
pub(crate) trait RemovalLog {
    /// A rule, by its number, removed something.
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed);
}

/// Collects what rules removed from a URL, each with the number of the rule.
pub(super) type RemovedByRule = Vec<(u16, Removed)>;

impl RemovalLog for RemovedByRule {
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed) {
        self.push((rule, removed()));
    }
}

/// Takes no note.
pub(super) struct NoLog;

impl RemovalLog for NoLog {
    #[inline(always)]
    fn add(&mut self, _rule: u16, _removed: impl FnOnce() -> Removed) {}
}
