//! Makes rows of records: [`RecordAssembler`] takes their headers and contents, one record after the other.

use super::batch::{Capture, CaptureBatch};
use super::documents::{ArchivedDocument, ContentState, DocumentKind};
use super::exchange::{PendingRequest, RecordIds};
use super::headers::{ArcHeader, Detected, MAX_HTTP_LEN, ResponseHeader, WarcHeader, without_brackets};
use super::links::LinkReader;
use super::request::{MAX_REQUEST_LEN, RequestQuery};
use super::selection::RecordTypes;
use crate::iri::{FaultKind, Flags};
use crate::record::fields::FieldSet;
use crate::record::{media_type, time};

/// The media type that indexes write for revisits.
const REVISIT: &[u8] = b"warc/revisit";
/// Longest JSON of a WAT record, in bytes; a longer one is a fault.
const MAX_JSON_LEN: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum RecordKind {
    Response,
    /// A request whose body is read.
    Request,
    Metadata,
    /// Metadata of a WAT archive.
    Links,
    /// A document of an archive whose documents are read.
    Document,
    #[default]
    Other,
}

/// The part of a content that is read because it describes its record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ContentPart {
    Nothing,
    /// Up to a blank line, at most this many bytes.
    Header(u64),
    /// At most this many bytes.
    First(u64),
    /// All of it, after the record has ended: the JSON of a WAT record, or a document.
    Whole,
}

/// The part of a content whose digest is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) enum PayloadPart {
    #[default]
    Nothing,
    /// What follows the header of an HTTP message.
    AfterHeader,
    Content,
}

/// The record before the current one. Its end is not known yet, and a request or a metadata record may complete it.
#[derive(Debug)]
struct HeldCapture {
    capture: Capture,
    ids: RecordIds,
    is_response: bool,
    /// The request was the record before it.
    has_request: bool,
}

impl HeldCapture {
    /// Returns whether this record is the response to the next record: a request with this URL and these identifiers.
    fn is_response_to(&self, url: &[u8], ids: &RecordIds) -> bool {
        self.is_response && !self.has_request && self.capture.url == url && self.ids.match_next(ids)
    }
}

/// The file from which the archive is read.
#[derive(Debug)]
pub(super) struct ArchiveFile {
    pub(super) name: Vec<u8>,
    pub(super) is_compressed: bool,
}

/// The current record, and the one before it.
#[derive(Debug, Default)]
pub(super) struct RecordAssembler {
    current: Capture,
    kind: RecordKind,
    /// The type of the current record is not selected.
    is_skipped: bool,
    /// The payload of the current record, if its digest is computed.
    payload_part: PayloadPart,
    /// Identifiers of the current record, if requests are read.
    ids: RecordIds,
    /// What was read from the content of the current record, if it is a request.
    request: RequestQuery,
    /// The record before the current one, if it was a request without a response before it.
    last_request: Option<PendingRequest>,
    /// What was read from the content of the current record.
    response: ResponseHeader,
    detected: Detected,
    held: Option<HeldCapture>,
    /// A capture whose memory can be used again.
    spare: Capture,
    pub(super) file: Option<ArchiveFile>,
    /// Set in WAT archives.
    pub(super) links: Option<LinkReader>,
    /// Set if documents are read: the length of the longest one.
    pub(super) max_document_len: Option<u64>,
    document_kind: DocumentKind,
    /// The current record has a content that is needed and too long to be read.
    is_too_long: bool,
    pub(super) types: RecordTypes,
    /// Fields that are only found on request: the digest of payloads, methods and bodies of requests.
    pub(super) carry: FieldSet,
    pub(super) skipped_count: u64,
    /// WAT records that describe a page, with links or without.
    pub(super) page_count: u64,
}

impl RecordAssembler {
    /// Begins a record at byte `at` of the archive. `member_at` is the byte of the file at which its gzip member begins, if
    /// that is known.
    fn begin(&mut self, at: u64, member_at: Option<u64>, flags: Flags) {
        self.current.offset = at;
        self.current.flags = flags;
        self.is_too_long = false;
        let file_at = match &self.file {
            Some(file) if file.is_compressed => member_at,
            Some(_) => Some(at),
            None => None,
        };
        self.current.archive_offset = file_at.map(|at| at as i64);
    }

