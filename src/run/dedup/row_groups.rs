//! Combines the kept rows of several input row groups, until they fill an output row group: [`RowGroupBuilder`].
//!
//! The numbers of rows alone determine which rows form a row group, so that rows that were pending are combined as they
//! would have been if no row were pending.

use crate::output::{Encoder, OutputError};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

/// How full the current output row group is: the sum of the kept shares of its input row groups. It is full when the sum is
/// a half. A higher limit would copy the rows of every input row group of which most rows are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowGroupFill {
    share: u64,
    /// The output format has row groups. Formats of lines write rows as they come.
    has_groups: bool,
}

/// The share of an input row group whose rows are all kept: 1 as a fixed-point number.
const WHOLE: u64 = 1 << 32;

impl RowGroupFill {
    /// An empty row group.
    pub(super) fn new(encoder: &Encoder) -> RowGroupFill {
        RowGroupFill { share: 0, has_groups: encoder.has_groups() }
    }

    /// Adds an input row group of `all` rows, of which `kept` are kept. Returns whether the output row group is full; then
    /// the next one starts.
    pub(super) fn add(&mut self, kept: u64, all: u64) -> bool {
        self.share += kept * WHOLE / all.max(1);
        let is_full = self.share >= WHOLE / 2 || !self.has_groups;
        if is_full {
            self.share = 0;
        }
        is_full
    }
}

/// The rows of the current output row group.
#[derive(Debug)]
pub(super) struct RowGroupBuilder {
    pub(super) fill: RowGroupFill,
    pub(super) batches: Vec<RecordBatch>,
}

impl RowGroupBuilder {
    pub(super) fn new(encoder: &Encoder) -> RowGroupBuilder {
        RowGroupBuilder { fill: RowGroupFill::new(encoder), batches: Vec::new() }
    }

    /// Adds the kept rows of an input row group of `all` rows. Returns the output row group if it is full.
    pub(super) fn add(&mut self, kept: RecordBatch, all: u64) -> Option<Vec<RecordBatch>> {
        let is_full = self.fill.add(kept.num_rows() as u64, all);
        if kept.num_rows() > 0 {
            self.batches.push(kept);
        }
        is_full.then(|| std::mem::take(&mut self.batches))
    }
}

/// Concatenates batches of one schema.
pub(super) fn concat_batches(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> Result<RecordBatch, OutputError> {
    match batches.len() {
        0 => Ok(RecordBatch::new_empty(schema.clone())),
        1 => Ok(batches.swap_remove(0)),
        _ => concat_columns(schema, &batches).map_err(OutputError::Arrow),
    }
}

fn concat_columns(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, ArrowError> {
    let column = |i: usize| {
        let arrays: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(i).clone()).collect();
        match arrays[0].data_type() {
            DataType::Dictionary(_, value) => concat_dictionaries(&arrays, value),
            _ => concat(&refs(&arrays)),
        }
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
}

/// Concatenates dictionary arrays, comparing their dictionaries by value, because equal dictionaries may be different
/// buffers.
fn concat_dictionaries(arrays: &[ArrayRef], value: &DataType) -> Result<ArrayRef, ArrowError> {
    let values = arrays[0].as_any_dictionary().values();
    if arrays.iter().all(|array| array.as_any_dictionary().values() == values) {
        let same: Vec<_> = arrays.iter().map(|array| array.as_any_dictionary().with_values(values.clone())).collect();
        return concat(&refs(&same));
    }
    let plain = arrays.iter().map(|array| cast(array, value)).collect::<Result<Vec<_>, _>>()?;
    cast(&concat(&refs(&plain))?, arrays[0].data_type())
}

fn refs(arrays: &[ArrayRef]) -> Vec<&dyn Array> {
    arrays.iter().map(AsRef::as_ref).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, StringArray};
    use arrow::datatypes::Int8Type;
    use std::sync::Arc;

    fn batch(values: &[&str], rows: &[Option<i8>]) -> RecordBatch {
        let values = Arc::new(StringArray::from(values.to_vec()));
        let array = DictionaryArray::<Int8Type>::try_new(rows.to_vec().into(), values).unwrap();
        RecordBatch::try_from_iter([("fault", Arc::new(array) as ArrayRef)]).unwrap()
    }

    #[test]
    fn dictionaries_are_compared_by_value() {
        let a = batch(&["x", "y"], &[Some(1), None]);
        let texts = |batch: &RecordBatch| {
            let plain = cast(batch.column(0), &DataType::Utf8).unwrap();
            plain.as_string::<i32>().iter().map(|text| text.map(str::to_string)).collect::<Vec<_>>()
        };
        for (b, values) in [(batch(&["x", "y"], &[Some(0)]), 2), (batch(&["x"], &[Some(0)]), 2)] {
            let all = concat_batches(a.schema_ref(), vec![a.clone(), b, a.clone()]).unwrap();
            assert_eq!(texts(&all), [Some("y"), None, Some("x"), Some("y"), None].map(|t| t.map(str::to_string)));
            assert_eq!(all.column(0).as_any_dictionary().values().len(), values);
        }
        assert_eq!(concat_batches(a.schema_ref(), Vec::new()).unwrap().num_rows(), 0);
    }

    #[test]
    fn row_groups_are_full_at_half_an_input_row_group() {
        let mut fill = RowGroupFill { share: 0, has_groups: true };
        let inputs = [(10, 100), (30, 100), (10, 90), (60, 100), (0, 50), (1, 2)];
        assert_eq!(inputs.map(|(kept, all)| fill.add(kept, all)), [false, false, true, true, false, true]);
        assert!(RowGroupFill { share: 0, has_groups: false }.add(0, 100));
    }
}
