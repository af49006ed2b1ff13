//! Headers of records in archives: the named fields of WARC (ISO 28500), the columns of ARC, and the HTTP header of a
//! response in either.

use crate::kernel::{parse_bytes, parse_digits, strip_prefix_ignoring_case};
use crate::record::buffer::without_cr;
use crate::record::json::{JsonElements, JsonValue, at_path};
use crate::record::media_type;
use bstr::ByteSlice;
use std::borrow::Cow;
use std::net::IpAddr;

/// The HTTP header of a response is read up to this many bytes of the content.
pub(super) const MAX_HTTP_LEN: u64 = 256 << 10;

/// The fields of a WARC header that are used.
#[derive(Default)]
pub(super) struct WarcHeader<'a> {
    /// In lower case.
    pub(super) record_type: Cow<'a, [u8]>,
    pub(super) target: Cow<'a, [u8]>,
    pub(super) date: Cow<'a, [u8]>,
    pub(super) digest: Cow<'a, [u8]>,
    pub(super) truncated: Cow<'a, [u8]>,
    pub(super) id: Cow<'a, [u8]>,
    /// Identifiers of records that belong to the same exchange, with a space between them.
    pub(super) concurrent_to: Cow<'a, [u8]>,
    /// Media type as the crawler detected it.
    pub(super) payload_type: Cow<'a, [u8]>,
    /// Media type with parameters.
    pub(super) content_type: Cow<'a, [u8]>,
    /// `None` if it is absent or not a number.
    pub(super) content_len: Option<u64>,
}

impl<'a> WarcHeader<'a> {
    /// Parses a whole header, version line included. Of several fields with one name, the last is used.
    pub(super) fn parse(header: &'a [u8]) -> WarcHeader<'a> {
        let mut fields = WarcHeader::default();
        let after_version = memchr::memchr(b'\n', header).map_or(header.len(), |at| at + 1);
        for_each_field(&header[after_version..], |name, value| {
            let slot = match name.len() {
                9 if name.eq_ignore_ascii_case(b"warc-type") => &mut fields.record_type,
                9 if name.eq_ignore_ascii_case(b"warc-date") => &mut fields.date,
                12 if name.eq_ignore_ascii_case(b"content-type") => &mut fields.content_type,
                14 if name.eq_ignore_ascii_case(b"warc-record-id") => &mut fields.id,
                14 if name.eq_ignore_ascii_case(b"warc-truncated") => &mut fields.truncated,
                15 if name.eq_ignore_ascii_case(b"warc-target-uri") => &mut fields.target,
                19 if name.eq_ignore_ascii_case(b"warc-payload-digest") => &mut fields.digest,
                18 if name.eq_ignore_ascii_case(b"warc-concurrent-to") => {
                    append_word(&mut fields.concurrent_to, value);
                    return;
                }
                28 if name.eq_ignore_ascii_case(b"warc-identified-payload-type") => &mut fields.payload_type,
                14 if name.eq_ignore_ascii_case(b"content-length") => {
                    fields.content_len = parse_digits(&value, 10);
                    return;
                }
                _ => return,
            };
            *slot = value;
        });
        if fields.record_type.iter().any(u8::is_ascii_uppercase) {
            fields.record_type.to_mut().make_ascii_lowercase();
        }
        fields
    }
}

/// Whether `line` is `WARC/` and a version. Some programs write it in lower case.
pub(super) fn is_version(line: &[u8]) -> bool {
    strip_prefix_ignoring_case(line, b"WARC/").is_some_and(|version| version.first().is_some_and(u8::is_ascii_digit))
}

/// Whether `line` begins a record.
pub(super) fn is_header(line: &[u8]) -> bool {
    is_version(line) || ArcHeader::parse(line).is_some()
}

/// Removes `<` and `>` around a URI, which wget writes as the first edition of the standard demands; returns whether they
/// were there.
pub(super) fn without_brackets(uri: &[u8]) -> (&[u8], bool) {
    match uri.strip_prefix(b"<").and_then(|rest| rest.strip_suffix(b">")) {
        Some(inner) => (inner.trim_ascii(), true),
        None => (uri, false),
    }
}

/// Appends a value of a field that may be repeated, after a space.
fn append_word<'a>(values: &mut Cow<'a, [u8]>, value: Cow<'a, [u8]>) {
    if values.is_empty() {
        *values = value;
    } else {
        values.to_mut().push(b' ');
        values.to_mut().extend_from_slice(&value);
    }
}

