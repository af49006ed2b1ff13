//! Encodes batches as Parquet row groups, and chooses the encoding of each column.
//!
//! Keys are random, so neither dictionary, codec nor statistics gain anything. In files that are not sorted, statistics of
//! text cost more than the pruning that they allow.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::Int32Type;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression as Codec, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use super::error::{OutputError, WriteError};
use super::options::{Arrangement, Compression};
use super::pages::{self, Codecs, PageBuffers, PageChunk, TextSlices};
use super::sink::Sink;
use crate::batch::{BatchBuilder, Column, ColumnId, ColumnKind};

/// Bytes of a value that statistics store; most SURT keys are shorter.
const STATISTICS_LEN: usize = 256;

/// Settings of a Parquet file.
pub(super) struct ParquetSettings<'a> {
    pub(super) compression: Compression,
    pub(super) arrangement: &'a Arrangement,
    pub(super) metadata: Vec<(String, String)>,
}

/// What workers need to encode row groups of one file.
pub(super) struct RowGroups {
    factory: ArrowRowGroupWriterFactory,
    columns: Vec<ColumnDescPtr>,
    /// Columns that need the general encoder: for a dictionary of texts, statistics or a bloom filter.
    general: Vec<bool>,
    /// Codecs of text pages; `None` if the general encoder encodes them.
    codecs: Option<Codecs>,
    pool: Arc<PageBuffers>,
}

/// An encoded column of one row group.
pub(super) enum ColumnChunk {
    Pages(PageChunk),
    Other(ArrowColumnChunk),
}

/// Opens a Parquet file on `sink`. Also returns what workers need to encode its row groups.
pub(super) fn open(
    sink: Sink,
    builder: &BatchBuilder,
    settings: ParquetSettings<'_>,
) -> Result<(SerializedFileWriter<Sink>, RowGroups), ParquetError> {
    let ParquetSettings { compression, arrangement, .. } = settings;
    let options = ArrowWriterOptions::new().with_properties(properties(builder, settings));
    let writer = ArrowWriter::try_new_with_options(sink, builder.schema().clone(), options)?;
    let (writer, factory) = writer.into_serialized_writer()?;
    let columns = writer.schema_descr().columns().to_vec();
    let is_general = |column: &Column| {
        column.kind == ColumnKind::Repeating
            || arrangement.by.names().any(|name| name == column.name)
            || (arrangement.bloom && column.id == ColumnId::Key)
    };
    let general = builder.columns().iter().map(is_general).collect();
    let codecs = Codecs::new(compression);
    Ok((writer, RowGroups { factory, columns, general, codecs, pool: Arc::default() }))
}

