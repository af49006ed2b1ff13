//! Captures on their way into columns: [`CaptureBatch`] collects rows until they reach a target size.

use super::documents::ArchivedDocument;
use super::links::{MAX_BASE_LEN, WatLink};
use super::request::RequestQuery;
use crate::iri::{FaultKind, Flags};
use crate::kernel::Span;
use crate::record::buffer::RecordBuffer;
use crate::record::fields::{FieldSet, FieldValues};

/// Size of a capture besides its texts, for the size of a batch: numbers and spans.
const NUMBERS_LEN: usize = 64;

/// Usual length of the page and the labels of a link together. Only what exceeds it counts for the size of a batch.
const USUAL_LABELS_LEN: usize = 1 << 10;

/// What the parser knows of one record.
#[derive(Debug, Default)]
pub(super) struct Capture {
    /// Byte of the decompressed archive at which the record begins.
    pub(super) offset: u64,
    pub(super) fault: Option<FaultKind>,
    pub(super) flags: Flags,
    pub(super) status: Option<i32>,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub(super) time: Option<i64>,
    pub(super) url: Vec<u8>,
    /// Target of a redirect. This and the other texts are empty if the record does not state them.
    pub(super) redirect: Vec<u8>,
    pub(super) digest: Vec<u8>,
    pub(super) charset: Vec<u8>,
    pub(super) mime: Vec<u8>,
    /// The digest that was computed because the record has none.
    pub(super) payload_digest: Vec<u8>,
    /// Media type as the crawler detected it.
    pub(super) detected_mime: Vec<u8>,
    pub(super) languages: Vec<u8>,
    /// Why the content is not whole.
    pub(super) truncated: Vec<u8>,
    /// What identifies the request, if its method needs that.
    pub(super) request: RequestQuery,
    /// Byte of the archive file at which the record begins.
    pub(super) archive_offset: Option<i64>,
    /// Length of the record in the archive file.
    pub(super) archive_length: Option<i64>,
}

impl Capture {
    /// Resets all fields and keeps their memory.
    pub(super) fn clear(&mut self) {
        // The other texts are rare, and only indexes have them.
        let mut cleared = Capture::default();
        for (text, kept) in self.texts_mut().into_iter().zip(cleared.texts_mut()) {
            text.clear();
            std::mem::swap(text, kept);
        }
        *self = cleared;
    }

    fn texts_mut(&mut self) -> [&mut Vec<u8>; 8] {
        let Capture { url, redirect, digest, charset, mime, detected_mime, languages, truncated, .. } = self;
        [url, redirect, digest, charset, mime, detected_mime, languages, truncated]
    }

    fn text_len(&self) -> usize {
        let RequestQuery { method, body } = &self.request;
        let Capture { url, redirect, digest, charset, mime, detected_mime, languages, truncated, .. } = self;
        let texts = [url, redirect, digest, charset, mime, detected_mime, languages, truncated, method, body];
        texts.iter().map(|text| text.len()).sum()
    }
}

/// How large a batch and a record may become, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct BatchLimits {
    /// The batch is full once it reaches this size.
    pub target_len: usize,
    /// Longest record: all its texts together. A longer one is a row with a fault and without texts.
    pub max_record_len: usize,
}

/// Rows of an archive.
///
/// The size of a batch is that of its texts, whether they are stored or not, and a constant per record; of a link, the page and
/// the labels only count as far as they are longer than usual. Therefore it does not depend on how the bytes arrive, nor on the
/// selected fields, except those of requests, which are only read if they are selected.
#[derive(Debug)]
pub struct CaptureBatch {
    rows: RecordBuffer,
    limits: BatchLimits,
    len: usize,
    /// Where the last page is in the text of the rows.
    page: Option<Span>,
    documents: Vec<ArchivedDocument>,
}

impl CaptureBatch {
    /// An empty batch that stores the fields of `carry`.
    pub fn new(carry: FieldSet, limits: BatchLimits) -> CaptureBatch {
        CaptureBatch { rows: RecordBuffer::new(carry), limits, len: 0, page: None, documents: Vec::new() }
    }

