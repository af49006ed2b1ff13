//! Reads sources as documents: a file is one document, an archive holds many ([`SourceDocuments`]). Of the captures of an
//! archive, [`CapturedDocument`] determines which are read, how, and why others are not.

use super::archive::{ArchiveBytes, ArchiveReader};
use super::open_source::UNMARKED_UTF16;
use super::row_reader::{ReadEnd, RowReader, StreamBytes};
use crate::encoding::Charset;
use crate::extract::{HeaderField, Markup, document_head, utf16_of_xml};
use crate::input::detect::{ContentType, content_type};
use crate::input::{BodyDefect, DecodedBody, Defect, OpenOptions, Source, Stream, decode_body, unpack_body};
use crate::record::archive::{
    ArchiveParser, ArchivedDocument, ContentState, DocumentKind, HttpDocument, MAX_HEADER_LEN,
};
use crate::record::{
    ArchiveRows, FormatOptions, InputFormat, SourceFormat, TextFormat, UnsupportedFormat, is_name_of_format,
    source_head_len,
};
use data_encoding::BASE32;
use sha1::{Digest, Sha1};
use std::borrow::Cow;
use std::collections::VecDeque;

/// Bytes from which an archive is recognized.
const HEAD_LEN: usize = 64 << 10;

/// Maximum number of bytes of documents, and of documents, that a thread takes at a time.
pub(crate) const DOCUMENT_UNIT_LEN: usize = 1 << 20;
const UNIT_DOCUMENTS: usize = 64;

const WAT: UnsupportedFormat = UnsupportedFormat {
    name: "a WAT file, which holds the links of pages, not the pages",
    advice: "use irikey canon, which has the same columns: --columns page,link_type,link_rel,link_text,uri",
};

const TABLE: UnsupportedFormat =
    UnsupportedFormat { name: "a Parquet or Arrow file, not a document", advice: "use irikey canon" };
const CAPTURES: UnsupportedFormat = UnsupportedFormat {
    name: "a table, or a list of captures or requests, not a document",
    advice: "use irikey canon",
};

/// What a source holds.
pub(crate) enum SourceDocuments {
    /// One document.
    One(Vec<u8>),
    /// One document that is longer than allowed.
    TooLong,
    /// A WARC or ARC file.
    Archive(Box<ArchiveDocuments>),
}

/// The documents of an archive, one after the other.
pub(crate) struct ArchiveDocuments {
    reader: ArchiveReader,
    found: VecDeque<ArchivedDocument>,
    defects: Vec<Defect>,
    is_ended: bool,
}

/// What is known of an archive after its last document.
pub(crate) struct ArchiveSummary {
    /// Records that hold no documents, such as requests.
    pub(crate) other_records: u64,
    /// What ended the archive early, and the damage within it.
    pub(crate) defects: Vec<Defect>,
}

/// Opens a source whose documents have at most `max_len` bytes. `markup` and `charset` are known from elsewhere than its bytes.
///
/// # Errors
/// The source cannot be opened or read, or is neither a document nor an archive.
pub(crate) fn open_documents(
    mut source: Source,
    markup: Option<Markup>,
    charset: Option<Charset>,
    max_len: usize,
) -> Result<SourceDocuments, Defect> {
    let name = source.file_name(is_name_of_format);
    // Documents are parsed in place, so they are not mapped: another process may change a mapped file.
    let mut stream = source.open(OpenOptions::sequential(false))?.into_stream();
    let mut bytes = Vec::new();
    let defect = stream.read_to_len(&mut bytes, HEAD_LEN).err();
    let archive = match ArchiveRows::of_source(&name, &bytes) {
        Some(rows) => Ok(Some(rows)),
        None => find_archive(&name, &bytes, markup, charset),
    };
    match (archive, defect) {
        (Ok(Some(ArchiveRows::Links)), _) => Err(Defect::Unsupported(WAT)),
        (Ok(Some(ArchiveRows::Records)), defect) => {
            Ok(SourceDocuments::Archive(Box::new(ArchiveDocuments::new(stream, &bytes, defect, max_len))))
        }
        (_, Some(defect)) | (Err(defect), None) => Err(defect),
        (Ok(None), None) => {
            stream.read_to_len(&mut bytes, max_len.saturating_add(1))?;
            Ok(if bytes.len() > max_len { SourceDocuments::TooLong } else { SourceDocuments::One(bytes) })
        }
    }
}

