//! CDXJ: lines `key time {json}`, as Common Crawl's index and pywb write them. Strings are unescaped into a text of the
//! decoder.
//!
//! The dialects differ in whether numbers are strings and in which members exist. A key can contain spaces; the JSON
//! begins at the first ` {` after a time. A line without JSON, or whose JSON is truncated, is followed by text or has
//! no `url`, is a record with a fault, and the line is its URL; without a `url`, the other members are still read.
//! Members that have no field of their own are copied as they are. Lines that begin with `!` or `@` are counted as headers;
//! headers and blank lines are not records.

use super::buffer::{RecordBuffer, without_cr};
use super::capture_fields::{CaptureFields, IndexMember, copy_string};
use super::decoder::{SourceHead, TextDecoder};
use super::fields::{CarriedField, FieldSet};
use super::json::{JsonMembers, is_name};
use super::json_bitmaps::JsonBitmaps;
use super::member_cache::{JsonKind, JsonMember, MemberCache, MemberReader};
use super::records::Records;
use super::time;
use crate::iri::FaultKind;
use crate::kernel::{Bitmaps, SimdTask, Span, run_with_simd};

/// Decoder of CDXJ.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, cdxj::Cdxj}};
/// let line = br#"org,a)/ 20140127171200 {"url": "http:\/\/a.org\/", "status": "200"}"#;
/// let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
/// let records = cdxj.decode(line, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(records.text), b"http://a.org/");
/// assert_eq!(records.fields.statuses, [Some(200)]);
/// ```
#[derive(Debug, Default)]
pub struct Cdxj {
    json_bitmaps: JsonBitmaps,
    cache: MemberCache<IndexMember>,
    /// The fields of the current record.
    fields: CaptureFields,
    rows: RecordBuffer,
}

impl TextDecoder for Cdxj {
    type Settings = ();

    fn detect(head: &SourceHead<'_>) -> Option<()> {
        is_record(head.first_record).then_some(())
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.columns.set_carry(carry);
        self.cache = MemberCache::default();
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.rows.clear();
        self.json_bitmaps.classify(chunk);
        run_with_simd(DecodeLines { cdxj: self, chunk, offset });
        Records { is_text: true, ..self.rows.classified_records(bitmaps) }
    }
}

impl Cdxj {
    /// Decodes the line that begins at `at`; returns where the next line begins.
    #[inline(always)]
    fn decode_line(&mut self, chunk: &[u8], at: usize) -> usize {
        let (time, json_at) = usual_head(chunk, &self.json_bitmaps, at).unwrap_or_else(|| head(chunk, at));
        let carry = self.rows.columns.carry();
        let mut reader = MemberReader::new(chunk, &self.json_bitmaps, &mut self.cache, json_at);
        self.fields.clear();
        let mut url = None;
        // A known member that no column holds: a time besides that of the line, an object or an array.
        let is_extra = |field: CarriedField, member: &JsonMember<IndexMember>| {
            let has_time = field == CarriedField::FetchTime && time.is_some();
            carry.cdxj_members && (has_time || member.kind == JsonKind::Nested)
        };
        let (mut member_at, others_at) = (json_at, self.rows.text.len());
        while let Some(member) = reader.next(|key| IndexMember::of_line(key, carry)) {
            match member.meaning {
                IndexMember::Ignored => {}
                IndexMember::Url => {
                    if url.is_none() && member.kind == JsonKind::Text && member.span.of(chunk) != b"-" {
                        url = Some(member);
                    }
                }
                IndexMember::Field(field) if !is_extra(field, &member) => self.fields.set(field, &member, chunk),
                IndexMember::Field(_) | IndexMember::Other => {
                    append_member(&chunk[member_at..member.end()], others_at, &mut self.rows.text);
                }
            }
            member_at = member.end();
        }
        // Members before the place where the JSON breaks are not reliable.
        let json_end = if reader.is_broken() { at } else { reader.end() };
        let end = line_end(chunk, json_end);
        let is_whole = !reader.is_broken() && (json_end == end || chunk[json_end..end].trim_ascii().is_empty());
        let others = end_members(others_at, is_whole, &mut self.rows.text);
        if let Some(url) = url.filter(|_| is_whole) {
            let url = copy_string(chunk, url.span, url.has_escapes, &mut self.rows.text);
            self.rows.columns.urls.push(url);
        } else if is_whole {
            self.refuse(FaultKind::NoUrl, &chunk[at..end]);
        } else {
            self.fields.clear();
            self.refuse(FaultKind::NotOfFormat, &chunk[at..end]);
        }
        self.push_fields(chunk, time, others);
        end + 1
    }

