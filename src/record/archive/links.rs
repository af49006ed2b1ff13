//! Links of WAT records, Common Crawl's metadata of pages: the JSON of one record in, the URL and base of each link out.
//!
//! Links are, in this order: `Location` of a redirect, `Refresh` and `Link` header fields; the entries of `HTML-Metadata`
//! that have a `url`, in the lists `Head.Link`, `Head.Scripts` and `Links`; refreshes, and addresses of the page and its
//! media for previews, in `Head.Metas`. The base of links in header fields is the URL of the page; that of the other links is
//! `Head.Base`, resolved against the URL of the page. If the JSON is broken after the response, its links are read as well; if it
//! ends early, no link is read.

use crate::encoding::truncated;
use crate::iri::{Base, FaultKind, find_scheme, may_be_html_base};
use crate::kernel::offset_in;
use crate::record::json::{JsonElements, JsonMembers, JsonValue, at_path, unescape};
use crate::record::link_header::LinkValues;
use crate::record::refresh::refresh_target;
use std::ops::Range;

/// Longest base of the links of a page, in bytes. Every link is resolved against the base, so the size of the output is
/// bounded by this length times the number of links.
pub(super) const MAX_BASE_LEN: usize = 16 << 10;

/// Longest type, relation and text of a link, in bytes. The rest is not read.
const MAX_LABEL_LEN: usize = 1 << 10;

const RESPONSE: [&str; 3] = ["Envelope", "Payload-Metadata", "HTTP-Response-Metadata"];
const LISTS: [&[&str]; 4] = [&["Head", "Link"], &["Head", "Scripts"], &["Links"], &["Head", "Metas"]];

/// The list whose entries are `meta` elements.
const METAS: usize = 3;

/// Names of `meta` elements whose content is an address: Open Graph and Twitter cards.
#[rustfmt::skip]
const META_ADDRESSES: [&[u8]; 14] = [
    b"og:url", b"og:image", b"og:image:url", b"og:image:secure_url", b"og:video", b"og:video:url", b"og:video:secure_url",
    b"og:audio", b"og:audio:url", b"og:audio:secure_url", b"twitter:url", b"twitter:image", b"twitter:image:src",
    b"twitter:player",
];

/// A link of a page.
#[derive(Debug, Default)]
pub(super) struct WatLink<'a> {
    pub(super) url: &'a [u8],
    pub(super) base: &'a [u8],
    /// Element and attribute, `A@/href`.
    pub(super) kind: &'a [u8],
    /// Empty if the link has none, as in `text`.
    pub(super) rel: &'a [u8],
    pub(super) text: &'a [u8],
}

/// The texts of one link; keeps their memory.
#[derive(Debug, Default)]
struct LinkBuffers {
    url: Vec<u8>,
    kind: Vec<u8>,
    rel: Vec<u8>,
    text: Vec<u8>,
}

/// Reads the links of one record after the other. It keeps positions instead of slices, so that the caller can pause
/// between two links.
#[derive(Debug, Default)]
pub(super) struct LinkReader {
    page: Vec<u8>,
    /// The base of links in HTML.
    base: Vec<u8>,
    /// The last link.
    link: LinkBuffers,
    /// Header fields with one link that were not returned yet.
    location: Vec<u8>,
    refresh: Vec<u8>,
    /// All `Link` fields, joined by commas, and where the search for the next link begins.
    link_fields: Vec<u8>,
    link_fields_at: usize,
    /// The part of each list that is still to be read, as offsets in the JSON.
    lists: [Range<usize>; LISTS.len()],
}

impl LinkReader {
    /// Begins with the JSON of the record of `record_url`. Returns whether the record describes a page, that is, the response
    /// to a request.
    ///
    /// # Errors
    /// The JSON is broken, or there are links that are not read because their base is longer than [`MAX_BASE_LEN`]. The other
    /// links can be read.
    pub(super) fn begin(&mut self, json: &[u8], record_url: &[u8]) -> Result<bool, FaultKind> {
        let texts = [&mut self.page, &mut self.base, &mut self.location, &mut self.refresh, &mut self.link_fields];
        texts.into_iter().for_each(Vec::clear);
        (self.link_fields_at, self.lists) = (0, Default::default());
        self.page.extend_from_slice(record_url);
        let response = at_path(json, &RESPONSE).and_then(JsonValue::nested);
        if let Some(response) = response {
            self.begin_headers(response);
            let is_short = self.remove_long_headers();
            if !(self.begin_lists(json, response) && is_short) {
                return Err(FaultKind::TooLong);
            }
        }
        if JsonMembers::are_whole(json) { Ok(response.is_some()) } else { Err(FaultKind::NotOfFormat) }
    }

