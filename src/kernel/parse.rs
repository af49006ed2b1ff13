//! Values in text that may not be UTF-8.

use std::str::FromStr;

/// Parses a value, such as a decimal number or an IP address, by the rules of its type. `None` if `text` is not such a value,
/// or does not fit into the type.
pub(crate) fn parse_bytes<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
