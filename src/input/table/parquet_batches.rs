//! Batches of a Parquet file that is not an input, one row group after the other: [`CheckedParquet`]. Its footer and pages are
//! checked as those of inputs are.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::Result as ParquetResult;
use parquet::file::reader::Length;
use parquet::schema::types::SchemaDescriptor;

use super::page_memory::PageMemory;
use super::parquet_pages::{CheckedRowGroup, first_repeated, rows_are_missing};
use super::parquet_thrift::load_metadata;
use super::positioned_file::PositionedFile;

/// A Parquet file whose footer is checked.
pub(crate) struct CheckedParquet {
    pub(in crate::input) file: PositionedFile,
    pub(crate) metadata: ArrowReaderMetadata,
}

/// The batches of a file. Nothing follows an error.
pub(crate) struct ParquetBatches {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    levels: FieldLevels,
    first_repeated: usize,
    batch_rows: usize,
    memory: Arc<PageMemory>,
    /// The row groups that are not begun.
    groups: Range<usize>,
    /// The row group that is read, and how many of its rows are missing.
    current: Option<(ParquetRecordBatchReader, u64)>,
}

/// The columns of these names, whole. Unlike [`ProjectionMask::columns`], a dot in a name is not one between the name of a column
/// and that of a field in it.
pub(crate) fn mask_of_columns<'a>(
    schema: &SchemaDescriptor,
    names: impl IntoIterator<Item = &'a str>,
) -> ProjectionMask {
    let names: Vec<_> = names.into_iter().collect();
    let columns = schema.root_schema().get_fields().iter().enumerate();
    let named = columns.filter(|(_, column)| names.contains(&column.name()));
    ProjectionMask::roots(schema, named.map(|(place, _)| place))
}

impl CheckedParquet {
    /// # Errors
    /// Those of [`load_metadata`].
    pub(crate) fn open(file: PositionedFile) -> ParquetResult<CheckedParquet> {
        Ok(CheckedParquet { metadata: load_metadata(&file)?, file })
    }

    /// The columns of `mask` in batches of at most `batch_rows` rows of one row group.
    ///
    /// # Errors
    /// The columns cannot be decoded.
    pub(crate) fn batches(self, mask: &ProjectionMask, batch_rows: usize) -> ParquetResult<ParquetBatches> {
        let metadata = self.metadata.metadata();
        let groups = 0..metadata.num_row_groups();
        let first_repeated = first_repeated(metadata, mask, self.file.len());
        self.batches_of(groups, mask, batch_rows, first_repeated)
    }

    /// [`CheckedParquet::batches`] of some row groups. `first_repeated` is that of the file: a caller that reads row groups one
    /// by one computes it once.
    ///
    /// # Errors
    /// The columns cannot be decoded.
    pub(in crate::input) fn batches_of(
        self,
        groups: Range<usize>,
        mask: &ProjectionMask,
        batch_rows: usize,
        first_repeated: usize,
    ) -> ParquetResult<ParquetBatches> {
        let CheckedParquet { file, metadata } = self;
        let fields = metadata.schema().fields();
        Ok(ParquetBatches {
            levels: parquet_to_arrow_field_levels(metadata.parquet_schema(), mask.clone(), Some(fields))?,
            first_repeated,
            groups,
            file,
            metadata,
            batch_rows,
            memory: Arc::default(),
            current: None,
        })
    }
}

impl ParquetBatches {
    /// The number of row groups.
    pub(crate) fn group_count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// The batches of one row group. Several threads can read row groups so.
    pub(crate) fn of_row_group(&self, group: usize) -> ParquetBatches {
        ParquetBatches {
            file: self.file.clone(),
            metadata: self.metadata.clone(),
            levels: self.levels.clone(),
            memory: Arc::default(),
            groups: group..group + 1,
            current: None,
            ..*self
        }
    }

    /// Opens a row group. Returns it with its number of rows.
    fn open(&self, group: usize) -> ParquetResult<(ParquetRecordBatchReader, u64)> {
        let (file, metadata, memory) = (self.file.clone(), self.metadata.clone(), self.memory.clone());
        let first_repeated = self.first_repeated;
        let row_group = CheckedRowGroup { file, metadata, group, first_repeated, memory }.check()?;
        let rows = self.metadata.metadata().row_group(group).num_rows() as u64;
        let (levels, len) = (&self.levels, self.batch_rows);
        Ok((ParquetRecordBatchReader::try_new_with_row_groups(levels, &row_group, len, None)?, rows))
    }

    fn read(&mut self) -> ParquetResult<Option<RecordBatch>> {
        loop {
            if let Some((reader, missing)) = &mut self.current {
                match reader.next().transpose()? {
                    Some(batch) => {
                        *missing = missing.saturating_sub(batch.num_rows() as u64);
                        return Ok(Some(batch));
                    }
                    None if *missing > 0 => return Err(rows_are_missing(*missing)),
                    None => self.current = None,
                }
            }
            let Some(group) = self.groups.next() else { return Ok(None) };
            self.current = Some(self.open(group)?);
        }
    }
}

impl Iterator for ParquetBatches {
    type Item = ParquetResult<RecordBatch>;

    fn next(&mut self) -> Option<ParquetResult<RecordBatch>> {
        let read = self.read();
        if read.is_err() {
            (self.current, self.groups) = (None, 0..0);
        }
        read.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int32Array};
    use parquet::arrow::ArrowWriter;
    use parquet::arrow::arrow_reader::ArrowReaderOptions;
    use parquet::file::metadata::RowGroupMetaData;
    use parquet::file::properties::WriterProperties;

    /// A file of 3 row groups of 100 rows.
    fn file() -> PositionedFile {
        let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..300));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        PositionedFile::of_bytes(writer.into_inner().unwrap().into())
    }

    /// The number of rows of each batch of a file with changed row groups, or the error.
    fn read(change: impl FnOnce(&mut Vec<RowGroupMetaData>)) -> Vec<Result<usize, String>> {
        let table = CheckedParquet::open(file()).unwrap();
        let mut groups = table.metadata.metadata().row_groups().to_vec();
        change(&mut groups);
        let metadata = table.metadata.metadata().as_ref().clone().into_builder().set_row_groups(groups).build();
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).unwrap();
        let batches = CheckedParquet { metadata, ..table }.batches(&ProjectionMask::all(), 60).unwrap();
        batches.map(|batch| batch.map(|batch| batch.num_rows()).map_err(|error| error.to_string())).collect()
    }

    #[test]
    fn batches_are_those_of_row_groups_up_to_an_error() {
        let whole = [60, 40, 60, 40, 60, 40].map(Ok);
        assert_eq!(read(|_| ()), whole);
        let repeated = read(|groups| groups.extend(groups.clone()));
        assert!(repeated.last().unwrap().as_ref().is_err_and(|error| error.contains("it shares bytes with another")));
        // The length of the footer allows for some.
        assert!(repeated.starts_with(&whole) && repeated.len() < 2 * whole.len(), "{repeated:?}");
        let longer = |group: &RowGroupMetaData, rows| group.clone().into_builder().set_num_rows(rows).build().unwrap();
        let missing = read(|groups| groups[1] = longer(&groups[1], 130));
        assert_eq!(missing[..4], whole[..4]);
        let error = Err("Parquet error: 30 rows are missing at the end of a page or column".to_string());
        assert_eq!(missing[4..], [error]);
        assert!(read(|groups| groups[0] = longer(&groups[0], -1))[0].is_err());
    }
}
