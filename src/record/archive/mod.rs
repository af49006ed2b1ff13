//! WARC (ISO 28500), ARC and WAT: a push parser for the decompressed bytes of an archive.
//!
//! ```text
//! bytes --ArchiveParser::push--> heads --> CaptureBatch (columns of records) --> RecordBuffer
//! ```
//!
//! The parser skips payloads, so its memory is bounded by the largest head, however long the records are. Every record
//! becomes a row: a response with its status, redirect and charset, a request, a revisit. A record without a URL, such as
//! `warcinfo`, has a fault. In WAT archives every link of a page becomes a row instead.
//!
//! - A `WARC-Target-URI` in angle brackets loses them and gets a flag.
//! - A metadata record that names the charset of the response before it also sets the charset of that response.
//! - Bytes between records that belong to no record are skipped up to the next line that begins a record; the record
//!   that follows gets a flag.
//! - A head without a readable length is a record with a fault.
//! - In an archive that is a file, captures know their position. In an uncompressed file it reaches from one head to
//!   the next one; in a file of gzip members it is the member, if the member holds only this record.

mod batch;
mod heads;
mod links;
#[cfg(test)]
mod tests;

pub use batch::{BatchLimits, CaptureBatch};

use super::time;
use crate::iri::{FaultKind, Flags};
use batch::Capture;
use heads::{ArcHead, ResponseHead, WarcHead, detected_charset, has_blank_line, is_version, without_brackets};
use links::LinkReader;

/// The media type that indexes write for revisits.
const REVISIT: &[u8] = b"warc/revisit";
/// Longest head of a record, in bytes; a longer one is cut there.
const MAX_HEAD_LEN: usize = 1 << 20;
/// The HTTP head of a response is read up to this many bytes of the content.
const MAX_HTTP_LEN: usize = 256 << 10;
/// Longest JSON of a WAT record, in bytes; the rest is not read.
const MAX_JSON_LEN: usize = 256 << 20;

/// Parses the decompressed bytes of an archive.
#[derive(Debug, Default)]
pub struct ArchiveParser {
    state: ParserState,
    /// Bytes taken so far.
    at: u64,
    /// The head that is being read: whole lines and the beginning of another one.
    head: Vec<u8>,
    /// Where the last line of `head` begins.
    line_at: usize,
    /// Bytes before this head belonged to no record.
    has_stray_bytes: bool,
    /// The part of the content that is kept.
    content: Vec<u8>,
    current: Capture,
    kind: RecordKind,
    /// The type of the current record is not selected.
    is_skipped: bool,
    /// The record before the current one: its end and the charset in metadata that follow are not known yet.
    held: Option<HeldCapture>,
    /// A capture whose memory can be used again.
    spare: Capture,
    file: Option<ArchiveFile>,
    /// Set in WAT archives.
    links: Option<LinkReader>,
    /// Types of the selected records, in lower case; empty for all types.
    types: Vec<Vec<u8>>,
    skipped_count: u64,
}

#[derive(Debug)]
struct HeldCapture {
    capture: Capture,
    is_response: bool,
}

/// The file from which the archive is read.
#[derive(Debug)]
struct ArchiveFile {
    name: Vec<u8>,
    is_compressed: bool,
    /// Where the last gzip member begins: in the decompressed bytes, and in the file.
    member: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ParserState {
    /// Between records.
    #[default]
    Between,
    Head,
    Content(ContentProgress),
    /// The links of a WAT record are being pushed.
    Links,
}

/// How far a content was read.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ContentProgress {
    remaining: u64,
    keep: KeptContent,
}

/// Which part of a content the parser keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum KeptContent {
    #[default]
    Nothing,
    UpToBlankLine,
    UpTo(usize),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum RecordKind {
    Response,
    Metadata,
    /// Metadata of a WAT archive.
    Links,
    #[default]
    Other,
}

impl RecordKind {
    fn kept_content(self) -> KeptContent {
        match self {
            RecordKind::Response => KeptContent::UpToBlankLine,
            RecordKind::Metadata => KeptContent::UpTo(MAX_HTTP_LEN),
            RecordKind::Links => KeptContent::UpTo(MAX_JSON_LEN),
            RecordKind::Other => KeptContent::Nothing,
        }
    }
}

