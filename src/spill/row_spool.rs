//! Pending rows on disk, in input order, until it is known which of them are written: [`RowSpool`].
//!
//! Batches are not compressed: LZ4 would make URIs and keys a third smaller, but take longer than writing and reading
//! the bytes that it saves.

use super::batch::{decode_batch, encode_batch};
use super::scratch::{FileRange, ScratchFile, SpillError};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use std::path::Path;

/// Rows of one row group that are not decided yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingRows {
    pub(crate) batch: RecordBatch,
    /// Ordinal of each row in the run, with flag bits of the caller.
    pub(crate) ordinals: Vec<u64>,
}

/// The rows of the input from which [`PendingRows`] were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowGroupExtent {
    /// Ordinal of the first row.
    pub(crate) first_row: u64,
    /// Rows, including those that were dropped before.
    pub(crate) rows: u64,
    /// Pending rows that are kept whatever is decided about the others.
    pub(crate) surely_kept: u64,
}

/// Pending rows in a temporary file, in the order in which they were appended.
#[derive(Debug)]
pub(crate) struct RowSpool {
    file: ScratchFile,
    entries: Vec<(FileRange, RowGroupExtent)>,
}

impl RowSpool {
    /// An empty spool, whose file will be in `directory`.
    pub(crate) fn new(directory: &Path) -> RowSpool {
        RowSpool { file: ScratchFile::new(directory), entries: Vec::new() }
    }

    /// Encodes rows for [`RowSpool::append`]; workers call it in parallel.
    pub(crate) fn encode(rows: &PendingRows) -> Result<Vec<u8>, SpillError> {
        let mut bytes = Vec::with_capacity(rows.batch.get_array_memory_size() + rows.ordinals.len() * 8);
        bytes.extend((rows.ordinals.len() as u64).to_le_bytes());
        rows.ordinals.iter().for_each(|ordinal| bytes.extend(ordinal.to_le_bytes()));
        encode_batch(&rows.batch, None, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn append(&mut self, encoded: &[u8], extent: RowGroupExtent) -> Result<(), SpillError> {
        self.entries.push((self.file.append(encoded)?, extent));
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The extents of all entries, in order.
    pub(crate) fn extents(&self) -> impl Iterator<Item = RowGroupExtent> {
        self.entries.iter().map(|(_, extent)| *extent)
    }

    /// Bytes of the temporary file.
    pub(crate) fn written_len(&self) -> u64 {
        self.file.written_len()
    }

    pub(crate) fn read(&self, index: usize) -> Result<PendingRows, SpillError> {
        let mut bytes = Vec::new();
        self.file.read(self.entries[index].0, &mut bytes)?;
        let ordinals = read_ordinals(&bytes).ok_or_else(|| self.file.corrupt(&"the rows are damaged"))?;
        let batch = decode_batch(Buffer::from_vec(bytes).slice((1 + ordinals.len()) * 8))?;
        Ok(PendingRows { batch, ordinals })
    }
}

/// Returns the ordinals at the start of encoded rows; `None` if the rows end before.
fn read_ordinals(encoded: &[u8]) -> Option<Vec<u64>> {
    let (numbers, _) = encoded.as_chunks();
    let (count, numbers) = numbers.split_first()?;
    let ordinals = numbers.get(..usize::try_from(u64::from_le_bytes(*count)).ok()?)?;
    Some(ordinals.iter().map(|ordinal| u64::from_le_bytes(*ordinal)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray};
    use std::sync::Arc;

    #[test]
    fn rows_are_read_back_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = RowSpool::new(directory.path());
        let rows = |texts: &[&str], first: u64| PendingRows {
            batch: RecordBatch::try_from_iter([("uri", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef)])
                .unwrap(),
            ordinals: (0..texts.len() as u64).map(|i| first + i * i).collect(),
        };
        let all = [rows(&["http://a/", "http://b/"], 7), rows(&[], 9), rows(&["http://c/"], 20)];
        for rows in &all {
            let first_row = rows.ordinals.first().map_or(0, |ordinal| *ordinal);
            let extent = RowGroupExtent { first_row, rows: 9, surely_kept: 0 };
            spool.append(&RowSpool::encode(rows).unwrap(), extent).unwrap();
        }
        assert!(spool.len() == 3 && spool.extents().map(|extent| extent.first_row).eq([7, 0, 20]));
        for (index, rows) in all.iter().enumerate() {
            assert_eq!(&spool.read(index).unwrap(), rows);
        }
    }

    #[test]
    fn damaged_rows_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = RowSpool::new(directory.path());
        for (index, damaged) in [&b""[..], b"\x01", &[0xFF; 16], &[1, 0, 0, 0, 0, 0, 0, 0, 7]].into_iter().enumerate() {
            spool.append(damaged, RowGroupExtent::default()).unwrap();
            assert!(spool.read(index).is_err(), "{damaged:?}");
        }
    }
}
