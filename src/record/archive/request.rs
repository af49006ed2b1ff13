//! Requests of responses: the method, and the body as a query, as indexes for replay write them.
//!
//! A response to a POST is found again by the URL with `__wb_method=POST` and the body appended as a query. How a body
//! becomes a query is that of pywb 2.10, whose lookups have to give the same text; cdxj-indexer differs in the values of JSON
//! that are not strings.
//!
//! Known differences from pywb, in JSON: if an object has several members with one name, pywb keeps the last value only, and all
//! are written here. If a member is called like the second value of another, such as `a.2_`, pywb may replace one of the two;
//! here both are written. JSON in UTF-16 or UTF-32 is not read here.

use super::form::{FormWriter, MAX_QUERY_LEN, cut_text};
use super::headers::{for_each_field, http_header_end};
use super::json_query::write_json;
use crate::iri::octets;
use crate::kernel::parse_digits;
use crate::record::buffer::without_cr;
use crate::record::http_method::carried_method;
use data_encoding::BASE64;

/// Longest content of a request that is read, in bytes. A longer body is read up to there.
pub(super) const MAX_REQUEST_LEN: u64 = 4 << 20;

/// Bytes of a body that are read if the header does not state how long it is.
const DEFAULT_BODY_LEN: usize = 8192;

/// What identifies a request besides its URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestQuery {
    /// In upper case; empty if requests of this method need no other key.
    pub(super) method: Vec<u8>,
    /// The body as a query, in UTF-8.
    pub(super) body: Vec<u8>,
}

impl RequestQuery {
    /// Reads the content of a request record.
    pub(super) fn parse(content: &[u8]) -> RequestQuery {
        let len = content.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let Some(method) = carried_method(&content[..len]) else { return RequestQuery::default() };
        let has_query = matches!(&method[..], b"POST" | b"PUT");
        let body = if has_query { RequestBody::of(content).map(|body| body.query()) } else { None };
        RequestQuery { method, body: body.unwrap_or_default() }
    }
}

/// The body of a request.
struct RequestBody<'a> {
    media_type: String,
    bytes: &'a [u8],
}

