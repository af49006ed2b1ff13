//! Access logs of web servers, in the format that a format string of Apache's mod_log_config describes. The target of
//! the request, the base and the other fields are copied into a text of the decoder.
//!
//! `%r` or `%U%q` is the URL; `%v`, `%V` or `%{Host}i` is the host of its base, and `%p` its port; `%s` or `%>s` is the
//! status; `%t` is the time; the method is that of `%r` or `%m`. The scheme of the base is https if the port is 443, otherwise
//! http. Other directives extend to the next literal text. `\"`, `\\`, `\t`, `\xhh` and so on, with which servers escape, are
//! unescaped.
//!
//! The target is the path and query of the URL, even if it begins with `//` (RFC 9112 section 3.3): such a target gets
//! `/.` in front, which resolution removes again. `CONNECT` names the authority of the URL, and `OPTIONS *` has an
//! empty path.
//!
//! A line that does not match the format is a record with a fault, and so is a line with a malformed request; the URL
//! of the record is then the line. Blank lines are not records.

use super::buffer::{RecordBuffer, append_with, filled_lines};
use super::decoder::{FormatOptions, SourceHead, TextDecoder};
use super::fields::{FieldSet, FieldValues};
use super::http_method::carried_method;
use super::log_format::Directive;
pub use super::log_format::{LogFormat, LogFormatError};
use super::records::Records;
use super::time;
use crate::iri::FaultKind;
use crate::kernel::{Bitmaps, Span, parse_bytes};
use std::borrow::Cow;
use std::net::IpAddr;

/// The values of a line.
#[derive(Default)]
struct LogLine<'a> {
    url: Cow<'a, [u8]>,
    host: &'a [u8],
    /// Empty if the format has none.
    port: &'a [u8],
    method: &'a [u8],
    field: FieldValues,
}

impl<'a> LogLine<'a> {
    /// The parts of the base; empty without a host.
    fn base(&self) -> [&'a [u8]; 5] {
        if self.host.is_empty() {
            return [b""; 5];
        }
        let scheme: &[u8] = if self.port == b"443" { b"https://" } else { b"http://" };
        // The field Host of a request may have a port itself.
        let host_has_port = self.host.rsplit(|&byte| byte == b']').next().is_some_and(|end| end.contains(&b':'));
        let is_written = !host_has_port && !matches!(self.port, b"" | b"-" | b"80" | b"443");
        let (colon, port): (&[u8], &[u8]) = if is_written { (b":", self.port) } else { (b"", b"") };
        [scheme, self.host, colon, port, b"/"]
    }
}

/// Decoder of access logs.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, access_log::AccessLog}};
/// let line = b"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.0\" 200 2326";
/// let (mut log, mut bitmaps) = (AccessLog::default(), Bitmaps::default());
/// let records = log.decode(line, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(records.text), b"/a?b");
/// assert_eq!(records.fields.statuses, [Some(200)]);
/// ```
#[derive(Debug, Default)]
pub struct AccessLog {
    format: LogFormat,
    rows: RecordBuffer,
}

impl TextDecoder for AccessLog {
    type Settings = LogFormat;

    fn chosen_settings(options: &FormatOptions) -> LogFormat {
        options.log_format.clone()
    }

    /// A line in the common format, with or without the host and the port before it, whose time is valid.
    fn detect(head: &SourceHead<'_>) -> Option<LogFormat> {
        let line = head.first_record;
        let format = if begins_with_host(line) { LogFormat::with_host() } else { LogFormat::default() };
        parse_line(line, &format)?.field.time.map(|_| format)
    }

    fn set_settings(&mut self, format: &LogFormat) {
        self.format.clone_from(format);
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.columns.set_carry(carry);
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.rows.clear();
        for (at, line) in filled_lines(chunk) {
            self.rows.begin(offset + at as u64);
            self.decode_line(line);
        }
        self.rows.classified_records(bitmaps)
    }
}

