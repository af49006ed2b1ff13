//! The rows of `extract`: one per link, in the columns that the user chose.

use crate::batch::ColumnKind;
use crate::canon::{Policy, UrlCanonicalizer};
use crate::extract::{HTTP_ELEMENT, Link, LinkScope};
use crate::output::{OutputError, OutputFormat, PlainColumn, PlainValue, RowBlock, RowEncoder};
use crate::remote::has_hidden_part;

/// A column of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkColumn {
    Url,
    Base,
    Charset,
    Element,
    Attribute,
    RecordOffset,
    Source,
    Fault,
    FaultAt,
    Page,
    LinkType,
    LinkRel,
    LinkText,
    FetchTime,
    FetchStatus,
    Uri,
    Key,
}

/// Every column: its name, how it is stored, whether it is written by default, its meaning.
pub(crate) const LINK_COLUMNS: [(LinkColumn, &str, ColumnKind, bool, &str); 17] = [
    (LinkColumn::Url, "url", ColumnKind::Bytes, true, "the reference, in UTF-8"),
    (LinkColumn::Base, "base", ColumnKind::Bytes, true, "what it is resolved against"),
    (LinkColumn::Charset, "charset", ColumnKind::Text, true, "charset of the document"),
    (LinkColumn::Element, "element", ColumnKind::Text, true, "element; http for a header field, empty in lists"),
    (LinkColumn::Attribute, "attribute", ColumnKind::Text, true, "attribute; empty for the content of the element"),
    (LinkColumn::RecordOffset, "record_offset", ColumnKind::Count, true, "byte of the document where the value begins"),
    (LinkColumn::Source, "source", ColumnKind::Text, true, "file that contains the document"),
    (LinkColumn::Fault, "fault", ColumnKind::Text, true, "why there is no URL, or no URI"),
    (LinkColumn::FaultAt, "fault_at", ColumnKind::Count, true, "byte of the document where the fault is"),
    (LinkColumn::Page, "page", ColumnKind::Text, false, "canonical URI of the document's address"),
    (LinkColumn::LinkType, "link_type", ColumnKind::Text, false, "element and attribute as in WAT files: A@/href"),
    (LinkColumn::LinkRel, "link_rel", ColumnKind::Text, false, "relation: rel, or what the element means"),
    (LinkColumn::LinkText, "link_text", ColumnKind::Text, false, "text of an a element, alt of an image"),
    (LinkColumn::FetchTime, "fetch_time", ColumnKind::Time, false, "when the capture was made"),
    (LinkColumn::FetchStatus, "fetch_status", ColumnKind::Short, false, "HTTP status of the capture"),
    (LinkColumn::Uri, "uri", ColumnKind::Text, false, "canonical URI, as canon makes it"),
    (LinkColumn::Key, "key", ColumnKind::Key, false, "key of that URI"),
];

/// The document in which links are found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LinkOrigin<'a> {
    pub(super) source: &'a str,
    /// Address of the document; empty if it is not known.
    pub(super) page: &'a [u8],
    pub(super) time: Option<i64>,
    pub(super) status: Option<i32>,
    /// The base of the document lacks a part of its query, which is a secret.
    pub(super) is_query_hidden: bool,
}

impl LinkOrigin<'_> {
    /// The base of a reference; empty if the reference has the query of its base, but that is not known.
    fn base_of<'b>(&self, reference: &[u8], bases: &'b [Vec<u8>], number: usize) -> &'b [u8] {
        let base = bases.get(number).map_or(&[][..], |base| base);
        let has_query_of_base = reference.is_empty() || reference.starts_with(b"#");
        if self.is_query_hidden && has_query_of_base && has_hidden_part(base) { &[] } else { base }
    }
}

/// The columns of the rows, and the format in which they are written.
#[derive(Clone, Debug)]
pub(crate) struct RowLayout {
    format: OutputFormat,
    columns: Vec<LinkColumn>,
    pub(crate) plain: Vec<PlainColumn>,
}

/// Encodes the rows of links.
pub(super) struct LinkRows {
    columns: Vec<LinkColumn>,
    encoder: RowEncoder,
    /// Set if the columns need the canonical URI.
    urls: Option<UrlCanonicalizer>,
    /// Set if the columns need the page.
    pages: Option<PageMaker>,
    links: u64,
    faulty: u64,
}

/// Encoded rows of links.
pub(crate) struct LinkBlock {
    pub(crate) rows: RowBlock,
    pub(crate) links: u64,
    /// Rows with a fault.
    pub(crate) faulty: u64,
}

