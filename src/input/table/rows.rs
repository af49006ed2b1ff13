//! Converts the rows of a batch to [`RecordBuffer`]s of limited length. A batch may stand for much more text than it holds
//! itself, because dictionaries and views share values.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryViewArray, PrimitiveArray};
use arrow::array::{LargeBinaryArray, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, TimestampMillisecondType};
use arrow::error::ArrowError;

use super::columns::{TableProjection, has_texts};
use crate::input::error::Defect;
use crate::iri::FaultKind;
use crate::kernel::{Span, parse_bytes};
use crate::record::fields::{
    CarriedField, DigestField, FieldKind, FieldSet, FieldValues, IntegerField, LabelField, PageField, SegmentField,
    StatusField, TimeField, UriField, carried_fields,
};
use crate::record::{BASE_SHARE, RecordBuffer, time_from_digits, time_from_iso};

/// Bytes of text per [`RecordBuffer`], at which no more rows are added.
pub(super) const TEXT_LEN: usize = 256 << 10;

/// Bytes of bases per [`RecordBuffer`], at which no more rows are added. Rows share a base, but each reference becomes about
/// as long as its base.
const BASES_LEN: usize = BASE_SHARE * TEXT_LEN;

/// Rows of a table that are next to each other in its file, or a defect there.
pub(super) struct PositionedRows {
    pub(super) records: Result<RecordBuffer, Defect>,
    /// Byte offset in the file of the rows, as far as it is known.
    pub(super) at: u64,
}

/// The rows of a table that was opened.
pub(super) struct OpenedTable {
    pub(super) rows: Box<dyn Iterator<Item = PositionedRows> + Send>,
    pub(super) file_len: u64,
    /// Rows without a `uri` have their text in the column `input`.
    pub(super) has_input: bool,
}

/// No records yet, with memory for at most `count` rows and about [`TEXT_LEN`] bytes of text.
pub(super) fn empty_records(projection: &TableProjection, count: usize) -> RecordBuffer {
    let mut records = RecordBuffer::new(projection.carry);
    records.set_text(projection.is_text);
    records.reserve(count.min(TEXT_LEN / 32), TEXT_LEN + TEXT_LEN / 16);
    records
}

/// A batch whose rows are taken step by step.
pub(super) struct BatchRows {
    url: TableText,
    /// The texts of rows without a URL.
    input: Option<TableText>,
    base: Option<TableText>,
    /// `None` if the table has none of the carried fields.
    carried: Option<CarriedArrays>,
    count: usize,
    taken: usize,
}

impl BatchRows {
    /// The columns of `projection` in `batch`, converted to the types of records.
    pub(super) fn new(batch: &RecordBatch, projection: &TableProjection) -> Result<BatchRows, ArrowError> {
        let texts = |name: &str| batch.column_by_name(name).map(TableText::new).transpose();
        let missing = || TableText::Plain(BinaryArray::new_null(batch.num_rows()));
        Ok(BatchRows {
            url: texts(&projection.url)?.unwrap_or_else(missing),
            input: projection.input.as_deref().map_or(Ok(None), texts)?,
            base: projection.base.as_deref().map_or(Ok(None), texts)?,
            carried: CarriedArrays::new(batch, projection.carry)?,
            count: batch.num_rows(),
            taken: 0,
        })
    }

    /// Takes the next rows. `number` is the number of the first of them in the table, and is advanced. Returns `None` after
    /// the last row.
    pub(super) fn take(
        &mut self,
        projection: &TableProjection,
        number: &mut u64,
    ) -> Option<Result<RecordBuffer, Defect>> {
        let mut records = empty_records(projection, self.count - self.taken);
        let mut bases_len = 0;
        while self.taken < self.count && records.text_len() < TEXT_LEN && bases_len < BASES_LEN {
            let url = self.url.get(self.taken);
            let room = projection.max_record_len.checked_sub(self.more_len(self.taken));
            let input = || self.input.as_ref()?.get(self.taken).filter(|input| room >= Some(input.len()));
            let text = url.or_else(input).unwrap_or_default();
            if room < Some(text.len()) {
                if records.is_empty() {
                    return Some(Err(Defect::RowTooLong(projection.max_record_len)));
                }
                // The next call reports this row, after the rows before it.
                break;
            }
            if url.is_none() {
                records.refuse(FaultKind::NoUrl);
            }
            records.begin(*number);
            records.push_url(text);
            bases_len += self.push_more(self.taken, &mut records);
            self.taken += 1;
            *number += 1;
        }
        (!records.is_empty()).then_some(Ok(records))
    }