/// The archive ends within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncatedArchive {
    /// Bytes of that record that are in no row.
    pub lost_len: u64,
}

/// Whether `head`, the first bytes of a source, begins an archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    is_version(line) || ArcHead::parse(line).is_some()
}

impl ArchiveParser {
    /// A parser for WAT: one row per link of each page, and no rows for the records themselves.
    pub fn of_links() -> ArchiveParser {
        ArchiveParser { links: Some(LinkReader::default()), ..ArchiveParser::default() }
    }

    /// A parser that selects the records whose `WARC-Type` is one of `types`; in ARC, `warcinfo` or `response`. An empty
    /// list selects all.
    pub(crate) fn of_types(types: &[String]) -> ArchiveParser {
        let types = types.iter().map(|name| name.to_ascii_lowercase().into_bytes()).collect();
        ArchiveParser { types, ..ArchiveParser::default() }
    }

    /// States that the bytes are those of the file `name` from its beginning, so that captures have positions.
    pub fn set_file(&mut self, name: &str, is_compressed: bool) {
        let name = name.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
        self.file = Some(ArchiveFile { name, is_compressed, member: (0, 0) });
    }

    /// States that a gzip member ends after the bytes taken so far, at byte `file_at` of the file.
    pub(crate) fn end_member(&mut self, file_at: u64) {
        let Some(file) = &mut self.file else { return };
        file.member = (self.at, file_at);
        if self.state == ParserState::Between {
            self.end_held(file_at);
        }
    }

    /// Number of records skipped because their type is not selected.
    pub(crate) fn skipped_count(&self) -> u64 {
        self.skipped_count
    }

