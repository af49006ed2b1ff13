//! Sources in, [`Span`]s out: the records that begin within one stretch of `row_group_len` bytes of the sources laid
//! end to end (as text: unpacked, in UTF-8, byte-order marks and headers counted). One worker cuts at a time; whoever cuts
//! also reads, unpacks and transcodes UTF-16, if the source has to be.
//!
//! Rows of tables are no text; what decodes them gives them by the hundred kilobytes, and a span has them as they come.
//!
//! A source ends at its first [`Defect`]. All whole records before it are in spans; the defect is kept for the summary.

use super::body::{Body, End, Rules};
use super::options::RunOptions;
use super::summary::Progress;
use crate::canon::Policy;
use crate::encoding::{ByteOrder, Charset, utf16_len};
use crate::input::detect::{self, SNIFF_LEN, content_type};
use crate::input::{
    Block, Defect, OpenOptions, Origin, Source, Sources, TableColumns, TableOptions, TableReader, delimiter_by_name,
};
use crate::record::archive::Archive;
use crate::record::csv::{Columns, ColumnsError, CsvOptions};
use crate::record::json_lines::JsonOptions;
use crate::record::table::TableRecords;
use crate::record::{Archived, Format, Guess, Layout};
use std::path::PathBuf;
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
    pub content: Content,
}

/// Whole records.
#[derive(Debug)]
pub enum Content {
    /// Records that are to be decoded.
    Text(Text),
    /// Rows of a table.
    Rows(Box<TableRecords>),
}

/// Text of whole records.
#[derive(Debug)]
pub struct Text {
    /// Of the block's first byte in the source, unpacked.
    pub offset: u64,
    pub block: Block,
    /// The source is UTF-16, and the block its text in UTF-8.
    pub is_utf16: bool,
    /// How its records are written.
    pub layout: Layout,
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
    /// Headers that were taken before their source was cut.
    header_count: u64,
    /// Bytes of archives that were condensed.
    archive_bytes: u64,
    /// Records of archives whose type is not wanted.
    skipped: u64,
    stopped: Vec<Stopped>,
}

impl<'a> Cutter<'a> {
    pub fn new(sources: Sources, options: &'a RunOptions, policy: &Policy, progress: &'a Progress) -> Cutter<'a> {
        let rules = Rules::new(options, policy);
        let sources = sources.0.into_iter().enumerate();
        Cutter {
            sources,
            current: None,
            rules,
            progress,
            at: 0,
            cut_count: 0,
            header_count: 0,
            archive_bytes: 0,
            skipped: 0,
            stopped: Vec::new(),
        }
    }

    /// How many spans were cut: the number of the next one.
    pub fn cut_count(&self) -> u64 {
        self.cut_count
    }

    /// Headers that are in no span.
    pub fn header_count(&self) -> u64 {
        self.header_count
    }

    /// Records of archives that are in no span, since their type is not wanted.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Bytes of archives, whose captures are in spans; unpacked.
    pub fn archive_bytes(&self) -> u64 {
        self.archive_bytes
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
        let file = match (&source.origin, source.len) {
            (Origin::Path(path), Some(_)) => Some(path.clone()),
            _ => None,
        };
        let RunOptions { mmap, threads, .. } = *self.rules.options;
        let body = match source.open(OpenOptions { mmap, threads }) {
            Ok(opened) => Body::new(opened, &self.rules),
            Err(defect) => {
                self.stopped.push(Stopped { source: number, defect, offset: 0, packed: false, lost: 0 });
                return Ok(true);
            }
        };
        let mut current = Current { file, ..Current::new(number, body) };
        let begun = current.begin(&name, &self.rules);
        self.at += current.skipped;
        self.header_count += u64::from(current.has_header);
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
        if let Body::Table(table) = &mut current.body {
            let read = table.read();
            return self.cut_table(current, read);
        }
        let cut = current.body.cut(target, current.layout.quoting(), &self.rules);
        let text = (cut.len > 0).then(|| Text {
            offset: current.offset,
            block: current.body.split_off(cut.len, &self.rules.pool),
            is_utf16: current.is_utf16,
            layout: current.layout.clone(),
        });
        self.at += cut.len as u64;
        current.offset += text.as_ref().map_or(0, |text| current.source_len(&text.block));
        current.report(self.progress);
        self.archive_bytes += current.body.take_condensed();
        let source = current.source;
        match cut.end {
            End::More => self.current = Some(current),
            End::Source => self.skipped += current.body.skipped(),
            End::Defect(defect, lost) => self.stop(current, defect, lost),
        }
        text.map(|text| Piece { source, content: Content::Text(text) })
    }

    /// Takes what was read of a table, the current source.
    fn cut_table(&mut self, mut current: Current, read: Result<Option<TableRecords>, Defect>) -> Option<Piece> {
        current.report(self.progress);
        match read {
            Ok(Some(rows)) => {
                self.at += rows.text_len() as u64;
                let piece = Piece { source: current.source, content: Content::Rows(Box::new(rows)) };
                self.current = Some(current);
                Some(piece)
            }
            Ok(None) => None,
            Err(defect) => {
                self.stop(current, defect, 0);
                None
            }
        }
    }

    fn stop(&mut self, current: Current, defect: Defect, lost: usize) {
        self.skipped += current.body.skipped();
        let (offset, packed) = match (&defect, &current.body) {
            // Defects of the text stand in the text.
            (Defect::RecordTooLong(_), Body::Mapped { .. } | Body::Stream(_)) => (current.offset, false),
            (Defect::Encoding(_) | Defect::ForeignMark(_) | Defect::Binary(_), _) => (0, false),
            (_, body) => (body.taken().unwrap_or(current.offset), body.is_packed()),
        };
        self.stopped.push(Stopped { source: current.source, defect, offset, packed, lost: lost as u64 });
    }
}