    /// Bytes of all texts of a row besides the URL.
    fn more_len(&self, row: usize) -> usize {
        let base_len = self.base.as_ref().map_or(0, |base| base.len(row));
        base_len + self.carried.as_ref().map_or(0, |carried| carried.len(row))
    }

    /// Appends what a row has besides the URL. Returns the length of the base.
    fn push_more(&self, row: usize, records: &mut RecordBuffer) -> usize {
        let base = self.base.as_ref().map(|base| base.get(row).unwrap_or_default());
        if let Some(base) = base {
            records.push_base(base);
        }
        if let Some(carried) = &self.carried {
            let values = carried.values(row, records);
            records.push_fields(&values);
        }
        base.map_or(0, <[u8]>::len)
    }
}

/// Checks the types of the columns of `projection` in `schema`.
///
/// # Errors
/// A column cannot be read as what it is read for; the message has its name and type, and what was expected.
pub(super) fn check_types(schema: &Schema, projection: &TableProjection) -> Result<(), Defect> {
    let data_type = |name: &str| schema.field_with_name(name).ok().map(Field::data_type);
    let texts =
        [&projection.url].into_iter().chain(&projection.base).map(|name| (name.as_str(), TEXT, is_text as TypeTest));
    let fields = field_types().into_iter().filter(|(field, ..)| projection.carry.contains(*field));
    let mut columns = texts.chain(fields.map(|(field, expected, accepts)| (field.column(), expected, accepts)));
    let wrong = columns.find_map(|(name, expected, accepts)| {
        let found = data_type(name).filter(|found| !accepts(found))?;
        Some(format!("column `{name}` has the type {found}; expected {expected}"))
    });
    wrong.map_or(Ok(()), |message| Err(Defect::Columns(message)))
}

/// Whether a column of a type can be read.
type TypeTest = fn(&DataType) -> bool;

const TEXT: &str = "text or bytes";

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_text(values),
        DataType::FixedSizeBinary(_) | DataType::Null => true,
        other => has_texts(other),
    }
}

fn is_time(data_type: &DataType) -> bool {
    // An integer may count seconds or milliseconds, or have the digits of a date.
    matches!(data_type, DataType::Timestamp(..) | DataType::Date32 | DataType::Date64)
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_number(values),
        other => other.is_numeric(),
    }
}

/// A kind of carried field that a table can hold.
trait TableField: FieldKind {
    /// The column, in the type of the records.
    type Array;

    /// What columns are expected to hold, for messages.
    const EXPECTED: &'static str;

    fn accepts(data_type: &DataType) -> bool;

    fn cast(column: &ArrayRef) -> Result<Self::Array, ArrowError>;

    /// Returns the value of a row; text is copied to `records`.
    fn value(array: &Self::Array, row: usize, records: &mut RecordBuffer) -> Option<Self::Value>;

    /// Bytes of text in a row.
    fn text_len(_: &Self::Array, _: usize) -> usize {
        0
    }
}

/// Kinds whose values are numbers or times, or texts that are parsed.
macro_rules! number_fields {
    ($($kind:ident: $number:ident, $expected:literal, $is_value:path, $parse:path;)*) => {
        $(impl TableField for $kind {
            type Array = PrimitiveArray<$number>;

            const EXPECTED: &'static str = $expected;

            fn accepts(data_type: &DataType) -> bool {
                $is_value(data_type) || is_text(data_type)
            }

            fn cast(column: &ArrayRef) -> Result<Self::Array, ArrowError> {
                if *column.data_type() == DataType::Null || !is_text(column.data_type()) {
                    return Ok(cast(column, &$number::DATA_TYPE)?.as_primitive().clone());
                }
                let texts = TableText::new(column)?;
                Ok((0..column.len()).map(|row| texts.get(row).and_then($parse)).collect())
            }

            #[inline]
            fn value(array: &Self::Array, row: usize, _: &mut RecordBuffer) -> Option<Self::Value> {
                array.is_valid(row).then(|| array.value(row))
            }
        })*
    };
}
number_fields! {
    TimeField: TimestampMillisecondType, "timestamps, dates or text", is_time, parse_time;
    StatusField: Int32Type, "numbers or text", is_number, parse_bytes;
    IntegerField: Int64Type, "numbers or text", is_number, parse_bytes;
}

