//! WARC (ISO 28500) and ARC: bytes of an unpacked archive in, a [`Capture`] a record out. Payloads are passed over as
//! they come, so memory holds one head, however long records are.
//!
//! Every record is a capture: a response with its status, redirect and charset, a request, a revisit; one that names no
//! URL, as `warcinfo`, has a fault. A `WARC-Target-URI` between angle brackets loses them and is flagged. A metadata
//! record that names the charset of its response lends it that one.
//!
//! What is between records and belongs to none is passed over up to the next line that begins one, and the record that
//! follows is flagged. A head without a length that can be read is a record with a fault.
//!
//! Captures of an archive that is a file say where they lie in it: in one that is not packed from the head to the next one,
//! in one of gzip members from the beginning to the end of a member that holds nothing else.

mod heads;

use super::capture::Capture;
use super::http::{Head, without_parameters};
use super::{time, wat};
use crate::iri::{FaultKind, Flags};
use heads::{WarcFields, arc_record, detected_charset, has_blank_line, is_version, without_brackets};

/// The media type that indexes have for captures that say no more than that nothing has changed.
const REVISIT: &[u8] = b"warc/revisit";
/// A longer head is none.
const HEAD_MOST: usize = 1 << 20;
/// A response's fields are looked for this far into its content.
const HTTP_MOST: usize = 256 << 10;
/// The longest JSON of a WAT record that is read.
const JSON_MOST: usize = 256 << 20;

/// Makes captures of an archive.
#[derive(Debug, Default)]
pub struct Archive {
    state: State,
    /// Bytes taken so far.
    at: u64,
    /// The head that is being read, whole lines and the beginning of one.
    head: Vec<u8>,
    /// Where the last line of `head` begins.
    line_at: usize,
    /// Bytes that belonged to no record stood before this head.
    is_stray: bool,
    /// What is kept of the content.
    content: Vec<u8>,
    record: Record,
    /// The last record, until it is known where it ends and whether metadata follow.
    held: Option<Held>,
    file: Option<File>,
    /// Links are wanted, not records.
    takes_links: bool,
    /// Types of the records that are wanted, in lower case; all if there are none.
    types: Vec<Vec<u8>>,
    /// Records of other types, passed over.
    skipped: u64,
}

#[derive(Debug)]
struct Held {
    capture: Capture,
    is_response: bool,
}

/// What the archive is read from.
#[derive(Debug)]
struct File {
    name: Vec<u8>,
    is_packed: bool,
    /// Where the last gzip member begins: unpacked, and in the file.
    member: (u64, u64),
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    #[default]
    Between,
    Head,
    Content {
        left: u64,
        keep: Keep,
    },
}

/// What of a content is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Keep {
    #[default]
    Nothing,
    UpToBlankLine,
    All(usize),
}

#[derive(Debug, Default)]
struct Record {
    capture: Capture,
    kind: Kind,
    keeps: Keep,
    /// Its type is not wanted.
    is_skipped: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Kind {
    Response,
    Metadata,
    Links,
    #[default]
    Other,
}

/// An archive ended within a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Bytes of that record, if it has no line.
    pub lost: u64,
}

/// `head`, the first bytes of a source, begins an archive.
pub(super) fn is_archive(head: &[u8]) -> bool {
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    is_version(line) || arc_record(line).is_some()
}

impl Archive {
    /// For WAT: a record for every link of every page, and none for what holds them.
    pub fn of_links() -> Archive {
        Archive { takes_links: true, ..Archive::default() }
    }

    /// Records of these types alone, as `WARC-Type` has them; `warcinfo` and `response` in ARC. None stands for all.
    pub fn of_types(types: &[String]) -> Archive {
        let types = types.iter().map(|name| name.to_ascii_lowercase().into_bytes()).collect();
        Archive { types, ..Archive::default() }
    }

    /// The archive is a file of that name, from its first byte on.
    pub fn set_file(&mut self, name: &str, is_packed: bool) {
        self.file = Some(File { name: name.as_bytes().to_vec(), is_packed, member: (0, 0) });
    }

    /// A gzip member ends with the bytes taken so far, at byte `place` of the file.
    pub fn end_member(&mut self, place: u64) {
        let Some(file) = &mut self.file else { return };
        file.member = (self.at, place);
        if self.state == State::Between {
            self.end_held(place);
        }
    }

