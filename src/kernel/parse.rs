//! Values in text that may not be UTF-8.

use std::str::FromStr;

/// Parses a value, such as a decimal number or an IP address, as its type does. `None` if `text` is none, or if it does not
/// fit into the type.
pub(crate) fn parse_bytes<T: FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
