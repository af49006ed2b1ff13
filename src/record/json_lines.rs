//! JSON lines: one object per line, with the URL in the member that a JSON Pointer (RFC 6901) names. URLs are unescaped
//! into a text of the decoder; members with the names that indexes use become fields.
//!
//! Without a pointer, the URL is the first member of a known name. A line that is not an object, is truncated, or goes on
//! after the object, is a record with a fault, and so is an object without a text in the place of the URL; the line is its
//! URL then. In a row that this program wrote, whose `uri` is null, the text is that of the member `input`; such a record has
//! a fault as well. Blank lines and the header of the pages of a WACZ package are not records.

use super::buffer::{RecordBuffer, append, append_with, filled_lines};
use super::capture_fields::{CaptureFields, field_of_row};
use super::csv::{ColumnChoice, CsvOptions, URL_COLUMN_NAMES};
use super::decoder::{FormatOptions, MAX_SOURCE_HEAD_LEN, SourceHead, TextDecoder};
use super::fields::{CarriedField, FieldSet};
use super::json::{JsonMembers, JsonText, JsonValue, at_path, quoted, unescaped};
use super::json_bitmaps::JsonBitmaps;
use super::member_cache::{JsonKind, JsonMember, MemberCache, MemberReader};
use super::records::Records;
use crate::iri::FaultKind;
use crate::kernel::{Bitmaps, Span};

/// Where a value is in an object: keys and indexes of arrays, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPointer(Vec<Vec<u8>>);

impl JsonPointer {
    /// The pointer `text` if it begins with `/`, otherwise the pointer to the member of that name.
    ///
    /// ```
    /// use irikey::record::json_lines::JsonPointer;
    /// assert_eq!(JsonPointer::parse("a"), JsonPointer::parse("/a"));
    /// assert_ne!(JsonPointer::parse("a/b"), JsonPointer::parse("/a/b"));
    /// ```
    pub fn parse(text: &str) -> JsonPointer {
        let Some(path) = text.strip_prefix('/') else { return JsonPointer(vec![text.as_bytes().to_vec()]) };
        JsonPointer(path.split('/').map(|key| key.replace("~1", "/").replace("~0", "~").into_bytes()).collect())
    }
}

/// Where the URL and its base are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// The URL; `None` for the first member of a known name.
    pub url: Option<JsonPointer>,
    /// The base, if there is one.
    pub base: Option<JsonPointer>,
}

impl JsonOptions {
    /// The options for the columns that the user chose for tables. A number is the name of a member or an index.
    pub(super) fn of_columns(columns: &CsvOptions) -> JsonOptions {
        let pointer = |column: &ColumnChoice| match column {
            ColumnChoice::Name(name) => JsonPointer::parse(name),
            ColumnChoice::Number(number) => JsonPointer::parse(&number.to_string()),
        };
        JsonOptions { url: columns.url.as_ref().map(pointer), base: columns.base.as_ref().map(pointer) }
    }

    /// The value in the place of the URL, and whether that is the member `uri`.
    fn place<'a>(&self, line: &'a [u8]) -> Option<(JsonValue<'a>, bool)> {
        match &self.url {
            Some(pointer) => Some((at_path(line, &pointer.0)?, pointer.0 == [b"uri"])),
            None => URL_COLUMN_NAMES.iter().find_map(|name| Some((at_path(line, &[name])?, *name == "uri"))),
        }
    }

    /// The text in the place of the URL.
    fn url<'a>(&self, line: &'a [u8]) -> Option<JsonText<'a>> {
        JsonText::of(self.place(line)?.0)
    }

    /// The text of a row without a URI, as this program writes it: it is in `input`, and `uri` is null.
    fn input<'a>(&self, line: &'a [u8]) -> Option<JsonText<'a>> {
        let (JsonValue::Bare(b"null"), true) = self.place(line)? else { return None };
        JsonText::of(at_path(line, &["input"])?)
    }

    /// Whether `line` is a row as this program writes it, with its text in `input` if it has no URI.
    pub(super) fn has_input(&self, line: &[u8]) -> bool {
        self.place(line).is_some_and(|(_, is_uri)| is_uri) && at_path(line, &["input"]).is_some()
    }
}

/// The names of the members of the first record in `head`, for messages: at most 40, each at most 40 bytes long.
pub(crate) fn names_of_first_members(head: &[u8]) -> String {
    let short = |(key, _): (&[u8], JsonValue<'_>)| {
        let key = unescaped(key);
        String::from_utf8_lossy(&key[..key.len().min(40)]).into_owned()
    };
    let mut members = JsonMembers::new(SourceHead::new(head).first_record);
    let mut names: Vec<String> = members.by_ref().take(40).map(short).collect();
    if members.next().is_some() {
        names.push("...".to_string());
    }
    names.join(", ")
}

