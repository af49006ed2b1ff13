//! Reading the keys of several runs together: in ascending order ([`KeyCursor`]), merged into one run ([`RunMerge`]), and as a
//! set in memory ([`SeenSet`]).

use super::super::key_set::{PARTITION_BITS, PARTITIONS, PartitionedKeys, partition_of};
use super::super::key_table::KeyTable;
use super::run_file::{BLOCK_KEYS, BUFFER_LEN, RunInfo, RunWriter, SealedRun, SeenError, SeenRun};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Keys that are merged at a time.
const BATCH_KEYS: usize = BLOCK_KEYS as usize;

/// The keys of several runs in ascending order. A key of two runs comes twice.
#[derive(Debug)]
pub(crate) struct KeyCursor<'a> {
    runs: Vec<RunCursor<'a>>,
}

#[derive(Debug)]
struct RunCursor<'a> {
    run: &'a SeenRun,
    keys: Vec<u128>,
    at: usize,
    /// The block after `keys`.
    next: usize,
}

impl<'a> KeyCursor<'a> {
    /// Starts at the first key that is at least `from`.
    pub(super) fn new(runs: &'a [SeenRun], from: u128) -> Result<KeyCursor<'a>, SeenError> {
        let open = |run: &'a SeenRun| RunCursor { run, keys: Vec::new(), at: 0, next: 0 };
        let mut cursor = KeyCursor { runs: runs.iter().map(open).collect() };
        cursor.seek(from)?;
        Ok(cursor)
    }

    /// The next key, without consuming it.
    fn peek(&self) -> Option<u128> {
        self.runs.iter().filter_map(RunCursor::head).min()
    }

    /// Consumes and returns the next key.
    pub(super) fn next_key(&mut self) -> Result<Option<u128>, SeenError> {
        let heads = self.runs.iter().enumerate().filter_map(|(i, run)| Some((run.head()?, i)));
        let Some((key, least)) = heads.min() else { return Ok(None) };
        self.runs[least].at += 1;
        self.runs[least].fill()?;
        if self.runs[least].head().is_none() {
            self.runs.remove(least);
        }
        Ok(Some(key))
    }

    /// Consumes the keys that are less than `key`, and returns whether `key` comes next. Blocks that have only such keys are not
    /// read.
    pub(crate) fn seek(&mut self, key: u128) -> Result<bool, SeenError> {
        self.runs.iter_mut().try_for_each(|run| run.seek(key))?;
        self.runs.retain(|run| run.head().is_some());
        Ok(self.peek() == Some(key))
    }
}

impl RunCursor<'_> {
    fn head(&self) -> Option<u128> {
        self.keys.get(self.at).copied()
    }

    /// Skips the keys that are less than `key`.
    fn seek(&mut self, key: u128) -> Result<(), SeenError> {
        if self.keys.last().is_none_or(|last| *last < key) {
            self.at = self.keys.len();
            self.next = self.next.max(self.run.block_of(key));
            self.fill()?;
        }
        self.at += self.keys[self.at..].partition_point(|known| *known < key);
        self.fill()
    }

    /// Reads the next block if all keys are consumed.
    fn fill(&mut self) -> Result<(), SeenError> {
        if self.at == self.keys.len() && self.next < self.run.block_count() {
            self.keys = self.run.keys(self.next)?;
            self.next += 1;
            self.at = 0;
        }
        Ok(())
    }
}

/// A merge of the last runs of a store, which can run while the store is read.
#[derive(Debug)]
pub(crate) struct RunMerge {
    runs: Vec<SeenRun>,
    writer: RunWriter,
}

/// The merged run and the runs that it replaces.
#[derive(Debug)]
pub(crate) struct MergedRuns {
    pub(super) replaces: Vec<RunInfo>,
    pub(super) run: SealedRun,
}

impl RunMerge {
    /// Opens the runs again, so that another thread can read them.
    pub(super) fn new(directory: &Path, runs: &[SeenRun], writer: RunWriter) -> Result<RunMerge, SeenError> {
        let runs = runs.iter().map(|run| SeenRun::open(directory, run.info().clone())).collect::<Result<_, _>>()?;
        Ok(RunMerge { runs, writer })
    }

