//! Finds the links of documents on any thread: [`LinkFinder`] reads a unit and gives blocks of rows, with what was counted.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::super::documents::{CapturedDocument, SkipReason};
use super::super::memory;
use super::rows::{LinkBlock, LinkOrigin, LinkRows};
use super::units::{DocumentUnit, ReadOptions, ReadUnit, SourceDocument};
use crate::encoding::Charset;
use crate::extract::{
    DefectKind, DocumentContext, HeaderField, Link, LinkScope, Markup, extract_each, for_each_header_link,
};
use crate::iri::Base;
use crate::output::OutputError;
use crate::record::archive::ArchivedDocument;

/// Maximum number of messages about documents; an archive may have millions.
pub(crate) const MAX_MESSAGES: usize = 100;

/// What was counted in documents.
#[derive(Debug, Default)]
pub(crate) struct ExtractCounts {
    /// Documents by their markup.
    pub(crate) documents: BTreeMap<Markup, u64>,
    /// Documents that could not be read to their end.
    pub(crate) unread: u64,
    pub(crate) defects: BTreeMap<DefectKind, u64>,
    /// Captures that were not read.
    pub(crate) skipped: BTreeMap<SkipReason, u64>,
    /// Records that are not captures.
    pub(crate) other_records: u64,
    /// Some input is an archive.
    pub(crate) has_archives: bool,
    /// Some input is a document.
    pub(crate) has_documents: bool,
}

impl ExtractCounts {
    pub(crate) fn add(&mut self, other: ExtractCounts) {
        other.documents.into_iter().for_each(|(markup, count)| *self.documents.entry(markup).or_default() += count);
        other.defects.into_iter().for_each(|(kind, count)| *self.defects.entry(kind).or_default() += count);
        other.skipped.into_iter().for_each(|(reason, count)| *self.skipped.entry(reason).or_default() += count);
        self.unread += other.unread;
        self.other_records += other.other_records;
        self.has_archives |= other.has_archives;
        self.has_documents |= other.has_documents;
    }
}

/// What was found in a unit, or in a part of it.
pub(crate) struct FoundLinks {
    pub(crate) links: LinkBlock,
    /// Bytes of inputs that were read.
    pub(crate) read_len: u64,
    pub(crate) counts: ExtractCounts,
    /// The first messages about documents.
    pub(crate) messages: Vec<String>,
    /// Number of further messages.
    pub(crate) more_messages: u64,
}

/// Reads a unit.
pub(super) struct LinkFinder<'a> {
    options: &'a ReadOptions,
    rows: LinkRows,
    /// What was counted since the last call of `give`, as in [`FoundLinks`].
    counts: ExtractCounts,
    read_len: u64,
    messages: Vec<String>,
    more_messages: u64,
    /// Takes what was found so far; returns whether to go on.
    give: &'a mut dyn FnMut(Result<FoundLinks, OutputError>) -> bool,
    is_stopped: bool,
}