/// What a key means.
#[derive(Clone, Copy, Debug, Default)]
struct KeyMeaning {
    field: Option<CarriedField>,
    /// 0 if the URL is not in this member. Otherwise it is, unless a member of a lower number is there.
    url_rank: u8,
    /// The base is in this member.
    is_base: bool,
}

impl KeyMeaning {
    /// The meaning of `key`, which is still escaped.
    fn of(key: &[u8], options: &JsonOptions, carry: FieldSet) -> KeyMeaning {
        let key = &*unescaped(key);
        let begins = |pointer: &JsonPointer| pointer.0[0] == key;
        let url_rank = match &options.url {
            Some(pointer) => u8::from(begins(pointer)),
            None => {
                let known = URL_COLUMN_NAMES.iter().position(|name| name.as_bytes() == key);
                known.map_or(0, |position| position as u8 + 1)
            }
        };
        let is_base = options.base.as_ref().is_some_and(begins);
        KeyMeaning { field: field_of_row(key, carry), url_rank, is_base }
    }
}

/// Decoder of JSON lines.
///
/// ```
/// use irikey::kernel::Bitmaps;
/// use irikey::record::{TextDecoder, json_lines::{JsonLines, JsonOptions, JsonPointer}};
/// let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
/// lines.set_settings(&JsonOptions { url: Some(JsonPointer::parse("/page/url")), base: None });
/// let records = lines.decode(br#"{"page": {"url": "http:\/\/a.org\/"}}"#, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(records.text), b"http://a.org/");
/// ```
#[derive(Debug, Default)]
pub struct JsonLines {
    options: JsonOptions,
    json_bitmaps: JsonBitmaps,
    cache: MemberCache<KeyMeaning>,
    /// The fields of the current record.
    fields: CaptureFields,
    rows: RecordBuffer,
}

impl TextDecoder for JsonLines {
    type Settings = JsonOptions;

    fn chosen_settings(options: &FormatOptions) -> JsonOptions {
        JsonOptions::of_columns(&options.csv)
    }

    fn detect(head: &SourceHead<'_>) -> Option<JsonOptions> {
        JsonLines::detect_with(head, JsonOptions::default())
    }

    fn set_settings(&mut self, options: &JsonOptions) {
        self.options.clone_from(options);
        self.cache = MemberCache::default();
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.columns.set_carry(carry);
        self.cache = MemberCache::default();
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.rows.clear();
        self.json_bitmaps.classify(chunk);
        for (at, line) in filled_lines(chunk) {
            if line.starts_with(b"{") && is_pages_header(line) && self.options.url(line).is_none() {
                self.rows.columns.count_header();
                continue;
            }
            self.rows.begin(offset + at as u64);
            self.decode_line(chunk, at, line);
        }
        Records { is_text: true, ..self.rows.classified_records(bitmaps) }
    }
}

impl JsonLines {
    /// Returns `options` if the first record is an object with a URL in that place, a row of this program without one, or the
    /// header of a list of pages.
    pub(super) fn detect_with(head: &SourceHead<'_>, options: JsonOptions) -> Option<JsonOptions> {
        let text = || options.url(head.first_record).or_else(|| options.input(head.first_record));
        let is_lines = is_pages_header(head.first_record) || text().is_some();
        (JsonMembers::are_whole(head.first_record) && is_lines).then_some(options)
    }

    /// Whether the first record is longer than what is known of it, and begins as an object with a member. Its URL may follow.
    pub(super) fn is_long_object(head: &SourceHead<'_>, head_len: usize) -> bool {
        let key = || quoted(head.first_record.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start());
        let is_object = || key().is_some_and(|(_, rest)| rest.trim_ascii_start().starts_with(b":"));
        head_len >= MAX_SOURCE_HEAD_LEN && head.is_cut && is_object()
    }

