//! Parquet files of rows that have keys, as `canon` and `dedup` write them: [`KeyedFile`].

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::detect::{ContentType, SNIFF_LEN, TableFormat, content_type};
use super::error::Defect;
use super::stored_file::StoredFile;
use super::table::{
    CheckedParquet, PositionedFile, catch_panic, chunk_range, defect_of, first_repeated, load_metadata, mask_of_columns,
};

/// Maximum number of rows of a row group. A row of a key has 16 bytes, so more rows could not be read into one batch.
const MAX_ROWS: i64 = 1 << 27;

/// Prefix of the names of metadata entries.
const METADATA_PREFIX: &str = "irikey.";

/// A Parquet file of rows with keys. The caller decides whether its keys can be compared, by [`KeyedFile::metadata`].
#[derive(Debug)]
pub(crate) struct KeyedFile {
    /// Name of the file in messages.
    pub(crate) name: String,
    file: StoredFile,
    metadata: ArrowReaderMetadata,
    first_repeated: usize,
    /// See [`KeyedFile::set_constants`].
    constants: Vec<(&'static str, Option<String>)>,
}

impl KeyedFile {
    /// Opens `file`. Returns `None` if it is not a Parquet file, or if its metadata do not state how its keys were
    /// made.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub(crate) fn open(name: &str, file: &StoredFile) -> Result<Option<KeyedFile>, Defect> {
        if matches!(file, StoredFile::Path(path) if !path.is_file()) {
            return Ok(None);
        }
        // Row groups are read later, and must be of the version whose metadata are read here.
        let file = file.found().map_err(Defect::Open)?;
        let opened = PositionedFile::open(&file).map_err(Defect::Open)?;
        let head_len = opened.len().min(SNIFF_LEN as u64) as usize;
        let head = opened.get_bytes(0, head_len).map_err(damaged)?;
        if content_type(&head) != ContentType::Table(TableFormat::Parquet) {
            return Ok(None);
        }
        let metadata = catch_panic(|| load_metadata(&opened), ParquetError::General).map_err(damaged)?;
        let first_repeated = first_repeated(metadata.metadata(), &ProjectionMask::all(), opened.len());
        let file = KeyedFile { name: name.to_string(), file, metadata, first_repeated, constants: Vec::new() };
        Ok(file.metadata("key").is_some().then_some(file))
    }

    /// A metadata entry that states how the rows were made, by a name of [`crate::canon::Policy::describe`].
    pub(crate) fn metadata(&self, name: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key.strip_prefix(METADATA_PREFIX) == Some(name))?;
        pair.value.as_deref()
    }

    /// Names of the columns of the file.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str())
    }

    /// Sets the columns that the file may lack: name and value, which all rows then have.
    pub(crate) fn set_constants(&mut self, constants: Vec<(&'static str, Option<String>)>) {
        self.constants = constants;
    }

    pub(crate) fn row_group_count(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }

    /// Compressed length of a row group, bytes.
    pub(crate) fn row_group_len(&self, group: usize) -> u64 {
        let columns = self.metadata.metadata().row_group(group).columns().iter();
        columns.fold(0, |len, column| len.saturating_add(u64::try_from(column.compressed_size()).unwrap_or(0)))
    }

    /// Length of the longest row group as Parquet without compression, bytes.
    pub(crate) fn max_row_group_len(&self) -> usize {
        let row_groups = self.metadata.metadata().row_groups().iter();
        row_groups.map(|group| usize::try_from(group.total_byte_size()).unwrap_or(0)).max().unwrap_or(0)
    }

    /// Reads a row group: the columns of `schema`, converted to its types.
    ///
    /// # Errors
    /// The file is damaged, or a column is missing or cannot be converted.
    pub(crate) fn read(&self, group: usize, schema: &SchemaRef) -> Result<RecordBatch, Defect> {
        let rows = self.metadata.metadata().row_group(group).num_rows();
        if !(0..=MAX_ROWS).contains(&rows) {
            let message = format!("row group {group} states {rows} rows; expected at most {MAX_ROWS}");
            return Err(Defect::Table("Parquet", message));
        }
        // Only this row group is read.
        let chunks = |number: usize| (number == group).then(|| self.chunks(group, schema));
        let file = PositionedFile::of_rows(&self.file).map_err(Defect::Open)?.with_chunks(group, chunks);
        file.wait().map_err(Defect::Open)?;
        catch_panic(|| self.read_rows(group, file, schema), ParquetError::General).map_err(damaged)
    }

    /// Where the columns of `schema` are in the file.
    fn chunks(&self, group: usize, schema: &SchemaRef) -> Vec<Range<u64>> {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let columns = self.metadata.metadata().row_group(group).columns().iter();
        let wanted = columns.filter(|column| names.contains(&column.column_path().parts()[0].as_str()));
        wanted.filter_map(chunk_range).collect()
    }

    fn read_rows(&self, group: usize, file: PositionedFile, schema: &SchemaRef) -> ParquetResult<RecordBatch> {
        let table = CheckedParquet { file, metadata: self.metadata.clone() };
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let mask = mask_of_columns(table.metadata.parquet_schema(), names);
        let rows = table.metadata.metadata().row_group(group).num_rows() as usize;
        let batches = table.batches_of(group..group + 1, &mask, rows.max(1), self.first_repeated)?;
        let batches = batches.map(|batch| Ok(self.convert(&batch?, schema)?)).collect::<ParquetResult<Vec<_>>>()?;
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => Ok(concat_batches(schema, &batches)?),
        }
    }

    /// The columns of `schema`, converted to its types.
    fn convert(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let constant = |name: &str| {
            let (_, value) = self.constants.iter().find(|(known, _)| *known == name)?;
            Some(Arc::new(StringArray::from(vec![value.as_deref(); batch.num_rows()])) as ArrayRef)
        };
        let column = |name: &str| {
            let column = batch.column_by_name(name).cloned().or_else(|| constant(name));
            column.ok_or_else(|| ArrowError::SchemaError(format!("there is no column {name}")))
        };
        let columns = schema.fields().iter().map(|field| cast(&column(field.name())?, field.data_type()));
        RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
    }
}

fn damaged(error: ParquetError) -> Defect {
    defect_of(&error, &error)
}
