//! The content of a record, and where the record ends: where its length states, at a header within it, or with its gzip
//! member.

use super::assembler::{ContentPart, PayloadPart};
use super::headers::{self, is_header, is_version};
use super::window::{ArchiveKind, ArchiveWindow, HeaderSearch};
use super::{ArchiveParser, CaptureBatch, MAX_HEADER_LEN, MAX_LEN_ERROR, ParserState, RecordContent};
use crate::iri::Flags;
use std::borrow::Cow;

impl ArchiveParser {
    /// Begins the content of the current record. If its length is not known, it is not read.
    pub(super) fn begin_content(&mut self, at: u64, len: Option<u64>, kind: ArchiveKind) {
        let end = at.saturating_add(len.unwrap_or(0));
        self.records.set_content_len(len.unwrap_or(0));
        let is_unread = end > at && self.records.content_part() != ContentPart::Nothing;
        let search = HeaderSearch::new(kind, at);
        let read_to = if is_unread { None } else { Some(at) };
        self.content = RecordContent { at, end, read_to, part_searched_to: at, is_cut: false, search };
        self.payload.abandon();
        let has_header = self.records.payload_part() == PayloadPart::AfterHeader && end > at;
        if len.is_some() && !has_header && self.records.payload_part() != PayloadPart::Nothing {
            self.payload.begin(at);
        }
        (self.at, self.follows_line_end, self.is_open_ended) = (at, true, len.is_none());
        self.is_ending = end == at;
        self.state = if end == at { ParserState::Between } else { ParserState::Content };
    }

    pub(super) fn read_content(&mut self, window: ArchiveWindow<'_>) -> bool {
        let end = self.content.end.min(window.end());
        if !self.is_mapped {
            // A record that has a gzip member of its own ends with it.
            if self.members.has_own_member() {
                self.content.search.skip(end);
            } else {
                self.content.search.advance(window, end);
            }
            self.read_content_to(window, self.content.search.clear_to(end));
        }
        self.at = end;
        let is_whole = end == self.content.end;
        if self.members.are_blocks_of_record() {
            // A member that ends with the content is passed after it.
            self.members.pass_blocks(if is_whole { end - 1 } else { end });
        }
        if !is_whole {
            return false;
        }
        self.follows_line_end = window.slice(end - 1..end) == b"\n";
        (self.state, self.is_ending) = (ParserState::Between, true);
        true
    }

    /// Reads what is needed of the content up to byte `to`.
    ///
    /// The record may end at the first line that looks like a header, however long it is stated to be. What follows that line
    /// is read when the record has ended, because bytes that belong to the next records would be read again for each of
    /// them. Of a mapped archive, all of the content is read then.
    fn read_content_to(&mut self, window: ArchiveWindow<'_>, to: u64) {
        self.read_content_part(window, to);
        self.payload.advance(window, to);
    }

    /// Gives the assembler the part of the content that it needs, if it has not read that part, and if `to` is not before
    /// the end of that part.
    pub(super) fn read_content_part(&mut self, window: ArchiveWindow<'_>, to: u64) {
        let RecordContent { at, end: content_end, part_searched_to: from, read_to: None, .. } = self.content else {
            return;
        };
        let read_to = match self.records.content_part() {
            ContentPart::Nothing => Some(at),
            // Read when the record has ended.
            ContentPart::Whole => None,
            ContentPart::First(max_len) => Some(content_end.min(at + max_len)).filter(|part_end| *part_end <= to),
            ContentPart::Header(max_len) => {
                let limit = content_end.min(at + max_len);
                let blank = headers::blank_line_end(window.slice(from..to.min(limit)));
                // The last two bytes may be a part of a blank line.
                self.content.part_searched_to = from.max(to.min(limit).saturating_sub(2));
                let blank = blank.map(|len| from + len as u64);
                blank.or((limit <= to).then_some(limit))
            }
        };
        if let Some(read_to) = read_to {
            let part = &self.stable(window.slice(at..read_to));
            self.records.read_content(part);
            self.content.read_to = Some(read_to);
            if self.records.payload_part() == PayloadPart::AfterHeader {
                match headers::http_header_end(part) {
                    Some(len) => self.payload.begin(at + len as u64),
                    None if read_to == content_end => self.payload.begin(read_to),
                    // The header is too long.
                    None => {}
                }
            }
        }
    }

    /// Ends the current record before its stated end, if its content has a line before byte `to` that is the header of
    /// another record. Returns whether it has; the parser continues there.
    pub(super) fn end_early(&mut self, window: ArchiveWindow<'_>, to: u64, batch: &mut CaptureBatch) -> bool {
        let header_at = self.content.search.finish(window, to).filter(|header_at| *header_at < self.content.end);
        let Some(header_at) = header_at else { return false };
        self.cut_content(window, header_at);
        self.members.seek(header_at);
        let has_links = self.end_record(window, batch);
        (self.at, self.follows_line_end) = (header_at, true);
        self.state = if has_links { ParserState::Links } else { ParserState::Header { line_at: header_at } };
        true
    }

