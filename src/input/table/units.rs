//! A Parquet file as **units**: ranges of rows that can be decoded by themselves, whole row groups or, where these are
//! long, parts of them. In: its footer. Out: units, which depend on the file and the columns alone, and the rows of each.
//!
//! What is wrong with a unit is a [`Defect`] after those of its rows that could be decoded, a panic of the decoder included:
//! it is another crate's, and files may hold anything.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};

use super::super::error::Defect;
use super::batch::Batch;
use super::columns::Wanted;
use super::untyped::untyped;
use super::{Rowset, TableOptions};

/// Bytes of the wanted columns, not compressed, that a unit has about.
const UNIT_LEN: u64 = 8 << 20;

/// Most rows that are decoded at a time.
const BATCH_ROWS: u64 = 4 << 10;

/// Bytes of the wanted columns that are decoded at a time, by what a row has on average.
const BATCH_LEN: u64 = 1 << 20;

/// A file, and what of it is read.
pub(super) struct Parquet {
    file: Positioned,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    wanted: Wanted,
}

/// Rows of one row group that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    group: usize,
    /// Of the first one in its group.
    from: u64,
    rows: u64,
    /// Of the first one in the file.
    number: u64,
    batch_rows: usize,
}

/// Units in the order of the file.
#[derive(Clone)]
pub(super) struct Units {
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    group: usize,
    from: u64,
    number: u64,
}

impl Parquet {
    pub(super) fn open(path: &Path, options: &TableOptions) -> Result<Parquet, Defect> {
        let file = Positioned::open(path).map_err(Defect::Open)?;
        let damaged = |error: ParquetError| Defect::Table("Parquet", error.to_string());
        let load = || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        let metadata = guarded(load).map_err(damaged)?;
        let wanted = Wanted::find(metadata.schema(), options)?;
        // Types that cannot be had as bytes are read as they are.
        let metadata = untyped(&metadata, &wanted).unwrap_or(metadata);
        let mask = ProjectionMask::columns(metadata.parquet_schema(), wanted.names());
        Ok(Parquet { file, metadata, mask, wanted })
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.file.len
    }

    pub(super) fn units(&self) -> Units {
        Units { metadata: self.metadata.clone(), mask: self.mask.clone(), group: 0, from: 0, number: 0 }
    }

    /// The rows of a unit.
    pub(super) fn read(&self, unit: Unit) -> UnitRows {
        let build = || {
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                .with_row_groups(vec![unit.group])
                .with_offset(unit.from as usize)
                .with_limit(unit.rows as usize)
                .with_projection(self.mask.clone())
                .with_batch_size(unit.batch_rows)
                .build()
        };
        let (batches, failed) = match guarded(build) {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(error)),
        };
        let at = self.start(unit.group);
        UnitRows { unit, batches, failed, rows: None, wanted: self.wanted.clone(), number: unit.number, at }
    }

    /// Where in the file the wanted columns of a row group begin.
    fn start(&self, group: usize) -> u64 {
        let group = self.metadata.metadata().row_group(group);
        let wanted = (0..group.num_columns()).filter(|&i| self.mask.leaf_included(i));
        let starts = wanted.map(|i| {
            let column = group.column(i);
            column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset())
        });
        starts.min().and_then(|start| u64::try_from(start).ok()).unwrap_or(0).min(self.file.len)
    }
}

impl Iterator for Units {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let groups = self.metadata.metadata().row_groups();
        loop {
            let group = groups.get(self.group)?;
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            if self.from >= rows {
                (self.group, self.from) = (self.group + 1, 0);
                continue;
            }
            let len = self.len(group).max(1);
            // As many units of equal length as come nearest.
            let count = ((len + UNIT_LEN / 2) / UNIT_LEN).clamp(1, rows);
            let of_one = rows.div_ceil(count);
            let batch_rows = (u128::from(BATCH_LEN) * u128::from(rows) / u128::from(len)).clamp(1, BATCH_ROWS.into());
            let unit = Unit {
                group: self.group,
                from: self.from,
                rows: of_one.min(rows - self.from),
                number: self.number,
                batch_rows: batch_rows as usize,
            };
            self.from += unit.rows;
            self.number = self.number.saturating_add(unit.rows);
            return Some(unit);
        }
    }
}