    fn decode_line(&mut self, chunk: &[u8], at: usize, line: &[u8]) {
        let carry = self.rows.columns.carry();
        let mut reader = MemberReader::new(chunk, &self.json_bitmaps, &mut self.cache, at);
        self.fields.clear();
        let (mut url, mut base) = (None::<JsonMember<KeyMeaning>>, None);
        while let Some(member) = reader.next(|key| KeyMeaning::of(key, &self.options, carry)) {
            let KeyMeaning { field, url_rank, is_base } = member.meaning;
            if url_rank > 0 && url.is_none_or(|url| url_rank < url.meaning.url_rank) {
                url = Some(member);
            }
            if is_base {
                base = base.or(Some(member));
            }
            if let Some(field) = field {
                self.fields.set(field, &member, chunk);
            }
        }
        let is_broken = reader.is_broken() || !chunk[reader.end()..at + line.len()].trim_ascii().is_empty();
        let text = url.and_then(|url| text_at(url, chunk, self.options.url.as_ref())).filter(|_| !is_broken);
        let Some(url) = text else {
            let is_null = !is_broken && url.is_some_and(|url| url.span.of(chunk) == b"null");
            self.rows.refuse(if is_broken { FaultKind::NotOfFormat } else { FaultKind::NoUrl });
            let span = match is_null.then(|| self.options.input(line)).flatten() {
                Some(input) => self.copy(input),
                None => append(&mut self.rows.text, line),
            };
            self.push_base(None);
            // The members of a sound object count, also without a URL.
            if is_broken {
                self.fields.clear();
            }
            return self.push(chunk, span);
        };
        let url = self.copy(url);
        let base = base.and_then(|base| text_at(base, chunk, self.options.base.as_ref()));
        self.push_base(base);
        self.push(chunk, url);
    }

    /// Ends the record with its URL and the fields of its members.
    fn push(&mut self, chunk: &[u8], url: Span) {
        self.rows.columns.urls.push(url);
        self.fields.push(chunk, &mut self.rows.columns.fields, &mut self.rows.text);
    }

    fn push_base(&mut self, base: Option<JsonText<'_>>) {
        if self.options.base.is_some() {
            let span = self.copy(base.unwrap_or(JsonText::Escaped(b"")));
            self.rows.columns.push_base(span);
        }
    }

    fn copy(&mut self, text: JsonText<'_>) -> Span {
        append_with(&mut self.rows.text, |out| text.write(out))
    }
}

/// Whether a line without a URL is the header of the pages of a WACZ package (WACZ 1.1.1, section 5.2.2): an object that begins with
/// the name of their format.
fn is_pages_header(line: &[u8]) -> bool {
    let is_near = memchr::memmem::find(&line[..line.len().min(64)], b"json-pages-").is_some();
    let format = || at_path(line, &["format"])?.text();
    is_near && format().is_some_and(|format| format.starts_with(b"json-pages-"))
}

