//! The documents that are read, and how they are recognized: [`JsonLayout`].

use super::cdx_rows;
use crate::record::json::{JsonElements, JsonValue};

/// What the records of a document are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonLayout {
    /// Rows of a Wayback CDX server.
    CdxRows,
    /// Entries of a HAR file.
    Har,
}

impl JsonLayout {
    /// The layout of a document that begins with `head`, if it is one of these.
    pub(in crate::record) fn detect(head: &[u8]) -> Option<JsonLayout> {
        match head.trim_ascii_start() {
            [b'[', rest @ ..] => {
                let row = rest.trim_ascii_start();
                let first = if row.starts_with(b"[") { row } else { return None };
                let names: Vec<JsonValue<'_>> = JsonElements::new(first).take(cdx_rows::MAX_COLUMNS).collect();
                cdx_rows::is_header(&names).then_some(JsonLayout::CdxRows)
            }
            text @ [b'{', ..] => {
                let key = JsonHead(text).first_key()?;
                (key.0 == b"log" && is_har_log(key.1)).then_some(JsonLayout::Har)
            }
            _ => None,
        }
    }

    /// The keys of the objects that lead to the array of records.
    pub(super) fn path(self) -> &'static [&'static [u8]] {
        match self {
            JsonLayout::CdxRows => &[],
            JsonLayout::Har => &[b"log", b"entries"],
        }
    }
}

/// The beginning of an object, which may be cut.
struct JsonHead<'a>(&'a [u8]);

impl<'a> JsonHead<'a> {
    /// The first key, and the text of its value.
    fn first_key(&self) -> Option<(&'a [u8], &'a [u8])> {
        let text = self.0.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', text)?;
        let value = text[end + 1..].trim_ascii_start().strip_prefix(b":")?;
        Some((&text[..end], value.trim_ascii_start()))
    }
}

/// Whether the object begins with a member of a HAR log.
fn is_har_log(text: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"version", b"creator", b"browser", b"pages", b"entries", b"comment"];
    JsonHead(text).first_key().is_some_and(|(key, _)| names.contains(&key))
}