impl<'a> RequestBody<'a> {
    /// The body after the header of an HTTP request; `None` without one.
    fn of(content: &'a [u8]) -> Option<RequestBody<'a>> {
        let (header, body) = content.split_at(http_header_end(content)?);
        let (mut media_type, mut len) = (None, None);
        let fields_at = memchr::memchr(b'\n', header)? + 1;
        for_each_field(&header[fields_at..], |name, value| {
            if name.eq_ignore_ascii_case(b"content-type") {
                media_type.get_or_insert_with(|| String::from_utf8_lossy(&value).into_owned());
            } else if name.eq_ignore_ascii_case(b"content-length") {
                len.get_or_insert_with(|| parse_digits(&value, 10).and_then(|len| usize::try_from(len).ok()));
            }
        });
        let len = len.unwrap_or(Some(DEFAULT_BODY_LEN))?;
        let bytes = &body[..len.min(body.len())];
        (!bytes.is_empty()).then(|| RequestBody { media_type: media_type.unwrap_or_default(), bytes })
    }

    fn query(&self) -> Vec<u8> {
        let is = |name: &str| self.media_type.starts_with(name);
        if is("application/x-www-form-urlencoded") {
            self.form().unwrap_or_else(|| self.binary())
        } else if is("multipart/") {
            self.multipart().unwrap_or_else(|| self.binary())
        } else if is("application/json") {
            self.json().unwrap_or_default()
        } else if is("text/plain") {
            self.json().unwrap_or_else(|| self.binary())
        } else if is("application/x-amf") {
            // Calls of Flash, which is not replayed any more.
            Vec::new()
        } else {
            self.binary()
        }
    }

    /// A form with its escapes undone; `None` if it is not UTF-8.
    fn form(&self) -> Option<Vec<u8>> {
        std::str::from_utf8(self.bytes).ok()?;
        let bytes = octets(self.bytes).map(|octet| if octet == (b'+', false) { b' ' } else { octet.0 });
        // A character has at most four bytes.
        let text: Vec<u8> = bytes.take(4 * MAX_QUERY_LEN).collect();
        Some(cut_text(&String::from_utf8_lossy(&text)).as_bytes().to_vec())
    }

    fn json(&self) -> Option<Vec<u8>> {
        let mut form = FormWriter::default();
        write_json(self.bytes, &mut form)?;
        Some(form.finish())
    }

    /// Any bytes, in base64.
    fn binary(&self) -> Vec<u8> {
        // Three bytes give four characters.
        let bytes = &self.bytes[..self.bytes.len().min(MAX_QUERY_LEN)];
        let mut query = format!("__wb_post_data={}", BASE64.encode(bytes)).into_bytes();
        query.truncate(MAX_QUERY_LEN);
        query
    }

    /// The parts of a form (RFC 7578); `None` if the header names no boundary.
    fn multipart(&self) -> Option<Vec<u8>> {
        let boundary = parameter(&self.media_type, "boundary").filter(|boundary| !boundary.is_empty())?;
        let (delimiter, end) = (format!("--{boundary}").into_bytes(), format!("--{boundary}--").into_bytes());
        let mut form = FormWriter::default();
        let (mut at, mut part_at) = (0, None);
        for line in self.bytes.split_inclusive(|&byte| byte == b'\n') {
            let text = line.trim_ascii_end();
            if text == delimiter || text == end {
                if let Some(part_at) = part_at {
                    write_part(&self.bytes[part_at..at], &mut form);
                }
                part_at = Some(at + line.len());
            }
            if text == end || form.is_full() {
                break;
            }
            at += line.len();
        }
        Some(form.finish())
    }
}

/// Writes a part of a form, with the line end before the boundary.
fn write_part(part: &[u8], form: &mut FormWriter) {
    let (header, value) = part.split_at(http_header_end(part).unwrap_or(part.len()));
    let value = without_cr(value.strip_suffix(b"\n").unwrap_or(value));
    let (mut name, mut is_file) = (None, false);
    for_each_field(header, |field, disposition| {
        if field.eq_ignore_ascii_case(b"content-disposition") {
            let disposition = String::from_utf8_lossy(&disposition);
            name = parameter(&disposition, "name");
            is_file = parameter(&disposition, "filename").is_some();
        }
    });
    let name = name.unwrap_or_else(|| "None".to_string());
    match is_file {
        true => form.field(name.as_bytes(), value),
        false => form.field(name.as_bytes(), String::from_utf8_lossy(value).as_bytes()),
    }
}

/// The value of the last parameter with a name, without quotes and escapes. Parameters follow semicolons outside of quotes; those
/// without `=` are skipped.
fn parameter(field: &str, name: &str) -> Option<String> {
    let (mut is_quoted, mut before) = (false, ' ');
    let parts = field.split(move |c: char| {
        is_quoted ^= c == '"' && before != '\\';
        before = c;
        c == ';' && !is_quoted
    });
    let parameters = parts.skip(1).filter_map(|part| part.split_once('='));
    let (_, value) = parameters.filter(|(found, _)| found.trim().eq_ignore_ascii_case(name)).last()?;
    let value = value.trim();
    let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    Some(quoted.map_or_else(|| value.to_string(), |value| value.replace(r"\\", r"\").replace(r#"\""#, "\"")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::decode_escapes;
    use proptest::prelude::*;

    fn query_of(media_type: &str, body: &[u8]) -> String {
        let header =
            format!("POST /x HTTP/1.1\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n", body.len());
        let query = RequestQuery::parse(&[header.as_bytes(), body].concat());
        assert_eq!(query.method, b"POST");
        String::from_utf8(query.body).unwrap()
    }

    /// The expected queries are those of pywb 2.10.
    #[test]
    fn bodies_become_the_queries_of_pywb() {
        let form = "application/x-www-form-urlencoded";
        assert_eq!(query_of(form, b"a=1&b=%C3%A9+x&c=%26%zz%4"), "a=1&b=\u{e9} x&c=&%zz%4");
        assert_eq!(query_of(form, "\u{fc}=%FF%e2%82".as_bytes()), "\u{fc}=\u{fffd}\u{fffd}");
        assert_eq!(query_of(form, b"a=\xff"), "__wb_post_data=YT3/");
        assert_eq!(query_of("text/plain;charset=UTF-8", b"foo=bar"), "__wb_post_data=Zm9vPWJhcg==");
        assert_eq!((query_of("text/plain", br#"{"q":"s"}"#), query_of("text/plain", b"5")), ("q=s".into(), "".into()));
        assert_eq!(query_of("image/png", b"\x89PNG\r\n"), "__wb_post_data=iVBORw0K");
        assert_eq!((query_of("", b"x"), query_of("", b"")), ("__wb_post_data=eA==".into(), "".into()));
        // Another media type is not JSON, whatever the body is, and calls of Flash have no query.
        assert_eq!(query_of("text/html", br#"{"q":"s"}"#), "__wb_post_data=eyJxIjoicyJ9");
        assert_eq!(query_of("application/x-amf", b"x"), "");
    }

    #[test]
    fn json_becomes_the_query_of_pywb() {
        let json = |text: &str| query_of("application/json; charset=utf-8", text.as_bytes());
        let numbers = r#"{"a":1,"b":[1,"x y",{"a":true}],"c":{"d":null,"e":1.0,"f":0.00001,"g":1.5e-7,"h":-0.0,
            "i":123456789012345678901234567890,"j":1e22,"k":2.5, "l": 0.1 , "m":-0,"n":0.0001},"":7,
            "o":1e23,"p":-1.5E+16,"q":123456.5,"r":[NaN]}"#;
        let expected = "a=1&b=1&b.2_=x+y&a.2_=true&d=null&e=1&f=1e-05&g=1.5e-07&h=0&i=123456789012345678901234567890\
            &j=10000000000000000000000&k=2.5&l=0.1&m=0&n=0.0001&o=99999999999999991611392&p=-15000000000000000&q=123456.5\
            &r=nan";
        assert_eq!(json(numbers), expected);
        assert_eq!(json(r#"{"a":"\u00e9\ud83d\ude00\n","b":"\"\\/"}"#), "a=%C3%A9%F0%9F%98%80%0A&b=%22%5C%2F");
        assert_eq!((json("\u{feff}{\"a\": false}"), json(r#"["top", 3]"#)), ("a=false".into(), "".into()));
        #[rustfmt::skip]
        let malformed = [
            r#"{"a":1} x"#, r#"{"a":01}"#, r#"{"a":"\ud800"}"#, "{\"a\":\"\t\"}", "{\"a\":1}\n{\"a\":2}", r#"{"a":1"#,
            r#"{"a" 1}"#, r#"{"a":1,}"#, r#"{"a":"\x"}"#, r#"{"a":1.}"#, r#"{"a":1e}"#, r#"{"a":.5}"#, "[1,]", "{",
            "\"", "", r#"{"a":tru}"#, r#"{"a":1e999}"#, r#"{"a":-}"#, r#"{"a":-NaN}"#, r#"{"a":nan}"#, "[1}",
            r#"{"a":"\u12"}"#, r#"{"a":"\u1"}"#,
            r#"{"a":1.5x}"#, r#"{"a":1x}"#, "{\"a\":\"\\",
        ];
        for text in malformed {
            assert_eq!(json(text), "", "{text}");
        }
        assert_eq!(json("\n{\"a\" : 1 }\r\n\t "), "a=1");
        // Text that is not UTF-8 is not JSON, wherever it is.
        for text in
            [&b"{\"a\":\"\xff\"}"[..], b"{\"\xff\":1}", b"{\"a\":1\xff}", b"{\"a\":1}\xff", b"{\"a\":\"\xc3\\u00a9\"}"]
        {
            assert_eq!(query_of("application/json", text), "", "{text:?}");
        }
        let nested = |depth: usize| format!("{{\"a\":{}1{}}}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!((json(&nested(400)), json(&nested(100_000))), ("a=1".into(), "".into()));
    }

    #[test]
    fn forms_of_several_parts() {
        let body =
            b"--XX\r\nContent-Disposition: form-data; name=\"a b\"\r\n\r\n1 \xc3\xa9\r\n--XX\r\nContent-Disposition: \
            form-data; name=\"f\"; filename=\"x.bin\"\r\nContent-Type: a/b\r\n\r\n\xff\x00\r\n\r\n--XX--\r\nafter";
        assert_eq!(query_of("multipart/form-data; boundary=XX", body), "a+b=1+%C3%A9&f=%FF%00%0D%0A");
        let body = b"------X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n------X--\r\n";
        assert_eq!(query_of("multipart/form-data; charset=x; boundary=\"----X\"", body), "a=");
        assert_eq!(query_of("multipart/form-data", b"--XX\r\n"), "__wb_post_data=LS1YWA0K");
        // A parameter in quotes may contain semicolons; the form ends with its last delimiter.
        let body = b"--XX\r\nContent-Disposition: form-data; x=\"; name=no\"; name=\"a\"\r\n\r\n1\r\n--XX--\r\n\
            Content-Disposition: form-data; name=\"b\"\r\n\r\n2\r\n--XX--\r\n";
        assert_eq!(query_of("multipart/form-data; boundary=XX", body), "a=1");
    }

    /// The expected values are those of Python's `cgi.parse_header`.
    #[test]
    fn parameters_of_fields() {
        let name = |field: &str| parameter(field, "name");
        for (field, value) in [
            (r#"form-data; x; name="a""#, "a"),
            (r#"form-data; name="a\"b;c""#, r#"a"b;c"#),
            (r#"form-data; name="a\\b""#, r"a\b"),
            (r#"form-data;NAME = a b ;x=y"#, "a b"),
            (r#"form-data; name="a"; name="b""#, "b"),
            (r#"form-data; name="a"b"#, r#""a"b"#),
            (r#"form-data; name=a; x="; name=b"#, "a"),
            (r#"form-data; name="""#, ""),
            (r#"form-data; name=""#, "\""),
        ] {
            assert_eq!(name(field).as_deref(), Some(value), "{field}");
        }
        assert_eq!((name("name=a"), name(r#"x; y="; name=a"#), name("x; name")), (None, None, None));
    }

    #[test]
    fn queries_have_at_most_4096_characters() {
        let of = |media_type, body: &[u8]| query_of(media_type, body).chars().count();
        assert_eq!(of("application/json", format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(5000)).as_bytes()), 4096);
        assert_eq!(of("application/x-www-form-urlencoded", "\u{e9}".repeat(5000).as_bytes()), 4096);
        assert_eq!(of("application/octet-stream", &[0; 5000]), 4096);
        let broken = format!(r#"{{"a":"{}","b":1"#, "x".repeat(5000));
        assert_eq!(query_of("application/json", broken.as_bytes()), "");
    }

    #[test]
    fn methods_without_a_body_and_malformed_headers() {
        let of = |text: &str| {
            let RequestQuery { method, body } = RequestQuery::parse(text.as_bytes());
            (String::from_utf8(method).unwrap(), String::from_utf8(body).unwrap())
        };
        assert_eq!((of("GET / HTTP/1.1\r\n\r\nx"), of("head /")), Default::default());
        assert_eq!(of("DELETE / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"), ("DELETE".into(), "".into()));
        assert_eq!(of("put / HTTP/1.1\nContent-Type: text/x\n\nabc").1, "__wb_post_data=YWJj");
        assert_eq!(of("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nabc").1, "__wb_post_data=YWI=");
        for text in [
            "POST / HTTP/1.1\r\nContent-Length: x\r\n\r\nabc",
            "POST / HTTP/1.1\r\nContent-Length: +2\r\n\r\nabc",
            "POST / HTTP/1.1\r\nContent-Length: 9",
            "POST",
            "POST\n\n",
        ] {
            assert_eq!(of(text), ("POST".into(), "".into()), "{text}");
        }
        assert_eq!(of(""), Default::default());
    }

    proptest! {
        /// Nearly every case is JSON, or JSON with one wrong byte.
        #[test]
        fn json_is_what_another_parser_accepts(
            parts in prop::collection::vec(prop::sample::select(&[
                "{", "}", "[", "]", ",", ":", "\"a\"", "\"a\\n\\u00e9\"", "\"\\ud83d\\ude00\"", "1", "-0", "0.5", "1e-7", "01",
                "true", "null", " ", "\"\\ud800\"", "\"b\":2", "{\"c\":[1,{}]}", "\u{e9}", "\\", "-",
            ][..]), 0..9),
            is_closed in any::<bool>(),
        ) {
            let text = parts.concat();
            let text = if is_closed { format!("[{}]", parts.join(",")) } else { text };
            let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(write_json(text.as_bytes(), &mut FormWriter::default()).is_some(), is_json, "{}", text);
        }

        #[test]
        fn any_request_has_a_short_query(
            method in "POST|PUT|[A-Z]{0,5}",
            media_type in "application/json|application/x-www-form-urlencoded|application/octet-stream|text/plain|multipart/form-data; boundary=X|[!-~]{0,30}",
            text in "(\\{\"a\":1|,\"b\":\"é\"|\\}|a=%C3%A9|%2B|%FF|&|\\+|%|--X\r\n|\r\n\r\n|name=\"n\"|\\PC){0,9}",
            noise in prop::option::of(any::<u8>()),
            count in prop_oneof![Just(1), 0..3000_usize],
        ) {
            let body = [text.repeat(count).as_bytes(), noise.as_slice()].concat();
            let header = format!("{method} / HTTP/1.1\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n", body.len());
            let query = RequestQuery::parse(&[header.as_bytes(), &body].concat());
            let query = String::from_utf8(query.body).unwrap();
            prop_assert!(query.chars().count() <= MAX_QUERY_LEN);
            let has_body = matches!(&*method, "POST" | "PUT") && !body.is_empty();
            let binary = format!("__wb_post_data={}", BASE64.encode(&body));
            let whole = match &*media_type {
                _ if !has_body => String::new(),
                "application/octet-stream" => binary,
                "application/x-www-form-urlencoded" => std::str::from_utf8(&body).map_or(binary, |body| {
                    String::from_utf8_lossy(&decode_escapes(body.replace('+', " ").as_bytes())).into_owned()
                }),
                _ => return Ok(()),
            };
            prop_assert_eq!(query, whole.chars().take(MAX_QUERY_LEN).collect::<String>());
        }
    }
}
