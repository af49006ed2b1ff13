//! How many keys are distinct. In: keys. Out: an exact count while there are few, else an estimate by HyperLogLog
//! (Flajolet et al. 2007, with the estimator of Ertl 2017, "New cardinality estimation algorithms for HyperLogLog
//! sketches", algorithm 6, which has no bias at any size). The same keys in any order and on any number of threads give
//! the same answer.

use crate::key::KeyBytes;
use rayon::slice::ParallelSliceMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Up to this many rows the count is exact.
const EXACT_ROWS: usize = 1 << 20;

/// Bits of a key that choose a register.
const PRECISION: u32 = 14;
const REGISTERS: usize = 1 << PRECISION;
/// Bits of a key that are looked at for leading zeros, and the highest value of a register.
const RANK_BITS: u32 = 64 - PRECISION;

/// Counts distinct keys within 2 % (standard error 0.8 %) in 16 KiB.
#[derive(Clone, Debug)]
pub struct HyperLogLog {
    registers: Box<[u8; REGISTERS]>,
}

impl Default for HyperLogLog {
    fn default() -> HyperLogLog {
        HyperLogLog { registers: Box::new([0; REGISTERS]) }
    }
}

impl HyperLogLog {
    /// Counts a key. Keys are hashes already, so the first 64 of their bits serve as they are.
    #[inline]
    pub fn insert(&mut self, key: &KeyBytes) {
        let hash = key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        let register = &mut self.registers[(hash >> RANK_BITS) as usize];
        let rank = ((hash << PRECISION).leading_zeros().min(RANK_BITS) + 1) as u8;
        *register = (*register).max(rank);
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &HyperLogLog) {
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers.iter()) {
            *mine = (*mine).max(*theirs);
        }
    }

    /// The estimate.
    pub fn estimate(&self) -> u64 {
        let mut counts = [0u32; RANK_BITS as usize + 2];
        for &register in self.registers.iter() {
            counts[register as usize] += 1;
        }
        let m = REGISTERS as f64;
        let mut z = m * tau((m - f64::from(counts[RANK_BITS as usize + 1])) / m);
        for &count in counts[1..=RANK_BITS as usize].iter().rev() {
            z = 0.5 * (z + f64::from(count));
        }
        z += m * sigma(f64::from(counts[0]) / m);
        (m * m / (2.0 * std::f64::consts::LN_2 * z)).round() as u64
    }
}

/// `x + sum over k >= 1 of x^(2^k) 2^(k-1)`; infinite at 1.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// `(1 - x - sum over k >= 1 of (1 - x^(2^-k))^2 2^-k) / 3`.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// Distinct keys of rows: all keys while they are few, and the sketch beside them.
#[derive(Clone, Debug, Default)]
pub struct Distinct {
    sketch: HyperLogLog,
    keys: Vec<KeyBytes>,
    is_many: bool,
    /// Rows of this one and of all that count for the same answer.
    rows: Arc<AtomicU64>,
}

impl Distinct {
    /// One more that counts for the same answer, to be merged in the end: together they keep as many keys as one would.
    pub fn beside(&self) -> Distinct {
        Distinct { rows: Arc::clone(&self.rows), ..Distinct::default() }
    }

    /// Counts the keys of rows.
    pub fn extend(&mut self, keys: &[KeyBytes]) {
        keys.iter().for_each(|key| self.sketch.insert(key));
        let count = keys.len() as u64;
        self.is_many |= self.rows.fetch_add(count, Ordering::Relaxed) + count > EXACT_ROWS as u64;
        self.keep(keys);
    }

    fn keep(&mut self, keys: &[KeyBytes]) {
        self.is_many |= self.keys.len() + keys.len() > EXACT_ROWS;
        if self.is_many {
            self.keys = Vec::new();
        } else {
            self.keys.extend_from_slice(keys);
        }
    }

    /// Adds what another worker counted.
    pub fn merge(&mut self, other: &Distinct) {
        self.sketch.merge(&other.sketch);
        self.is_many |= other.is_many;
        self.keep(&other.keys);
    }

    /// The count, and whether it is exact.
    pub fn count(mut self) -> (u64, bool) {
        if self.is_many {
            return (self.sketch.estimate(), false);
        }
        self.keys.par_sort_unstable();
        self.keys.dedup();
        (self.keys.len() as u64, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyAlgorithm;

    fn key(i: u64) -> KeyBytes {
        KeyAlgorithm::Xxh3.key(&i.to_le_bytes())
    }

    #[test]
    fn estimates_are_within_two_percent() {
        let mut sketch = HyperLogLog::default();
        assert_eq!(sketch.estimate(), 0);
        let mut counted = 0;
        for target in [1, 100, 5_000, 20_000, 40_000, 60_000, 80_000, 100_000, 300_000, 1_000_000, 3_000_000] {
            (counted..target).for_each(|i| sketch.insert(&key(i)));
            counted = target;
            let error = (sketch.estimate() as f64 - target as f64).abs() / target as f64;
            assert!(error < 0.02, "{target}: {}", sketch.estimate());
        }
    }

    #[test]
    fn halves_merge_into_the_whole() {
        let (mut whole, mut even, mut odd) = <(HyperLogLog, HyperLogLog, HyperLogLog)>::default();
        for i in 0..50_000 {
            whole.insert(&key(i));
            if i % 2 == 0 { even.insert(&key(i)) } else { odd.insert(&key(i)) }
        }
        even.merge(&odd);
        assert_eq!(even.registers, whole.registers);
    }

    #[test]
    fn exact_while_few() {
        let mut few = Distinct::default();
        for i in 0..3_000 {
            few.extend(&[key(i % 1000), key(i)]);
        }
        let mut both = few.clone();
        both.merge(&few);
        assert_eq!(both.clone().count(), (3_000, true));
        let many: Vec<KeyBytes> = (0..EXACT_ROWS as u64).map(|i| key(i / 2)).collect();
        both.extend(&many);
        let (count, is_exact) = both.count();
        assert!(!is_exact && count.abs_diff(EXACT_ROWS as u64 / 2) < 11_000, "{count}");
        let mut exact = Distinct::default();
        exact.extend(&many);
        assert_eq!(exact.count(), (EXACT_ROWS as u64 / 2, true));
    }

    #[test]
    fn several_keep_as_many_keys_as_one() {
        let whole = Distinct::default();
        let mut workers = [whole.beside(), whole.beside(), whole.beside()];
        let some: Vec<KeyBytes> = (0..EXACT_ROWS as u64 / 4).map(key).collect();
        (0..4).for_each(|i| workers[i % 3].extend(&some));
        assert!(workers.iter().all(|worker| !worker.is_many));
        workers[1].extend(&some[..1]);
        assert!(workers[1].is_many && workers[1].keys.capacity() == 0);
        let mut all = whole;
        workers.iter().for_each(|worker| all.merge(worker));
        let (count, is_exact) = all.count();
        assert!(!is_exact && count.abs_diff(some.len() as u64) < some.len() as u64 / 50, "{count}");
    }

    #[test]
    fn extreme_keys() {
        let mut sketch = HyperLogLog::default();
        sketch.insert(&[0; 16]);
        sketch.insert(&[0xff; 16]);
        assert_eq!(sketch.estimate(), 2);
    }
}
