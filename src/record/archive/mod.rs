//! WARC (ISO 28500), ARC and WAT: a push parser for the decompressed bytes of an archive.
//!
//! ```text
//! bytes --ArchiveParser::push--> headers and contents --RecordAssembler--> CaptureBatch (columns) --> RecordBuffer
//!            | Members, HeaderSearch: where records end
//! ```
//!
//! The parser skips payloads, so its memory is bounded, however long the records are; only the JSON of WAT records and,
//! for `extract`, documents are kept until they end. Every record becomes a row: a response with its status, redirect
//! and charset, a request, a revisit. A record without a URL, such as `warcinfo`, has a fault. In WAT archives every
//! link of a page becomes a row instead.
//!
//! - A `WARC-Target-URI` in angle brackets loses them and gets a flag.
//! - A metadata record that names the charset of the response before it also sets the charset of that response.
//! - A header without a readable length is a record with a fault, and so is a header that is too long. The bytes after it,
//!   up to the next header, are its content.
//! - A record ends where its length states, if the next header or the end of the archive follows. Otherwise the length is
//!   wrong if the content has a line that is a header: the record ends there. In a file of gzip members that begin with
//!   headers, a record ends with its member. Such a record gets a flag and is counted.
//! - Bytes between records that belong to no record are skipped up to the next line that begins a record; the record that
//!   follows gets a flag, and the bytes are counted.
//! - On request, the digest of each payload is computed if the record has none, and a response gets the method and body of
//!   its request, which is the record before or after it.
//! - In an archive that is a file, captures have their position in it. In an uncompressed file, a capture reaches from its
//!   header to the end of its content; in a file of gzip members, it is the member, if the member holds only this record.

mod assembler;
mod batch;
mod content;
mod damage;
mod documents;
mod exchange;
mod form;
mod headers;
mod json_query;
mod links;
mod members;
mod payload;
mod request;
mod selection;
#[cfg(test)]
mod tests;
mod window;

pub use batch::{BatchLimits, CaptureBatch};
pub use damage::ArchiveDamage;
#[cfg(feature = "pipeline")]
pub(crate) use documents::{ArchivedDocument, ContentState, DocumentKind, HttpDocument};
pub use selection::RecordTypes;
pub use window::ArchiveWindow;

use crate::iri::Flags;
use crate::kernel::strip_prefix_ignoring_case;
use crate::record::fields::FieldSet;
use assembler::{ArchiveFile, RecordAssembler};
use headers::{ArcHeader, WarcHeader, is_header, is_version, may_begin_arc_header};
use links::LinkReader;
use members::Members;
use payload::PayloadHasher;
use window::{ArchiveKind, HeaderSearch};

/// Longest header of a record, in bytes; a longer one is a fault.
pub(crate) const MAX_HEADER_LEN: u64 = 1 << 20;
/// Lengths that are wrong by at most this many bytes are common: the line ends between records are counted or not. They
/// lose nothing and are only flagged.
const MAX_LEN_ERROR: u64 = 4;

/// Parses the decompressed bytes of an archive.
#[derive(Debug, Default)]
pub struct ArchiveParser {
    state: ParserState,
    /// The next byte to parse; in a header, its first byte.
    at: u64,
    content: RecordContent,
    /// The content of the current record has ended, but the record has not: what follows is not known yet.
    is_ending: bool,
    /// A line end is before `at`.
    follows_line_end: bool,
    /// The content of the last record has no known end: the bytes up to the next header belong to it.
    is_open_ended: bool,
    /// Bytes since the last record that belong to no record, and where the first one is.
    stray_len: u64,
    stray_at: u64,
    /// The archive ends within a record, of which this many bytes are in no row.
    lost_len: Option<u64>,
    records: RecordAssembler,
    payload: PayloadHasher,
    members: Members,
    damage: ArchiveDamage,
    /// The archive is a mapped file: windows contain all bytes before them, and another process may change them.
    is_mapped: bool,
    /// A copy of the whole content of the current record, if it is needed and the archive is mapped.
    mapped_content: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ParserState {
    /// Between records.
    #[default]
    Between,
    /// In a line that may begin a record, or in the header that it begins. The line at `line_at` is not whole.
    Header {
        line_at: u64,
    },
    /// In the rest of a line that is too long to be a header.
    Line,
    Content,
    /// The links of a WAT record are being pushed.
    Links,
}

/// The content of the current record.
#[derive(Clone, Copy, Debug, Default)]
struct RecordContent {
    at: u64,
    end: u64,
    /// Up to where it was read by the assembler, or needs not be read.
    read_to: Option<u64>,
    /// The search for the end of the part that the assembler needs continues here.
    part_searched_to: u64,
    /// The record ended before its stated end.
    is_cut: bool,
    search: HeaderSearch,
}

/// The end of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveEnd {
    /// There is more to parse: the last record had a wrong length, or the batch is full.
    NotYet,
    /// The end, after a whole record.
    Whole,
    /// The archive ends within a record, of which this many bytes are in no row.
    Truncated(u64),
}

