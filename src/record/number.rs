//! Numbers in the text of records.

use std::str::FromStr;

/// Parses a decimal number. `None` if `text` is none, or if it does not fit into the type.
pub(super) fn parse<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