    /// Removes the header fields if their base, the URL of the page, is too long. Returns false if any were removed.
    fn remove_long_headers(&mut self) -> bool {
        let mut texts = [&mut self.location, &mut self.refresh, &mut self.link_fields];
        let is_short = self.page.len() <= MAX_BASE_LEN || texts.iter().all(|text| text.is_empty());
        if !is_short {
            texts.iter_mut().for_each(|text| text.clear());
        }
        is_short
    }

    /// Finds the lists of links in HTML. Returns false if their base is too long.
    fn begin_lists(&mut self, json: &[u8], response: &[u8]) -> bool {
        let Some(html) = at_path(response, &["HTML-Metadata"]).and_then(JsonValue::nested) else { return true };
        self.base = base(html, &self.page);
        if self.base.len() > MAX_BASE_LEN {
            return false;
        }
        replace_line_feeds(&mut self.base);
        for (range, path) in self.lists.iter_mut().zip(LISTS) {
            if let Some(list) = at_path(html, path).and_then(JsonValue::nested) {
                let elements = JsonElements::new(list).rest();
                let at = offset_in(json, elements);
                *range = at..at + elements.len();
            }
        }
        true
    }

    /// Collects the header fields that hold links.
    fn begin_headers(&mut self, response: &[u8]) {
        let status = match at_path(response, &["Response-Message", "Status"]) {
            Some(JsonValue::Text(status) | JsonValue::Bare(status)) => status,
            _ => &[],
        };
        let is_redirect = status.len() == 3 && status[0] == b'3';
        let Some(JsonValue::Nested(headers)) = at_path(response, &["Headers"]) else { return };
        for (name, value) in JsonMembers::new(headers) {
            let (field, separator): (_, &[u8]) = match name.len() {
                8 if is_redirect && name.eq_ignore_ascii_case(b"location") => (&mut self.location, b""),
                7 if name.eq_ignore_ascii_case(b"refresh") => (&mut self.refresh, b""),
                4 if name.eq_ignore_ascii_case(b"link") => (&mut self.link_fields, b", "),
                _ => continue,
            };
            for_each_text(value, |text| {
                if field.is_empty() || !separator.is_empty() {
                    field.extend_from_slice(separator);
                    unescape(text, field);
                }
            });
        }
    }

    /// The next link; `json` is the text given to [`LinkReader::begin`].
    pub(super) fn next(&mut self, json: &[u8]) -> Option<WatLink<'_>> {
        self.link.clear();
        if self.next_in_headers() {
            return Some(self.link.of_base(&self.page));
        }
        for (i, range) in self.lists.iter_mut().enumerate() {
            let mut elements = JsonElements::after(&json[range.clone()]);
            for element in elements.by_ref() {
                let JsonValue::Nested(element) = element else { continue };
                let is_link = if i == METAS { self.link.read_meta(element) } else { self.link.read(element) };
                if is_link {
                    *range = range.end - elements.rest().len()..range.end;
                    return Some(self.link.of_base(&self.base));
                }
                self.link.clear();
            }
            *range = 0..0;
        }
        None
    }

    /// Takes the next link of the header fields; returns false if there are no more.
    fn next_in_headers(&mut self) -> bool {
        let link = &mut self.link;
        if !self.location.is_empty() {
            link.set(&std::mem::take(&mut self.location), b"HTTP@/location", b"redirect");
            return true;
        }
        let refresh = std::mem::take(&mut self.refresh);
        if let Some(url) = target_of(&refresh) {
            link.set(url, b"HTTP@/refresh", b"refresh");
            return true;
        }
        let mut values = LinkValues::from(&self.link_fields, self.link_fields_at);
        let next = values.next();
        self.link_fields_at = values.at;
        if let Some(value) = &next {
            link.set(value.target, b"HTTP@/link", &value.rel);
            link.text.extend_from_slice(&value.title);
        }
        next.is_some()
    }
}

impl LinkBuffers {
    fn clear(&mut self) {
        [&mut self.url, &mut self.kind, &mut self.rel, &mut self.text].into_iter().for_each(Vec::clear);
    }

    fn set(&mut self, url: &[u8], kind: &[u8], rel: &[u8]) {
        self.url.extend_from_slice(url);
        self.kind.extend_from_slice(kind);
        self.rel.extend_from_slice(rel);
    }

