//! The recipes `crawler-commons` (its `BasicURLNormalizer`) and `nutch` (the older normalizer of Nutch).
//!
//! Both keep the case of paths and the values of fields. crawler-commons rejects what `java.net.URI` rejects.
//!
//! Known differences: `http:example.org/x`, for which the programs return `http:/example.org/x`, has no key here. Accounts
//! (`sip:user@host`), which crawler-commons turns into the home page of the host, have no key. `file:///` and `mailto://` are
//! written as `file:/` and `mailto:` even if the programs write the slashes. Nutch keeps dot segments in a URL that
//! `java.net.URI` rejects, and spaces in hosts.

use super::definition::RecipeDefinition;
use super::draft::{self, Draft, QueryField, is_account_scheme, replace_text, split_at_colon, trim_to};
use crate::iri::class::{CONTROL, NON_ASCII, UNRESERVED};
use crate::iri::{Component, Fault, FaultKind, find_scheme, octets};
use crate::kernel::{ByteSet, escape, parse_bytes};
use crate::key::write_joined;

pub(super) const CRAWLER_COMMONS: RecipeDefinition = RecipeDefinition {
    name: "crawler-commons",
    version: 2,
    read,
    rules: "fragment userinfo scheme-case host-ascii host-case host-final-dot port-special path-fill escapes-tidy \
            path-dots query-names query-empty",
    write,
    shortcut: None,
};

pub(super) const NUTCH: RecipeDefinition = RecipeDefinition {
    name: "nutch",
    version: 2,
    read: read_java,
    rules: "fragment userinfo scheme-case host-ascii host-case port-special path-fill escapes-tidy path-dots",
    write: draft::write_url,
    shortcut: None,
};

/// Schemes of `java.net.URL`. It knows more (`jar`, `jrt`), which do not occur in crawls.
const KNOWN: [&[u8]; 5] = [b"http", b"https", b"ftp", b"file", b"mailto"];

/// Bytes that paths and queries contain only in escapes.
const ESCAPED: ByteSet = CONTROL.or(NON_ASCII).or(ByteSet::of(b" \"#%<>[]^`{|}"));

/// Bytes that crawler-commons rejects in hosts.
const NOT_IN_HOST: ByteSet = ESCAPED.or(ByteSet::of(b"\\"));

fn is_known(scheme: &[u8]) -> bool {
    KNOWN.iter().any(|name| scheme.eq_ignore_ascii_case(name))
}

/// Splits a URL like crawler-commons: text without a scheme that Java knows follows `http://`, unless it begins with
/// `scheme:/`.
///
/// # Errors
/// As for [`read_java`]; a `\`, which `java.net.URI` rejects; and an address of an account.
fn read(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let text = trim_to(url, |byte| *byte > b' ');
    if let Some(at) = memchr::memchr(b'\\', &text[..memchr::memchr(b'#', text).unwrap_or(text.len())]) {
        return Err(Fault::new(FaultKind::Character, Component::Reference, at));
    }
    if let Some(len) = find_scheme(text)
        && let [first, ..] = text[len + 1..]
        && (first == b'/' || is_known(&text[..len]) || is_account_scheme(&text[..len]))
    {
        return read_java(text, draft);
    }
    read_java(&[b"http://", text].concat(), draft)
}

/// Splits a URL like `java.net.URL`.
///
/// # Errors
/// A scheme that Java does not know, no `//`, two `@`, a port that is not a number, or brackets without an IPv6 address.
fn read_java(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let text = trim_to(url, |byte| *byte > b' ');
    let scheme_fault = Fault::new(FaultKind::Scheme, Component::Scheme, 0);
    let len = find_scheme(text).filter(|len| is_known(&text[..*len])).ok_or(scheme_fault)?;
    draft.scheme.extend_from_slice(&text[..len]);
    let rest = &text[len + 1..];
    if draft.scheme.eq_ignore_ascii_case(b"mailto") {
        draft.read_tail(rest);
        return if rest.is_empty() { Err(scheme_fault) } else { Ok(()) };
    }
    match rest.strip_prefix(b"//") {
        Some(rest) => {
            let authority = draft.read_after_authority(rest);
            read_authority(authority, draft)?;
        }
        None => draft.read_tail(rest),
    }
    if !draft.scheme.eq_ignore_ascii_case(b"file") {
        return draft.host.get().map(|_| ()).ok_or(scheme_fault);
    }
    if draft.host.get().is_some_and(<[u8]>::is_empty) {
        draft.host.remove();
    }
    if !draft.path.starts_with(b"/") {
        draft.path.insert(0, b'/');
    }
    Ok(())
}

