//! Masks of many URLs at once, with the instructions of the processor.

use super::cpu::SimdLevel;
use super::search::mask_of;
use super::url_masks::{BufferedText, ClassMasks, UrlMasks, mask_each};

/// Sets item `i` of `masks` to the masks of URL `i`. Of a URL that is longer than
/// [`MAX_MASKED_LEN`](super::MAX_MASKED_LEN) bytes, only the first bytes have masks.
#[inline]
pub(crate) fn mask_urls(urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    mask_urls_at_level(SimdLevel::best(), urls, masks);
}

/// [`mask_urls`] with the instructions of `level`.
fn mask_urls_at_level(level: SimdLevel, urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx2::new` created the value in `level` after it found that the processor has AVX2.
        SimdLevel::Avx2(_) => unsafe { super::avx2::mask_urls(urls, masks) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx512::new` created the value in `level` after it found that the processor has AVX-512 F and BW.
        SimdLevel::Avx512(_) => unsafe { super::avx512::mask_urls(urls, masks) },
        _ => mask_each(urls, masks, class_masks),
    }
}

/// The portable kernel, which the compiler vectorizes.
#[inline(always)]
fn class_masks(bytes: &[u8; 64], len: usize) -> ClassMasks {
    let mut text = *bytes;
    for (at, byte) in text.iter_mut().enumerate() {
        *byte &= if at < len { 0xFF } else { 0 };
    }
    let is_name = |byte: u8| {
        let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        is_letter | (byte.wrapping_sub(b'0') < 10) | (byte == b'-') | (byte == b'.') | (byte == b'_')
    };
    ClassMasks {
        upper: mask_of(&text, |byte| byte.wrapping_sub(b'A') < 26),
        escapes: mask_of(&text, |byte| (byte == b'%') | (byte >= 0x80)),
        specials: mask_of(&text, |byte| (byte <= b' ') | (byte == b'(') | (byte == 0x7F)),
        not_names: mask_of(&text, |byte| !is_name(byte)),
        ..ClassMasks::of_delimiters(|delimiter| mask_of(&text, |byte| byte == delimiter))
    }
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
            mask_urls_at_level(level, &[text], &mut masks);
            let (low, high) = text.text().split_at(text.text().len().min(64));
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
}