impl<'a> LinkFinder<'a> {
    pub(super) fn new(
        options: &'a ReadOptions,
        rows: LinkRows,
        give: &'a mut dyn FnMut(Result<FoundLinks, OutputError>) -> bool,
    ) -> LinkFinder<'a> {
        let (counts, messages) = (ExtractCounts::default(), Vec::new());
        LinkFinder { options, rows, counts, read_len: 0, messages, more_messages: 0, give, is_stopped: false }
    }

    /// Gives everything that is found in `unit`, and returns the empty rows.
    pub(super) fn read(mut self, unit: ReadUnit) -> LinkRows {
        let options = self.options;
        self.read_len = unit.read_len;
        match unit.unit {
            DocumentUnit::Captures(source, captures) => {
                self.counts.has_archives = true;
                for capture in captures.iter().take_while(|_| !options.room.is_empty()) {
                    self.read_capture(&source, capture);
                }
            }
            DocumentUnit::Document(SourceDocument { source, bytes, context, is_query_hidden }) => {
                self.counts.has_documents = true;
                let page = context.base.as_deref().filter(|_| !is_query_hidden).unwrap_or_default();
                let origin = LinkOrigin { source: &source, page, is_query_hidden, ..LinkOrigin::default() };
                let is_whole = self.read_document(&bytes, &context, &origin, &source);
                self.counts.unread += u64::from(!is_whole);
            }
            DocumentUnit::End(source, summary) => {
                self.counts.other_records += summary.other_records;
                self.counts.unread += u64::from(!summary.defects.is_empty());
                summary.defects.iter().for_each(|defect| self.report(format!("{source}: {defect}")));
            }
            DocumentUnit::Unread(source, reason) => self.add_unread(&source, &reason),
        }
        self.give();
        self.rows
    }

    /// Gives what was found so far.
    fn give(&mut self) {
        if !self.is_stopped {
            let found = self.rows.take().map(|links| FoundLinks {
                links,
                read_len: std::mem::take(&mut self.read_len),
                counts: std::mem::take(&mut self.counts),
                messages: std::mem::take(&mut self.messages),
                more_messages: std::mem::take(&mut self.more_messages),
            });
            self.is_stopped = !(self.give)(found);
        }
    }

    /// Notes something that cannot be read, or not to its end.
    fn add_unread(&mut self, name: &str, reason: &dyn Display) {
        self.counts.unread += 1;
        self.report(format!("{name}: {reason}"));
    }

    fn report(&mut self, message: String) {
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push(message);
        } else {
            self.more_messages += 1;
        }
    }

    fn read_capture(&mut self, source: &str, document: &ArchivedDocument) {
        let capture = CapturedDocument::new(document);
        let page = document.url.as_slice();
        let (time, status) = (document.time, capture.status());
        let origin = LinkOrigin { source, page, time, status, ..LinkOrigin::default() };
        for (field, value) in capture.header_fields() {
            self.read_header_field(field, value, &origin);
        }
        if self.options.room.is_empty() {
            return;
        }
        let body = match capture.body(self.options.max_len, self.options.context.charset) {
            Ok(body) => body,
            Err(reason) => return *self.counts.skipped.entry(reason).or_default() += 1,
        };
        let place = format!("{source}: record at byte {} ({})", document.offset, String::from_utf8_lossy(page));
        let is_cut = body.defect.is_some();
        if let Some(defect) = &body.defect {
            self.report(format!("{place}: {defect}"));
            if body.bytes.is_empty() {
                self.counts.unread += 1;
                return;
            }
        }
        let given = &self.options.context;
        let context = DocumentContext {
            markup: given.markup.or(body.markup),
            charset: body.charset,
            base: Some(page.to_vec()),
            ..given.clone()
        };
        let is_whole = self.read_document(&body.bytes, &context, &origin, &place);
        self.counts.unread += u64::from(is_cut || !is_whole);
    }

    /// Appends the rows of the links in a header field.
    fn read_header_field(&mut self, field: HeaderField, value: &[u8], origin: &LinkOrigin<'_>) {
        let bases = [origin.page.to_vec()];
        let scope = LinkScope { bases: &bases, charset: Charset::UTF_8 };
        for_each_header_link(field, value, &mut |link, anchor| {
            // A link with an anchor is one from there.
            let anchor = anchor.and_then(|anchor| Base::new(origin.page).and_then(|base| base.resolve(&anchor)).ok());
            let origin = LinkOrigin { page: anchor.as_deref().unwrap_or(origin.page), ..*origin };
            self.append(&origin, &link, &scope)
        });
    }

    /// Appends the rows of a document. `place` names it in messages. Returns whether the document was read to its end.
    fn read_document(&mut self, bytes: &[u8], context: &DocumentContext, origin: &LinkOrigin<'_>, place: &str) -> bool {
        memory::sample();
        let document = extract_each(bytes, context, &mut |link, scope| self.append(origin, &link, &scope));
        *self.counts.documents.entry(document.markup).or_default() += 1;
        for defect in &document.defects {
            self.report(format!("{place}: {defect}"));
            *self.counts.defects.entry(defect.kind).or_default() += defect.count;
        }
        !document.defects.iter().any(|defect| defect.kind.ends_document())
    }

    /// Appends the row of a link; returns whether to go on.
    fn append(&mut self, origin: &LinkOrigin<'_>, link: &Link, scope: &LinkScope<'_>) -> bool {
        let room = &self.options.room;
        if room.is_empty() {
            return false;
        }
        room.take_row();
        if self.rows.append(origin, link, scope) {
            self.give();
        }
        !self.is_stopped && !room.is_empty()
    }
}
