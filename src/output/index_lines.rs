//! Writes a capture index: CDXJ, or zipnum, which is CDXJ in gzip members with an index of the members.
//!
//! A line is `key time {json}`; rows without a key or a time have `-` instead. The formats are specified in the
//! documentation of pywb, "CDXJ" and "ZipNum".

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, Int16Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::TimestampMillisecondType;
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::values::write_json_text;
use crate::record::fields::CarriedField;

/// Returns the columns that CDXJ lines need.
pub(crate) fn index_columns() -> impl Iterator<Item = &'static str> {
    let fields =
        CarriedField::ALL.iter().filter(|field| **field == CarriedField::FetchTime || field.cdxj_position().is_some());
    ["url_surtkey", "uri", "input"].into_iter().chain(fields.map(|field| field.column()))
}

/// Returns the fields that are JSON members after the URL, in the order of Common Crawl's index. All are strings.
fn member_fields() -> Vec<CarriedField> {
    let mut fields: Vec<_> =
        CarriedField::ALL.iter().copied().filter(|field| field.cdxj_position().is_some()).collect();
    fields.sort_by_key(|field| field.cdxj_position());
    fields
}

/// Lines per gzip member of zipnum.
pub(super) const MEMBER_LINES: usize = 3000;

/// A gzip member of zipnum.
#[derive(Debug)]
pub(super) struct GzipMember {
    /// `key time` of its first line.
    pub(super) key: Vec<u8>,
    /// The compressed bytes.
    pub(super) bytes: Vec<u8>,
}

/// The columns of a batch that lines need.
struct IndexColumns<'a> {
    keys: &'a StringArray,
    uris: &'a StringArray,
    batch: &'a RecordBatch,
    members: Vec<(&'static str, MemberValues<'a>)>,
}

/// The values of a JSON member.
enum MemberValues<'a> {
    Text(&'a StringArray),
    Short(&'a Int16Array),
    Long(&'a Int64Array),
}

impl<'a> MemberValues<'a> {
    fn of(array: &'a ArrayRef) -> Option<MemberValues<'a>> {
        let text = || array.as_string_opt().map(MemberValues::Text);
        let short = || array.as_primitive_opt().map(MemberValues::Short);
        text().or_else(short).or_else(|| array.as_primitive_opt().map(MemberValues::Long))
    }

    /// Appends the member, unless its value is null.
    fn write(&self, name: &str, row: usize, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match self {
            MemberValues::Text(array) if array.is_valid(row) => {
                let _ = write!(out, ", \"{name}\": ");
                write_json_text(array.value(row), out);
                Ok(())
            }
            MemberValues::Short(array) if array.is_valid(row) => write!(out, ", \"{name}\": \"{}\"", array.value(row)),
            MemberValues::Long(array) if array.is_valid(row) => {
                write!(out, ", \"{name}\": \"{}\"", array.value(row))
            }
            _ => Ok(()),
        };
    }
}

impl<'a> IndexColumns<'a> {
    /// Returns `None` if the batch lacks a column, which does not happen: the columns of these formats are fixed.
    fn of(batch: &'a RecordBatch) -> Option<IndexColumns<'a>> {
        let text = |name| batch.column_by_name(name).and_then(|column: &ArrayRef| column.as_string_opt::<i32>());
        let cell = |name: &str| batch.column_by_name(name).and_then(MemberValues::of);
        Some(IndexColumns {
            keys: text("url_surtkey")?,
            uris: text("uri")?,
            batch,
            members: member_fields()
                .iter()
                .filter_map(|field| Some((field.json_name()?, cell(field.column())?)))
                .collect(),
        })
    }

    fn write_key(&self, row: usize, out: &mut Vec<u8>) {
        let key = if self.keys.is_valid(row) { self.keys.value(row) } else { "-" };
        out.extend_from_slice(key.as_bytes());
        out.push(b' ');
        let times = self.batch.column_by_name("fetch_time");
        let times = times.and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>());
        let time =
            times.filter(|times| times.is_valid(row)).and_then(|times| timestamp_ms_to_datetime(times.value(row)));
        // Writing to memory does not fail.
        let _ = match time {
            Some(time) => write!(out, "{}", time.format("%Y%m%d%H%M%S")),
            None => write!(out, "-"),
        };
    }

    fn write_line(&self, row: usize, out: &mut Vec<u8>) {
        self.write_key(row, out);
        out.extend_from_slice(b" {\"url\": ");
        write_json_text(&self.url(row), out);
        self.members.iter().for_each(|(name, cell)| cell.write(name, row, out));
        out.extend_from_slice(b"}\n");
    }

    /// Returns the record's URL; bytes that are not UTF-8 are percent-encoded, because JSON cannot contain them.
    fn url(&self, row: usize) -> String {
        let inputs = self.batch.column_by_name("input").and_then(|column| column.as_binary_opt::<i32>());
        let Some(input) = inputs.filter(|inputs| inputs.is_valid(row)) else { return self.uris.value(row).to_string() };
        let mut url = String::new();
        for chunk in input.value(row).utf8_chunks() {
            url.push_str(chunk.valid());
            chunk.invalid().iter().for_each(|byte| url.push_str(&format!("%{byte:02X}")));
        }
        url
    }
}

/// Renders a batch as CDXJ lines.
pub(super) fn cdxj(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::with_capacity(batch.get_array_memory_size());
    if let Some(fields) = IndexColumns::of(batch) {
        (0..batch.num_rows()).for_each(|row| fields.write_line(row, &mut out));
    }
    out
}

/// Renders a batch as gzip members of CDXJ lines.
pub(super) fn zipnum(batch: &RecordBatch) -> std::io::Result<Vec<GzipMember>> {
    let Some(fields) = IndexColumns::of(batch) else { return Ok(Vec::new()) };
    let (mut members, mut lines) = (Vec::new(), Vec::new());
    for from in (0..batch.num_rows()).step_by(MEMBER_LINES) {
        lines.clear();
        let rows = from..(from + MEMBER_LINES).min(batch.num_rows());
        rows.for_each(|row| fields.write_line(row, &mut lines));
        let mut key = Vec::new();
        fields.write_key(from, &mut key);
        let mut gzip = GzEncoder::new(Vec::with_capacity(lines.len() / 4), Compression::default());
        gzip.write_all(&lines)?;
        members.push(GzipMember { key, bytes: gzip.finish()? });
    }
    Ok(members)
}

impl GzipMember {
    /// Appends the line of the member index: key and time, file name, offset, length and number of the member.
    pub(super) fn write_index(&self, file: &str, (offset, number): (u64, u64), out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        let _ = writeln!(out, "\t{file}\t{offset}\t{}\t{number}", self.bytes.len());
    }
}
