//! Writes a capture index: CDXJ, or zipnum, which is CDXJ in gzip members with an index of the members.
//!
//! ```text
//! batch --index_rows--> key, rest of the line --sort--> cdxj: lines
//!                                                       zipnum: gzip members of lines
//! ```
//!
//! A line is `key time {json}`; rows without a key or a time have `-` instead. The formats are specified in the
//! documentation of pywb, "CDXJ" and "ZipNum". Keys are those of pywb: the response to a POST has the key of its URL with
//! method and body appended.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Int16Array, Int64Array, LargeStringArray, LargeStringBuilder, RecordBatch,
    StringArray, StringBuilder, TimestampMillisecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;

use super::packing::gzip;
use super::values::{write_json_text, write_time_as};
use crate::iri::escape_invalid_utf8;
use crate::key::{Draft, Recipe};
use crate::record::fields::CarriedField;
use crate::record::json::append_members;

/// The recipe of keys, which is what pywb computes when it looks for a URL.
const KEY_RECIPE: &str = "surt-ia";

/// The column of the keys.
pub(crate) const INDEX_KEY: &str = "url_surtkey_ia";

/// The column of what follows the keys, with the line end.
pub(crate) const INDEX_REST: &str = "line";

/// Returns the columns that CDXJ lines need.
pub(crate) fn index_columns() -> impl Iterator<Item = &'static str> {
    let needed = [CarriedField::FetchTime, CarriedField::PayloadDigest, CarriedField::CdxjMembers];
    let is_needed = move |field: &&CarriedField| needed.contains(field) || field.cdxj_position().is_some();
    let fields = CarriedField::ALL.iter().filter(is_needed);
    [INDEX_KEY, "uri", "input"].into_iter().chain(fields.map(|field| field.column()))
}

pub(crate) fn index_schema() -> SchemaRef {
    let field = |name, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![field(INDEX_KEY, DataType::Utf8), field(INDEX_REST, DataType::LargeUtf8)]))
}

/// Returns the fields that are JSON members after the URL, in the order of Common Crawl's index. All are strings.
fn member_fields() -> Vec<CarriedField> {
    let mut fields: Vec<_> =
        CarriedField::ALL.iter().copied().filter(|field| field.cdxj_position().is_some()).collect();
    fields.sort_by_key(|field| field.cdxj_position());
    fields
}

/// Lines per gzip member of zipnum.
const MEMBER_LINES: usize = 3000;

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
    inputs: Option<&'a BinaryArray>,
    times: Option<&'a TimestampMillisecondArray>,
    /// The digest of the payload, which may have been computed.
    payload_digests: Option<&'a StringArray>,
    methods: Option<&'a StringArray>,
    bodies: Option<&'a StringArray>,
    /// JSON objects of the members that have no column of their own.
    others: Option<&'a StringArray>,
    members: Vec<(CarriedField, &'static str, MemberValues<'a>)>,
    recipe: Recipe,
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
        match self {
            MemberValues::Text(array) if array.is_valid(row) => write_text_member(name, array.value(row), out),
            MemberValues::Short(array) if array.is_valid(row) => {
                write_number_member(name, array.value(row).into(), out)
            }
            MemberValues::Long(array) if array.is_valid(row) => write_number_member(name, array.value(row), out),
            _ => {}
        }
    }
}

fn write_number_member(name: &str, number: i64, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, ", \"{name}\": \"{number}\"");
}

fn write_text_member(name: &str, text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(out, ", \"{name}\": ");
    write_json_text(text, out);
}

impl<'a> IndexColumns<'a> {
    /// Fails if the batch lacks a column, which does not happen: the columns of these formats are fixed.
    fn of(batch: &'a RecordBatch) -> Result<IndexColumns<'a>, ArrowError> {
        let text = |name| batch.column_by_name(name).and_then(|column: &ArrayRef| column.as_string_opt::<i32>());
        let needed =
            |name| text(name).ok_or_else(|| ArrowError::SchemaError(format!("rows of an index have no column {name}")));
        let cell = |name: &str| batch.column_by_name(name).and_then(MemberValues::of);
        Ok(IndexColumns {
            keys: needed(INDEX_KEY)?,
            uris: needed("uri")?,
            inputs: batch.column_by_name("input").and_then(|column| column.as_binary_opt()),
            times: batch.column_by_name(CarriedField::FetchTime.column()).and_then(|column| column.as_primitive_opt()),
            payload_digests: text(CarriedField::PayloadDigest.column()),
            methods: text(CarriedField::RequestMethod.column()),
            bodies: text(CarriedField::RequestBody.column()),
            others: text(CarriedField::CdxjMembers.column()),
            members: member_fields()
                .iter()
                .filter_map(|field| Some((*field, field.json_name()?, cell(field.column())?)))
                .collect(),
            recipe: Recipe::parse(KEY_RECIPE).expect("the recipe of pywb is known"),
        })
    }

    /// Returns the key as the first word of a line.
    fn key(&self, row: usize) -> Cow<'a, str> {
        let key = text_at(Some(self.keys), row).unwrap_or_default();
        match text_at(self.methods, row).and_then(|method| self.key_of_request(row, method)) {
            Some(key) => Cow::Owned(word(&key).into_owned()),
            None => word(key),
        }
    }

