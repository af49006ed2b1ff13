//! JSON lines: an object a line, the URL where a JSON Pointer (RFC 6901) points. In: a chunk of whole lines. Out: the
//! records, their URLs unescaped into a text of our own, and what members of an index's names say beside them.
//!
//! Without a pointer the URL is the first member of a known name. What is no object, or ends early, is a record with a
//! fault, and so is one without a string where the URL should be; the line is its URL then. Blank lines are no records.

use super::collected::{Collected, filled_lines};
use super::copies::put;
use super::csv::{Column, KNOWN};
use super::fields::FieldSet;
use super::fields::FieldValues;
use super::index_member::{CaptureFields, IndexMember};
use super::json::{Members, Value, at_path, unescape};
use super::shape::{Found, Kind, Marks, Shape, Walk};
use super::{Records, Span};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::Bitmaps;

/// Where a value stands in an object: keys and places in arrays, unescaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer(Vec<Vec<u8>>);

impl Pointer {
    /// The pointer that `text` is if it begins with `/`, else the one to the member of that name.
    ///
    /// ```
    /// use irikey::record::json_lines::Pointer;
    /// assert_eq!(Pointer::parse("a"), Pointer::parse("/a"));
    /// assert_ne!(Pointer::parse("a/b"), Pointer::parse("/a/b"));
    /// ```
    pub fn parse(text: &str) -> Pointer {
        let Some(path) = text.strip_prefix('/') else { return Pointer(vec![text.as_bytes().to_vec()]) };
        Pointer(path.split('/').map(|key| key.replace("~1", "/").replace("~0", "~").into_bytes()).collect())
    }
}

/// Where the URL and its base are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// The URL.
    pub url: Option<Pointer>,
    /// The base.
    pub base: Option<Pointer>,
}

impl JsonOptions {
    /// By columns as tables have them; a number is a place.
    pub fn of_columns(url: Option<&Column>, base: Option<&Column>) -> JsonOptions {
        let pointer = |column: &Column| match column {
            Column::Name(name) => Pointer::parse(name),
            Column::Number(number) => Pointer::parse(&number.to_string()),
        };
        JsonOptions { url: url.map(pointer), base: base.map(pointer) }
    }
}

/// `line` is an object, and has a URL where `options` say.
pub(super) fn is_record(line: &[u8], options: &JsonOptions) -> bool {
    let mut members = Members::new(line);
    members.by_ref().for_each(drop);
    !members.is_broken() && url(line, options).is_some()
}

fn url<'a>(line: &'a [u8], options: &JsonOptions) -> Option<&'a [u8]> {
    let text = |value| if let Value::Text(text) = value { Some(text) } else { None };
    match &options.url {
        Some(pointer) => at_path(line, &pointer.0).and_then(text),
        None => KNOWN.iter().find_map(|name| at_path(line, &[name])).and_then(text),
    }
}

/// What a key means.
#[derive(Clone, Copy, Debug, Default)]
struct Meaning {
    /// To an index.
    member: IndexMember,
    /// The URL is in this member, or in it if no member of a lower number is there; from 1, 0 if it is not.
    url: u8,
    /// The base is.
    is_base: bool,
}

impl Meaning {
    fn of(key: &[u8], options: &JsonOptions, carry: FieldSet) -> Meaning {
        let begins = |pointer: &Pointer| pointer.0[0] == key;
        let url = match &options.url {
            Some(pointer) => u8::from(begins(pointer)),
            None => KNOWN.iter().position(|name| name.as_bytes() == key).map_or(0, |place| place as u8 + 1),
        };
        Meaning { member: IndexMember::of(key, carry), url, is_base: options.base.as_ref().is_some_and(begins) }
    }
}

/// Decoder of JSON lines; keeps the memory of its text and spans.
#[derive(Debug, Default)]
pub struct JsonLines {
    options: JsonOptions,
    marks: Marks,
    shape: Shape<Meaning>,
    text: Vec<u8>,
    found: Collected,
}

impl JsonLines {
    /// The chunks that follow have their URLs there.
    pub fn set_options(&mut self, options: &JsonOptions) {
        self.options.clone_from(options);
        self.shape = Shape::default();
    }

    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.found.set_carry(carry);
        self.shape = Shape::default();
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe the records' text
    /// afterwards.
    ///
    /// ```
    /// use irikey::kernel::Bitmaps;
    /// use irikey::record::json_lines::{JsonLines, JsonOptions, Pointer};
    /// let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
    /// lines.set_options(&JsonOptions { url: Some(Pointer::parse("/page/url")), base: None });
    /// let records = lines.decode(br#"{"page": {"url": "http:\/\/a.org\/"}}"#, 0, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(records.text), b"http://a.org/");
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &[u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.text.clear();
        self.found.clear();
        self.marks.classify(chunk);
        for (at, line) in filled_lines(chunk) {
            self.found.begin(offset + at as u64);
            self.line(chunk, at, line);
        }
        bitmaps.classify(&self.text, &CLASSIFIER);
        self.found.records(&self.text)
    }

