//! Gzip members of an archive: [`Members`] knows which one the parser is in, and whether records end with members.

use std::collections::VecDeque;

/// Where a gzip member ends, in bytes of the decompressed archive and of the file.
#[derive(Clone, Copy, Debug, Default)]
struct MemberBoundary {
    unpacked: u64,
    packed: u64,
}

/// The members of an archive, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Ends of members. Those before `passed` are before the parser's position.
    ends: VecDeque<MemberBoundary>,
    passed: usize,
    /// A member began within a record, so the ends of members are not those of records.
    is_in_blocks: bool,
    /// The beginning of a member within a record, if it is not known yet whether it is a header.
    probe_at: Option<u64>,
    /// Records that began in the current member.
    record_count: u64,
    /// The last member had one record.
    has_single_records: bool,
    /// How often an end was passed on its own.
    #[cfg(test)]
    pub(super) pass_count: u64,
}

impl Members {
    /// Adds the end of a member: after byte `unpacked` of the archive, and after byte `packed` of the file.
    pub(super) fn push(&mut self, unpacked: u64, packed: u64) {
        self.ends.push_back(MemberBoundary { unpacked, packed });
    }

    /// The next end after the parser's position, in the decompressed archive.
    pub(super) fn next_end(&self) -> Option<u64> {
        self.ends.get(self.passed).map(|end| end.unpacked)
    }

    /// Passes the next end; returns its position in the file. `is_within` a record: what follows is to be inspected.
    pub(super) fn pass(&mut self, is_within: bool) -> u64 {
        let end = self.ends.get(self.passed).copied().unwrap_or_default();
        self.passed += 1;
        #[cfg(test)]
        {
            self.pass_count += 1;
        }
        self.has_single_records = !is_within && self.record_count == 1;
        self.record_count = 0;
        self.probe_at = (is_within && !self.is_in_blocks).then_some(end.unpacked);
        end.packed
    }

    /// Whether the ends of members within the content of the current record are irrelevant, so that they need not be
    /// passed one by one.
    pub(super) fn are_blocks_of_record(&self) -> bool {
        self.is_in_blocks && !self.has_own_member()
    }

    /// Passes the ends up to byte `at`, within the content of the current record. Members are blocks.
    pub(super) fn pass_blocks(&mut self, at: u64) {
        let passed = self.ends.partition_point(|end| end.unpacked <= at);
        if passed > self.passed {
            self.passed = passed;
            (self.has_single_records, self.record_count) = (false, 0);
        }
    }

    /// Moves to byte `at` of the archive.
    pub(super) fn seek(&mut self, at: u64) {
        self.passed = self.ends.partition_point(|end| end.unpacked <= at);
    }

    /// Forgets the ends before byte `at` of the archive, except the last of them.
    pub(super) fn forget_before(&mut self, at: u64) {
        while self.passed > 1 && self.ends.get(1).is_some_and(|end| end.unpacked <= at) {
            self.ends.pop_front();
            self.passed -= 1;
        }
    }

    /// Counts a record that begins at byte `at`; returns where in the file, if it begins with a member.
    pub(super) fn begin_record(&mut self, at: u64) -> Option<u64> {
        self.record_count += 1;
        match self.passed.checked_sub(1).and_then(|last| self.ends.get(last)) {
            Some(start) => (start.unpacked == at).then_some(start.packed),
            None => (at == 0).then_some(0),
        }
    }

    /// Whether each record before the current one, and as far as is known the current one, has a member of its own.
    pub(super) fn has_own_member(&self) -> bool {
        self.has_single_records && self.record_count == 1
    }

    /// Whether the records so far began and ended with members. A member has ended before.
    pub(super) fn are_records(&self) -> bool {
        !self.is_in_blocks
    }

    /// Where the last member that was passed ends in the file.
    pub(super) fn last_end(&self) -> Option<u64> {
        self.passed.checked_sub(1).and_then(|last| self.ends.get(last)).map(|end| end.packed)
    }

    /// The beginning of a member within a record, if it is not known yet whether it is a header.
    pub(super) fn probe_at(&self) -> Option<u64> {
        self.probe_at
    }

    /// States whether the member within a record begins with a header.
    pub(super) fn end_probe(&mut self, is_header: bool) {
        self.probe_at = None;
        self.is_in_blocks |= !is_header;
    }
}