    pub(super) fn begin_arc(&mut self, header: &ArcHeader<'_>, at: u64, member_at: Option<u64>, flags: Flags) {
        self.begin(at, member_at, flags);
        let capture = &mut self.current;
        capture.url.extend_from_slice(header.url);
        capture.mime.extend_from_slice(header.mime);
        capture.redirect.extend_from_slice(header.redirect);
        (capture.time, capture.status) = (time::from_first_digits(header.date), header.status);
        let name: &[u8] = if header.url.starts_with(b"filedesc:") { b"warcinfo" } else { b"response" };
        self.is_skipped = !self.types.has(name);
        self.document_kind = DocumentKind::Response;
        self.kind = if self.max_document_len.is_some() { RecordKind::Document } else { RecordKind::Response };
        self.choose_payload(name);
    }

    pub(super) fn begin_warc(&mut self, header: &WarcHeader<'_>, at: u64, member_at: Option<u64>, flags: Flags) {
        self.begin(at, member_at, flags);
        let (url, is_bracketed) = without_brackets(&header.target);
        let capture = &mut self.current;
        capture.url.extend_from_slice(url);
        capture.digest.extend_from_slice(&header.digest);
        capture.truncated.extend_from_slice(&header.truncated);
        capture.detected_mime.extend_from_slice(media_type::without_parameters(&header.payload_type));
        capture.time = time::from_w3c(&header.date);
        if is_bracketed {
            capture.flags |= Flags::BRACKETED;
        }
        capture.fault = match header.content_len {
            None => Some(FaultKind::NotOfFormat),
            Some(_) if url.is_empty() => Some(FaultKind::NoUrl),
            Some(_) => None,
        };
        let has_links = self.links.is_some();
        self.kind = match &header.record_type[..] {
            b"response" | b"revisit" if !has_links => RecordKind::Response,
            b"request" if has_request(self.carry) && !has_links => RecordKind::Request,
            b"metadata" if has_links => RecordKind::Links,
            b"metadata" => RecordKind::Metadata,
            _ => RecordKind::Other,
        };
        set_media_type(capture, header, self.types == RecordTypes::Replayable);
        self.is_skipped = !self.types.has_record(header);
        if has_request(self.carry) {
            self.ids = RecordIds::of(header);
        }
        self.choose_payload(&header.record_type);
        if self.max_document_len.is_some() {
            self.begin_document(header);
        }
    }

    /// Determines of which part of the content the digest is computed, as warcio does: transfer codings stay.
    fn choose_payload(&mut self, record_type: &[u8]) {
        let is_wanted = self.carry.payload_digest && self.current.digest.is_empty() && !self.is_skipped;
        let has_header = self.current.url.starts_with(b"http:") || self.current.url.starts_with(b"https:");
        self.payload_part = match record_type {
            _ if !is_wanted || self.links.is_some() => PayloadPart::Nothing,
            b"warcinfo" | b"revisit" | b"request" => PayloadPart::Nothing,
            b"response" if has_header => PayloadPart::AfterHeader,
            _ => PayloadPart::Content,
        };
    }

    fn begin_document(&mut self, header: &WarcHeader<'_>) {
        self.kind = RecordKind::Document;
        self.document_kind = match &header.record_type[..] {
            b"response" => DocumentKind::Response,
            b"revisit" => DocumentKind::Revisit,
            _ => DocumentKind::Resource,
        };
        self.current.charset = media_type::charset(&header.content_type).to_vec();
    }

    /// States the length of the current record's content.
    pub(super) fn set_content_len(&mut self, len: u64) {
        let max_len = match self.kind {
            RecordKind::Links => MAX_JSON_LEN,
            RecordKind::Document => self.max_document_len.unwrap_or_default().saturating_add(MAX_HTTP_LEN),
            _ => u64::MAX,
        };
        self.is_too_long |= len > max_len;
    }

    /// Begins a record whose header is too long to be read.
    pub(super) fn begin_too_long(&mut self, at: u64, member_at: Option<u64>, flags: Flags) {
        self.begin(at, member_at, flags);
        self.current.fault = Some(FaultKind::TooLong);
        self.kind = if self.max_document_len.is_some() { RecordKind::Document } else { RecordKind::Other };
        (self.document_kind, self.is_too_long, self.is_skipped) = (DocumentKind::Resource, true, false);
    }

    /// The part of the current record's content whose digest is computed.
    pub(super) fn payload_part(&self) -> PayloadPart {
        self.payload_part
    }

    /// Sets the digest that was computed of the current record.
    pub(super) fn set_payload_digest(&mut self, digest: String) {
        self.current.payload_digest = digest.into_bytes();
    }

    /// Sets flags of the current record.
    pub(super) fn flag(&mut self, flags: Flags) {
        self.current.flags |= flags;
    }