    /// Ends the content of the current record at byte `end`, before its stated end.
    fn cut_content(&mut self, window: ArchiveWindow<'_>, end: u64) {
        if self.content.end - end > MAX_LEN_ERROR {
            self.damage.short_count += 1;
            self.damage.at.get_or_insert(end);
        }
        self.read_content_part(window, end);
        if self.content.read_to.is_none_or(|read_to| read_to > end) {
            self.records.forget_content();
        }
        self.payload.abandon();
        self.records.flag(Flags::CUT);
        (self.content.end, self.content.is_cut, self.is_ending) = (end, true, true);
    }

    /// Ends the current record, if its content has ended. Returns whether its links are to be pushed.
    pub(super) fn end_record(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) -> bool {
        if !std::mem::take(&mut self.is_ending) {
            return false;
        }
        if !self.content.is_cut {
            self.read_content_to(window, self.content.end);
        }
        if let Some(digest) = self.payload.finish() {
            self.records.set_payload_digest(digest);
        }
        if !self.is_open_ended {
            self.records.end_at(self.content.end);
        }
        let content = self.whole_content(window);
        if self.is_mapped {
            self.mapped_content.clear();
            self.mapped_content.extend_from_slice(content.unwrap_or_default());
        }
        let content = content.map(|content| if self.is_mapped { &self.mapped_content } else { content });
        let has_links = self.records.end(content, batch);
        if has_links {
            self.state = ParserState::Links;
        }
        has_links
    }

    /// Bytes that are to be parsed: a copy if the archive is mapped.
    pub(super) fn stable<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.is_mapped { Cow::Owned(bytes.to_vec()) } else { Cow::Borrowed(bytes) }
    }

    /// The content of a WAT record or a document.
    fn whole_content<'a>(&self, window: ArchiveWindow<'a>) -> Option<&'a [u8]> {
        let is_whole = self.records.content_part() == ContentPart::Whole;
        is_whole.then(|| window.slice(self.content.at..self.content.end))
    }

    pub(super) fn push_links(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) -> bool {
        let content = self.whole_content(window).unwrap_or_default();
        let content = if self.is_mapped { &self.mapped_content } else { content };
        if !self.records.push_links(content, batch) {
            self.state = ParserState::Between;
        }
        true
    }

    /// Passes the end of a gzip member, after which nothing is visible.
    pub(super) fn pass_member_end(&mut self, window: ArchiveWindow<'_>, batch: &mut CaptureBatch) {
        let is_within = matches!(self.state, ParserState::Header { .. } | ParserState::Content);
        let file_at = self.members.pass(is_within);
        if self.members.are_records() && matches!(self.state, ParserState::Between | ParserState::Line) {
            self.state = ParserState::Between;
            self.end_record(window, batch);
            self.follows_line_end = true;
            self.records.end_held(file_at, true);
        }
    }

    /// Looks whether the gzip member that begins at byte `at`, within a header or a content, begins with a header. Then the
    /// record before it ends there. Returns false if more bytes are needed.
    pub(super) fn probe_member(&mut self, window: ArchiveWindow<'_>, at: u64, batch: &mut CaptureBatch) -> bool {
        let bytes = window.slice(at..window.end().min(at + MAX_HEADER_LEN));
        let line_len = memchr::memchr(b'\n', bytes).map(|at| at + 1);
        if line_len.is_none() && (bytes.len() as u64) < MAX_HEADER_LEN {
            return false;
        }
        let is_header = line_len.is_some_and(|len| is_header(&bytes[..len]));
        self.members.end_probe(is_header);
        if is_header {
            self.end_with_member(window, at, batch);
        }
        true
    }

    /// Ends a record in the middle of its header or content, at byte `at`, where a gzip member begins.
    fn end_with_member(&mut self, window: ArchiveWindow<'_>, at: u64, batch: &mut CaptureBatch) {
        if let ParserState::Header { .. } = self.state {
            let header = window.slice(self.at..at);
            if is_version(header) {
                self.begin_warc(header);
            } else {
                self.skip_stray(header);
            }
        }
        if self.state == ParserState::Content {
            if self.end_early(window, at, batch) {
                return;
            }
            self.cut_content(window, at);
        }
        if !self.end_record(window, batch) {
            self.state = ParserState::Between;
        }
        (self.at, self.follows_line_end) = (at, true);
        if let Some(file_at) = self.members.last_end() {
            self.records.end_held(file_at, true);
        }
    }
}
