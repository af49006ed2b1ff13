//! The body of a source that is being cut: its text, mapped or read as far as needed, or the reader of its rows.

use super::archive::{ArchiveBytes, ArchiveReader};
use super::line_counts::{LineCounts, count_lines};
use super::options::{RunOptions, RunRequest, SLICE_LEN};
use super::row_reader::{JsonReader, ReadEnd, RowReader, StreamBytes};
use crate::canon::MAX_TEXT_LEN;
use crate::encoding::{ByteOrder, Charset, Utf16Decoder};
use crate::input::mmap::MappedFile;
use crate::input::{Block, BlockPool, Buffer, Defect, MemberEnd, Opened, Stream};
use crate::record::archive::ArchiveParser;
use crate::record::boundary::{Boundary, Quoting, TooLong};
use crate::record::fields::FieldSet;
use crate::record::json_document::JsonDocumentParser;
use crate::record::{BASE_SHARE, source_head_len};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum ratio of the length of a URI to that of its record: a byte of a charset becomes a character of three bytes, which
/// are percent-encoded.
const MAX_GROWTH: usize = 9;

/// Minimum number of bytes for which a record counts. The memory that workers need was measured on lines of this length.
pub(super) const MIN_RECORD_LEN: usize = 16;

/// How sources are read and cut.
pub(super) struct CutOptions<'a> {
    pub(super) run: &'a RunOptions,
    /// The charset of the sources, if the user chose one.
    pub(super) charset: Option<Charset>,
    /// The fields that are decoded.
    pub(super) carry: FieldSet,
    pub(super) pool: Arc<BlockPool>,
    /// Bytes of text per row group.
    pub(super) row_group_len: usize,
    /// Bytes of text per slice of a row group.
    pub(super) slice_len: usize,
    /// Short lines are searched in samples only.
    pub(super) samples_lines: bool,
    /// Row groups count at least one part in this many of the bases of tables and archives.
    pub(super) base_share: usize,
    /// Bytes to read after a target, which usually contain the end of a record.
    slack: usize,
}

impl<'a> CutOptions<'a> {
    /// The options of a request; `run` are its options within their limits.
    pub(super) fn new(run: &'a RunOptions, request: &RunRequest<'_>) -> CutOptions<'a> {
        let policy = request.policy;
        let base_len = policy.base.as_ref().map_or(0, Vec::len);
        let (row_group_len, base_share) = match row_group_len(run.row_group_len, base_len) {
            len if request.counts_bases => (len.min(len_without_bases(run.row_group_len, base_len)), 1),
            len => (len, BASE_SHARE),
        };
        let slice_len = if request.has_slices { row_group_len.min(SLICE_LEN) } else { row_group_len };
        let samples_lines = slice_len < row_group_len || request.appends_nothing;
        let slack = (slice_len / 32).clamp(4 << 10, 128 << 10);
        let pool = BlockPool::new(run.threads * 3, slice_len * 2 + slack);
        let (charset, carry) = (policy.charset, policy.carry);
        CutOptions { run, charset, carry, pool, row_group_len, slice_len, samples_lines, base_share, slack }
    }

    /// Maximum number of slices of a row group.
    pub(super) fn slices_per_group(&self) -> usize {
        self.row_group_len.div_ceil(self.slice_len)
    }
}

/// The bytes per row group: `chosen`, unless the URIs of this many bytes of relative references could exceed
/// [`MAX_TEXT_LEN`]. A record has at least one byte, and its URI is longer than the base by at most [`MAX_GROWTH`] bytes
/// per byte.
fn row_group_len(chosen: usize, base_len: usize) -> usize {
    let uri_len = base_len + MAX_GROWTH;
    let is_short = base_len == 0 || chosen.saturating_mul(uri_len) <= MAX_TEXT_LEN;
    if is_short { chosen } else { (MAX_TEXT_LEN / 8 / uri_len).max(1) }
}

/// Number of bytes of the shortest records without their bases, if records and bases of `base_len` bytes have `chosen` bytes
/// together.
fn len_without_bases(chosen: usize, base_len: usize) -> usize {
    let shortest = MIN_RECORD_LEN as u128;
    ((chosen as u128 * shortest / (shortest + base_len as u128)) as usize).max(1)
}

/// A source from the first record that was not cut yet.
#[derive(Default)]
pub(super) enum SourceBody {
    /// No text.
    #[default]
    Empty,
    /// Text in a mapped file, with the numbers of its lines if row groups depend on all of them.
    Mapped { mapping: Arc<MappedFile>, start: usize, lines: Option<Arc<LineCounts>> },
    /// Text that is read.
    Stream(Box<TextStream>),
    /// Rows of a table, an archive or a JSON document.
    Rows(Box<dyn RowReader>),
}

/// Text of a stream, as far as it was read.
pub(super) struct TextStream {
    stream: Stream,
    /// Ends of gzip members, in case the source turns out to be an archive.
    member_ends: VecDeque<MemberEnd>,
    buffer: Buffer,
    /// The first byte of `buffer` that was not cut.
    start: usize,
    is_ended: bool,
    defect: Option<Defect>,
}

