//! Rules that Heritrix 3 applies unless an operator chooses others (`RulesCanonicalizationPolicy`). In: a [`Draft`]. Out:
//! the draft, and whether the rule fired. They follow what Heritrix's own logs hold: URLs that it has put in order already.
//! Its rules are regular expressions over the whole URL; these here see its parts, which is the same but for a `@` in a
//! query of a URL without a path, and session identifiers in a host.

use super::draft::Draft;
use super::host::{drop_www_once, lower};
use super::session::{Valued, cold_fusion_len, find_last};

/// Lower-cases everything.
pub fn lower_all(draft: &mut Draft) -> bool {
    let parts = [&mut draft.userinfo, &mut draft.host, &mut draft.port, &mut draft.query, &mut draft.fragment];
    let mut fired = lower(&mut draft.scheme) | lower_text(&mut draft.path);
    for part in parts {
        fired |= part.get_mut().is_some_and(lower_text);
    }
    fired
}

/// Beyond ASCII too, as Java does.
fn lower_text(text: &mut Vec<u8>) -> bool {
    let lowered = match std::str::from_utf8(text) {
        Ok(text) if !text.is_ascii() => text.to_lowercase().into_bytes(),
        _ => return lower(text),
    };
    let changed = lowered != *text;
    *text = lowered;
    changed
}

/// Takes user name and password from http, https, ftp and ftps URLs.
pub fn drop_web_userinfo(draft: &mut Draft) -> bool {
    let scheme = draft.scheme.to_ascii_lowercase();
    // To Heritrix the last `@` ends them.
    let host_at = draft.host.get().and_then(|host| memchr::memrchr(b'@', host)).map(|at| at + 1);
    let has_name = host_at.is_some() || draft.userinfo.get().is_some_and(|userinfo| !userinfo.is_empty());
    let fires = has_name && matches!(&scheme[..], b"http" | b"https" | b"ftp" | b"ftps");
    if let (true, Some(at), Some(host)) = (fires, host_at, draft.host.get_mut()) {
        host.drain(..at);
    }
    fires && draft.userinfo.remove()
}

/// Takes one `www.`, `www2.` or the like from http and https URLs that have something behind a slash: home pages keep it.
pub fn drop_www_of_pages(draft: &mut Draft) -> bool {
    let is_web = [&b"http"[..], b"https"].iter().any(|scheme| draft.scheme.eq_ignore_ascii_case(scheme));
    if !is_web || draft.userinfo.get().is_some() {
        return false;
    }
    draft.spare.clear();
    let mut tail = std::mem::take(&mut draft.spare);
    draft.write_rest(&mut tail);
    let is_page = memchr::memchr(b'/', &tail).is_some_and(|slash| slash + 1 < tail.len());
    draft.spare = tail;
    is_page && drop_www_once(draft)
}

/// Takes one session identifier of Java or PHP, one `sid`, one of ASP and one of ColdFusion out of path, query or
/// fragment.
pub fn drop_sessions(draft: &mut Draft) -> bool {
    const JAVA: Valued = Valued { name: b"jsessionid", suffix_len: 0, value_len: 32, digits: true };
    const PHP: Valued = Valued { name: b"phpsessid", suffix_len: 0, value_len: 32, digits: true };
    const SID: Valued = Valued { name: b"sid", suffix_len: 0, value_len: 32, digits: true };
    const ASP: Valued = Valued { name: b"aspsessionid", suffix_len: 8, value_len: 24, digits: false };
    edit_tail(draft, |tail| {
        let last = |tail: &[u8], valued: &Valued| find_last(tail, valued.name, |rest| valued.len(rest));
        let first = [last(tail, &JAVA), last(tail, &PHP)].into_iter().flatten().max_by_key(|range| range.start);
        delete(tail, first);
        for valued in [&SID, &ASP] {
            let range = last(tail, valued);
            delete(tail, range);
        }
        let range = find_last(tail, b"cfid=", cold_fusion_len);
        delete(tail, range);
    })
}

/// Deletes a range, and the `&` behind it.
fn delete(text: &mut Vec<u8>, range: Option<std::ops::Range<usize>>) {
    if let Some(range) = range {
        let end = range.end + usize::from(text.get(range.end) == Some(&b'&'));
        text.drain(range.start..end);
    }
}

/// Takes away what is idle behind the last `?`: the mark itself if nothing follows it, else one `&` at the beginning, or
/// else one at the end.
pub fn fix_query(draft: &mut Draft) -> bool {
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

/// Changes path, query and fragment as one text.
fn edit_tail(draft: &mut Draft, edit: impl FnOnce(&mut Vec<u8>)) -> bool {
    let mut tail = std::mem::take(&mut draft.spare);
    tail.clear();
    draft.write_rest(&mut tail);
    let before = tail.len();
    edit(&mut tail);
    let changed = tail.len() != before;
    if changed {
        draft.path.clear();
        draft.read_tail(&tail);
    }
    draft.spare = tail;
    changed
}
