//! Reads the documents of archives for evidence besides digests: hashes of similar texts, and canonical links.
//!
//! ```text
//! archives --ArchiveDocuments--> documents --DocumentReader, on all threads--> records --> sorted runs of captures
//! ```
//!
//! Archives are read a second time for it. Sources that are not archives have no documents.

use super::super::documents::{ArchiveDocuments, CapturedDocument, SourceDocuments, open_documents};
use super::super::in_order::produced_in_order;
use super::super::{RunError, memory};
use super::capture_sort::{ObserveError, write_canonical, write_text_hash};
use crate::canon::{Policy, UrlCanonicalizer};
use crate::extract::{DocumentContext, HeaderField, extract_each, for_each_header_link, similarity_hash};
use crate::input::{Defect, InputError, Source};
use crate::record::archive::ArchivedDocument;
use crate::sort::{BytesBuffer, BytesRun};

/// Longest document that is read, in bytes.
const MAX_DOCUMENT_LEN: usize = 16 << 20;

/// What is looked for in documents.
#[derive(Debug)]
pub(crate) struct DocumentOptions {
    /// The sources, to be read a second time.
    pub(crate) sources: Vec<Source>,
    /// Hashes of texts.
    pub(crate) has_texts: bool,
    /// Canonical links.
    pub(crate) has_canonical: bool,
}

/// What was found in documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocumentCounts {
    /// Documents of archives that were read.
    pub(crate) documents: u64,
    /// Documents whose text has a hash.
    pub(crate) texts: u64,
    /// Documents that name another URL as the canonical one.
    pub(crate) canonical: u64,
    /// Documents whose content could not be decoded.
    pub(crate) unread: u64,
}

/// Reads the documents of all archives, and calls `append` with what they state. Returns the archives that could not be read
/// completely, too.
pub(super) fn read_documents(
    options: DocumentOptions,
    policy: &Policy,
    threads: usize,
    mut append: impl FnMut(BytesRun) -> Result<(), ObserveError> + Send,
) -> Result<(DocumentCounts, Vec<InputError>), RunError<ObserveError>> {
    let DocumentOptions { sources, has_texts, has_canonical } = options;
    let mut archives = ArchiveReading { sources: (0..).zip(sources), current: None, errors: Vec::new() };
    let mut counts = DocumentCounts::default();
    let next = || Ok(archives.next_unit());
    let policy = Policy { keep_input: false, ..policy.clone() };
    let work = |documents: Vec<ArchivedDocument>| {
        let mut reader = DocumentReader {
            urls: UrlCanonicalizer::new(&policy),
            page: Vec::new(),
            records: BytesBuffer::default(),
            counts: DocumentCounts::default(),
        };
        documents.iter().for_each(|document| reader.read(document, has_texts, has_canonical));
        memory::sample();
        Ok((reader.records.take_run(), reader.counts))
    };
    let append = |(run, found): (BytesRun, DocumentCounts)| {
        counts.documents += found.documents;
        counts.texts += found.texts;
        counts.canonical += found.canonical;
        counts.unread += found.unread;
        append(run)
    };
    produced_in_order(threads, next, work, append)?;
    Ok((counts, archives.errors))
}

/// The archives among sources, which are read one after the other.
struct ArchiveReading<I> {
    /// The sources that follow, with their numbers.
    sources: I,
    /// The number and the name of an archive, and its documents.
    current: Option<(u32, String, Box<ArchiveDocuments>)>,
    errors: Vec<InputError>,
}

impl<I: Iterator<Item = (u32, Source)>> ArchiveReading<I> {
    /// Returns the next documents; `None` after the last.
    fn next_unit(&mut self) -> Option<Vec<ArchivedDocument>> {
        loop {
            let (number, name, mut archive) = self.current.take().or_else(|| self.open_next())?;
            let unit = archive.next_unit();
            if !unit.is_empty() {
                self.current = Some((number, name, archive));
                return Some(unit);
            }
            // Damage was reported when the records were read.
            let is_new = |defect: &Defect| !matches!(defect, Defect::ArchiveDamaged(_));
            let defects = archive.finish().defects.into_iter().filter(is_new);
            self.errors.extend(defects.map(|defect| InputError::new(number, name.clone(), defect)));
        }
    }