/// Whole records at the beginning of a text.
pub(super) struct TextCut {
    pub(super) len: usize,
    pub(super) end: ReadEnd,
}

impl SourceBody {
    pub(super) fn new(opened: Opened, options: &CutOptions<'_>) -> SourceBody {
        match opened {
            Opened::Mapped(mapping) => {
                let lines = (!options.samples_lines).then(|| Arc::new(LineCounts::new(&mapping)));
                SourceBody::Mapped { mapping, start: 0, lines }
            }
            Opened::Stream(stream) => SourceBody::Stream(Box::new(TextStream::new(stream, options.pool.take()))),
        }
    }

    /// Parses the text as an archive from here on.
    pub(super) fn parse_archive(&mut self, parser: ArchiveParser) {
        *self = match std::mem::take(self) {
            SourceBody::Mapped { mapping, start, .. } => {
                SourceBody::Rows(Box::new(ArchiveReader::new(parser, ArchiveBytes::Mapped(mapping), start as u64)))
            }
            SourceBody::Stream(text) => {
                let TextStream { stream, member_ends, buffer, start, defect, .. } = *text;
                let bytes = ArchiveBytes::Stream(Box::new(StreamBytes::new(stream, &buffer[start..], defect)));
                let reader = ArchiveReader::new(parser, bytes, start as u64);
                SourceBody::Rows(Box::new(reader.with_member_ends(member_ends)))
            }
            other => other,
        };
    }

    /// Parses the text as a JSON document from here on.
    pub(super) fn parse_json(&mut self, parser: JsonDocumentParser) {
        let bytes = match std::mem::take(self) {
            SourceBody::Mapped { mapping, start, .. } => StreamBytes::new(Stream::mapped(mapping, start), b"", None),
            SourceBody::Stream(text) => StreamBytes::new(text.stream, &text.buffer[text.start..], text.defect),
            SourceBody::Rows(_) | SourceBody::Empty => return,
        };
        *self = SourceBody::Rows(Box::new(JsonReader::new(parser, bytes)));
    }

    /// Decodes the text from UTF-16. It begins with a byte-order mark of `mark_len` bytes, and nothing was cut yet.
    pub(super) fn transcode(&mut self, order: ByteOrder, mark_len: usize, pool: &Arc<BlockPool>) {
        let mut decoder = Utf16Decoder::new(order);
        match self {
            SourceBody::Mapped { mapping, .. } => {
                let mut stream = Stream::mapped(Arc::clone(mapping), mark_len);
                stream.decode_utf16(decoder);
                *self = SourceBody::Stream(Box::new(TextStream::new(stream, pool.take())));
            }
            SourceBody::Stream(text) => {
                let mut head = Vec::new();
                decoder.decode(&text.buffer[mark_len..], &mut head);
                text.stream.decode_utf16(decoder);
                text.buffer = pool.take();
                text.buffer.extend(&head);
                text.start = 0;
                // The decoder has to see the end of the bytes itself.
                text.is_ended = text.defect.is_some();
            }
            SourceBody::Rows(_) | SourceBody::Empty => (),
        }
    }

    /// The text that is available; empty for rows. If it is mapped, copy what is to be parsed.
    pub(super) fn text(&self) -> &[u8] {
        match self {
            SourceBody::Mapped { mapping, start, .. } => &mapping[*start..],
            SourceBody::Stream(text) => &text.buffer[text.start..],
            SourceBody::Rows(_) | SourceBody::Empty => &[],
        }
    }

    /// Copies the bytes of the text from `at` on. Mapped pages are not accessed, which would map them into memory.
    pub(super) fn copy_at(&self, at: usize, copy: &mut [u8]) {
        match self {
            SourceBody::Mapped { mapping, start, .. } => mapping.copy_at(start + at, copy),
            _ => copy.copy_from_slice(&self.text()[at..][..copy.len()]),
        }
    }

    /// The number of line ends in the first `len` bytes of the text.
    pub(super) fn count_lines(&self, len: usize) -> usize {
        match self {
            SourceBody::Mapped { start, lines: Some(lines), .. } => lines.of(*start..start + len),
            _ => count_lines(&self.text()[..len]),
        }
    }

    /// The numbers of lines of a mapped text, if row groups depend on all of them.
    pub(super) fn line_counts(&self) -> Option<Arc<LineCounts>> {
        if let SourceBody::Mapped { lines, .. } = self { lines.clone() } else { None }
    }

    pub(super) fn skip(&mut self, len: usize) {
        match self {
            SourceBody::Mapped { start, .. } => *start += len,
            SourceBody::Stream(text) => text.start += len,
            SourceBody::Rows(_) | SourceBody::Empty => (),
        }
    }

