//! Sources in, [`Span`]s out: the records that begin within one stretch of `row_group_len` bytes of the sources laid
//! end to end (as text: unpacked, in UTF-8, byte-order marks and headers counted). One worker cuts at a time; whoever cuts
//! also reads, unpacks and transcodes UTF-16, if the source has to be.
//!
//! A source ends at its first [`Defect`]. All whole records before it are in spans; the defect is kept for the summary.

use super::options::RunOptions;
use super::summary::Progress;
use crate::encoding::{ByteOrder, Charset, Utf16Decoder, utf16_len};
use crate::input::detect::{Content, LOOK_LEN, content};
use crate::input::mmap::Mapping;
use crate::input::{Block, Buffer, Defect, OpenOptions, Opened, Pool, Source, Sources, Stream};
use crate::record::Format;
use crate::record::boundary::{Boundary, Quoting, TooLong};
use crate::record::csv::{Columns, ColumnsError};
use std::sync::Arc;

/// Whole records that become one part.
#[derive(Debug)]
pub struct Span {
    pub pieces: Vec<Piece>,
}

/// Whole records of one source.
#[derive(Debug)]
pub struct Piece {
    pub source: u32,
    /// Of the block's first byte in the source, unpacked.
    pub offset: u64,
    pub block: Block,
    /// The source is UTF-16, and the block its text in UTF-8.
    pub is_utf16: bool,
    /// Where CSV fields are.
    pub columns: Columns,
}

/// A source that ended early.
#[derive(Debug)]
pub struct Stopped {
    pub source: u32,
    pub defect: Defect,
    pub offset: u64,
    pub packed: bool,
    pub lost: u64,
}

/// Cuts the sources of a run.
pub struct Cutter<'a> {
    sources: std::iter::Enumerate<std::vec::IntoIter<Source>>,
    current: Option<Current>,
    rules: Rules<'a>,
    progress: &'a Progress,
    /// Bytes of text cut so far, over all sources.
    at: u64,
    cut_count: u64,
    stopped: Vec<Stopped>,
}

/// How sources are read and cut.
struct Rules<'a> {
    options: &'a RunOptions,
    /// What the sources are said to be in.
    charset: Option<Charset>,
    quoting: Option<Quoting>,
    pool: Arc<Pool>,
    /// Bytes read past a target, in hope of the end of a record.
    slack: usize,
}

impl Rules<'_> {
    fn boundary(&self) -> Boundary {
        Boundary::new(self.quoting, self.options.max_record_len)
    }
}

impl<'a> Cutter<'a> {
    pub fn new(
        sources: Sources,
        options: &'a RunOptions,
        charset: Option<Charset>,
        progress: &'a Progress,
    ) -> Cutter<'a> {
        let slack = (options.row_group_len / 8).clamp(4 << 10, 128 << 10);
        let pool = Pool::new(options.threads * 3, options.row_group_len * 2 + slack);
        let rules = Rules { options, charset, quoting: options.format.quoting(), pool, slack };
        let sources = sources.0.into_iter().enumerate();
        Cutter { sources, current: None, rules, progress, at: 0, cut_count: 0, stopped: Vec::new() }
    }

    /// How many spans were cut: the number of the next one.
    pub fn cut_count(&self) -> u64 {
        self.cut_count
    }

    /// The sources that ended early.
    pub fn into_stopped(self) -> Vec<Stopped> {
        self.stopped
    }

    /// The next span; `None` at the end.
    ///
    /// # Errors
    /// A source's columns cannot be settled: its name, and why.
    pub fn next_span(&mut self) -> Result<Option<Span>, (String, ColumnsError)> {
        let mut pieces = Vec::new();
        let stretch = self.rules.options.row_group_len as u64;
        let mut end = (self.at / stretch + 1) * stretch;
        loop {
            if self.at >= end {
                if !pieces.is_empty() {
                    break;
                }
                // Nothing but headers began there.
                end = (self.at / stretch + 1) * stretch;
            }
            if self.current.is_none() {
                if !self.open_next()? {
                    break;
                }
                // What was skipped at its beginning may reach past the stretch.
                continue;
            }
            pieces.extend(self.cut((end - self.at) as usize));
        }
        self.cut_count += u64::from(!pieces.is_empty());
        Ok((!pieces.is_empty()).then_some(Span { pieces }))
    }

    /// Opens the next source; false if there is none.
    fn open_next(&mut self) -> Result<bool, (String, ColumnsError)> {
        let Some((number, source)) = self.sources.next() else { return Ok(false) };
        let (number, name) = (number as u32, source.name.clone());
        let body = match source.open(OpenOptions { mmap: self.rules.options.mmap }) {
            Ok(opened) => Body::new(opened, &self.rules),
            Err(defect) => {
                self.stopped.push(Stopped { source: number, defect, offset: 0, packed: false, lost: 0 });
                return Ok(true);
            }
        };
        let mut current = Current::new(number, body);
        let begun = current.begin(&self.rules);
        self.at += current.skipped;
        match begun {
            Ok(()) => self.current = Some(current),
            Err(Failure::Columns(error)) => return Err((name, error)),
            Err(Failure::Defect(defect)) => self.stop(current, defect, 0),
        }
        Ok(true)
    }

    /// Cuts records of the current source, up to the end of the one that reaches `target` bytes.
    fn cut(&mut self, target: usize) -> Option<Piece> {
        let mut current = self.current.take()?;
        let cut = current.body.cut(target, &self.rules);
        let piece = (cut.len > 0).then(|| Piece {
            source: current.source,
            offset: current.offset,
            block: current.body.split_off(cut.len, &self.rules.pool),
            is_utf16: current.is_utf16,
            columns: current.columns,
        });
        self.at += cut.len as u64;
        current.offset += piece.as_ref().map_or(0, |piece| current.source_len(&piece.block));
        current.report(self.progress);
        match cut.end {
            End::More => self.current = Some(current),
            End::Source => (),
            End::Defect(defect, lost) => self.stop(current, defect, lost),
        }
        piece
    }

    fn stop(&mut self, current: Current, defect: Defect, lost: usize) {
        let (offset, packed) = match (&defect, &current.body) {
            // Defects of the text stand in the text.
            (Defect::RecordTooLong(_), _) => (current.offset, false),
            (Defect::Encoding(_) | Defect::ForeignMark(_) | Defect::Binary(_), _) => (0, false),
            (_, Body::Stream { stream, .. }) => (stream.taken(), stream.is_packed()),
            (_, Body::Mapped { .. }) => (current.offset, false),
        };
        self.stopped.push(Stopped { source: current.source, defect, offset, packed, lost: lost as u64 });
    }
}