    /// Reads an entry of a list of links; returns whether it is a link.
    fn read(&mut self, entry: &[u8]) -> bool {
        let (mut has_url, mut has_text) = (false, false);
        for (name, value) in JsonMembers::new(entry) {
            let JsonValue::Text(value) = value else { continue };
            match name {
                b"url" if !has_url => {
                    has_url = true;
                    unescape(value, &mut self.url);
                }
                b"path" if self.kind.is_empty() => unescape(value, &mut self.kind),
                b"rel" if self.rel.is_empty() => unescape(value, &mut self.rel),
                b"text" if !has_text => {
                    has_text = true;
                    self.text.clear();
                    unescape(value, &mut self.text);
                }
                b"alt" if self.text.is_empty() => unescape(value, &mut self.text),
                _ => {}
            }
        }
        has_url
    }

    /// Reads the entry of a `meta` element; returns whether its content is a link.
    fn read_meta(&mut self, entry: &[u8]) -> bool {
        let mut content = None;
        let mut is_refresh = false;
        for (name, value) in JsonMembers::new(entry) {
            let JsonValue::Text(value) = value else { continue };
            match name {
                b"content" => content = content.or(Some(value)),
                b"property" | b"name" if META_ADDRESSES.contains(&value) => {
                    self.rel.clear();
                    self.rel.extend_from_slice(value);
                }
                b"http-equiv" => is_refresh |= value.eq_ignore_ascii_case(b"refresh"),
                _ => {}
            }
        }
        let Some(content) = content.filter(|_| is_refresh || !self.rel.is_empty()) else { return false };
        unescape(content, &mut self.url);
        self.kind.extend_from_slice(b"META@/content");
        if is_refresh {
            self.rel = b"refresh".to_vec();
            let target = target_of(&self.url).map(<[u8]>::to_vec);
            let is_link = target.is_some();
            self.url = target.unwrap_or_default();
            return is_link;
        }
        !self.url.trim_ascii().is_empty()
    }

    /// The link with its base.
    fn of_base<'a>(&'a mut self, base: &'a [u8]) -> WatLink<'a> {
        replace_line_feeds(&mut self.url);
        for label in [&mut self.kind, &mut self.rel, &mut self.text] {
            label.truncate(truncated(label, MAX_LABEL_LEN).len());
            replace_line_feeds(label);
        }
        let LinkBuffers { url, kind, rel, text } = self;
        WatLink { url, base, kind, rel, text: text.trim_ascii() }
    }
}

/// Calls `handle` with the strings of a header field: one, or those of an array.
fn for_each_text<'a>(value: JsonValue<'a>, mut handle: impl FnMut(&'a [u8])) {
    match value {
        JsonValue::Text(text) => handle(text),
        JsonValue::Nested(list) => JsonElements::new(list).filter_map(JsonValue::text).for_each(handle),
        JsonValue::Bare(_) => {}
    }
}

/// The target of a refresh. A refresh without a target reloads the page.
fn target_of(refresh: &[u8]) -> Option<&[u8]> {
    refresh_target(refresh).map(|range| &refresh[range]).filter(|target| !target.is_empty())
}

/// The base of a page's links: that of its `base` element, which is a URL between white space, if [`may_be_html_base`];
/// otherwise the page.
fn base(html: &[u8], page_url: &[u8]) -> Vec<u8> {
    let Some(JsonValue::Text(text)) = at_path(html, &["Head", "Base"]) else { return page_url.to_vec() };
    let mut own = Vec::new();
    unescape(text, &mut own);
    let own = own.trim_ascii();
    let base = match find_scheme(own) {
        Some(_) => own.to_vec(),
        None => Base::new(page_url).and_then(|page| page.resolve(own)).unwrap_or(page_url.to_vec()),
    };
    if may_be_html_base(&base) { base } else { page_url.to_vec() }
}

