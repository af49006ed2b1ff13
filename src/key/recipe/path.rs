//! Rules about paths, queries and fragments. In: a [`Draft`]. Out: the draft, and whether the rule fired.

use super::draft::Draft;
use super::escapes::reduce;
use super::host::lower;
use super::session;

/// Takes the fragment away.
pub fn drop_fragment(draft: &mut Draft) -> bool {
    draft.fragment.remove()
}

/// Decodes all escapes of the path, also those that decoding makes, and encodes the least.
pub fn reduce_path(draft: &mut Draft) -> bool {
    reduce(&mut draft.path, &mut draft.spare)
}

/// The same in the query.
pub fn reduce_query(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    draft.query.get_mut().is_some_and(|query| reduce(query, spare))
}

/// Takes out `.`, `..` with the segment before it, and empty segments but a last one; a `..` with nothing before it
/// stays, and falls to the next one. A URL without a host keeps its path.
pub fn remove_segments(draft: &mut Draft) -> bool {
    if draft.host.get().is_none() {
        return false;
    }
    let path = &mut draft.path;
    let has_dots = path.windows(2).any(|pair| pair[0] == b'/' && matches!(pair[1], b'/' | b'.'));
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
    let changed = out != path;
    std::mem::swap(out, path);
    changed
}

/// Lower-cases the path, escapes included.
pub fn lower_path(draft: &mut Draft) -> bool {
    lower(&mut draft.path)
}

/// Lower-cases the query, escapes included.
pub fn lower_query(draft: &mut Draft) -> bool {
    draft.query.get_mut().is_some_and(|query| lower(query))
}

/// Takes ASP.NET's session segments out of the path.
pub fn drop_path_session(draft: &mut Draft) -> bool {
    session::strip_path(&mut draft.path)
}

/// Takes the session parameters of Java, PHP, ASP and ColdFusion out of the query.
pub fn drop_query_session(draft: &mut Draft) -> bool {
    draft.query.get_mut().is_some_and(session::strip_query)
}

/// Takes a final `/` from a path that has more.
pub fn drop_final_slash(draft: &mut Draft) -> bool {
    let fires = draft.path.len() > 1 && draft.path.ends_with(b"/");
    if fires {
        draft.path.pop();
    }
    fires
}

/// Sorts the fields of the query between `&`, by name, then by value; one without `=` stands before one with.
pub fn sort_query(draft: &mut Draft) -> bool {
    let (spare, fields) = (&mut draft.spare, &mut draft.fields);
    let Some(query) = draft.query.get_mut() else { return false };
    if memchr::memchr(b'&', query).is_none() {
        return false;
    }
    fields.clear();
    let mut at = 0;
    for field in query.split(|&byte| byte == b'&') {
        fields.push((at as u32, (at + field.len()) as u32));
        at += field.len() + 1;
    }
    let field = |&(at, end): &(u32, u32)| &query[at as usize..end as usize];
    let key = |span: &(u32, u32)| {
        let field = field(span);
        let name_len = memchr::memchr(b'=', field);
        (&field[..name_len.unwrap_or(field.len())], name_len.map(|len| &field[len + 1..]))
    };
    if fields.is_sorted_by_key(key) {
        return false;
    }
    fields.sort_by(|a, b| key(a).cmp(&key(b)));
    spare.clear();
    for (i, span) in fields.iter().enumerate() {
        if i > 0 {
            spare.push(b'&');
        }
        spare.extend_from_slice(field(span));
    }
    std::mem::swap(spare, query);
    true
}

/// Takes a query without a byte away.
pub fn drop_empty_query(draft: &mut Draft) -> bool {
    draft.query.get().is_some_and(<[u8]>::is_empty) && draft.query.remove()
}
