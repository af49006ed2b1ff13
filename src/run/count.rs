//! Counts the distinct records of sources by several keys, in one pass: [`count`]. Rows with a fault are counted as such and
//! have no key.

use super::by_input::canon_unordered;
use super::dedup::DedupError;
use super::distinct::HyperLogLog;
use super::{RowGroup, RowKey, RunError, RunOptions, RunRequest, Summary};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{KeyBuffer, KeyCounter, KindBits, MAX_KINDS, OnlyKind, key_number};
use crate::key::{KeyAlgorithm, KeyBytes};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

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
    /// Distinct records without a fault by each of the keys.
    pub distinct: Vec<u64>,
}

/// Counts the distinct records of the sources by each of these keys of the policy.
///
/// # Errors
/// As [`canon`](super::canon); also if temporary files cannot be used.
///
/// # Panics
/// If there are no keys, or more than 8.
pub fn count(
    request: RunRequest<'_>,
    keys: &[RowKey],
    method: &CountMethod,
) -> Result<DistinctCounts, RunError<DedupError>> {
    assert!((1..=MAX_KINDS).contains(&keys.len()), "{} keys; expected 1 to {MAX_KINDS}", keys.len());
    let options = &RunOptions { count_distinct: false, ..request.options.clone() };
    let request = RunRequest { options, ..request };
    let policy = request.policy;
    let (summary, distinct) = match method {
        CountMethod::Exact { memory, directory } => match keys.len() {
            1 => count_exactly::<OnlyKind>(request, keys, *memory, directory)?,
            _ => count_exactly::<u8>(request, keys, *memory, directory)?,
        },
        CountMethod::Approximate => {
            let (summary, mut distinct) = estimate(request, keys)?;
            limit_estimates(&mut distinct, keys, policy, summary.tally.rows - summary.tally.faulty);
            (summary, distinct)
        }
    };
    Ok(DistinctCounts { summary, distinct })
}

/// An estimate may exceed the number of rows, and be less on a lower rung than on a higher one.
fn limit_estimates(distinct: &mut [u64], keys: &[RowKey], policy: &Policy, rows: u64) {
    // The rung protocol is the highest.
    let height = |key: &RowKey| match key {
        RowKey::Rung => Some((false, policy.rung)),
        RowKey::More(index) => Some((false, policy.more_keys[*index])),
        RowKey::Protocol => Some((true, Rung::Scheme)),
        RowKey::Recipe(_) => None,
    };
    distinct.iter_mut().for_each(|count| *count = rows.min(*count));
    let mut rungs: Vec<_> = keys.iter().zip(distinct).filter_map(|(key, count)| Some((height(key)?, count))).collect();
    rungs.sort_by_key(|(height, _)| Reverse(*height));
    let mut above = 0;
    for (_, count) in rungs {
        above = above.max(*count);
        *count = above;
    }
}

fn count_exactly<K: KindBits>(
    request: RunRequest<'_>,
    keys: &[RowKey],
    memory: usize,
    directory: &Path,
) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let (algorithm, progress) = (request.policy.algorithm, request.progress);
    let counter = KeyCounter::new(memory, request.options.clamped().threads, directory);
    let buffers = Mutex::<Vec<KeyBuffer<K>>>::default();
    let collect = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut buffer = buffers.lock().pop().unwrap_or_default();
        visit_keys(rows, keys, algorithm, |key, kinds| buffer.push(key, K::from_bits(kinds.into())));
        counter.set_progress(progress.read(), progress.total());
        counter.insert_full(&mut buffer)?;
        buffers.lock().push(buffer);
        Ok(())
    };
    let summary = canon_unordered(request, collect)?;
    let mut buffers = buffers.into_inner();
    let counts = counter.insert_rest(&mut buffers).and_then(|()| counter.finish(&buffers));
    let counts = counts.map_err(RunError::output)?;
    Ok((summary, counts[..keys.len()].to_vec()))
}

fn estimate(request: RunRequest<'_>, keys: &[RowKey]) -> Result<(Summary, Vec<u64>), RunError<DedupError>> {
    let algorithm = request.policy.algorithm;
    let sketches = Mutex::<Vec<Vec<HyperLogLog>>>::default();
    let collect = |RowGroup { rows, .. }: RowGroup<'_>| {
        let mut own = sketches.lock().pop().unwrap_or_default();
        own.resize(keys.len(), HyperLogLog::default());
        visit_keys(rows, keys, algorithm, |key, kinds| {
            let of_key = own.iter_mut().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1);
            of_key.for_each(|(_, sketch)| sketch.insert(&key.to_be_bytes()));
        });
        sketches.lock().push(own);
        Ok(())
    };
    let summary = canon_unordered(request, collect)?;
    let mut totals = vec![HyperLogLog::default(); keys.len()];
    for sketches in sketches.into_inner() {
        totals.iter_mut().zip(&sketches).for_each(|(total, sketch)| total.merge(sketch));
    }
    Ok((summary, totals.iter().map(HyperLogLog::estimate).collect()))
}

/// Calls `each` with the distinct keys of every row without a fault, and the bits of the places in `keys` that they have. Most
/// rows have the same key for all.
fn visit_keys(rows: &Rows, keys: &[RowKey], algorithm: KeyAlgorithm, mut each: impl FnMut(u128, u8)) {
    if rows.is_empty() {
        return;
    }
    let kinds: Vec<Cow<'_, [KeyBytes]>> = keys.iter().map(|key| key.of_rows(rows, algorithm)).collect();
    let all = u8::MAX >> (u8::BITS as usize - kinds.len());
    let faulty = rows.faults.iter().map(|(row, _)| *row as usize).chain([rows.len()]);
    let mut next = 0;
    for sound in faulty.map(|end| std::mem::replace(&mut next, end + 1)..end) {
        if let [keys] = &kinds[..] {
            keys[sound].iter().for_each(|key| each(key_number(key), all));
            continue;
        }
        for row in sound {
            let first = &kinds[0][row];
            if kinds[1..].iter().all(|keys| keys[row] == *first) {
                each(key_number(first), all);
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
}