/// Replaces `LF`, which strings of JSON can contain, by a space, as in every format of lines.
fn replace_line_feeds(text: &mut [u8]) {
    text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::archive::tests::envelope;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The links of the page `http://a.org/b/c`.
    fn read<T>(response: &str, show: impl Fn(WatLink<'_>) -> T) -> Vec<T> {
        let json = envelope(response);
        let mut reader = LinkReader::default();
        assert_eq!(reader.begin(json.as_bytes(), b"http://a.org/b/c"), Ok(true));
        std::iter::from_fn(|| reader.next(json.as_bytes()).map(&show)).collect()
    }

    fn links(html: &str) -> Vec<(String, String)> {
        read(&format!(r#"{{"HTML-Metadata":{html}}}"#), |link| (text(link.url), text(link.base)))
    }

    #[test]
    fn links_and_their_base() {
        let pair = |url: &str, base: &str| (url.to_string(), base.to_string());
        let html = r##"{"Head":{"Base":"\/x\/","Link":[{"path":"LINK@/href","url":"l.css"},{"path":"no"}],"Scripts":[{"url":"s.js"}]},
            "Links":[{"url":"a\u0020b"},{"url":1},7,{"x":[{"url":"no"}],"url":"#f\n"}]}"##;
        let base = "http://a.org/x/";
        assert_eq!(links(html), [pair("l.css", base), pair("s.js", base), pair("a b", base), pair("#f ", base)]);
        assert_eq!(links(r#"{"Links":[{"url":"y"}]}"#), [pair("y", "http://a.org/b/c")]);
        // An object is not a list.
        assert_eq!(links(r#"{"Head":{"Link":{}},"Links":{"url":"x"}}"#), []);
        assert_eq!(links(r#"{"Head":{"Base":"https://z/\n"},"Links":[{"url":"y"}]}"#), [pair("y", "https://z/")]);
        for ignored in ["http://[\\/", "http:\\/\\/", "https://:80/x", "http:", "data:,x", "//[/"] {
            let html = format!(r#"{{"Head":{{"Base":"{ignored}"}},"Links":[{{"url":"y"}}]}}"#);
            assert_eq!(links(&html), [pair("y", "http://a.org/b/c")], "{ignored}");
        }
        assert_eq!(links("{}"), []);
        // The page has no scheme, and its base has one.
        let json = envelope(r#"{"HTML-Metadata":{"Head":{"Base":"https://z/"},"Links":[{"url":"y"}]}}"#);
        let mut reader = LinkReader::default();
        assert_eq!(reader.begin(json.as_bytes(), b"a.org"), Ok(true));
        assert_eq!(reader.next(json.as_bytes()).unwrap().base, b"https://z/");
    }

    /// The links of a page are not those of the page before it.
    #[test]
    fn pages_are_read_one_after_the_other() {
        let mut reader = LinkReader::default();
        for url in ["a", "b"] {
            let json = envelope(&format!(r#"{{"Headers":{{"Link":"<{url}>"}}}}"#));
            assert_eq!(reader.begin(json.as_bytes(), b"http://a.org/"), Ok(true));
            assert_eq!(reader.next(json.as_bytes()).map(|link| text(link.url)), Some(url.to_string()));
            assert!(reader.next(json.as_bytes()).is_none());
        }
    }

    #[test]
    fn long_bases_are_reported() {
        let json = |base_len: usize| {
            let html = format!(r#"{{"Head":{{"Base":"http://{}/"}},"Links":[{{"url":"y"}}]}}"#, "a".repeat(base_len));
            envelope(&format!(r#"{{"HTML-Metadata":{html}}}"#))
        };
        let mut reader = LinkReader::default();
        for (base_len, page) in [(MAX_BASE_LEN, Err(FaultKind::TooLong)), (MAX_BASE_LEN - 8, Ok(true))] {
            let json = json(base_len);
            assert_eq!(reader.begin(json.as_bytes(), b"http://a.org/"), page);
            assert_eq!(reader.next(json.as_bytes()).is_some(), page.is_ok());
        }
        let long_page = [&b"http://"[..], &[b'a'; MAX_BASE_LEN]].concat();
        assert_eq!(reader.begin(json(9).as_bytes(), &long_page), Ok(true));
        let links = envelope(r#"{"Headers":{"Link":"<y>"}}"#);
        assert_eq!(reader.begin(links.as_bytes(), &long_page[..MAX_BASE_LEN]), Ok(true));
        // The base of header fields is the page.
        for (headers, page) in [(r#"{"Link":"<y>"}"#, Err(FaultKind::TooLong)), (r#"{"Server":"x"}"#, Ok(true))] {
            let html = r#"{"Head":{"Base":"http://b/"},"Links":[{"url":"z"}]}"#;
            let json = envelope(&format!(r#"{{"Headers":{headers},"HTML-Metadata":{html}}}"#));
            assert_eq!(reader.begin(json.as_bytes(), &long_page), page);
            let urls: Vec<_> = std::iter::from_fn(|| reader.next(json.as_bytes()).map(|link| text(link.url))).collect();
            assert_eq!(urls, ["z"]);
        }
    }

    #[test]
    fn broken_json_is_reported() {
        let mut reader = LinkReader::default();
        assert_eq!(reader.begin(br#"{"Envelope":{"Payload"#, b"http://a.org/"), Err(FaultKind::NotOfFormat));
        assert!(reader.next(br#"{"Envelope":{"Payload"#).is_none());
    }

    /// `kind rel text url base`
    fn all(response: &str) -> Vec<String> {
        read(response, |link| [link.kind, link.rel, link.text, link.url, link.base].map(text).join("|"))
    }

    #[test]
    fn links_have_a_type_a_relation_and_a_text() {
        let response = r#"{"Headers":{"Location":"/no"},"HTML-Metadata":{"Head":{"Base":"/x/",
            "Link":[{"path":"LINK@/href","url":"l.css","rel":"stylesheet","type":"text/css"}],
            "Metas":[{"name":"description","content":"no"},{"property":"og:url","content":"http://a.org/o"},
                     {"http-equiv":"Refresh","content":"5; URL='r'"},{"http-equiv":"refresh","content":"5"},{"content":"no"}]},
            "Links":[{"path":"A@/href","url":"a","text":" T\u00e9\nxt ","target":"_blank"},
                     {"path":"IMG@/src","url":"i","alt":"Alt"},{"path":"FORM@/action","url":"f","method":"post"}]}}"#;
        let expected = [
            "LINK@/href|stylesheet||l.css|http://a.org/x/",
            "A@/href||T\u{e9} xt|a|http://a.org/x/",
            "IMG@/src||Alt|i|http://a.org/x/",
            "FORM@/action|||f|http://a.org/x/",
            "META@/content|og:url||http://a.org/o|http://a.org/x/",
            "META@/content|refresh||r|http://a.org/x/",
        ];
        assert_eq!(all(response), expected);
    }

    #[test]
    fn the_first_of_several_members_with_one_name_is_used() {
        let response = r#"{"HTML-Metadata":{"Links":[{"path":"A@/href","path":"no","url":"a","url":"no","rel":"r","rel":"no",
            "alt":"no","text":"T","text":"no","alt":"no"}],
            "Head":{"Metas":[{"property":"og:url","name":"twitter:url","content":"b","content":"no"}]}}}"#;
        // Of the names of a `meta` element, the last is used.
        let expected = ["A@/href|r|T|a|http://a.org/b/c", "META@/content|twitter:url||b|http://a.org/b/c"];
        assert_eq!(all(response), expected);
    }

    #[test]
    fn header_fields_are_links_of_the_page() {
        let response = r#"{"Response-Message":{"Status":"301","Version":"HTTP/1.1"},
            "Headers":{"Expires":"Thu, 01 Jan 1970","Vary":"<no>","location":["/new","/no"],"Link":["<\/a>; rel=\"preload\"","<b>;title=B, <c>"],"LINK":"<d>;rev=x","Refresh":"0; url=e"},
            "HTML-Metadata":{"Head":{"Base":"/x/"},"Links":[{"url":"z"}]}}"#;
        let expected = [
            "HTTP@/location|redirect||/new|http://a.org/b/c",
            "HTTP@/refresh|refresh||e|http://a.org/b/c",
            "HTTP@/link|preload||/a|http://a.org/b/c",
            "HTTP@/link||B|b|http://a.org/b/c",
            "HTTP@/link|||c|http://a.org/b/c",
            "HTTP@/link|rev:x||d|http://a.org/b/c",
            "|||z|http://a.org/x/",
        ];
        assert_eq!(all(response), expected);
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let read_text = |text: &str| {
            let response = format!(r#"{{"HTML-Metadata":{{"Links":[{{"url":"u","text":"{text}"}}]}}}}"#);
            all(&response)[0].split('|').nth(2).unwrap().to_string()
        };
        // Characters of four bytes: the length after the cut is 1024, 1021, 1022, 1023.
        for (prefix, count) in [("", 256), ("x", 255), ("xx", 255), ("xxx", 255)] {
            let characters = |count| prefix.to_string() + &"\u{1F600}".repeat(count);
            assert_eq!(read_text(&characters(1000)), characters(count));
        }
        let longest = "x".repeat(MAX_LABEL_LEN);
        assert_eq!((read_text(&longest), read_text(&format!("{longest}y"))), (longest.clone(), longest));
    }
}