/// Where the header of an HTTP message ends: after its first blank line.
pub(super) fn http_header_end(text: &[u8]) -> Option<usize> {
    match text {
        [b'\n', ..] => Some(1),
        [b'\r', b'\n', ..] => Some(2),
        _ => blank_line_end(text),
    }
}

/// Where the first blank line after another line ends.
pub(super) fn blank_line_end(text: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', text).find_map(|at| match &text[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

/// What a metadata record of Common Crawl states about the response before it.
#[derive(Debug, Default)]
pub(super) struct Detected {
    pub(super) charset: Vec<u8>,
    /// Codes of ISO 639-3, separated by commas.
    pub(super) languages: Vec<u8>,
}

impl Detected {
    /// Parses the fields `charset-detected` and `languages-cld2`.
    pub(super) fn parse(content: &[u8]) -> Detected {
        let mut detected = Detected::default();
        for_each_field(content, |name, value| {
            if name.eq_ignore_ascii_case(b"charset-detected") {
                detected.charset = value.into_owned();
            } else if name.eq_ignore_ascii_case(b"languages-cld2") {
                detected.languages = language_codes(&value);
            }
        });
        detected
    }
}

/// The codes in `{"languages": [{"code-iso-639-3": "spa"}, ...]}`, which is the order of the share of the text.
fn language_codes(json: &[u8]) -> Vec<u8> {
    let Some(languages) = at_path(json, &["languages"]).and_then(JsonValue::nested) else { return Vec::new() };
    let codes = JsonElements::new(languages)
        .filter_map(|language| at_path(language.nested()?, &["code-iso-639-3"]).and_then(JsonValue::text));
    codes.collect::<Vec<_>>().join(&b","[..])
}

/// The header of an ARC record: `URL IP date type length`, or with five more columns before the length.
#[derive(Debug)]
pub(super) struct ArcHeader<'a> {
    pub(super) url: &'a [u8],
    pub(super) date: &'a [u8],
    /// Empty if the line has none, as in `redirect`.
    pub(super) mime: &'a [u8],
    pub(super) status: Option<i32>,
    pub(super) redirect: &'a [u8],
    /// `None` if the line states -1: the program that wrote it did not know the length.
    pub(super) content_len: Option<u64>,
}