    /// Size of the batch, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether the target size is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.limits.target_len
    }

    /// The rows.
    pub fn into_rows(self) -> RecordBuffer {
        self.rows
    }

    /// Appends the row of a record in the archive `filename`.
    pub(super) fn push(&mut self, capture: &Capture, filename: &[u8]) {
        if capture.text_len() > self.limits.max_record_len {
            self.push_refused(capture, filename);
            return;
        }
        self.begin(capture.offset, capture.text_len() + filename.len());
        self.set_fault(capture.fault);
        self.set_flags(capture.flags);
        self.rows.push_url(&capture.url);
        let carry = self.rows.columns.carry();
        let mut copy = |is_carried, text| self.rows.copy_carried(is_carried, text);
        // A position without a length cannot be read.
        let archive_offset = capture.archive_offset.filter(|_| capture.archive_length.is_some());
        let field = FieldValues {
            status: capture.status,
            time: capture.time,
            redirect: copy(carry.redirect, &capture.redirect),
            digest: copy(carry.digest, &capture.digest),
            payload_digest: copy(carry.payload_digest, &capture.payload_digest),
            charset: copy(carry.charset, &capture.charset),
            mime: copy(carry.mime, &capture.mime),
            detected_mime: copy(carry.detected_mime, &capture.detected_mime),
            languages: copy(carry.languages, &capture.languages),
            truncated: copy(carry.truncated, &capture.truncated),
            method: copy(carry.method, &capture.request.method),
            request_body: copy(carry.request_body, &capture.request.body),
            filename: copy(carry.filename, filename),
            capture_offset: archive_offset,
            capture_length: capture.archive_length,
            ..FieldValues::default()
        };
        self.rows.push_fields(&field);
    }

    /// Appends the row of a record whose texts are too long: with its numbers, and without its texts.
    fn push_refused(&mut self, capture: &Capture, filename: &[u8]) {
        let Capture { offset, flags, status, time, archive_offset, archive_length, .. } = *capture;
        let fault = Some(FaultKind::TooLong);
        let short =
            Capture { offset, flags, status, time, archive_offset, archive_length, fault, ..Capture::default() };
        self.push(&short, filename);
    }

    /// Appends the row of a link in the page that `page` describes.
    pub(super) fn push_link(&mut self, page: &Capture, link: &WatLink<'_>) {
        let WatLink { url, base, kind, rel, text } = *link;
        self.rows.set_text(true);
        // Every link has the page, so it is limited like a base.
        let page_url = if page.url.len() <= MAX_BASE_LEN { &page.url[..] } else { b"" };
        let labels_len = page_url.len() + kind.len() + rel.len() + text.len();
        if url.len() + base.len() + labels_len > self.limits.max_record_len {
            self.push_faulty(page, FaultKind::TooLong);
            return;
        }
        self.begin(page.offset, url.len() + base.len() + labels_len.saturating_sub(USUAL_LABELS_LEN));
        // Other flags are about the URL of the page.
        self.set_flags(Flags(page.flags.0 & (Flags::STRAY_BYTES.0 | Flags::CUT.0)));
        self.rows.push_url(url);
        self.rows.push_base(base);
        self.set_page(page_url);
        let carry = self.rows.columns.carry();
        let mut copy = |is_carried, text| self.rows.copy_carried(is_carried, text);
        let fields = FieldValues {
            time: page.time,
            page: self.page,
            link_type: copy(carry.link_type, kind),
            link_rel: copy(carry.link_rel, rel),
            link_text: copy(carry.link_text, text),
            ..FieldValues::default()
        };
        self.rows.push_fields(&fields);
    }

    /// Appends the row of a WAT record whose links cannot all be read, or of a link.
    pub(super) fn push_faulty(&mut self, page: &Capture, kind: FaultKind) {
        self.begin(page.offset, page.url.len().saturating_sub(USUAL_LABELS_LEN));
        self.set_fault(Some(kind));
        self.set_flags(page.flags);
        self.rows.push_url(b"");
        self.rows.push_base(b"");
        self.set_page(&page.url);
        self.rows.push_fields(&FieldValues { page: self.page, ..FieldValues::default() });
    }

    /// Sets the page of the rows that follow.
    fn set_page(&mut self, url: &[u8]) {
        if self.rows.columns.carry().page {
            self.page = if url.is_empty() { None } else { self.rows.copy_or_share(url, self.page) };
        }
    }

    /// Appends a document.
    pub(super) fn push_document(&mut self, document: ArchivedDocument) {
        self.len += document.content.len() + document.url.len() + NUMBERS_LEN;
        self.documents.push(document);
    }

    /// The documents, if the caller requested them.
    pub(crate) fn take_documents(&mut self) -> Vec<ArchivedDocument> {
        std::mem::take(&mut self.documents)
    }

    /// Begins a row.
    fn begin(&mut self, offset: u64, text_len: usize) {
        self.len += text_len + NUMBERS_LEN;
        self.rows.begin(offset);
    }

    fn set_fault(&mut self, fault: Option<FaultKind>) {
        if let Some(kind) = fault {
            self.rows.refuse(kind);
        }
    }

    fn set_flags(&mut self, flags: Flags) {
        if flags != Flags::NONE {
            self.rows.flag(flags);
        }
    }
}
