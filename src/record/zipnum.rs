//! The index of a zipnum cluster, which is recognized and refused: `key time`, file, offset, length and, in the newer
//! dialect, a number, between tabs. A line holds the first key of a block of captures. No URL can be restored from a key;
//! the captures are in the `.gz` files that the index names.

use super::time;

/// Whether `line` is one of an index: a key with a time, a file, and two or three numbers.
pub(super) fn is_zipnum_index(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let is_number = |field: &&[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    matches!(fields.len(), 4 | 5) && has_time(fields[0]) && fields[2..].iter().all(is_number)
}

/// Whether a key ends in a space and a time.
fn has_time(key: &[u8]) -> bool {
    memchr::memrchr(b' ', key).is_some_and(|space| time::from_digits(&key[space + 1..]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_are_recognized() {
        assert!(is_zipnum_index(b"com,a)/ 20140127171200\tzipnum\t0\t275\t1"));
        assert!(is_zipnum_index(b"com,b)/x 20140127171201\tpart-a-00000\t275\t9"));
        assert!(!is_zipnum_index(b"com,c)/\tx\t1\t2"));
        assert!(!is_zipnum_index(b"com,c)/ 20140127171201\tx\t1"));
    }
}
