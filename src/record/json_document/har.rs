//! Entries of HAR (HTTP Archive 1.2), each a request and its response.

use super::json_record::JsonRecord;
use crate::iri::FaultKind;
use crate::kernel::parse_bytes;
use crate::record::buffer::{RecordBuffer, append_with};
use crate::record::fields::FieldValues;
use crate::record::http_method::carried_method;
use crate::record::json::{JsonElements, JsonMembers, JsonValue, at_path, unescape};
use crate::record::{media_type, time};

/// Appends an entry.
pub(super) fn push_entry(entry: &JsonRecord<'_>, rows: &mut RecordBuffer) {
    let text = entry.text;
    if entry.is_too_long || !JsonMembers::are_whole(text) {
        return entry.refuse(rows);
    }
    rows.begin(entry.at);
    let url = string(text, &["request", "url"]);
    if url.is_none() {
        rows.refuse(FaultKind::NoUrl);
    }
    let url = append_with(&mut rows.text, |out| match url {
        Some(url) => unescape(url, out),
        None => out.extend_from_slice(entry.beginning()),
    });
    let fields = fields_of(text, rows);
    rows.columns.push(url, &fields);
}

/// The fields of an entry besides the URL.
fn fields_of(entry: &[u8], rows: &mut RecordBuffer) -> FieldValues {
    let mut copy = |text: Option<&[u8]>| {
        let text = text.filter(|text| !text.is_empty())?;
        Some(append_with(&mut rows.text, |out| unescape(text, out)))
    };
    let media_type = string(entry, &["response", "content", "mimeType"]);
    let method = string(entry, &["request", "method"]).and_then(carried_method);
    FieldValues {
        time: string(entry, &["startedDateTime"]).and_then(time::from_iso_with_zone),
        status: status(entry),
        redirect: copy(string(entry, &["response", "redirectURL"])),
        mime: copy(media_type.map(media_type::without_parameters)),
        charset: copy(media_type.map(media_type::charset)),
        page: copy(referrer(entry)),
        // An extension of browsers: document, script, image and the like.
        link_type: copy(string(entry, &["_resourceType"])),
        method: method.map(|method| append_with(&mut rows.text, |out| out.extend(method))),
        ..FieldValues::default()
    }
}

/// The status of the response. Without a response it is 0.
fn status(entry: &[u8]) -> Option<i32> {
    let Some(JsonValue::Bare(status)) = at_path(entry, &["response", "status"]) else { return None };
    parse_bytes(status).filter(|status| *status != 0)
}

/// The string at the end of a path, unless it is empty.
fn string<'a>(entry: &'a [u8], path: &[&str]) -> Option<&'a [u8]> {
    at_path(entry, path)?.text().filter(|text| !text.is_empty())
}

/// The page that an entry of a HAR file names as its referrer.
pub(super) fn referrer(entry: &[u8]) -> Option<&[u8]> {
    JsonElements::new(at_path(entry, &["request", "headers"])?.nested()?).find_map(|header| {
        let header = header.nested()?;
        let text = |key: &str| at_path(header, &[key])?.text();
        text("name").filter(|name| name.eq_ignore_ascii_case(b"referer")).and_then(|_| text("value"))
    })
}
