//! The recipe `heritrix`: the rules that Heritrix 3 applies by default (`RulesCanonicalizationPolicy`).
//!
//! The rules expect the URLs of Heritrix's logs, which it has normalized already. Heritrix applies regular expressions to
//! the whole URL; these rules change components. The results differ only for an `@` in the query of a URL without a path,
//! and for session identifiers in a host.

use super::definition::RecipeDefinition;
use super::draft::{self, Draft};
use super::host::{drop_www_once, lower};
use super::session::{ASP, JAVA, PHP, SID, find_cold_fusion, remove_field};

pub(super) const HERITRIX: RecipeDefinition = RecipeDefinition {
    name: "heritrix",
    version: 1,
    read: draft::read_url,
    rules: "all-case userinfo-web www-pages session-last query-fix",
    write: draft::write_url,
    shortcut: None,
};

/// Converts all components to lower case.
pub(super) fn lower_all(draft: &mut Draft) -> bool {
    let components = [&mut draft.userinfo, &mut draft.host, &mut draft.port, &mut draft.query, &mut draft.fragment];
    let mut is_changed = lower(&mut draft.scheme) | lower_text(&mut draft.path);
    for component in components {
        is_changed |= component.get_mut().is_some_and(lower_text);
    }
    is_changed
}

/// Converts to lower case like Java, non-ASCII letters included.
fn lower_text(text: &mut Vec<u8>) -> bool {
    let mut lowered = match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => text.to_lowercase().into_bytes(),
        _ => return lower(text),
    };
    draft::replace_text(text, &mut lowered)
}

/// Removes user name and password of http, https, ftp and ftps URLs.
pub(super) fn drop_web_userinfo(draft: &mut Draft) -> bool {
    let scheme = draft.scheme.to_ascii_lowercase();
    // In Heritrix, the last `@` ends the userinfo.
    let host_at = draft.host.get().and_then(|host| memchr::memrchr(b'@', host)).map(|at| at + 1);
    let has_name = host_at.is_some() || draft.userinfo.get().is_some_and(|userinfo| !userinfo.is_empty());
    let is_removed = has_name && matches!(&scheme[..], b"http" | b"https" | b"ftp" | b"ftps");
    if let (true, Some(at), Some(host)) = (is_removed, host_at, draft.host.get_mut()) {
        host.drain(..at);
    }
    is_removed && draft.userinfo.remove()
}

/// Removes one `www.`, `www2.` or the like from http and https URLs in which something follows a slash. Home pages keep
/// it.
pub(super) fn drop_www_of_pages(draft: &mut Draft) -> bool {
    let is_web = [&b"http"[..], b"https"].iter().any(|scheme| draft.scheme.eq_ignore_ascii_case(scheme));
    if !is_web || draft.userinfo.get().is_some() {
        return false;
    }
    let tail = take_tail(draft);
    let is_page = memchr::memchr(b'/', &tail).is_some_and(|slash| slash + 1 < tail.len());
    draft.spare = tail;
    is_page && drop_www_once(draft)
}

/// Removes one session identifier of Java or PHP, one `sid`, one of ASP and one of ColdFusion from path, query or fragment.
pub(super) fn drop_sessions(draft: &mut Draft) -> bool {
    edit_tail(draft, |tail| {
        let first = [JAVA.find_last(tail), PHP.find_last(tail)].into_iter().flatten().max_by_key(|range| range.start);
        remove_field(tail, first);
        for parameter in [SID, ASP] {
            remove_field(tail, parameter.find_last(tail));
        }
        remove_field(tail, find_cold_fusion(tail));
    })
}

/// Removes the last `?` if nothing follows it; otherwise one `&` directly after it; otherwise one at the end.
pub(super) fn fix_query(draft: &mut Draft) -> bool {
    edit_tail(draft, |tail| {
        let Some(mark) = memchr::memrchr(b'?', tail) else { return };
        match &tail[mark + 1..] {
            [] | [b'&'] => tail.truncate(mark),
            [b'&', ..] => drop(tail.remove(mark + 1)),
            [.., b'&'] => drop(tail.pop()),
            _ => {}
        }
    })
}

/// Returns path, query and fragment as one text, in the memory of `draft.spare`.
fn take_tail(draft: &mut Draft) -> Vec<u8> {
    let mut tail = std::mem::take(&mut draft.spare);
    tail.clear();
    draft.write_tail(&mut tail);
    tail
}

/// Changes path, query and fragment as one text and returns whether its length changed.
fn edit_tail(draft: &mut Draft, edit: impl FnOnce(&mut Vec<u8>)) -> bool {
    let mut tail = take_tail(draft);
    let before = tail.len();
    edit(&mut tail);
    let is_changed = tail.len() != before;
    if is_changed {
        draft.path.clear();
        draft.read_tail(&tail);
    }
    draft.spare = tail;
    is_changed
}
