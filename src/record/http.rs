//! The head of an HTTP response, as archives keep it: status, redirect, charset. In: bytes up to the blank line, or as
//! many as there are. Out: slices. Lines end in `LF` or `CR LF`; a line that begins with space continues the one before
//! (RFC 9112 section 5.2).

/// What a response's head says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: Option<i32>,
    /// `Location` of a 3xx response.
    pub redirect: Vec<u8>,
    /// `charset` of `Content-Type`.
    pub charset: Vec<u8>,
    /// `Content-Type` without parameters.
    pub mime: Vec<u8>,
}

impl Head {
    /// Reads a response's head; all of it is empty if `text` does not begin with `HTTP/`.
    ///
    /// ```
    /// use irikey::record::http::Head;
    /// let head = Head::read(b"HTTP/1.1 301 Moved\r\nlocation: /x y\r\nContent-Type: text/html; charset=\"UTF-8\"\r\n\r\n");
    /// assert_eq!(head, Head { status: Some(301), redirect: b"/x y".to_vec(), charset: b"UTF-8".to_vec(),
    ///     mime: b"text/html".to_vec() });
    /// ```
    pub fn read(text: &[u8]) -> Head {
        let mut head = Head::default();
        let (first, rest) = text.split_at(memchr::memchr(b'\n', text).map_or(text.len(), |at| at + 1));
        if !first.starts_with(b"HTTP/") && !first.starts_with(b"ICY ") {
            return head;
        }
        let mut words = first.split(|&byte| byte == b' ').skip(1).filter(|word| !word.is_empty());
        let code = words.next().and_then(|word| std::str::from_utf8(word.trim_ascii()).ok());
        head.status = code.and_then(|code| code.parse().ok());
        for_each_field(rest, |name, value| {
            if name.eq_ignore_ascii_case(b"location") && head.redirect.is_empty() {
                head.redirect = value;
            } else if name.eq_ignore_ascii_case(b"content-type") {
                if head.charset.is_empty() {
                    head.charset = charset(&value).to_vec();
                }
                if head.mime.is_empty() {
                    head.mime = without_parameters(&value).to_vec();
                }
            }
        });
        if !head.status.is_some_and(|status| (300..400).contains(&status)) {
            head.redirect.clear();
        }
        head
    }
}

/// Calls `field` with name and value of every field of `text`, up to a blank line; continued values are joined by a
/// space. Lines without a colon are passed over.
pub(super) fn for_each_field(text: &[u8], mut field: impl FnMut(&[u8], Vec<u8>)) {
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for line in text.split(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            break;
        }
        if line.starts_with(b" ") || line.starts_with(b"\t") {
            if let Some((_, value)) = &mut open {
                value.push(b' ');
                value.extend_from_slice(line.trim_ascii());
            }
            continue;
        }
        if let Some((name, value)) = open.take() {
            field(name, value);
        }
        open = memchr::memchr(b':', line).map(|at| (line[..at].trim_ascii(), line[at + 1..].trim_ascii().to_vec()));
    }
    if let Some((name, value)) = open {
        field(name, value);
    }
}

/// A media type alone.
pub(super) fn without_parameters(media_type: &[u8]) -> &[u8] {
    media_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii()
}

/// The `charset` parameter of a media type, without quotes; empty if there is none.
fn charset(media_type: &[u8]) -> &[u8] {
    for parameter in media_type.split(|&byte| byte == b';').skip(1) {
        if let Some((name, value)) =
            parameter.split_at_checked(parameter.iter().position(|&byte| byte == b'=').unwrap_or(0))
            && name.trim_ascii().eq_ignore_ascii_case(b"charset")
        {
            let value = value[1..].trim_ascii();
            return value
                .trim_ascii()
                .strip_prefix(b"\"")
                .map_or(value, |rest| rest.split(|&b| b == b'"').next().unwrap_or_default());
        }
    }
    b""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_sorts() {
        let head = |text: &str| Head::read(text.as_bytes());
        assert_eq!(
            head("HTTP/1.0 200 OK\nLocation: /x\nContent-type: text/html;charset='a'\n\nLocation: no").charset,
            b"'a'"
        );
        assert_eq!(head("HTTP/1.0 200 OK\nLocation: /x\n").redirect, b"");
        assert_eq!(head("HTTP/1.0 302\r\nLocation: /x\r\n y\r\nLocation: /z\r\n").redirect, b"/x y");
        assert_eq!(head("HTTP/1.0 302\r\n\r\nLocation: /x\r\n").redirect, b"");
        assert_eq!(head("HTTP/2  200\r\nContent-Type: text/html; x=y; CharSet = \"u-8\"; z\r\n").charset, b"u-8");
        for text in
            ["", "HTTP/", "HTTP/1.1", "HTTP/1.1 x", "GET / HTTP/1.1\r\nLocation: /x\r\n", "HTTP/1.1 302\n:\n=\n"]
        {
            assert_eq!(head(text).redirect, b"", "{text}");
        }
        assert_eq!(head("HTTP/1.1 200\nContent-Type: ;=;charset\n").charset, b"");
    }
}
