//! Text for the terminal: standard output, messages on stderr, numbers as people read them.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};

use crate::process::exit;

/// Returns whether a character controls a terminal, changes the order of the text around it, or is invisible: controls,
/// bidirectional formatting, line separators, zero-width spaces and tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(c, '\u{2060}'..='\u{206F}' | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E007F}')
}

/// Replaces the characters that a terminal or a reader would not show by their numbers, such as `\u{1b}`. Names, URLs and
/// messages of the system may contain anything.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// [`visible`], line by line.
pub(crate) fn visible_lines(text: &str) -> Cow<'_, str> {
    match text.contains(|c| c != '\n' && is_hidden(c)) {
        true => Cow::Owned(text.split('\n').map(visible).collect::<Vec<_>>().join("\n")),
        false => Cow::Borrowed(text),
    }
}

/// Prints one message of one line on stderr. A closed stderr is ignored.
pub(crate) fn print_error(message: &str) {
    let _ = writeln!(std::io::stderr(), "irikey: {}", visible(message));
}

/// Prints lines on stderr.
pub(crate) fn print_to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(visible_lines(text).as_bytes());
}

/// Prints text on standard output and returns the exit status. A closed pipe is a success: its reader has read enough.
pub(crate) fn print(text: &str) -> u8 {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => exit::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit::SUCCESS,
        Err(error) => {
            print_error(&format!("standard output: cannot write: {error}"));
            exit::OUTPUT
        }
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number of bytes with a decimal unit.
pub(crate) fn format_bytes(count: f64) -> String {
    match count {
        count if count < 1e3 => format!("{count:.0} B"),
        count if count < 1e6 => format!("{:.1} kB", count / 1e3),
        count if count < 1e9 => format!("{:.1} MB", count / 1e6),
        count => format!("{:.2} GB", count / 1e9),
    }
}

/// One line per count, labels and numbers aligned.
pub(crate) fn format_counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)> + Clone) -> String {
    let numbers = || counts.clone().into_iter().map(|(label, count)| (label, thousands(count)));
    let label_width = numbers().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let number_width = numbers().map(|(_, number)| number.len()).max().unwrap_or(0);
    numbers().map(|(label, number)| format!("{label:label_width$}  {number:>number_width$}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(visible_lines("a\nb\u{1b}\n"), "a\nb\\u{1b}\n");
        assert!(matches!(visible_lines("a\nb\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn thousands_are_separated() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (number, text) in cases {
            assert_eq!(thousands(number), text);
        }
    }
}