/// The rows of an archive with other bytes before its first record; `None` for a document.
///
/// # Errors
/// The source is recognized as another format. Read as HTML, it would give no references and no error.
fn find_archive(
    name: &str,
    head: &[u8],
    markup: Option<Markup>,
    charset: Option<Charset>,
) -> Result<Option<ArchiveRows>, Defect> {
    let text = match content_type(head) {
        ContentType::Table(_) => return Err(Defect::Unsupported(TABLE)),
        ContentType::Unsupported(format) => return Err(Defect::Unsupported(format)),
        ContentType::Encoding(encoding) => return Err(Defect::Encoding(encoding)),
        ContentType::Records(mark_len) => &head[mark_len..],
        ContentType::UnmarkedUtf16(_) if charset.or_else(|| utf16_of_xml(head)).is_none() => {
            return Err(Defect::Unsupported(UNMARKED_UTF16));
        }
        ContentType::Utf16(_) | ContentType::UnmarkedUtf16(_) => return Ok(None),
    };
    if markup.is_some() || text.trim_ascii_start().starts_with(b"<") {
        return Ok(None);
    }
    // Content without other markup counts as HTML.
    let is_html = Markup::of_content(text) == Markup::Html;
    let head = &text[..source_head_len(text).min(text.len())];
    match InputFormat::Auto(FormatOptions::default()).of_source(name, head) {
        // A table of URLs looks like a list of them.
        SourceFormat::Csv(_) => Err(Defect::Unsupported(CAPTURES)),
        SourceFormat::Text(TextFormat::Lines(_)) => Ok(None),
        SourceFormat::Archive(rows) => Ok(Some(rows)),
        SourceFormat::Text(_) | SourceFormat::Json(_) if is_html => Err(Defect::Unsupported(CAPTURES)),
        SourceFormat::Unsupported(format) if is_html => Err(Defect::Unsupported(format)),
        _ => Ok(None),
    }
}

impl ArchiveDocuments {
    /// The documents of an archive of which `head` was read already, up to `defect`.
    fn new(stream: Stream, head: &[u8], defect: Option<Defect>, max_len: usize) -> ArchiveDocuments {
        let bytes = ArchiveBytes::Stream(Box::new(StreamBytes::new(stream, head, defect)));
        let reader = ArchiveReader::new(ArchiveParser::of_documents(max_len as u64), bytes, 0);
        ArchiveDocuments { reader, found: VecDeque::new(), defects: Vec::new(), is_ended: false }
    }

    /// Returns the next documents, which one thread parses; empty after the last one.
    pub(crate) fn next_unit(&mut self) -> Vec<ArchivedDocument> {
        let (mut unit, mut len) = (Vec::new(), 0);
        while len < DOCUMENT_UNIT_LEN && unit.len() < UNIT_DOCUMENTS {
            let Some(document) = self.next() else { break };
            len += document.content.len();
            unit.push(document);
        }
        unit
    }

    fn next(&mut self) -> Option<ArchivedDocument> {
        while self.found.is_empty() && !self.is_ended {
            let (documents, end) = self.reader.read_documents();
            self.found.extend(documents);
            match end {
                ReadEnd::More | ReadEnd::LongRecord => {}
                ReadEnd::Source(defects) => {
                    self.is_ended = true;
                    self.defects.extend(defects.into_iter().map(|end| end.defect));
                }
            }
        }
        self.found.pop_front()
    }

    /// Bytes of the source that were read.
    pub(crate) fn position(&self) -> u64 {
        self.reader.file_position()
    }

    /// What is known after the last document.
    pub(crate) fn finish(self) -> ArchiveSummary {
        ArchiveSummary { other_records: self.reader.skipped_count(), defects: self.defects }
    }
}

/// Why a capture is not read as a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SkipReason {
    /// The content was captured before.
    Revisit,
    /// The status is not 2xx.
    Status,
    /// The media type is not one of a document.
    MediaType,
    /// The archive ends within it, which is a defect of the archive.
    Truncated,
}

impl SkipReason {
    /// The name in the summary.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            SkipReason::Revisit => "revisit",
            SkipReason::Status => "status",
            SkipReason::MediaType => "media type",
            SkipReason::Truncated => "cut short",
        }
    }
}

/// A capture whose links can be read.
pub(crate) struct CapturedDocument<'a> {
    document: &'a ArchivedDocument,
    http: Option<HttpDocument>,
}

/// The content of a capture, ready to be parsed.
pub(crate) struct CaptureBody<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// `None` if it is to be recognized by its content.
    pub(crate) markup: Option<Markup>,
    /// The charset that is known, or that the transport declares.
    pub(crate) charset: Option<Charset>,
    /// Why the content is not whole.
    pub(crate) defect: Option<BodyDefect>,
}

