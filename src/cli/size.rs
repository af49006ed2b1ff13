//! Sizes in bytes as people write them: `65536`, `64K`, `16M`, `1G`. Powers of 1024. Refuses 0, fractions, signs.

/// The size that `text` names, in bytes.
///
/// # Errors
/// What a size looks like.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a size is a whole number of bytes, with K, M or G after it for powers of 1024".to_string());
    }
    let number: usize = digits.parse().map_err(|_| "this size is too large".to_string())?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("a size is at least 1".to_string()),
        Some(size) => Ok(size),
        None => Err("this size is too large".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

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
    }
}
