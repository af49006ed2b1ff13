//! Builds record batches of rows. Vectors move into Arrow buffers without a copy, and move back when the batch is no longer
//! needed.
//!
//! The builder refuses inconsistent rows: columns of different lengths, unknown sources, text longer than `i32::MAX`.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BooleanBufferBuilder, DictionaryArray, FixedSizeBinaryArray,
    Int8Array, Int32Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{SchemaRef, UInt32Type, UInt64Type};

use super::carried::check_len;
use super::column::{ColumnId, KEY_LEN};
use super::error::BatchError;
use super::path_values::{DistinctValues, PathValues};
use super::schema::ColumnSet;
use super::source_run::{BatchRuns, SourceRun};
use super::text_array::{offset_buffer, text_array};
use super::{carried, derived, parts};
use crate::canon::{Policy, Rows, TextColumn};
use crate::iri::{Component, Fault, FaultKind, Rung};
use crate::key::KeyBytes;

/// Builds batches of one schema. Workers share it.
///
/// ```
/// use irikey::batch::{BatchBuilder, ColumnSet, SourceRun};
/// use irikey::canon::{Policy, UrlCanonicalizer};
///
/// let columns = ColumnSet::named(["record", "input", "uri", "key"]).unwrap();
/// let policy = columns.complete_policy(Policy::default());
/// let builder = BatchBuilder::new(columns, &[], &policy, &["a list".to_string()]);
///
/// let mut urls = UrlCanonicalizer::new(&policy);
/// let texts = ["HTTP://example.org:80", "http://example.org/"];
/// let rows = urls.canonicalize(texts.map(|url| (url.as_bytes(), None)))?;
/// let batch = builder.build(rows, &[SourceRun { source: 0, first_record: 1, rows: 2 }])?;
/// assert_eq!((batch.num_rows(), batch.num_columns()), (2, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BatchBuilder {
    columns: ColumnSet,
    schema: SchemaRef,
    policy: Policy,
    /// The distinct names of the sources, and the index of the name of each source.
    source_names: ArrayRef,
    source_keys: Vec<i32>,
    /// Columns of values in the paths of the sources, by name.
    path_values: Vec<(&'static str, PathValues)>,
    kinds: ArrayRef,
    components: ArrayRef,
    /// The texts of a recipe for no rows.
    no_texts: TextColumn,
}

