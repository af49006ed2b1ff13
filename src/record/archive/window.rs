//! The part of a decompressed archive that the parser can see, and the search for headers in it.

use super::headers::{ArcHeader, is_version};
use std::ops::Range;

/// Decompressed bytes of an archive, of which the first one is at byte `at`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArchiveWindow<'a> {
    /// Where the bytes begin.
    pub at: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> ArchiveWindow<'a> {
    /// The position after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// The same bytes, without those from `end` on.
    pub(super) fn until(self, end: u64) -> ArchiveWindow<'a> {
        ArchiveWindow { at: self.at, bytes: self.slice(self.at..end) }
    }

    /// The bytes of `range` that are in the window.
    pub(super) fn slice(&self, range: Range<u64>) -> &'a [u8] {
        let index = |at: u64| {
            usize::try_from(at.saturating_sub(self.at)).map_or(self.bytes.len(), |at| at.min(self.bytes.len()))
        };
        &self.bytes[index(range.start)..index(range.end).max(index(range.start))]
    }
}

/// The kinds of archives, whose records have different headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ArchiveKind {
    #[default]
    Warc,
    Arc,
}

impl ArchiveKind {
    /// A line end and the first bytes of a line that may be a header.
    fn pattern(self) -> &'static [u8] {
        match self {
            ArchiveKind::Warc => b"\nWARC/",
            ArchiveKind::Arc => b"\nhttp",
        }
    }

    /// Whether a whole line within the content of a record looks like the header of another one. `next` is the line that
    /// follows, if it is known.
    fn is_header(self, line: &[u8], next: Option<&&[u8]>) -> bool {
        let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        match self {
            ArchiveKind::Warc => {
                let version = line.trim_ascii_end().get(5..).filter(|_| is_version(line));
                let mut parts = version.unwrap_or_default().split(|&byte| byte == b'.');
                let is_field = |line: &&[u8]| line[0].is_ascii_alphabetic() && line.contains(&b':');
                next.is_none_or(is_field)
                    && parts.next().is_some_and(is_number)
                    && parts.next().is_some_and(is_number)
                    && parts.next().is_none()
            }
            ArchiveKind::Arc => ArcHeader::parse(line).is_some(),
        }
    }
}

/// Searches the last [`HeaderSearch::MAX_LEN`] bytes of the content of a record for a line that may be the header of another
/// record.
///
/// A stream is searched while it is read, because it cannot be read again. What follows the line is kept until the line is too
/// far back. A mapped file is searched only if a record seems to have a wrong length. Both ways find the same line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeaderSearch {
    kind: ArchiveKind,
    /// Where the search continues: at a byte that may be the line end before the line.
    searched_to: u64,
    /// The beginning of the first line that was found and is not too far back.
    found_at: Option<u64>,
}

impl HeaderSearch {
    /// A record is searched for a header up to this many bytes before its end.
    pub(super) const MAX_LEN: u64 = 32 << 20;

    /// A search in the content that begins at byte `content_at`, after a line end.
    pub(super) fn new(kind: ArchiveKind, content_at: u64) -> HeaderSearch {
        HeaderSearch { kind, searched_to: content_at.saturating_sub(1), found_at: None }
    }

    /// The kind of the archive, or the default one before the first record.
    pub(super) fn kind(&self) -> ArchiveKind {
        self.kind
    }

    /// The first byte that the search still needs, if the content was read up to byte `at`.
    pub(super) fn keep_from(&self, at: u64) -> u64 {
        self.found_at.unwrap_or(self.searched_to).min(at)
    }

    /// The content was searched up to byte `to`. Returns up to where no line was found that may be a header, so that the record
    /// does not end before.
    pub(super) fn clear_to(&self, to: u64) -> u64 {
        self.found_at.unwrap_or(to)
    }

    /// Leaves out the content up to byte `to`.
    pub(super) fn skip(&mut self, to: u64) {
        let overlap = self.kind.pattern().len() as u64 - 1;
        self.searched_to = self.searched_to.max(to.saturating_sub(overlap));
    }

    /// Searches on up to byte `to`.
    pub(super) fn advance(&mut self, window: ArchiveWindow<'_>, to: u64) {
        let first = to.saturating_sub(HeaderSearch::MAX_LEN);
        if let Some(at) = self.found_at.take_if(|at| *at < first) {
            self.searched_to = at;
        }
        if self.found_at.is_none() {
            // A line begins after a line end.
            let from = self.searched_to.max(first.saturating_sub(1));
            let bytes = window.slice(from..to);
            self.found_at = memchr::memmem::find(bytes, self.kind.pattern()).map(|at| from + at as u64 + 1);
            self.skip(to);
        }
    }

    /// The first line up to byte `to` that looks like a header. All bytes up to there are in the window.
    pub(super) fn finish(mut self, window: ArchiveWindow<'_>, to: u64) -> Option<u64> {
        self.advance(window, to);
        let mut at = self.found_at?;
        let mut lines = window.slice(at..to).split_inclusive(|&byte| byte == b'\n').peekable();
        while let Some(line) = lines.next().filter(|line| line.ends_with(b"\n")) {
            let next = lines.peek().filter(|next| next.ends_with(b"\n"));
            if self.kind.is_header(line, next) {
                return Some(at);
            }
            at += line.len() as u64;
        }
        None
    }
}