    fn line(&mut self, chunk: &[u8], at: usize, line: &[u8]) {
        let carry = self.found.carry();
        let mut walk = Walk::new(chunk, &self.marks, &mut self.shape, at);
        let (mut said, mut url, mut base) = (CaptureFields::default(), None::<Found<Meaning>>, None);
        while let Some(found) = walk.next(|key| Meaning::of(key, &self.options, carry)) {
            let Meaning { member, url: rank, is_base } = found.meaning;
            if rank > 0 && url.is_none_or(|url| rank < url.meaning.url) {
                url = Some(found);
            }
            if is_base {
                base = base.or(Some(found));
            }
            if let IndexMember::Field(field) = member {
                said.set(field, &found, chunk);
            }
        }
        let is_broken = walk.is_broken();
        let url = url.and_then(|url| text_at(url, chunk, self.options.url.as_ref())).filter(|_| !is_broken);
        let Some(url) = url else {
            self.found.refuse(if is_broken { FaultKind::NotOfFormat } else { FaultKind::NoUrl });
            let span = put(&mut self.text, |text| text.extend_from_slice(line));
            self.push_base(None);
            return self.found.push(span, FieldValues::default());
        };
        let url = self.put(url);
        let base = base.and_then(|base| text_at(base, chunk, self.options.base.as_ref()));
        self.push_base(base);
        let field = said.values(chunk, &mut self.text);
        self.found.push(url, field);
    }

    fn push_base(&mut self, base: Option<&[u8]>) {
        if self.options.base.is_some() {
            let span = self.put(base.unwrap_or_default());
            self.found.base(span);
        }
    }

    /// Copies a string.
    fn put(&mut self, text: &[u8]) -> Span {
        put(&mut self.text, |out| unescape(text, out))
    }
}

/// The string that a member is, or that a pointer leads to within it.
fn text_at<'a>(found: Found<Meaning>, chunk: &'a [u8], pointer: Option<&Pointer>) -> Option<&'a [u8]> {
    let text = found.span.of(chunk);
    match (found.kind, pointer.map_or(&[][..], |pointer| &pointer.0[1..])) {
        (Kind::Text, []) => Some(text),
        (Kind::Nested, path @ [_, ..]) => match at_path(text, path) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, Option<String>, Option<i32>, Option<FaultKind>);

    fn rows(options: &JsonOptions, text: &str) -> Vec<Row> {
        let (mut lines, mut bitmaps) = (JsonLines::default(), Bitmaps::default());
        lines.set_options(options);
        let records = lines.decode(text.as_bytes(), 0, &mut bitmaps);
        let show = |span: Span| String::from_utf8_lossy(span.of(records.text)).into_owned();
        let fault = |i: usize| records.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.kind);
        let base = |i: usize| records.bases.get(i).map(|base| show(*base));
        let row = |i: usize| (show(records.urls[i]), base(i), records.fields.statuses[i], fault(i));
        (0..records.urls.len()).map(row).collect()
    }

    #[test]
    fn known_names_and_an_indexs_members() {
        let text =
            "{\"status\":\"301\",\"url\":\"http:\\/\\/a\\/\",\"uri\":\"no\"}\r\n\n{\"href\":\"b\",\"status\":-2}\n";
        let want = [("http://a/".into(), None, Some(301), None), ("b".into(), None, Some(-2), None)];
        assert_eq!(rows(&JsonOptions::default(), text), want);
    }

    #[test]
    fn pointers_and_bases() {
        let pointer = |text| Some(Pointer::parse(text));
        let options = JsonOptions { url: pointer("/links/1/h~1ref"), base: pointer("page") };
        let text = r#"{"page":"http://p/","links":[{},{"h/ref":"x\u0020y"}]}"#;
        assert_eq!(rows(&options, text), [("x y".into(), Some("http://p/".into()), None, None)]);
    }

    #[test]
    fn what_has_no_url_has_a_fault() {
        let cases = [
            ("{\"url\":1}", FaultKind::NoUrl),
            ("{}", FaultKind::NoUrl),
            ("{\"url\":\"http://a/\"", FaultKind::NotOfFormat),
            ("[1]", FaultKind::NotOfFormat),
            ("http://a/", FaultKind::NotOfFormat),
        ];
        for (line, kind) in cases {
            assert_eq!(rows(&JsonOptions::default(), line), [(line.to_string(), None, None, Some(kind))]);
        }
    }
}
