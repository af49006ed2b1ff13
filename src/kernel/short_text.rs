//! Texts of up to 128 bytes, in which the positions of bytes are masks of 128 bits: bit `i` belongs to byte `i`.
//!
//! With masks, the parts of a short text are found without a branch per byte.

use std::ops::Range;

use super::copy::{append, append_range};

/// The length of the longest short text.
const MAX_LEN: usize = 128;

/// A copy of a text of up to 128 bytes.
#[derive(Debug)]
pub(crate) struct ShortText {
    /// The text, and zeros, so that ranges are copied in pieces of a fixed length.
    bytes: [u8; 2 * MAX_LEN],
    len: usize,
}

impl ShortText {
    /// Copies `text`. Returns `None` if it is too long.
    #[inline(always)]
    pub(crate) fn new(text: &[u8]) -> Option<ShortText> {
        let mut bytes = [0; 2 * MAX_LEN];
        if text.len() > MAX_LEN {
            return None;
        }
        bytes[..text.len()].copy_from_slice(text);
        Some(ShortText { bytes, len: text.len() })
    }

    /// Returns the positions of the bytes for which `is_sought` is true. It is fast if `is_sought` has no branches.
    #[inline(always)]
    pub(crate) fn positions(&self, is_sought: impl Fn(u8) -> bool) -> u128 {
        let half = |bytes: &[u8]| {
            let blocks = bytes.as_chunks::<16>().0.iter().rev();
            blocks.fold(0, |mask: u64, block| mask << 16 | u64::from(positions_in_block(block, &is_sought)))
        };
        // All masks of a text take the same branch.
        let upper = if self.len > 64 { half(&self.bytes[64..128]) } else { 0 };
        let mask = u128::from(upper) << 64 | u128::from(half(&self.bytes[..64]));
        mask & low_bits(self.len)
    }

    /// Converts ASCII letters to lower case.
    #[inline(always)]
    pub(crate) fn make_lower_case(&mut self) {
        self.bytes[..MAX_LEN].make_ascii_lowercase();
    }

    /// Appends the bytes in `range` to `out`.
    #[inline(always)]
    pub(crate) fn append_to(&self, range: Range<usize>, out: &mut Vec<u8>) {
        append_range(out, &self.bytes, range.start, range.len());
    }

    /// Like [`ShortText::append_to`], fastest for up to 16 bytes.
    #[inline(always)]
    pub(crate) fn append_few_to(&self, range: Range<usize>, out: &mut Vec<u8>) {
        match self.bytes.get(range.start..).and_then(<[u8]>::first_chunk::<16>) {
            Some(bytes) if range.len() <= 16 => super::copy::append_some(out, *bytes, range.len()),
            _ => append(out, &self.bytes[range]),
        }
    }
}

/// Returns a mask of the lowest `count` bits.
#[inline(always)]
pub(crate) fn low_bits(count: usize) -> u128 {
    u128::MAX.checked_shr(MAX_LEN as u32 - count.min(MAX_LEN) as u32).unwrap_or(0)
}

/// Returns a mask of the bytes for which `is_sought` is true.
#[inline(always)]
fn positions_in_block(block: &[u8; 16], is_sought: impl Fn(u8) -> bool) -> u16 {
    let mut found = [0; 16];
    for (found, byte) in found.iter_mut().zip(block) {
        *found = if is_sought(*byte) { 0xFF } else { 0 };
    }
    super::positions_of(0xFF, &found) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_and_copies_equal_scalar_ones_at_all_lengths() {
        let pool: Vec<u8> = (0..=u8::MAX).map(|byte| byte.wrapping_mul(167)).collect();
        for len in 0..=MAX_LEN {
            for at in [0, 1, 100] {
                let text = &pool[at..at + len];
                let mut short = ShortText::new(text).expect("the text is short");
                let expected = text.iter().rev().fold(0, |mask, byte| mask << 1 | u128::from(*byte < 100));
                assert_eq!(short.positions(|byte| byte < 100), expected, "{len}");
                short.make_lower_case();
                let lower = text.to_ascii_lowercase();
                for range in [0..len, len / 2..len, len / 3..len - len / 3, len..len] {
                    let mut out = b"x".to_vec();
                    short.append_to(range.clone(), &mut out);
                    short.append_few_to(range.clone(), &mut out);
                    assert_eq!(out, [b"x", &lower[range.clone()], &lower[range]].concat());
                }
            }
        }
        assert!(ShortText::new(&pool[..MAX_LEN + 1]).is_none());
        assert_eq!((low_bits(0), low_bits(3), low_bits(128)), (0, 7, u128::MAX));
    }
}
