//! Row groups of about the size that was asked for, however few rows of each span are kept: [`Joining`]. In: what is kept
//! of each span, in the order of the input. Out: which spans make a row group together, and their rows as one batch. That
//! follows from the numbers of rows alone, so that rows which had to wait are joined as they would have been at once.

use crate::output::Encoder;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;

/// How full a row group is, as the sum of the kept shares of its spans. One is full with half a span's rows: to join more
/// would cost every span that keeps most of its rows a copy of them.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    share: u64,
    /// The format has groups of rows. Others are lines, which may go as they come.
    has_groups: bool,
}

/// The share of a span of which all rows are kept.
const WHOLE: u64 = 1 << 32;

impl Fill {
    /// Of no rows yet.
    pub fn new(encoder: &Encoder) -> Fill {
        Fill { share: 0, has_groups: encoder.has_groups() }
    }

    /// Adds a span of which `kept` rows of `all` are written; says whether the row group is full with it. Then the next
    /// one begins.
    pub fn add(&mut self, kept: u64, all: u64) -> bool {
        self.share += kept * WHOLE / all.max(1);
        let is_full = self.share >= WHOLE / 2 || !self.has_groups;
        if is_full {
            self.share = 0;
        }
        is_full
    }
}

/// Rows that do not fill a row group yet.
#[derive(Debug)]
pub struct Joining {
    pub fill: Fill,
    pub batches: Vec<RecordBatch>,
}

impl Joining {
    pub fn new(encoder: &Encoder) -> Joining {
        Joining { fill: Fill::new(encoder), batches: Vec::new() }
    }

    /// Adds the next span's kept rows, of `all`; gives the row group that is full with them, if one is.
    pub fn add(&mut self, kept: RecordBatch, all: u64) -> Option<Vec<RecordBatch>> {
        let is_full = self.fill.add(kept.num_rows() as u64, all);
        if kept.num_rows() > 0 {
            self.batches.push(kept);
        }
        is_full.then(|| std::mem::take(&mut self.batches))
    }
}

/// Batches of one schema as one.
pub fn join(schema: &SchemaRef, mut batches: Vec<RecordBatch>) -> Result<RecordBatch, ArrowError> {
    match batches.len() {
        0 => return Ok(RecordBatch::new_empty(schema.clone())),
        1 => return Ok(batches.swap_remove(0)),
        _ => (),
    }
    let column = |i: usize| {
        let arrays: Vec<ArrayRef> = batches.iter().map(|batch| batch.column(i).clone()).collect();
        match arrays[0].data_type() {
            DataType::Dictionary(_, value) => join_words(&arrays, value),
            _ => concat(&refs(&arrays)),
        }
    };
    let columns = (0..schema.fields().len()).map(column).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
}

/// Joins dictionary arrays by what their dictionaries say: where these lie in memory depends on the way they took.
fn join_words(arrays: &[ArrayRef], value: &DataType) -> Result<ArrayRef, ArrowError> {
    let words = arrays[0].as_any_dictionary().values();
    if arrays.iter().all(|array| array.as_any_dictionary().values() == words) {
        let alike: Vec<_> = arrays.iter().map(|array| array.as_any_dictionary().with_values(words.clone())).collect();
        return concat(&refs(&alike));
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

    fn batch(words: &[&str], rows: &[Option<i8>]) -> RecordBatch {
        let words = Arc::new(StringArray::from(words.to_vec()));
        let array = DictionaryArray::<Int8Type>::try_new(rows.to_vec().into(), words).unwrap();
        RecordBatch::try_from_iter([("fault", Arc::new(array) as ArrayRef)]).unwrap()
    }

    #[test]
    fn words_are_joined_by_what_they_say() {
        let a = batch(&["x", "y"], &[Some(1), None]);
        let texts = |joined: &RecordBatch| {
            let plain = cast(joined.column(0), &DataType::Utf8).unwrap();
            plain.as_string::<i32>().iter().map(|text| text.map(str::to_string)).collect::<Vec<_>>()
        };
        for (b, words) in [(batch(&["x", "y"], &[Some(0)]), 2), (batch(&["x"], &[Some(0)]), 2)] {
            let joined = join(a.schema_ref(), vec![a.clone(), b, a.clone()]).unwrap();
            assert_eq!(texts(&joined), [Some("y"), None, Some("x"), Some("y"), None].map(|t| t.map(str::to_string)));
            assert_eq!(joined.column(0).as_any_dictionary().values().len(), words);
        }
        assert_eq!(join(a.schema_ref(), Vec::new()).unwrap().num_rows(), 0);
    }

    #[test]
    fn groups_are_full_with_half_a_span() {
        let mut fill = Fill { share: 0, has_groups: true };
        let spans = [(10, 100), (30, 100), (10, 90), (60, 100), (0, 50), (1, 2)];
        assert_eq!(spans.map(|(kept, all)| fill.add(kept, all)), [false, false, true, true, false, true]);
        assert!(Fill { share: 0, has_groups: false }.add(0, 100));
    }
}