    /// Returns the key of a URL with a method and a body, or `None` if the method needs none.
    fn key_of_request(&self, row: usize, method: &str) -> Option<String> {
        if matches!(method, "GET" | "HEAD") {
            return None;
        }
        let mut url = self.url(row);
        let mark = if url.contains('?') { '&' } else { '?' };
        url.push_str(&format!("{mark}__wb_method={method}"));
        if let Some(body) = text_at(self.bodies, row) {
            url.push('&');
            url.push_str(body);
        }
        let mut key = Vec::new();
        self.recipe.write_key(url.as_bytes(), &mut Draft::default(), &mut key).ok()?;
        String::from_utf8(key).ok()
    }

    fn write_time(&self, row: usize, out: &mut Vec<u8>) {
        let times = self.times.filter(|times| times.is_valid(row));
        if !times.is_some_and(|times| write_time_as("%Y%m%d%H%M%S", times.value(row), out)) {
            out.push(b'-');
        }
    }

    /// Writes what follows the key.
    fn write_rest(&self, row: usize, out: &mut Vec<u8>) {
        self.write_time(row, out);
        out.extend_from_slice(b" {\"url\": ");
        write_json_text(&self.url(row), out);
        let others = text_at(self.others, row);
        let mut written = Vec::new();
        for (field, name, values) in &self.members {
            let len = out.len();
            let text = match field {
                CarriedField::ContentDigest => text_at(self.payload_digests, row),
                // cdxj-indexer writes an empty body too.
                CarriedField::RequestBody if text_at(self.bodies, row).is_none() => {
                    text_at(self.methods, row).map(|_| "")
                }
                _ => None,
            };
            match text {
                Some(text) => write_text_member(name, text, out),
                None => values.write(name, row, out),
            }
            if others.is_some() && out.len() > len {
                written.push(*name);
            }
        }
        if let Some(others) = others {
            // Of two members with one name, many readers take the last.
            written.push("url");
            append_members(others, &written, out);
        }
        out.extend_from_slice(b"}\n");
    }

    /// Returns the record's URL. Bytes that are not UTF-8 are percent-encoded, because JSON cannot contain them, and so are
    /// spaces, as cdxj-indexer does.
    fn url(&self, row: usize) -> String {
        let input = self.inputs.filter(|inputs| inputs.is_valid(row));
        let Some(input) = input else { return self.uris.value(row).to_string() };
        escape_invalid_utf8(input.value(row)).replace(' ', "%20")
    }
}

fn text_at(texts: Option<&StringArray>, row: usize) -> Option<&str> {
    texts.filter(|texts| texts.is_valid(row)).map(|texts| texts.value(row))
}

/// Makes a key the first word of a line: a missing key becomes `-`, and spaces and control characters are
/// percent-encoded.
fn word(key: &str) -> Cow<'_, str> {
    let is_separator = |byte: u8| byte <= b' ' || byte == 0x7f;
    if key.is_empty() {
        return Cow::Borrowed("-");
    }
    if !key.bytes().any(is_separator) {
        return Cow::Borrowed(key);
    }
    let mut word = String::with_capacity(key.len() + 2);
    for c in key.chars() {
        match u8::try_from(c).ok().filter(|byte| is_separator(*byte)) {
            Some(byte) => word.push_str(&format!("%{byte:02X}")),
            None => word.push(c),
        }
    }
    Cow::Owned(word)
}

/// Renders a batch as rows of an index: the key, and the rest of the line. Rows that are sorted by both columns are in the
/// order of `LC_ALL=C sort` of the lines.
pub(crate) fn index_rows(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let fields = IndexColumns::of(batch)?;
    let rows = batch.num_rows();
    let mut keys = StringBuilder::with_capacity(rows, fields.keys.value_data().len());
    let mut rests = LargeStringBuilder::with_capacity(rows, batch.get_array_memory_size());
    let mut rest = Vec::new();
    for row in 0..rows {
        keys.append_value(fields.key(row));
        rest.clear();
        fields.write_rest(row, &mut rest);
        rests.append_value(std::str::from_utf8(&rest).expect("all parts of a line are UTF-8"));
    }
    RecordBatch::try_new(index_schema(), vec![Arc::new(keys.finish()), Arc::new(rests.finish())])
}

/// The rows of [`index_rows`].
struct IndexRows<'a>(&'a StringArray, &'a LargeStringArray);

impl<'a> IndexRows<'a> {
    fn of(batch: &'a RecordBatch) -> Option<IndexRows<'a>> {
        let column = |name| batch.column_by_name(name);
        Some(IndexRows(column(INDEX_KEY)?.as_string_opt()?, column(INDEX_REST)?.as_string_opt()?))
    }

    fn write_line(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.value(row).as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.1.value(row).as_bytes());
    }
}

