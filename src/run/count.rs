//! Counts the distinct records of sources on every rung, in one pass: [`count`]. Rows with a fault are counted as such and
//! compete on no rung.

use super::dedup::DedupError;
use super::{HyperLogLog, RowGroup, RunError, RunOptions, RunRequest, Summary, canon};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{KeyBuffer, KeyCounter, PARTITIONS, key_number};
use crate::key::KeyBytes;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How distinct keys are counted.
#[derive(Clone, Debug)]
pub enum CountMethod {
    /// Every key is stored.
    Exact {
        /// Bytes of memory; further keys go to temporary files.
        memory: usize,
        /// Directory of temporary files.
        directory: PathBuf,
    },
    /// An estimate by HyperLogLog, nearly always within 2 %.
    Approximate,
}

/// The result of a count.
#[derive(Debug)]
pub struct DistinctCounts {
    /// Counts of the run.
    pub summary: Summary,
    /// Distinct records without a fault on each rung, the lowest rung first.
    pub rungs: Vec<(Rung, u64)>,
    /// The same by the keys of representatives, if the policy has equivalences.
    pub protocol: Option<u64>,
}

/// After each row group, a worker inserts its keys beginning with another partition, this many partitions further.
const PARTITION_STEP: usize = 23;

/// Counts the distinct records of the sources on every rung up to the policy's, and by its equivalences.
///
/// # Errors
/// As [`canon`]; also if temporary files cannot be used.
pub fn count(request: RunRequest<'_>, method: &CountMethod) -> Result<DistinctCounts, RunError<DedupError>> {
    let lower: &[Rung] = match request.policy.rung {
        Rung::Simple => &[],
        Rung::Syntax => &[Rung::Simple],
        Rung::Scheme => &[Rung::Simple, Rung::Syntax],
    };
    let RunRequest { sources, options, policy, progress, .. } = request;
    let policy = &Policy { more_keys: lower.to_vec(), keep_input: false, ..policy.clone() };
    let options = &RunOptions { count_distinct: false, ..options.clone() };
    let request = RunRequest::new(sources, options, policy, progress);
    let (mut summary, mut counts) = match method {
        CountMethod::Exact { memory, directory } => count_exactly(request, *memory, directory)?,
        CountMethod::Approximate => estimate(request)?,
    };
    // An estimate may exceed the number of rows, and be less on a lower rung than on a higher one.
    let rows = summary.tally.rows - summary.tally.faulty;
    let mut above = 0;
    for count in counts.iter_mut().rev() {
        *count = (*count).clamp(above, rows.max(above));
        above = *count;
    }
    let rungs: Vec<_> = lower.iter().copied().chain([policy.rung]).zip(counts.iter().copied()).collect();
    summary.distinct_keys = rungs.last().map_or(0, |(_, count)| *count);
    summary.is_distinct_exact = matches!(method, CountMethod::Exact { .. });
    Ok(DistinctCounts { summary, protocol: counts.get(rungs.len()).copied(), rungs })
}

fn count_exactly(
    request: RunRequest<'_>,
    memory: usize,
    directory: &Path,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let kinds = kind_count(request.policy);
    let threads = request.options.clamped().threads;
    let counter = KeyCounter::new(memory, threads, directory);
    let (buffers, next_partition) = (Mutex::<Vec<KeyBuffer>>::default(), AtomicUsize::new(0));
    let collect = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut buffer = pop(&buffers);
        visit_keys(rows, |key, kinds| buffer.push(key, kinds));
        let first_partition = next_partition.fetch_add(PARTITION_STEP, Ordering::Relaxed) % PARTITIONS;
        counter.insert_full(&mut buffer, first_partition)?;
        push(&buffers, buffer);
        Ok(Some(()))
    };
    let summary = canon(request, collect, |()| Ok(()))?;
    let mut buffers = buffers.into_inner().unwrap_or_else(PoisonError::into_inner);
    let inserted = std::thread::scope(|scope| {
        let insert = |buffer| scope.spawn(|| counter.insert_all(buffer));
        let threads: Vec<_> = buffers.iter_mut().map(insert).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let counts = inserted.and_then(|()| counter.finish(&buffers, threads, memory));
    let counts = counts.map_err(|error| RunError::Output(error.into()))?;
    Ok((summary, counts[..kinds].to_vec()))
}

fn estimate(request: RunRequest<'_>) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let kinds = kind_count(request.policy);
    let sketches = Mutex::<Vec<Vec<HyperLogLog>>>::default();
    let collect = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut own = pop(&sketches);
        own.resize(kinds, HyperLogLog::default());
        visit_keys(rows, |key, kinds| {
            let of_key = own.iter_mut().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1);
            of_key.for_each(|(_, sketch)| sketch.insert(&key.to_be_bytes()));
        });
        push(&sketches, own);
        Ok(Some(()))
    };
    let summary = canon(request, collect, |()| Ok(()))?;
    let mut totals = vec![HyperLogLog::default(); kinds];
    for sketches in sketches.into_inner().unwrap_or_else(PoisonError::into_inner) {
        totals.iter_mut().zip(&sketches).for_each(|(total, sketch)| total.merge(sketch));
    }
    Ok((summary, totals.iter().map(HyperLogLog::estimate).collect()))
}

fn pop<T: Default>(pool: &Mutex<Vec<T>>) -> T {
    pool.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

fn push<T>(pool: &Mutex<Vec<T>>, item: T) {
    pool.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

/// Number of kinds of keys: the rungs, the lowest first, and representatives.
fn kind_count(policy: &Policy) -> usize {
    policy.more_keys.len() + 1 + usize::from(policy.equivalences.is_some())
}

/// Calls `each` with the distinct keys of every row without a fault, and the bits of their kinds. Most rows have the same
/// key for all kinds.
fn visit_keys(rows: &Rows, mut each: impl FnMut(u128, u8)) {
    let protocol = Some(&rows.protocol).filter(|keys| !keys.is_empty());
    let kinds: Vec<&[KeyBytes]> = rows.more_keys.iter().chain([&rows.key]).chain(protocol).map(Vec::as_slice).collect();
    let all = u8::MAX >> (u8::BITS as usize - kinds.len());
    let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
    for row in 0..rows.len() {
        if faults.next_if_eq(&row).is_some() {
            continue;
        }
        if kinds[1..].iter().all(|keys| keys[row] == kinds[0][row]) {
            each(key_number(&kinds[0][row]), all);
            continue;
        }
        let mut visited = 0;
        while visited != all {
            let key = &kinds[(!visited).trailing_zeros() as usize][row];
            let equal = kinds.iter().enumerate().filter(|(_, keys)| keys[row] == *key);
            let bits = equal.fold(0, |bits, (kind, _)| bits | 1u8 << kind);
            visited |= bits;
            each(key_number(key), bits);
        }
    }
}
