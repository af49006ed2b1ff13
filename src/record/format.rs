//! How records are written: [`Format`] is what a run was told of all its sources, [`Layout`] what one source turned out
//! to hold once its beginning was seen, and [`Decoder`] reads chunks of any of them.

use std::sync::Arc;

use super::access_log::{AccessLog, LogFormat};
use super::boundary::Quoting;
use super::capture::Captures;
use super::cdx::{Cdx, CdxColumns};
use super::cdxj::Cdxj;
use super::crawl_log::CrawlLog;
use super::csv::{Columns, Csv, CsvOptions};
use super::fields::FieldSet;
use super::journal::Journal;
use super::json_lines::{JsonLines, JsonOptions};
use super::lines::Lines;
use super::zipnum::ZipnumIndex;
use super::{Records, cdx};
use crate::kernel::Bitmaps;

/// How the records of a run's sources are written.
#[derive(Clone, Debug, Default)]
pub enum Format {
    /// Each source by itself: by its first records, and where they say nothing by its name.
    Auto(Guess),
    /// One URL a line.
    #[default]
    Lines,
    /// Fields between delimiters.
    Csv(CsvOptions),
    /// CDX lines, their columns named by a header.
    Cdx,
    /// CDXJ lines: key, time, JSON.
    Cdxj,
    /// Heritrix's `crawl.log`.
    CrawlLog,
    /// Heritrix's frontier journal.
    Journal,
    /// The index of a zipnum cluster.
    ZipnumIndex,
    /// WARC and ARC: a record is a record.
    Archive,
    /// WAT: a link of a page is a record.
    Wat,
    /// A JSON object a line.
    JsonLines(JsonOptions),
    /// An access log of a web server.
    AccessLog(LogFormat),
}

/// What a source is taken for when its first records say nothing.
#[derive(Clone, Debug, Default)]
pub struct Guess {
    /// Columns of tables.
    pub csv: CsvOptions,
    /// The delimiter was asked for; else it is the one that the name's suffix speaks of.
    pub has_delimiter: bool,
    /// It is a table whatever its name is: columns were asked for.
    pub is_table: bool,
}

/// How the records of one source are written. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// One URL a line.
    #[default]
    Lines,
    /// Fields between delimiters, and which of them count.
    Csv {
        /// Between fields.
        delimiter: u8,
        /// Where the fields are.
        columns: Columns,
    },
    /// CDX with these columns.
    Cdx(Arc<CdxColumns>),
    /// CDXJ.
    Cdxj,
    /// Heritrix's `crawl.log`.
    CrawlLog,
    /// Heritrix's frontier journal.
    Journal,
    /// The index of a zipnum cluster.
    ZipnumIndex,
    /// Lines of captures, made of an archive's records.
    Captures(Archived),
    /// A JSON object a line.
    JsonLines(Arc<JsonOptions>),
    /// An access log.
    AccessLog(Arc<LogFormat>),
}

/// What the captures of an archive stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archived {
    /// Records of WARC or ARC.
    Records,
    /// Links in WAT records.
    Links,
}

impl Layout {
    /// What hides the end of a record, if anything does.
    pub fn quoting(&self) -> Option<Quoting> {
        match self {
            Layout::Csv { delimiter, .. } => Some(Quoting { quote: b'"', delimiter: *delimiter }),
            _ => None,
        }
    }