/// Parses `yyyyMMddHHmmss`, or a time like those of RFC 3339. Without a zone, it is UTC.
fn parse_time(text: &[u8]) -> Option<i64> {
    let other = || Some(string_to_timestamp_nanos(std::str::from_utf8(text).ok()?).ok()?.div_euclid(1_000_000));
    // Nanoseconds have no room for years before 1678 and after 2261.
    time_from_digits(text).or_else(|| time_from_iso(text)).or_else(other)
}

/// Kinds whose values are text.
macro_rules! text_fields {
    ($($kind:ident),*) => {
        $(impl TableField for $kind {
            type Array = TableText;

            const EXPECTED: &'static str = TEXT;

            fn accepts(data_type: &DataType) -> bool {
                is_text(data_type)
            }

            fn cast(column: &ArrayRef) -> Result<TableText, ArrowError> {
                TableText::new(column)
            }

            #[inline]
            fn value(array: &TableText, row: usize, records: &mut RecordBuffer) -> Option<Span> {
                records.copy(array.get(row))
            }

            #[inline]
            fn text_len(array: &TableText, row: usize) -> usize {
                array.len(row)
            }
        })*
    };
}
text_fields!(UriField, PageField, DigestField, LabelField, SegmentField);

macro_rules! define_arrays {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        /// The carried fields with what their columns are expected to hold, and whether they accept a type.
        fn field_types() -> [(CarriedField, &'static str, TypeTest); CarriedField::ALL.len()] {
            [$((CarriedField::$id, $kind::EXPECTED, $kind::accepts),)*]
        }

        /// The columns of carried fields that are read and that the table has.
        struct CarriedArrays {
            $($field: Option<<$kind as TableField>::Array>,)*
        }

        impl CarriedArrays {
            /// The columns of `batch` that are carried; `None` if it has none of them.
            fn new(batch: &RecordBatch, carry: FieldSet) -> Result<Option<CarriedArrays>, ArrowError> {
                let column = |field: CarriedField| {
                    carry.contains(field).then(|| batch.column_by_name(field.column())).flatten()
                };
                let arrays = CarriedArrays { $($field: column(CarriedField::$id).map($kind::cast).transpose()?,)* };
                let has_any = false $(|| arrays.$field.is_some())*;
                Ok(has_any.then_some(arrays))
            }

            /// Returns the fields of a row; text is copied to `records`.
            #[inline]
            fn values(&self, row: usize, records: &mut RecordBuffer) -> FieldValues {
                FieldValues { $($field: self.$field.as_ref().and_then(|array| $kind::value(array, row, records)),)* }
            }

            /// Bytes of text in a row.
            #[inline]
            fn len(&self, row: usize) -> usize {
                0 $(+ self.$field.as_ref().map_or(0, |array| $kind::text_len(array, row)))*
            }
        }
    };
}
carried_fields!(define_arrays);

