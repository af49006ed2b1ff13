//! Batches that wait for verdicts, in order, in a temporary file without a name: [`Spool`]. As Arrow IPC streams, as they
//! are: of what most rows have, URIs and keys, LZ4 would take a third off, for more time than writing and reading that.

use super::error::SpillError;
use super::spill::Scratch;
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use std::path::Path;

/// Rows of a span that wait, with their ordinals in the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Waiting {
    /// The rows.
    pub batch: RecordBatch,
    /// Ordinal of each row.
    pub ordinals: Vec<u64>,
}

/// The span that rows are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Ordinal of its first row.
    pub first: u64,
    /// How many rows it has, those included that do not wait since they are left out for sure.
    pub rows: u64,
    /// How many of those that wait are kept for sure.
    pub sure: u64,
}

/// Rows that wait, in the order in which they came.
#[derive(Debug)]
pub struct Spool {
    file: Scratch,
    /// Offset and length of each [`Waiting`].
    places: Vec<(u64, usize)>,
    extents: Vec<Extent>,
}

impl Spool {
    /// Nothing waits; what will takes room in `directory`.
    pub fn new(directory: &Path) -> Spool {
        Spool { file: Scratch::new(directory), places: Vec::new(), extents: Vec::new() }
    }

    /// Makes bytes of rows; workers do this side by side.
    ///
    /// # Errors
    /// Arrow refused.
    pub fn pack(waiting: &Waiting) -> Result<Vec<u8>, SpillError> {
        let mut bytes = Vec::with_capacity(waiting.batch.get_array_memory_size() + waiting.ordinals.len() * 8);
        bytes.extend((waiting.ordinals.len() as u64).to_le_bytes());
        waiting.ordinals.iter().for_each(|ordinal| bytes.extend(ordinal.to_le_bytes()));
        let mut writer = StreamWriter::try_new(&mut bytes, waiting.batch.schema_ref())?;
        writer.write(&waiting.batch)?;
        writer.finish()?;
        drop(writer);
        Ok(bytes)
    }

    /// Appends the next rows, packed, and what they are of.
    ///
    /// # Errors
    /// The temporary file could not be written.
    pub fn append(&mut self, packed: &[u8], extent: Extent) -> Result<(), SpillError> {
        self.places.push((self.file.append(packed)?, packed.len()));
        self.extents.push(extent);
        Ok(())
    }

    /// How many times rows were appended.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// What the rows are of that were appended, time by time.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        self.extents.iter().copied()
    }

    /// Bytes that went to the temporary file.
    pub fn written(&self) -> u64 {
        self.file.written()
    }

    /// The rows that were appended as number `i`.
    ///
    /// # Errors
    /// The temporary file could not be read.
    pub fn read(&self, i: usize) -> Result<Waiting, SpillError> {
        let (offset, len) = self.places[i];
        let mut bytes = Vec::new();
        self.file.read(offset, len, &mut bytes)?;
        let number = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let stream_at = 8 + number(&bytes) as usize * 8;
        let ordinals = bytes[8..stream_at].chunks_exact(8).map(number).collect();
        // The batch's columns are parts of what was read.
        let (mut stream, mut decoder) = (Buffer::from_vec(bytes).slice(stream_at), StreamDecoder::new());
        let mut batch = None;
        while batch.is_none() && !stream.is_empty() {
            batch = decoder.decode(&mut stream)?;
        }
        let no_schema = || ArrowError::IpcError("no schema was read back".to_string());
        let batch = match batch {
            Some(batch) => batch,
            None => RecordBatch::new_empty(decoder.schema().ok_or_else(no_schema)?),
        };
        Ok(Waiting { batch, ordinals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray};
    use std::sync::Arc;

    #[test]
    fn rows_come_back_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(directory.path());
        let waiting = |texts: &[&str], first: u64| Waiting {
            batch: RecordBatch::try_from_iter([("uri", Arc::new(StringArray::from(texts.to_vec())) as ArrayRef)])
                .unwrap(),
            ordinals: (0..texts.len() as u64).map(|i| first + i * i).collect(),
        };
        let all = [waiting(&["http://a/", "http://b/"], 7), waiting(&[], 9), waiting(&["http://c/"], 20)];
        for waiting in &all {
            let extent = Extent { first: waiting.ordinals.first().map_or(0, |at| *at), rows: 9, sure: 0 };
            spool.append(&Spool::pack(waiting).unwrap(), extent).unwrap();
        }
        assert!(spool.len() == 3 && spool.extents().map(|extent| extent.first).eq([7, 0, 20]));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
        for (i, waiting) in all.iter().enumerate() {
            assert_eq!(&spool.read(i).unwrap(), waiting);
        }
    }

    #[test]
    fn a_directory_that_is_not_there() {
        let missing = tempfile::tempdir().unwrap().path().join("missing");
        let error = Spool::new(&missing).append(b"x", Extent::default()).unwrap_err().to_string();
        assert!(error.contains("missing: cannot make a temporary file there") && error.contains("--tmp"), "{error}");
    }
}
