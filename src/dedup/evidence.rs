//! What a person or a job wants to know of duplicates: which row stands for each and why, and how large groups are. In:
//! rows that waited, with their verdicts. Out: batches of the tables [`duplicates_schema`] and [`groups_schema`].

use super::verdict::{Verdict, Verdicts};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringBuilder, UInt64Array, UInt64Builder};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::sync::Arc;

/// Columns of rows that the tables are made of.
pub const COLUMNS: [&str; 5] = ["source", "record", "input", "uri", "key"];

/// Names of sources with how many records each had: what makes an ordinal a place.
#[derive(Debug)]
pub struct Places {
    names: Vec<String>,
    /// Ordinal of each source's first record.
    starts: Vec<u64>,
}

impl Places {
    /// Sources in order, with their numbers of records.
    pub fn new(names: Vec<String>, counts: &[u64]) -> Places {
        let starts = counts.iter().scan(0, |sum, count| {
            let start = *sum;
            *sum += count;
            Some(start)
        });
        Places { names, starts: starts.collect() }
    }

    /// Source and record of an ordinal; records count from 1.
    pub fn find(&self, ordinal: u64) -> (&str, u64) {
        // Of sources without records, which begin where the next one does, the last one is taken: that has them.
        let at = self.starts.partition_point(|start| *start <= ordinal).saturating_sub(1);
        let name = self.names.get(at).map_or("", String::as_str);
        (name, ordinal - self.starts.get(at).copied().unwrap_or(0) + 1)
    }
}

fn common() -> Vec<Field> {
    vec![
        Field::new("source", DataType::Utf8, false),
        Field::new("record", DataType::UInt64, false),
        Field::new("input", DataType::Binary, true),
        Field::new("uri", DataType::Utf8, true),
        Field::new("key", DataType::FixedSizeBinary(16), false),
    ]
}

/// Columns of the table of duplicates: the row, its representative, and the lowest rung on which they are equal. That is
/// the name of the key where they are on none, and `seen` where an earlier run had the key; then there is no
/// representative.
pub fn duplicates_schema() -> SchemaRef {
    let more = [
        Field::new("representative_source", DataType::Utf8, true),
        Field::new("representative_record", DataType::UInt64, true),
        Field::new("equal_on", DataType::Utf8, false),
    ];
    Arc::new(Schema::new(common().into_iter().chain(more).collect::<Vec<_>>()))
}

/// Columns of the table of groups: the representative, and how many rows it stands for, itself included.
pub fn groups_schema() -> SchemaRef {
    let more = [Field::new("size", DataType::UInt64, false)];
    Arc::new(Schema::new(common().into_iter().chain(more).collect::<Vec<_>>()))
}

/// The duplicates among rows that waited. `ordinals` are those of rows that have a verdict, `None` for others; `key_name`
/// is what to call a key that is no rung's.
///
/// # Errors
/// Arrow refused.
pub fn duplicates(
    rows: &RecordBatch,
    ordinals: &[Option<u64>],
    verdicts: &Verdicts,
    places: &Places,
    key_name: &str,
) -> Result<RecordBatch, ArrowError> {
    let (mut sources, mut records, mut rungs) = (StringBuilder::new(), UInt64Builder::new(), StringBuilder::new());
    let mut wanted = Vec::with_capacity(ordinals.len());
    for ordinal in ordinals {
        let verdict = ordinal.and_then(|ordinal| verdicts.get(ordinal));
        wanted.push(matches!(verdict, Some(Verdict::Duplicate { .. } | Verdict::Seen)));
        match verdict {
            Some(Verdict::Duplicate { of, rung }) => {
                let (source, record) = places.find(of);
                sources.append_value(source);
                records.append_value(record);
                rungs.append_value(rung.map_or(key_name, |rung| rung.name()));
            }
            Some(Verdict::Seen) => {
                sources.append_null();
                records.append_null();
                rungs.append_value("seen");
            }
            Some(Verdict::Kept(_)) | None => (),
        }
    }
    let more: [ArrayRef; 3] = [Arc::new(sources.finish()), Arc::new(records.finish()), Arc::new(rungs.finish())];
    table(duplicates_schema(), rows, wanted, more)
}

/// The representatives of two or more among rows that waited.
///
/// # Errors
/// Arrow refused.
pub fn groups(rows: &RecordBatch, ordinals: &[Option<u64>], verdicts: &Verdicts) -> Result<RecordBatch, ArrowError> {
    let size = |ordinal: &Option<u64>| match ordinal.and_then(|ordinal| verdicts.get(ordinal)) {
        Some(Verdict::Kept(size)) if size > 1 => Some(size),
        _ => None,
    };
    let sizes: Vec<Option<u64>> = ordinals.iter().map(size).collect();
    let wanted = sizes.iter().map(Option::is_some).collect();
    let more: [ArrayRef; 1] = [Arc::new(UInt64Array::from_iter_values(sizes.into_iter().flatten()))];
    table(groups_schema(), rows, wanted, more)
}

/// Wanted rows, in the columns that both tables have, and more columns beside them.
fn table(
    schema: SchemaRef,
    rows: &RecordBatch,
    wanted: Vec<bool>,
    more: impl IntoIterator<Item = ArrayRef>,
) -> Result<RecordBatch, ArrowError> {
    let rows = filter_record_batch(rows, &BooleanArray::from(wanted))?;
    let column = |name: &str| -> Result<ArrayRef, ArrowError> {
        let column = rows.column_by_name(name);
        column.cloned().ok_or_else(|| ArrowError::SchemaError(format!("rows without a column {name}")))
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
    fn places_of_ordinals() {
        let names = ["a", "empty", "b"].map(str::to_string).to_vec();
        let places = Places::new(names, &[3, 0, 2]);
        let found: Vec<_> = (0..5).map(|ordinal| places.find(ordinal)).collect();
        assert_eq!(found, [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)]);
    }
}
