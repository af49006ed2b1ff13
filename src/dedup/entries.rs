//! Pending rows, as compact entries: [`PendingEntry`].
//!
//! An [`EntryLayout`] states which fields are stored. An [`EntrySpill`] collects entries by the partition of their key, in
//! memory up to a limit and beyond it in a temporary file. [`SortedEntries`] sorts the entries of one partition, so that
//! those with one key follow each other.
//!
//! Keys are random bytes, which do not compress; only entries with texts are compressed in the file.

use super::key_set::{PARTITION_BITS, PARTITIONS, PartitionedKeys, partition_of};
use crate::spill::{FileRange, ScratchFile, SpillError};
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// A row that competes with the other rows of its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PendingEntry {
    /// The key that rows compete for.
    pub(crate) key: u128,
    /// Ordinal of the row in the run, from 0.
    pub(crate) ordinal: u64,
    /// [`super::KeepPolicy::rank`]: the greatest is kept. 0 if only the order of the input counts.
    pub(crate) rank: u128,
    /// First 64 bits of the row's `simple` key, if the reason for a duplicate is reported.
    pub(crate) simple: u64,
    /// First 64 bits of the row's `syntax` key; see `simple`.
    pub(crate) syntax: u64,
    /// First 64 bits of the row's key of the policy's rung; see `simple`.
    pub(crate) rung: u64,
    /// Bits of the kinds of the key, if keys are counted.
    pub(crate) kinds: u64,
}

/// Texts of an entry; empty if they are not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryTexts<'a> {
    /// The text that the key is a hash of, to detect collisions.
    pub(crate) canonical: &'a [u8],
    /// Decides between rows of one key and rank: the smallest is kept.
    pub(crate) uri: &'a [u8],
}

/// Which fields of entries are stored, besides the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryLayout {
    pub(crate) has_ordinal: bool,
    /// Bytes of `kinds`, of which the last ones are 0; at most 8.
    pub(crate) kinds_len: usize,
    pub(crate) has_rank: bool,
    /// `simple`, `syntax` and `rung`.
    pub(crate) has_rungs: bool,
    pub(crate) has_canonical: bool,
    pub(crate) has_uri: bool,
}

impl EntryLayout {
    /// Bytes of an entry, without its texts.
    const fn entry_len(self) -> usize {
        let Self { has_ordinal, kinds_len, has_rank, has_rungs, .. } = self;
        16 + has_ordinal as usize * 8 + kinds_len + has_rank as usize * 16 + has_rungs as usize * 24
    }

    const fn has_texts(self) -> bool {
        self.has_canonical || self.has_uri
    }

    /// Bytes of the stored texts, each after its length.
    fn texts_len(self, texts: &EntryTexts<'_>) -> usize {
        let len = |has: bool, text: &[u8]| if has { 4 + text.len() } else { 0 };
        len(self.has_canonical, texts.canonical) + len(self.has_uri, texts.uri)
    }