impl<'a> CapturedDocument<'a> {
    pub(crate) fn new(document: &'a ArchivedDocument) -> CapturedDocument<'a> {
        let is_response = document.kind != DocumentKind::Resource;
        let http = if is_response { HttpDocument::parse(&document.content) } else { None };
        CapturedDocument { document, http }
    }

    pub(crate) fn status(&self) -> Option<i32> {
        self.http.as_ref()?.status
    }

    /// The digest of the payload: the one that the record states, otherwise its SHA-1, as in the rows of records.
    pub(crate) fn digest(&self) -> Cow<'a, [u8]> {
        let ArchivedDocument { digest, content, .. } = self.document;
        if !digest.is_empty() {
            return Cow::Borrowed(digest);
        }
        let body_at = self.http.as_ref().map_or(0, |http| http.body_at);
        Cow::Owned(BASE32.encode(&Sha1::digest(&content[body_at..])).into_bytes())
    }

    /// The header fields that hold links.
    pub(crate) fn header_fields(&self) -> Vec<(HeaderField, &[u8])> {
        let Some(http) = &self.http else { return Vec::new() };
        let location = http.location.as_slice();
        [
            (HeaderField::Location, if http.is_redirect() { location } else { &[] }),
            (HeaderField::Refresh, &http.refresh),
            (HeaderField::Link, &http.links),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
    }

    /// The content with at most `max_len` bytes, or why it is not read. `charset` is used instead of that of the transport.
    pub(crate) fn body(&self, max_len: usize, charset: Option<Charset>) -> Result<CaptureBody<'a>, SkipReason> {
        if self.document.kind == DocumentKind::Revisit {
            return Err(SkipReason::Revisit);
        }
        if self.document.state == ContentState::Truncated {
            return Err(SkipReason::Truncated);
        }
        if self.status().is_some_and(|status| !(200..300).contains(&status)) {
            return Err(SkipReason::Status);
        }
        let (mime, declared) = match &self.http {
            Some(http) => (&http.mime, &http.charset),
            None => (&self.document.mime, &self.document.charset),
        };
        let mime = mime.to_ascii_lowercase();
        let markup = markup_of(&mime, &self.document.url).ok_or(SkipReason::MediaType)?;
        let charset = charset.or_else(|| std::str::from_utf8(declared).ok().and_then(Charset::named));
        let (bytes, defect) = self.decoded(max_len);
        if markup == KnownMarkup::ByContent && defect.is_none() && !is_document(&bytes, charset) {
            return Err(SkipReason::MediaType);
        }
        let markup = if let KnownMarkup::Known(markup) = markup { Some(markup) } else { None };
        Ok(CaptureBody { bytes, markup, charset, defect })
    }

    /// The content without codings, and decompressed if it is a gzip file.
    fn decoded(&self, max_len: usize) -> (Cow<'a, [u8]>, Option<BodyDefect>) {
        let unread = match self.document.state {
            ContentState::TooLong => Some(BodyDefect::TooLong(max_len)),
            ContentState::LongHeader => Some(BodyDefect::LongHeader(MAX_HEADER_LEN)),
            ContentState::Whole | ContentState::Truncated => None,
        };
        if unread.is_some() {
            return (Cow::Borrowed(&[]), unread);
        }
        let content = self.document.content.as_slice();
        let decoded = match &self.http {
            Some(http) => {
                decode_body(&content[http.body_at..], &http.transfer_encoding, &http.content_encoding, max_len)
            }
            None => decode_body(content, b"", b"", max_len),
        };
        let DecodedBody { bytes, defect } = unpack_body(decoded, max_len);
        (bytes, defect)
    }
}

/// What a media type states about the markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KnownMarkup {
    Known(Markup),
    /// The content decides whether this is a document.
    ByContent,
}

/// The markup of a media type without parameters, in lower case; `None` if it is not one of a document.
fn markup_of(mime: &[u8], url: &[u8]) -> Option<KnownMarkup> {
    let path = url.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    let is_xml = mime.ends_with(b"+xml") || matches!(mime, b"text/xml" | b"application/xml");
    match mime {
        b"text/html" => Some(KnownMarkup::Known(Markup::Html)),
        _ if is_xml => Some(KnownMarkup::Known(Markup::Xml)),
        b"application/feed+json" => Some(KnownMarkup::Known(Markup::JsonFeed)),
        b"application/json" => Some(KnownMarkup::ByContent),
        b"text/plain" if path.ends_with(b"/robots.txt") => Some(KnownMarkup::Known(Markup::Robots)),
        b"text/plain" if memchr::memmem::find(path, b"sitemap").is_some() => Some(KnownMarkup::ByContent),
        b"" | b"application/octet-stream" | b"binary/octet-stream" => Some(KnownMarkup::ByContent),
        b"application/gzip" | b"application/x-gzip" => Some(KnownMarkup::ByContent),
        b"unknown/unknown" | b"no-type" => Some(KnownMarkup::ByContent),
        _ => None,
    }
}

