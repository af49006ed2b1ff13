//! Parquet and Arrow IPC files in, lines of captures out (see [`crate::record::capture`]): only the columns that count are
//! read. A capture's offset is the number of its row, from 0.
//!
//! The URL is in the column asked for, else in the first of the known names; what is carried is in columns named as in
//! Common Crawl's index. Columns within structs are not looked for.

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, RecordBatchReader};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, Schema, TimeUnit, TimestampMillisecondType};
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::error::Defect;
use crate::iri::{FaultKind, Flags};
use crate::record::capture::Capture;
use crate::record::csv::{Column, KNOWN};

/// Rows that are read at a time.
const BATCH_ROWS: usize = 8 << 10;

/// Columns beside URL and base, as Common Crawl's index names them.
const CARRIED: [&str; 11] = [
    "fetch_time",
    "fetch_status",
    "warc_record_offset",
    "warc_record_length",
    "fetch_redirect",
    "content_digest",
    "content_charset",
    "content_mime_type",
    "content_mime_detected",
    "content_languages",
    "warc_filename",
];

/// How many of them, the last ones, are texts.
const TEXTS: usize = 7;

/// Which columns hold the URL and its base; unsaid, the URL's is found by its name.
#[derive(Clone, Debug, Default)]
pub struct TableColumns {
    /// The URL's.
    pub url: Option<Column>,
    /// The base's.
    pub base: Option<Column>,
}

/// A table that is read.
pub struct Table {
    batches: Box<dyn RecordBatchReader + Send>,
    base: Option<String>,
    url: String,
    rows: u64,
}

impl Table {
    /// Opens the Parquet file at `path`.
    ///
    /// # Errors
    /// It is none, or has no such column.
    pub fn parquet(path: &Path, columns: &TableColumns) -> Result<Table, Defect> {
        let file = File::open(path).map_err(Defect::Open)?;
        let damaged = |error: &dyn std::fmt::Display| Defect::Table("Parquet", error.to_string());
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(&error))?;
        let (url, base) = find(builder.schema(), columns)?;
        let names = [&url].into_iter().chain(&base).map(String::as_str).chain(CARRIED);
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        Ok(Table { batches: Box::new(reader.map_err(|error| damaged(&error))?), url, base, rows: 0 })
    }

    /// Opens the Arrow IPC file at `path`.
    ///
    /// # Errors
    /// As [`Table::parquet`].
    pub fn arrow(path: &Path, columns: &TableColumns) -> Result<Table, Defect> {
        let damaged = |error: ArrowError| Defect::Table("Arrow IPC", error.to_string());
        let open = || File::open(path).map_err(Defect::Open);
        let schema = FileReader::try_new(open()?, None).map_err(damaged)?.schema();
        let (url, base) = find(&schema, columns)?;
        let wanted = |name: &String| *name == url || Some(name) == base.as_ref() || CARRIED.contains(&name.as_str());
        let places = (0..schema.fields().len()).filter(|&i| wanted(schema.field(i).name())).collect();
        let reader = FileReader::try_new(open()?, Some(places)).map_err(damaged)?;
        Ok(Table { batches: Box::new(reader), url, base, rows: 0 })
    }

    /// Appends the lines of the next rows to `out`; false at the end.
    ///
    /// # Errors
    /// The file is damaged; rows before were given.
    pub fn read(&mut self, out: &mut Vec<u8>) -> Result<bool, Defect> {
        let Some(batch) = self.batches.next() else { return Ok(false) };
        let damaged = |error: ArrowError| Defect::Table("columns", error.to_string());
        let batch = batch.map_err(damaged)?;
        let columns = Batch::of(&batch, &self.url, self.base.as_deref()).map_err(damaged)?;
        for row in 0..batch.num_rows() {
            columns.capture(row, self.rows + row as u64).write_line(out);
        }
        self.rows += batch.num_rows() as u64;
        Ok(true)
    }
}

