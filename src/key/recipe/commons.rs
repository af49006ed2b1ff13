//! Rules of crawler-commons' `BasicURLNormalizer` and of the older one of Nutch, and their ways to read. In: bytes of a
//! URL; a [`Draft`]. Out: the draft, and whether the rule fired. They keep the case of paths and the fields' values;
//! crawler-commons refuses what `java.net.URI` does.
//!
//! Known differences: `http:example.org/x`, to which the programs give `http:/example.org/x`, has no key here; Nutch
//! leaves dot segments in a URL that `java.net.URI` refuses.

use super::draft::Draft;
use super::escapes::{escape, write_escape};
use crate::iri::{Component, Fault, FaultKind, Parts};

/// Reads a URL: spaces around it are cut off, text without `scheme:/` stands behind `http://`.
///
/// # Errors
/// As [`read_absolute`], and a `\`, which `java.net.URI` refuses.
pub fn read(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let text = url.trim_ascii();
    if let Some(at) = memchr::memchr(b'\\', &text[..memchr::memchr(b'#', text).unwrap_or(text.len())]) {
        return Err(Fault::new(FaultKind::Character, Component::Reference, at));
    }
    let parts = Parts::split(text);
    let is_absolute = parts.scheme_len.is_some_and(|len| text.get(len as usize + 1) == Some(&b'/'));
    if is_absolute {
        return read_absolute(text, draft);
    }
    let mut absolute = b"http://".to_vec();
    absolute.extend_from_slice(text);
    read_absolute(&absolute, draft)
}

/// Reads a URL as `java.net.URL` does, spaces around it cut off; to Nutch a URL has a scheme.
///
/// # Errors
/// A scheme that is none of http, https and ftp; no `//`; a port that is no number.
pub fn read_absolute(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    draft.read_generic(url.trim_ascii());
    let is_known = [&b"http"[..], b"https", b"ftp"].iter().any(|scheme| draft.scheme.eq_ignore_ascii_case(scheme));
    if !is_known || draft.host.get().is_none() {
        return Err(Fault::new(FaultKind::Scheme, Component::Scheme, 0));
    }
    match draft.port.get() {
        Some(b"") => draft.port.set(None),
        Some(port) if !port.iter().all(u8::is_ascii_digit) => {
            return Err(Fault::new(FaultKind::Port, Component::Port, 0));
        }
        _ => {}
    }
    Ok(())
}

/// After the rules: what the host holds must be what `java.net.URI` takes.
///
/// # Errors
/// It is not.
pub fn check(draft: &Draft) -> Result<(), Fault> {
    let host = draft.host.get().unwrap_or_default();
    match host.iter().position(|&byte| byte <= b' ' || b"\"<>\\^`{|}%#".contains(&byte) || byte >= 0x7F) {
        Some(at) => Err(Fault::new(FaultKind::Character, Component::Host, at)),
        None => Ok(()),
    }
}

/// Encodes what must not stand in a path or query, decodes `unreserved`, and writes hex digits in upper case.
pub fn tidy_escapes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let mut fired = false;
    for part in [Some(&mut draft.path), draft.query.get_mut()].into_iter().flatten() {
        if part.iter().all(|&byte| byte != b'%' && !must_be_escaped(byte)) {
            continue;
        }
        spare.clear();
        write_tidy(part, spare);
        fired |= spare != part;
        std::mem::swap(spare, part);
    }
    fired
}

fn must_be_escaped(byte: u8) -> bool {
    byte <= b' ' || byte >= 0x7F || b"\"#<>[]^`{|}".contains(&byte)
}

fn write_tidy(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match text.get(at..at + 3).and_then(escape) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => out.push(byte),
            Some(byte) => write_escape(byte, out),
            None => {
                if byte == b'%' || must_be_escaped(byte) {
                    write_escape(byte, out);
                } else {
                    out.push(byte);
                }
                at += 1;
                continue;
            }
        }
        at += 3;
    }
}

/// Removes one final dot of the host.
pub fn drop_final_dot(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut().filter(|host| host.ends_with(b".")) else { return false };
    host.pop();
    true
}

/// Gives a URL with a host the path `/` if it has none.
pub fn fill_path(draft: &mut Draft) -> bool {
    let fires = draft.path.is_empty() && draft.host.get().is_some();
    if fires {
        draft.path.push(b'/');
    }
    fires
}

/// Takes out `.`, `..` with the segment before it, leading `..`, and empty segments; what ended in a dot segment or `/`
/// ends in `/`.
pub fn normalize_path(draft: &mut Draft) -> bool {
    let path = &mut draft.path;
    let is_touched = |pair: &[u8]| matches!(pair, b"/." | b"//" | b"./");
    if !path.starts_with(b"/") || !path.windows(2).any(is_touched) {
        return false;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_open = false;
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        ends_open = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let out = &mut draft.spare;
    out.clear();
    for segment in &kept {
        out.push(b'/');
        out.extend_from_slice(segment);
    }
    if ends_open || kept.is_empty() {
        out.push(b'/');
    }
    let changed = out != path;
    std::mem::swap(out, path);
    changed
}

/// Sorts the query's fields by name and leaves those of one name in order; fields without a name go, and so does the
/// `=` of one without a value.
pub fn sort_query_names(draft: &mut Draft) -> bool {
    let (spare, fields) = (&mut draft.spare, &mut draft.fields);
    let Some(query) = draft.query.get_mut() else { return false };
    fields.clear();
    let mut at = 0;
    for field in query.split(|&byte| byte == b'&') {
        let value_at = memchr::memchr(b'=', field);
        let len =
            if value_at.is_some_and(|value_at| value_at + 1 == field.len()) { field.len() - 1 } else { field.len() };
        if len > 0 && value_at != Some(0) {
            fields.push((at as u32, (at + len) as u32));
        }
        at += field.len() + 1;
    }
    let field = |&(at, end): &(u32, u32)| &query[at as usize..end as usize];
    let name = |span: &(u32, u32)| {
        let field = field(span);
        &field[..memchr::memchr(b'=', field).unwrap_or(field.len())]
    };
    fields.sort_by(|a, b| name(a).cmp(name(b)));
    spare.clear();
    for (i, span) in fields.iter().enumerate() {
        if i > 0 {
            spare.push(b'&');
        }
        spare.extend_from_slice(field(span));
    }
    let changed = spare != query;
    std::mem::swap(spare, query);
    changed
}
