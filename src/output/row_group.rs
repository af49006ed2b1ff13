//! Encodes batches as slices of Parquet row groups, joins the slices of a row group, and chooses the encoding of each column.
//!
//! Most columns are sequences of pages, which are encoded slice by slice, so that several threads work on one row group. The
//! other columns remain arrays until all slices are there: the general encoder makes one dictionary for a row group.
//!
//! Keys are random, so neither dictionary, codec nor statistics gain anything. In files that are not sorted, statistics of
//! text cost more than the pruning that they allow.

use std::io::{self, Write};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::SchemaRef;
use parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression as Codec, Encoding};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use super::error::{OutputError, WriteError};
use super::options::{Arrangement, Compression};
use super::pages::{self, Codecs, EncodedPages, PageBuffers, PageChunk, PageSink, TextBuffers};
use crate::batch::{BatchBuilder, Column, ColumnId, ColumnKind, max_footer_memory, row_group_memory};

/// Bytes of a value that statistics store; most SURT keys are shorter.
const STATISTICS_LEN: usize = 256;

pub(super) struct ParquetSettings<'a> {
    pub(super) compression: Compression,
    pub(super) arrangement: &'a Arrangement,
    pub(super) metadata: Vec<(String, String)>,
}

/// What workers need to encode row groups of one file.
pub(super) struct RowGroups {
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    columns: Vec<ColumnDescPtr>,
    /// Columns that need the general encoder: for a dictionary of texts, statistics or a bloom filter.
    general: Vec<bool>,
    /// Codecs of text pages; `None` if the general encoder encodes them.
    pub(super) codecs: Option<Codecs>,
    pub(super) pool: Arc<PageBuffers>,
}

/// Consecutive rows of a row group, encoded as far as that does not depend on its other rows: one entry per column.
pub(super) struct RowGroupSlice(Vec<ColumnSlice>);

/// A column of a slice.
enum ColumnSlice {
    Pages(EncodedPages),
    Array(ArrayRef),
}

/// An encoded row group.
pub(super) struct EncodedRowGroup {
    chunks: Vec<ColumnChunk>,
    /// The pool from which the buffers of its pages were taken.
    pool: Arc<PageBuffers>,
}

/// An encoded column of one row group.
enum ColumnChunk {
    Pages(PageChunk),
    Other(ArrowColumnChunk),
}

impl ColumnChunk {
    /// The length in the file, in bytes.
    fn len(&self) -> u64 {
        let metadata = match self {
            ColumnChunk::Pages(chunk) => &chunk.close.metadata,
            ColumnChunk::Other(chunk) => &chunk.close().metadata,
        };
        metadata.compressed_size() as u64
    }
}

impl RowGroups {
    /// Makes what encodes the row groups of files with these properties.
    pub(super) fn new(
        builder: &BatchBuilder,
        settings: &ParquetSettings<'_>,
        properties: &WriterProperties,
    ) -> Result<RowGroups, ParquetError> {
        let ParquetSettings { compression, arrangement, .. } = settings;
        let schema = builder.schema().clone();
        let (writer, factory) = open(io::sink(), &schema, properties)?.into_serialized_writer()?;
        let columns = writer.schema_descr().columns().to_vec();
        let is_general = |column: &Column| {
            column.kind == ColumnKind::Repeating
                || arrangement.by.names().any(|name| name == column.name)
                || (arrangement.bloom && column.id == ColumnId::Key)
        };
        let general = builder.columns().iter().map(is_general).collect();
        Ok(RowGroups { factory, schema, columns, general, codecs: Codecs::new(*compression), pool: Arc::default() })
    }
}

/// Opens a Parquet file on `sink`.
pub(super) fn open<W: Write + Send>(
    sink: W,
    schema: &SchemaRef,
    properties: &WriterProperties,
) -> Result<ArrowWriter<W>, ParquetError> {
    let options = ArrowWriterOptions::new().with_properties(properties.clone());
    ArrowWriter::try_new_with_options(sink, schema.clone(), options)
}

/// The properties of all Parquet files: what wrote them, and `metadata`.
pub(super) fn file_properties(metadata: Vec<(String, String)>) -> WriterPropertiesBuilder {
    let pairs = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    WriterProperties::builder()
        .set_created_by(concat!("irikey version ", env!("CARGO_PKG_VERSION")).to_string())
        .set_key_value_metadata(Some(pairs))
}