    fn write(self, entry: &PendingEntry, texts: &EntryTexts<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&entry.key.to_le_bytes());
        if self.has_ordinal {
            out.extend_from_slice(&entry.ordinal.to_le_bytes());
        }
        out.extend_from_slice(&entry.kinds.to_le_bytes()[..self.kinds_len]);
        if self.has_rank {
            out.extend_from_slice(&entry.rank.to_le_bytes());
        }
        if self.has_rungs {
            [entry.simple, entry.syntax, entry.rung].iter().for_each(|bits| out.extend_from_slice(&bits.to_le_bytes()));
        }
        for (has, text) in [(self.has_canonical, texts.canonical), (self.has_uri, texts.uri)] {
            if has {
                // The texts of one row group have less than 2 GiB.
                out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                out.extend_from_slice(text);
            }
        }
    }

    /// Reads the first entry of `bytes` and returns it with its texts and its length.
    #[inline]
    fn read(self, bytes: &[u8]) -> (PendingEntry, EntryTexts<'_>, usize) {
        let mut fields = EntryReader(bytes);
        let key = fields.u128();
        let ordinal = if self.has_ordinal { fields.u64() } else { 0 };
        let kinds = fields.bits(self.kinds_len);
        let rank = if self.has_rank { fields.u128() } else { 0 };
        let mut bits = || if self.has_rungs { fields.u64() } else { 0 };
        let (simple, syntax, rung) = (bits(), bits(), bits());
        let mut text = |has: bool| if has { fields.text() } else { &[] };
        let texts = EntryTexts { canonical: text(self.has_canonical), uri: text(self.has_uri) };
        (PendingEntry { key, ordinal, rank, simple, syntax, rung, kinds }, texts, bytes.len() - fields.0.len())
    }

    /// Reads all entries of `bytes`.
    fn read_all(self, mut bytes: &[u8]) -> impl Iterator<Item = (PendingEntry, EntryTexts<'_>)> {
        std::iter::from_fn(move || {
            (bytes.len() >= self.entry_len()).then(|| {
                let (entry, texts, len) = self.read(bytes);
                bytes = &bytes[len..];
                (entry, texts)
            })
        })
    }
}

struct EntryReader<'a>(&'a [u8]);

impl<'a> EntryReader<'a> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk::<N>().expect("blocks have whole entries");
        self.0 = rest;
        *field
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// A number of `len` bytes.
    fn bits(&mut self, len: usize) -> u64 {
        let (field, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        field.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }

    fn text(&mut self) -> &'a [u8] {
        let len = u32::from_le_bytes(self.take()) as usize;
        let (text, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        text
    }
}

/// Entries are collected in blocks of about this many bytes, so that growing never doubles their memory.
const BLOCK_LEN: usize = 64 << 10;

/// Partitions are split again by up to this many bits in all. Hashes that agree in more bits are nearly always equal, so
/// that a further split would not make a partition smaller.
const MAX_PREFIX_BITS: u32 = 24;

/// Entries by partition, shared by workers.
#[derive(Debug)]
pub(crate) struct EntrySpill {
    layout: EntryLayout,
    /// Number of first bits that the keys of all entries have in common.
    prefix_bits: u32,
    partitions: Vec<Mutex<SpilledPartition>>,
    /// Bytes of memory of a partition.
    partition_limit: usize,
    file: ScratchFile,
    /// Bytes written to this temporary file and to those of the parts of partitions.
    written: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct SpilledPartition {
    /// All blocks but the last are full.
    blocks: Vec<Vec<u8>>,
    /// Bytes allocated for `blocks`.
    held: usize,
    written: Vec<FileRange>,
    count: u64,
    texts_len: u64,
}

impl EntrySpill {
    /// Bytes for a spill that shares `limit` bytes of memory with a key set: enough to write long blocks. A key in the set is
    /// worth more than an entry in memory, because it decides all rows of the key.
    pub(crate) fn share(limit: usize) -> usize {
        const ENOUGH: usize = 32 << 20;
        (limit / 8).min(ENOUGH)
    }

    /// An empty spill of about `limit` bytes of memory. Further entries go to a temporary file in `directory`.
    pub(crate) fn new(layout: EntryLayout, limit: usize, directory: &Path) -> EntrySpill {
        EntrySpill::empty(layout, limit, ScratchFile::new(directory))
    }

    fn empty(layout: EntryLayout, limit: usize, file: ScratchFile) -> EntrySpill {
        let partitions = (0..PARTITIONS).map(|_| Mutex::default()).collect();
        let partition_limit = (limit / PARTITIONS).max(layout.entry_len());
        EntrySpill { layout, prefix_bits: 0, partitions, partition_limit, file, written: Arc::default() }
    }