/// Names of the URL's column and of the base's.
fn find(schema: &Schema, columns: &TableColumns) -> Result<(String, Option<String>), Defect> {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let missing = |wanted: &dyn std::fmt::Display| {
        Defect::Table("columns", format!("there is no column {wanted}; there are {}", names.join(", ")))
    };
    let asked = |column: &Column| match column {
        Column::Number(number) => number.checked_sub(1).and_then(|i| names.get(i)).ok_or_else(|| missing(column)),
        Column::Name(name) => names.iter().find(|other| *other == name).ok_or_else(|| missing(column)),
    };
    let url = match &columns.url {
        Some(column) => asked(column)?,
        None => KNOWN
            .iter()
            .find(|name| names.contains(name))
            .ok_or_else(|| missing(&"of a URL: choose one with --column"))?,
    };
    let base = columns.base.as_ref().map(asked).transpose()?;
    Ok((url.to_string(), base.map(|name| name.to_string())))
}

/// The columns of a batch, in the types that captures want.
struct Batch {
    url: BinaryArray,
    base: Option<BinaryArray>,
    time: Option<ArrayRef>,
    status: Option<ArrayRef>,
    place: Option<ArrayRef>,
    length: Option<ArrayRef>,
    texts: [Option<BinaryArray>; TEXTS],
}

impl Batch {
    fn of(batch: &RecordBatch, url: &str, base: Option<&str>) -> Result<Batch, ArrowError> {
        let typed = |name: &str, kind: &DataType| batch.column_by_name(name).map(|array| cast(array, kind)).transpose();
        let bytes = |name: &str| {
            let Some(array) = batch.column_by_name(name) else { return Ok(None) };
            // Text of any kind is bytes; a dictionary has to be laid out first.
            let plain = match array.data_type() {
                DataType::Dictionary(_, values) => cast(array, values)?,
                _ => array.clone(),
            };
            cast(&plain, &DataType::Binary).map(|array| Some(array.as_binary::<i32>().clone()))
        };
        let mut texts = [const { None }; TEXTS];
        for (array, name) in texts.iter_mut().zip(&CARRIED[CARRIED.len() - TEXTS..]) {
            *array = bytes(name)?;
        }
        Ok(Batch {
            url: bytes(url)?.unwrap_or_else(|| BinaryArray::new_null(batch.num_rows())),
            base: base.map_or(Ok(None), bytes)?,
            time: typed(CARRIED[0], &DataType::Timestamp(TimeUnit::Millisecond, None))?,
            status: typed(CARRIED[1], &DataType::Int32)?,
            place: typed(CARRIED[2], &DataType::Int64)?,
            length: typed(CARRIED[3], &DataType::Int64)?,
            texts,
        })
    }

    fn capture(&self, row: usize, number: u64) -> Capture {
        let text = |array: &Option<BinaryArray>| match array {
            Some(array) if array.is_valid(row) => array.value(row).to_vec(),
            _ => Vec::new(),
        };
        let url = self.url.is_valid(row).then(|| self.url.value(row).to_vec());
        let valid = |array: &&ArrayRef| array.is_valid(row);
        let long = |array: &Option<ArrayRef>| {
            array.as_ref().filter(valid).map(|array| array.as_primitive::<Int64Type>().value(row))
        };
        let [redirect, digest, charset, mime, detected_mime, languages, filename] = self.texts.each_ref().map(text);
        Capture {
            offset: number,
            fault: url.is_none().then_some(FaultKind::NoUrl),
            status: self.status.as_ref().filter(valid).map(|array| array.as_primitive::<Int32Type>().value(row)),
            time: self
                .time
                .as_ref()
                .filter(valid)
                .map(|array| array.as_primitive::<TimestampMillisecondType>().value(row)),
            url: url.unwrap_or_default(),
            base: text(&self.base),
            redirect,
            digest,
            charset,
            mime,
            detected_mime,
            languages,
            filename,
            place: long(&self.place),
            length: long(&self.length),
            flags: Flags::NONE,
        }
    }
}
