//! Text of a source that is being cut: mapped, read, or, for archives, condensed while it is read. In: what was opened.
//! Out: its text, as much as is there, and where whole records of it end. A table has no text: whoever cuts takes its rows.

use super::options::RunOptions;
use crate::canon::Policy;
use crate::encoding::{ByteOrder, Charset, Utf16Decoder};
use crate::input::mmap::MappedFile;
use crate::input::{Block, Buffer, BufferPool, Defect, MemberEnd, Opened, Stream, TableReader};
use crate::record::archive::Archive;
use crate::record::boundary::{Boundary, Quoting, TooLong};
use crate::record::fields::FieldSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// A format shows within so many bytes, or not at all.
const HEAD_LEN: usize = 64 << 10;

/// Bytes of an archive that are condensed at a time.
const RAW_LEN: usize = 256 << 10;

/// How sources are read and cut.
pub struct Rules<'a> {
    pub options: &'a RunOptions,
    /// What the sources are said to be in.
    pub charset: Option<Charset>,
    /// What of a table's columns is wanted.
    pub carry: FieldSet,
    pub pool: Arc<BufferPool>,
    /// Bytes read past a target, in hope of the end of a record.
    slack: usize,
}

impl<'a> Rules<'a> {
    pub fn new(options: &'a RunOptions, policy: &Policy) -> Rules<'a> {
        let slack = (options.row_group_len / 8).clamp(4 << 10, 128 << 10);
        let pool = BufferPool::new(options.threads * 3, options.row_group_len * 2 + slack);
        Rules { options, charset: policy.charset, carry: policy.carry, pool, slack }
    }
}

/// Text of a source from the first record that was not cut yet on: all of it, or as much as was read.
pub enum Body {
    Mapped {
        mapping: Arc<MappedFile>,
        start: usize,
    },
    Stream(Box<Read>),
    /// Rows, and no text.
    Table(Box<TableReader>),
}

/// What was read of a stream.
pub struct Read {
    stream: Stream,
    /// Makes lines of captures of an archive's bytes.
    condenser: Option<Box<Condenser>>,
    /// Where gzip members end: in the beginning, which may turn out to be of an archive, and in an archive.
    ends: VecDeque<MemberEnd>,
    buffer: Buffer,
    start: usize,
    is_ended: bool,
    defect: Option<Defect>,
}

/// Records at the beginning of a body.
pub struct Cut {
    pub len: usize,
    pub end: End,
}

/// What follows them.
pub enum End {
    More,
    Source,
    /// A defect, after so many bytes of a record that is not whole.
    Defect(Defect, usize),
}

impl Body {
    pub fn new(opened: Opened, rules: &Rules<'_>) -> Body {
        match opened {
            Opened::Mapped(mapping) => Body::Mapped { mapping, start: 0 },
            Opened::Stream(stream) => Body::Stream(Box::new(Read::new(stream, rules.pool.take()))),
        }
    }

    /// The rest of the text is an archive: from here on the text is lines of its captures.
    pub fn condense(&mut self, archive: Archive) {
        if let Body::Mapped { mapping, start } = self {
            // Payloads are copied on the way; it is the heads that cost.
            let stream = Stream::mapped(Arc::clone(mapping), *start);
            *self = Body::Stream(Box::new(Read::new(stream, Buffer::default())));
        }
        let Body::Stream(read) = self else { return };
        let mut condenser = Box::new(Condenser::new(archive, read.start as u64));
        let mut lines = Buffer::default();
        condenser.condense(&read.buffer[read.start..], &mut read.ends, &mut lines);
        if read.defect.is_some() {
            // Nothing more comes; the defect stands already.
            let _ = condenser.finish(&mut lines);
        }
        // Else the condenser has to see the end itself.
        read.is_ended = read.defect.is_some();
        (read.buffer, read.start, read.condenser) = (lines, 0, Some(condenser));
    }