impl<'a> ArcHeader<'a> {
    /// Parses a line from its end, so that the URL may contain spaces.
    pub(super) fn parse(line: &'a [u8]) -> Option<ArcHeader<'a>> {
        let line = line.trim_ascii_end();
        let mut words = line.rsplitn(11, |&byte| byte == b' ');
        let length = words.next()?;
        let content_len = match length {
            b"-1" => None,
            digits => Some(parse_digits(digits, 10)?),
        };
        let rest: [&[u8]; 10] = std::array::from_fn(|_| words.next().unwrap_or_default());
        let date_at = arc_date_at(&rest)?;
        // Before the date are the address and the URL.
        let after_url: usize = rest[..date_at + 2].iter().map(|word| word.len() + 1).sum();
        let url = line.get(..line.len().checked_sub(after_url + length.len() + 1)?)?;
        let optional = |at: usize| Some(rest[at]).filter(|word| date_at == 6 && *word != b"-");
        let has_scheme = memchr::memchr(b':', url).is_some_and(|at| at > 0);
        has_scheme.then(|| ArcHeader {
            url,
            date: rest[date_at],
            mime: Some(rest[date_at - 1]).filter(|word| !matches!(*word, b"-" | b"no-type")).unwrap_or_default(),
            status: optional(4).and_then(parse_bytes),
            redirect: optional(2).unwrap_or_default(),
            content_len,
        })
    }
}

/// Where the date of an ARC header is among `words`, which are counted from the length backwards: before the type, or before
/// five more columns. The offset among these columns may look like a date, so a date after an address is preferred. Without
/// an address, a header of more columns is more likely than a URL with a date among its spaces.
fn arc_date_at(words: &[&[u8]; 10]) -> Option<usize> {
    let is_date = |at: &usize| is_arc_date(words[*at]);
    let follows_address = |at: &usize| words[at + 1].to_str().is_ok_and(|word| word.parse::<IpAddr>().is_ok());
    let after_address = [1, 6].into_iter().filter(is_date).find(follows_address);
    after_address.or_else(|| [6, 1].into_iter().find(is_date))
}

/// The schemes of the URLs in ARC files: those that crawlers fetch, and that of the first record.
const ARC_SCHEMES: [&[u8]; 6] = [b"http:", b"https:", b"dns:", b"ftp:", b"whois:", b"filedesc:"];

/// Whether `line`, whose end is missing, may be the beginning of the header of an ARC record.
pub(super) fn may_begin_arc_header(line: &[u8]) -> bool {
    ARC_SCHEMES.iter().any(|scheme| scheme.starts_with(line) || line.starts_with(scheme))
}

/// A date has eight digits, and may have hours, minutes and seconds.
fn is_arc_date(word: &[u8]) -> bool {
    matches!(word.len(), 8 | 10 | 12 | 14) && word.iter().all(u8::is_ascii_digit)
}

/// The status of an HTTP response, if it can be read, and the text after its first line. `None` if `text` does not begin
/// with `HTTP/` or `ICY `.
pub(super) fn response_status(text: &[u8]) -> Option<(Option<i32>, &[u8])> {
    let (first, rest) = text.split_at(memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1));
    if !first.starts_with(b"HTTP/") && !first.starts_with(b"ICY ") {
        return None;
    }
    let mut words = first.split(|&byte| byte == b' ').skip(1).filter(|word| !word.is_empty());
    Some((words.next().and_then(|word| parse_bytes(word.trim_ascii())), rest))
}

/// The fields of an HTTP response header that are used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResponseHeader {
    pub(super) status: Option<i32>,
    /// `Location` of a 3xx response.
    pub(super) redirect: Vec<u8>,
    /// `charset` of `Content-Type`.
    pub(super) charset: Vec<u8>,
    /// `Content-Type` without parameters.
    pub(super) mime: Vec<u8>,
}

impl ResponseHeader {
    /// Parses a header up to its blank line or as far as it goes; nothing if `text` does not begin with `HTTP/` or `ICY `.
    /// Of several fields with one name, the first that has a value is used.
    pub(super) fn parse(text: &[u8]) -> ResponseHeader {
        let Some((status, rest)) = response_status(text) else { return ResponseHeader::default() };
        let mut header = ResponseHeader { status, ..ResponseHeader::default() };
        for_each_field(rest, |name, value| header.set(name, value));
        header
    }

    /// Takes a field, if it is used and the first of its name that has a value.
    pub(super) fn set(&mut self, name: &[u8], value: Cow<'_, [u8]>) {
        if name.eq_ignore_ascii_case(b"location") {
            let is_redirect = self.status.is_some_and(|status| (300..400).contains(&status));
            if is_redirect && self.redirect.is_empty() {
                self.redirect = value.into_owned();
            }
        } else if name.eq_ignore_ascii_case(b"content-type") && self.charset.is_empty() && self.mime.is_empty() {
            self.charset = media_type::charset(&value).to_vec();
            self.mime = media_type::without_parameters(&value).to_vec();
        }
    }
}

