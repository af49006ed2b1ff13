//! Parquet files of rows that have keys already, as `canon` and `dedup` write them. In: a file. Out: what its metadata say
//! of the keys, and its row groups as batches. Which keys are fit to be compared is for the caller to say.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReaderBuilder};

use super::detect::{ContentType, SNIFF_LEN, content_type};
use super::error::Defect;

/// What the names of metadata begin with.
const PREFIX: &str = "irikey.";

/// A file of rows with keys.
#[derive(Debug)]
pub struct KeyedFile {
    /// What messages call it.
    pub name: String,
    path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl KeyedFile {
    /// Opens the file at `path`; `None` if it is no Parquet file, or none that says how keys in it were made.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn open(name: &str, path: &Path) -> Result<Option<KeyedFile>, Defect> {
        use std::io::Read;
        if !path.is_file() {
            return Ok(None);
        }
        let file = File::open(path).map_err(Defect::Open)?;
        let mut head = Vec::new();
        (&file).take(SNIFF_LEN as u64).read_to_end(&mut head).map_err(Defect::Read)?;
        if content_type(&head) != ContentType::Binary("Parquet") {
            return Ok(None);
        }
        let metadata = ArrowReaderMetadata::load(&file, Default::default());
        let metadata = metadata.map_err(|error| Defect::Table("Parquet", error.to_string()))?;
        let file = KeyedFile { name: name.to_string(), path: path.to_path_buf(), metadata };
        Ok(file.says("key").is_some().then_some(file))
    }

    /// What the file says of how its rows were made; by the names of [`crate::canon::Policy::describe`].
    pub fn says(&self, name: &str) -> Option<&str> {
        let pairs = self.metadata.metadata().file_metadata().key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key.strip_prefix(PREFIX) == Some(name))?;
        pair.value.as_deref()
    }

    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.metadata.schema().fields().iter().map(|field| field.name().as_str())
    }

    /// Rows of each row group.
    pub fn row_groups(&self) -> impl Iterator<Item = u64> {
        self.metadata.metadata().row_groups().iter().map(|group| group.num_rows() as u64)
    }

    /// Bytes of each row group, packed.
    pub fn row_group_len(&self, group: usize) -> u64 {
        self.metadata.metadata().row_group(group).compressed_size() as u64
    }

    /// The rows of a row group, in the columns of `schema` and their types.
    ///
    /// # Errors
    /// The file is damaged, or its columns have other types.
    pub fn read(&self, group: usize, schema: &SchemaRef) -> Result<RecordBatch, Defect> {
        let damaged = |error: &dyn std::fmt::Display| Defect::Table("Parquet", error.to_string());
        let file = File::open(&self.path).map_err(Defect::Open)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let rows = self.metadata.metadata().row_group(group).num_rows() as usize;
        let reader = builder.with_projection(mask).with_row_groups(vec![group]).with_batch_size(rows.max(1)).build();
        let batches = reader.map_err(|error| damaged(&error))?.map(|batch| typed(&batch?, schema));
        let batches = batches.collect::<Result<Vec<_>, _>>().map_err(|error| damaged(&error))?;
        match <[RecordBatch; 1]>::try_from(batches) {
            Ok([batch]) => Ok(batch),
            Err(batches) => concat_batches(schema, &batches).map_err(|error| damaged(&error)),
        }
    }
}

/// The columns of a schema, in its types.
fn typed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |name: &str| {
        let column = batch.column_by_name(name);
        column.ok_or_else(|| ArrowError::SchemaError(format!("there is no column {name}")))
    };
    let columns = schema.fields().iter().map(|field| cast(column(field.name())?, field.data_type()));
    RecordBatch::try_new(schema.clone(), columns.collect::<Result<_, _>>()?)
}