    /// Nothing was taken yet: what there is and what is to come is UTF-16, after `mark_len` bytes.
    pub fn transcode(&mut self, order: ByteOrder, mark_len: usize, pool: &Arc<BufferPool>) {
        let mut decoder = Utf16Decoder::new(order);
        match self {
            Body::Mapped { mapping, .. } => {
                let mut stream = Stream::mapped(Arc::clone(mapping), mark_len);
                stream.decode_utf16(decoder);
                *self = Body::Stream(Box::new(Read::new(stream, pool.take())));
            }
            Body::Stream(read) => {
                let mut head = Vec::new();
                decoder.decode(&read.buffer[mark_len..], &mut head);
                read.stream.decode_utf16(decoder);
                read.buffer = pool.take();
                read.buffer.extend(&head);
                read.start = 0;
                // The decoder has to see the end of the bytes itself.
                read.is_ended = read.defect.is_some();
            }
            Body::Table(_) => (),
        }
    }

    pub fn text(&self) -> &[u8] {
        match self {
            Body::Mapped { mapping, start } => &mapping[*start..],
            Body::Stream(read) => &read.buffer[read.start..],
            Body::Table(_) => &[],
        }
    }

    pub fn skip(&mut self, len: usize) {
        match self {
            Body::Mapped { start, .. } => *start += len,
            Body::Stream(read) => read.start += len,
            Body::Table(_) => (),
        }
    }

    /// Bytes taken from the file, if that is not the text itself.
    pub fn taken(&self) -> Option<u64> {
        match self {
            Body::Mapped { .. } => None,
            Body::Stream(read) => Some(read.stream.taken()),
            Body::Table(table) => Some(table.taken()),
        }
    }

    /// The file is compressed.
    pub fn is_packed(&self) -> bool {
        matches!(self, Body::Stream(read) if read.stream.is_packed())
    }

    /// Bytes of an archive that were condensed since the last call.
    pub fn take_condensed(&mut self) -> u64 {
        match self {
            Body::Stream(read) => read.condenser.as_mut().map_or(0, |condenser| condenser.take_count()),
            Body::Mapped { .. } | Body::Table(_) => 0,
        }
    }

    /// Records of an archive that were passed over because of their type.
    pub fn skipped(&self) -> u64 {
        match self {
            Body::Stream(read) => read.condenser.as_ref().map_or(0, |condenser| condenser.archive.skipped()),
            Body::Mapped { .. } | Body::Table(_) => 0,
        }
    }

    /// Reads until there are `want` bytes of text, or no more are to be had.
    pub fn fill(&mut self, want: usize) {
        let read = match self {
            Body::Mapped { .. } | Body::Table(_) => return,
            Body::Stream(read) => read,
        };
        let want = read.start + want;
        while read.buffer.len() < want && !read.is_ended {
            let count = match &mut read.condenser {
                Some(condenser) => condenser.read(&mut read.stream, &mut read.ends, &mut read.buffer),
                None => read.read_text(want),
            };
            match count {
                Ok(0) => read.is_ended = true,
                Ok(_) => (),
                Err(found) => {
                    read.is_ended = true;
                    read.defect = Some(found);
                }
            }
        }
    }

    /// The beginning of the text: its first line and more, or as much of it as shows what it is.
    pub fn head(&mut self) -> &[u8] {
        let mut want = HEAD_LEN / 16;
        while want <= HEAD_LEN {
            self.fill(want);
            if self.text().len() < want || self.text()[..want].contains(&b'\n') {
                break;
            }
            want *= 2;
        }
        &self.text()[..self.text().len().min(want)]
    }

    /// Whether all text is there.
    fn is_ended(&self) -> bool {
        match self {
            Body::Mapped { .. } | Body::Table(_) => true,
            Body::Stream(read) => read.is_ended,
        }
    }

    /// Finds the records up to the end of the one that reaches `target` bytes; they stay until split off.
    pub fn cut(&mut self, target: usize, quoting: Option<Quoting>, rules: &Rules<'_>) -> Cut {
        let mut boundary = Boundary::new(quoting, rules.options.max_record_len);
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
            Body::Stream(read) if read.defect.is_some() => {
                let lost = read.condenser.as_ref().map_or(len - last_end, |condenser| condenser.lost);
                let end = read.defect.take().map_or(End::Source, |defect| End::Defect(defect, lost));
                Cut { len: last_end, end }
            }
            _ => Cut { len, end: End::Source },
        }
    }

