//! What rules remove from URLs: [`RemovalLog`].

/// What a rule removed from a URL, or `NOTHING`. It tells apart the URLs that the rule makes equal.
pub(crate) type Removed = u64;

/// Takes note of the rules that change a URL.
pub(crate) trait RemovalLog {
    /// A rule, by its number, removed something.
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed);
}

/// Collects what each rule removed from a URL: number of the rule and hash of the text.
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
