//! A batch in, the encoded columns of one row group out; and the settings of each column.
//!
//! Keys are random: neither dictionary, nor codec, nor statistics could gain anything on them. Statistics of texts
//! cost more than the pruning they allow in files that are not sorted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int32Type;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression as Codec, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use super::error::Cause;
use super::pages::{self, PageChunk, PageCodec, Texts};
use super::sink::Sink;
use super::{Compression, OutputError};
use crate::batch::{BatchBuilder, Column, ColumnKind};

/// What workers need to encode row groups of one file.
pub(super) struct RowGroups {
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<ColumnDescPtr>,
    /// Texts of these columns want a dictionary, which the general encoder makes.
    repeating: Vec<bool>,
    compression: Compression,
    /// Codecs that no worker is using.
    codecs: Mutex<Vec<PageCodec>>,
}

/// An encoded column of one row group.
pub(super) enum Chunk {
    Pages(PageChunk),
    Other(ArrowColumnChunk),
}

impl Chunk {
    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            Chunk::Pages(chunk) => chunk.len(),
            Chunk::Other(chunk) => chunk.close().bytes_written as usize,
        }
    }
}

/// Opens a Parquet file on `sink`, and what workers need to encode row groups for it.
pub(super) fn open(
    sink: Sink,
    builder: &BatchBuilder,
    compression: Compression,
    metadata: Vec<(String, String)>,
) -> Result<(SerializedFileWriter<Sink>, RowGroups), ParquetError> {
    let options = ArrowWriterOptions::new().with_properties(properties(builder, compression, metadata));
    let writer = ArrowWriter::try_new_with_options(sink, builder.schema().clone(), options)?;
    let (writer, factory) = writer.into_serialized_writer()?;
    let columns = writer.schema_descr().columns().to_vec();
    let repeating = builder.columns().iter().map(|column| column.kind == ColumnKind::Repeating).collect();
    Ok((writer, RowGroups { factory, columns, repeating, compression, codecs: Mutex::default() }))
}

fn properties(builder: &BatchBuilder, compression: Compression, metadata: Vec<(String, String)>) -> WriterProperties {
    let pairs = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("irikey version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(compression.codec())
        .set_key_value_metadata(Some(pairs));
    builder.columns().iter().fold(properties, settings).build()
}

/// What each kind of column is encoded with.
fn settings(properties: WriterPropertiesBuilder, column: &Column) -> WriterPropertiesBuilder {
    let path = || ColumnPath::from(column.name);
    let statistics =
        |properties: WriterPropertiesBuilder, level| properties.set_column_statistics_enabled(path(), level);
    match column.kind {
        ColumnKind::Key => statistics(properties, EnabledStatistics::None)
            .set_column_encoding(path(), Encoding::PLAIN)
            .set_column_dictionary_enabled(path(), false)
            .set_column_compression(path(), Codec::UNCOMPRESSED),
        ColumnKind::Text | ColumnKind::Bytes => statistics(properties, EnabledStatistics::None)
            .set_column_encoding(path(), Encoding::PLAIN)
            .set_column_dictionary_enabled(path(), false),
        // Packed deltas have no redundancy left that a codec would find.
        ColumnKind::Count => statistics(properties, EnabledStatistics::Chunk)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(path(), false)
            .set_column_compression(path(), Codec::UNCOMPRESSED),
        // Crawls are often in the order of time, and filters by time are common.
        ColumnKind::Time => statistics(properties, EnabledStatistics::Page)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(path(), false),
        ColumnKind::Name
        | ColumnKind::Word
        | ColumnKind::Repeating
        | ColumnKind::SmallCount
        | ColumnKind::Bits
        | ColumnKind::LookBits
        | ColumnKind::Short
        | ColumnKind::Integer => {
            statistics(properties, EnabledStatistics::Chunk).set_column_dictionary_enabled(path(), true)
        }
    }
}

impl RowGroups {
    /// Encodes and compresses `batch` as one row group.
    pub(super) fn encode(&self, batch: &RecordBatch) -> Result<Vec<Chunk>, OutputError> {
        self.chunks(batch).map_err(|error| Cause::from(error).into())
    }

    fn chunks(&self, batch: &RecordBatch) -> Result<Vec<Chunk>, ParquetError> {
        // The number of the row group matters only to encryption, and the writer sets the true one.
        let writers = self.factory.create_column_writers(0)?;
        let mut codec = self.codec()?;
        let fields = batch.schema_ref().fields().iter();
        let mut chunks = Vec::with_capacity(writers.len());
        let columns = self.columns.iter().zip(&self.repeating);
        for (((mut writer, (column, is_repeating)), field), array) in
            writers.into_iter().zip(columns).zip(fields).zip(batch.columns())
        {
            if let Some(chunk) = simple(column, array, codec.as_mut().filter(|_| !is_repeating))? {
                chunks.push(Chunk::Pages(chunk));
                continue;
            }
            for leaf in compute_leaves(field, array)? {
                writer.write(&leaf)?;
            }
            chunks.push(Chunk::Other(writer.close()?));
        }
        self.idle_codecs().extend(codec);
        Ok(chunks)
    }

    /// A codec of texts, if they are encoded here.
    fn codec(&self) -> Result<Option<PageCodec>, ParquetError> {
        match self.idle_codecs().pop() {
            Some(codec) => Ok(Some(codec)),
            None => PageCodec::new(self.compression),
        }
    }

    fn idle_codecs(&self) -> MutexGuard<'_, Vec<PageCodec>> {
        self.codecs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The chunk of a column whose pages need no general encoder.
fn simple(
    column: &ColumnDescPtr,
    array: &ArrayRef,
    codec: Option<&mut PageCodec>,
) -> Result<Option<PageChunk>, ParquetError> {
    if let (Some(codec), Some(texts)) = (codec, Texts::of(array)) {
        return pages::texts(column, &texts, codec).map(Some);
    }
    // Keys that may be null have levels.
    if let Some(keys) = array.as_fixed_size_binary_opt().filter(|_| column.max_def_level() == 0) {
        return pages::keys(column, keys).map(Some);
    }
    match array.as_dictionary_opt::<Int32Type>() {
        Some(sources) => pages::sources(column, sources),
        None => Ok(None),
    }
}

/// Appends an encoded row group.
pub(super) fn append(writer: &mut SerializedFileWriter<Sink>, chunks: Vec<Chunk>) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        match chunk {
            Chunk::Pages(chunk) => chunk.append_to_row_group(&mut group)?,
            Chunk::Other(chunk) => chunk.append_to_row_group(&mut group)?,
        }
    }
    group.close()?;
    Ok(())
}
