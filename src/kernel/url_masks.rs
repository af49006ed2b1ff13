//! The positions of delimiters and classes of bytes in URLs of up to 128 bytes, as masks of 128 bits: bit `i` belongs to
//! byte `i`. With masks, the parts of a short URL are found without a branch per byte.

#[cfg(target_arch = "x86_64")]
use super::byte_set::{ByteSet, NibbleTables};

/// The length of the longest URL that has masks.
pub(crate) const MAX_MASKED_LEN: usize = 128;

/// A text at the beginning of a buffer. Kernels may read the bytes after the text, but no result depends on them.
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

impl ClassMasks {
    /// Returns the masks of the delimiters, each computed by `equal`, and empty masks of the other classes.
    #[inline(always)]
    pub(super) fn of_delimiters(equal: impl Fn(u8) -> u64) -> ClassMasks {
        ClassMasks {
            dots: equal(b'.'),
            slashes: equal(b'/'),
            questions: equal(b'?'),
            hashes: equal(b'#'),
            ampersands: equal(b'&'),
            equals: equal(b'='),
            ..ClassMasks::default()
        }
    }
}

#[cfg(target_arch = "x86_64")]
const NAMES: ByteSet =
    ByteSet::range(b'a', b'z').or(ByteSet::range(b'A', b'Z')).or(ByteSet::range(b'0', b'9')).or(ByteSet::of(b"-._"));
#[cfg(target_arch = "x86_64")]
const SPECIALS: ByteSet = ByteSet::range(0, b' ').or(ByteSet::of(b"(\x7F"));

/// Nibble tables of [`NAMES`].
#[cfg(target_arch = "x86_64")]
pub(super) const NAME_TABLES: NibbleTables = NAMES.nibbles();
/// Nibble tables of [`SPECIALS`].
#[cfg(target_arch = "x86_64")]
pub(super) const SPECIAL_TABLES: NibbleTables = SPECIALS.nibbles();

/// Sets the masks of each text. `class_masks` computes the masks of 64 bytes; it treats the bytes from the given length
/// on as NUL. This function is always inlined, so that `class_masks` is compiled for the caller's instruction set.
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

/// Returns a mask of the lowest `count` bits; of all bits if `count` is 128 or more.
#[inline(always)]
pub(crate) fn low_bits(count: usize) -> u128 {
    u128::from(low_bits_of_64(count.saturating_sub(64))) << 64 | u128::from(low_bits_of_64(count))
}

/// Returns a mask of the lowest `count` bits; of all bits if `count` is 64 or more.
#[inline(always)]
pub(crate) fn low_bits_of_64(count: usize) -> u64 {
    if count >= 64 { !0 } else { !(!0 << count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bits_are_counted() {
        for count in 0..=130 {
            assert_eq!(low_bits(count).count_ones() as usize, count.min(128));
            assert_eq!(low_bits(count).trailing_ones() as usize, count.min(128));
        }
    }
}
