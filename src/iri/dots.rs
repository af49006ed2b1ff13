//! Dot segments, RFC 3986 section 5.2.4, in place: a path in, the length of the path without them out.

/// Removes the dot segments of `path` in place and returns the length that is left.
///
/// ```
/// let mut path = *b"/a/b/c/./../../g";
/// let len = irikey::iri::remove_dot_segments(&mut path);
/// assert_eq!(&path[..len], b"/a/g");
/// ```
pub fn remove_dot_segments(path: &mut [u8]) -> usize {
    let mut from = leading_dots_len(path);
    let mut to = 0;
    if path.get(from).is_some_and(|&byte| byte != b'/') {
        // Step E for a first segment that no slash precedes.
        let end = segment_end(path, from);
        path.copy_within(from..end, 0);
        (to, from) = (end - from, end);
    }
    while from < path.len() {
        let end = segment_end(path, from + 1);
        let is_last = end == path.len();
        match &path[from + 1..end] {
            b"." => {}
            b".." => to = memchr::memrchr(b'/', &path[..to]).unwrap_or(0),
            _ => {
                if to < from {
                    path.copy_within(from..end, to);
                }
                (to, from) = (to + end - from, end);
                continue;
            }
        }
        if is_last {
            path[to] = b'/';
            to += 1;
        }
        from = end;
    }
    to
}

/// Steps A and D: what a path without a leading slash loses at its start.
fn leading_dots_len(path: &[u8]) -> usize {
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix(b"../").or_else(|| rest.strip_prefix(b"./")) {
        rest = shorter;
    }
    if matches!(rest, b"." | b"..") { path.len() } else { path.len() - rest.len() }
}

fn segment_end(path: &[u8], from: usize) -> usize {
    memchr::memchr(b'/', &path[from..]).map_or(path.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::remove_dot_segments;

    #[test]
    fn paths_with_and_without_a_leading_slash() {
        let cases = [
            ("", ""),
            ("/", "/"),
            (".", ""),
            ("..", ""),
            ("./", ""),
            ("/.", "/"),
            ("/..", "/"),
            ("/a/..", "/"),
            ("a/../b", "/b"),
            ("../../a", "a"),
            ("./../a", "a"),
            ("mid/content=5/../6", "mid/6"),
            ("/a//../b", "/a/b"),
            ("/...", "/..."),
            ("/a/.b", "/a/.b"),
            ("/a/b/..", "/a/"),
            ("/../../..", "/"),
            ("/a/./", "/a/"),
            (".//a", "/a"),
            ("/a/..//b", "//b"),
            ("a/..", "/"),
        ];
        for (path, expect) in cases {
            let mut bytes = path.as_bytes().to_vec();
            let len = remove_dot_segments(&mut bytes);
            assert_eq!(&bytes[..len], expect.as_bytes(), "{path}");
        }
    }
}