fn properties(builder: &BatchBuilder, settings: ParquetSettings<'_>) -> WriterProperties {
    let ParquetSettings { compression, arrangement, metadata } = settings;
    let pairs = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    let properties = WriterProperties::builder()
        .set_created_by(concat!("irikey version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(compression.codec())
        .set_statistics_truncate_length(Some(STATISTICS_LEN))
        .set_column_index_truncate_length(Some(STATISTICS_LEN))
        .set_sorting_columns(sorting(builder, arrangement))
        .set_key_value_metadata(Some(pairs));
    let properties = builder.columns().iter().fold(properties, column_settings);
    let sorted = builder.columns().iter().filter(|column| arrangement.by.names().any(|name| name == column.name));
    let properties = sorted.fold(properties, sorted_column_settings);
    match arrangement.bloom {
        true => properties.set_column_bloom_filter_enabled(ColumnPath::from("key"), true).build(),
        false => properties.build(),
    }
}

/// Returns the sorting columns that the file can declare: those before the first one that is not written.
fn sorting(builder: &BatchBuilder, arrangement: &Arrangement) -> Option<Vec<SortingColumn>> {
    let place = |name: &str| builder.columns().names().position(|column| column == name);
    let columns = arrangement.by.columns().iter().map_while(|column| {
        let (descending, nulls_first) = (column.descending, column.nulls_first);
        Some(SortingColumn { column_idx: place(&column.name)? as i32, descending, nulls_first })
    });
    Some(columns.collect::<Vec<_>>()).filter(|columns| !columns.is_empty())
}

/// Sets the encoding of a sorting column: readers prune by the statistics of its pages, and consecutive texts share long
/// prefixes.
fn sorted_column_settings(properties: WriterPropertiesBuilder, column: &Column) -> WriterPropertiesBuilder {
    let path = || ColumnPath::from(column.name);
    let properties = properties.set_column_statistics_enabled(path(), EnabledStatistics::Page);
    match column.kind {
        ColumnKind::Text | ColumnKind::Bytes | ColumnKind::Repeating => properties
            .set_column_dictionary_enabled(path(), false)
            .set_column_encoding(path(), Encoding::DELTA_BYTE_ARRAY),
        _ => properties,
    }
}

/// Sets the encoding of a column by its kind.
fn column_settings(properties: WriterPropertiesBuilder, column: &Column) -> WriterPropertiesBuilder {
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
        // Packed deltas do not compress further.
        ColumnKind::Count => statistics(properties, EnabledStatistics::Chunk)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(path(), false)
            .set_column_compression(path(), Codec::UNCOMPRESSED),
        // Crawls are often ordered by time, and filters by time are common.
        ColumnKind::Time => statistics(properties, EnabledStatistics::Page)
            .set_column_encoding(path(), Encoding::DELTA_BINARY_PACKED)
            .set_column_dictionary_enabled(path(), false),
        ColumnKind::Name
        | ColumnKind::Word
        | ColumnKind::Repeating
        | ColumnKind::SmallCount
        | ColumnKind::Bits
        | ColumnKind::SpoofingBits
        | ColumnKind::Short
        | ColumnKind::Integer
        | ColumnKind::Long => {
            statistics(properties, EnabledStatistics::Chunk).set_column_dictionary_enabled(path(), true)
        }
    }
}

impl RowGroups {
    /// Encodes and compresses `batch` as one row group.
    pub(super) fn encode(&self, batch: &RecordBatch) -> Result<Vec<ColumnChunk>, OutputError> {
        self.chunks(batch).map_err(|error| WriteError::from(error).into())
    }

    fn chunks(&self, batch: &RecordBatch) -> Result<Vec<ColumnChunk>, ParquetError> {
        // Only encryption uses the number of the row group; the writer sets it later.
        let writers = self.factory.create_column_writers(0)?;
        let fields = batch.schema_ref().fields().iter();
        let mut chunks = Vec::with_capacity(writers.len());
        let columns = self.columns.iter().zip(&self.general);
        for (((mut writer, (column, is_general)), field), array) in
            writers.into_iter().zip(columns).zip(fields).zip(batch.columns())
        {
            if !is_general && let Some(chunk) = encode_simple(column, array, self.codecs.as_ref(), &self.pool)? {
                chunks.push(ColumnChunk::Pages(chunk));
                continue;
            }
            for leaf in compute_leaves(field, array)? {
                writer.write(&leaf)?;
            }
            chunks.push(ColumnChunk::Other(writer.close()?));
        }
        Ok(chunks)
    }

    /// Returns the pool of page buffers. The writer returns buffers to it.
    pub(super) fn buffer_pool(&self) -> Arc<PageBuffers> {
        self.pool.clone()
    }
}

/// Encodes a column whose pages do not need the general encoder; returns `None` for other columns.
fn encode_simple(
    column: &ColumnDescPtr,
    array: &ArrayRef,
    codecs: Option<&Codecs>,
    pool: &PageBuffers,
) -> Result<Option<PageChunk>, ParquetError> {
    if let (Some(codecs), Some(texts)) = (codecs, TextSlices::of(array)) {
        return pages::texts(column, &texts, codecs, pool).map(Some);
    }
    if let Some(keys) = array.as_fixed_size_binary_opt() {
        return pages::keys(column, keys, pool).map(Some);
    }
    if let Some(counts) = array.as_primitive_opt().filter(|_| column.max_def_level() == 0) {
        return pages::counts(column, counts, pool).map(Some);
    }
    // Nullable names have definition levels.
    match array.as_dictionary_opt::<Int32Type>().filter(|_| column.max_def_level() == 0) {
        Some(sources) => pages::sources(column, sources),
        None => Ok(None),
    }
}

/// Appends an encoded row group and returns its buffers to the pool.
pub(super) fn append(
    writer: &mut SerializedFileWriter<Sink>,
    chunks: Vec<ColumnChunk>,
    pool: &PageBuffers,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        match chunk {
            ColumnChunk::Pages(chunk) => pool.put(chunk.append_to_row_group(&mut group)?),
            ColumnChunk::Other(chunk) => chunk.append_to_row_group(&mut group)?,
        }
    }
    group.close()?;
    Ok(())
}
