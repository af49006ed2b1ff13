//! Entries by partition, in memory up to a limit and past it in one temporary file: [`Spill`]. The file has no name, so
//! that it goes when the process does. Keys are random, so that a codec would gain nothing on entries; those with texts
//! are packed, by LZ4.

use super::entry::{Entry, Layout, Texts};
use super::partition::{PARTITION_BITS, PARTITIONS, Scattered, partition};
use crate::spill::{FileRange, ScratchFile, SpillError};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Entries are kept in blocks of about this many bytes, so that memory is never twice what they need.
const BLOCK_LEN: usize = 64 << 10;

/// Hashes that agree in more bits than this are of one key nearly always: 2^24 partitions hold few others.
const MOST_PREFIX_BITS: u32 = 24;

/// Entries, shared by workers.
#[derive(Debug)]
pub struct Spill {
    layout: Layout,
    /// Bits that the keys of all entries have in common.
    prefix_bits: u32,
    partitions: Vec<Mutex<Partition>>,
    /// Bytes that a partition may hold in memory.
    partition_limit: usize,
    file: ScratchFile,
}

#[derive(Debug, Default)]
struct Partition {
    /// All but the last are full.
    blocks: Vec<Vec<u8>>,
    held: usize,
    /// Where blocks are in the file: offset and length.
    written: Vec<FileRange>,
    count: u64,
    /// Bytes of the entries' texts.
    texts_len: u64,
}

impl Spill {
    /// No entries yet; those to come take at most about `limit` bytes of memory, and otherwise room in `directory`.
    pub fn new(layout: Layout, limit: usize, directory: &Path) -> Spill {
        Spill::below(0, layout, limit, directory)
    }

    fn below(prefix_bits: u32, layout: Layout, limit: usize, directory: &Path) -> Spill {
        let partitions = (0..PARTITIONS).map(|_| Mutex::default()).collect();
        let partition_limit = (limit / PARTITIONS).max(layout.entry_len());
        Spill { layout, prefix_bits, partitions, partition_limit, file: ScratchFile::new(directory) }
    }

    /// What is kept of entries.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Adds the entries of those `keys` whose row is wanted, each made from key and row.
    ///
    /// # Errors
    /// The temporary file could not be written.
    pub fn extend<'t>(
        &self,
        keys: &Scattered,
        is_wanted: impl Fn(u32) -> bool,
        entry: impl Fn(u128, u32) -> (Entry, Texts<'t>),
    ) -> Result<(), SpillError> {
        for place in 0..PARTITIONS {
            let (keys, rows) = keys.of(place);
            let wanted = keys.iter().zip(rows).filter(|(_, row)| is_wanted(**row));
            self.add(place, wanted.map(|(&key, &row)| entry(key, row)))?;
        }
        Ok(())
    }

    fn add<'t>(&self, place: usize, entries: impl Iterator<Item = (Entry, Texts<'t>)>) -> Result<(), SpillError> {
        let mut partition = self.partitions[place].lock().unwrap_or_else(PoisonError::into_inner);
        let block_len = BLOCK_LEN.min(self.partition_limit);
        for (entry, texts) in entries {
            let texts_len = self.layout.texts_len(&texts);
            let len = self.layout.entry_len() + texts_len;
            if partition.blocks.last().is_none_or(|block| block.len() + len > block.capacity()) {
                let capacity = block_len.max(len);
                if partition.held + capacity > self.partition_limit {
                    self.write_out(&mut partition)?;
                }
                partition.blocks.push(Vec::with_capacity(capacity));
                partition.held += capacity;
            }
            if let Some(block) = partition.blocks.last_mut() {
                self.layout.write(&entry, &texts, block);
            }
            partition.count += 1;
            partition.texts_len += texts_len as u64;
        }
        Ok(())
    }

    fn write_out(&self, partition: &mut Partition) -> Result<(), SpillError> {
        for block in partition.blocks.drain(..) {
            partition.written.push(match self.layout.has_texts() {
                true => self.file.append_lz4(&block)?,
                false => self.file.append(&block)?,
            });
        }
        partition.held = 0;
        Ok(())
    }

    /// How many entries a partition has.
    pub fn count(&self, place: usize) -> u64 {
        self.partitions[place].lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Bytes that the texts of a partition's entries have.
    pub fn texts_len(&self, place: usize) -> u64 {
        self.partitions[place].lock().unwrap_or_else(PoisonError::into_inner).texts_len
    }

    /// Tells `each` of a partition's entries, in no particular order.
    ///
    /// # Errors
    /// The temporary file could not be read, or `each` failed.
    pub fn visit(
        &self,
        place: usize,
        mut each: impl FnMut(Entry, Texts<'_>) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        let all = |block: &[u8]| self.layout.read(block).try_for_each(|(entry, texts)| each(entry, texts));
        self.visit_blocks(place, all)
    }

    /// Tells `each` of the bytes of a partition's entries, whole entries at a time.
    ///
    /// # Errors
    /// As [`Spill::visit`].
    pub fn visit_blocks(
        &self,
        place: usize,
        mut each: impl FnMut(&[u8]) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        let partition = self.partitions[place].lock().unwrap_or_else(PoisonError::into_inner);
        let mut block = Vec::new();
        for &range in &partition.written {
            match self.layout.has_texts() {
                true => each(&self.file.read_lz4(range, &mut block)?)?,
                false => {
                    self.file.read(range, &mut block)?;
                    each(&block)?;
                }
            }
        }
        partition.blocks.iter().try_for_each(|block| each(block))
    }

    /// Forgets a partition's entries.
    pub fn forget(&self, place: usize) {
        *self.partitions[place].lock().unwrap_or_else(PoisonError::into_inner) = Partition::default();
    }

    /// Parts a partition once more, by the next bits of its keys; `None` if so many bits are gone by that what is left
    /// are rows of very few keys.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn part(&self, place: usize, limit: usize) -> Result<Option<Spill>, SpillError> {
        let prefix_bits = self.prefix_bits + PARTITION_BITS;
        if prefix_bits > MOST_PREFIX_BITS {
            return Ok(None);
        }
        let parts = Spill::below(prefix_bits, self.layout, limit, self.file.directory());
        self.visit(place, |entry, texts| {
            parts.add(partition(entry.key, prefix_bits), std::iter::once((entry, texts)))
        })?;
        self.forget(place);
        Ok(Some(parts))
    }

    /// Bytes that went to the temporary file.
    pub fn written(&self) -> u64 {
        self.file.written_len()
    }
}