/// Whether a content without a media type is a document (MIME Sniffing Standard section 7.1, shortened). `charset` is that of a
/// content whose first bytes do not show the charset.
fn is_document(bytes: &[u8], charset: Option<Charset>) -> bool {
    const STARTS: [&[u8]; 17] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<div",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<body",
        b"<br",
        b"<p",
        b"<!--",
        b"<?xml",
        b"<meta",
    ];
    let head = document_head(bytes, charset);
    let text = head.trim_ascii_start();
    let begins_with = |start: &[u8]| text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
    STARTS.iter().any(|start| begins_with(start)) || !matches!(Markup::of_content(text), Markup::Html)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(kind: DocumentKind, url: &str, content: &[u8]) -> ArchivedDocument {
        let (url, content) = (url.as_bytes().to_vec(), content.to_vec());
        ArchivedDocument { kind, url, content, ..ArchivedDocument::default() }
    }

    fn outcome(document: &ArchivedDocument) -> Result<(String, Option<Markup>), SkipReason> {
        let body = CapturedDocument::new(document).body(1 << 20, None)?;
        Ok((String::from_utf8_lossy(&body.bytes).into_owned(), body.markup))
    }

    #[test]
    fn captures_are_documents_by_kind_status_and_media_type() {
        let page = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes();
        type Expected = Result<Option<Markup>, SkipReason>;
        let cases: [(&str, Vec<u8>, Expected); 12] = [
            ("http://a/", page("200 OK\r\nContent-Type: Text/HTML; x", "b"), Ok(Some(Markup::Html))),
            ("http://a/", page("206\r\nContent-Type: application/rss+xml", "b"), Ok(Some(Markup::Xml))),
            ("http://a/", page("200 OK\r\nContent-Type: application/xhtml+xml", "b"), Ok(Some(Markup::Xml))),
            ("http://a/", page("200 OK\r\nContent-Type: image/png", "<html>"), Err(SkipReason::MediaType)),
            ("http://a/", page("404 No\r\nContent-Type: text/html", "b"), Err(SkipReason::Status)),
            ("http://a/", page("301 No\r\nLocation: /x", "b"), Err(SkipReason::Status)),
            ("http://a/robots.txt?x", page("200\r\nContent-Type: text/plain", "b"), Ok(Some(Markup::Robots))),
            ("http://a/sitemap.txt", page("200\r\nContent-Type: text/plain", "http://b/\n"), Ok(None)),
            ("http://a/readme.txt", page("200\r\nContent-Type: text/plain", "http://b/\n"), Err(SkipReason::MediaType)),
            ("http://a/", page("200 OK", " <!DOCTYPE HTML>"), Ok(None)),
            ("http://a/", page("200 OK", "GIF89a"), Err(SkipReason::MediaType)),
            ("http://a/", b"<html>".to_vec(), Ok(None)),
        ];
        for (url, content, expected) in cases {
            let found = outcome(&document(DocumentKind::Response, url, &content)).map(|(_, markup)| markup);
            assert_eq!(found, expected, "{url} {}", String::from_utf8_lossy(&content));
        }
        let revisit = document(DocumentKind::Revisit, "http://a/", &page("200 OK\r\nContent-Type: text/html", ""));
        assert_eq!(outcome(&revisit), Err(SkipReason::Revisit));
        let resource = ArchivedDocument {
            mime: b"text/html".to_vec(),
            ..document(DocumentKind::Resource, "", b"HTTP/1.1 200\n\n")
        };
        assert_eq!(outcome(&resource), Ok(("HTTP/1.1 200\n\n".to_string(), Some(Markup::Html))));
    }

    #[test]
    fn documents_in_utf16_are_recognized() {
        let page: Vec<u8> = " <!DOCTYPE HTML>".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let markup = |head: &[u8], charset: Option<&str>| {
            let content = [b"HTTP/1.1 200 OK\r\n", head, &page].concat();
            let document = document(DocumentKind::Response, "http://a/", &content);
            let body = CapturedDocument::new(&document).body(1 << 20, charset.and_then(Charset::named));
            body.map(|body| body.markup)
        };
        assert_eq!(markup(b"\r\n", None), Err(SkipReason::MediaType));
        assert_eq!(markup(b"\r\n\xFF\xFE", None), Ok(None));
        assert_eq!(markup(b"\r\n", Some("utf-16le")), Ok(None));
        assert_eq!(markup(b"Content-Type: application/octet-stream; charset=utf-16le\r\n\r\n", None), Ok(None));
    }
}