/// Calls `field` with the name and value of each field of `text`, up to a blank line. Lines end in `LF` or `CR LF`. A
/// line that begins with white space continues the value before it (RFC 9112 section 5.2) and is joined to it by a
/// space, unless that value is empty. Lines without a colon are skipped.
pub(super) fn for_each_field<'a>(text: &'a [u8], mut field: impl FnMut(&'a [u8], Cow<'a, [u8]>)) {
    let mut open: Option<(&[u8], Cow<'_, [u8]>)> = None;
    for line in text.split(|&byte| byte == b'\n') {
        let line = without_cr(line);
        if line.is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if let Some((_, value)) = &mut open {
                let value = value.to_mut();
                if !value.is_empty() {
                    value.push(b' ');
                }
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        if let Some((name, value)) = open.take() {
            field(name, value);
        }
        open = memchr::memchr(b':', line).map(|at| (line[..at].trim_ascii(), line[at + 1..].trim_ascii().into()));
    }
    if let Some((name, value)) = open {
        field(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_digits_only() {
        let len =
            |text: &str| WarcHeader::parse(format!("WARC/1.0\r\nContent-Length: {text}\r\n").as_bytes()).content_len;
        assert_eq!([len("5"), len("005"), len("+5"), len("-5"), len("")], [Some(5), Some(5), None, None, None]);
        assert!(ArcHeader::parse(b"http://a/ 192.0.2.1 20140216050221 a/b +7").is_none());
    }

    #[test]
    fn an_arc_header_without_all_its_columns_is_refused() {
        let header =
            |line: &str| ArcHeader::parse(line.as_bytes()).map(|header| (header.url.to_vec(), header.content_len));
        assert_eq!(header("http://a/ 192.0.2.1 20140216050221 a/b 7"), Some((b"http://a/".to_vec(), Some(7))));
        assert_eq!(header("http://a/ 192.0.2.1 201402160502 a/b -1\r\n"), Some((b"http://a/".to_vec(), None)));
        for line in
            ["20140216050221 a/b 7", "1 20140216050221 a/b 7", "a/b 7", "7", "", ":a 192.0.2.1 20140216050221 a/b 7"]
        {
            assert_eq!(header(line), None, "{line}");
        }
    }

    #[test]
    fn an_offset_in_an_arc_header_is_not_a_date() {
        let header = |line: &str| {
            let header = ArcHeader::parse(line.as_bytes()).unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(header.url), text(header.date), header.status)
        };
        let date = "20010424210551";
        let offsets = ["209", "1234567", "12345678", "123456789", "1234567890", "123456789012", "12345678901234", "-"];
        for address in ["192.0.2.1", "0.0.0.0", "2001:db8::1", "-", "a.example"] {
            let [plain, spaces, dates] = ["http://a/", "http://a/b c", "http://a/ 20010101 d"].map(String::from);
            for url in [plain, spaces, dates] {
                let one = format!("{url} {address} {date} text/html 7");
                assert_eq!(header(&one), (url.clone(), date.into(), None), "{one}");
                for (offset, location) in offsets.iter().flat_map(|offset| [(offset, "-"), (offset, "http://c/")]) {
                    let two = format!("{url} {address} {date} text/html 200 fac0 {location} {offset} x.arc 7");
                    assert_eq!(header(&two), (url.clone(), date.into(), Some(200)), "{two}");
                }
            }
        }
    }

    #[test]
    fn http_headers_are_parsed() {
        let header = |text: &str| ResponseHeader::parse(text.as_bytes());
        let text = "HTTP/1.1 301 Moved\r\nlocation: /x y\r\nContent-Type: text/html; charset=\"UTF-8\"\r\n\r\n";
        let (redirect, charset, mime) = (b"/x y".to_vec(), b"UTF-8".to_vec(), b"text/html".to_vec());
        assert_eq!(header(text), ResponseHeader { status: Some(301), redirect, charset, mime });
        let text = "HTTP/1.0 200 OK\nLocation: /x\nContent-type: text/html;charset='a'\n\nLocation: no";
        assert_eq!(header(text).charset, b"'a'");
        assert_eq!(header("HTTP/1.0 200 OK\nLocation: /x\n").redirect, b"");
        assert_eq!(header("HTTP/1.0 302\r\nLocation: /x\r\n y\r\nLocation: /z\r\n").redirect, b"/x y");
        assert_eq!(header("HTTP/1.0 302\r\n\r\nLocation: /x\r\n").redirect, b"");
        assert_eq!(header("HTTP/2  200\r\nContent-Type: text/html; x=y; CharSet = \"u-8\"; z\r\n").charset, b"u-8");
        for text in
            ["", "HTTP/", "HTTP/1.1", "HTTP/1.1 x", "GET / HTTP/1.1\r\nLocation: /x\r\n", "HTTP/1.1 302\n:\n=\n"]
        {
            assert_eq!(header(text).redirect, b"", "{text}");
        }
        assert_eq!(header("HTTP/1.1 200\nContent-Type: ;=;charset\n").charset, b"");
        // Fields of other names have no media type, and the first field is used.
        let text = "HTTP/1.1 200\nServer: x/y; charset=z\nContent-Type: a/b; charset=c\nContent-Type: d/e; charset=f\n";
        assert_eq!((&header(text).mime[..], &header(text).charset[..]), (&b"a/b"[..], &b"c"[..]));
        for first in ["a/b", "; charset=c"] {
            let one = format!("HTTP/1.1 200\nContent-Type: {first}\n");
            assert_eq!(header(&format!("{one}Content-Type: d/e; charset=f\n")), header(&one), "{first}");
        }
    }

    #[test]
    fn fields_of_warc_headers_are_found_by_their_whole_names() {
        let header = |fields: &str| format!("WARC/1.1\r\n{fields}\r\n");
        #[rustfmt::skip]
        let names = [
            "warc-type", "WARC-Date", "Content-Type", "WARC-Record-ID", "WARC-Truncated", "WARC-Target-URI",
            "WARC-Payload-Digest", "WARC-Concurrent-To", "WARC-Identified-Payload-Type", "CONTENT-LENGTH",
        ];
        let all = |value: &str, len: Option<u64>, header: &WarcHeader<'_>| {
            let WarcHeader { record_type, date, content_type, id, truncated, .. } = header;
            let WarcHeader { target, digest, concurrent_to, payload_type, content_len, .. } = header;
            let texts = [record_type, date, content_type, id, truncated, target, digest, concurrent_to, payload_type];
            *content_len == len && texts.into_iter().all(|text| **text == *value.as_bytes())
        };
        let text = header(&names.map(|name| format!("{name}: 7\r\n")).concat());
        assert!(all("7", Some(7), &WarcHeader::parse(text.as_bytes())));
        // Other names of the same lengths.
        let text = header(&names.map(|name| format!("x{}: 7\r\n", &name[1..])).concat());
        assert!(all("", None, &WarcHeader::parse(text.as_bytes())));
        let text = header(
            "WARC-Type: Response\nWARC-Concurrent-To: <a>\nwarc-concurrent-to:<b>\nWARC-Date: 1\nWARC-Date: 2\n",
        );
        let parsed = WarcHeader::parse(text.as_bytes());
        assert_eq!(
            (&parsed.record_type[..], &parsed.concurrent_to[..], &parsed.date[..]),
            (&b"response"[..], &b"<a> <b>"[..], &b"2"[..])
        );
    }

    #[test]
    fn the_header_of_a_message_ends_with_its_first_blank_line() {
        for (text, end) in [
            ("\nbody\n\n", Some(1)),
            ("\r\nbody\n\n", Some(2)),
            ("a\n\nbody\n\n", Some(3)),
            ("a\r\n\r\nbody", Some(5)),
            ("a\r\nb\n\r\n", Some(7)),
            ("a\nb\n", None),
            ("\r", None),
            ("", None),
        ] {
            assert_eq!(http_header_end(text.as_bytes()), end, "{text:?}");
        }
    }

    #[test]
    fn fields_continue_on_lines_that_begin_with_white_space() {
        let mut fields = Vec::new();
        let text = b" x\r\na:\r\n b\r\n\tc \r\nno colon\r\n d\r\ne: f\n\tg: h\nI :j\n\nk: l\n";
        for_each_field(text, |name, value| {
            fields.push((String::from_utf8_lossy(name).into_owned(), String::from_utf8_lossy(&value).into_owned()));
        });
        let expected = [("a", "b c"), ("e", "f g: h"), ("I", "j")];
        assert_eq!(fields, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    }
}