impl RowLayout {
    /// The layout with the columns of these names.
    pub(crate) fn new(format: OutputFormat, names: &[&'static str]) -> RowLayout {
        let chosen = names.iter().filter_map(|name| LINK_COLUMNS.iter().find(|(_, known, ..)| known == name));
        let columns = chosen.clone().map(|(column, ..)| *column).collect();
        let plain = chosen.map(|(_, name, kind, ..)| PlainColumn { name, kind: *kind }).collect();
        RowLayout { format, columns, plain }
    }

    /// Whether rows have the text of links.
    pub(crate) fn needs_text(&self) -> bool {
        self.columns.contains(&LinkColumn::LinkText)
    }
}

impl LinkRows {
    pub(super) fn new(layout: &RowLayout) -> LinkRows {
        let RowLayout { format, columns, plain } = layout;
        let needs_uri = columns.iter().any(|column| matches!(column, LinkColumn::Uri | LinkColumn::Key));
        LinkRows {
            columns: columns.clone(),
            encoder: RowEncoder::new(*format, plain),
            urls: needs_uri.then(|| UrlCanonicalizer::new(&Policy::default())),
            pages: columns.contains(&LinkColumn::Page).then(PageMaker::new),
            links: 0,
            faulty: 0,
        }
    }

    /// Appends a row. Returns whether the rows are to be taken.
    pub(super) fn append(&mut self, origin: &LinkOrigin<'_>, link: &Link, scope: &LinkScope<'_>) -> bool {
        let base = origin.base_of(&link.url, scope.bases, link.base);
        // A row without a URL has no base either, because canon would resolve the empty reference to the base.
        let is_readable = link.defect.is_none();
        let row = match &mut self.urls {
            Some(urls) if is_readable => Some(urls.canonicalize_one(&link.url, Some(base))),
            _ => None,
        };
        let page = self.pages.as_mut().map_or(&[][..], |pages| pages.make(origin.page));
        let fault_of_url = row.and_then(|row| row.fault).map(|fault| fault.kind.name());
        let fault = link.defect.map(|(kind, _)| kind.name()).or(fault_of_url);
        self.links += 1;
        self.faulty += u64::from(fault.is_some());
        let link_type = match self.columns.contains(&LinkColumn::LinkType) {
            true => format!("{}@/{}", link.element.to_uppercase(), link.attribute),
            false => String::new(),
        };
        let value = |column| match column {
            LinkColumn::Url if is_readable => PlainValue::Bytes(&link.url),
            LinkColumn::Base if is_readable => non_empty(base),
            LinkColumn::Url | LinkColumn::Base => PlainValue::Null,
            LinkColumn::Charset => scope.charset.name().into(),
            LinkColumn::Element => non_empty(link.element.as_bytes()),
            LinkColumn::Attribute => non_empty(link.attribute.as_bytes()),
            LinkColumn::RecordOffset if link.element == HTTP_ELEMENT => PlainValue::Null,
            LinkColumn::RecordOffset => PlainValue::Number(link.offset),
            LinkColumn::Source => origin.source.into(),
            LinkColumn::Fault => fault.into(),
            LinkColumn::FaultAt => link.defect.map(|(_, at)| at).into(),
            LinkColumn::Page => non_empty(page),
            LinkColumn::LinkType => link_type.as_str().into(),
            LinkColumn::LinkRel => non_empty(link.rel.as_bytes()),
            LinkColumn::LinkText => non_empty(link.text.as_bytes()),
            LinkColumn::FetchTime => origin.time.map(PlainValue::Time).into(),
            // The column has 16 bits.
            LinkColumn::FetchStatus => {
                origin.status.and_then(|status| u64::try_from(i16::try_from(status).ok()?).ok()).into()
            }
            LinkColumn::Uri => row.map(|row| non_empty(row.uri)).into(),
            LinkColumn::Key => row.map(|row| PlainValue::Key(row.key)).into(),
        };
        let mut values = [PlainValue::Null; LINK_COLUMNS.len()];
        values.iter_mut().zip(&self.columns).for_each(|(place, column)| *place = value(*column));
        self.encoder.append(&values[..self.columns.len()]);
        self.encoder.is_full()
    }

    /// Takes the rows that were appended.
    pub(super) fn take(&mut self) -> Result<LinkBlock, OutputError> {
        let (links, faulty) = (std::mem::take(&mut self.links), std::mem::take(&mut self.faulty));
        Ok(LinkBlock { rows: self.encoder.take()?, links, faulty })
    }
}

fn non_empty(text: &[u8]) -> PlainValue<'_> {
    if text.is_empty() { PlainValue::Null } else { PlainValue::Bytes(text) }
}

/// Makes the canonical URI of a page, once for all its links.
struct PageMaker {
    urls: UrlCanonicalizer,
    page: Vec<u8>,
    uri: Vec<u8>,
}

impl PageMaker {
    fn new() -> PageMaker {
        PageMaker { urls: UrlCanonicalizer::new(&Policy::default()), page: Vec::new(), uri: Vec::new() }
    }

    /// The canonical URI of `page`; empty if it has none.
    fn make(&mut self, page: &[u8]) -> &[u8] {
        if self.page != page {
            self.page.clear();
            self.page.extend_from_slice(page);
            self.uri.clear();
            self.uri.extend_from_slice(self.urls.canonicalize_one(page, None).uri);
        }
        &self.uri
    }
}