    /// The part of the current record's content that [`RecordAssembler::read_content`] needs.
    pub(super) fn content_part(&self) -> ContentPart {
        match self.kind {
            RecordKind::Response => ContentPart::Header(MAX_HTTP_LEN),
            RecordKind::Request => ContentPart::First(MAX_REQUEST_LEN),
            RecordKind::Metadata => ContentPart::First(MAX_HTTP_LEN),
            RecordKind::Links | RecordKind::Document if !self.is_too_long && !self.is_skipped => ContentPart::Whole,
            RecordKind::Links | RecordKind::Document | RecordKind::Other => ContentPart::Nothing,
        }
    }

    /// Reads the part of the content that [`RecordAssembler::content_part`] names.
    pub(super) fn read_content(&mut self, part: &[u8]) {
        match self.kind {
            RecordKind::Response => self.response = ResponseHeader::parse(part),
            RecordKind::Request => self.request = RequestQuery::parse(part),
            RecordKind::Metadata => self.detected = Detected::parse(part),
            RecordKind::Links | RecordKind::Document | RecordKind::Other => {}
        }
    }

    /// Removes what was read from the content, because that content does not belong to the current record.
    pub(super) fn forget_content(&mut self) {
        (self.response, self.detected) = (ResponseHeader::default(), Detected::default());
        self.request = RequestQuery::default();
    }

    /// Ends the current record: it becomes the held one, and the one held before is pushed. `content` is that of a WAT record
    /// or a document, `None` if it is not whole. Returns true if links are to be pushed.
    pub(super) fn end(&mut self, content: Option<&[u8]>, batch: &mut CaptureBatch) -> bool {
        if self.links.is_some() {
            return self.begin_links(content, batch);
        }
        self.skipped_count += u64::from(self.is_skipped);
        if self.kind == RecordKind::Document {
            self.push_document(content, batch);
            return false;
        }
        let has_request = self.join_request();
        match self.kind {
            RecordKind::Response => self.take_response(),
            RecordKind::Metadata => self.take_detected(),
            RecordKind::Request | RecordKind::Other | RecordKind::Links | RecordKind::Document => {}
        }
        self.push_held(batch);
        let next = std::mem::take(&mut self.spare);
        let capture = std::mem::replace(&mut self.current, next);
        if self.is_skipped {
            self.recycle(capture);
        } else {
            let ids = std::mem::take(&mut self.ids);
            let is_response = self.kind == RecordKind::Response;
            self.held = Some(HeldCapture { capture, ids, is_response, has_request });
        }
        false
    }

    /// Joins the current record to the one before it, if they are a request and its response. Returns whether the current
    /// record is the response.
    fn join_request(&mut self) -> bool {
        let last = self.last_request.take();
        if self.kind == RecordKind::Response {
            let query = last.and_then(|request| request.answered_by(&self.current.url, &self.ids));
            let is_joined = query.is_some();
            self.current.request = query.unwrap_or_default();
            return is_joined;
        }
        if self.kind == RecordKind::Request {
            let query = std::mem::take(&mut self.request);
            match &mut self.held {
                Some(held) if held.is_response_to(&self.current.url, &self.ids) => {
                    (held.capture.request, held.has_request) = (query, true);
                }
                _ => {
                    let (url, ids) = (self.current.url.clone(), std::mem::take(&mut self.ids));
                    self.last_request = Some(PendingRequest { url, ids, query });
                }
            }
        }
        false
    }

    /// Begins with the links of a WAT record. Returns whether links are to be pushed. A record that does not describe a page,
    /// such as that of a request, is counted as skipped.
    fn begin_links(&mut self, json: Option<&[u8]>, batch: &mut CaptureBatch) -> bool {
        let json = json.filter(|_| self.kind == RecordKind::Links);
        let page = match (&mut self.links, json) {
            _ if self.is_too_long => Err(FaultKind::TooLong),
            (Some(links), Some(json)) => links.begin(json, &self.current.url),
            _ => Ok(false),
        };
        match page {
            Ok(false) => self.skipped_count += 1,
            Ok(true) => self.page_count += 1,
            Err(fault) => {
                self.page_count += 1;
                batch.push_faulty(&self.current, fault);
            }
        }
        if json.is_none() {
            self.current.clear();
        }
        json.is_some()
    }