impl AccessLog {
    fn decode_line(&mut self, line: &[u8]) {
        let parsed = parse_line(line, &self.format);
        let kind = match &parsed {
            None => Some(FaultKind::NotOfFormat),
            Some(parsed) if parsed.url.is_empty() => Some(FaultKind::NoUrl),
            Some(_) => None,
        };
        if let Some(kind) = kind {
            self.rows.refuse(kind);
        }
        let mut parsed = parsed.unwrap_or_default();
        let url = self.copy(&[if kind.is_some() { line } else { &parsed.url }]);
        let base = self.copy(&parsed.base());
        if self.rows.columns.carry().method {
            parsed.field.method = carried_method(parsed.method).map(|method| self.copy(&[&method]));
        }
        self.rows.columns.push_base(base);
        self.rows.columns.push(url, &parsed.field);
    }

    fn copy(&mut self, texts: &[&[u8]]) -> Span {
        append_with(&mut self.rows.text, |out| texts.iter().for_each(|text| out.extend_from_slice(text)))
    }
}

/// Whether a line begins with a host and a port, with at least three values between them and the time. In the common format, only
/// two values are between the client, which may have a port, and the time. A user whose name has spaces is more values; so the
/// address of a client follows a host that is an address.
fn begins_with_host(line: &[u8]) -> bool {
    let mut values = line.split(|&byte| byte == b' ');
    let first = values.next().unwrap_or_default();
    let host_len = if first.starts_with(b"[") { memchr::memchr(b']', first).map(|at| at + 1) } else { None };
    let Some(host_len) = host_len.or_else(|| memchr::memchr(b':', first)) else { return false };
    let (host, port) = first.split_at(host_len);
    let is_port = (2..=6).contains(&port.len()) && port[0] == b':' && port[1..].iter().all(u8::is_ascii_digit);
    let is_name = !host.starts_with(b"[") && host.iter().any(u8::is_ascii_alphabetic);
    let is_before_client = is_name || values.clone().next().is_some_and(is_address);
    is_port && is_before_client && values.position(|value| value.starts_with(b"[")) >= Some(3)
}

/// Whether a value is an IP address.
fn is_address(value: &[u8]) -> bool {
    std::str::from_utf8(value).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

fn parse_line<'a>(line: &'a [u8], format: &LogFormat) -> Option<LogLine<'a>> {
    let mut rest = line.strip_prefix(&format.prefix[..])?;
    let mut parsed = LogLine::default();
    for (i, (directive, literal)) in format.items.iter().enumerate() {
        let end = format.end_of(i);
        let is_quoted = end.first() == Some(&b'"');
        let is_before_time = || !literal.is_empty() && matches!(format.items.get(i + 1), Some((Directive::Time, _)));
        let len = match (directive, end) {
            // A time contains a space between its brackets.
            (Directive::Time, _) if rest.starts_with(b"[") => memchr::memchr(b']', rest)? + 1,
            // An IPv6 address contains colons between its brackets.
            (Directive::Host, _) if rest.starts_with(b"[") => memchr::memchr(b']', rest)? + 1,
            (_, b"") => rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len()),
            _ if is_before_time() && !is_quoted => find_literal_before_time(rest, end)?,
            _ => find_literal(rest, end, is_quoted)?,
        };
        let value = &rest[..len];
        rest = rest[len..].strip_prefix(&literal[..])?;
        match directive {
            Directive::Request => (parsed.method, parsed.url) = method_and_target(value),
            Directive::Method => parsed.method = value,
            Directive::Path | Directive::Query if value != b"-" => {
                parsed.url.to_mut().extend_from_slice(&unescape(value))
            }
            Directive::Host if value != b"-" => parsed.host = value,
            Directive::Port => parsed.port = value,
            Directive::Status => parsed.field.status = status(value)?,
            Directive::Time => parsed.field.time = time::from_log(value),
            _ => {}
        }
    }
    if parsed.url.starts_with(b"//") {
        parsed.url.to_mut().splice(..0, *b"/.");
    }
    Some(parsed)
}

/// The status; absent for `-`. Returns `None` if it is not a number: the line does not match the format.
fn status(value: &[u8]) -> Option<Option<i32>> {
    if value == b"-" { Some(None) } else { parse_bytes(value).map(Some) }
}

