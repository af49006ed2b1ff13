//! Reads cells of the table of equivalences by the names of their columns: [`RowCells`].

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{Float64Type, UInt64Type};

/// The cells of a row. A column that is missing or has another type has no values.
pub(super) struct RowCells<'a> {
    pub(super) batch: &'a RecordBatch,
    pub(super) row: usize,
}

impl<'a> RowCells<'a> {
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        let column = self.batch.column_by_name(name)?.as_string_opt::<i32>()?;
        column.is_valid(self.row).then(|| column.value(self.row))
    }

    pub(super) fn count(&self, name: &str) -> Option<u64> {
        let column = self.batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?;
        column.is_valid(self.row).then(|| column.value(self.row))
    }

    pub(super) fn share(&self, name: &str) -> Option<f64> {
        let column = self.batch.column_by_name(name)?.as_primitive_opt::<Float64Type>()?;
        column.is_valid(self.row).then(|| column.value(self.row))
    }

    /// The texts of a list without its nulls.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let column = self.batch.column_by_name(name).and_then(|column| column.as_list_opt::<i32>());
        let texts = column.filter(|column| column.is_valid(self.row)).map(|column| column.value(self.row));
        let texts: Option<StringArray> = texts.and_then(|texts| texts.as_string_opt::<i32>().cloned());
        texts.iter().flatten().flatten().map(str::to_string).collect()
    }
}
