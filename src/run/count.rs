//! Records in, how many of them are distinct on each rung out: [`count`], in one pass. Rows with a fault are counted as
//! such and compete on no rung.

use super::dedup::DedupError;
use super::{HyperLogLog, Progress, RunError, RunOptions, Summary, canon};
use crate::canon::{KeyBytes, Policy, Rows, Rung};
use crate::dedup::{Kinds, LANES, Scattered, number};
use crate::input::Sources;
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
}

/// Counts the distinct records of `inputs` on every rung up to the policy's.
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
    summary.distinct_keys = counts.last().copied().unwrap_or(0);
    summary.is_distinct_exact = matches!(counting, Counting::Exact { .. });
    Ok(Counted { summary, rungs: lower.iter().copied().chain([policy.rung]).zip(counts).collect() })
}

fn exact(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    memory: usize,
    directory: &std::path::Path,
    progress: &Progress,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let kinds = Kinds::new(memory, directory);
    let (scratches, worker) = (Mutex::<Vec<(Vec<_>, Scattered)>>::default(), AtomicUsize::new(0));
    let encode = |rows: &mut Rows, _: &[_]| {
        let (mut keys, mut scattered) = pop(&scratches);
        keys.clear();
        keys_of(rows, |key, rungs| keys.push((key, rungs)));
        kinds.add(worker.fetch_add(3, Ordering::Relaxed) % LANES, &keys, &mut scattered)?;
        push(&scratches, (keys, scattered));
        Ok(())
    };
    let summary = canon(inputs, options, policy, encode, |()| Ok(()), progress)?;
    let counts = kinds.count(memory).map_err(|error| RunError::Output(error.into()))?;
    Ok((summary, counts[..=policy.more_keys.len()].to_vec()))
}

fn approximate(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    progress: &Progress,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let sketches = Mutex::<Vec<Vec<HyperLogLog>>>::default();
    let encode = |rows: &mut Rows, _: &[_]| {
        let mut mine = pop(&sketches);
        mine.resize(policy.more_keys.len() + 1, HyperLogLog::default());
        keys_of(rows, |key, rungs| {
            let of_key = mine.iter_mut().enumerate().filter(|(rung, _)| rungs >> rung & 1 == 1);
            of_key.for_each(|(_, sketch)| sketch.insert(&key.to_be_bytes()));
        });
        push(&sketches, mine);
        Ok(())
    };
    let summary = canon(inputs, options, policy, encode, |()| Ok(()), progress)?;
    let mut all = vec![HyperLogLog::default(); policy.more_keys.len() + 1];
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

/// Tells `each` the keys of rows without a fault, each key of a row once, with the rungs that it is the key of, a bit
/// each. Most rows have one key on all rungs.
fn keys_of(rows: &Rows, mut each: impl FnMut(u128, u8)) {
    let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
    let own = 1u8 << rows.more_keys.len();
    for row in 0..rows.len() {
        if faults.next_if_eq(&row).is_some() {
            continue;
        }
        let key = &rows.key[row];
        let of = |wanted: &KeyBytes| {
            let lower = rows.more_keys.iter().enumerate().filter(|(_, keys)| keys[row] == *wanted);
            lower.fold(0, |bits, (rung, _)| bits | 1u8 << rung)
        };
        let bits = own | of(key);
        each(number(key), bits);
        let mut told = bits;
        for (rung, keys) in rows.more_keys.iter().enumerate() {
            if told >> rung & 1 == 0 {
                let bits = of(&keys[row]);
                told |= bits;
                each(number(&keys[row]), bits);
            }
        }
    }
}