    /// Opens the next archive.
    fn open_next(&mut self) -> Option<(u32, String, Box<ArchiveDocuments>)> {
        loop {
            let (number, source) = self.sources.next()?;
            let name = source.name.clone();
            match open_documents(source, None, None, MAX_DOCUMENT_LEN) {
                Ok(SourceDocuments::Archive(archive)) => return Some((number, name, archive)),
                // Not an archive.
                Ok(_) | Err(Defect::Unsupported(_) | Defect::Encoding(_)) => (),
                Err(defect) => self.errors.push(InputError::new(number, name, defect)),
            }
        }
    }
}

/// Makes records of documents.
struct DocumentReader {
    urls: UrlCanonicalizer,
    /// Canonical URI of the document.
    page: Vec<u8>,
    records: BytesBuffer,
    counts: DocumentCounts,
}

impl DocumentReader {
    fn read(&mut self, document: &ArchivedDocument, has_texts: bool, has_canonical: bool) {
        let capture = CapturedDocument::new(document);
        let Ok(body) = capture.body(MAX_DOCUMENT_LEN, None) else { return };
        self.page.clear();
        self.page.extend_from_slice(self.urls.canonicalize_one(&document.url, None).uri);
        if self.page.is_empty() {
            return;
        }
        self.counts.documents += 1;
        if body.defect.is_some() {
            self.counts.unread += 1;
            return;
        }
        let context = DocumentContext {
            markup: body.markup,
            charset: body.charset,
            base: Some(document.url.clone()),
            ..DocumentContext::default()
        };
        if has_texts && let Some(hash) = similarity_hash(&body.bytes, &context) {
            self.counts.texts += u64::from(write_text_hash(&self.page, &capture.digest(), hash, &mut self.records));
        }
        if has_canonical && let Some((url, base)) = canonical_link(&capture, &body.bytes, &context) {
            self.add_canonical(&url, &base);
        }
    }

    fn add_canonical(&mut self, url: &[u8], base: &[u8]) {
        let canonical = self.urls.canonicalize_one(url, Some(base)).uri;
        if !canonical.is_empty() && canonical != self.page {
            self.counts.canonical += 1;
            write_canonical(&self.page, canonical, &mut self.records);
        }
    }
}

/// Returns the first canonical link of a document and its base: that of a header field, or of a `link` element (RFC 6596).
fn canonical_link(
    capture: &CapturedDocument<'_>,
    bytes: &[u8],
    context: &DocumentContext,
) -> Option<(Vec<u8>, Vec<u8>)> {
    let is_canonical = |rel: &str| rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case("canonical"));
    let base = context.base.clone().unwrap_or_default();
    let mut found = None;
    for (field, value) in capture.header_fields().into_iter().filter(|(field, _)| *field == HeaderField::Link) {
        // A link of an earlier field is the first one.
        if found.is_some() {
            break;
        }
        for_each_header_link(field, value, &mut |link, anchor| {
            if anchor.is_none() && is_canonical(&link.rel) {
                found = Some((link.url, base.clone()));
            }
            found.is_none()
        });
    }
    if found.is_none() {
        extract_each(bytes, context, &mut |link, scope| {
            if link.element == "link" && link.defect.is_none() && is_canonical(&link.rel) {
                let base = scope.bases.get(link.base).cloned();
                found = Some((link.url, base.unwrap_or_default()));
            }
            found.is_none()
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_canonical_link_of_header_fields_counts() {
        let url_of = |fields: &str| {
            let content =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n<link rel=canonical href=e>");
            let (url, content) = (b"http://h/p".to_vec(), content.into_bytes());
            let document = ArchivedDocument { url, content, ..ArchivedDocument::default() };
            let capture = CapturedDocument::new(&document);
            let body = capture.body(MAX_DOCUMENT_LEN, None).unwrap();
            let context = DocumentContext { markup: body.markup, ..DocumentContext::default() };
            canonical_link(&capture, &body.bytes, &context).map(|(url, _)| String::from_utf8(url).unwrap())
        };
        let [a, b] = ["a", "b"].map(|url| format!("Link: <{url}>; rel=canonical\r\n"));
        assert_eq!(url_of(&format!("{a}{b}")).as_deref(), Some("a"));
        assert_eq!(url_of(&format!("{b}Link: <c>; rel=next\r\n{a}")).as_deref(), Some("b"));
        assert_eq!(url_of("Link: <c>; rel=next\r\n").as_deref(), Some("e"));
    }
}