    /// Appends the fields of a record: those of its members, the `time` before them, and the `others` that have no field.
    #[inline(always)]
    fn push_fields(&mut self, chunk: &[u8], time: Option<i64>, others: Option<Span>) {
        let columns = &mut self.rows.columns.fields;
        self.fields.push(chunk, columns, &mut self.rows.text);
        if let Some(last) = columns.times.last_mut() {
            *last = time.or(*last);
        }
        if let Some(last) = columns.cdxj_members.last_mut() {
            *last = last.or(others);
        }
    }

    /// Appends a record whose URL is the line.
    #[cold]
    fn refuse(&mut self, kind: FaultKind, line: &[u8]) {
        self.rows.refuse(kind);
        self.rows.push_url(without_cr(line));
    }
}

/// Appends the member at the end of `member`, which begins after the value before it, to an object that begins at byte `at` of
/// `text`.
#[cold]
fn append_member(member: &[u8], at: usize, text: &mut Vec<u8>) {
    let key_at = memchr::memchr(b'"', member).unwrap_or(member.len());
    text.extend_from_slice(if text.len() == at { b"{" } else { b", " });
    text.extend_from_slice(&member[key_at..]);
}

/// Ends the object that begins at byte `at` of `text`, if members were appended; removes them unless the line `is_whole`.
#[inline(always)]
fn end_members(at: usize, is_whole: bool, text: &mut Vec<u8>) -> Option<Span> {
    if text.len() == at {
        return None;
    }
    if !is_whole {
        text.truncate(at);
        return None;
    }
    text.extend_from_slice(b"}\n");
    Some(Span::new(at, text.len() - 1 - at))
}

/// Decodes all lines of a chunk.
struct DecodeLines<'a> {
    cdxj: &'a mut Cdxj,
    chunk: &'a [u8],
    offset: u64,
}

impl SimdTask for DecodeLines<'_> {
    #[inline(always)]
    fn run(self) {
        let DecodeLines { cdxj, chunk, offset } = self;
        let mut at = 0;
        while at < chunk.len() {
            at = match chunk[at..] {
                [first, ..] if first.is_ascii_whitespace() && is_blank(&chunk[at..line_end(chunk, at)]) => {
                    line_end(chunk, at) + 1
                }
                [b'!' | b'@', ..] => {
                    cdxj.rows.columns.count_header();
                    line_end(chunk, at) + 1
                }
                _ => {
                    cdxj.rows.begin(offset + at as u64);
                    cdxj.decode_line(chunk, at)
                }
            };
        }
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

/// Where the line that contains byte `at` ends.
fn line_end(chunk: &[u8], at: usize) -> usize {
    if chunk.get(at) == Some(&b'\n') {
        return at;
    }
    memchr::memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |len| at + len)
}

/// The time of the line that begins at `at`, and where its JSON begins. `None` if the line is unusual: nearly all lines
/// have neither brace nor quote in the key, a time of 14 digits, and ` {"`.
#[inline(always)]
fn usual_head(chunk: &[u8], json_bitmaps: &JsonBitmaps, at: usize) -> Option<(Option<i64>, usize)> {
    // The quote is searched for first: this search ends with the line, and then the one for the brace ends there too.
    let quote = json_bitmaps.next_stop(at);
    let word = quote.checked_sub(16).filter(|word| *word >= at)?;
    let brace = quote - 1;
    let is_usual = chunk.get(brace - 1..brace + 2)? == b" {\""
        && (word == at || chunk[word - 1] == b' ')
        && json_bitmaps.next_brace(at) == brace;
    let time = time::from_digits(&chunk[word..word + 14]).filter(|_| is_usual)?;
    Some((Some(time), brace))
}

/// Like [`usual_head`], for any line; the last digits of the time may be missing. Without JSON, the position is the end of the line.
#[cold]
fn head(chunk: &[u8], at: usize) -> (Option<i64>, usize) {
    let line = &chunk[at..line_end(chunk, at)];
    let (time, json) = split(line);
    let fields = line[..line.len() - json.len()].strip_suffix(b" ").filter(|_| !json.is_empty());
    let word = || fields?.rsplit(|byte| *byte == b' ').next();
    (time.or_else(|| time::from_first_digits(word()?)), at + line.len() - json.len())
}

