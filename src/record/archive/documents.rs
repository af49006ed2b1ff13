//! Documents of archives: [`ArchivedDocument`] is a capture with its content, [`HttpDocument`] the parts of an HTTP response.

use super::headers::{MAX_HTTP_LEN, ResponseHeader, blank_line_end, for_each_field, response_status};

/// The kinds of records that hold documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    /// A `response`, or a record of an ARC: mostly an HTTP response.
    #[default]
    Response,
    /// A `revisit`: the content was captured before.
    Revisit,
    /// A `resource` or a `conversion`: the content itself.
    Resource,
}

/// Whether the content of a record is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ContentState {
    /// All of it.
    #[default]
    Whole,
    /// It is longer than allowed, and was not read.
    TooLong,
    /// The header of its record is longer than [`super::MAX_HEADER_LEN`], and nothing was read.
    LongHeader,
    /// The archive ends within it, and it was not read.
    Truncated,
}

/// A capture of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArchivedDocument {
    pub(crate) kind: DocumentKind,
    /// Its address; empty if the record has none.
    pub(crate) url: Vec<u8>,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub(crate) time: Option<i64>,
    /// Byte of the decompressed archive at which the record begins.
    pub(crate) offset: u64,
    /// Media type and charset that the header of the record states. For an HTTP response, those of its own header are used
    /// instead.
    pub(crate) mime: Vec<u8>,
    pub(crate) charset: Vec<u8>,
    /// The digest that the record states; empty if it states none.
    pub(crate) digest: Vec<u8>,
    pub(crate) state: ContentState,
    /// The content, HTTP header included.
    pub(crate) content: Vec<u8>,
}

/// The header of an HTTP response as far as it matters for links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpDocument {
    pub(crate) status: Option<i32>,
    /// `Content-Type` without parameters, and its `charset`.
    pub(crate) mime: Vec<u8>,
    pub(crate) charset: Vec<u8>,
    /// `Content-Encoding` and `Transfer-Encoding`: names separated by commas, in the order in which they were applied.
    pub(crate) content_encoding: Vec<u8>,
    pub(crate) transfer_encoding: Vec<u8>,
    /// The first `Location` of a redirect, and the first `Refresh`; empty if there are none.
    pub(crate) location: Vec<u8>,
    pub(crate) refresh: Vec<u8>,
    /// All `Link` fields, joined by commas.
    pub(crate) links: Vec<u8>,
    /// Where the body begins.
    pub(crate) body_at: usize,
}

impl HttpDocument {
    /// Parses the header of a response; `None` if `content` does not begin with one.
    pub(crate) fn parse(content: &[u8]) -> Option<HttpDocument> {
        let limited = &content[..content.len().min(MAX_HTTP_LEN as usize)];
        let (status, fields) = response_status(limited)?;
        let body_at = blank_line_end(limited).unwrap_or(limited.len());
        let (mut header, mut document) =
            (ResponseHeader { status, ..ResponseHeader::default() }, HttpDocument::default());
        for_each_field(fields, |name, value| match name.to_ascii_lowercase().as_slice() {
            b"content-encoding" => append(&mut document.content_encoding, &value),
            b"transfer-encoding" => append(&mut document.transfer_encoding, &value),
            b"link" => append(&mut document.links, &value),
            b"refresh" if document.refresh.is_empty() => document.refresh = value.into_owned(),
            _ => header.set(name, value),
        });
        let ResponseHeader { redirect: location, charset, mime, .. } = header;
        Some(HttpDocument { status, mime, charset, location, body_at, ..document })
    }

    /// Whether the response redirects to `location`.
    pub(crate) fn is_redirect(&self) -> bool {
        !self.location.is_empty()
    }
}

/// Appends a value of a field that may be repeated, after a comma.
fn append(values: &mut Vec<u8>, value: &[u8]) {
    if !values.is_empty() {
        values.extend_from_slice(b", ");
    }
    values.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_responses_are_parsed() {
        let content = b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=KOI8-R\r\nLink: <a>\r\nLINK: <b>\r\n\
                        Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\nRefresh: 0;url=x\r\nRefresh: 9;url=y\r\n\r\nbody";
        let header = HttpDocument::parse(content).unwrap();
        assert_eq!((header.status, &content[header.body_at..]), (Some(200), &b"body"[..]));
        assert_eq!(
            (&header.mime[..], &header.charset[..], &header.links[..]),
            (&b"text/html"[..], &b"KOI8-R"[..], &b"<a>, <b>"[..])
        );
        assert_eq!((&header.content_encoding[..], &header.transfer_encoding[..]), (&b"gzip"[..], &b"chunked"[..]));
        assert!(!header.is_redirect() && header.refresh == b"0;url=x");
        for (content, body) in
            [("HTTP/1.1 200\n\nx", "x"), ("HTTP/1.0 302\r\n\r\nx\n\ny", "x\n\ny"), ("HTTP/1.1 200 OK", "")]
        {
            let header = HttpDocument::parse(content.as_bytes()).unwrap();
            assert_eq!(&content[header.body_at..], body);
        }
        assert_eq!(HttpDocument::parse(b"<html>"), None);
    }
}