    /// The last record's bytes in the file end at `place`, unless they ended before.
    fn end_held(&mut self, place: u64) {
        if let Some(Held { capture: Capture { place: Some(begin), length: length @ None, .. }, .. }) = &mut self.held {
            *length = Some(place as i64 - *begin);
        }
    }

    /// A record, or what looks like one, begins at byte `at`.
    fn begin(&mut self, at: u64) {
        let capture = &mut self.record.capture;
        capture.offset = at;
        capture.place = match &self.file {
            Some(file) if !file.is_packed => Some(at as i64),
            Some(file) if file.member.0 == at => Some(file.member.1 as i64),
            _ => None,
        };
        if self.file.as_ref().is_some_and(|file| !file.is_packed) {
            self.end_held(at);
        }
    }

    /// Records passed over so far because their type is not wanted.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes taken so far.
    pub fn taken(&self) -> u64 {
        self.at
    }

    /// Takes the next bytes; appends the lines of records that end in them to `out`.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            let len = match self.state {
                State::Between => self.between(bytes),
                State::Head => self.head_line(bytes, out),
                State::Content { left, keep } => self.content(bytes, left, keep, out),
            };
            self.at += len as u64;
            bytes = &bytes[len..];
        }
    }

    /// The archive ends. A record whose content ends early has its line, flagged, when its own head is whole.
    ///
    /// # Errors
    /// It ends within a record.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Cut> {
        let result = match self.state {
            State::Between => {
                if self.file.as_ref().is_some_and(|file| !file.is_packed) {
                    self.end_held(self.at);
                }
                Ok(())
            }
            State::Head if self.head.trim_ascii().is_empty() => Ok(()),
            State::Head => Err(Cut { lost: self.head.len() as u64 }),
            State::Content { keep, .. } => {
                self.record.capture.flags |= Flags::CUT;
                if keep != Keep::Nothing {
                    // A part of what it says is not what it says.
                    self.content.clear();
                }
                self.end(out);
                Err(Cut { lost: 0 })
            }
        };
        self.flush(out);
        self.state = State::Between;
        result
    }

    /// Line ends between records.
    fn between(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if len < bytes.len() {
            self.state = State::Head;
            self.head.clear();
            self.line_at = 0;
            self.begin(self.at + len as u64);
        }
        len
    }

    /// A line of a head, or a piece of one.
    fn head_line(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let end = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        let len = end.unwrap_or(bytes.len());
        self.head.extend_from_slice(&bytes[..len]);
        if end.is_none() && self.head.len() < HEAD_MOST {
            return len;
        }
        let end = self.at + len as u64;
        let line = &self.head[self.line_at..];
        let is_blank = line.trim_ascii().is_empty();
        if self.line_at == 0 && !is_version(line) {
            match arc_record(line) {
                Some((capture, left)) => self.begin_arc(capture, left, out),
                None => self.stray(end),
            }
        } else if is_blank || self.head.len() >= HEAD_MOST {
            self.begin_warc(out);
        } else {
            self.line_at = self.head.len();
        }
        len
    }

    /// The line begins no record; perhaps the next one, at byte `next`, does.
    fn stray(&mut self, next: u64) {
        self.is_stray |= !self.head.trim_ascii().is_empty();
        self.head.clear();
        self.line_at = 0;
        self.begin(next);
    }

    fn begin_arc(&mut self, capture: Capture, left: u64, out: &mut Vec<u8>) {
        let Capture { offset, place, .. } = self.record.capture;
        let name: &[u8] = if capture.url.starts_with(b"filedesc:") { b"warcinfo" } else { b"response" };
        let is_skipped = !self.wants(name);
        let capture = Capture { offset, place, ..capture };
        self.record = Record { capture, kind: Kind::Response, keeps: Keep::UpToBlankLine, is_skipped };
        self.begin_content(left, out);
    }

    fn begin_warc(&mut self, out: &mut Vec<u8>) {
        let head = std::mem::take(&mut self.head);
        let fields = WarcFields::read(&head);
        self.head = head;
        self.head.clear();
        let Capture { offset, place, .. } = self.record.capture;
        let (url, is_bracketed) = without_brackets(&fields.target);
        let mut capture = Capture {
            offset,
            place,
            time: time::from_iso(&fields.date),
            url: url.to_vec(),
            digest: fields.digest,
            flags: if is_bracketed { Flags::BRACKETED } else { Flags::NONE },
            ..Capture::default()
        };
        let left = fields.length.unwrap_or_else(|| {
            capture.fault = Some(FaultKind::NotOfFormat);
            0
        });
        if capture.url.is_empty() && capture.fault.is_none() {
            capture.fault = Some(FaultKind::NoUrl);
        }
        let (kind, keeps) = match &fields.kind[..] {
            b"response" | b"revisit" if !self.takes_links => (Kind::Response, Keep::UpToBlankLine),
            b"metadata" if self.takes_links => (Kind::Links, Keep::All(JSON_MOST)),
            b"metadata" => (Kind::Metadata, Keep::All(HTTP_MOST)),
            _ => (Kind::Other, Keep::Nothing),
        };
        // A response's is in its own head; that of a revisit is how indexes say that it is one.
        capture.mime = match &fields.kind[..] {
            b"response" | b"request" => Vec::new(),
            b"revisit" => REVISIT.to_vec(),
            _ => without_parameters(&fields.content_type).to_vec(),
        };
        let is_skipped = !self.wants(&fields.kind);
        self.record = Record { capture, kind, keeps, is_skipped };
        self.begin_content(left, out);
    }

    fn wants(&self, name: &[u8]) -> bool {
        self.types.is_empty() || self.types.iter().any(|wanted| wanted == name)
    }

    fn begin_content(&mut self, left: u64, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_stray) {
            self.record.capture.flags |= Flags::STRAY_BYTES;
        }
        self.content.clear();
        self.state = State::Content { left, keep: self.record.keeps };
        if left == 0 {
            self.end(out);
        }
    }

    fn content(&mut self, bytes: &[u8], left: u64, keep: Keep, out: &mut Vec<u8>) -> usize {
        let len = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
        let keep = match keep {
            Keep::Nothing => Keep::Nothing,
            Keep::All(most) => {
                let room = most.saturating_sub(self.content.len()).min(len);
                self.content.extend_from_slice(&bytes[..room]);
                keep
            }
            Keep::UpToBlankLine => {
                let seen = self.content.len().saturating_sub(3);
                self.content.extend_from_slice(&bytes[..len.min(HTTP_MOST)]);
                let is_whole = has_blank_line(&self.content[seen..]) || self.content.len() >= HTTP_MOST;
                if is_whole { Keep::Nothing } else { keep }
            }
        };
        let left = left - len as u64;
        self.state = State::Content { left, keep };
        if left == 0 {
            self.end(out);
        }
        len
    }

    /// The record is whole.
    fn end(&mut self, out: &mut Vec<u8>) {
        self.state = State::Between;
        let Record { mut capture, kind, is_skipped, .. } = std::mem::take(&mut self.record);
        self.skipped += u64::from(is_skipped);
        if self.takes_links {
            if kind == Kind::Links && !capture.flags.intersects(Flags::CUT) {
                wat::write_links(&capture, &self.content, out);
            }
            return;
        }
        match kind {
            Kind::Response => {
                let head = Head::read(&self.content);
                capture.status = head.status.or(capture.status);
                capture.charset = head.charset;
                if !head.mime.is_empty() && capture.mime != REVISIT {
                    capture.mime = head.mime;
                }
                if !head.redirect.is_empty() {
                    capture.redirect = head.redirect;
                }
            }
            Kind::Metadata => {
                capture.charset = detected_charset(&self.content);
                if let Some(Held { capture: response, is_response: true }) = &mut self.held
                    && response.url == capture.url
                    && !capture.charset.is_empty()
                {
                    response.charset.clone_from(&capture.charset);
                }
            }
            Kind::Other | Kind::Links => {}
        }
        self.flush(out);
        self.held = (!is_skipped).then_some(Held { capture, is_response: kind == Kind::Response });
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let Some(Held { mut capture, .. }) = self.held.take() else { return };
        if let Some(file) = &self.file {
            capture.filename.clone_from(&file.name);
        }
        // A place without an end is of no use.
        capture.place = capture.place.filter(|_| capture.length.is_some());
        capture.write_line(out);
    }
}

#[cfg(test)]
mod tests;