/// Whether `line` is unmistakably a record: a time and JSON; or `-` for the time, and JSON with a URL.
fn is_record(line: &[u8]) -> bool {
    let (time, json) = split(line);
    let is_object = json.strip_prefix(b"{").is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b'"'));
    let has_other_time = || {
        let fields = line[..line.len() - json.len()].strip_suffix(b" ").unwrap_or_default();
        let time = fields.rsplit(|byte| *byte == b' ').next().filter(|time| time.len() < fields.len());
        time.is_some_and(|time| time == b"-" || time.iter().all(u8::is_ascii_digit)) && has_url(json)
    };
    is_object && (time.is_some() || has_other_time())
}

fn has_url(json: &[u8]) -> bool {
    let has_url = JsonMembers::new(json).any(|(key, value)| is_name(key, b"url") && value.text().is_some());
    has_url && JsonMembers::are_whole(json)
}

/// The time and the JSON of a line. Without a time, the JSON begins at the first ` {` or the first byte of the line.
fn split(line: &[u8]) -> (Option<i64>, &[u8]) {
    let mut first = line.starts_with(b"{").then_some(0);
    for space in memchr::memchr_iter(b'{', line).filter_map(|brace| brace.checked_sub(1)) {
        if line[space] != b' ' {
            continue;
        }
        let head = &line[..space];
        let word = &head[memchr::memrchr(b' ', head).map_or(0, |at| at + 1)..];
        if let Some(time) = time::from_digits(word) {
            return (Some(time), &line[space + 1..]);
        }
        first = first.or(Some(space + 1));
    }
    (None, first.map_or(b"", |at| &line[at..]))
}

