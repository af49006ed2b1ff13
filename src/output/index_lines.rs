//! Rows in, lines of a capture index out: CDXJ, and zipnum, which is CDXJ in gzip members with an index of these. A line
//! is `key time {json}`; rows without a key or a time have `-` there. (pywb's documentation, "CDXJ" and "ZipNum".)

use std::io::Write;

use arrow::array::{Array, ArrayRef, AsArray, Int16Array, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::TimestampMillisecondType;
use arrow::temporal_conversions::timestamp_ms_to_datetime;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::cells::write_json_text;
use crate::record::fields::CarriedField;

/// Columns that CDXJ lines are made of.
pub fn index_columns() -> impl Iterator<Item = &'static str> {
    let fields =
        CarriedField::ALL.iter().filter(|field| **field == CarriedField::FetchTime || field.cdxj_position().is_some());
    ["url_surtkey", "uri", "input"].into_iter().chain(fields.map(|field| field.column()))
}

/// Returns the fields that are members of a line, after the URL, in their order: that of Common Crawl's index. All of
/// them are written as strings.
fn member_fields() -> Vec<CarriedField> {
    let mut fields: Vec<_> =
        CarriedField::ALL.iter().copied().filter(|field| field.cdxj_position().is_some()).collect();
    fields.sort_by_key(|field| field.cdxj_position());
    fields
}

/// Lines of a zipnum member.
pub(super) const MEMBER_LINES: usize = 3000;

/// Lines in a gzip member of their own.
#[derive(Debug)]
pub(super) struct GzipMember {
    /// `key time` of the first line.
    pub(super) key: Vec<u8>,
    /// The member.
    pub(super) bytes: Vec<u8>,
}

/// What lines are made of: columns of a batch.
struct IndexColumns<'a> {
    keys: &'a StringArray,
    uris: &'a StringArray,
    batch: &'a RecordBatch,
    members: Vec<(&'static str, MemberValues<'a>)>,
}

/// A column of a member's values.
enum MemberValues<'a> {
    Text(&'a StringArray),
    Short(&'a Int16Array),
    Integer(&'a Int32Array),
}

impl<'a> MemberValues<'a> {
    fn of(array: &'a ArrayRef) -> Option<MemberValues<'a>> {
        let text = || array.as_string_opt().map(MemberValues::Text);
        let short = || array.as_primitive_opt().map(MemberValues::Short);
        text().or_else(short).or_else(|| array.as_primitive_opt().map(MemberValues::Integer))
    }

    /// Appends the member, unless it is null.
    fn write(&self, name: &str, row: usize, out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let _ = match self {
            MemberValues::Text(array) if array.is_valid(row) => {
                let _ = write!(out, ", \"{name}\": ");
                write_json_text(array.value(row), out);
                Ok(())
            }
            MemberValues::Short(array) if array.is_valid(row) => write!(out, ", \"{name}\": \"{}\"", array.value(row)),
            MemberValues::Integer(array) if array.is_valid(row) => {
                write!(out, ", \"{name}\": \"{}\"", array.value(row))
            }
            _ => Ok(()),
        };
    }
}

impl<'a> IndexColumns<'a> {
    /// `None` if the batch lacks a column; the columns of these formats are fixed.
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

    /// The record's URL as it was; bytes that are not UTF-8, which JSON does not hold, percent-encoded.
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

/// CDXJ lines.
pub(super) fn cdxj(batch: &RecordBatch) -> Vec<u8> {
    let mut out = Vec::with_capacity(batch.get_array_memory_size());
    if let Some(fields) = IndexColumns::of(batch) {
        (0..batch.num_rows()).for_each(|row| fields.write_line(row, &mut out));
    }
    out
}

/// The same in members.
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

/// Appends a line of the index: key and time, the file, where the member lies in it, its number.
pub(super) fn write_index(member: &GzipMember, file: &str, offset: u64, number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&member.key);
    let _ = writeln!(out, "\t{file}\t{offset}\t{}\t{number}", member.bytes.len());
}