/// The text that is the value of `member`, or to which the rest of `pointer` leads in it.
fn text_at<'a>(member: JsonMember<KeyMeaning>, chunk: &'a [u8], pointer: Option<&JsonPointer>) -> Option<JsonText<'a>> {
    let text = member.span.of(chunk);
    match (member.kind, pointer.map_or(&[][..], |pointer| &pointer.0[1..])) {
        (JsonKind::Text, []) => Some(JsonText::Escaped(text)),
        (JsonKind::Nested, []) => JsonText::of(JsonValue::Nested(text)),
        (JsonKind::Nested, path @ [_, ..]) => JsonText::of(at_path(text, path)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, Option<String>, Option<i32>, Option<FaultKind>);

    fn rows(options: &JsonOptions, text: &str) -> Vec<Row> {
        let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
        lines.set_settings(options);
        let records = lines.decode(text.as_bytes(), 0, &mut bitmaps);
        let base = |i: usize| records.bases.get(i).map(|base| records.show(*base));
        let row = |(i, url)| (url, base(i), records.fields.statuses[i], records.fault(i));
        records.shown_urls().into_iter().enumerate().map(row).collect()
    }

    #[test]
    fn known_names_and_fields_of_indexes() {
        let text =
            "{\"status\":\"301\",\"url\":\"http:\\/\\/a\\/\",\"uri\":\"no\"}\r\n\n{\"href\":\"b\",\"status\":-2}\n";
        let want = [("http://a/".into(), None, Some(301), None), ("b".into(), None, Some(-2), None)];
        assert_eq!(rows(&JsonOptions::default(), text), want);
    }

    #[test]
    fn pages_of_a_package_have_a_header_and_times() {
        let text = b"{\"format\": \"json-pages-1.0\", \"id\": \"p\"}\n{\"url\": \"http://a/\", \"ts\": \"2020-10-07T21:22:36Z\"}\n{\"format\": \"x\"}\n{\"format\": \"json-pages-1.0\", \"url\": \"http://b/\"}\n";
        assert!(JsonLines::detect(&SourceHead::new(text)).is_some());
        let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
        let records = lines.decode(text, 0, &mut bitmaps);
        assert_eq!((records.urls.len(), records.headers, records.faults.len()), (3, &[0][..], 1));
        assert_eq!(records.fields.times[0], Some(1_602_105_756_000));
        for ts in ["2020-10-07T21:22:36+00:00", "2020-10-07T23:22:36.000+02:00", "20201007212236"] {
            let line = format!("{{\"url\": \"http://a/\", \"ts\": \"{ts}\"}}\n");
            let records = lines.decode(line.as_bytes(), 0, &mut bitmaps);
            assert_eq!(records.fields.times, [Some(1_602_105_756_000)], "{ts}");
        }
    }

    /// Rows that were written as JSON lines keep their fields.
    #[test]
    fn fields_may_have_the_names_of_columns() {
        let text = br#"{"uri":"http://a/","fetch_time":"2020-10-07T21:22:36Z","fetch_status":200,"fetch_redirect":"http://b/","link_text":"x"}"#;
        let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
        let fields = lines.decode(text, 0, &mut bitmaps).fields;
        assert_eq!((fields.times, fields.statuses), (&[Some(1_602_105_756_000)][..], &[Some(200)][..]));
        assert!(fields.redirects[0].is_some() && fields.link_texts[0].is_some());
    }

    #[test]
    fn names_may_have_escapes() {
        let options = JsonOptions { url: Some(JsonPointer::parse("été")), base: None };
        let text = r#"{"st\u0061tus":"404","\u00e9t\u00e9":"http://a/"}"#;
        assert_eq!(rows(&options, text), [("http://a/".into(), None, Some(404), None)]);
        assert!(JsonLines::detect_with(&SourceHead::new(text.as_bytes()), options).is_some());
        assert_eq!(rows(&JsonOptions::default(), r#"{"\u0075rl":"http://a/"}"#)[0].0, "http://a/");
        assert_eq!(names_of_first_members(text.as_bytes()), "status, été");
    }

    #[test]
    fn pointers_and_bases() {
        let pointer = |text| Some(JsonPointer::parse(text));
        let options = JsonOptions { url: pointer("/links/1/h~1ref"), base: pointer("page") };
        let text = r#"{"page":"http://p/","links":[{},{"h/ref":"x\u0020y"}]}"#;
        assert_eq!(rows(&options, text), [("x y".into(), Some("http://p/".into()), None, None)]);
    }

    #[test]
    fn texts_of_rows_without_a_uri_are_in_another_member() {
        let cases = [
            (r#"{"input":"a\u0062","uri":null}"#, "ab"),
            (r#"{"uri":null,"fault":"port","input":{"hex":"4142"}}"#, "AB"),
            (r#"{"uri":null,"input":""}"#, ""),
        ];
        let pointer = |text| JsonOptions { url: Some(JsonPointer::parse(text)), base: None };
        for (line, text) in cases {
            for options in [JsonOptions::default(), pointer("uri"), pointer("/uri")] {
                assert_eq!(rows(&options, line), [(text.to_string(), None, None, Some(FaultKind::NoUrl))]);
                assert!(JsonLines::detect_with(&SourceHead::new(line.as_bytes()), options).is_some());
            }
            assert_eq!(rows(&pointer("x"), line)[0].0, line);
        }
        for line in [
            r#"{"url":null,"uri":null,"input":"a"}"#,
            r#"{"uri":null,"input":null}"#,
            r#"{"uri":null,"input":{"a":"b"}}"#,
            r#"{"uri":1,"input":"a"}"#,
            r#"{"uri":{"a":null},"input":"a"}"#,
            r#"{"input":"a"}"#,
            r#"{"URI":null,"input":"a"}"#,
        ] {
            let fault = Some(FaultKind::NoUrl);
            assert_eq!(rows(&JsonOptions::default(), line), [(line.to_string(), None, None, fault)]);
            assert!(JsonLines::detect(&SourceHead::new(line.as_bytes())).is_none());
        }
    }

    #[test]
    fn texts_may_be_in_hexadecimal() {
        let options = JsonOptions { url: None, base: Some(JsonPointer::parse("base")) };
        let text = r#"{"url":{"hex":"682f"},"base":{"hex":"623a2f2f632f"}}"#;
        assert_eq!(rows(&options, text), [("h/".into(), Some("b://c/".into()), None, None)]);
    }

    #[test]
    fn lines_without_a_url_have_a_fault() {
        let cases = [
            ("{\"url\":1}", FaultKind::NoUrl),
            ("{}", FaultKind::NoUrl),
            ("{\"url\":\"http://a/\"", FaultKind::NotOfFormat),
            ("[1]", FaultKind::NotOfFormat),
            ("{\"url\":\"http://a/\"} {\"url\":\"http://b/\"}", FaultKind::NotOfFormat),
            ("{\"url\":\"http://a/\"},", FaultKind::NotOfFormat),
            ("{}x", FaultKind::NotOfFormat),
            ("http://a/", FaultKind::NotOfFormat),
        ];
        for (line, kind) in cases {
            assert_eq!(rows(&JsonOptions::default(), line), [(line.to_string(), None, None, Some(kind))]);
        }
    }
}
