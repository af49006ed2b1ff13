//! Reads the sources of `extract`, one after the other: [`DocumentUnits`] makes the units whose links threads find side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::documents::{ArchiveDocuments, ArchiveSummary, DOCUMENT_UNIT_LEN, SourceDocuments, open_documents};
use crate::extract::{DocumentContext, Markup};
use crate::input::{BodyDefect, Source, Sources};
use crate::record::archive::ArchivedDocument;
use crate::record::without_compression_suffix;

/// How documents are read.
#[derive(Clone, Debug)]
pub(super) struct ReadOptions {
    /// What the user states of all documents.
    pub(super) context: DocumentContext,
    /// Maximum length of a document, in bytes.
    pub(super) max_len: usize,
    pub(super) room: RowRoom,
}

/// How many rows may still be made, without a limit or up to `--limit`. Clones share the number. Only one thread makes rows if
/// there is a limit, so that they are the first ones.
#[derive(Clone, Debug)]
pub(super) struct RowRoom(Option<Arc<AtomicU64>>);

impl RowRoom {
    pub(super) fn new(limit: Option<u64>) -> RowRoom {
        RowRoom(limit.map(|limit| Arc::new(AtomicU64::new(limit))))
    }

    /// No further row may be made.
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(|rows| rows.load(Ordering::Relaxed) == 0)
    }

    /// Counts a row.
    pub(super) fn take_row(&self) {
        if let Some(rows) = &self.0 {
            rows.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A source that is one document.
pub(super) struct SourceDocument {
    pub(super) source: String,
    pub(super) bytes: Vec<u8>,
    pub(super) context: DocumentContext,
    /// The base is an address that lacks a part of its query, which is a secret.
    pub(super) is_query_hidden: bool,
}

/// What a thread reads at a time. Each has the name of its source.
pub(super) enum DocumentUnit {
    Captures(String, Vec<ArchivedDocument>),
    Document(SourceDocument),
    /// The end of an archive.
    End(String, ArchiveSummary),
    /// The source cannot be read, for this reason.
    Unread(String, String),
}

/// A unit, and how many bytes of its source were read for it.
pub(super) struct ReadUnit {
    pub(super) unit: DocumentUnit,
    pub(super) read_len: u64,
}

impl DocumentUnit {
    /// As how many units of [`DOCUMENT_UNIT_LEN`] bytes it counts.
    pub(super) fn weight(&self) -> usize {
        let len = match self {
            DocumentUnit::Captures(_, captures) => captures.iter().map(|capture| capture.content.len()).sum(),
            DocumentUnit::Document(document) => document.bytes.len(),
            DocumentUnit::End(..) | DocumentUnit::Unread(..) => 0,
        };
        (len / DOCUMENT_UNIT_LEN).max(1)
    }
}

/// The units of sources. They do not depend on threads.
pub(super) struct DocumentUnits {
    sources: std::vec::IntoIter<Source>,
    /// The archive that is being read, and its name.
    archive: Option<(String, Box<ArchiveDocuments>)>,
    /// Bytes of the archive that were read.
    archive_position: u64,
    options: ReadOptions,
}

impl DocumentUnits {
    pub(super) fn new(sources: Sources, options: ReadOptions) -> DocumentUnits {
        DocumentUnits { sources: sources.0.into_iter(), archive: None, archive_position: 0, options }
    }

    /// Opens a source. Returns `None` if it is an archive.
    fn open(&mut self, mut source: Source) -> Option<DocumentUnit> {
        Sources::begin_ahead(self.sources.as_mut_slice().iter_mut());
        let (name, ReadOptions { context, max_len, .. }) = (source.name.clone(), &self.options);
        let answered = source.wait_for_server();
        let charset = context.charset.or_else(|| source.declared_charset());
        let file_name = source.file_name(|name| markup_of_name(name).is_some());
        let address = source.address().map(String::into_bytes);
        let is_query_hidden = context.base.is_none() && source.is_query_hidden();
        let context = DocumentContext {
            markup: context.markup.or_else(|| markup_of_name(&file_name)),
            base: context.base.clone().or(address),
            charset,
            ..context.clone()
        };
        match answered.and_then(|()| open_documents(source, context.markup, charset, *max_len)) {
            Ok(SourceDocuments::One(bytes)) => {
                Some(DocumentUnit::Document(SourceDocument { source: name, bytes, context, is_query_hidden }))
            }
            Ok(SourceDocuments::TooLong) => Some(DocumentUnit::Unread(name, BodyDefect::TooLong(*max_len).to_string())),
            Ok(SourceDocuments::Archive(documents)) => {
                (self.archive, self.archive_position) = (Some((name, documents)), 0);
                None
            }
            Err(defect) => Some(DocumentUnit::Unread(name, defect.to_string())),
        }
    }

    /// The next captures of an archive; its end after the last ones.
    fn next_captures(&mut self, name: String, mut archive: Box<ArchiveDocuments>) -> ReadUnit {
        let captures = archive.next_unit();
        let position = archive.position();
        let read_len = position - std::mem::replace(&mut self.archive_position, position);
        let unit = match captures.is_empty() {
            true => DocumentUnit::End(name, archive.finish()),
            false => {
                self.archive = Some((name.clone(), archive));
                DocumentUnit::Captures(name, captures)
            }
        };
        ReadUnit { unit, read_len }
    }
}

impl Iterator for DocumentUnits {
    type Item = ReadUnit;

    fn next(&mut self) -> Option<ReadUnit> {
        while !self.options.room.is_empty() {
            if let Some((name, archive)) = self.archive.take() {
                return Some(self.next_captures(name, archive));
            }
            let source = self.sources.next()?;
            let read_len = source.len.unwrap_or(0);
            if let Some(unit) = self.open(source) {
                return Some(ReadUnit { unit, read_len });
            }
        }
        None
    }
}

/// The markup that a file name stands for, apart from the suffix of a compression.
fn markup_of_name(name: &str) -> Option<Markup> {
    let name = name.to_ascii_lowercase();
    let name = without_compression_suffix(&name).unwrap_or(&name);
    if name.rsplit(['/', '\\']).next() == Some("robots.txt") {
        return Some(Markup::Robots);
    }
    match name.rsplit_once('.')?.1 {
        "html" | "htm" => Some(Markup::Html),
        "xml" | "xhtml" | "svg" | "rss" | "atom" | "rdf" | "xsd" | "xsl" | "xslt" | "opml" => Some(Markup::Xml),
        _ => None,
    }
}