    /// Undoes the end of a cut that was only a look.
    pub fn give_back(&mut self, end: End) {
        if let (Body::Stream(read), End::Defect(found, _)) = (self, end)
            && !matches!(found, Defect::RecordTooLong(_))
        {
            read.defect = Some(found);
        }
    }

    /// Gives the first `len` bytes of text away.
    pub fn split_off(&mut self, len: usize, pool: &Arc<BufferPool>) -> Block {
        match self {
            Body::Mapped { mapping, start } => {
                let range = *start..*start + len;
                *start = range.end;
                Block::mapped(mapping, range)
            }
            Body::Stream(read) => {
                let range = read.start..read.start + len;
                read.start = 0;
                if read.condenser.is_none() {
                    // It is no archive.
                    read.ends.clear();
                }
                read.buffer.split_off(range, pool)
            }
            Body::Table(_) => Block::from(Vec::new()),
        }
    }
}

impl Read {
    fn new(stream: Stream, buffer: Buffer) -> Read {
        let ends = VecDeque::new();
        Read { stream, condenser: None, ends, buffer, start: 0, is_ended: false, defect: None }
    }

    fn read_text(&mut self, want: usize) -> Result<usize, Defect> {
        let count = self.stream.read(self.buffer.room(want))?;
        self.buffer.filled(count);
        self.stream.take_ends(&mut self.ends);
        Ok(count)
    }
}

/// Leaves lines of captures of an archive that is read.
struct Condenser {
    archive: Archive,
    raw: Box<[u8]>,
    lines: Vec<u8>,
    /// Where the archive begins in what the stream gives.
    begin: u64,
    /// Bytes counted so far.
    counted: u64,
    /// Bytes of a record that the archive ended within.
    lost: usize,
}

impl Condenser {
    fn new(archive: Archive, begin: u64) -> Condenser {
        Condenser { archive, raw: vec![0; RAW_LEN].into(), lines: Vec::new(), begin, counted: 0, lost: 0 }
    }

    /// `ends` are those of members that end in `bytes` or behind them.
    fn condense(&mut self, mut bytes: &[u8], ends: &mut VecDeque<MemberEnd>, buffer: &mut Buffer) {
        while let Some(MemberEnd { unpacked, packed }) = ends.front().copied() {
            let left = unpacked.saturating_sub(self.begin + self.archive.taken());
            if left > bytes.len() as u64 {
                break;
            }
            ends.pop_front();
            let (member, rest) = bytes.split_at(left as usize);
            self.archive.push(member, &mut self.lines);
            self.archive.end_member(packed);
            bytes = rest;
        }
        self.archive.push(bytes, &mut self.lines);
        buffer.extend(&self.lines);
        self.lines.clear();
    }

    /// Reads on; 0 is the end.
    fn read(
        &mut self,
        stream: &mut Stream,
        ends: &mut VecDeque<MemberEnd>,
        buffer: &mut Buffer,
    ) -> Result<usize, Defect> {
        let mut raw = std::mem::take(&mut self.raw);
        let count = stream.read(&mut raw);
        stream.take_ends(ends);
        let len = *count.as_ref().unwrap_or(&0);
        self.condense(&raw[..len], ends, buffer);
        self.raw = raw;
        if matches!(count, Ok(1..)) {
            return count;
        }
        let ended = self.finish(buffer);
        // What ended the stream explains why the record is cut.
        count.and_then(|count| ended.map(|()| count))
    }

    /// The archive ends.
    fn finish(&mut self, buffer: &mut Buffer) -> Result<(), Defect> {
        let ended = self.archive.finish(&mut self.lines);
        buffer.extend(&self.lines);
        self.lines.clear();
        ended.map_err(|cut| {
            self.lost = cut.lost as usize;
            Defect::ArchiveTruncated
        })
    }

    fn take_count(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.archive.taken());
        self.counted - before
    }
}
