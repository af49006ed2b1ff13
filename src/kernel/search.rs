//! Searches of short texts for bytes that pass a test. A search that ends at the first match tests one byte at a time, such as
//! [`find_byte_from`]; the other searches test all bytes, and compilers vectorize them if the test has no branches (`|` instead
//! of `||`).

use super::positions_of;
use std::ops::Range;

/// Bytes that are tested at once.
const BLOCK: usize = 16;

/// Returns whether `is_sought` is true for a byte of `text`.
#[inline(always)]
pub(crate) fn any_byte(text: &[u8], is_sought: impl Fn(u8) -> bool) -> bool {
    let Some(last) = text.last_chunk() else { return mask_of(text, is_sought) != 0 };
    let mut found = mask_of_16(last, &is_sought);
    for block in text.as_chunks().0 {
        found |= mask_of_16(block, &is_sought);
    }
    found != 0
}

/// Returns whether `is_sought` is true for a byte of `text` and the byte after it.
#[inline(always)]
pub(crate) fn any_pair(text: &[u8], is_sought: impl Fn(u8, u8) -> bool) -> bool {
    let Some((firsts, seconds)) = text.split_last().map(|(_, firsts)| (firsts, &text[1..])) else { return false };
    let (Some(last), Some(after)) = (firsts.last_chunk(), seconds.last_chunk()) else {
        return firsts.iter().zip(seconds).any(|(byte, next)| is_sought(*byte, *next));
    };
    let mut found = mask_of_pairs(last, after, &is_sought);
    for (firsts, seconds) in firsts.as_chunks().0.iter().zip(seconds.as_chunks().0) {
        found |= mask_of_pairs(firsts, seconds, &is_sought);
    }
    found != 0
}

/// Returns the position of the first byte for which `is_sought` is true.
#[inline(always)]
pub(crate) fn find_byte(text: &[u8], is_sought: impl Fn(u8) -> bool) -> Option<usize> {
    positions(text, is_sought).next()
}

/// Returns the position of the first byte from `from` on for which `is_sought` is true; otherwise the length of `text`.
pub(crate) fn find_byte_from(text: &[u8], from: usize, is_sought: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|byte| is_sought(*byte)).map_or(text.len(), |offset| from + offset)
}

/// Returns the part of `range` without ASCII white space at its ends.
pub(crate) fn trimmed_ascii_range(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = text[range.clone()].trim_ascii_start();
    let start = range.end - part.len();
    start..start + part.trim_ascii_end().len()
}

/// Returns the number of bytes for which `is_sought` is true.
#[inline(always)]
pub(crate) fn count_bytes(text: &[u8], is_sought: impl Fn(u8) -> bool) -> usize {
    text.chunks(64).map(|block| mask_of(block, &is_sought).count_ones() as usize).sum()
}

/// Returns the positions of the bytes for which `is_sought` is true, in ascending order.
#[inline(always)]
pub(crate) fn positions<F: Fn(u8) -> bool>(text: &[u8], is_sought: F) -> Positions<'_, F> {
    Positions { text, at: 0, mask: 0, is_sought }
}

/// Does what [`positions`] does. `mask` is a mask of the positions, if the text has at most 64 bytes.
#[inline(always)]
pub(crate) fn positions_by_mask<F: Fn(u8) -> bool>(text: &[u8], mask: Option<u64>, is_sought: F) -> Positions<'_, F> {
    Positions { text, at: if mask.is_some() { 64 } else { 0 }, mask: mask.unwrap_or(0), is_sought }
}

/// The iterator that [`positions`] returns. It tests 64 bytes at a time.
#[derive(Clone, Debug)]
pub(crate) struct Positions<'a, F> {
    text: &'a [u8],
    /// Where the next block begins.
    at: usize,
    /// The remaining positions in the last block; bit 63 belongs to the byte before `at`.
    mask: u64,
    is_sought: F,
}

impl<F: Fn(u8) -> bool> Iterator for Positions<'_, F> {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
            let block = &rest[..rest.len().min(64)];
            self.mask = mask_of(block, &self.is_sought) << (64 - block.len());
            self.at += block.len();
        }
        let position = self.at + self.mask.trailing_zeros() as usize - 64;
        self.mask &= self.mask - 1;
        Some(position)
    }
}

