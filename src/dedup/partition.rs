//! Keys of a span in, the same keys partition by partition out. Keys are hashes, so that their first bits part them
//! evenly; a partition's table is small enough to stay near the processor while its share of a span goes in.

use crate::key::KeyBytes;

/// Bits of a key that choose its partition.
pub const PARTITION_BITS: u32 = 6;
/// How many partitions there are.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// The partition of a key, by the bits after its first `prefix_bits`, which are at most 58.
#[inline(always)]
pub fn partition(key: u128, prefix_bits: u32) -> usize {
    (((key >> 64) as u64) << prefix_bits >> (64 - PARTITION_BITS)) as usize
}

/// Keys ordered by partition, each with the number of its row; within a partition rows ascend. Kept from span to span
/// for its memory.
///
/// ```
/// use irikey::dedup::Scattered;
/// let mut scattered = Scattered::default();
/// scattered.scatter([(5, 0), (u128::MAX, 1), (6, 2)].into_iter(), 0);
/// assert_eq!(scattered.of(0), (&[5, 6][..], &[0, 2][..]));
/// assert_eq!(scattered.of(63), (&[u128::MAX][..], &[1][..]));
/// ```
#[derive(Debug, Default)]
pub struct Scattered {
    keys: Vec<u128>,
    rows: Vec<u32>,
    /// Where each partition begins, and the end.
    starts: Vec<u32>,
}

impl Scattered {
    /// Orders keys of rows, which agree in their first `prefix_bits` bits, by the bits after those.
    pub fn scatter(&mut self, keys: impl Iterator<Item = (u128, u32)> + Clone, prefix_bits: u32) {
        let mut ends = [0u32; PARTITIONS];
        keys.clone().for_each(|(key, _)| ends[partition(key, prefix_bits)] += 1);
        self.starts.clear();
        self.starts.push(0);
        let mut at = 0;
        for end in &mut ends {
            let count = *end;
            *end = at;
            at += count;
            self.starts.push(at);
        }
        self.keys.resize(at as usize, 0);
        self.rows.resize(at as usize, 0);
        let (all_keys, all_rows) = (&mut self.keys[..], &mut self.rows[..]);
        for (key, row) in keys {
            let place = &mut ends[partition(key, prefix_bits)];
            all_keys[*place as usize] = key;
            all_rows[*place as usize] = row;
            *place += 1;
        }
    }

    /// The keys of a partition, and the rows that they are of.
    pub fn of(&self, partition: usize) -> (&[u128], &[u32]) {
        let range = self.starts[partition] as usize..self.starts[partition + 1] as usize;
        (&self.keys[range.clone()], &self.rows[range])
    }
}

/// A key as a number, which sorts as its bytes do.
#[inline(always)]
pub fn number(key: &KeyBytes) -> u128 {
    u128::from_be_bytes(*key)
}