/// The source that is being cut.
struct Current {
    source: u32,
    body: Body,
    layout: Layout,
    is_utf16: bool,
    /// Bytes of it cut so far, unpacked, byte-order mark and header included.
    offset: u64,
    /// Bytes of its text, byte-order mark and header, that no piece has.
    skipped: u64,
    /// Bytes of it reported as read.
    taken: u64,
    /// Its first record was a header.
    has_header: bool,
    /// Where it is, if it is a regular file.
    file: Option<PathBuf>,
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
        let layout = Layout::Lines;
        Current {
            source,
            body,
            layout,
            is_utf16: false,
            offset: 0,
            skipped: 0,
            taken: 0,
            has_header: false,
            file: None,
        }
    }

    /// Looks at the beginning: byte-order mark, encoding, format, header.
    fn begin(&mut self, name: &str, rules: &Rules<'_>) -> Result<(), Failure> {
        // A defect within the first bytes comes up again, after the records before it.
        self.body.fill(SNIFF_LEN);
        if let Some(charset) = rules.charset.filter(|charset| !charset.allows_bom_of(self.body.text())) {
            return Err(Defect::ForeignMark(charset.name()).into());
        }
        let said = rules.charset.and_then(Charset::utf16_byte_order);
        match (content_type(self.body.text()), said) {
            (detect::ContentType::Utf16(order), _) => self.transcode(order, 2, rules),
            (detect::ContentType::Records(0), Some(order)) => self.transcode(order, 0, rules),
            (detect::ContentType::Records(bom_len), _) => self.skip(bom_len),
            (detect::ContentType::Encoding(name), _) => return Err(Defect::Encoding(name).into()),
            (detect::ContentType::Binary(kind), _) => return self.begin_rows(kind, rules),
        }
        match &rules.options.format {
            Format::Lines => Ok(()),
            Format::Csv(options) => self.begin_table(options, rules),
            Format::Auto(guess) => match sniff(self.body.head(), guess) {
                Some(Layout::Captures(_)) if !is_wat(name) => self.begin_archive(name, rules),
                Some(Layout::Captures(_)) => self.begin_as(Layout::Captures(Archived::Links)),
                Some(layout) => self.begin_as(layout),
                None => self.begin_by_name(name, guess, rules),
            },
            Format::Cdx => {
                let sniffed = Layout::sniff(self.body.head()).filter(|layout| matches!(layout, Layout::Cdx(_)));
                self.begin_as(sniffed.unwrap_or(Layout::Cdx(Arc::default())))
            }
            Format::Archive => self.begin_archive(name, rules),
            Format::JsonLines(options) => self.begin_as(Layout::JsonLines(Arc::new(options.clone()))),
            Format::AccessLog(format) => self.begin_as(Layout::AccessLog(Arc::new(format.clone()))),
            Format::Wat => self.begin_as(Layout::Captures(Archived::Links)),
            Format::Cdxj => self.begin_as(Layout::Cdxj),
            Format::CrawlLog => self.begin_as(Layout::CrawlLog),
            Format::Journal => self.begin_as(Layout::Journal),
            Format::ZipnumIndex => self.begin_as(Layout::ZipnumIndex),
        }
    }

    fn begin_as(&mut self, layout: Layout) -> Result<(), Failure> {
        if layout == Layout::Captures(Archived::Links) {
            self.body.condense(Archive::of_links());
        }
        self.layout = layout;
        Ok(())
    }

    /// WARC or ARC. Where its captures lie can be told of a file that begins with the first one.
    fn begin_archive(&mut self, name: &str, rules: &Rules<'_>) -> Result<(), Failure> {
        let mut archive = Archive::of_types(&rules.options.record_types);
        if self.file.is_some() && self.offset == 0 {
            archive.set_file(name, self.body.is_packed());
        }
        self.body.condense(archive);
        self.layout = Layout::Captures(Archived::Records);
        Ok(())
    }

    /// A file of a kind that is no text: if it is a table, its rows are records.
    fn begin_rows(&mut self, kind: &'static str, rules: &Rules<'_>) -> Result<(), Failure> {
        let Some(path) = self.file.take() else { return Err(Defect::Binary(kind).into()) };
        let columns = match &rules.options.format {
            Format::Auto(Guess { csv, .. }) => TableColumns { url: csv.url.clone(), base: csv.base.clone() },
            _ => return Err(Defect::Binary(kind).into()),
        };
        let RunOptions { threads, max_record_len, row_group_len: held_len, .. } = *rules.options;
        let options = TableOptions { columns, carry: rules.carry, threads, max_record_len, held_len };
        let table = match kind {
            "Parquet" => TableReader::parquet(&path, &options)?,
            "Arrow IPC" => TableReader::arrow(&path, &options)?,
            _ => return Err(Defect::Binary(kind).into()),
        };
        self.body = Body::Table(Box::new(table));
        Ok(())
    }

    /// The records told nothing: a table if columns were asked for or the name says so, else lines.
    fn begin_by_name(&mut self, name: &str, guess: &Guess, rules: &Rules<'_>) -> Result<(), Failure> {
        let by_name = delimiter_by_name(name);
        if by_name.is_none() && !guess.is_table {
            return Ok(());
        }
        let own = by_name.filter(|_| !guess.has_delimiter).unwrap_or(guess.csv.delimiter);
        self.begin_table(&CsvOptions { delimiter: own, ..guess.csv.clone() }, rules)
    }

    /// Settles the columns of a table by its first record, and takes the header away.
    fn begin_table(&mut self, options: &CsvOptions, rules: &Rules<'_>) -> Result<(), Failure> {
        self.layout = Layout::Csv { delimiter: options.delimiter, columns: Columns::default() };
        let mut target = 1;
        loop {
            let cut = self.body.cut(target, Some(options.quoting()), rules);
            let first = options.first(&self.body.text()[..cut.len]).map_err(Failure::Columns)?;
            match (first, cut.end) {
                (Some(first), end) => {
                    self.layout = Layout::Csv { delimiter: options.delimiter, columns: first.columns };
                    self.has_header = first.header_len > 0;
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
        let taken = self.body.taken().unwrap_or(self.offset);
        progress.add_read(taken - self.taken);
        self.taken = taken;
    }
}

/// What the first records tell. Who asks for columns has a table, or JSON.
fn sniff(head: &[u8], guess: &Guess) -> Option<Layout> {
    if guess.is_table {
        let options = JsonOptions::of_columns(guess.csv.url.as_ref(), guess.csv.base.as_ref());
        return Layout::sniff_json(head, &options);
    }
    Layout::sniff(head)
}

/// Common Crawl names them so; within, they are WARC like any other.
fn is_wat(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| name.contains(".wat."))
}