#[cfg(test)]
mod tests {
    use super::super::json::{JsonValue, unescape};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_dialects() {
        let text = br#"!OpenWayback-CDXJ 1.0
org,a)/ 20140127171200 {"url": "http://a.org/", "mime": "text/html", "status": "301", "digest": "B2LT", "redirect": "/x\u0020y", "charset": "UTF-8"}
org,a)/?q={a {b} 20140127171201 {"offset":"0","status":200,"url":"http://a.org/?q={a {b}"}

{"url":"http://b.org/","timestamp":"20140127171202","status":"-","charset":"-"}
"#;
        let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
        let records = cdxj.decode(text, 10, &mut bitmaps);
        assert_eq!(records.shown_urls(), ["http://a.org/", "http://a.org/?q={a {b}", "http://b.org/"]);
        assert_eq!(records.fields.statuses, [Some(301), Some(200), None]);
        assert_eq!(records.fields.times, [0, 1000, 2000].map(|ms| Some(1_390_842_720_000 + ms)));
        assert_eq!(records.fields.redirects[0].map(|span| records.show(span)).as_deref(), Some("/x y"));
        assert_eq!(records.fields.charsets.iter().flatten().count(), 1);
        assert!(records.faults.is_empty());
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
        assert_eq!(records.each_offset()[0], 10 + 22);
    }

    #[test]
    fn names_may_have_escapes() {
        let text = br#"org,a)/ 20140127171200 {"\u0075rl": "http://a/", "st\u0061tus": "404"}"#;
        let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
        let records = cdxj.decode(text, 0, &mut bitmaps);
        assert_eq!((records.shown_urls(), records.fields.statuses), (vec!["http://a/".to_string()], &[Some(404)][..]));
        assert!(is_record(br#"- - {"\u0075rl": "x:y"}"#));
    }

    #[test]
    fn blank_lines_are_no_records() {
        let line = "org,a)/ 20140127171200 {\"url\": \"http://a.org/\"}";
        for blank in ["", "\r", " ", "\t \r", "\x0C"] {
            let text = format!("{blank}\n{line}\n{blank}\n {line}\n{blank}");
            let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
            let records = cdxj.decode(text.as_bytes(), 0, &mut bitmaps);
            assert_eq!(records.shown_urls(), ["http://a.org/"; 2], "{blank:?}");
            assert!(records.faults.is_empty(), "{blank:?}");
        }
    }

    #[test]
    fn a_record_without_a_time_is_recognized_by_its_url() {
        assert!(is_record(br#"- - {"url": "x:y", "status": "200"}"#));
        assert!(is_record(br#"org,a)/ 2014 {"url": "x:y"}"#));
        assert!(is_record(br#"org,a)/ 20140127171200 {"offset": "0""#));
        for line in [
            r#"a - {"ur": "x:y"}"#,
            r#"a - {"url": 1}"#,
            r#"a - {"url": "x:y""#,
            r#"a b {"url": "x:y"}"#,
            r#"1 {"url": "x:y"}"#,
            "a - {",
        ] {
            assert!(!is_record(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn members_without_a_field_are_copied() {
        let of = |members: &str, carry: FieldSet| {
            let line = format!("a 20140127171200 {{{members}}}\n");
            let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
            cdxj.set_carry(carry);
            let records = cdxj.decode(line.as_bytes(), 0, &mut bitmaps);
            assert_eq!(records.shown_urls(), ["x:y"], "{line}");
            records.fields.cdxj_members.first().copied().flatten().map(|span| records.show(span))
        };
        let mut carry = FieldSet::default();
        assert_eq!(of(r#""url": "x:y", "a": 1"#, carry), None);
        carry.insert(CarriedField::CdxjMembers);
        for (members, others) in [
            (r#""url": "x:y", "status": "200", "mime": "-""#, None),
            (r#""url": "x:y", "page": "u", "timestamp": "1""#, Some(r#"{"page": "u", "timestamp": "1"}"#)),
            (r#""url": "x:y", "mime": [ "a" ], "ts": null"#, Some(r#"{"mime": [ "a" ], "ts": null}"#)),
            (r#" "a" : "\"\u00fc", "url": "x:y","b":[{"c": 1}, 2] "#, Some(r#"{"a" : "\"\u00fc", "b":[{"c": 1}, 2]}"#)),
            (r#""url": "x:y", "open": {}, "status": null, "open": "-""#, Some(r#"{"open": {}, "open": "-"}"#)),
            (r#""url": "x:y", "cdxj_members": "{}", "a": 1"#, Some(r#"{"cdxj_members": "{}", "a": 1}"#)),
        ] {
            assert_eq!(of(members, carry).as_deref(), others, "{members}");
        }
    }

    #[test]
    fn the_last_digits_of_a_time_may_be_missing() {
        for (time, ms) in
            [("20140127", Some(1_390_780_800_000)), ("201401271712", Some(1_390_842_720_000)), ("2014", None)]
        {
            let line = format!("org,a)/ {time} {{\"url\": \"http://a.org/\"}}\n");
            let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
            let records = cdxj.decode(line.as_bytes(), 0, &mut bitmaps);
            assert_eq!(
                (records.shown_urls(), records.fields.times),
                (vec!["http://a.org/".to_string()], &[ms][..]),
                "{line}"
            );
        }
    }

    #[test]
    fn malformed_lines_have_a_fault() {
        let lines =
            ["org,a)/ 2014", "a 20140127171200 {", r#"a 20140127171200 {"status":1}"#, r#"a 20140127171200 {"url":1}"#];
        for line in lines {
            let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
            let records = cdxj.decode(line.as_bytes(), 0, &mut bitmaps);
            assert_eq!((records.urls.len(), records.faults.len()), (1, 1), "{line}");
        }
    }

    type Row = (Vec<u8>, u64, Option<FaultKind>, [Option<Vec<u8>>; 4], Option<i32>, Option<i64>);

    fn rows(cdxj: &mut Cdxj, chunk: &[u8]) -> Vec<Row> {
        let mut bitmaps = Bitmaps::default();
        let records = cdxj.decode(chunk, 0, &mut bitmaps);
        let (fields, offsets) = (records.fields, records.each_offset());
        let show = |span: &Span| span.of(records.text).to_vec();
        let fault = |i: usize| records.fault(i);
        let texts = |i: usize| {
            let spans = [fields.redirects[i], fields.digests[i], fields.charsets[i], fields.cdxj_members[i]];
            spans.map(|text| text.as_ref().map(show))
        };
        let row =
            |i: usize| (show(&records.urls[i]), offsets[i], fault(i), texts(i), fields.statuses[i], fields.times[i]);
        (0..offsets.len()).map(row).collect()
    }

    /// The row of a line by the definition of the format.
    fn row_of(line: &[u8], at: u64) -> Row {
        let (time, json) = split(line);
        let text = |text: &[u8]| {
            let mut out = Vec::new();
            unescape(text, &mut out);
            (text != b"-").then_some(out)
        };
        let (mut url, mut texts, mut others) = (None, [const { None }; 5], Vec::new());
        let mut members = JsonMembers::new(json);
        for (key, value) in members.by_ref() {
            let mut name = Vec::new();
            unescape(key, &mut name);
            match (&name[..], value) {
                (b"url", JsonValue::Text(value)) if url.is_none() => url = text(value),
                (b"url", _) => {}
                (_, JsonValue::Nested(value)) => others.push([b"\"", key, b"\": ", value].concat()),
                (name, value) if name == b"x" || name == b"timestamp" && time.is_some() => {
                    let (JsonValue::Text(text) | JsonValue::Bare(text) | JsonValue::Nested(text)) = value;
                    let quote = if matches!(value, JsonValue::Text(_)) { &b"\""[..] } else { b"" };
                    others.push([b"\"", key, b"\": ", quote, text, quote].concat());
                }
                (name, JsonValue::Text(value) | JsonValue::Bare(value)) => {
                    let names = [&b"status"[..], b"timestamp", b"redirect", b"digest", b"charset"];
                    if let Some(place) = names.iter().position(|known| *known == name) {
                        texts[place] = texts[place].take().or(text(value));
                    }
                }
            }
        }
        let [status, stamp, redirect, digest, charset] = texts;
        let status = status.and_then(|text| String::from_utf8(text).ok()?.parse().ok());
        let stamp = stamp.and_then(|text| time::from_digits(&text));
        let others = (!others.is_empty()).then(|| [b"{", &others.join(&b", "[..])[..], b"}"].concat());
        let fault = match &url {
            _ if members.is_broken() || !members.after_object().trim_ascii().is_empty() => FaultKind::NotOfFormat,
            // The JSON is sound, so its other members are used.
            None => {
                let line = without_cr(line).to_vec();
                let texts = [redirect, digest, charset, others];
                return (line, at, Some(FaultKind::NoUrl), texts, status, time.or(stamp));
            }
            Some(url) => {
                return (url.clone(), at, None, [redirect, digest, charset, others], status, time.or(stamp));
            }
        };
        (without_cr(line).to_vec(), at, Some(fault), [const { None }; 4], None, time)
    }

    fn line() -> impl Strategy<Value = String> {
        let key = "(org,a\\)/[a-z]{0,3}|\"|x 20140127171200 \\{|a\\{b| |)";
        let time = "( 20140127171200 | 20141327171200 |20140127171200 | 20140127171200123 | - |  )";
        #[rustfmt::skip]
        let value = prop::sample::select(&[
            "\"http://a/\"", "\"-\"", "\"\"", "\"200\"", "200", "-2", "\"\\\\\"", "\"\\u00fc\"", "\"\\\"\"",
            "\"20140127171203\"", "{}", "[1]", "\"x", "-",
        ][..]);
        let name = prop::sample::select(
            &["url", "url", "status", "redirect", "digest", "charset", "timestamp", "mime", "x"][..],
        );
        let members =
            prop::collection::vec((name, value).prop_map(|(name, value)| format!("\"{name}\": {value}")), 0..5);
        let brace = prop::sample::select(&["{", "{", "{", "{ ", "", "\0{"][..]);
        let end = prop::sample::select(&["}", "}", "}", "} x", "}\r", "", "\\", "!"][..]);
        (key, time, brace, members, end)
            .prop_map(|(key, time, brace, members, end)| format!("{key}{time}{brace}{}{end}", members.join(", ")))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

        #[test]
        fn equals_the_definition_line_by_line(lines in prop::collection::vec(line(), 1..12), is_ended in any::<bool>()) {
            let text = [lines.join("\n"), lines.join("\n")].join("\n") + if is_ended { "\n" } else { "" };
            let (mut want, mut at) = (Vec::new(), 0);
            for line in text.split('\n') {
                if !line.trim_ascii().is_empty() && !line.starts_with(['!', '@']) {
                    want.push(row_of(line.as_bytes(), at));
                }
                at += line.len() as u64 + 1;
            }
            let mut cdxj = Cdxj::default();
            prop_assert_eq!(rows(&mut cdxj, text.as_bytes()), want.clone());
            prop_assert_eq!(rows(&mut cdxj, text.as_bytes()), want);
        }
    }
}
