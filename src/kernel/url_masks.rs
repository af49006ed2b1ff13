//! The positions of delimiters and classes of bytes in URLs of up to 128 bytes, as masks of 128 bits: bit `i` belongs to
//! byte `i`. With masks, the parts of a short URL are found without a branch per byte.

use super::byte_set::ByteSet;
#[cfg(target_arch = "x86_64")]
use super::byte_set::NibbleTables;
use super::cpu::SimdLevel;

/// The length of the longest URL that has masks.
pub(crate) const MAX_MASKED_LEN: usize = 128;

/// A text at the beginning of a buffer. Kernels may read the bytes behind the text, but no result depends on them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BufferedText<'a> {
    buffer: &'a [u8],
    len: usize,
}

impl<'a> BufferedText<'a> {
    /// An empty text.
    pub(crate) const EMPTY: BufferedText<'static> = BufferedText { buffer: b"", len: 0 };

    /// Returns the text at `at..at + len` of `buffer`.
    ///
    /// # Panics
    /// If the text is not within `buffer`.
    #[inline(always)]
    pub(crate) fn within(buffer: &'a [u8], at: usize, len: usize) -> BufferedText<'a> {
        let buffer = &buffer[at..];
        assert!(len <= buffer.len());
        BufferedText { buffer, len }
    }

    /// Returns the text.
    #[inline(always)]
    pub(crate) fn text(&self) -> &'a [u8] {
        &self.buffer[..self.len]
    }

    /// Returns the buffer, which begins with the text.
    #[inline(always)]
    pub(crate) fn buffer(&self) -> &'a [u8] {
        self.buffer
    }
}

impl<'a> From<&'a [u8]> for BufferedText<'a> {
    fn from(text: &'a [u8]) -> BufferedText<'a> {
        BufferedText { buffer: text, len: text.len() }
    }
}

/// The classes of the bytes of a URL. All bytes past the end of the URL are NUL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UrlMasks {
    /// Bytes 0 to 63.
    pub(crate) low: ClassMasks,
    /// Bytes 64 to 127.
    pub(crate) high: ClassMasks,
}

impl UrlMasks {
    /// Returns the mask of all bytes in a class.
    #[inline(always)]
    pub(crate) fn all(&self, class: impl Fn(&ClassMasks) -> u64) -> u128 {
        u128::from(class(&self.high)) << 64 | u128::from(class(&self.low))
    }
}

/// The classes of 64 bytes, one mask per class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClassMasks {
    /// `.`
    pub(crate) dots: u64,
    /// `/`
    pub(crate) slashes: u64,
    /// `?`
    pub(crate) questions: u64,
    /// `#`
    pub(crate) hashes: u64,
    /// `&`
    pub(crate) ampersands: u64,
    /// `=`
    pub(crate) equals: u64,
    /// `A` to `Z`.
    pub(crate) upper: u64,
    /// `%`, and bytes outside ASCII.
    pub(crate) escapes: u64,
    /// Control characters, the space, and `(`.
    pub(crate) specials: u64,
    /// All bytes except ASCII letters and digits, `-`, `.` and `_`.
    pub(crate) not_names: u64,
}

const NAMES: ByteSet =
    ByteSet::range(b'a', b'z').or(ByteSet::range(b'A', b'Z')).or(ByteSet::range(b'0', b'9')).or(ByteSet::of(b"-._"));
const SPECIALS: ByteSet = ByteSet::range(0, b' ').or(ByteSet::of(b"(\x7F"));

/// Nibble tables of [`NAMES`].
#[cfg(target_arch = "x86_64")]
pub(super) const NAME_TABLES: NibbleTables = NAMES.nibbles();
/// Nibble tables of [`SPECIALS`].
#[cfg(target_arch = "x86_64")]
pub(super) const SPECIAL_TABLES: NibbleTables = SPECIALS.nibbles();
/// Sets item `i` of `masks` to the masks of URL `i`, for a longer one to those of its first [`MAX_MASKED_LEN`] bytes.
#[inline]
pub(crate) fn mask_urls(urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    mask_at_level(SimdLevel::best(), urls, masks);
}

/// [`mask_urls`] with the instructions of `level`.
fn mask_at_level(level: SimdLevel, urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    match level {
        SimdLevel::Portable => mask_each(urls, masks, class_masks),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx2::new` created the value in `level` after it found that the processor has AVX2.
        SimdLevel::Avx2(_) => unsafe { super::avx2::mask_urls(urls, masks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx512::new` created the value in `level` after it found that the processor has AVX-512 F and BW.
        SimdLevel::Avx512(_) => unsafe { super::avx512::mask_urls(urls, masks) },
    }
}