pub(super) fn properties(builder: &BatchBuilder, settings: &ParquetSettings<'_>) -> WriterProperties {
    let ParquetSettings { compression, arrangement, metadata } = settings;
    let properties = file_properties(metadata.clone())
        .set_compression(compression.codec())
        .set_statistics_truncate_length(Some(STATISTICS_LEN))
        .set_column_index_truncate_length(Some(STATISTICS_LEN))
        .set_sorting_columns(sorting(builder, arrangement));
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
    /// Encodes `batch` as a slice of a row group.
    pub(super) fn slice(&self, batch: &RecordBatch) -> Result<RowGroupSlice, OutputError> {
        let columns = self.columns.iter().zip(&self.general).zip(batch.columns());
        let slices = columns.map(|((column, is_general), array)| {
            let pages = if *is_general { None } else { self.pages(column, array)? };
            Ok(pages.map_or_else(|| ColumnSlice::Array(array.clone()), ColumnSlice::Pages))
        });
        let slices = slices.collect::<Result<_, ParquetError>>().map_err(WriteError::from)?;
        Ok(RowGroupSlice(slices))
    }

    /// Encodes a column whose pages do not depend on other slices; returns `None` for other columns.
    fn pages(&self, column: &ColumnDescPtr, array: &ArrayRef) -> Result<Option<EncodedPages>, ParquetError> {
        if let (Some(codecs), Some(texts)) = (&self.codecs, TextBuffers::of(array)) {
            return pages::texts(column, &texts, codecs, &self.pool).map(Some);
        }
        if let Some(keys) = array.as_fixed_size_binary_opt() {
            return Ok(Some(pages::keys(column, keys, &self.pool)));
        }
        match array.as_primitive_opt().filter(|_| column.max_def_level() == 0) {
            Some(counts) => Ok(Some(pages::counts(counts, &self.pool))),
            None => Ok(None),
        }
    }

    /// Joins the slices of a row group, of which there is at least one, in their order.
    pub(super) fn join(&self, slices: Vec<RowGroupSlice>) -> Result<EncodedRowGroup, OutputError> {
        let chunks = self.chunks(slices).map_err(WriteError::from)?;
        Ok(EncodedRowGroup { chunks, pool: Arc::clone(&self.pool) })
    }

    fn chunks(&self, slices: Vec<RowGroupSlice>) -> Result<Vec<ColumnChunk>, ParquetError> {
        // Only encryption uses the number of the row group; the writer sets it later.
        let writers = self.factory.create_column_writers(0)?;
        let mut slices: Vec<_> = slices.into_iter().map(|slice| slice.0.into_iter()).collect();
        let mut chunks = Vec::with_capacity(writers.len());
        for (number, writer) in writers.into_iter().enumerate() {
            let (mut pages, mut arrays) = (Vec::new(), Vec::new());
            for column in slices.iter_mut().filter_map(Iterator::next) {
                match column {
                    ColumnSlice::Pages(slice) => pages.push(slice),
                    ColumnSlice::Array(array) => arrays.push(array),
                }
            }
            chunks.push(match (pages.is_empty(), arrays.is_empty()) {
                (false, true) => ColumnChunk::Pages(PageChunk::join(&self.columns[number], pages, None)?),
                (true, false) => self.join_arrays(number, &arrays, writer)?,
                _ => return Err(ParquetError::General("slices of a column are encoded differently".into())),
            });
        }
        Ok(chunks)
    }

    /// Encodes a column of a row group from the arrays of its slices.
    fn join_arrays(
        &self,
        number: usize,
        arrays: &[ArrayRef],
        mut writer: ArrowColumnWriter,
    ) -> Result<ColumnChunk, ParquetError> {
        let column = &self.columns[number];
        // Nullable names have definition levels.
        if !self.general[number]
            && column.max_def_level() == 0
            && let Some(chunk) = pages::sources(column, arrays)?
        {
            return Ok(ColumnChunk::Pages(chunk));
        }
        for array in arrays {
            for leaf in compute_leaves(self.schema.field(number), array)? {
                writer.write(&leaf)?;
            }
        }
        Ok(ColumnChunk::Other(writer.close()?))
    }
}

/// Returns whether there are too many row groups for a reader, which refuses footers that take too much memory.
pub(super) fn has_too_many(writer: &SerializedFileWriter<PageSink>) -> bool {
    let row_groups = writer.flushed_row_groups();
    let columns = row_groups.first().map_or(0, |row_group| row_group.num_columns());
    row_groups.len() as u64 * row_group_memory(columns) > max_footer_memory(writer.bytes_written() as u64)
}

/// Appends an encoded row group, whose pages are not copied in memory. Their buffers return to the pool, whichever output is
/// written.
pub(super) fn append(
    writer: &mut SerializedFileWriter<PageSink>,
    EncodedRowGroup { mut chunks, pool }: EncodedRowGroup,
) -> Result<(), ParquetError> {
    let mut at = writer.bytes_written() as u64;
    let mut places = Vec::with_capacity(chunks.len());
    for chunk in &mut chunks {
        if let ColumnChunk::Pages(chunk) = chunk {
            writer.inner_mut().splice(at, std::mem::take(&mut chunk.pages), &pool);
        }
        places.push((at, chunk.len()));
        at += chunk.len();
    }
    let mut group = writer.next_row_group()?;
    for chunk in chunks {
        match chunk {
            ColumnChunk::Pages(chunk) => chunk.append_to_row_group(&mut group)?,
            ColumnChunk::Other(chunk) => chunk.append_to_row_group(&mut group)?,
        }
    }
    let written = group.close()?;
    match written.columns().iter().map(ColumnChunkMetaData::byte_range).eq(places) {
        true => Ok(()),
        false => Err(ParquetError::General("the columns of a row group are not where their pages are".into())),
    }
}