impl BatchBuilder {
    /// Creates a builder of `columns` for rows of `policy` from the sources with these names. The policy has to make what the
    /// columns need: see [`ColumnSet::complete_policy`]. Schemas have `metadata`.
    pub fn new(columns: ColumnSet, metadata: &[(String, String)], policy: &Policy, sources: &[String]) -> BatchBuilder {
        let path_values = columns.iter().filter_map(|column| match column.id {
            ColumnId::PathValue(name) => Some((name, PathValues::new(name, sources))),
            _ => None,
        });
        let mut source_names = DistinctValues::default();
        let source_keys = sources.iter().map(|source| source_names.index(source)).collect();
        BatchBuilder {
            schema: Arc::new(columns.schema(metadata)),
            path_values: path_values.collect(),
            columns,
            policy: policy.clone(),
            source_names: source_names.to_array(),
            source_keys,
            kinds: Arc::new(StringArray::from_iter_values(FaultKind::ALL.map(FaultKind::name))),
            components: Arc::new(StringArray::from_iter_values(Component::ALL.map(Component::name))),
            no_texts: TextColumn::new(),
        }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the dictionary of each column, which is the same in all batches; `None` for columns without one.
    pub(crate) fn dictionaries(&self) -> Vec<Option<ArrayRef>> {
        let dictionary = |id| match id {
            ColumnId::Source => Some(&self.source_names),
            ColumnId::Fault => Some(&self.kinds),
            ColumnId::FaultComponent => Some(&self.components),
            ColumnId::PathValue(name) => self.path_values(name).map(PathValues::values),
            _ => None,
        };
        self.columns.iter().map(|column| dictionary(column.id).cloned()).collect()
    }

    fn path_values(&self, name: &str) -> Option<&PathValues> {
        self.path_values.iter().find(|(known, _)| *known == name).map(|(_, values)| values)
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(crate) fn columns(&self) -> &ColumnSet {
        &self.columns
    }

    /// Moves `rows` into a batch. Afterwards `rows` contains its tally and the columns that the batch does not have. Clear
    /// it before it is used again.
    ///
    /// # Errors
    /// See [`BatchError`].
    pub fn build(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<RecordBatch, BatchError> {
        self.build_from(rows, BatchRuns { runs, kept: None })
    }

    /// Like [`Self::build`], but removes all rows except `kept`, whose numbers ascend.
    ///
    /// # Panics
    /// If there is no row with one of these numbers.
    pub(crate) fn build_kept(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        kept: &[u32],
    ) -> Result<RecordBatch, BatchError> {
        rows.retain(kept);
        self.build_from(rows, BatchRuns { runs, kept: Some(kept) })
    }

    fn build_from(&self, rows: &mut Rows, runs: BatchRuns<'_>) -> Result<RecordBatch, BatchError> {
        let count = rows.len();
        self.check(rows, runs)?;
        // Columns that are computed from texts come first: the texts move into the batch.
        let mut parts = self.parts(rows).into_iter();
        let compute = |id| match id {
            ColumnId::Part(_) => parts.next().map(Ok),
            id => self.computed(id, rows).transpose(),
        };
        let computed: Vec<_> = self.columns.iter().map(|column| column.id).map(compute).collect();
        let mut arrays = Vec::with_capacity(computed.len());
        for (column, array) in self.columns.iter().zip(computed) {
            arrays.push(match array {
                Some(array) => array?,
                None => self.array(column.id, rows, runs)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?)
    }

    /// Returns the arrays of the columns of parts of the URI, in order.
    fn parts(&self, rows: &Rows) -> Vec<ArrayRef> {
        let part = |id| if let ColumnId::Part(part) = id { Some(part) } else { None };
        let wanted: Vec<_> = self.columns.iter().filter_map(|column| part(column.id)).collect();
        if wanted.is_empty() { Vec::new() } else { parts::arrays(&wanted, rows, &self.policy.suffixes) }
    }

    /// Returns the array of a column that is computed from texts, except parts of the URI, or `None` for any other column.
    fn computed(&self, id: ColumnId, rows: &Rows) -> Result<Option<ArrayRef>, BatchError> {
        if let Some(array) = derived::array(id, rows, self.policy.profile) {
            return Ok(Some(array));
        }
        match id {
            ColumnId::RecipeText(name) => {
                let texts = self.recipe(name, rows)?;
                check_len("recipe", rows.len(), texts.len())?;
                Ok(Some(carried::text_or_null_array(texts)))
            }
            ColumnId::RecipeKey(name) => self.recipe_keys(self.recipe(name, rows)?, rows.len()).map(Some),
            ColumnId::Carried(field) => carried::array(field, rows).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the texts of a recipe's keys. Rows to which no record was appended may lack their columns.
    fn recipe<'r>(&'r self, name: &'static str, rows: &'r Rows) -> Result<&'r TextColumn, BatchError> {
        let place = self.policy.recipes.iter().position(|wanted| wanted.column == name);
        let texts = place.and_then(|place| rows.recipe_texts.get(place));
        texts.or(rows.is_empty().then_some(&self.no_texts)).ok_or(BatchError::MissingRecipe(name))
    }

    /// Moves the keys of a rung into an array. Rows to which no record was appended may lack the column.
    fn key_of(&self, rung: Rung, rows: &mut Rows, count: usize) -> Result<ArrayRef, BatchError> {
        let place = self.policy.key_index(rung).ok_or(BatchError::MissingKey(rung))?;
        match rows.more_keys.get_mut(place) {
            Some(column) => keys(std::mem::take(column)),
            None if count == 0 => keys(Vec::new()),
            None => Err(BatchError::MissingKey(rung)),
        }
    }

    fn recipe_keys(&self, texts: &TextColumn, count: usize) -> Result<ArrayRef, BatchError> {
        check_len("key_*", count, texts.len())?;
        let mut keys = Vec::new();
        self.policy.algorithm.push_keys(&texts.values, &texts.offsets, &mut keys);
        let nulls = NullBuffer::new(BooleanBuffer::collect_bool(count, |row| !texts.get(row).is_empty()));
        let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
        if let Some(nulls) = &nulls {
            (0..count).filter(|row| nulls.is_null(*row)).for_each(|row| keys[row] = KeyBytes::default());
        }
        let bytes = Buffer::from_vec(keys.into_flattened());
        Ok(Arc::new(FixedSizeBinaryArray::try_new(KEY_LEN, bytes, nulls)?))
    }

    /// Moves the memory of a batch back to `rows`, which is empty afterwards. Frees memory that has other owners.
    pub(crate) fn reclaim(&self, batch: RecordBatch, rows: &mut Rows) {
        let (_, arrays, _) = batch.into_parts();
        for (column, array) in self.columns.iter().zip(arrays) {
            match column.id {
                ColumnId::Uri => reclaim_texts(array.as_string::<i32>().clone().into_parts(), array, &mut rows.uri),
                ColumnId::Input => reclaim_texts(array.as_binary::<i32>().clone().into_parts(), array, &mut rows.input),
                ColumnId::RecordOffset => rows.offset = reclaim_numbers::<UInt64Type>(array),
                ColumnId::Flags => rows.flags = reclaim_numbers::<UInt32Type>(array),
                ColumnId::SpoofingFlags => rows.spoofing_flags = reclaim_numbers::<UInt32Type>(array),
                _ => {}
            }
        }
        rows.clear();
    }

    /// Checks the conditions of [`Self::build`], so that no Arrow constructor panics.
    fn check(&self, rows: &Rows, runs: BatchRuns<'_>) -> Result<(), BatchError> {
        let expected = rows.len();
        // If offsets have overflowed, no other check is meaningful.
        let (column, bytes) = rows.longest_texts();
        if rows.is_overfull || bytes > i32::MAX as usize {
            return Err(BatchError::TooLong { column, bytes });
        }
        check_len("source", expected, runs.row_count())?;
        check_len("flags", expected, rows.flags.len())?;
        if self.columns.contains(ColumnId::Input) && !self.policy.keep_input && lacks_input(rows) {
            return Err(BatchError::MissingInput);
        }
        if self.columns.contains(ColumnId::RecordOffset) {
            check_len("record_offset", expected, rows.offset.len())?;
        }
        if self.columns.contains(ColumnId::SpoofingFlags) {
            check_len("spoofing_flags", expected, rows.spoofing_flags.len())?;
        }
        for keys in &rows.more_keys {
            check_len("key_*", expected, keys.len())?;
        }
        check_texts("uri", &rows.uri, expected)?;
        check_texts("input", &rows.input, expected)?;
        if let Some(run) = runs.runs.iter().find(|run| run.source as usize >= self.source_keys.len()) {
            return Err(BatchError::UnknownSource(run.source));
        }
        if rows.faults.last().is_some_and(|(row, _)| *row as usize >= expected)
            || !rows.faults.is_sorted_by_key(|(row, _)| *row)
        {
            return Err(BatchError::InvalidFaults);
        }
        Ok(())
    }

    /// Moves a column of `rows`, which [`Self::check`] has accepted, into an array.
    fn array(&self, id: ColumnId, rows: &mut Rows, runs: BatchRuns<'_>) -> Result<ArrayRef, BatchError> {
        let count = runs.row_count();
        Ok(match id {
            ColumnId::Source => {
                let keys = runs.per_row(|run, _| self.source_keys[run.source as usize]);
                Arc::new(DictionaryArray::try_new(Int32Array::from(keys), self.source_names.clone())?)
            }
            ColumnId::Record => Arc::new(UInt64Array::from(runs.per_row(|run, i| run.first_record + i))),
            ColumnId::RecordOffset => Arc::new(UInt64Array::from(std::mem::take(&mut rows.offset))),
            ColumnId::Input => {
                let (offsets, values) = text_buffers(&mut rows.input);
                let validity = differing(std::mem::take(&mut rows.differs), count);
                Arc::new(BinaryArray::try_new(offsets, values, Some(validity))?)
            }
            ColumnId::Uri => {
                let (offsets, values) = text_buffers(&mut rows.uri);
                Arc::new(text_array(offsets, values, faultless(&rows.faults, count))?)
            }
            ColumnId::Key => keys(std::mem::take(&mut rows.key))?,
            ColumnId::KeyOf(rung) => self.key_of(rung, rows, count)?,
            ColumnId::KeyProtocol if rows.protocol.len() == count => keys(std::mem::take(&mut rows.protocol))?,
            ColumnId::KeyProtocol => return Err(BatchError::MissingProtocol),
            ColumnId::Fault => words(&rows.faults, count, &self.kinds, |fault| fault.kind as i8)?,
            ColumnId::FaultComponent => words(&rows.faults, count, &self.components, |fault| fault.component as i8)?,
            ColumnId::FaultAt => {
                let (values, nulls) = sparse(&rows.faults, count, |fault| fault.at);
                Arc::new(UInt32Array::new(ScalarBuffer::from(values), Some(nulls)))
            }
            ColumnId::Flags => Arc::new(UInt32Array::from(std::mem::take(&mut rows.flags))),
            ColumnId::SpoofingFlags => Arc::new(UInt32Array::from(std::mem::take(&mut rows.spoofing_flags))),
            ColumnId::PathValue(name) => {
                self.path_values(name).ok_or(BatchError::MissingPathValues(name))?.array(runs)?
            }
            _ => unreachable!("`computed` makes the other columns"),
        })
    }
}

/// Returns whether rows differ from their records and have none of their texts.
fn lacks_input(rows: &Rows) -> bool {
    rows.input.values.is_empty() && rows.differs.iter().any(|word| *word != 0)
}

fn check_texts(column: &'static str, texts: &TextColumn, rows: usize) -> Result<(), BatchError> {
    let bytes = texts.values.len();
    check_len(column, rows + 1, texts.offsets.len())?;
    let ends = (texts.offsets.first(), texts.offsets.last());
    if ends != (Some(&0), Some(&(bytes as i32))) || !texts.offsets.is_sorted() {
        return Err(BatchError::InvalidOffsets(column));
    }
    Ok(())
}

/// Moves texts, which [`check_texts`] has accepted, into buffers. Leaves an empty column with memory for as many offsets.
fn text_buffers(texts: &mut TextColumn) -> (OffsetBuffer<i32>, Buffer) {
    let mut next = TextColumn { values: Vec::new(), offsets: Vec::with_capacity(texts.offsets.len()) };
    next.offsets.push(0);
    let TextColumn { values, offsets } = std::mem::replace(texts, next);
    (offset_buffer(offsets), Buffer::from_vec(values))
}

/// Moves memory back to `texts`. Drops `array` first, so that the buffers have one owner.
fn reclaim_texts(parts: (OffsetBuffer<i32>, Buffer, Option<NullBuffer>), array: ArrayRef, texts: &mut TextColumn) {
    let (offsets, values, _) = parts;
    drop(array);
    texts.values = values.into_vec().unwrap_or_default();
    texts.offsets = offsets.into_inner().into_inner().into_vec().unwrap_or_default();
    if texts.offsets.is_empty() {
        texts.offsets.push(0);
    }
}

/// Returns the memory of a column of numbers, if it has one owner.
fn reclaim_numbers<T: ArrowPrimitiveType>(array: ArrayRef) -> Vec<T::Native> {
    let values = array.as_primitive::<T>().clone().into_parts().1;
    drop(array);
    values.into_inner().into_vec().unwrap_or_default()
}

/// Returns the validity of inputs: null if an input equals the URI. Bit `i` of `words` is set if input `i` differs from its URI.
fn differing(mut words: Vec<u64>, count: usize) -> NullBuffer {
    // Arrow counts bits in bytes, as little-endian words do.
    words.resize(count.div_ceil(64), 0);
    NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, count))
}

fn keys(keys: Vec<KeyBytes>) -> Result<ArrayRef, BatchError> {
    let bytes = Buffer::from_vec(keys.into_flattened());
    Ok(Arc::new(FixedSizeBinaryArray::try_new(KEY_LEN, bytes, None)?))
}

/// Returns the validity of the rows' URIs: rows with a fault are null. `None` if no row has a fault.
fn faultless(faults: &[(u32, Fault)], count: usize) -> Option<NullBuffer> {
    if faults.is_empty() {
        return None;
    }
    // The bits after the last row are 0, as in every bitmap that Arrow computes: files contain them.
    let mut valid = BooleanBufferBuilder::new(count);
    valid.append_n(count, true);
    faults.iter().for_each(|(row, _)| valid.set_bit(*row as usize, false));
    Some(NullBuffer::new(valid.finish()))
}

/// Returns a bitmap of the rows with a fault.
fn faulty(faults: &[(u32, Fault)], count: usize) -> BooleanBuffer {
    let mut bytes = vec![0u8; count.div_ceil(8)];
    for (row, _) in faults {
        bytes[*row as usize / 8] |= 1 << (row % 8);
    }
    BooleanBuffer::new(Buffer::from_vec(bytes), 0, count)
}

fn sparse<T: Copy + Default>(
    faults: &[(u32, Fault)],
    count: usize,
    value: impl Fn(&Fault) -> T,
) -> (Vec<T>, NullBuffer) {
    let mut values = vec![T::default(); count];
    for (row, fault) in faults {
        values[*row as usize] = value(fault);
    }
    (values, NullBuffer::new(faulty(faults, count)))
}

fn words(
    faults: &[(u32, Fault)],
    count: usize,
    names: &ArrayRef,
    name: impl Fn(&Fault) -> i8,
) -> Result<ArrayRef, BatchError> {
    let (values, nulls) = sparse(faults, count, name);
    let array = DictionaryArray::try_new(Int8Array::new(ScalarBuffer::from(values), Some(nulls)), names.clone())?;
    Ok(Arc::new(array))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Int32Type;

    use super::*;
    use crate::canon::{RecipeColumn, Rung, UrlCanonicalizer};
    use crate::key::Recipe;

    fn rows(texts: &[&str]) -> Rows {
        let mut rows = Rows::default();
        for text in texts {
            rows.uri.values.extend_from_slice(text.as_bytes());
            rows.uri.end();
            rows.input.end();
            rows.key.push([7; 16]);
            rows.flags.push(0);
            rows.offset.push(9);
        }
        rows
    }

    fn builder() -> BatchBuilder {
        BatchBuilder::new(ColumnSet::default(), &[], &Policy::default(), &["a".to_string()])
    }

    const RUN: SourceRun = SourceRun { source: 0, first_record: 5, rows: 2 };

    #[test]
    fn building_and_reclaiming_copies_nothing() {
        let mut rows = rows(&["http://a/", "http://b/"]);
        let place = rows.uri.values.as_ptr();
        let builder = builder();
        let batch = builder.build(&mut rows, &[RUN]).unwrap();
        assert_eq!(batch.column_by_name("uri").unwrap().as_string::<i32>().values().as_ptr(), place);
        builder.reclaim(batch, &mut rows);
        assert_eq!((rows.uri.values.as_ptr(), rows.len(), rows.uri.len()), (place, 0, 0));
        assert!(rows.offset.capacity() >= 2 && rows.flags.capacity() >= 2 && rows.input.is_empty());
    }

    /// Readers that make the values of dictionaries distinct would give rows another name.
    #[test]
    fn a_source_that_is_named_twice_has_one_name_in_the_dictionary() {
        let names = ["a", "b", "a"].map(String::from);
        let builder = BatchBuilder::new(ColumnSet::default(), &[], &Policy::default(), &names);
        let runs = [2, 1].map(|source| SourceRun { source, rows: 1, ..RUN });
        let batch = builder.build(&mut rows(&["http://a/", "http://b/"]), &runs).unwrap();
        let sources = batch.column_by_name("source").unwrap().as_dictionary::<Int32Type>();
        assert!(sources.values().as_string::<i32>().iter().eq([Some("a"), Some("b")]));
        assert_eq!(sources.keys().values()[..], [0, 1]);
    }

    #[test]
    fn rows_that_were_left_out_are_refused() {
        let mut rows = rows(&["http://a/", ""]);
        rows.is_overfull = true;
        assert!(matches!(builder().build(&mut rows, &[RUN]), Err(BatchError::TooLong { column: "uri", .. })));
        // The message names the longest column.
        rows.carried.mimes.values.resize(100, b'a');
        let error = builder().build(&mut rows, &[RUN]).unwrap_err();
        assert!(matches!(error, BatchError::TooLong { column: "content_mime_type", bytes: 100 }), "{error}");
    }

    #[test]
    fn no_rows_make_an_empty_batch_of_all_columns() {
        let recipe = RecipeColumn { column: "surt-ia", recipe: Recipe::parse("surt-ia").unwrap() };
        let policy = Policy { recipes: vec![recipe], more_keys: vec![Rung::Syntax], ..Policy::default() };
        let recipe_columns = [ColumnId::RecipeText("surt-ia"), ColumnId::RecipeKey("surt-ia")];
        let columns = [&[ColumnId::Uri, ColumnId::KeyOf(Rung::Syntax)][..], &recipe_columns].concat();
        let builder = BatchBuilder::new(ColumnSet::of(&columns), &[], &policy, &["a".to_string()]);
        let batch = builder.build(&mut Rows::default(), &[]).unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (0, 4));
        let builder = BatchBuilder::new(ColumnSet::of(&recipe_columns), &[], &policy, &["a".to_string()]);
        let error = builder.build(&mut rows(&["http://a/", "http://b/"]), &[RUN]).unwrap_err();
        assert_eq!(error.to_string(), "the rows have no key of recipe surt-ia");
    }

    #[test]
    fn inputs_that_the_policy_does_not_keep_are_refused() {
        let columns = ColumnSet::named(["uri", "input"]).unwrap();
        let build = |policy: &Policy, url: &'static [u8]| {
            let mut urls = UrlCanonicalizer::new(policy);
            let rows = urls.canonicalize([(url, None)]).unwrap();
            let builder = BatchBuilder::new(columns.clone(), &[], policy, &["a".to_string()]);
            builder.build(rows, &[SourceRun { rows: 1, ..RUN }])
        };
        assert!(matches!(build(&Policy::default(), b"HTTP://a"), Err(BatchError::MissingInput)));
        assert!(build(&Policy::default(), b"http://a/").unwrap().column(1).is_null(0));
        let batch = build(&columns.complete_policy(Policy::default()), b"HTTP://a").unwrap();
        assert_eq!(batch.column(1).as_binary::<i32>().value(0), b"HTTP://a");
    }

    #[test]
    fn inconsistent_rows_are_errors() {
        let build = |change: fn(&mut Rows), run: SourceRun| {
            let mut rows = rows(&["http://a/", "http://b/"]);
            change(&mut rows);
            builder().build(&mut rows, &[run]).unwrap_err().to_string()
        };
        assert_eq!(build(|_| {}, SourceRun { rows: 3, ..RUN }), "column source has 3 entries, expected 2");
        assert_eq!(build(|_| {}, SourceRun { source: 1, ..RUN }), "source 1 is not in the list of sources");
        assert_eq!(build(|rows| rows.uri.offsets[1] = 99, RUN), "column uri has invalid offsets");
        assert!(build(|rows| rows.uri.values[0] = 0xFF, RUN).contains("UTF-8"));
        let error = build(|rows| rows.faults.push((2, Fault::new(FaultKind::Port, Component::Port, 3))), RUN);
        assert_eq!(error, "the faults are not in the order of their rows, or one belongs to no row");
    }
}