/// Sets the masks of each URL; `class_masks` computes those of 64 bytes, of which those from a length on are NUL. It is always
/// inlined, so that `class_masks` is compiled for the caller's instruction set.
#[inline(always)]
pub(super) fn mask_each(
    urls: &[BufferedText<'_>],
    masks: &mut [UrlMasks],
    class_masks: impl Fn(&[u8; 64], usize) -> ClassMasks,
) {
    for (url, masks) in urls.iter().zip(masks) {
        let padded;
        let bytes = match url.buffer.first_chunk::<MAX_MASKED_LEN>() {
            Some(bytes) => bytes,
            None => {
                padded = pad(url.text());
                &padded
            }
        };
        let [low, high] = bytes.as_chunks::<64>().0 else { unreachable!("the array has two chunks") };
        masks.low = class_masks(low, url.len.min(64));
        masks.high = class_masks(high, url.len.min(MAX_MASKED_LEN).saturating_sub(64));
    }
}

/// Copies a text that is shorter than the array.
#[cold]
fn pad(text: &[u8]) -> [u8; MAX_MASKED_LEN] {
    let mut padded = [0; MAX_MASKED_LEN];
    padded[..text.len()].copy_from_slice(text);
    padded
}

/// The portable kernel, which the compiler vectorizes.
#[inline(always)]
fn class_masks(bytes: &[u8; 64], len: usize) -> ClassMasks {
    let mut text = *bytes;
    for (at, byte) in text.iter_mut().enumerate() {
        *byte &= if at < len { 0xFF } else { 0 };
    }
    let equal = |delimiter: u8| mask_of(&text, |byte| byte == delimiter);
    let is_name = |byte: u8| {
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        is_letter | (byte.wrapping_sub(b'0') < 10) | (byte == b'-') | (byte == b'.') | (byte == b'_')
    };
    ClassMasks {
        dots: equal(b'.'),
        slashes: equal(b'/'),
        questions: equal(b'?'),
        hashes: equal(b'#'),
        ampersands: equal(b'&'),
        equals: equal(b'='),
        upper: mask_of(&text, |byte| byte.wrapping_sub(b'A') < 26),
        escapes: mask_of(&text, |byte| (byte == b'%') | (byte >= 0x80)),
        specials: mask_of(&text, |byte| (byte <= b' ') | (byte == b'(') | (byte == 0x7F)),
        not_names: mask_of(&text, |byte| !is_name(byte)),
    }
}

/// Returns a mask of the bytes for which `is_member` is true.
#[inline(always)]
fn mask_of(bytes: &[u8; 64], is_member: impl Fn(u8) -> bool) -> u64 {
    bytes.as_chunks::<16>().0.iter().rev().fold(0, |mask, block| {
        let found = block.map(|byte| if is_member(byte) { 0xFF } else { 0 });
        mask << 16 | u64::from(super::positions_of(0xFF, &found))
    })
}

/// Returns a mask of the lowest `count` bits, of all bits from 128 on.
#[inline(always)]
pub(crate) fn low_bits(count: usize) -> u128 {
    let low = |count: usize| if count >= 64 { !0 } else { !(!0_u64 << count) };
    u128::from(low(count.saturating_sub(64))) << 64 | u128::from(low(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, one byte at a time.
    fn expected(bytes: &[u8]) -> ClassMasks {
        let mask = |is_member: &dyn Fn(u8) -> bool| {
            let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
            (0..64).fold(0, |mask, at| mask | u64::from(is_member(byte(at))) << at)
        };
        let equal = |delimiter: u8| mask(&|byte| byte == delimiter);
        ClassMasks {
            dots: equal(b'.'),
            slashes: equal(b'/'),
            questions: equal(b'?'),
            hashes: equal(b'#'),
            ampersands: equal(b'&'),
            equals: equal(b'='),
            upper: mask(&|byte| byte.is_ascii_uppercase()),
            escapes: mask(&|byte| byte == b'%' || !byte.is_ascii()),
            specials: mask(&|byte| byte.is_ascii_control() || byte == b' ' || byte == b'('),
            not_names: mask(&|byte| !byte.is_ascii_alphanumeric() && !b"-._".contains(&byte)),
        }
    }

    fn check(text: BufferedText<'_>) {
        for level in SimdLevel::available() {
            let mut masks = [UrlMasks::default()];
            mask_at_level(level, &[text], &mut masks);
            let (low, high) = text.text().split_at(text.len.min(64));
            assert_eq!(masks, [UrlMasks { low: expected(low), high: expected(high) }], "{level:?} {:?}", text.text());
        }
    }

    #[test]
    fn masks_equal_the_definition_at_all_lengths_and_alignments() {
        let pool: Vec<u8> = (0..2000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for len in 0..=200 {
            for at in (0..33).map(|i| i * 50) {
                check(BufferedText::within(&pool, at, len));
                check(pool[at..at + len].into());
            }
        }
    }

    #[test]
    fn every_byte_is_in_its_classes() {
        for byte in 0..=255 {
            for at in [0, 63, 64, 127] {
                let mut text = [b'a'; 128];
                text[at] = byte;
                check(text.as_slice().into());
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn texts_between_inaccessible_pages_are_read_exactly() {
        use crate::kernel::guarded::GuardedText;
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 0..=200 {
            for guarded in [GuardedText::before_guard(&bytes[..len]), GuardedText::after_guard(&bytes[..len])] {
                check((&guarded[..]).into());
            }
        }
    }

    #[test]
    fn low_bits_are_counted() {
        for count in 0..=130 {
            assert_eq!(low_bits(count).count_ones() as usize, count.min(128));
            assert_eq!(low_bits(count).trailing_ones() as usize, count.min(128));
        }
    }
}