/// The source that is being cut.
struct Current {
    source: u32,
    body: Body,
    columns: Columns,
    is_utf16: bool,
    /// Bytes of it cut so far, unpacked, byte-order mark and header included.
    offset: u64,
    /// Bytes of its text, byte-order mark and header, that no piece has.
    skipped: u64,
    /// Bytes of it reported as read.
    taken: u64,
}

enum Failure {
    Defect(Defect),
    Columns(ColumnsError),
}

impl From<Defect> for Failure {
    fn from(defect: Defect) -> Failure {
        Failure::Defect(defect)
    }
}

impl Current {
    fn new(source: u32, body: Body) -> Current {
        Current { source, body, columns: Columns::default(), is_utf16: false, offset: 0, skipped: 0, taken: 0 }
    }

    /// Looks at the beginning: byte-order mark, encoding, header.
    fn begin(&mut self, rules: &Rules<'_>) -> Result<(), Failure> {
        // A defect within the first bytes comes up again, after the records before it.
        self.body.fill(LOOK_LEN);
        if let Some(charset) = rules.charset.filter(|charset| !charset.agrees_with_mark(self.body.text())) {
            return Err(Defect::ForeignMark(charset.name()).into());
        }
        let said = rules.charset.and_then(Charset::byte_order_of_utf16);
        match (content(self.body.text()), said) {
            (Content::Utf16(order), _) => self.transcode(order, 2, rules),
            (Content::Records(0), Some(order)) => self.transcode(order, 0, rules),
            (Content::Records(bom_len), _) => self.skip(bom_len),
            (Content::Encoding(name), _) => return Err(Defect::Encoding(name).into()),
            (Content::Binary(name), _) => return Err(Defect::Binary(name).into()),
        }
        let Format::Csv(options) = &rules.options.format else { return Ok(()) };
        let mut target = 1;
        loop {
            let cut = self.body.cut(target, rules);
            let first = options.first(&self.body.text()[..cut.len]).map_err(Failure::Columns)?;
            match (first, cut.end) {
                (Some(first), end) => {
                    self.columns = first.columns;
                    self.skip(first.header_len);
                    self.body.give_back(end);
                    return Ok(());
                }
                // Blank lines so far. Further by doubling, so that many of them cost no more than their length.
                (None, End::More) => target = cut.len * 2,
                (None, End::Source) => return Ok(()),
                (None, end @ End::Defect(..)) => {
                    self.body.give_back(end);
                    return Ok(());
                }
            }
        }
    }

    fn skip(&mut self, len: usize) {
        self.offset += self.source_len(&self.body.text()[..len]);
        self.skipped += len as u64;
        self.body.skip(len);
    }

    /// The text is UTF-16 after `mark_len` bytes.
    fn transcode(&mut self, order: ByteOrder, mark_len: usize, rules: &Rules<'_>) {
        self.is_utf16 = true;
        self.offset += mark_len as u64;
        self.body.transcode(order, mark_len, &rules.pool);
    }

    /// Bytes of the source that `text` was made of.
    fn source_len(&self, text: &[u8]) -> u64 {
        if self.is_utf16 { utf16_len(text) as u64 } else { text.len() as u64 }
    }

    /// Counts what was read since the last time.
    fn report(&mut self, progress: &Progress) {
        let taken = match &self.body {
            Body::Mapped { .. } => self.offset,
            Body::Stream { stream, .. } => stream.taken(),
        };
        progress.add_read(taken - self.taken);
        self.taken = taken;
    }
}

