//! One dictionary per column for the rows of several files: [`SharedDictionaries`]. Each row group of a Parquet file has
//! dictionaries of its own, but a file in the Arrow format has one for all of its batches.

use arrow::array::{ArrayRef, AsArray, DictionaryArray, PrimitiveArray, RecordBatch};
use arrow::compute::take;
use arrow::datatypes::{
    ArrowDictionaryKeyType, ArrowNativeType, DataType, Field, Int8Type, Int32Type, Schema, SchemaRef,
};
use std::sync::Arc;

use crate::batch::DistinctValues;

/// The dictionaries of all columns that have one.
#[derive(Debug)]
pub(super) struct SharedDictionaries(Vec<SharedDictionary>);

#[derive(Debug)]
struct SharedDictionary {
    field: Arc<Field>,
    values: DistinctValues,
}

impl SharedDictionaries {
    /// Empty dictionaries of the columns of a schema that have one.
    pub(super) fn new(schema: &Schema) -> SharedDictionaries {
        let fields = schema.fields().iter().filter(|field| matches!(field.data_type(), DataType::Dictionary(..)));
        let empty = |field: &Arc<Field>| SharedDictionary { field: Arc::clone(field), values: Default::default() };
        SharedDictionaries(fields.map(empty).collect())
    }

    /// The columns that have dictionaries.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.0.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>()))
    }

    /// Adds the values of a batch that has these columns.
    pub(super) fn add(&mut self, batch: &RecordBatch) {
        for column in &mut self.0 {
            let array = batch.column_by_name(column.field.name()).and_then(|array| array.as_any_dictionary_opt());
            let values = array.and_then(|array| array.values().as_string_opt::<i32>());
            for value in values.into_iter().flatten().flatten() {
                column.values.index(value);
            }
        }
    }

    /// The arrays of the dictionaries, for [`SharedDictionaries::apply`].
    pub(super) fn values(&self) -> Vec<ArrayRef> {
        self.0.iter().map(|column| column.values.to_array()).collect()
    }

    /// Replaces the dictionaries of a batch. Returns `None` if they have a value that was not added.
    pub(super) fn apply(&self, batch: &RecordBatch, values: &[ArrayRef]) -> Option<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        for (column, values) in self.0.iter().zip(values) {
            let at = batch.schema_ref().index_of(column.field.name()).ok()?;
            columns[at] = match column.field.data_type() {
                DataType::Dictionary(keys, _) if **keys == DataType::Int32 => {
                    column.replace::<Int32Type>(&columns[at], values)?
                }
                _ => column.replace::<Int8Type>(&columns[at], values)?,
            };
        }
        RecordBatch::try_new(batch.schema(), columns).ok()
    }
}

impl SharedDictionary {
    fn replace<K: ArrowDictionaryKeyType>(&self, array: &ArrayRef, values: &ArrayRef) -> Option<ArrayRef> {
        let array = array.as_dictionary_opt::<K>()?;
        let place = |value: &str| K::Native::from_usize(self.values.find(value)? as usize);
        let own = array.values().as_string_opt::<i32>()?.iter();
        let places: Option<Vec<K::Native>> = own.map(|value| place(value.unwrap_or_default())).collect();
        let keys = take(&PrimitiveArray::<K>::from_iter_values(places?), array.keys(), None).ok()?;
        let replaced = DictionaryArray::<K>::try_new(keys.as_primitive::<K>().clone(), Arc::clone(values)).ok()?;
        Some(Arc::new(replaced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::StringArray;

    fn batch(texts: &[Option<&str>]) -> RecordBatch {
        let array: DictionaryArray<Int8Type> = texts.iter().copied().collect();
        RecordBatch::try_from_iter([("fault", Arc::new(array) as ArrayRef)]).unwrap()
    }

    #[test]
    fn rows_keep_their_values() {
        let batches = [batch(&[Some("x"), None]), batch(&[]), batch(&[None]), batch(&[Some("y"), Some("x"), None])];
        let mut shared = SharedDictionaries::new(batches[0].schema_ref());
        batches.iter().for_each(|batch| shared.add(batch));
        let values = shared.values();
        assert_eq!(values[0].as_string::<i32>().iter().collect::<Vec<_>>(), [Some("x"), Some("y")]);
        let texts = |batch: &RecordBatch| {
            let array = batch.column(0).as_dictionary::<Int8Type>();
            let texts = array.downcast_dict::<StringArray>().unwrap().into_iter();
            texts.map(|text| text.map(str::to_string)).collect::<Vec<_>>()
        };
        for batch in &batches {
            let replaced = shared.apply(batch, &values).unwrap();
            assert_eq!(texts(&replaced), texts(batch));
            assert!(Arc::ptr_eq(replaced.column(0).as_dictionary::<Int8Type>().values(), &values[0]));
        }
        assert!(shared.apply(&batch(&[Some("z")]), &values).is_none());
    }
}