/// Returns a mask of the bytes of a text of at most 64 bytes for which `is_sought` is true.
#[inline(always)]
pub(crate) fn mask_of(text: &[u8], is_sought: impl Fn(u8) -> bool) -> u64 {
    let len = text.len();
    // The last bytes are tested twice if the length is between those of two kinds of blocks.
    if let (Some(first), Some(last)) = (text.first_chunk::<32>(), text.last_chunk::<32>()) {
        mask_of_32(first, &is_sought) | mask_of_32(last, &is_sought) << (len - 32)
    } else if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        mask_of_16(first, &is_sought) | mask_of_16(last, &is_sought) << (len - 16)
    } else {
        mask_of_16(&padded(text), &is_sought) & ((1 << len) - 1)
    }
}

/// Marks the bytes of `word` that equal `byte`, each by its top bit; 0 if none does. Byte 0 is the least significant. Only the
/// lowest mark is exact: a mark above it may be false.
#[inline(always)]
pub(crate) fn marks_of_byte(word: u64, byte: u8) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let differences = word ^ (ONES * u64::from(byte));
    differences.wrapping_sub(ONES) & !differences & (ONES << 7)
}

/// Returns a mask of the first 64 bytes for which `is_sought` is true of the byte and the two bytes after it.
#[inline(always)]
pub(crate) fn mask_of_triples(text: &[u8; 66], is_sought: impl Fn(u8, u8, u8) -> bool) -> u64 {
    let mut found = [0; 64];
    for (at, found) in found.iter_mut().enumerate() {
        *found = if is_sought(text[at], text[at + 1], text[at + 2]) { 0xFF } else { 0 };
    }
    let masks = found.as_chunks::<BLOCK>().0.iter().map(|block| u64::from(positions_of(0xFF, block)));
    masks.rev().fold(0, |mask, of_block| mask << BLOCK | of_block)
}

/// Returns masks of the positions of each of `bytes`, which must not be 0. Returns `None` if the text has more than 64 bytes.
#[inline(always)]
pub(crate) fn masks_of<const N: usize>(text: &[u8], bytes: [u8; N]) -> Option<[u64; N]> {
    let len = text.len();
    if len > 64 {
        return None;
    }
    let of_16 = |block: &[u8; 16], byte| u64::from(positions_of(byte, block));
    Some(if let (Some(first), Some(last)) = (text.first_chunk::<32>(), text.last_chunk::<32>()) {
        let of_32 = |block: &[u8; 32], byte| match block.as_chunks::<16>().0 {
            [a, b] => of_16(a, byte) | of_16(b, byte) << 16,
            _ => 0,
        };
        bytes.map(
            #[inline(always)]
            |byte| of_32(first, byte) | of_32(last, byte) << (len - 32),
        )
    } else if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        bytes.map(
            #[inline(always)]
            |byte| of_16(first, byte) | of_16(last, byte) << (len - 16),
        )
    } else {
        let block = padded(text);
        bytes.map(
            #[inline(always)]
            |byte| of_16(&block, byte),
        )
    })
}

/// Returns a text of less than 16 bytes, with zeros after it.
#[inline(always)]
fn padded(text: &[u8]) -> [u8; BLOCK] {
    let len = text.len();
    let [lower, upper] = if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        [u64::from_le_bytes(*first), (u64::from_le_bytes(*last) >> 1) >> (127 - 8 * len)]
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        [u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4)), 0]
    } else if let [first, .., last] = text {
        [u64::from(*first) | u64::from(text[len / 2]) << (8 * (len / 2)) | u64::from(*last) << (8 * (len - 1)), 0]
    } else {
        [text.first().map_or(0, |byte| u64::from(*byte)), 0]
    };
    (u128::from(lower) | u128::from(upper) << 64).to_le_bytes()
}

#[inline(always)]
fn mask_of_32(block: &[u8; 32], is_sought: impl Fn(u8) -> bool) -> u64 {
    let [a, b] = block.as_chunks::<16>().0 else { return 0 };
    mask_of_16(a, &is_sought) | mask_of_16(b, &is_sought) << 16
}

#[inline(always)]
fn mask_of_16(block: &[u8; BLOCK], is_sought: impl Fn(u8) -> bool) -> u64 {
    let mut found = [0; BLOCK];
    for (found, byte) in found.iter_mut().zip(block) {
        *found = if is_sought(*byte) { 0xFF } else { 0 };
    }
    u64::from(positions_of(0xFF, &found))
}