/// The offset of `literal` in `text`. If `is_quoted`, `text` is between quotes, and a backslash escapes the next byte.
fn find_literal(text: &[u8], literal: &[u8], is_quoted: bool) -> Option<usize> {
    match literal {
        [byte] if !is_quoted => return memchr::memchr(*byte, text),
        _ if !is_quoted => return memchr::memmem::find(text, literal),
        _ => {}
    }
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'\\', b'"', text.get(at..)?)?;
        match text[at] {
            b'\\' => at += 2,
            _ if text[at..].starts_with(literal) => return Some(at),
            _ => at += 1,
        }
    }
}

/// The offset of the first `literal` after which a time in brackets begins. The value before it, such as the name of a user,
/// may contain the literal. Without such a time, returns the offset of the first `literal`.
fn find_literal_before_time(text: &[u8], literal: &[u8]) -> Option<usize> {
    let time_after = |at: usize| text[at + literal.len()..].get(..time::LOG_TIME_LEN);
    let first = find_literal(text, literal, false)?;
    // Most lines have their time here, and it is parsed later.
    if time_after(first).is_some_and(|time| time.starts_with(b"[") && time.ends_with(b"]")) {
        return Some(first);
    }
    let is_before_time = |at: &usize| time_after(*at).and_then(time::from_log).is_some();
    memchr::memmem::find_iter(text, literal).find(is_before_time).or(Some(first))
}

/// The method of `GET target HTTP/1.1`, and the reference that it requests; the target may contain spaces. Both are empty if the
/// request is malformed.
fn method_and_target(request: &[u8]) -> (&[u8], Cow<'_, [u8]>) {
    let Some(space) = memchr::memchr(b' ', request) else { return (b"", b"".into()) };
    let (method, after_method) = (&request[..space], &request[space + 1..]);
    let mut spaces = memchr::memrchr_iter(b' ', after_method);
    let end = spaces.find(|&space| after_method[space..].starts_with(b" HTTP/")).unwrap_or(after_method.len());
    let target = match (method, unescape(&after_method[..end])) {
        (b"CONNECT", authority) => [b"http://", &*authority].concat().into(),
        (b"OPTIONS", target) if *target == *b"*" => b"/".into(),
        (_, target) => target,
    };
    (method, target)
}

fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return text.into() };
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        let (byte, len) = if byte == b'\\' { unescape_one(tail).unwrap_or((byte, 1)) } else { (byte, 1) };
        out.push(byte);
        rest = &rest[len..];
    }
    out.into()
}

