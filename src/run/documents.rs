//! Reads sources as documents: a file is one document, an archive holds many ([`SourceDocuments`]).

use super::archive::{ArchiveBytes, ArchiveReader};
use super::row_reader::{ReadEnd, StreamBytes};
use crate::extract::Markup;
use crate::input::detect::{ContentType, content_type};
use crate::input::{Defect, OpenOptions, Opened, Source, Stream};
use crate::record::archive::{ArchiveDamage, ArchiveParser, ArchivedDocument};
use crate::record::{ArchiveRows, FormatOptions, InputFormat, SourceFormat, TextFormat, UnsupportedFormat};
use std::collections::VecDeque;

/// Bytes from which an archive is recognized.
const HEAD_LEN: usize = 64 << 10;

const WAT: UnsupportedFormat = UnsupportedFormat {
    name: "a WAT file, which holds the links of pages, not the pages",
    advice: "use irikey canon, which has the same columns: --columns page,link_type,link_rel,link_text,uri",
};

const TABLE: UnsupportedFormat =
    UnsupportedFormat { name: "a Parquet or Arrow file, not a document", advice: "use irikey canon" };
const CAPTURES: UnsupportedFormat =
    UnsupportedFormat { name: "a list of captures or requests, not a document", advice: "use irikey canon" };

/// What a source holds.
pub(crate) enum SourceDocuments {
    /// One document.
    One(Vec<u8>),
    /// One document that is longer than allowed.
    TooLong,
    /// A WARC or ARC file.
    Archive(Box<ArchiveDocuments>),
}

/// The documents of an archive, one after the other.
pub(crate) struct ArchiveDocuments {
    reader: ArchiveReader,
    found: VecDeque<ArchivedDocument>,
    defect: Option<Defect>,
    is_ended: bool,
}

/// What is known of an archive after its last document.
pub(crate) struct ArchiveSummary {
    /// Records that hold no documents, such as requests.
    pub(crate) other_records: u64,
    /// What ended the archive early.
    pub(crate) defect: Option<Defect>,
}

/// Opens a source whose documents have at most `max_len` bytes. `markup` is known from elsewhere than its bytes.
///
/// # Errors
/// The source cannot be opened or read, or is neither a document nor an archive.
pub(crate) fn open_documents(
    source: Source,
    markup: Option<Markup>,
    max_len: usize,
) -> Result<SourceDocuments, Defect> {
    let name = source.name.clone();
    // Documents are parsed in place, so they are not mapped: another process may change a mapped file.
    let opened = source.open(OpenOptions { mmap: false, threads: 1 })?;
    let mut stream = match opened {
        Opened::Mapped(mapping) => return Ok(SourceDocuments::One(mapping.to_vec())),
        Opened::Stream(stream) => stream,
    };
    let mut bytes = Vec::new();
    let defect = stream.read_to_len(&mut bytes, HEAD_LEN).err();
    match (ArchiveRows::of_source(&name, &bytes), defect) {
        (Some(ArchiveRows::Links), _) => Err(Defect::Unsupported(WAT)),
        (Some(ArchiveRows::Records), defect) => {
            Ok(SourceDocuments::Archive(Box::new(ArchiveDocuments::new(stream, &bytes, defect, max_len))))
        }
        (None, Some(defect)) => Err(defect),
        (None, None) => {
            check_document(&name, &bytes, markup)?;
            stream.read_to_len(&mut bytes, max_len.saturating_add(1))?;
            Ok(if bytes.len() > max_len { SourceDocuments::TooLong } else { SourceDocuments::One(bytes) })
        }
    }
}

/// Refuses what is recognized as another format. Read as HTML, it would give no references and no error.
fn check_document(name: &str, head: &[u8], markup: Option<Markup>) -> Result<(), Defect> {
    let text = match content_type(head) {
        ContentType::Table(_) => return Err(Defect::Unsupported(TABLE)),
        ContentType::Unsupported(format) => return Err(Defect::Unsupported(format)),
        ContentType::Encoding(encoding) => return Err(Defect::Encoding(encoding)),
        ContentType::Records(mark_len) => &head[mark_len..],
        ContentType::Utf16(_) | ContentType::UnmarkedUtf16(_) => return Ok(()),
    };
    // Content without other markup counts as HTML.
    let has_markup = Markup::of_content(text) != Markup::Html || text.trim_ascii_start().starts_with(b"<");
    if markup.is_some() || has_markup {
        return Ok(());
    }
    match InputFormat::Auto(FormatOptions::default()).of_source(name, text) {
        SourceFormat::Text(TextFormat::Lines(_)) | SourceFormat::Archive(_) => Ok(()),
        SourceFormat::Text(_) | SourceFormat::Csv(_) | SourceFormat::Json(_) => Err(Defect::Unsupported(CAPTURES)),
        SourceFormat::Unsupported(format) => Err(Defect::Unsupported(format)),
    }
}

impl ArchiveDocuments {
    /// The documents of an archive of which `head` was read already, up to `defect`.
    fn new(stream: Stream, head: &[u8], defect: Option<Defect>, max_len: usize) -> ArchiveDocuments {
        let bytes = ArchiveBytes::Stream(Box::new(StreamBytes::new(stream, head, defect)));
        let reader = ArchiveReader::new(ArchiveParser::of_documents(max_len as u64), bytes, 0);
        ArchiveDocuments { reader, found: VecDeque::new(), defect: None, is_ended: false }
    }

    /// The next document.
    pub(crate) fn next(&mut self) -> Option<ArchivedDocument> {
        while self.found.is_empty() && !self.is_ended {
            let (documents, end) = self.reader.read_documents();
            self.found.extend(documents);
            match end {
                ReadEnd::More | ReadEnd::LongRecord => {}
                ReadEnd::Source(defects) => {
                    (self.is_ended, self.defect) = (true, defects.into_iter().next().map(|end| end.defect));
                }
            }
        }
        self.found.pop_front()
    }

    /// What is known after the last document.
    pub(crate) fn finish(self) -> ArchiveSummary {
        let damage = self.reader.damage();
        let is_damaged = damage != ArchiveDamage::default();
        let defect = self.defect.or_else(|| is_damaged.then_some(Defect::ArchiveDamaged(damage)));
        ArchiveSummary { other_records: self.reader.skipped_count(), defect }
    }
}