/// A column of texts or bytes, without a conversion if possible.
enum TableText {
    Plain(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
    /// The index of each row's value; not expanded, because few values may stand for any number of bytes.
    Dictionary(UInt64Array, Box<TableText>),
}

impl TableText {
    fn new(array: &ArrayRef) -> Result<TableText, ArrowError> {
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            let keys = cast(dictionary.keys(), &DataType::UInt64)?.as_primitive().clone();
            return Ok(TableText::Dictionary(keys, Box::new(TableText::new(dictionary.values())?)));
        }
        // Any text type can be read as bytes.
        Ok(match array.data_type() {
            DataType::Utf8View | DataType::BinaryView => {
                TableText::View(cast(array, &DataType::BinaryView)?.as_binary_view().clone())
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                TableText::Large(cast(array, &DataType::LargeBinary)?.as_binary::<i64>().clone())
            }
            _ => TableText::Plain(cast(array, &DataType::Binary)?.as_binary::<i32>().clone()),
        })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            TableText::Plain(array) => array.is_valid(row).then(|| array.value(row)),
            TableText::Large(array) => array.is_valid(row).then(|| array.value(row)),
            TableText::View(array) => array.is_valid(row).then(|| array.value(row)),
            TableText::Dictionary(keys, values) if keys.is_valid(row) => values.get(keys.value(row) as usize),
            TableText::Dictionary(..) => None,
        }
    }

    #[inline]
    fn len(&self, row: usize) -> usize {
        self.get(row).map_or(0, <[u8]>::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Int16Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn columns_of_other_types_are_refused() {
        let check = |name: &str, data_type: DataType| {
            let mut carry = FieldSet::default();
            [CarriedField::FetchTime, CarriedField::FetchStatus].into_iter().for_each(|field| carry.insert(field));
            let projection = TableProjection {
                url: "url".to_string(),
                input: None,
                base: None,
                carry,
                max_record_len: 1,
                is_text: false,
            };
            check_types(&Schema::new(vec![Field::new(name, data_type, true)]), &projection).is_ok()
        };
        let millisecond = DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, None);
        for data_type in [DataType::Utf8, DataType::Date32, millisecond.clone(), DataType::Null] {
            assert!(check("fetch_time", data_type));
        }
        for data_type in [DataType::Int64, DataType::Float64, DataType::Boolean] {
            assert!(!check("fetch_time", data_type));
        }
        for data_type in [DataType::Utf8, DataType::UInt16, DataType::Float64, DataType::Null] {
            assert!(check("fetch_status", data_type));
        }
        assert!(!check("fetch_status", DataType::Boolean) && !check("fetch_status", millisecond));
        assert!(!check("url", DataType::Int64));
    }

    /// The values of a dictionary are not copied for each row: here they would take 6.5 GB.
    #[test]
    fn dictionaries_are_not_expanded() {
        const ROWS: usize = 100_000;
        let long = format!("http://a/{}", "x".repeat(65_536));
        let values = StringArray::from(vec![Some("http://b/"), Some(long.as_str()), None]);
        let keys: Int16Array = (0..ROWS).map(|row| (row % 4 > 0).then(|| (row % 4 - 1) as i16)).collect();
        let column: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
        let batch = RecordBatch::try_from_iter([("url", column)]).unwrap();
        let (url, max_record_len) = ("url".to_string(), 1 << 20);
        let projection = TableProjection {
            url,
            input: None,
            base: None,
            carry: FieldSet::default(),
            max_record_len,
            is_text: false,
        };
        let mut rows = BatchRows::new(&batch, &projection).unwrap();
        let records = rows.take(&projection, &mut 0).unwrap().unwrap();
        assert!((5..40).contains(&records.len()) && records.text_len() < 2 * TEXT_LEN, "{}", records.len());
        let expected = [None, Some(&b"http://b/"[..]), Some(long.as_bytes()), None];
        assert!((0..8).all(|row| rows.url.get(row) == expected[row % 4]));
    }

    /// The text of these rows has 120 KB at most, but their URIs have up to 650 MB.
    #[test]
    fn references_to_long_bases_are_in_several_buffers() {
        const ROWS: usize = 10_000;
        let bases = [1 << 10, 1 << 13, 1 << 16].map(|len| format!("http://a/{}", "x".repeat(len - 9)));
        for base in &bases {
            let urls: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| row.to_string())));
            let keys = Int16Array::from(vec![0; ROWS]);
            let column: ArrayRef =
                Arc::new(DictionaryArray::new(keys, Arc::new(StringArray::from(vec![base.as_str()]))));
            let batch = RecordBatch::try_from_iter([("url", urls), ("base", column)]).unwrap();
            let (url, base_column, max_record_len) = ("url".to_string(), Some("base".to_string()), 2 << 20);
            let projection = TableProjection {
                url,
                input: None,
                base: base_column,
                carry: FieldSet::default(),
                max_record_len,
                is_text: false,
            };
            let (mut rows, mut number) = (BatchRows::new(&batch, &projection).unwrap(), 0);
            let mut count = 0;
            while let Some(records) = rows.take(&projection, &mut number) {
                let records = records.unwrap();
                assert!(records.base_len() < BASES_LEN + base.len(), "{}: {}", base.len(), records.base_len());
                let is_full = records.base_len() >= BASES_LEN || records.text_len() >= TEXT_LEN;
                count += records.len();
                assert!(is_full || count == ROWS, "{}: {count}", base.len());
            }
            assert_eq!((count, number), (ROWS, ROWS as u64), "{}", base.len());
        }
    }
}