impl Units {
    /// Bytes of the wanted columns of a row group, not compressed.
    fn len(&self, group: &RowGroupMetaData) -> u64 {
        let wanted = (0..group.num_columns()).filter(|&i| self.mask.leaf_included(i));
        let lens = wanted.map(|i| u64::try_from(group.column(i).uncompressed_size()).unwrap_or(0));
        lens.fold(0, u64::saturating_add)
    }
}

/// Rows of a unit, in order; nothing follows an error.
pub(super) struct UnitRows {
    unit: Unit,
    batches: Option<ParquetRecordBatchReader>,
    /// What is to be told first of all.
    failed: Option<ParquetError>,
    rows: Option<Batch>,
    wanted: Wanted,
    /// Of the next row.
    number: u64,
    at: u64,
}

impl Iterator for UnitRows {
    type Item = Rowset;

    fn next(&mut self) -> Option<Rowset> {
        if let Some(error) = self.failed.take() {
            return Some(self.damaged(&error));
        }
        loop {
            if let Some(records) = self.rows.as_mut().and_then(|rows| rows.take(&self.wanted, &mut self.number)) {
                return Some(Rowset { records, at: self.at });
            }
            match self.next_batch()? {
                Ok(rows) => self.rows = Some(rows),
                Err(error) => {
                    (self.batches, self.rows) = (None, None);
                    return Some(self.damaged(&error));
                }
            }
        }
    }
}

impl UnitRows {
    fn next_batch(&mut self) -> Option<ParquetResult<Batch>> {
        let (batches, wanted) = (self.batches.as_mut()?, &self.wanted);
        let of = |batch: RecordBatch| Ok(Batch::of(&batch, wanted)?);
        match guarded(|| batches.next().transpose()?.map(of).transpose()) {
            Ok(Some(rows)) => Some(Ok(rows)),
            Err(error) => Some(Err(error)),
            Ok(None) => {
                self.batches = None;
                let (given, said) = (self.number - self.unit.number, self.unit.rows);
                let missing = || format!("{} rows are missing at the end of a page or column", said - given);
                (given != said).then(|| Err(ParquetError::General(missing())))
            }
        }
    }

    fn damaged(&self, error: &ParquetError) -> Rowset {
        let group = self.unit.group;
        let said = format!("row group {group} is damaged: {error}; fetch the file again");
        Rowset { records: Err(Defect::Table("Parquet", said)), at: self.at }
    }
}

/// What `work` gives; a panic is an error.
fn guarded<T>(work: impl FnOnce() -> ParquetResult<T>) -> ParquetResult<T> {
    // What `work` was at is not used any more after an error.
    let panicked = |_| Err(ParquetError::General("its decoder gave up".into()));
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(panicked)
}

/// A file that several threads read, each where it is.
#[derive(Clone)]
struct Positioned {
    file: Arc<File>,
    len: u64,
}

impl Positioned {
    fn open(path: &Path) -> io::Result<Positioned> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Positioned { file: Arc::new(file), len })
    }
}

impl Length for Positioned {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Positioned {
    type T = BufReader<Reading>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<Reading>> {
        Ok(BufReader::with_capacity(HEADER_LEN, Reading { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {start} reach past the end of the file")));
        }
        let mut bytes = vec![0; length];
        Reading { file: self.clone(), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Bytes that are read for the header of a page.
const HEADER_LEN: usize = 1 << 10;

/// A file from one byte on.
struct Reading {
    file: Positioned,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let count = std::os::unix::fs::FileExt::read_at(&*self.file.file, into, self.at)?;
        #[cfg(windows)]
        let count = std::os::windows::fs::FileExt::seek_read(&*self.file.file, into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
