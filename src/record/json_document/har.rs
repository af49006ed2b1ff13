//! Entries of HAR (HTTP Archive 1.2), each a request and its response.

use super::json_record::JsonRecord;
use crate::iri::FaultKind;
use crate::kernel::parse_bytes;
use crate::record::buffer::{RecordBuffer, append_with};
use crate::record::fields::FieldValues;
use crate::record::http_method::carried_method;
use crate::record::json::{JsonElements, JsonMembers, JsonValue, at_path, unescape};
use crate::record::{media_type, time};

/// Keys of the strings that are held whole, as long as the entry is not too long.
pub(super) const URL_KEYS: &[&[u8]] = &[b"url", b"redirectURL"];

/// Appends an entry.
pub(super) fn push_entry(entry: &JsonRecord<'_>, rows: &mut RecordBuffer) {
    if entry.is_too_long || !JsonMembers::are_whole(entry.text) {
        return entry.refuse(rows);
    }
    let url = string(entry.text, &["request", "url"]);
    if url.is_some_and(|url| !entry.is_whole(url)) {
        // Only if the JSON is malformed, so that its strings and levels are ambiguous.
        return JsonRecord { is_too_long: true, ..*entry }.refuse(rows);
    }
    rows.begin(entry.at);
    if url.is_none() {
        rows.refuse(FaultKind::NoUrl);
    }
    let url = append_with(&mut rows.text, |out| match url {
        Some(url) => unescape(url, out),
        None => out.extend_from_slice(entry.beginning()),
    });
    let fields = fields_of(entry, rows);
    rows.columns.push(url, &fields);
}

/// The fields of an entry besides the URL. A field whose string was cut is null.
fn fields_of(entry: &JsonRecord<'_>, rows: &mut RecordBuffer) -> FieldValues {
    let field = |path: &[&str]| string(entry.text, path).filter(|text| entry.is_whole(text));
    let mut copy = |text: Option<&[u8]>| {
        let text = text.filter(|text| !text.is_empty())?;
        Some(append_with(&mut rows.text, |out| unescape(text, out)))
    };
    let media_type = field(&["response", "content", "mimeType"]);
    let method = field(&["request", "method"]).and_then(carried_method);
    FieldValues {
        time: field(&["startedDateTime"]).and_then(time::from_iso_with_zone),
        status: status(entry.text),
        redirect: copy(field(&["response", "redirectURL"])),
        mime: copy(media_type.map(media_type::without_parameters)),
        charset: copy(media_type.map(media_type::charset)),
        page: copy(referrer(entry.text).filter(|page| entry.is_whole(page))),
        // An extension of browsers: document, script, image and the like.
        link_type: copy(field(&["_resourceType"])),
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
