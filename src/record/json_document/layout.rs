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
                let (key, value) = first_member(text)?;
                (key == b"log" && is_har_log(value)).then_some(JsonLayout::Har)
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

/// The first key of an object that may be cut short, and the text from its value on.
fn first_member(object: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = object.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', text)?;
    let value = text[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&text[..end], value.trim_ascii_start()))
}

/// Whether the object begins with a member of a HAR log.
fn is_har_log(text: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"version", b"creator", b"browser", b"pages", b"entries", b"comment"];
    first_member(text).is_some_and(|(key, _)| names.contains(&key))
}
