//! The bound that sizes of text have in common.

/// Texts grow to three times their length when every byte is percent-encoded, and a column of one row group must
/// stay below 2 GiB.
const MOST_TEXT: usize = 512 << 20;

/// `size` bytes, the value of `flag`, do not bring a column past its bound.
pub(super) fn at_most_text(flag: &str, size: usize) -> Result<(), String> {
    match size {
        0..=MOST_TEXT => Ok(()),
        _ => Err(format!("{flag} is at most 512M, so that texts stay below 2 GiB a column")),
    }
}
