//! Text for the terminal: standard output, messages on stderr, numbers as people read them.

use std::io::{ErrorKind, Write};

use crate::process::{check_stdout, exit, is_hidden, plain_error, wait_if_terminating};
pub(crate) use crate::process::{visible, visible_lines};

/// Prints one message of one line on stderr. A closed stderr is ignored.
pub(crate) fn print_error(message: &str) {
    wait_if_terminating();
    let _ = writeln!(std::io::stderr(), "irikey: {}", visible(message));
}

pub(crate) fn print_to_stderr(text: &str) {
    wait_if_terminating();
    let _ = std::io::stderr().write_all(visible_lines(text).as_bytes());
}

/// Prints lines for people on standard output, see [`print()`].
pub(crate) fn print_lines(text: &str) -> u8 {
    print(&visible_lines(text))
}

/// Prints JSON on standard output, see [`print()`]. Characters that a terminal would not show are escaped in its strings.
pub(crate) fn print_json(text: &str) -> u8 {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '\n' || !is_hidden(c) {
            escaped.push(c);
        } else {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| escaped.push_str(&format!("\\u{unit:04x}")));
        }
    }
    print(&escaped)
}

/// Prints text on standard output as it is and returns the exit code. A closed pipe is a success: its reader has read enough.
pub(crate) fn print(text: &str) -> u8 {
    let mut stdout = std::io::stdout().lock();
    let printed = check_stdout().and_then(|()| stdout.write_all(text.as_bytes()));
    status_of_print(printed.and_then(|()| stdout.flush()))
}

/// The exit code after something was written to standard output; prints the error. A closed pipe is a success.
pub(crate) fn status_of_print(written: std::io::Result<()>) -> u8 {
    match written {
        Ok(()) => exit::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit::SUCCESS,
        Err(error) => {
            print_error(&format!("standard output: cannot write: {}", plain_error(&error)));
            exit::OUTPUT
        }
    }
}

/// `1234567` as `1,234,567`.
pub(crate) fn thousands(number: u64) -> String {
    indicatif::HumanCount(number).to_string()
}

/// A number of things that have a plural in s.
pub(crate) fn count_of(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
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
    fn thousands_are_separated() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (number, text) in cases {
            assert_eq!(thousands(number), text);
        }
    }
}
