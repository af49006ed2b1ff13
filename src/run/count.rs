//! Records in, how many of them are distinct on each rung out: [`count`], in one pass. Rows with a fault are counted as
//! such and compete on no rung.

use super::dedup::DedupError;
use super::{HyperLogLog, Progress, RowGroup, RunError, RunOptions, RunRequest, Summary, canon};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{Gathering, Kinds, PARTITIONS, number};
use crate::input::Sources;
use crate::key::KeyBytes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How to count.
#[derive(Clone, Debug)]
pub enum Counting {
    /// Every key is kept: in so many bytes of memory, and past them in temporary files in this directory.
    Exact {
        /// Bytes of memory.
        memory: usize,
        /// Where temporary files go.
        directory: PathBuf,
    },
    /// By [`HyperLogLog`], within 2 % nearly always.
    Approximate,
}

/// What was counted.
#[derive(Debug)]
pub struct Counted {
    /// What reading came to.
    pub summary: Summary,
    /// Distinct records without a fault, by rung, the lowest first.
    pub rungs: Vec<(Rung, u64)>,
    /// The same by the keys of representatives, where the policy has equivalences.
    pub protocol: Option<u64>,
}

/// Counts the distinct records of `inputs` on every rung up to the policy's, and by its equivalences.
///
/// # Errors
/// As [`canon`]; besides, temporary files that cannot be written.
pub fn count(
    inputs: Sources,
    options: &RunOptions,
    counting: &Counting,
    policy: &Policy,
    progress: &Progress,
) -> Result<Counted, RunError<DedupError>> {
    let lower: &[Rung] = match policy.rung {
        Rung::Simple => &[],
        Rung::Syntax => &[Rung::Simple],
        Rung::Scheme => &[Rung::Simple, Rung::Syntax],
    };
    let policy = Policy { more_keys: lower.to_vec(), keep_input: false, ..policy.clone() };
    let options = &RunOptions { count_distinct: false, ..options.clone() };
    let (mut summary, mut counts) = match counting {
        Counting::Exact { memory, directory } => exact(inputs, options, &policy, *memory, directory, progress)?,
        Counting::Approximate => approximate(inputs, options, &policy, progress)?,
    };
    // An estimate may be a little more than all there are, and less on a lower rung than on a higher one.
    let most = summary.tally.rows - summary.tally.faulty;
    let mut above = 0;
    for count in counts.iter_mut().rev() {
        *count = (*count).clamp(above, most.max(above));
        above = *count;
    }
    let rungs: Vec<_> = lower.iter().copied().chain([policy.rung]).zip(counts.iter().copied()).collect();
    summary.distinct_keys = rungs.last().map_or(0, |(_, count)| *count);
    summary.is_distinct_exact = matches!(counting, Counting::Exact { .. });
    Ok(Counted { summary, protocol: counts.get(rungs.len()).copied(), rungs })
}

fn exact(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    memory: usize,
    directory: &std::path::Path,
    progress: &Progress,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let kinds = Kinds::new(memory, options.clamped().threads, directory);
    let (gatherings, worker) = (Mutex::<Vec<Gathering>>::default(), AtomicUsize::new(0));
    let encode = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut gathering = pop(&gatherings);
        keys_of(rows, |key, kinds| gathering.push(key, kinds));
        kinds.take(&mut gathering, worker.fetch_add(23, Ordering::Relaxed) % PARTITIONS)?;
        push(&gatherings, gathering);
        Ok(Some(()))
    };
    let summary = canon(RunRequest::new(inputs, options, policy, progress), encode, |()| Ok(()))?;
    let gatherings = gatherings.into_inner().unwrap_or_else(PoisonError::into_inner);
    let counts = kinds.count(gatherings, memory).map_err(|error| RunError::Output(error.into()))?;
    Ok((summary, counts[..kind_count(policy)].to_vec()))
}

fn approximate(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    progress: &Progress,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let sketches = Mutex::<Vec<Vec<HyperLogLog>>>::default();
    let encode = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut mine = pop(&sketches);
        mine.resize(kind_count(policy), HyperLogLog::default());
        keys_of(rows, |key, kinds| {
            let of_key = mine.iter_mut().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1);
            of_key.for_each(|(_, sketch)| sketch.insert(&key.to_be_bytes()));
        });
        push(&sketches, mine);
        Ok(Some(()))
    };
    let summary = canon(RunRequest::new(inputs, options, policy, progress), encode, |()| Ok(()))?;
    let mut all = vec![HyperLogLog::default(); kind_count(policy)];
    for some in sketches.into_inner().unwrap_or_else(PoisonError::into_inner) {
        all.iter_mut().zip(&some).for_each(|(all, some)| all.merge(some));
    }
    Ok((summary, all.iter().map(HyperLogLog::estimate).collect()))
}

fn pop<T: Default>(pool: &Mutex<Vec<T>>) -> T {
    pool.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

fn push<T>(pool: &Mutex<Vec<T>>, item: T) {
    pool.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

/// Kinds of keys: those of the rungs, the lowest first, and that of representatives.
fn kind_count(policy: &Policy) -> usize {
    policy.more_keys.len() + 1 + usize::from(policy.equivalences.is_some())
}

/// Tells `each` the keys of rows without a fault, each key of a row once, with its kinds, a bit each. Most rows have one
/// key of all kinds.
fn keys_of(rows: &Rows, mut each: impl FnMut(u128, u8)) {
    let protocol = Some(&rows.protocol).filter(|keys| !keys.is_empty());
    let kinds: Vec<&[KeyBytes]> = rows.more_keys.iter().chain([&rows.key]).chain(protocol).map(Vec::as_slice).collect();
    let all = u8::MAX >> (u8::BITS as usize - kinds.len());
    let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
    for row in 0..rows.len() {
        if faults.next_if_eq(&row).is_some() {
            continue;
        }
        if kinds[1..].iter().all(|keys| keys[row] == kinds[0][row]) {
            each(number(&kinds[0][row]), all);
            continue;
        }
        let mut told = 0;
        while told != all {
            let key = &kinds[(!told).trailing_zeros() as usize][row];
            let alike = kinds.iter().enumerate().filter(|(_, keys)| keys[row] == *key);
            let bits = alike.fold(0, |bits, (kind, _)| bits | 1u8 << kind);
            told |= bits;
            each(number(key), bits);
        }
    }
}
