//! What a run reads, and how. `threads`, `ahead_len`, `chunk_len` and `mmap` do not change the output; `row_group_len` only decides
//! where row groups end; the other options decide which rows there are, and what they contain.

use super::error::RunError;
use super::summary::Progress;
use crate::canon::Policy;
use crate::input::{AHEAD_LEN, Sources};
use crate::output::Encoder;
use crate::record::InputFormat;
use crate::record::archive::RecordTypes;
use std::sync::atomic::AtomicBool;

/// Upper limit of [`RunOptions::max_record_len`], bytes. Percent-encoding can triple the length, and the texts of a row
/// group must stay below the 2 GiB that Arrow's 32-bit offsets can address.
pub(crate) const MAX_RECORD_LEN: usize = 512 << 20;

/// Maximum number of worker threads: more than any machine has cores. The command and the Python package accept no more.
/// Starting and waking threads takes time that grows with a power of their number.
pub const MAX_THREADS: usize = 512;

/// Text that a worker decodes at a time, bytes, unless [`RunOptions::chunk_len`] is set.
const DEFAULT_CHUNK_LEN: usize = 256 << 10;
/// Bytes of input per slice of a row group, see [`RunRequest::has_slices`].
pub(super) const SLICE_LEN: usize = 1 << 20;
/// Upper limit of [`RunOptions::row_group_len`], bytes of input.
pub(crate) const MAX_ROW_GROUP_LEN: usize = 128 << 20;

/// Sources, and how they become rows.
#[derive(Debug)]
pub struct RunRequest<'a> {
    /// The sources.
    pub sources: Sources,
    /// How they are read.
    pub options: &'a RunOptions,
    /// How records become rows. If the rows are written, it is that of the [`Encoder`](crate::output::Encoder).
    pub policy: &'a Policy,
    /// Counts that the run updates.
    pub progress: &'a Progress,
    /// Stages that row groups pass in order, see `Ticket::pass`.
    pub(super) stage_count: usize,
    /// Workers take row groups in slices of about [`SLICE_LEN`] bytes. Their rows stay in the cache, and memory does not hold a
    /// row group per thread.
    pub(super) has_slices: bool,
    /// The run counts rows and appends nothing. Row groups may end anywhere, so that their lines are not counted, which would cost
    /// a pass over the text; and workers do not wait for a slow row group.
    pub(super) appends_nothing: bool,
    /// Row groups are shorter if records have a base, so that the memory of their rows does not depend on bases.
    pub(super) counts_bases: bool,
    /// Row groups at the beginning that are not decoded.
    pub(super) skipped: SkippedGroups,
    /// No more row groups are read after this is set. Those that were read before become rows.
    pub(super) until: Option<&'a AtomicBool>,
}

/// Row groups at the beginning of the sources that a run skips, because an earlier run over the same sources had them.
#[derive(Debug, Default)]
pub(super) struct SkippedGroups {
    pub(super) count: u64,
    /// Their records of each source; empty if no row groups are skipped.
    pub(super) source_records: Vec<u64>,
}

impl<'a> RunRequest<'a> {
    /// A request of these parts.
    pub fn new(
        sources: Sources,
        options: &'a RunOptions,
        policy: &'a Policy,
        progress: &'a Progress,
    ) -> RunRequest<'a> {
        RunRequest {
            sources,
            options,
            policy,
            progress,
            stage_count: 0,
            has_slices: false,
            appends_nothing: false,
            counts_bases: false,
            skipped: SkippedGroups::default(),
            until: None,
        }
    }

    /// Checks that an output describes the rows of this request. The run may make more keys than are written, after those.
    ///
    /// # Errors
    /// [`RunError::Policy`], if a choice that keys depend on differs.
    pub(super) fn check_output<E>(&self, encoder: &Encoder) -> Result<(), RunError<E>> {
        let (run, output) = (self.policy, encoder.policy());
        // A choice that is the default may be missing among the others.
        let differing = |policy: &Policy, other: &Policy| {
            let others = other.describe();
            let differs = |choice: &(&str, String)| choice.0 != "recipes" && !others.contains(choice);
            policy.describe().into_iter().find(differs).map(|(name, _)| name)
        };
        let lacks_recipes = (!run.recipes.starts_with(&output.recipes)).then_some("recipes");
        let lacks_keys = (!run.more_keys.starts_with(&output.more_keys)).then_some("more_keys");
        let differing = differing(run, output).or_else(|| differing(output, run)).or(lacks_recipes).or(lacks_keys);
        differing.map_or(Ok(()), |name| Err(RunError::Policy(name)))
    }
}

/// How a run works.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Worker threads; 0 means one per core. At most [`MAX_THREADS`] are used.
    pub threads: usize,
    /// Bytes of memory per thread in which gzip files of many members are decompressed ahead of the records that are read.
    pub ahead_len: usize,
    /// Bytes of input per row group; at most 128 MiB.
    pub row_group_len: usize,
    /// Bytes that are decoded at a time. A chunk holds whole records, so a long record makes it longer.
    pub chunk_len: usize,
    /// Length limit of a record with its terminator, bytes; at most 512 MiB.
    pub max_record_len: usize,
    /// Map files into memory where possible.
    pub mmap: bool,
    /// Format of all sources.
    pub format: InputFormat,
    /// Which records of archives become rows.
    pub record_types: RecordTypes,
    /// The column `warc_filename` names an archive that is read by its path as given; otherwise without directories.
    pub archive_paths: bool,
    /// Count distinct keys. Off saves the time and memory of the count.
    pub count_distinct: bool,
    /// Stop after this many records of the input, in order. One thread does the work, because the number of records that a row
    /// group may have depends on the row groups before it.
    pub record_limit: Option<u64>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 0,
            ahead_len: AHEAD_LEN,
            row_group_len: 8 << 20,
            chunk_len: DEFAULT_CHUNK_LEN,
            max_record_len: 256 << 20,
            mmap: true,
            format: InputFormat::default(),
            record_types: RecordTypes::All,
            archive_paths: true,
            count_distinct: true,
            record_limit: None,
        }
    }
}

/// The number of cores that the process may use.
pub(crate) fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl RunOptions {
    /// The options with each number within its limits, and the number of threads set.
    pub(crate) fn clamped(&self) -> RunOptions {
        RunOptions {
            threads: match self.threads {
                _ if self.record_limit.is_some() => 1,
                0 => core_count(),
                threads => threads.min(MAX_THREADS),
            },
            row_group_len: self.row_group_len.clamp(1, MAX_ROW_GROUP_LEN),
            // How much is read past the last record of a limit is counted, and must not depend on the chunk length.
            chunk_len: match self.record_limit {
                Some(_) => DEFAULT_CHUNK_LEN,
                None => self.chunk_len.clamp(1, MAX_ROW_GROUP_LEN),
            },
            max_record_len: self.max_record_len.clamp(1, MAX_RECORD_LEN),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_limited() {
        let threads =
            |threads, record_limit| RunOptions { threads, record_limit, ..RunOptions::default() }.clamped().threads;
        assert_eq!([3, MAX_THREADS, usize::MAX].map(|count| threads(count, None)), [3, MAX_THREADS, MAX_THREADS]);
        assert_eq!((threads(0, None), threads(9, Some(5))), (core_count(), 1));
    }
}
