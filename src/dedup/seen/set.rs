//! All keys of a store in memory, to be looked up by many workers at once: [`SeenSet`].

use super::super::partition::{PARTITION_BITS, PARTITIONS, Scattered, partition};
use super::super::table::Table;
use super::error::SeenError;
use super::store::Store;

/// Keys seen, by partition.
#[derive(Debug)]
pub struct SeenSet {
    tables: Vec<Table<()>>,
}

impl SeenSet {
    /// Bytes that a set of `count` keys takes, about.
    pub fn memory_len(count: u64) -> u64 {
        count.saturating_mul(20)
    }

    /// Reads the keys of a store.
    ///
    /// # Errors
    /// A run could not be read.
    pub fn read(store: &Store) -> Result<SeenSet, SeenError> {
        let mut tables = Vec::with_capacity(PARTITIONS);
        let mut cursor = store.cursor(0)?;
        for place in 0..PARTITIONS {
            let mut keys = Vec::new();
            while let Some(key) = cursor.peek().filter(|key| partition(*key, 0) == place) {
                cursor.take_next()?;
                keys.push(key);
            }
            keys.dedup();
            tables.push(Table::of(&keys, PARTITION_BITS));
        }
        Ok(SeenSet { tables })
    }

    /// Tells `seen` the rows of those `keys` that are in the set.
    pub fn meet(&self, keys: &Scattered, mut seen: impl FnMut(u32)) {
        for (place, table) in self.tables.iter().enumerate() {
            let (keys, rows) = keys.of(place);
            table.contains_all(keys, |i| seen(rows[i]));
        }
    }
}