/// The byte of the escape whose text after the backslash is `tail`, and the length of the escape.
fn unescape_one(tail: &[u8]) -> Option<(u8, usize)> {
    let hex = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let byte = match *tail {
        [b'x', high, low, ..] => return Some((hex(high)? << 4 | hex(low)?, 4)),
        [byte @ (b'"' | b'\\'), ..] => byte,
        [b'b', ..] => 8,
        [b't', ..] => b'\t',
        [b'n', ..] => b'\n',
        [b'v', ..] => 11,
        [b'r', ..] => b'\r',
        _ => return None,
    };
    Some((byte, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bstr::ByteSlice;

    type Row = (String, String, Option<i32>, Option<i64>, Option<FaultKind>);

    fn rows(format: &str, text: &str) -> Vec<Row> {
        let (mut log, mut bitmaps) = (AccessLog::default(), Bitmaps::default());
        log.set_settings(&LogFormat::parse(format).unwrap());
        let records = log.decode(text.as_bytes(), 0, &mut bitmaps);
        let (fields, show) = (&records.fields, |span| records.show(span));
        let row = |i: usize| {
            (show(records.urls[i]), show(records.bases[i]), fields.statuses[i], fields.times[i], records.fault(i))
        };
        (0..records.urls.len()).map(row).collect()
    }

    const LINE: &str = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a b?\"c\x41 HTTP/1.0" 404 -"#;
    const TIME: Option<i64> = Some(971_211_336_000);

    #[test]
    fn formats_by_name_and_by_string() {
        let want = ("/a b?\"cA".to_string(), String::new(), Some(404), TIME, None);
        assert_eq!(rows("common", LINE), std::slice::from_ref(&want));
        assert_eq!(rows("combined", &format!("{LINE} \"http://r/\" \"agent\"\r\n\n")), std::slice::from_ref(&want));
        let with_host = ("/a b?\"cA".to_string(), "http://h.example/".to_string(), Some(404), TIME, None);
        assert_eq!(rows("vhost_combined", &format!("h.example:80 {LINE} \"-\" \"x\"")), [with_host]);
        let own = rows("%{Host}i %U%q %s", "h /p ?q=1 200");
        assert_eq!(own, [("h /p ?q=1 200".into(), "".into(), None, None, Some(FaultKind::NotOfFormat))]);
        let own = rows("%{Host}i|%U|%q|%s", "h|/p|?q=1|200");
        assert_eq!(own, [("/p?q=1".into(), "http://h/".into(), Some(200), None, None)]);
        // The query follows the path directly.
        let want = [("/p?q=1".to_string(), "http://h/".to_string(), Some(200), None, None)];
        assert_eq!(rows("%v %U%q %s", "h /p?q=1 200"), want);
        assert_eq!(rows(r"%v\t%U%q\t%s", "h\t/p?q=1\t200"), want);
        assert_eq!(rows(r#"%v "%m %U%q" %s"#, r#"h "GET /p?q=1" 200"#), want);
        assert_eq!(rows("%s|%v|%U%q", "200|h|/p?q=1"), want);
        assert!(LogFormat::parse("%h %s").is_err());
        // As in the configuration of Apache.
        let line = r#"192.0.2.1	"GET /p HTTP/1.0"	200 a\b"#;
        let escaped = rows(r#"%h\t\"%r\"\t%>s a\\b"#, line);
        assert_eq!(escaped, [("/p".into(), "".into(), Some(200), None, None)]);
        assert_eq!(escaped, rows(r#"%h	"%r"	%>s a\b"#, line));
    }

    #[test]
    fn the_host_before_a_line_is_detected() {
        let detect = |line: &str| AccessLog::detect(&SourceHead::new(line.as_bytes()));
        let hosts = [
            "h.example:80",
            "localhost:8080",
            "xn--9ca.example:443",
            "my_host:80",
            "198.51.100.1:80",
            "[2001:db8::1]:443",
        ];
        for host in hosts {
            assert_eq!(detect(&format!("{host} {LINE}")), LogFormat::parse("vhost_combined").ok(), "{host}");
        }
        // Clients with a port, or whose addresses contain colons.
        for client in ["192.0.2.1", "192.0.2.1:80", "2001:db8::80", "client.example:80", "h.example"] {
            let line = LINE.replacen("192.0.2.1", client, 1);
            assert_eq!(detect(&line), Some(LogFormat::default()), "{client}");
        }
        // The name of the user has spaces.
        for client in ["192.0.2.1:80", "[2001:db8::1]:80"] {
            let line = LINE.replacen("192.0.2.1 - -", &format!("{client} - john doe"), 1);
            assert_eq!(detect(&line), Some(LogFormat::default()), "{client}");
        }
        assert_eq!(detect(&format!("h.example:80 {}", LINE.replace("Oct", "Otc"))), None);
        assert_eq!(detect("h.example:80"), None);
    }

    #[test]
    fn names_of_users_may_contain_spaces() {
        for user in ["-", "john doe", "john  [doe] x", " ", "", "a [10/Oct/2000 b"] {
            let line = LINE.replacen("- - [", &format!("- {user} ["), 1);
            let want = ("/a b?\"cA".to_string(), String::new(), Some(404), TIME, None);
            assert_eq!(rows("common", &line), [want], "{user}");
        }
        // Only a time counts.
        let other =
            r#"1 - john [10/Oct/2000:13:55:36.125 -0700] "GET / HTTP/1.1" 200 5 "-" "x [10/0ct/2000:13:55:36 -0700]""#;
        assert_eq!(rows("common", other), [("/".into(), "".into(), Some(200), None, None)]);
        // A value that is not before a time ends with the first literal.
        let rows = rows("%u %U %t", "john /x [10/Oct/2000:13:55:36 -0700]");
        assert_eq!(rows, [("/x".into(), "".into(), None, TIME, None)]);
    }

    #[test]
    fn hosts_on_other_ports_are_other_origins() {
        let base = |format: &str, line: &str| rows(format, line)[0].1.clone();
        for (port, want) in [("80", "http://h/"), ("443", "https://h/"), ("8080", "http://h:8080/"), ("-", "http://h/")]
        {
            assert_eq!(base("vhost_combined", &format!("h:{port} {LINE}")), want);
        }
        assert_eq!(base("%v %{local}p %U", "[::1] 8080 /"), "http://[::1]:8080/");
        assert_eq!(base("vhost_combined", &format!("[2001:db8::1]:443 {LINE}")), "https://[2001:db8::1]/");
        assert_eq!(base("vhost_combined", &format!("198.51.100.1:8080 {LINE}")), "http://198.51.100.1:8080/");
        assert_eq!(base("%v %{remote}p %U", "h 8080 /"), "http://h/");
        assert_eq!(base("%{Host}i %p %U", "h:81 8080 /"), "http://h:81/");
        assert_eq!(base("%p %U", "8080 /"), "");
    }

    #[test]
    fn targets_of_all_forms() {
        let cases: [(&str, &[u8]); 8] = [
            ("GET //favicon.ico HTTP/1.1", b"/.//favicon.ico"),
            ("GET http://a.org/b HTTP/1.1", b"http://a.org/b"),
            ("CONNECT a.org:443 HTTP/1.1", b"http://a.org:443"),
            ("OPTIONS * HTTP/1.1", b"/"),
            ("GET * HTTP/1.1", b"*"),
            (r"GET /a\tb\xC3\xbc\\ HTTP/1.1", b"/a\tb\xC3\xBC\\"),
            (r"GET /\x+f\xg0\x", br"/\x+f\xg0\x"),
            (r"GET \x2f/b", b"/.//b"),
        ];
        for (request, url) in cases {
            let line = format!("192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"{request}\" 200 1");
            let parsed = parse_line(line.as_bytes(), &LogFormat::default()).unwrap();
            assert_eq!(parsed.url.as_bstr(), url.as_bstr(), "{request}");
        }
    }

    #[test]
    fn methods_are_those_of_requests_that_are_not_usual() {
        let methods = |format: &str, text: &str| {
            let (mut log, mut bitmaps) = (AccessLog::default(), Bitmaps::default());
            log.set_settings(&LogFormat::parse(format).unwrap());
            log.set_carry(FieldSet::ALL);
            let records = log.decode(text.as_bytes(), 0, &mut bitmaps);
            let methods = records.fields.methods.iter();
            methods.map(|method| method.map(|method| records.show(method))).collect::<Vec<_>>()
        };
        let requests =
            ["POST /a b HTTP/1.1", "GET /", "head / HTTP/1.0", "propfind /", r"\x16\x03 /", "POST", "CONNECT a:443"];
        let lines = requests.map(|request| LINE.replace(r#"GET /a b?\"c\x41 HTTP/1.0"#, request)).join("\n");
        let expected = [Some("POST"), None, None, Some("PROPFIND"), None, None, Some("CONNECT")];
        assert_eq!(methods("common", &lines), expected.map(|method| method.map(str::to_string)));
        assert_eq!(methods("%m %U", "PUT /a\nGET /a"), [Some("PUT".to_string()), None]);
    }

    #[test]
    fn lines_that_do_not_match_have_a_fault() {
        let broken = "192.0.2.1 - - [x] \"-\" 408 -";
        assert_eq!(rows("common", broken), [(broken.into(), "".into(), Some(408), None, Some(FaultKind::NoUrl))]);
        for line in ["x", "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /", "a b c [d] \"GET / HTTP/1.0\" x 1"] {
            assert_eq!(rows("common", line)[0].4, Some(FaultKind::NotOfFormat), "{line}");
        }
    }
}