    /// The name in `--format` and in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Layout::Lines => "lines",
            Layout::Csv { delimiter: b'\t', .. } => "tsv",
            Layout::Csv { .. } => "csv",
            Layout::Cdx(_) => "cdx",
            Layout::Cdxj => "cdxj",
            Layout::CrawlLog => "crawl-log",
            Layout::Journal => "frontier-journal",
            Layout::ZipnumIndex => "zipnum-index",
            Layout::JsonLines(_) => "jsonl",
            Layout::AccessLog(_) => "access-log",
            Layout::Captures(Archived::Records) => "warc",
            Layout::Captures(Archived::Links) => "wat",
        }
    }

    /// The first line of a source is a JSON object, with a URL where `options` say.
    pub fn sniff_json(head: &[u8], options: &JsonOptions) -> Option<Layout> {
        let line = head.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
        super::json_lines::is_record(line, options).then(|| Layout::JsonLines(Arc::new(options.clone())))
    }

    /// What the first lines of a source tell of its format, if they are unmistakable; `head` may end within a line.
    ///
    /// ```
    /// use irikey::record::Layout;
    /// let line = b"org,example)/ 20140127171200 {\"url\": \"http://example.org/\"}\n";
    /// assert_eq!(Layout::sniff(line), Some(Layout::Cdxj));
    /// assert_eq!(Layout::sniff(b"http://example.org/ 20140127171200 {\n"), None);
    /// ```
    pub fn sniff(head: &[u8]) -> Option<Layout> {
        if super::archive::is_archive(head) {
            return Some(Layout::Captures(Archived::Records));
        }
        if let Some(columns) = cdx::CdxColumns::of_header(head.split(|&byte| byte == b'\n').next()?) {
            return Some(Layout::Cdx(Arc::new(columns)));
        }
        let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let line = lines.find(|line| !line.trim_ascii().is_empty() && !matches!(line[0], b'!' | b'@'))?;
        if super::cdxj::is_record(line) {
            Some(Layout::Cdxj)
        } else if super::crawl_log::is_record(line) {
            Some(Layout::CrawlLog)
        } else if super::journal::is_record(line) {
            Some(Layout::Journal)
        } else if super::zipnum::is_record(line) {
            Some(Layout::ZipnumIndex)
        } else if super::json_lines::is_record(line, &JsonOptions::default()) {
            Some(Layout::JsonLines(Arc::default()))
        } else if super::access_log::is_record(line) {
            Some(Layout::AccessLog(Arc::default()))
        } else if cdx::is_record(line) {
            Some(Layout::Cdx(Arc::default()))
        } else {
            None
        }
    }
}

/// A decoder of every format; keeps their memory.
#[derive(Debug, Default)]
pub struct Decoder {
    layout: Layout,
    lines: Lines,
    csv: Csv,
    cdx: Cdx,
    cdxj: Cdxj,
    crawl_log: CrawlLog,
    journal: Journal,
    zipnum_index: ZipnumIndex,
    captures: Captures,
    json_lines: JsonLines,
    access_log: AccessLog,
}

impl Decoder {
    /// How chunks are taken to be written.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The records that follow have these fields; before the first call they have all.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.cdx.set_carry(carry);
        self.cdxj.set_carry(carry);
        self.crawl_log.set_carry(carry);
        self.journal.set_carry(carry);
        self.zipnum_index.set_carry(carry);
        self.captures.set_carry(carry);
        self.json_lines.set_carry(carry);
        self.access_log.set_carry(carry);
    }

    /// The chunks that follow are written so.
    pub fn set_layout(&mut self, layout: &Layout) {
        if self.layout == *layout {
            return;
        }
        match layout {
            Layout::Csv { delimiter, columns } => {
                self.csv.set_delimiter(*delimiter);
                self.csv.set_columns(*columns);
            }
            Layout::Cdx(columns) => self.cdx.set_columns(columns),
            Layout::JsonLines(options) => self.json_lines.set_options(options),
            Layout::AccessLog(format) => self.access_log.set_format(format),
            Layout::Lines | Layout::Cdxj | Layout::CrawlLog | Layout::Captures(_) => (),
            Layout::Journal | Layout::ZipnumIndex => (),
        }
        self.layout = layout.clone();
    }

    /// The records of `chunk`, which holds whole ones and begins at byte `offset` of its source; `bitmaps` describe
    /// their text afterwards.
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        match self.layout {
            Layout::Lines => self.lines.decode(chunk, offset, bitmaps),
            Layout::Csv { .. } => self.csv.decode(chunk, offset, bitmaps),
            Layout::Cdx(_) => self.cdx.decode(chunk, offset, bitmaps),
            Layout::Cdxj => self.cdxj.decode(chunk, offset, bitmaps),
            Layout::CrawlLog => self.crawl_log.decode(chunk, offset, bitmaps),
            Layout::Journal => self.journal.decode(chunk, offset, bitmaps),
            Layout::ZipnumIndex => self.zipnum_index.decode(chunk, offset, bitmaps),
            Layout::Captures(_) => self.captures.decode(chunk, bitmaps),
            Layout::JsonLines(_) => self.json_lines.decode(chunk, offset, bitmaps),
            Layout::AccessLog(_) => self.access_log.decode(chunk, offset, bitmaps),
        }
    }
}
