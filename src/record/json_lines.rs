//! JSON lines: an object a line, the URL where a JSON Pointer (RFC 6901) points. In: a chunk of whole lines. Out: the
//! records, their URLs unescaped into a text of our own, and what members of an index's names say beside them.
//!
//! Without a pointer the URL is the first member of a known name. What is no object, or ends early, is a record with a
//! fault, and so is one without a string where the URL should be; the line is its URL then. Blank lines are no records.

use super::collected::{Collected, lines, put};
use super::csv::{Column, KNOWN};
use super::fields::Field;
use super::json::{Members, Value, at_path, unescape};
use super::{Records, Span, time};
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

/// Decoder of JSON lines; keeps the memory of its text and spans.
#[derive(Debug, Default)]
pub struct JsonLines {
    options: JsonOptions,
    text: Vec<u8>,
    found: Collected,
}

impl JsonLines {
    /// The chunks that follow have their URLs there.
    pub fn set_options(&mut self, options: &JsonOptions) {
        self.options.clone_from(options);
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
        for (at, line) in lines(chunk).filter(|(_, line)| !line.trim_ascii().is_empty()) {
            self.found.begin(offset + at as u64);
            self.line(line.strip_suffix(b"\r").unwrap_or(line));
        }
        bitmaps.classify(&self.text, &CLASSIFIER);
        self.found.records(&self.text)
    }

    fn line(&mut self, line: &[u8]) {
        let mut members = Members::new(line);
        let mut said = [None; 5];
        for (key, value) in members.by_ref() {
            if let Some(place) =
                [&b"status"[..], b"timestamp", b"redirect", b"digest", b"charset"].iter().position(|name| *name == key)
                && let Value::Text(text) | Value::Bare(text) = value
            {
                said[place] = said[place].or(Some(text).filter(|text| *text != b"-" && *text != b"null"));
            }
        }
        let url = url(line, &self.options).filter(|_| !members.is_broken());
        let Some(url) = url else {
            let kind = if members.is_broken() { FaultKind::NotOfFormat } else { FaultKind::NoUrl };
            self.found.refuse(kind);
            let span = put(&mut self.text, |text| text.extend_from_slice(line));
            self.push_base(None);
            return self.found.push(span, Field::default());
        };
        let url = self.put(url);
        let base = self.options.base.as_ref().and_then(|pointer| at_path(line, &pointer.0));
        self.push_base(base.and_then(|base| if let Value::Text(text) = base { Some(text) } else { None }));
        let [status, time, redirect, digest, charset] = said;
        let mut put = |text: Option<&[u8]>| text.map(|text| self.put(text));
        let field = Field {
            status: status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok()),
            time: time.and_then(|text| time::from_digits(text).or_else(|| time::from_iso(text))),
            redirect: put(redirect),
            redirected_from: None,
            digest: put(digest),
            charset: put(charset),
        };
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
