//! Sorted runs of rows: [`SortedRuns`].

use std::path::Path;
use std::sync::Arc;

use super::block::{EncodedBlock, PlainMemory, SortSchema, encode_run};
use super::held_runs::{BlockPlace, HeldRuns};
use super::merge::{MergeLimits, Merger};
use super::run_file::{RunFileEntry, read_entries};
use crate::spill::{ScratchFile, SpillError};

/// Sorted runs that will be merged.
#[derive(Debug)]
pub(crate) struct SortedRuns {
    runs: HeldRuns,
    rows: u64,
}

impl SortedRuns {
    /// No runs. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> SortedRuns {
        SortedRuns { runs: HeldRuns::new(limit, directory, 2), rows: 0 }
    }

    pub(crate) fn add(&mut self, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
        self.runs.begin_run();
        self.rows += blocks.iter().map(|block| block.rows as u64).sum::<u64>();
        append(&mut self.runs, blocks)
    }

    /// Adds the runs of a file that [`super::RunFileWriter`] wrote. Their blocks stay in the file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), SpillError> {
        let file: Arc<Path> = path.into();
        let mut last = None;
        for RunFileEntry { run, range, rows, memory_len, hash } in read_entries(&ScratchFile::open(path)?)? {
            if last.replace(run) != Some(run) {
                self.runs.begin_run();
            }
            self.rows += rows;
            self.runs.append_place(BlockPlace::RunFile(Arc::clone(&file), range, hash), memory_len as usize);
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.runs.written_len()
    }

    /// Merges runs until all that remain can be merged at a time.
    pub(crate) fn reduce(&mut self, schema: &SortSchema) -> Result<(), SpillError> {
        self.runs.reduce(|runs, merged| {
            let mut merger = Merger::new(schema, runs, MergeLimits::INTERMEDIATE)?;
            while let Some(picked) = merger.next_rows()? {
                append(merged, encode_run(&picked.gather_flat()?, &PlainMemory::new(0))?)?;
            }
            Ok(())
        })
    }

    pub(crate) fn merger<'a>(&mut self, schema: &'a SortSchema, limits: MergeLimits) -> Result<Merger<'a>, SpillError> {
        Merger::new(schema, self.runs.take(), limits)
    }
}

/// Appends blocks to the last run.
fn append(runs: &mut HeldRuns, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
    blocks.into_iter().try_for_each(|block| runs.append(block.bytes, block.memory_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sort::SortBy;
    use arrow::array::{AsArray, RecordBatch, StringArray, UInt64Array};
    use arrow::compute::concat_batches;
    use arrow::datatypes::{DataType, Field, Schema, UInt64Type};

    /// Rows with few different words, and their numbers, in batches of different lengths.
    fn batches() -> Vec<RecordBatch> {
        let fields = vec![Field::new("word", DataType::Utf8, false), Field::new("number", DataType::UInt64, false)];
        let schema = Arc::new(Schema::new(fields));
        let lens = (0..23).map(|i| 1 + i * i * 7 % 200);
        let mut first = 0;
        let batch = |len: u64| {
            let numbers = first..first + len;
            first += len;
            let words = StringArray::from_iter_values(numbers.clone().map(|i| format!("word {}", i * 31 % 17)));
            let numbers = UInt64Array::from_iter_values(numbers);
            RecordBatch::try_new(schema.clone(), vec![Arc::new(words), Arc::new(numbers)]).unwrap()
        };
        lens.map(batch).collect()
    }

    fn merged(batches: &[RecordBatch], limit: usize) -> (RecordBatch, u64) {
        let (directory, schema) = (tempfile::tempdir().unwrap(), batches[0].schema());
        let sort = SortSchema::new(&schema, vec![None, None], &SortBy::parse(["word"]), None).unwrap();
        let (mut runs, mut first) = (SortedRuns::new(limit, directory.path()), 0);
        let plain = PlainMemory::new(limit / 4);
        for batch in batches {
            runs.add(sort.sort(batch, first, &plain).unwrap()).unwrap();
            first += batch.num_rows() as u64;
        }
        runs.reduce(&sort).unwrap();
        assert_eq!(runs.rows(), first);
        let mut merger = runs.merger(&sort, MergeLimits::default()).unwrap();
        let mut rows = Vec::new();
        while let Some(picked) = merger.next_rows().unwrap() {
            rows.push(sort.gather(&picked).unwrap());
        }
        (concat_batches(&schema, &rows).unwrap(), runs.written_len())
    }

    /// Which runs are merged first depends on the limit; the rows do not, and those of one word are in the order of the input.
    #[test]
    fn rows_are_the_same_with_any_memory() {
        let batches = batches();
        let (expected, written) = merged(&batches, usize::MAX);
        assert_eq!(written, 0);
        let rows = expected.column(0).as_string::<i32>().iter().zip(expected.column(1).as_primitive::<UInt64Type>());
        assert!(rows.is_sorted_by(|a, b| a < b));
        let limits = [0, 30_000, 60_000, 100_000, 200_000, 400_000];
        let written = limits.map(|limit| {
            let (rows, written) = merged(&batches, limit);
            assert_eq!(rows, expected, "{limit}");
            written
        });
        assert!(written.iter().all(|len| *len > 0), "{written:?}");
    }
}