/// Renders rows of an index, or a batch, as CDXJ lines.
pub(super) fn cdxj(batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
    let Some(rows) = IndexRows::of(batch) else { return cdxj(&index_rows(batch)?) };
    let mut out = Vec::with_capacity(rows.0.value_data().len() + rows.1.value_data().len() + batch.num_rows());
    (0..batch.num_rows()).for_each(|row| rows.write_line(row, &mut out));
    Ok(out)
}

/// Renders rows of an index, or a batch, as gzip members of CDXJ lines.
pub(super) fn zipnum(batch: &RecordBatch) -> Result<Vec<GzipMember>, ArrowError> {
    let Some(rows) = IndexRows::of(batch) else { return zipnum(&index_rows(batch)?) };
    let (mut members, mut lines) = (Vec::new(), Vec::new());
    for from in (0..batch.num_rows()).step_by(MEMBER_LINES) {
        lines.clear();
        (from..(from + MEMBER_LINES).min(batch.num_rows())).for_each(|row| rows.write_line(row, &mut lines));
        let key = lines.splitn(3, |&byte| byte == b' ').take(2).collect::<Vec<_>>().join(&b' ');
        members.push(GzipMember { key, bytes: gzip(&lines)? });
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::BinaryArray;

    #[test]
    fn keys_are_single_words() {
        assert_eq!(word("org,example)/a"), "org,example)/a");
        assert_eq!(word("org,example)/a b\n\u{7f}\u{e9}\0"), "org,example)/a%20b%0A%7F\u{e9}%00");
        assert_eq!(word(" "), "%20");
        assert_eq!(word(""), "-");
    }

    /// Only keys of requests with another method differ from those of their URL, as in pywb.
    #[test]
    fn keys_of_reads_have_no_method() {
        let column = |texts: [Option<&str>; 4]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
        let (keys, uris) = (column([Some("h)/a"); 4]), column([Some("http://h/a"); 4]));
        let methods = column([Some("GET"), Some("HEAD"), None, Some("POST")]);
        let bodies = column([None, None, None, Some("b=1")]);
        let names = [CarriedField::RequestMethod.column(), CarriedField::RequestBody.column()];
        let columns = [(INDEX_KEY, keys), ("uri", uris), (names[0], methods), (names[1], bodies)];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        let fields = IndexColumns::of(&batch).unwrap();
        let found: Vec<_> = (0..4).map(|row| fields.key(row).into_owned()).collect();
        assert_eq!(found[..3], ["h)/a"; 3]);
        assert_eq!(found[3], "h)/a?__wb_method=post&b=1");
    }

    /// Many readers take the last of several members with one name.
    #[test]
    fn other_members_do_not_repeat_names() {
        let others =
            [r#"{"url": "no", "o\u0066fset": "no", "a": {}, "length": "-"}"#, r#"{"\u0075rl": "no"}"#, "no object"];
        let texts = |text: &str| Arc::new(StringArray::from(vec![text; 3])) as ArrayRef;
        let columns = [
            (INDEX_KEY, texts("h)/")),
            ("uri", texts("http://h/")),
            ("warc_record_offset", Arc::new(Int64Array::from(vec![5; 3])) as ArrayRef),
            ("cdxj_members", Arc::new(StringArray::from(others.to_vec())) as ArrayRef),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let lines = String::from_utf8(cdxj(&batch).unwrap()).unwrap();
        let line = |others| format!("h)/ - {{\"url\": \"http://h/\", \"offset\": \"5\"{others}}}");
        let expected = [line(r#", "a": {}, "length": "-""#), line(""), line("")];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }

    /// What a record lacks has no member, and JSON has neither spaces nor bytes that are not UTF-8 in its URL.
    #[test]
    fn lines_have_the_url_of_the_record_and_what_it_carries() {
        let texts = |text: &str| Arc::new(StringArray::from(vec![text; 2])) as ArrayRef;
        let inputs = BinaryArray::from_opt_vec(vec![Some(b"http://h/\xff b"), None]);
        let offsets = Int64Array::from(vec![Some(5), None]);
        let others = StringArray::from(vec!["{ \"a\": 1,\n\"b\": {} }", "{}"]);
        let columns = [
            (INDEX_KEY, texts("h)/")),
            ("uri", texts("http://h/")),
            ("input", Arc::new(inputs) as ArrayRef),
            ("warc_record_offset", Arc::new(offsets) as ArrayRef),
            ("cdxj_members", Arc::new(others) as ArrayRef),
        ];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
        let lines = String::from_utf8(cdxj(&batch).unwrap()).unwrap();
        let expected =
            [r#"h)/ - {"url": "http://h/%FF%20b", "offset": "5", "a": 1, "b": {}}"#, r#"h)/ - {"url": "http://h/"}"#];
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    }
}
