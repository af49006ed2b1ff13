//! Parsers of flag values: names that stand for values of library types, and sizes in bytes.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};

/// Parses one of a few names, each of which stands for a value of a library type. Each entry is a name, its value and
/// its help text.
#[derive(Clone, Copy)]
pub(crate) struct Choices<T: 'static>(pub(crate) &'static [(&'static str, T, &'static str)]);

impl<T> Choices<T> {
    fn possible(&self) -> impl Iterator<Item = PossibleValue> + use<'_, T> {
        self.0.iter().map(|(name, _, help)| PossibleValue::new(*name).help(*help))
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Choices<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let name = PossibleValuesParser::new(self.possible()).parse_ref(command, arg, value)?;
        let found = self.0.iter().find(|(choice, ..)| *choice == name);
        found.map(|(_, value, _)| value.clone()).ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidValue))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.possible()))
    }
}

/// Parses a size in bytes: `65536`, `64K`, `16M`, `1G`, with powers of 1024. Zero, fractions and signs are errors.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("expected a whole number of bytes, optionally followed by K, M or G (powers of 1024)".to_string());
    }
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    match size {
        Some(0) => Err("expected at least 1 byte".to_string()),
        Some(size) => Ok(size),
        None => Err("the size does not fit into 64 bits".to_string()),
    }
}

/// Parses a size of at most `LIMIT` bytes.
pub(crate) fn parse_size_up_to<const LIMIT: usize>(text: &str) -> Result<usize, String> {
    match parse_size(text)? {
        size if size <= LIMIT => Ok(size),
        _ => Err(format!("at most {}M is supported", LIMIT >> 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_numbers_of_bytes() {
        let cases = [("1", 1), ("65536", 65536), ("64K", 65536), ("64k", 65536), ("16M", 16 << 20), ("2g", 2 << 30)];
        for (text, size) in cases {
            assert_eq!(parse_size(text), Ok(size));
        }
        for text in ["", "K", "0", "0M", "-1", "+1", "1.5M", "1KB", "1 M", "99999999999999999999", "99999999999G", "é"]
        {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!(parse_size_up_to::<{ 1 << 20 }>("1024K"), Ok(1 << 20));
        assert!(parse_size_up_to::<{ 1 << 20 }>("1025K").is_err_and(|message| message.contains("1M")));
    }
}
