//! A Parquet file's metadata in; out such that the texts which count are read as the bytes they are. Writers call bytes
//! text that are not UTF-8, and one such value would take its whole batch with it: here they are a record's business.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::errors::Result;
use parquet::file::metadata::{FileMetaData, ParquetMetaData};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::columns::Wanted;

/// `metadata`, the wanted columns of text being columns of bytes, and as views, which share the memory of pages and
/// dictionaries.
///
/// # Errors
/// The columns cannot be had in these types.
pub(super) fn untyped(metadata: &ArrowReaderMetadata, wanted: &Wanted) -> Result<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    let columns = file.schema().get_fields().iter().zip(metadata.schema().fields());
    let (types, fields): (Vec<TypePtr>, Vec<Arc<Field>>) = columns
        .map(|(kind, field)| {
            match wanted.has(field.name()) && kind.is_primitive() && is_text_or_bytes(field.data_type()) {
                true => {
                    Ok((Arc::new(bytes(kind)?), Arc::new(field.as_ref().clone().with_data_type(DataType::BinaryView))))
                }
                false => Ok((Arc::clone(kind), Arc::clone(field))),
            }
        })
        .collect::<Result<_>>()?;
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

/// The column `text`, said to hold no more than bytes.
fn bytes(text: &Type) -> Result<Type> {
    let info = text.get_basic_info();
    Type::primitive_type_builder(text.name(), text.get_physical_type())
        .with_repetition(info.repetition())
        .with_id(info.has_id().then(|| info.id()))
        .build()
}

fn is_text_or_bytes(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Dictionary(_, values) => is_text_or_bytes(values),
        _ => false,
    }
}