/// Whether `head`, the first bytes of a source, begins an archive, possibly after blank lines.
pub(crate) fn is_archive(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    lines.find(|line| !line.trim_ascii().is_empty()).is_some_and(is_header)
}

/// Whether the first line in `head` that begins a record is one of ARC. Other bytes may be before it.
pub(crate) fn is_arc(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    lines.find(|line| is_header(line)).is_some_and(|line| !is_version(line))
}

/// Whether two lines in `head`, which does not begin an archive, are the first ones of a WARC record: its version and a field.
pub(crate) fn has_warc_record(head: &[u8]) -> bool {
    let is_first = |line: &[u8]| is_version(line) && line.trim_ascii_end().len() == b"WARC/1.0".len();
    let is_field = |line: &[u8]| {
        let mut names = [&b"WARC-"[..], b"Content-"].into_iter();
        names.any(|name| strip_prefix_ignoring_case(line, name).is_some_and(|rest| rest.contains(&b':')))
    };
    let lines = || head.split(|&byte| byte == b'\n');
    lines().zip(lines().skip(1)).any(|(line, next)| is_first(line) && is_field(next))
}

impl ArchiveParser {
    /// A parser for WAT: one row per link of each page, and no rows for the records themselves.
    pub fn of_links() -> ArchiveParser {
        let mut parser = ArchiveParser::default();
        parser.records.links = Some(LinkReader::default());
        parser
    }

    /// A parser of documents of at most `max_len` bytes: of responses, revisits, resources and conversions with their
    /// content, and no rows.
    pub(crate) fn of_documents(max_len: u64) -> ArchiveParser {
        let mut parser = ArchiveParser::of_types(RecordTypes::Captures, FieldSet::default());
        parser.records.max_document_len = Some(max_len);
        parser
    }

    /// A parser that selects records by their type, and makes the fields of `carry`.
    pub(crate) fn of_types(types: RecordTypes, carry: FieldSet) -> ArchiveParser {
        let mut parser = ArchiveParser::default();
        (parser.records.types, parser.records.carry) = (types, carry);
        parser
    }

