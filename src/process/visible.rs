//! Text for people: [`visible`] replaces what would control the terminal or mislead its reader, [`path_name`] is the name of
//! a path that may not be UTF-8, and [`plain_error`] describes an error of the system.

use std::borrow::Cow;
use std::io;
use std::path::Path;

/// The description of a system error, without its number and the full stop of Windows: `permission denied`. Other errors stay as
/// they are.
pub(crate) fn plain_error(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((reason, _)) => reason.trim_end_matches('.').to_ascii_lowercase(),
        None => text,
    }
}

/// Returns the name of a path: the path itself if it is UTF-8. Otherwise, and if the path begins with `bytes:`, the name is
/// `bytes:` and the path with `%` and all bytes that are not UTF-8 percent-encoded. Different paths have different names.
pub(crate) fn path_name(path: &Path) -> String {
    const MARK: &str = "bytes:";
    let encoded = || {
        let mut name = MARK.to_string();
        for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
            name.push_str(&chunk.valid().replace('%', "%25"));
            name.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
        }
        name
    };
    path.to_str().filter(|name| !name.starts_with(MARK)).map_or_else(encoded, str::to_string)
}

/// Returns whether a character controls a terminal, changes the order of the text around it, or is invisible: controls,
/// bidirectional formatting, line separators, zero-width spaces and tags.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// Replaces the characters that a terminal or a reader would not show by their numbers, such as `\u{1b}`. Names, URLs and
/// messages of the system may contain anything.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// As [`visible`], for text of several lines or columns: line ends and tabs stay.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| !matches!(c, '\n' | '\t') && is_hidden(c))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_escaped(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_neither_number_nor_full_stop() {
        for (text, plain) in [
            ("Permission denied (os error 13)", "permission denied"),
            ("The system cannot find the file specified. (os error 2)", "the system cannot find the file specified"),
            ("Another error.", "Another error."),
        ] {
            assert_eq!(plain_error(&io::Error::other(text)), plain);
        }
    }

    #[test]
    fn hidden_characters_are_shown_by_their_numbers() {
        let cases = [
            ("/straße/日本?x=é~ \u{200D}", "/straße/日本?x=é~ \u{200D}"),
            ("a\u{1b}[31mb\u{7}\n", "a\\u{1b}[31mb\\u{7}\\u{a}"),
            ("\u{9b}2J\u{202e}gpj\u{2066}\u{feff}", "\\u{9b}2J\\u{202e}gpj\\u{2066}\\u{feff}"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
        assert_eq!(visible_lines("a\tc\nb\u{1b}\n"), "a\tc\nb\\u{1b}\n");
        assert!(matches!(visible_lines("a\nb\n"), Cow::Borrowed(_)));
    }

    #[test]
    #[cfg(unix)]
    fn different_paths_have_different_names() {
        use std::os::unix::ffi::OsStrExt;
        let name = |bytes: &[u8]| path_name(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(name("dir/ü%20.txt".as_bytes()), "dir/ü%20.txt");
        assert_eq!(name(b"a\xFF%\xC3\xBC"), "bytes:a%FF%25ü");
        assert_eq!(name(b"bytes:a%FF"), "bytes:bytes:a%25FF");
        assert_ne!(name(b"a\xFF"), name(b"a\xFE"));
    }

    #[test]
    #[cfg(unix)]
    fn system_errors_have_no_numbers() {
        assert_eq!(plain_error(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(plain_error(&io::Error::other("Range not satisfiable")), "Range not satisfiable");
    }
}
