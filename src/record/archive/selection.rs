//! Which records of an archive become rows: [`RecordTypes`].

use super::headers::WarcHeader;
use crate::record::media_type::without_parameters;

/// Which records of archives become rows. The others are counted.
///
/// A record whose header does not state its type or its length always becomes a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RecordTypes {
    /// All records.
    #[default]
    All,
    /// Records that hold a capture of their URL: `response`, `revisit`, `resource` and `conversion`.
    Captures,
    /// Records that an index for replay lists: `response`, `revisit`, `resource` and `metadata`, without those that only
    /// hold fields about a crawl.
    Replayable,
    /// Records of these types, in lower case. ARC has `warcinfo` and `response`.
    Listed(Vec<String>),
}

impl RecordTypes {
    /// The types of records, and `all`, which means all of them.
    pub const NAMES: [&str; 9] =
        ["all", "warcinfo", "response", "resource", "request", "metadata", "revisit", "conversion", "continuation"];

    /// Returns whether a text is one of [`Self::NAMES`], without regard to letter case and spaces around it.
    pub fn is_name(text: &str) -> bool {
        RecordTypes::NAMES.iter().any(|name| text.trim().eq_ignore_ascii_case(name))
    }

    /// The media type of fields about a crawl.
    const FIELDS: &[u8] = b"application/warc-fields";

    /// Parses a list of types; `all` means all of them.
    pub fn of_list(names: &[String]) -> RecordTypes {
        let names: Vec<_> = names.iter().map(|name| name.trim().to_ascii_lowercase()).collect();
        if names.iter().any(|name| name == "all") { RecordTypes::All } else { RecordTypes::Listed(names) }
    }

    /// Whether the type `name` is selected.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        match self {
            _ if name.is_empty() => true,
            RecordTypes::All => true,
            RecordTypes::Captures => matches!(name, b"response" | b"revisit" | b"resource" | b"conversion"),
            RecordTypes::Replayable => matches!(name, b"response" | b"revisit" | b"resource" | b"metadata"),
            RecordTypes::Listed(names) => names.iter().any(|selected| selected.as_bytes() == name),
        }
    }

    /// Whether the record with this header is selected.
    pub(super) fn has_record(&self, header: &WarcHeader<'_>) -> bool {
        let is_about_crawl = || {
            matches!(&header.record_type[..], b"resource" | b"metadata")
                && without_parameters(&header.content_type).eq_ignore_ascii_case(RecordTypes::FIELDS)
        };
        let is_selected = self.has(&header.record_type) && !(*self == RecordTypes::Replayable && is_about_crawl());
        is_selected || header.content_len.is_none()
    }
}