    /// Pushes the current record as a document, if it is one.
    fn push_document(&mut self, content: Option<&[u8]>, batch: &mut CaptureBatch) {
        if !self.is_skipped {
            let state = match content {
                Some(_) => ContentState::Whole,
                None if self.current.fault == Some(FaultKind::TooLong) => ContentState::LongHeader,
                None if self.is_too_long => ContentState::TooLong,
                None => ContentState::Truncated,
            };
            let capture = &mut self.current;
            batch.push_document(ArchivedDocument {
                kind: self.document_kind,
                url: std::mem::take(&mut capture.url),
                time: capture.time,
                offset: capture.offset,
                mime: std::mem::take(&mut capture.mime),
                charset: std::mem::take(&mut capture.charset),
                digest: std::mem::take(&mut capture.digest),
                state,
                content: content.unwrap_or_default().to_vec(),
            });
        }
        self.current.clear();
    }

    fn take_response(&mut self) {
        let header = std::mem::take(&mut self.response);
        let capture = &mut self.current;
        capture.status = header.status.or(capture.status);
        if !(header.mime.is_empty() && header.charset.is_empty()) {
            capture.charset = header.charset;
        }
        if !header.mime.is_empty() && capture.mime != REVISIT {
            capture.mime = header.mime;
        }
        if !header.redirect.is_empty() {
            capture.redirect = header.redirect;
        }
    }

    /// Takes what a metadata record states, for itself and for the response before it.
    fn take_detected(&mut self) {
        let Detected { charset, languages } = std::mem::take(&mut self.detected);
        (self.current.charset, self.current.languages) = (charset, languages);
        if let Some(HeldCapture { capture: response, is_response: true, .. }) = &mut self.held
            && response.url == self.current.url
        {
            if !self.current.charset.is_empty() {
                response.charset.clone_from(&self.current.charset);
            }
            response.languages.clone_from(&self.current.languages);
        }
    }

    /// Pushes links of a WAT record, whose content is `json`, until there are no more or the batch is full. Returns whether
    /// there are more.
    pub(super) fn push_links(&mut self, json: &[u8], batch: &mut CaptureBatch) -> bool {
        if let Some(links) = &mut self.links {
            while !batch.is_full() {
                let Some(link) = links.next(json) else { break };
                batch.push_link(&self.current, &link);
            }
            if batch.is_full() {
                return true;
            }
        }
        self.current.clear();
        false
    }

    /// Sets the end of the current record in an uncompressed file: byte `at`, the end of its content.
    pub(super) fn end_at(&mut self, at: u64) {
        if self.file.as_ref().is_some_and(|file| !file.is_compressed) {
            self.current.archive_length = self.current.archive_offset.map(|begin| at as i64 - begin);
        }
    }

    /// Sets the end of the held record in the file, if it is not known yet. `is_in_member`: a gzip member ends there.
    pub(super) fn end_held(&mut self, file_at: u64, is_in_member: bool) {
        if self.file.as_ref().is_some_and(|file| file.is_compressed == is_in_member)
            && let Some(HeldCapture { capture, .. }) = &mut self.held
            && let (Some(begin), None) = (capture.archive_offset, capture.archive_length)
        {
            capture.archive_length = Some(file_at as i64 - begin);
        }
    }

    /// Sets flags of the held record; returns false without one.
    pub(super) fn flag_held(&mut self, flags: Flags) -> bool {
        let Some(HeldCapture { capture, .. }) = &mut self.held else { return false };
        capture.flags |= flags;
        true
    }

    pub(super) fn push_held(&mut self, batch: &mut CaptureBatch) {
        let Some(HeldCapture { capture, .. }) = self.held.take() else { return };
        batch.push(&capture, self.file.as_ref().map_or(b"", |file| &file.name));
        self.recycle(capture);
    }

    fn recycle(&mut self, mut capture: Capture) {
        capture.clear();
        self.spare = capture;
    }
}

/// Whether a field comes from requests.
fn has_request(carry: FieldSet) -> bool {
    carry.method || carry.request_body
}

/// Sets the media type and the charset that the header of a record states for its content. An HTTP response has its own header,
/// and indexes mark revisits by a media type of their own. In an index for replay, as cdxj-indexer writes it, other responses
/// have no media type.
fn set_media_type(capture: &mut Capture, header: &WarcHeader<'_>, is_for_replay: bool) {
    let content_type = &header.content_type[..];
    match &header.record_type[..] {
        b"request" => {}
        b"response" if is_for_replay || media_type::is_http(content_type) => {}
        b"revisit" => capture.mime.extend_from_slice(REVISIT),
        record_type => {
            capture.mime.extend_from_slice(media_type::without_parameters(content_type));
            if matches!(record_type, b"response" | b"resource" | b"conversion") {
                capture.charset.extend_from_slice(media_type::charset(content_type));
            }
        }
    }
}
