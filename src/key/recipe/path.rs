//! Rules for path, query and fragment that several recipes share.

use super::draft::{Draft, QueryField, replace_text};
use crate::kernel::any_pair;
use crate::key::write_joined;

/// Removes `.`, `..` with the segment before it, and empty segments except a last one. A `..` without a segment before it
/// stays, until another `..` removes it. A URL without a host keeps its path.
pub(super) fn remove_segments(draft: &mut Draft) -> bool {
    if draft.host.get().is_none() {
        return false;
    }
    let path = &mut draft.path;
    let has_dots = any_pair(path, |byte, next| (byte == b'/') & ((next == b'/') | (next == b'.')));
    if !has_dots {
        if path.is_empty() {
            path.push(b'/');
            return true;
        }
        return false;
    }
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if kept.pop().is_some() => {}
            _ => kept.push(segment),
        }
    }
    let out = &mut draft.spare;
    out.clear();
    out.push(b'/');
    if let Some((last, heads)) = kept.split_last() {
        for segment in heads.iter().filter(|segment| !segment.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    replace_text(path, out)
}

/// Removes dot segments of a path that begins with `/`, as in RFC 3986 section 5.2.4.
pub(super) fn resolve_dots(draft: &mut Draft) -> bool {
    remove_dots_before(draft.path.len(), draft)
}

/// [`resolve_dots`] in the first `len` bytes of the path.
pub(super) fn remove_dots_before(len: usize, draft: &mut Draft) -> bool {
    let (path, spare) = (&mut draft.path, &mut draft.spare);
    if !path.starts_with(b"/") || memchr::memmem::find(&path[..len], b"/.").is_none() {
        return false;
    }
    spare.clear();
    spare.extend_from_slice(&path[..len]);
    crate::iri::remove_dot_segments(spare);
    spare.extend_from_slice(&path[len..]);
    replace_text(path, spare)
}

/// Removes a final `/` unless it is the whole path.
pub(super) fn drop_final_slash(draft: &mut Draft) -> bool {
    let is_removed = draft.path.len() > 1 && draft.path.ends_with(b"/");
    if is_removed {
        draft.path.pop();
    }
    is_removed
}

/// Sorts the fields of the query by name, then by value; a field without `=` comes before one with it.
pub(super) fn sort_query(draft: &mut Draft) -> bool {
    let (spare, fields) = (&mut draft.spare, &mut draft.fields);
    let Some(query) = draft.query.get_mut() else { return false };
    if memchr::memchr(b'&', query).is_none() {
        return false;
    }
    fields.clear();
    fields.extend(QueryField::split(query));
    let key = |field: &QueryField| (field.name(query), field.value(query));
    if fields.is_sorted_by_key(key) {
        return false;
    }
    fields.sort_by(|a, b| key(a).cmp(&key(b)));
    spare.clear();
    write_joined(fields.iter().map(|field| field.text(query)), b'&', spare);
    replace_text(query, spare)
}