    /// Bytes taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.at
    }

    /// Takes bytes until there are no more or `batch` is full, and returns how many it took. Records that end in these
    /// bytes are appended to `batch`.
    pub fn push(&mut self, bytes: &[u8], batch: &mut CaptureBatch) -> usize {
        let mut taken = 0;
        while !batch.is_full() {
            let rest = &bytes[taken..];
            if rest.is_empty() && self.state != ParserState::Links {
                break;
            }
            let len = match self.state {
                ParserState::Between => self.skip_line_ends(rest),
                ParserState::Head => self.read_head(rest, batch),
                ParserState::Content(content) => self.read_content(rest, content, batch),
                ParserState::Links => {
                    self.push_links(batch);
                    0
                }
            };
            self.at += len as u64;
            taken += len;
        }
        taken
    }

    /// Ends the archive, after a `push` that took all bytes and left `batch` not full. A record whose content is
    /// truncated becomes a flagged row if its own head is whole.
    ///
    /// # Errors
    /// The archive ends within a record.
    pub fn finish(&mut self, batch: &mut CaptureBatch) -> Result<(), TruncatedArchive> {
        let result = match self.state {
            ParserState::Between | ParserState::Links => {
                if self.file.as_ref().is_some_and(|file| !file.is_compressed) {
                    self.end_held(self.at);
                }
                Ok(())
            }
            ParserState::Head if self.head.trim_ascii().is_empty() => Ok(()),
            ParserState::Head => Err(TruncatedArchive { lost_len: self.head.len() as u64 }),
            ParserState::Content(ContentProgress { keep, .. }) => {
                self.current.flags |= Flags::CUT;
                if keep != KeptContent::Nothing {
                    // A part of a head may say something else than the whole head.
                    self.content.clear();
                }
                self.end_record(batch);
                Err(TruncatedArchive { lost_len: 0 })
            }
        };
        self.push_held(batch);
        self.state = ParserState::Between;
        result
    }

    /// Sets the end of the held record in the file, if it is not known yet.
    fn end_held(&mut self, file_at: u64) {
        if let Some(HeldCapture { capture, .. }) = &mut self.held
            && let (Some(begin), None) = (capture.archive_offset, capture.archive_length)
        {
            capture.archive_length = Some(file_at as i64 - begin);
        }
    }

    /// Begins a record, or bytes that may be one, at byte `at`.
    fn begin_record(&mut self, at: u64) {
        self.current.offset = at;
        self.current.archive_offset = match &self.file {
            Some(file) if !file.is_compressed => Some(at as i64),
            Some(file) if file.member.0 == at => Some(file.member.1 as i64),
            _ => None,
        };
        if self.file.as_ref().is_some_and(|file| !file.is_compressed) {
            self.end_held(at);
        }
    }

    fn skip_line_ends(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if len < bytes.len() {
            self.state = ParserState::Head;
            self.head.clear();
            self.line_at = 0;
            self.begin_record(self.at + len as u64);
        }
        len
    }

    /// Reads a line of a head, or a part of one.
    fn read_head(&mut self, bytes: &[u8], batch: &mut CaptureBatch) -> usize {
        let line_end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        let len = line_end.unwrap_or(bytes.len());
        self.head.extend_from_slice(&bytes[..len]);
        if line_end.is_none() && self.head.len() < MAX_HEAD_LEN {
            return len;
        }
        let mut head = std::mem::take(&mut self.head);
        let line = &head[self.line_at..];
        if self.line_at == 0 && !is_version(line) {
            match ArcHead::parse(line) {
                Some(arc) => self.begin_arc(&arc, batch),
                None => {
                    self.has_stray_bytes |= !head.trim_ascii().is_empty();
                    self.begin_record(self.at + len as u64);
                }
            }
        } else if line.trim_ascii().is_empty() || head.len() >= MAX_HEAD_LEN {
            self.begin_warc(&head, batch);
        } else {
            self.line_at = head.len();
            self.head = head;
            return len;
        }
        head.clear();
        (self.head, self.line_at) = (head, 0);
        len
    }

    fn begin_arc(&mut self, head: &ArcHead<'_>, batch: &mut CaptureBatch) {
        let capture = &mut self.current;
        capture.url.extend_from_slice(head.url);
        capture.mime.extend_from_slice(head.mime);
        capture.redirect.extend_from_slice(head.redirect);
        (capture.time, capture.status) = (time::from_digits(head.date), head.status);
        let name: &[u8] = if head.url.starts_with(b"filedesc:") { b"warcinfo" } else { b"response" };
        self.is_skipped = !self.is_selected(name);
        self.kind = RecordKind::Response;
        self.begin_content(head.content_len, batch);
    }

    fn begin_warc(&mut self, head: &[u8], batch: &mut CaptureBatch) {
        let head = WarcHead::parse(head);
        let (url, is_bracketed) = without_brackets(&head.target);
        let capture = &mut self.current;
        capture.url.extend_from_slice(url);
        capture.digest.extend_from_slice(&head.digest);
        capture.time = time::from_iso(&head.date);
        if is_bracketed {
            capture.flags |= Flags::BRACKETED;
        }
        capture.fault = match head.content_len {
            None => Some(FaultKind::NotOfFormat),
            Some(_) if url.is_empty() => Some(FaultKind::NoUrl),
            Some(_) => None,
        };
        let has_links = self.links.is_some();
        self.kind = match &head.record_type[..] {
            b"response" | b"revisit" if !has_links => RecordKind::Response,
            b"metadata" if has_links => RecordKind::Links,
            b"metadata" => RecordKind::Metadata,
            _ => RecordKind::Other,
        };
        // The media type of a response is in its HTTP head; indexes mark revisits by a media type of their own.
        match &head.record_type[..] {
            b"response" | b"request" => {}
            b"revisit" => capture.mime.extend_from_slice(REVISIT),
            _ => capture.mime.extend_from_slice(heads::without_parameters(&head.content_type)),
        }
        self.is_skipped = !self.is_selected(&head.record_type);
        self.begin_content(head.content_len.unwrap_or(0), batch);
    }

    fn is_selected(&self, record_type: &[u8]) -> bool {
        self.types.is_empty() || self.types.iter().any(|selected| selected == record_type)
    }

    fn begin_content(&mut self, len: u64, batch: &mut CaptureBatch) {
        if std::mem::take(&mut self.has_stray_bytes) {
            self.current.flags |= Flags::STRAY_BYTES;
        }
        self.content.clear();
        self.state = ParserState::Content(ContentProgress { remaining: len, keep: self.kind.kept_content() });
        if len == 0 {
            self.end_record(batch);
        }
    }

    fn read_content(&mut self, bytes: &[u8], content: ContentProgress, batch: &mut CaptureBatch) -> usize {
        let ContentProgress { remaining, keep } = content;
        let len = usize::try_from(remaining).map_or(bytes.len(), |remaining| remaining.min(bytes.len()));
        let keep = match keep {
            KeptContent::Nothing => KeptContent::Nothing,
            KeptContent::UpTo(max_len) => {
                let kept_len = max_len.saturating_sub(self.content.len()).min(len);
                self.content.extend_from_slice(&bytes[..kept_len]);
                keep
            }
            KeptContent::UpToBlankLine => {
                let seen = self.content.len().saturating_sub(3);
                self.content.extend_from_slice(&bytes[..len.min(MAX_HTTP_LEN)]);
                let is_whole = has_blank_line(&self.content[seen..]) || self.content.len() >= MAX_HTTP_LEN;
                if is_whole { KeptContent::Nothing } else { keep }
            }
        };
        let remaining = remaining - len as u64;
        self.state = ParserState::Content(ContentProgress { remaining, keep });
        if remaining == 0 {
            self.end_record(batch);
        }
        len
    }

    /// Ends the current record: it becomes the held one, and the one held before is pushed.
    fn end_record(&mut self, batch: &mut CaptureBatch) {
        self.state = ParserState::Between;
        self.skipped_count += u64::from(self.is_skipped);
        if let Some(links) = &mut self.links {
            if self.kind == RecordKind::Links && !self.current.flags.intersects(Flags::CUT) {
                if let Some(fault) = links.begin(&self.content, &self.current.url) {
                    batch.push_faulty(self.current.offset, self.current.flags, fault);
                }
                self.state = ParserState::Links;
            } else {
                self.current.clear();
            }
            return;
        }
        match self.kind {
            RecordKind::Response => self.read_http_head(),
            RecordKind::Metadata => self.read_charset(),
            RecordKind::Other | RecordKind::Links => {}
        }
        self.push_held(batch);
        let next = std::mem::take(&mut self.spare);
        let capture = std::mem::replace(&mut self.current, next);
        if self.is_skipped {
            self.recycle(capture);
        } else {
            self.held = Some(HeldCapture { capture, is_response: self.kind == RecordKind::Response });
        }
    }

    fn read_http_head(&mut self) {
        let head = ResponseHead::parse(&self.content);
        let capture = &mut self.current;
        capture.status = head.status.or(capture.status);
        capture.charset = head.charset;
        if !head.mime.is_empty() && capture.mime != REVISIT {
            capture.mime = head.mime;
        }
        if !head.redirect.is_empty() {
            capture.redirect = head.redirect;
        }
    }

    /// Reads the charset in a metadata record, also for the response before it.
    fn read_charset(&mut self) {
        self.current.charset = detected_charset(&self.content);
        if let Some(HeldCapture { capture: response, is_response: true }) = &mut self.held
            && response.url == self.current.url
            && !self.current.charset.is_empty()
        {
            response.charset.clone_from(&self.current.charset);
        }
    }

    /// Pushes links of a WAT record until there are no more or the batch is full.
    fn push_links(&mut self, batch: &mut CaptureBatch) {
        if let Some(links) = &mut self.links {
            let page = &self.current;
            while !batch.is_full() {
                let Some((url, base)) = links.next(&self.content) else { break };
                batch.push_link(page, url, base);
            }
            if batch.is_full() {
                return;
            }
        }
        self.current.clear();
        self.state = ParserState::Between;
    }

    fn push_held(&mut self, batch: &mut CaptureBatch) {
        let Some(HeldCapture { capture, .. }) = self.held.take() else { return };
        batch.push(&capture, self.file.as_ref().map_or(b"", |file| &file.name));
        self.recycle(capture);
    }

    fn recycle(&mut self, mut capture: Capture) {
        capture.clear();
        self.spare = capture;
    }
}