    /// Bytes of memory that the merge takes.
    pub(crate) fn memory_len(&self) -> usize {
        (self.runs.len() + 1) * BATCH_KEYS * size_of::<u128>() + BUFFER_LEN
    }

    /// Merges the runs; returns `None` if `is_stopped` becomes true.
    pub(crate) fn run(mut self, is_stopped: &AtomicBool) -> Result<Option<MergedRuns>, SeenError> {
        let mut cursor = KeyCursor::new(&self.runs, 0)?;
        let mut keys = Vec::with_capacity(BATCH_KEYS);
        loop {
            while keys.len() < BATCH_KEYS
                && let Some(key) = cursor.next_key()?
            {
                keys.push(key);
            }
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if keys.is_empty() {
                break;
            }
            self.writer.extend(keys.drain(..))?;
        }
        let replaces = self.runs.iter().map(|run| run.info().clone()).collect();
        Ok(Some(MergedRuns { replaces, run: self.writer.seal()? }))
    }
}

/// The index of the first run to merge, given the numbers of keys of all runs (size-tiered compaction). The last run is always
/// merged. From there backward, a run is merged with those after it while it has less than twice their keys. Thus a key is
/// copied O(log n) times, and O(log n) runs remain.
pub(super) fn first_run_to_merge(counts: &[u64]) -> usize {
    let (mut first, mut sum) = (counts.len(), 0);
    while first > 0 && (first == counts.len() || counts[first - 1] < 2 * sum) {
        first -= 1;
        sum += counts[first];
    }
    first
}

/// All keys of a store in memory, by partition, for lookups by many workers.
#[derive(Debug)]
pub(crate) struct SeenSet {
    tables: Vec<KeyTable<()>>,
}

impl SeenSet {
    /// About the bytes of memory of a set of `count` keys.
    pub(crate) fn memory_len(count: u64) -> usize {
        let of_partition = usize::try_from(count.div_ceil(PARTITIONS as u64)).unwrap_or(usize::MAX);
        KeyTable::<()>::len_of(of_partition).saturating_mul(PARTITIONS)
    }

    /// Reads all keys from a cursor that starts at 0.
    pub(crate) fn read(mut cursor: KeyCursor<'_>) -> Result<SeenSet, SeenError> {
        let mut tables = Vec::with_capacity(PARTITIONS);
        for partition in 0..PARTITIONS {
            let mut keys = Vec::new();
            while let Some(key) = cursor.peek().filter(|key| partition_of(*key, 0) == partition) {
                cursor.next_key()?;
                keys.push(key);
            }
            keys.dedup();
            tables.push(KeyTable::of(&keys, PARTITION_BITS));
        }
        Ok(SeenSet { tables })
    }

    /// Calls `seen` with the rows of those `keys` that are in the set.
    pub(crate) fn find(&self, keys: &PartitionedKeys, mut seen: impl FnMut(u32)) {
        for (partition, table) in self.tables.iter().enumerate() {
            let (keys, rows) = keys.partition(partition);
            table.contains_all(keys, |i| seen(rows[i]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_runs_are_merged_before_large_ones() {
        assert_eq!(first_run_to_merge(&[]), 0);
        assert_eq!(first_run_to_merge(&[5]), 0);
        assert_eq!(first_run_to_merge(&[100, 40, 30, 6]), 3);
        assert_eq!(first_run_to_merge(&[100, 40, 30, 16]), 0);
        assert_eq!(first_run_to_merge(&[1000, 40, 30, 16]), 1);
    }

    #[test]
    fn many_equal_jobs_leave_few_runs() {
        let mut counts: Vec<u64> = Vec::new();
        for _ in 0..1000 {
            let merged = counts.split_off(first_run_to_merge(&counts)).into_iter().sum();
            counts.extend([merged, 7].into_iter().filter(|count| *count > 0));
            assert!(counts.len() <= 12, "{counts:?}");
        }
    }
}