    /// Adds an entry, made by `entry` from key and row, for each of `keys` whose row `is_pending`.
    pub(crate) fn extend<'t>(
        &self,
        keys: &PartitionedKeys,
        is_pending: impl Fn(u32) -> bool,
        entry: impl Fn(u128, u32) -> (PendingEntry, EntryTexts<'t>),
    ) -> Result<(), SpillError> {
        for partition in 0..PARTITIONS {
            let (keys, rows) = keys.partition(partition);
            let pending = keys.iter().zip(rows).filter(|(_, row)| is_pending(**row));
            self.add(partition, pending.map(|(&key, &row)| entry(key, row)))?;
        }
        Ok(())
    }

    /// Adds entries of a partition.
    pub(super) fn add<'t>(
        &self,
        partition: usize,
        entries: impl Iterator<Item = (PendingEntry, EntryTexts<'t>)>,
    ) -> Result<(), SpillError> {
        let mut partition = self.partitions[partition].lock();
        let block_len = BLOCK_LEN.min(self.partition_limit);
        for (entry, texts) in entries {
            let texts_len = self.layout.texts_len(&texts);
            let len = self.layout.entry_len() + texts_len;
            if partition.blocks.last().is_none_or(|block| block.len() + len > block.capacity()) {
                let capacity = block_len.max(len);
                if partition.held + capacity > self.partition_limit {
                    self.write_blocks(&mut partition)?;
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

    fn write_blocks(&self, partition: &mut SpilledPartition) -> Result<(), SpillError> {
        for block in partition.blocks.drain(..) {
            let range = match self.layout.has_texts() {
                true => self.file.append_lz4(&block)?,
                false => self.file.append(&block)?,
            };
            self.written.fetch_add(range.len as u64, atomic::Ordering::Relaxed);
            partition.written.push(range);
        }
        partition.held = 0;
        Ok(())
    }

    /// Entries have a key and an ordinal, and nothing else.
    pub(super) fn has_ordinals_only(&self) -> bool {
        self.layout == EntryLayout { has_ordinal: true, ..EntryLayout::default() }
    }

    /// Number of entries of a partition.
    pub(crate) fn count(&self, partition: usize) -> usize {
        usize::try_from(self.partitions[partition].lock().count).unwrap_or(usize::MAX)
    }

    /// Bytes of memory that [`EntrySpill::sorted`] takes.
    pub(super) fn sorted_len(&self, partition: usize) -> usize {
        self.count(partition).saturating_mul(SortedEntries::INDEX_LEN).saturating_add(self.bytes_len(partition))
    }

    /// Bytes of the entries of a partition.
    fn bytes_len(&self, partition: usize) -> usize {
        let texts_len = usize::try_from(self.partitions[partition].lock().texts_len).unwrap_or(usize::MAX);
        self.count(partition).saturating_mul(self.layout.entry_len()).saturating_add(texts_len)
    }

    /// Calls `each` with every entry of a partition, in no particular order.
    pub(crate) fn visit(
        &self,
        partition: usize,
        mut each: impl FnMut(PendingEntry, EntryTexts<'_>) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        self.visit_blocks(partition, |block| {
            self.layout.read_all(block).try_for_each(|(entry, texts)| each(entry, texts))
        })
    }

    /// Calls `each` with the bytes of whole entries of a partition, see [`EntrySpill::entries`].
    pub(super) fn visit_blocks(
        &self,
        partition: usize,
        mut each: impl FnMut(&[u8]) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        let partition = self.partitions[partition].lock();
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

    /// The entries of a block.
    pub(super) fn entries<'b>(
        &self,
        block: &'b [u8],
    ) -> impl Iterator<Item = (PendingEntry, EntryTexts<'b>)> + use<'b> {
        self.layout.read_all(block)
    }

    /// Number of first bits that all keys of a partition have in common.
    pub(super) fn key_prefix_bits(&self) -> u32 {
        self.prefix_bits + PARTITION_BITS
    }

    /// Removes the entries of a partition and returns them sorted.
    pub(super) fn sorted(&self, partition: usize) -> Result<SortedEntries, SpillError> {
        let (count, len) = (self.count(partition), self.bytes_len(partition));
        let mut entries =
            SortedEntries { layout: self.layout, bytes: Vec::with_capacity(len), index: Vec::with_capacity(count) };
        self.visit_blocks(partition, |block| {
            entries.extend(block);
            Ok(())
        })?;
        self.clear(partition);
        entries.sort();
        Ok(entries)
    }

    /// Removes the entries of a partition.
    pub(crate) fn clear(&self, partition: usize) {
        *self.partitions[partition].lock() = SpilledPartition::default();
    }

    /// Splits a partition by the next bits of its keys. Returns `None`, and does nothing, if it probably has only a few
    /// different keys.
    pub(crate) fn split(&self, partition: usize, limit: usize) -> Result<Option<EntrySpill>, SpillError> {
        let prefix_bits = self.key_prefix_bits();
        if prefix_bits > MAX_PREFIX_BITS {
            return Ok(None);
        }
        let file = ScratchFile::new(self.file.directory());
        let parts =
            EntrySpill { prefix_bits, written: self.written.clone(), ..EntrySpill::empty(self.layout, limit, file) };
        self.visit(partition, |entry, texts| {
            parts.add(partition_of(entry.key, prefix_bits), std::iter::once((entry, texts)))
        })?;
        self.clear(partition);
        Ok(Some(parts))
    }

    /// Bytes written to temporary files, also those of the parts of partitions.
    pub(crate) fn written_len(&self) -> u64 {
        self.written.load(atomic::Ordering::Relaxed)
    }
}

/// Entries sorted by key, canonical text and ordinal.
#[derive(Debug)]
pub(super) struct SortedEntries {
    layout: EntryLayout,
    bytes: Vec<u8>,
    /// The first bits of each entry's key, and its offset in `bytes`.
    index: Vec<(u64, usize)>,
}

impl SortedEntries {
    /// Bytes of memory per entry, besides the entry.
    const INDEX_LEN: usize = size_of::<(u64, usize)>();

    /// Adds whole entries.
    fn extend(&mut self, block: &[u8]) {
        let first = self.bytes.len();
        self.bytes.extend_from_slice(block);
        let mut at = 0;
        while block.len() - at >= self.layout.entry_len() {
            let (entry, _, len) = self.layout.read(&block[at..]);
            self.index.push(((entry.key >> 64) as u64, first + at));
            at += len;
        }
    }

    fn sort(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        index.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1)));
        self.index = index;
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let [(a, a_texts), (b, b_texts)] = [a, b].map(|at| self.at(at));
        let by_text = || match self.layout.has_canonical {
            true => a_texts.canonical.cmp(b_texts.canonical),
            // Equal keys are frequent, and even a comparison of empty texts costs time.
            false => Ordering::Equal,
        };
        a.key.cmp(&b.key).then_with(by_text).then(a.ordinal.cmp(&b.ordinal))
    }

    fn at(&self, at: usize) -> (PendingEntry, EntryTexts<'_>) {
        let (entry, texts, _) = self.layout.read(&self.bytes[at..]);
        (entry, texts)
    }

    /// The entries of a range of [`SortedEntries::groups`].
    pub(super) fn range(&self, range: Range<usize>) -> impl Iterator<Item = (PendingEntry, EntryTexts<'_>)> {
        self.index[range].iter().map(|(_, at)| self.at(*at))
    }

    /// Ranges of entries with the same key and canonical text.
    pub(super) fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let is_same = |a: &(u64, usize), b: &(u64, usize)| {
            a.0 == b.0 && {
                let [(a, a_texts), (b, b_texts)] = [a, b].map(|(_, at)| self.at(*at));
                a.key == b.key && (!self.layout.has_canonical || a_texts.canonical == b_texts.canonical)
            }
        };
        self.index.chunk_by(is_same).scan(0, |end, group| {
            *end += group.len();
            Some(*end - group.len()..*end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_stores_its_fields() {
        let entry =
            PendingEntry { key: 1 << 100, ordinal: 7, rank: 3 << 90, simple: 5, syntax: 6, rung: 7, kinds: 9 << 16 };
        let texts = EntryTexts { canonical: b"http://a/", uri: b"" };
        for bits in 0..64 {
            let [has_ordinal, has_kinds, has_rank, has_rungs, has_canonical, has_uri] =
                [1, 2, 4, 8, 16, 32].map(|bit| bits & bit != 0);
            let kinds_len = if has_kinds { 3 } else { 0 };
            let layout = EntryLayout { has_ordinal, kinds_len, has_rank, has_rungs, has_canonical, has_uri };
            let mut bytes = Vec::new();
            layout.write(&entry, &texts, &mut bytes);
            layout.write(&PendingEntry::default(), &EntryTexts::default(), &mut bytes);
            let texts_len = layout.texts_len(&texts) + layout.texts_len(&EntryTexts::default());
            assert_eq!(bytes.len(), 2 * layout.entry_len() + texts_len);
            let rank = if has_rank { entry.rank } else { 0 };
            let (simple, syntax, rung) = if has_rungs { (5, 6, 7) } else { (0, 0, 0) };
            let (ordinal, kinds) = (if has_ordinal { 7 } else { 0 }, if has_kinds { 9 << 16 } else { 0 });
            let expected = PendingEntry { ordinal, kinds, rank, simple, syntax, rung, ..entry };
            let canonical = if has_canonical { texts.canonical } else { b"" };
            let read: Vec<_> = layout.read_all(&bytes).collect();
            assert_eq!(read, [(expected, EntryTexts { canonical, uri: b"" }), Default::default()]);
        }
    }

    /// The blocks in memory stay within the limit, all but the last are full, and a sorted partition has the length that was
    /// announced.
    #[test]
    fn memory_is_what_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let layout = EntryLayout { has_ordinal: true, has_uri: true, ..EntryLayout::default() };
        let limit = 300 << 10;
        let spill = EntrySpill::new(layout, limit * PARTITIONS, directory.path());
        let uri = vec![b'a'; 10_000];
        let mut written_count = 0;
        for i in 0..200_u64 {
            let texts = EntryTexts { uri: &uri[..i as usize * 37 % 10_000], ..EntryTexts::default() };
            let entry = PendingEntry { key: u128::from(i % 50) << 64, ordinal: i, ..PendingEntry::default() };
            spill.add(3, std::iter::once((entry, texts))).unwrap();
            let partition = spill.partitions[3].lock();
            assert_eq!(partition.held, partition.blocks.iter().map(Vec::capacity).sum::<usize>());
            assert!(partition.held <= limit);
            let full = partition.blocks.split_last().map_or(&[][..], |(_, full)| full);
            assert!(full.iter().all(|block| block.len() + layout.entry_len() + 10_000 > block.capacity()));
            written_count = partition.written.len();
        }
        assert!(written_count >= 3 && spill.written_len() > 0);
        assert_eq!((spill.count(3), spill.count(4)), (200, 0));
        let announced = spill.sorted_len(3);
        let sorted = spill.sorted(3).unwrap();
        assert_eq!(announced, sorted.bytes.len() + sorted.index.len() * SortedEntries::INDEX_LEN);
        assert_eq!((sorted.index.len(), spill.count(3), spill.sorted_len(3)), (200, 0, 0));
        // What the parts of a partition write is counted as well.
        let texts = EntryTexts { uri: &uri, ..EntryTexts::default() };
        let entries = (0..90).map(|i| (PendingEntry { key: i << 100, ..PendingEntry::default() }, texts));
        spill.add(4, entries).unwrap();
        let before = spill.written_len();
        let parts = spill.split(4, 0).unwrap().unwrap();
        assert!(before < spill.written_len() && parts.written_len() == spill.written_len());
    }
}
