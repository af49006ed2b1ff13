//! Columns of text in the schema of a Parquet file.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::Type as PhysicalType;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::columns::{TableProjection, has_texts};
use crate::record::fields::CarriedField;

/// `metadata` with the text columns of the projection declared as columns of bytes, and read as views, which share the
/// memory of pages and dictionaries. Some writers declare bytes as text that are not UTF-8; one such value would make the
/// whole batch unreadable, but as bytes it concerns its own row only.
///
/// # Errors
/// The columns cannot be read in these types.
pub(super) fn with_text_as_bytes(
    metadata: &ArrowReaderMetadata,
    projection: &TableProjection,
) -> ParquetResult<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    let columns = file.schema().get_fields().iter().zip(metadata.schema().fields());
    let (types, fields): (Vec<TypePtr>, Vec<Arc<Field>>) = columns
        .map(|(column, field)| {
            match projection.has(field.name()) && column.is_primitive() && is_text_or_bytes(field.data_type()) {
                true => {
                    let field = field.as_ref().clone().with_data_type(DataType::BinaryView);
                    Ok((Arc::new(bytes_column(column)?), Arc::new(field)))
                }
                false => Ok((Arc::clone(column), Arc::clone(field))),
            }
        })
        .collect::<ParquetResult<_>>()?;
    let root = Type::group_type_builder(file.schema().name()).with_fields(types).build()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    );
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let groups = metadata.metadata().row_groups().to_vec();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::new(ParquetMetaData::new(file, groups)), options)
}

/// The column `text` without its declaration as text.
fn bytes_column(text: &Type) -> ParquetResult<Type> {
    let info = text.get_basic_info();
    Type::primitive_type_builder(text.name(), text.get_physical_type())
        .with_repetition(info.repetition())
        .with_id(info.has_id().then(|| info.id()))
        .build()
}

fn is_text_or_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text_or_bytes(values),
        other => has_texts(other),
    }
}

/// The column of URLs if only this one is read, it is read as bytes, and no other value of a row depends on it. The texts of
/// rows without a URL are read only if there are such rows.
pub(super) fn only_text_column(
    metadata: &ArrowReaderMetadata,
    mask: &ProjectionMask,
    projection: &TableProjection,
) -> Option<usize> {
    let schema = metadata.parquet_schema();
    let is_input = |i: usize| projection.input.as_deref() == Some(schema.column(i).name());
    let mut leaves = (0..schema.num_columns()).filter(|&i| mask.leaf_included(i) && !is_input(i));
    let (leaf, None) = (leaves.next()?, leaves.next()) else { return None };
    let (column, field) = (schema.column(leaf), metadata.schema().field_with_name(&projection.url).ok()?);
    let is_text = column.physical_type() == PhysicalType::BYTE_ARRAY && *field.data_type() == DataType::BinaryView;
    let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1 && column.path().parts().len() == 1;
    let is_carried =
        CarriedField::ALL.iter().any(|field| projection.carry.contains(*field) && field.column() == projection.url);
    (is_text && is_flat && !is_carried && projection.base.is_none()).then_some(leaf)
}