/// Splits an authority. The host ends after its `]` or at the first `:`.
fn read_authority(authority: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let at = memchr::memchr(b'@', authority);
    if at != memchr::memrchr(b'@', authority) {
        return Err(Fault::new(FaultKind::Character, Component::Host, 0));
    }
    draft.userinfo.set(at.map(|at| &authority[..at]));
    let rest = &authority[at.map_or(0, |at| at + 1)..];
    let (host, port) = if rest.starts_with(b"[") {
        bracketed(rest).ok_or(Fault::new(FaultKind::IpLiteral, Component::Host, 0))?
    } else {
        split_at_colon(rest)
    };
    draft.host.set(Some(host));
    draft.read_java_port(port)?;
    match draft.port.get() {
        Some([b'-', ..]) => Err(Fault::new(FaultKind::Port, Component::Port, 0)),
        _ => Ok(()),
    }
}

/// Splits `[IPv6%zone]:port`.
fn bracketed(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let close = memchr::memchr(b']', text)?;
    let address = text[1..close].split(|&byte| byte == b'%').next()?;
    parse_bytes::<std::net::Ipv6Addr>(address)?;
    match &text[close + 1..] {
        [] => Some((&text[..=close], None)),
        [b':', port @ ..] => Some((&text[..=close], Some(port))),
        _ => None,
    }
}

/// Writes a URL whose host `java.net.URI` accepts.
///
/// # Errors
/// The host contains a byte that it rejects.
fn write(draft: &Draft, out: &mut Vec<u8>) -> Result<(), Fault> {
    let host = draft.host.get().unwrap_or_default();
    match host.iter().position(|byte| NOT_IN_HOST.contains(*byte)) {
        Some(at) => Err(Fault::new(FaultKind::Character, Component::Host, at)),
        None => draft::write_url(draft, out),
    }
}

/// Encodes what must be encoded in paths and queries, decodes `unreserved`, and converts hex digits to upper case.
pub(super) fn tidy_escapes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let mut is_changed = false;
    for part in [Some(&mut draft.path), draft.query.get_mut()].into_iter().flatten() {
        if !part.iter().any(|byte| ESCAPED.contains(*byte)) {
            continue;
        }
        spare.clear();
        write_tidy(part, spare);
        is_changed |= replace_text(part, spare);
    }
    is_changed
}

fn write_tidy(text: &[u8], out: &mut Vec<u8>) {
    for (byte, is_escaped) in octets(text) {
        let is_encoded = if is_escaped { !UNRESERVED.contains(byte) } else { ESCAPED.contains(byte) };
        if is_encoded { out.extend_from_slice(&escape(byte)) } else { out.push(byte) }
    }
}

/// Removes one dot at the end of the host.
pub(super) fn drop_final_dot(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut().filter(|host| host.ends_with(b".")) else { return false };
    host.pop();
    true
}

/// Replaces an empty path after a host by `/`.
pub(super) fn fill_path(draft: &mut Draft) -> bool {
    let is_filled = draft.path.is_empty() && draft.host.get().is_some();
    if is_filled {
        draft.path.push(b'/');
    }
    is_filled
}

/// Removes `.`, `..` with the segment before it, leading `..`, and empty segments. A path that ended in a dot segment or
/// `/` ends in `/`.
pub(super) fn normalize_path(draft: &mut Draft) -> bool {
    let path = &mut draft.path;
    let is_affected = |pair: &[u8]| matches!(pair, b"/." | b"//" | b"./");
    if !path.starts_with(b"/") || !path.windows(2).any(is_affected) {
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
    replace_text(path, out)
}

/// Sorts the fields of the query by name and keeps the order of fields with one name. Removes fields without a name, and
/// the `=` of fields without a value.
pub(super) fn sort_query_names(draft: &mut Draft) -> bool {
    let (spare, fields) = (&mut draft.spare, &mut draft.fields);
    let Some(query) = draft.query.get_mut() else { return false };
    fields.clear();
    fields.extend(QueryField::split(query).map(QueryField::without_empty_value));
    fields.retain(|field| !field.name(query).is_empty());
    fields.sort_by(|a, b| a.name(query).cmp(b.name(query)));
    spare.clear();
    write_joined(fields.iter().map(|field| field.text(query)), b'&', spare);
    replace_text(query, spare)
}