    /// Bytes taken from the file; `None` if these are the bytes of the text that was cut.
    pub(super) fn file_position(&self) -> Option<u64> {
        match self {
            SourceBody::Mapped { .. } | SourceBody::Empty => None,
            SourceBody::Stream(text) => Some(text.stream.taken()),
            SourceBody::Rows(rows) => Some(rows.file_position()),
        }
    }

    /// Whether the file is compressed, so that positions in it are not positions in its text.
    pub(super) fn is_compressed(&self) -> bool {
        match self {
            SourceBody::Stream(text) => text.stream.is_compressed(),
            SourceBody::Rows(rows) => rows.is_compressed(),
            SourceBody::Mapped { .. } | SourceBody::Empty => false,
        }
    }

    /// Reads until `want` bytes of text are available, or the source ends.
    pub(super) fn fill(&mut self, want: usize) {
        if let SourceBody::Stream(text) = self {
            text.fill(want);
        }
    }

    /// A copy of the beginning of the text, up to its first record or further, as long as [`source_head_len`] requires.
    pub(super) fn head(&mut self) -> Vec<u8> {
        let (mut len, mut want) = (0, source_head_len(b""));
        while len < want {
            len = want;
            self.fill(len);
            want = source_head_len(self.text());
        }
        self.text()[..self.text().len().min(len)].to_vec()
    }

    pub(super) fn is_ended(&self) -> bool {
        if let SourceBody::Stream(text) = self { text.is_ended } else { true }
    }

    /// Finds whole records up to the end of the one that reaches `target` bytes, or up to one that is too long. They remain
    /// until they are split off.
    pub(super) fn cut(&mut self, target: usize, quoting: Option<Quoting>, options: &CutOptions<'_>) -> TextCut {
        let mut boundary = Boundary::new(quoting, options.run.max_record_len);
        let mut want = target + options.slack;
        loop {
            self.fill(want);
            match boundary.find(self.text(), target) {
                Ok(Some(len)) => return TextCut { len, end: ReadEnd::More },
                Err(TooLong { at }) => return TextCut { len: at, end: ReadEnd::LongRecord },
                Ok(None) if self.is_ended() => return self.cut_rest(boundary.last_end()),
                Ok(None) => want = self.text().len() + (self.text().len() / 2).max(options.slack),
            }
        }
    }

    /// Cuts the rest of a source: all of it, or its whole records if it ends with a defect.
    fn cut_rest(&mut self, last_end: usize) -> TextCut {
        let len = self.text().len();
        if let SourceBody::Stream(text) = self
            && let Some(defect) = text.defect.take()
        {
            let lost_len = (len - last_end) as u64;
            return TextCut { len: last_end, end: ReadEnd::at_defect(defect, lost_len) };
        }
        TextCut { len, end: ReadEnd::Source(Vec::new()) }
    }

    /// Returns the end of a cut whose records are not split off, so that a later cut finds it again.
    pub(super) fn return_end(&mut self, end: ReadEnd) {
        if let (SourceBody::Stream(text), ReadEnd::Source(mut defects)) = (self, end) {
            text.defect = defects.pop().map(|end| end.defect);
        }
    }

    /// Splits off the first `len` bytes of text.
    pub(super) fn split_off(&mut self, len: usize, pool: &Arc<BlockPool>) -> Block {
        match self {
            SourceBody::Mapped { mapping, start, .. } => {
                let range = *start..*start + len;
                *start = range.end;
                Block::mapped(mapping, range)
            }
            SourceBody::Stream(text) => {
                let range = text.start..text.start + len;
                text.start = 0;
                // This source is not an archive.
                text.member_ends.clear();
                text.buffer.split_off(range, pool)
            }
            SourceBody::Rows(_) | SourceBody::Empty => Block::from(Vec::new()),
        }
    }
}

impl TextStream {
    fn new(stream: Stream, buffer: Buffer) -> TextStream {
        TextStream { stream, member_ends: VecDeque::new(), buffer, start: 0, is_ended: false, defect: None }
    }

    fn fill(&mut self, want: usize) {
        let want = self.start + want;
        while self.buffer.len() < want && !self.is_ended {
            let count = self.stream.read(self.buffer.unfilled(want));
            self.stream.take_ends(&mut self.member_ends);
            match count {
                Ok(0) => self.is_ended = true,
                Ok(count) => self.buffer.filled(count),
                Err(defect) => {
                    self.is_ended = true;
                    self.defect = Some(defect);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_base_makes_short_row_groups() {
        assert_eq!(row_group_len(128 << 20, 0), 128 << 20);
        assert_eq!(row_group_len(8 << 20, 200), 8 << 20);
        for base_len in [300, 17_000, 1 << 20, MAX_TEXT_LEN * 2] {
            let len = row_group_len(8 << 20, base_len);
            assert!(len >= 1 && (len == 1 || len * (base_len + 9) <= MAX_TEXT_LEN / 8), "{base_len}");
        }
        let lens = [0, 16, 240, 16 << 20].map(|base_len| len_without_bases(8 << 20, base_len));
        assert_eq!(lens, [8 << 20, 4 << 20, 512 << 10, 7]);
    }
}
