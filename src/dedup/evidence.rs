//! Tables that explain duplicates: one row per duplicate with its representative ([`duplicates`]), and one row per
//! representative with the size of its group ([`groups`]).

use super::decisions::{Decision, DecisionReasons};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringBuilder, UInt64Array, UInt64Builder};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::sync::Arc;

/// The columns of rows that the tables are made from; both tables begin with them.
pub(crate) const COLUMNS: [&str; 5] = ["source", "record", "input", "uri", "key"];

/// Finds the source and record of an ordinal.
#[derive(Debug)]
pub(crate) struct RecordLocator {
    names: Vec<String>,
    /// Ordinal of the first record of each source.
    starts: Vec<u64>,
}

impl RecordLocator {
    /// For sources in input order, with their numbers of records.
    pub(crate) fn new(names: Vec<String>, counts: &[u64]) -> RecordLocator {
        let starts = counts.iter().scan(0, |sum, count| {
            let start = *sum;
            *sum += count;
            Some(start)
        });
        RecordLocator { names, starts: starts.collect() }
    }

    /// The name of the source, and the number of the record in it, from 1.
    pub(crate) fn find(&self, ordinal: u64) -> (&str, u64) {
        // Sources without records start where the next source does. The last source with that start has the record.
        let at = self.starts.partition_point(|start| *start <= ordinal).saturating_sub(1);
        let name = self.names.get(at).map_or("", String::as_str);
        (name, ordinal - self.starts.get(at).copied().unwrap_or(0) + 1)
    }
}

fn schema(more: impl IntoIterator<Item = Field>) -> SchemaRef {
    let types = [
        (DataType::Utf8, false),
        (DataType::UInt64, false),
        (DataType::Binary, true),
        (DataType::Utf8, true),
        (DataType::FixedSizeBinary(16), false),
    ];
    let common = COLUMNS.into_iter().zip(types).map(|(name, (kind, is_nullable))| Field::new(name, kind, is_nullable));
    Arc::new(Schema::new(common.chain(more).collect::<Vec<_>>()))
}

/// Schema of the table of duplicates: the row, its representative, and the lowest rung on which they are equal.
/// `equal_on` is the name of the compared key if they are equal on no rung, and `seen` if an earlier job had the key; such
/// a row has no representative.
pub(crate) fn duplicates_schema() -> SchemaRef {
    schema([
        Field::new("representative_source", DataType::Utf8, true),
        Field::new("representative_record", DataType::UInt64, true),
        Field::new("equal_on", DataType::Utf8, false),
    ])
}

/// Schema of the table of groups: the representative, and the number of rows that it represents, including itself.
pub(crate) fn groups_schema() -> SchemaRef {
    schema([Field::new("size", DataType::UInt64, false)])
}

/// The duplicates among pending rows. `ordinals` are `None` for rows that do not compete; `key_name` is the name of the
/// compared key if that is not the key of a rung.
pub(crate) fn duplicates(
    (rows, ordinals): (&RecordBatch, &[Option<u64>]),
    decisions: &DecisionReasons<'_>,
    locator: &RecordLocator,
    key_name: &str,
) -> Result<RecordBatch, ArrowError> {
    let (mut sources, mut records, mut equal_on) = (StringBuilder::new(), UInt64Builder::new(), StringBuilder::new());
    let mut is_duplicate = Vec::with_capacity(ordinals.len());
    for ordinal in ordinals {
        let decision = ordinal.map(|ordinal| decisions.get(ordinal));
        is_duplicate.push(matches!(decision, Some(Decision::Duplicate { .. } | Decision::Seen)));
        match decision {
            Some(Decision::Duplicate { of, rung }) => {
                let (source, record) = locator.find(of);
                sources.append_value(source);
                records.append_value(record);
                equal_on.append_value(rung.map_or(key_name, |rung| rung.name()));
            }
            Some(Decision::Seen) => {
                sources.append_null();
                records.append_null();
                equal_on.append_value("seen");
            }
            Some(Decision::Kept(_)) | None => (),
        }
    }
    let more: [ArrayRef; 3] = [Arc::new(sources.finish()), Arc::new(records.finish()), Arc::new(equal_on.finish())];
    table(duplicates_schema(), rows, is_duplicate, more)
}

/// The representatives of two or more rows among pending rows.
pub(crate) fn groups(
    (rows, ordinals): (&RecordBatch, &[Option<u64>]),
    decisions: &DecisionReasons<'_>,
) -> Result<RecordBatch, ArrowError> {
    let size = |ordinal: &Option<u64>| match ordinal.map(|ordinal| decisions.get(ordinal)) {
        Some(Decision::Kept(size)) if size > 1 => Some(size),
        _ => None,
    };
    let sizes: Vec<Option<u64>> = ordinals.iter().map(size).collect();
    let is_group = sizes.iter().map(Option::is_some).collect();
    let more: [ArrayRef; 1] = [Arc::new(UInt64Array::from_iter_values(sizes.into_iter().flatten()))];
    table(groups_schema(), rows, is_group, more)
}

/// The selected rows in the common columns, with more columns after them.
fn table(
    schema: SchemaRef,
    rows: &RecordBatch,
    is_selected: Vec<bool>,
    more: impl IntoIterator<Item = ArrayRef>,
) -> Result<RecordBatch, ArrowError> {
    let rows = filter_record_batch(rows, &BooleanArray::from(is_selected))?;
    let column = |name: &str| -> Result<ArrayRef, ArrowError> {
        let column = rows.column_by_name(name);
        column.cloned().ok_or_else(|| ArrowError::SchemaError(format!("rows have no column {name}")))
    };
    let mut columns = COLUMNS.iter().map(|name| column(name)).collect::<Result<Vec<_>, _>>()?;
    columns[0] = cast(&columns[0], &DataType::Utf8)?;
    columns.extend(more);
    RecordBatch::try_new(schema, columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinals_are_located() {
        let names = ["a", "empty", "b"].map(str::to_string).to_vec();
        let locator = RecordLocator::new(names, &[3, 0, 2]);
        let found: Vec<_> = (0..5).map(|ordinal| locator.find(ordinal)).collect();
        assert_eq!(found, [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]);
    }
}