/// Text of a source from the first record that was not cut yet on: all of it, or as much as was read.
enum Body {
    Mapped { mapping: Arc<Mapping>, start: usize },
    Stream { stream: Stream, buffer: Buffer, start: usize, is_ended: bool, defect: Option<Defect> },
}

/// Records at the beginning of a body.
struct Cut {
    len: usize,
    end: End,
}

/// What follows them.
enum End {
    More,
    Source,
    /// A defect, after so many bytes of a record that is not whole.
    Defect(Defect, usize),
}

impl Body {
    fn new(opened: Opened, rules: &Rules<'_>) -> Body {
        match opened {
            Opened::Mapped(mapping) => Body::Mapped { mapping, start: 0 },
            Opened::Stream(stream) => {
                Body::Stream { stream, buffer: rules.pool.take(), start: 0, is_ended: false, defect: None }
            }
        }
    }

    fn text(&self) -> &[u8] {
        match self {
            Body::Mapped { mapping, start } => &mapping[*start..],
            Body::Stream { buffer, start, .. } => &buffer[*start..],
        }
    }

    fn skip(&mut self, len: usize) {
        match self {
            Body::Mapped { start, .. } | Body::Stream { start, .. } => *start += len,
        }
    }

    /// Nothing was taken yet: what there is and what is to come is UTF-16, after `mark_len` bytes.
    fn transcode(&mut self, order: ByteOrder, mark_len: usize, pool: &Arc<Pool>) {
        let mut decoder = Utf16Decoder::new(order);
        match self {
            Body::Mapped { mapping, .. } => {
                let mut stream = Stream::mapped(Arc::clone(mapping), mark_len);
                stream.decode_utf16(decoder);
                *self = Body::Stream { stream, buffer: pool.take(), start: 0, is_ended: false, defect: None };
            }
            Body::Stream { stream, buffer, start, is_ended, defect } => {
                let mut head = Vec::new();
                decoder.decode(&buffer[mark_len..], &mut head);
                stream.decode_utf16(decoder);
                *buffer = pool.take();
                buffer.extend(&head);
                *start = 0;
                // The decoder has to see the end of the bytes itself.
                *is_ended = defect.is_some();
            }
        }
    }

    /// Reads until there are `want` bytes of text, or no more are to be had.
    fn fill(&mut self, want: usize) {
        let Body::Stream { stream, buffer, start, is_ended, defect } = self else { return };
        let want = *start + want;
        while buffer.len() < want && !*is_ended {
            match stream.read(buffer.room(want)) {
                Ok(0) => *is_ended = true,
                Ok(count) => buffer.filled(count),
                Err(found) => {
                    *is_ended = true;
                    *defect = Some(found);
                }
            }
        }
    }

    /// Whether all text is there.
    fn is_ended(&self) -> bool {
        matches!(self, Body::Mapped { .. } | Body::Stream { is_ended: true, .. })
    }

    /// Finds the records up to the end of the one that reaches `target` bytes; they stay until split off.
    fn cut(&mut self, target: usize, rules: &Rules<'_>) -> Cut {
        let mut boundary = rules.boundary();
        let mut want = target + rules.slack;
        loop {
            self.fill(want);
            match boundary.find(self.text(), target) {
                Ok(Some(len)) => return Cut { len, end: End::More },
                Err(TooLong { at }) => {
                    let defect = Defect::RecordTooLong(rules.options.max_record_len);
                    return Cut { len: at, end: End::Defect(defect, 0) };
                }
                Ok(None) if self.is_ended() => return self.rest(boundary.last_end()),
                Ok(None) => want = self.text().len() + (self.text().len() / 2).max(rules.slack),
            }
        }
    }

    /// What is left when no more is to be read: all of it if the source ended well, else its whole records.
    fn rest(&mut self, last_end: usize) -> Cut {
        let len = self.text().len();
        match self {
            Body::Stream { defect, .. } if defect.is_some() => {
                let end = defect.take().map_or(End::Source, |defect| End::Defect(defect, len - last_end));
                Cut { len: last_end, end }
            }
            _ => Cut { len, end: End::Source },
        }
    }

    /// Undoes the end of a cut that was only a look.
    fn give_back(&mut self, end: End) {
        if let (Body::Stream { defect, .. }, End::Defect(found, _)) = (self, end)
            && !matches!(found, Defect::RecordTooLong(_))
        {
            *defect = Some(found);
        }
    }

    /// Gives the first `len` bytes of text away.
    fn split_off(&mut self, len: usize, pool: &Arc<Pool>) -> Block {
        match self {
            Body::Mapped { mapping, start } => {
                let range = *start..*start + len;
                *start = range.end;
                Block::mapped(mapping, range)
            }
            Body::Stream { buffer, start, .. } => {
                let range = *start..*start + len;
                *start = 0;
                buffer.split_off(range, pool)
            }
        }
    }
}