    /// States that the bytes are those of the file `name` from its beginning, so that captures have positions.
    pub fn set_file(&mut self, name: &str, is_compressed: bool) {
        let name = name.bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }).collect();
        self.records.file = Some(ArchiveFile { name, is_compressed });
    }

    /// Sets the byte at which the archive begins, and whether it is a mapped file, whose windows contain all bytes from
    /// there on.
    pub(crate) fn begin(&mut self, at: u64, is_mapped: bool) {
        (self.at, self.is_mapped, self.follows_line_end) = (at, is_mapped, true);
    }

    /// States that a gzip member ends after byte `unpacked` of the archive, and after byte `packed` of the file. To be
    /// called in order, and before bytes from `unpacked` on are pushed.
    pub(crate) fn push_member_end(&mut self, unpacked: u64, packed: u64) {
        self.members.push(unpacked, packed);
    }

    /// Number of records skipped because their type is not selected.
    pub(crate) fn skipped_count(&self) -> u64 {
        self.records.skipped_count
    }

    /// Number of WAT records that describe a page, with links or without.
    pub(crate) fn page_count(&self) -> u64 {
        self.records.page_count
    }

    /// The damage so far; all of it after the end.
    pub(crate) fn damage(&self) -> ArchiveDamage {
        self.damage
    }

    /// The position up to which bytes were parsed. It moves back if a record had a wrong length.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// The first byte that the next window has to contain.
    pub fn keep_from(&self) -> u64 {
        let mut from = self.at;
        let is_in_record = self.is_ending || matches!(self.state, ParserState::Content | ParserState::Links);
        if is_in_record {
            from = self.content.search.keep_from(from);
            if self.content.read_to.is_none() {
                from = from.min(self.content.at);
            }
        }
        from
    }

    /// Parses bytes until there are no more or `batch` is full. Records that end in these bytes are appended to `batch`.
    /// The window begins at or before [`ArchiveParser::keep_from`].
    pub fn push(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) {
        self.members.forget_before(self.keep_from());
        while !batch.is_full() {
            let are_blocks = self.state == ParserState::Content && self.members.are_blocks_of_record();
            let member_end = self.members.next_end().filter(|end| *end <= window.end() && !are_blocks);
            let visible = member_end.map_or(window, |end| window.until(end));
            if self.step(visible, batch) {
                continue;
            }
            match member_end {
                Some(_) => self.pass_member_end(visible, batch),
                None => break,
            }
        }
    }

    /// Parses a part of the window. Returns false if more bytes are needed.
    fn step(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) -> bool {
        if let Some(probe_at) = self.members.probe_at() {
            return self.probe_member(window, probe_at, batch);
        }
        match self.state {
            ParserState::Between => self.skip_line_ends(window),
            ParserState::Header { line_at } => self.read_header(window, line_at, batch),
            ParserState::Line => self.skip_line(window),
            ParserState::Content => self.read_content(window),
            ParserState::Links => self.push_links(window, batch),
        }
    }

    /// Ends the archive, after a `push` that parsed all bytes and left `batch` not full. A record whose content is
    /// truncated becomes a flagged row if its own header is whole.
    pub fn finish(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) -> ArchiveEnd {
        self.members.end_probe(true);
        let end = window.end();
        match self.state {
            ParserState::Links => return ArchiveEnd::NotYet,
            ParserState::Content => {
                if self.end_early(window, end, batch) {
                    return ArchiveEnd::NotYet;
                }
                self.truncate_content(window, batch);
            }
            ParserState::Header { .. } => {
                let header = window.slice(self.at..end);
                let is_sound = self.may_begin_next_arc_header(header);
                if self.is_ending && !is_sound && self.end_early(window, end, batch) || self.end_record(window, batch) {
                    return ArchiveEnd::NotYet;
                }
                self.truncate_header(header);
                self.records.end_held(self.at, false);
            }
            ParserState::Between | ParserState::Line => {
                if self.end_record(window, batch) {
                    return ArchiveEnd::NotYet;
                }
                if self.lost_len.is_none() {
                    self.records.end_held(self.at, false);
                }
            }
        }
        (self.state, self.at) = (ParserState::Between, end);
        if batch.is_full() {
            return ArchiveEnd::NotYet;
        }
        // In an ARC, bytes after a line end are not part of the record before it.
        let is_arc = self.content.search.kind() == ArchiveKind::Arc;
        let is_rest = (1..=MAX_LEN_ERROR).contains(&self.stray_len) && !(is_arc && self.stray_at > self.content.end);
        if is_rest && self.records.flag_held(Flags::CUT) {
            self.stray_len = 0;
        }
        self.end_stray(true);
        self.records.push_held(batch);
        self.lost_len.map_or(ArchiveEnd::Whole, ArchiveEnd::Truncated)
    }

    /// Ends the current record at the end of the archive, within its content.
    fn truncate_content(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) {
        self.records.flag(Flags::CUT);
        // The first part of a header is not read: it may have another meaning than the whole header.
        self.read_content_part(window, window.end());
        self.records.end(None, batch);
        self.lost_len = Some(0);
    }

    /// Ends the archive with `rest`: a line that is not whole, or a part of a header.
    fn truncate_header(&mut self, rest: &[u8]) {
        let is_lost = is_header(rest) || b"WARC/".starts_with(&rest[..rest.len().min(5)]);
        if is_lost || self.may_begin_next_arc_header(rest) {
            self.lost_len = Some(rest.len() as u64);
        } else {
            self.skip_stray(rest);
        }
    }

    /// Whether `rest`, the last bytes of the archive, may be the beginning of the header of the next record of an ARC. Records
    /// of an ARC end with a line end, so that the record before is whole then.
    fn may_begin_next_arc_header(&self, rest: &[u8]) -> bool {
        let is_after_record = self.follows_line_end && !self.is_open_ended;
        is_after_record && self.content.search.kind() == ArchiveKind::Arc && may_begin_arc_header(rest)
    }

    fn skip_line_ends(&mut self, window: ArchiveWindow<'_>) -> bool {
        let bytes = window.slice(self.at..window.end());
        let len = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.follows_line_end |= bytes[..len].contains(&b'\n');
        self.at += len as u64;
        if len < bytes.len() {
            self.state = ParserState::Header { line_at: self.at };
        }
        len < bytes.len()
    }

    fn skip_line(&mut self, window: ArchiveWindow<'_>) -> bool {
        let bytes = window.slice(self.at..window.end());
        let len = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
        self.skip_stray(&bytes[..len]);
        if bytes[..len].ends_with(b"\n") {
            (self.state, self.follows_line_end) = (ParserState::Between, true);
        }
        len > 0
    }

    /// Counts bytes at the current position that belong to no record.
    fn skip_stray(&mut self, bytes: &[u8]) {
        if !self.is_open_ended && !bytes.trim_ascii().is_empty() {
            if self.stray_len == 0 {
                self.stray_at = self.at;
            }
            self.stray_len += bytes.len() as u64;
        }
        self.at += bytes.len() as u64;
    }

    /// Ends a stretch of stray bytes; returns the flags of the record that follows.
    fn end_stray(&mut self, is_end_of_archive: bool) -> Flags {
        let len = std::mem::take(&mut self.stray_len);
        if len > MAX_LEN_ERROR || (len > 0 && is_end_of_archive) {
            self.damage.stray_len += len;
            self.damage.stray_count += 1;
            self.damage.at.get_or_insert(self.stray_at);
        }
        if len > 0 { Flags::STRAY_BYTES } else { Flags::NONE }
    }

    /// Reads a header, whose lines before `line_at` are whole and belong to it.
    fn read_header(&mut self, window: ArchiveWindow<'_>, mut line_at: u64, batch: &mut CaptureBatch) -> bool {
        loop {
            let rest = window.slice(line_at..window.end().min(self.at + MAX_HEADER_LEN));
            let Some(len) = memchr::memchr(b'\n', rest).map(|at| at as u64 + 1) else {
                if window.end() - self.at >= MAX_HEADER_LEN {
                    self.end_long_header(window, line_at, batch);
                    return true;
                }
                self.state = ParserState::Header { line_at };
                return false;
            };
            let line = &rest[..len as usize];
            if line_at == self.at {
                if !self.read_first_line(window, line, batch) {
                    return true;
                }
            } else if line.trim_ascii().is_empty() {
                self.begin_warc(window.slice(self.at..line_at + len));
                return true;
            }
            line_at += len;
        }
    }

    /// Handles a line between records. Returns whether it begins a header of several lines.
    fn read_first_line(&mut self, window: ArchiveWindow<'_>, line: &[u8], batch: &mut CaptureBatch) -> bool {
        let line_end = self.at + line.len() as u64;
        let is_header = is_header(line);
        if self.is_ending {
            let is_sound = is_header && self.follows_line_end;
            if !is_sound && self.end_early(window, line_end, batch) || self.end_record(window, batch) {
                return false;
            }
        }
        if is_header {
            self.records.end_held(self.at, false);
        }
        if is_version(line) {
            return true;
        }
        match ArcHeader::parse(&self.stable(line)) {
            Some(header) => self.begin_arc(&header, line_end),
            None => {
                self.skip_stray(line);
                (self.state, self.follows_line_end) = (ParserState::Between, true);
            }
        }
        false
    }

    /// Ends a header, or a line that may begin one, that is longer than allowed.
    fn end_long_header(&mut self, window: ArchiveWindow<'_>, line_at: u64, batch: &mut CaptureBatch) {
        let end = self.at + MAX_HEADER_LEN;
        let is_warc = line_at > self.at || is_version(window.slice(self.at..end));
        if self.is_ending && (!is_warc && self.end_early(window, end, batch) || self.end_record(window, batch)) {
            return;
        }
        if is_warc {
            self.records.end_held(self.at, false);
            let (flags, member_at) = (self.end_stray(false), self.members.begin_record(self.at));
            self.records.begin_too_long(self.at, member_at, flags);
            self.begin_content(end, None, ArchiveKind::Warc);
            self.end_record(window, batch);
        }
        self.state = ParserState::Line;
    }

    fn begin_arc(&mut self, header: &ArcHeader<'_>, content_at: u64) {
        let (flags, member_at) = (self.end_stray(false), self.members.begin_record(self.at));
        let flags = if header.content_len.is_none() { flags | Flags::CUT } else { flags };
        self.records.begin_arc(header, self.at, member_at, flags);
        self.begin_content(content_at, header.content_len, ArchiveKind::Arc);
    }

    fn begin_warc(&mut self, bytes: &[u8]) {
        let header = &self.stable(bytes);
        let header = WarcHeader::parse(header);
        let (flags, member_at) = (self.end_stray(false), self.members.begin_record(self.at));
        self.records.begin_warc(&header, self.at, member_at, flags);
        self.begin_content(self.at + bytes.len() as u64, header.content_len, ArchiveKind::Warc);
    }
}