#[inline(always)]
fn mask_of_pairs(firsts: &[u8; BLOCK], seconds: &[u8; BLOCK], is_sought: impl Fn(u8, u8) -> bool) -> u32 {
    let mut found = [0; BLOCK];
    for (found, (byte, next)) in found.iter_mut().zip(firsts.iter().zip(seconds)) {
        *found = if is_sought(*byte, *next) { 0xFF } else { 0 };
    }
    positions_of(0xFF, &found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_equal_scalar_ones_at_all_lengths() {
        let pool: Vec<u8> = (0..600u32).map(|i| (i * 167 % 251) as u8).collect();
        for len in 0..=200 {
            for text in [&pool[..len], &pool[100..100 + len], &[0; 200][..len], &[b'x'; 200][..len]] {
                let bytes = [7, b'x', text.get(len / 3).map_or(1, |byte| (*byte).max(1))];
                let mask = |byte: u8| (0..len).filter(|at| text[*at] == byte).fold(0, |mask, at| mask | 1 << at);
                assert_eq!(masks_of(text, bytes), (len <= 64).then(|| bytes.map(mask)), "{len}");
                for limit in [0, 1, 3, 120, 255] {
                    let expected: Vec<usize> = (0..len).filter(|at| text[*at] < limit).collect();
                    assert_eq!(positions(text, |byte| byte < limit).collect::<Vec<_>>(), expected, "{len} {limit}");
                    assert_eq!(find_byte(text, |byte| byte < limit), expected.first().copied());
                    assert_eq!(count_bytes(text, |byte| byte < limit), expected.len());
                    assert_eq!(any_byte(text, |byte| byte < limit), !expected.is_empty());
                    let mask = (len <= 64).then(|| expected.iter().fold(0, |mask, at| mask | 1 << at));
                    let by_mask = positions_by_mask(text, mask, |byte| byte < limit);
                    assert_eq!(by_mask.collect::<Vec<_>>(), expected, "{len} {limit}");
                }
            }
        }
    }

    #[test]
    fn searches_and_trims_begin_within_a_text() {
        let text = b" a  b ";
        assert_eq!([0, 1, 2, 5].map(|from| find_byte_from(text, from, |byte| byte != b' ')), [1, 1, 4, 6]);
        let trimmed = |range| trimmed_ascii_range(text, range);
        assert_eq!([trimmed(0..6), trimmed(2..4), trimmed(3..5), trimmed(6..6)], [1..5, 4..4, 4..5, 6..6]);
    }

    #[test]
    fn the_lowest_mark_of_a_byte_is_exact() {
        // Neighbors of the byte, which borrows of the subtraction mark after it.
        for byte in 0..=255 {
            let others = [byte ^ 1, byte ^ 0x80, byte ^ 0xFF, byte ^ 1, byte ^ 2, byte ^ 0x81, byte ^ 1, byte ^ 0x7F];
            assert_eq!(marks_of_byte(u64::from_le_bytes(others), byte), 0, "{byte}");
            for at in 0..8 {
                for last in at..8 {
                    let mut bytes = others;
                    (bytes[at], bytes[last]) = (byte, byte);
                    let marks = marks_of_byte(u64::from_le_bytes(bytes), byte);
                    assert_eq!(marks.trailing_zeros() as usize, 8 * at + 7, "{byte} at {at}");
                }
            }
        }
    }

    #[test]
    fn triples_are_found_at_all_positions() {
        for at in 0..=66 {
            let mut text = [b'a'; 66];
            text.iter_mut().skip(at).take(3).zip(*b"%2F").for_each(|(byte, of_escape)| *byte = of_escape);
            let mask = mask_of_triples(&text, |a, b, c| [a, b, c] == *b"%2F");
            assert_eq!(mask, if at < 64 { 1 << at } else { 0 }, "{at}");
        }
    }

    #[test]
    fn searches_equal_scalar_ones_at_all_lengths_and_positions() {
        for len in 0..=200 {
            let mut text = vec![b'a'; len];
            assert!(
                !any_byte(&text, |byte| byte == b'/') && !any_pair(&text, |byte, next| byte == b'/' || next == b'/')
            );
            for at in 0..len {
                text[at] = b'/';
                assert!(any_byte(&text, |byte| byte == b'/'), "{at} of {len}");
                assert_eq!(any_pair(&text, |byte, next| (byte, next) == (b'/', b'a')), at + 1 < len, "{at} of {len}");
                assert_eq!(any_pair(&text, |byte, next| (byte, next) == (b'a', b'/')), at > 0, "{at} of {len}");
                text[at] = b'a';
            }
        }
    }
}
