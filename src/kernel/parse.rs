//! Values and prefixes of text that may not be UTF-8.

use std::str::FromStr;

/// Parses a value, such as a decimal number or an IP address, by the rules of its type. `None` if `text` is not such a value,
/// or does not fit into the type.
pub(crate) fn parse_bytes<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses a number of digits only; `FromStr` and `from_str_radix` also accept a sign. `None` if `digits` is empty or has other
/// bytes, or the number does not fit.
#[inline]
pub(crate) fn parse_digits(digits: &[u8], radix: u32) -> Option<u64> {
    let is_number = digits.iter().all(|byte| char::from(*byte).is_digit(radix));
    u64::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_number)?, radix).ok()
}

/// Returns the text after `prefix`, if `text` begins with it. ASCII letters match in either case.
pub(crate) fn strip_prefix_ignoring_case<'a>(text: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}
