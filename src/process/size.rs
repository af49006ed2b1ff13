//! Sizes in bytes, as users write them: [`parse_size`].

/// The units of sizes, in upper case, and their bytes: `K`, `KiB` and so on are powers of 1024, `KB` and so on are powers of
/// 1000.
const SIZE_UNITS: [(&str, u128); 14] = [
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("KIB", 1 << 10),
    ("KB", 1_000),
    ("M", 1 << 20),
    ("MIB", 1 << 20),
    ("MB", 1_000_000),
    ("G", 1 << 30),
    ("GIB", 1 << 30),
    ("GB", 1_000_000_000),
    ("T", 1 << 40),
    ("TIB", 1 << 40),
    ("TB", 1_000_000_000_000),
];

/// Maximum number of digits after the decimal point of a size.
const MAX_FRACTION_LEN: usize = 9;

/// Parses a size in bytes, such as `65536`, `64K`, `1.5G`, `2GiB` or `2GB`. The result is rounded down.
///
/// # Errors
/// Zero, signs and unknown units; a fraction without a unit.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let malformed = || {
        "expected a number of bytes such as 65536, 64K, 1.5G, 2GiB (powers of 1024) or 2GB (powers of 1000)".to_string()
    };
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, name) = text.split_at(unit_at);
    let unit = SIZE_UNITS.iter().find(|(unit, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(malformed)?.1;
    let (whole, fraction) = match number.split_once('.') {
        Some((_, fraction)) if unit == 1 || fraction.is_empty() || fraction.len() > MAX_FRACTION_LEN => {
            return Err(malformed());
        }
        Some(parts) => parts,
        None => (number, ""),
    };
    if whole.is_empty() || fraction.contains('.') {
        return Err(malformed());
    }
    // The digits without the point, and what they must be divided by.
    let digits = format!("{whole}{fraction}").parse::<u128>().ok();
    let size = digits.and_then(|digits| digits.checked_mul(unit)).map(|size| size / 10u128.pow(fraction.len() as u32));
    match size.map(usize::try_from) {
        Some(Ok(0)) => Err("expected at least 1 byte".to_string()),
        Some(Ok(size)) => Ok(size),
        _ => Err("the size does not fit into 64 bits".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_binary_and_decimal_units() {
        let cases = [
            ("1", 1),
            ("65536", 65536),
            ("7B", 7),
            ("64K", 65536),
            ("64k", 65536),
            ("16M", 16 << 20),
            ("2g", 2 << 30),
            ("2GiB", 2 << 30),
            ("2GB", 2_000_000_000),
            ("1kb", 1000),
            ("1.5G", 3 << 29),
            ("0.0001K", 0),
            ("1.999KB", 1999),
            ("1.0006KB", 1000),
            ("2T", 2 << 40),
        ];
        for (text, size) in cases {
            assert_eq!(parse_size(text).unwrap_or(0), size, "{text}");
        }
        let malformed =
            ["", "K", "0", "0M", "-1", "+1", "1.5", "1.5B", ".5K", "1.K", "1.2.3K", "1Ki", "1 M", "1KM", "é"];
        let too_large = ["99999999999999999999", "99999999999G", "99999999999999999999999999999999999999999T"];
        for text in malformed.into_iter().chain(too_large) {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
