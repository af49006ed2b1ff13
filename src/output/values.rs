//! Formats the values of one column of a batch: as bytes for delimited text, as JSON for JSON lines.

use std::fmt::Display;
use std::io::Write;
use std::ops::RangeInclusive;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, DictionaryArray, FixedSizeBinaryArray, Int16Array, Int32Array, Int64Array,
    StringArray, TimestampMillisecondArray, UInt32Array, UInt64Array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType, UInt32Type, UInt64Type,
};
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use data_encoding::HEXLOWER;

use crate::batch::ColumnKind;
use crate::iri::{Flags, SpoofingFlags};

pub(super) struct ColumnValues<'a> {
    nulls: Option<&'a NullBuffer>,
    array: TypedArray<'a>,
}

/// The array of a column, by the kind of the column.
enum TypedArray<'a> {
    Name(&'a DictionaryArray<Int32Type>),
    Word(&'a DictionaryArray<Int8Type>),
    Text(&'a StringArray),
    Bytes(&'a BinaryArray),
    Key(&'a FixedSizeBinaryArray),
    Count(&'a UInt64Array),
    SmallCount(&'a UInt32Array),
    Bits(&'a UInt32Array),
    SpoofingBits(&'a UInt32Array),
    Time(&'a TimestampMillisecondArray),
    Short(&'a Int16Array),
    Integer(&'a Int32Array),
    Long(&'a Int64Array),
}

impl<'a> ColumnValues<'a> {
    /// # Panics
    /// If the array does not have the type of `kind`; the batch builder guarantees it.
    pub(super) fn of(kind: ColumnKind, array: &'a ArrayRef) -> ColumnValues<'a> {
        let nulls = array.nulls();
        let array = match kind {
            ColumnKind::Name => TypedArray::Name(array.as_dictionary()),
            ColumnKind::Word => TypedArray::Word(array.as_dictionary()),
            ColumnKind::Text | ColumnKind::Repeating => TypedArray::Text(array.as_string()),
            ColumnKind::Bytes => TypedArray::Bytes(array.as_binary()),
            ColumnKind::Key => TypedArray::Key(array.as_fixed_size_binary()),
            ColumnKind::Count => TypedArray::Count(array.as_primitive::<UInt64Type>()),
            ColumnKind::SmallCount => TypedArray::SmallCount(array.as_primitive::<UInt32Type>()),
            ColumnKind::Bits => TypedArray::Bits(array.as_primitive::<UInt32Type>()),
            ColumnKind::SpoofingBits => TypedArray::SpoofingBits(array.as_primitive::<UInt32Type>()),
            ColumnKind::Time => TypedArray::Time(array.as_primitive::<TimestampMillisecondType>()),
            ColumnKind::Short => TypedArray::Short(array.as_primitive::<Int16Type>()),
            ColumnKind::Integer => TypedArray::Integer(array.as_primitive::<Int32Type>()),
            ColumnKind::Long => TypedArray::Long(array.as_primitive::<Int64Type>()),
        };
        ColumnValues { nulls, array }
    }

    fn is_null(&self, row: usize) -> bool {
        self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    /// Returns the bytes of a value; no bytes for null. Uses `scratch` for values that have to be formatted.
    pub(super) fn raw<'b>(&'b self, row: usize, scratch: &'b mut Vec<u8>) -> &'b [u8] {
        scratch.clear();
        if self.is_null(row) {
            return scratch;
        }
        match &self.array {
            TypedArray::Name(array) => return name(array, row).as_bytes(),
            TypedArray::Word(array) => return name(array, row).as_bytes(),
            TypedArray::Text(array) => return array.value(row).as_bytes(),
            TypedArray::Bytes(array) => return array.value(row),
            _ => self.write_formatted(row, scratch),
        }
        scratch
    }

    /// Appends a value that is neither null nor text.
    fn write_formatted(&self, row: usize, out: &mut Vec<u8>) {
        match &self.array {
            TypedArray::Name(_) | TypedArray::Word(_) | TypedArray::Text(_) | TypedArray::Bytes(_) => {}
            TypedArray::Key(array) => write_hex(array.value(row), out),
            TypedArray::Count(array) => write_number(array.value(row), out),
            TypedArray::SmallCount(array) | TypedArray::Bits(array) | TypedArray::SpoofingBits(array) => {
                write_number(array.value(row), out);
            }
            TypedArray::Time(array) => write_time(array.value(row), out),
            TypedArray::Short(array) => write_number(array.value(row), out),
            TypedArray::Integer(array) => write_number(array.value(row), out),
            TypedArray::Long(array) => write_number(array.value(row), out),
        }
    }

    /// Appends a value as JSON: keys in hexadecimal, flags as a list of names, bytes that are not UTF-8 as
    /// `{"hex": "..."}`.
    pub(super) fn write_json(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            return out.extend_from_slice(b"null");
        }
        match &self.array {
            TypedArray::Name(array) => write_json_text(name(array, row), out),
            TypedArray::Word(array) => write_json_text(name(array, row), out),
            TypedArray::Text(array) => write_json_text(array.value(row), out),
            TypedArray::Bytes(array) => write_json_bytes(array.value(row), out),
            TypedArray::Time(array) => write_json_time(array.value(row), out),
            TypedArray::Key(_) => {
                out.push(b'"');
                self.write_formatted(row, out);
                out.push(b'"');
            }
            TypedArray::Bits(array) => write_json_names(Flags(array.value(row)).names(), out),
            TypedArray::SpoofingBits(array) => write_json_names(SpoofingFlags(array.value(row)).names(), out),
            _ => self.write_formatted(row, out),
        }
    }
}

fn name<K: ArrowDictionaryKeyType>(array: &DictionaryArray<K>, row: usize) -> &str {
    array.key(row).map_or("", |key| array.values().as_string::<i32>().value(key))
}

pub(super) fn write_number(number: impl Display, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, "{number}");
}

/// Milliseconds of the years 0 to 9999, the only ones that texts have.
const TEXT_TIMES: RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// Writes a time in a format of the crate `chrono`; nothing if its year does not have four digits, as RFC 3339 and CDX require.
/// Returns whether it was written.
pub(super) fn write_time_as(format: &str, ms: i64, out: &mut Vec<u8>) -> bool {
    let time = timestamp_ms_to_datetime(ms).filter(|_| TEXT_TIMES.contains(&ms));
    // Writing to memory does not fail.
    time.is_some_and(|time| write!(out, "{}", time.format(format)).is_ok())
}

/// The format of RFC 3339, with a fraction only if it is not zero.
const RFC_3339: &str = "%Y-%m-%dT%H:%M:%S%.fZ";

/// Appends a time in the format of RFC 3339.
pub(super) fn write_time(ms: i64, out: &mut Vec<u8>) {
    write_time_as(RFC_3339, ms, out);
}

/// [`write_time`] as JSON; null for a time without a text.
pub(super) fn write_json_time(ms: i64, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'"');
    if write_time_as(RFC_3339, ms, out) {
        return out.push(b'"');
    }
    out.truncate(start);
    out.extend_from_slice(b"null");
}

pub(super) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + HEXLOWER.encode_len(bytes.len()), 0);
    HEXLOWER.encode_mut(bytes, &mut out[at..]);
}

pub(super) fn write_json_text(text: &str, out: &mut Vec<u8>) {
    // Serializing a string to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

pub(super) fn write_json_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => write_json_text(text, out),
        Err(_) => {
            out.extend_from_slice(b"{\"hex\":\"");
            write_hex(bytes, out);
            out.extend_from_slice(b"\"}");
        }
    }
}

fn write_json_names<'a>(names: impl Iterator<Item = &'a str>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, name) in names.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_json_text(name, out);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3339 has years of four digits.
    #[test]
    fn times_of_other_years_have_no_text() {
        let written = |ms: i64| {
            let (mut text, mut json) = (Vec::new(), Vec::new());
            write_time(ms, &mut text);
            write_json_time(ms, &mut json);
            [text, json].map(|bytes| String::from_utf8(bytes).unwrap())
        };
        for (ms, text) in [
            (*TEXT_TIMES.start(), "0000-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (*TEXT_TIMES.end(), "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(written(ms), [text.to_string(), format!("\"{text}\"")]);
        }
        for ms in [i64::MIN, TEXT_TIMES.start() - 1, TEXT_TIMES.end() + 1, i64::MAX] {
            assert_eq!(written(ms), ["", "null"], "{ms}");
        }
    }
}
