//! The definitions of the kernels, one byte at a time. Tests compare every faster variant with them.
//!
//! The definition of the classification kernels is `mask_block` in the tests of `kernel`.

/// Hexadecimal digits of percent-encodings, upper case as RFC 3986 section 2.1 recommends.
pub(super) const HEX: [u8; 16] = *b"0123456789ABCDEF";

pub(super) fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(&escape(byte));
    }
}

/// Returns `byte` as `%` and two upper-case hexadecimal digits.
#[inline(always)]
pub(crate) fn escape(byte: u8) -> [u8; 3] {
    [b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]
}

#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    bytes.iter().rev().fold(0, |positions, other| positions << 1 | u32::from(*other == byte))
}

/// Returns the columns of a matrix of eight rows of eight bytes, the lowest byte of a word first.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn transposed(rows: [u64; 8]) -> [u64; 8] {
    std::array::from_fn(|column| u64::from_le_bytes(rows.map(|row| row.to_le_bytes()[column])))
}
