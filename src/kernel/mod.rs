//! Loops over bytes, independent of what the bytes mean: classification, copies, escapes and hashes.
//!
//! ```text
//! text  --Bitmaps::classify--> one bit per byte: newline, attention class, stop class
//! bytes --percent_encode-----> %XX%XX...
//! texts --push_xxh3_128------> one 128-bit hash per text
//! URLs  --mask_urls----------> one bit per byte of a short URL: delimiters and classes
//! compressed bytes --unpack_snappy--> the bytes
//! ```
//!
//! Each loop has a definition that handles one byte at a time. Tests compare the faster variants with it, and the
//! instruction sets of the processor decide at run time which variant is called (`cpu.rs`). Callers use safe functions
//! that take slices; the `unsafe` code is confined to this module.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bitmaps;
mod byte_set;
mod classifier;
mod copy;
mod cpu;
#[cfg(feature = "pipeline")]
mod gather;
#[cfg(all(test, unix))]
mod guarded;
mod masking;
#[cfg(target_arch = "aarch64")]
mod neon;
mod parse;
mod prefix_marks;
mod scalar;
mod search;
#[cfg(feature = "pipeline")]
mod snappy;
mod span;
#[cfg(target_arch = "x86_64")]
mod sse2;
mod url_masks;
mod xxh3;

pub use bitmaps::Bitmaps;
pub(crate) use byte_set::ByteSet;
pub(crate) use classifier::Classifier;
pub(crate) use copy::{
    Appender, AsciiCase, COPY_LEN, append, append_line, append_range, append_range_in_case, append_some, prefetch,
};
pub(crate) use cpu::{SimdTask, run_with_simd};
#[cfg(feature = "pipeline")]
pub(crate) use gather::chunks_at;
pub(crate) use masking::mask_urls;
pub(crate) use parse::{parse_bytes, parse_digits, strip_prefix_ignoring_case};
pub(crate) use prefix_marks::{PrefixMarks, Prefixes};
pub(crate) use scalar::escape;
pub(crate) use search::{
    any_byte, any_pair, count_bytes, find_byte, find_byte_from, marks_of_byte, mask_of, mask_of_triples, masks_of,
    positions, positions_by_mask, trimmed_ascii_range,
};
#[cfg(feature = "pipeline")]
pub(crate) use snappy::unpack_snappy;
pub use span::Span;
pub(crate) use url_masks::{BufferedText, MAX_MASKED_LEN, UrlMasks, low_bits, low_bits_of_64};
pub(crate) use xxh3::push_xxh3_128;

/// Returns the number of bytes from 0x80 on at the start of `text`.
#[inline(always)]
pub(crate) fn non_ascii_len(text: &[u8]) -> usize {
    // Such a run is rarely longer than two words, so wider vectors do not help.
    const HIGH: u128 = u128::from_ne_bytes([0x80; 16]);
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let ascii = !u128::from_le_bytes(*word) & HIGH;
        if ascii != 0 {
            return at + (ascii.trailing_zeros() / 8) as usize;
        }
        at += 16;
    }
    at + text[at..].iter().take_while(|&&byte| byte >= 0x80).count()
}

/// Returns the length of the prefix that two texts share.
#[cfg(feature = "pipeline")]
#[inline]
pub(crate) fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let mut len = 0;
    for (one, other) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let difference = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if difference != 0 {
            return len + difference.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(one, other)| one == other).count()
}

/// Returns the offset of `part` in `whole`, of which it is a slice.
#[inline]
pub(crate) fn offset_in(whole: &[u8], part: &[u8]) -> usize {
    let (whole, part) = (whole.as_ptr_range(), part.as_ptr_range());
    debug_assert!(whole.start <= part.start && part.end <= whole.end, "the part is not a slice of the whole");
    part.start.addr() - whole.start.addr()
}

/// Appends a number as a varint: groups of seven bits, the lowest first.
#[cfg(feature = "pipeline")]
#[inline]
pub(crate) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Maximum number of bytes of a varint.
#[cfg(feature = "pipeline")]
pub(crate) const MAX_VARINT_LEN: usize = 10;

/// Reads the varint that `bytes` begin with. Returns its number and the bytes after it; `None` if it is cut, or if the number
/// does not fit into 64 bits.
#[cfg(feature = "pipeline")]
#[inline]
pub(crate) fn read_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (i, &byte) in bytes.iter().take(MAX_VARINT_LEN).enumerate() {
        let (digit, shift) = (u64::from(byte & 0x7F), 7 * i);
        number |= digit << shift;
        if byte < 0x80 {
            return (digit <= u64::MAX >> shift).then(|| (number, &bytes[i + 1..]));
        }
    }
    None
}

/// Returns a mask of the bytes that equal `byte`. The lowest bit belongs to the first byte.
#[inline(always)]
pub(crate) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return sse2::positions_of(byte, bytes);
    #[cfg(target_arch = "aarch64")]
    // SAFETY: every aarch64 processor has NEON.
    return unsafe { neon::positions_of(byte, bytes) };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    scalar::positions_of(byte, bytes)
}

/// Appends every byte of `bytes` to `out` as `%` and two upper-case hexadecimal digits.
#[inline]
pub(crate) fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    percent_encode_buffered(bytes.into(), out);
}

/// [`percent_encode`] of a text in a buffer, which is faster if 16 bytes or more follow the text.
#[inline(always)]
pub(crate) fn percent_encode_buffered(text: BufferedText<'_>, out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if cpu::Avx2::new().is_some() {
        // SAFETY: `Avx2::new` found that the processor has AVX2.
        return unsafe { avx2::percent_encode(text, out) };
    }
    scalar::percent_encode(text.text(), out);
}

#[cfg(test)]
mod tests {
    use super::classifier::MaskBlock;
    use super::cpu::SimdLevel;
    use super::*;

    /// Returns pseudo-random bytes, the same on every run.
    pub(super) fn noise(len: usize, mut seed: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len);
        for _ in 0..len {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            bytes.push((seed >> 56) as u8);
        }
        bytes
    }

    #[test]
    fn examples() {
        let mut out = Vec::new();
        percent_encode("é\n".as_bytes(), &mut out);
        assert_eq!(out, b"%C3%A9%0A");
        assert_eq!(positions_of(b'a', b"abcabcabcabcabca"), 0b1001_0010_0100_1001);
    }

    #[test]
    fn parts_have_offsets_in_the_whole() {
        let text = b"abc";
        assert_eq!([&text[..], &text[1..2], &text[3..]].map(|part| offset_in(text, part)), [0, 1, 3]);
    }

    #[cfg(feature = "pipeline")]
    #[test]
    fn prefixes_are_measured() {
        let text = b"0123456789abcdefghijk";
        for len in 0..text.len() {
            let mut other = text.to_vec();
            other[len] ^= 1;
            assert_eq!(common_prefix_len(text, &other), len);
            assert_eq!(common_prefix_len(&text[..len], text), len);
        }
    }

    #[cfg(feature = "pipeline")]
    #[test]
    fn varints_are_read_back() {
        for shift in 0..64 {
            for number in [u64::MAX >> shift, 1 << shift, (1 << shift) - 1] {
                let mut bytes = Vec::new();
                push_varint(number, &mut bytes);
                assert!((1..bytes.len()).all(|len| read_varint(&bytes[..len]).is_none()), "{number}");
                bytes.push(7);
                assert_eq!(read_varint(&bytes), Some((number, &[7][..])));
            }
        }
        // Leading zeros are allowed; 65 bits and 11 bytes are not.
        assert_eq!(read_varint(&[0x81, 0x80, 0x00]), Some((1, &[][..])));
        assert_eq!(read_varint(&[&[0x80; 9][..], &[2]].concat()), None);
        assert_eq!(read_varint(&[&[0x80; 10][..], &[0]].concat()), None);
    }

    #[test]
    fn percent_encode_equals_scalar_at_all_lengths_and_alignments() {
        let bytes = noise(300, 1);
        for len in 0..=200 {
            for at in 0..33 {
                let (mut fast, mut slow) = (vec![b'x'; at], vec![b'x'; at]);
                percent_encode(&bytes[at..at + len], &mut fast);
                scalar::percent_encode(&bytes[at..at + len], &mut slow);
                assert_eq!(fast, slow, "length {len} at {at}");
                percent_encode_buffered(BufferedText::within(&bytes, at, len), &mut fast);
                assert_eq!(fast[slow.len()..], slow[at..], "length {len} at {at} of a buffer");
            }
        }
    }

    #[test]
    fn positions_equal_scalar() {
        let mut bytes = noise(16 * 256, 4);
        for (i, group) in bytes.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            group.iter_mut().skip(i % 5).step_by(1 + i % 3).for_each(|byte| *byte = (i % 5) as u8 * 51);
            for byte in 0..=255 {
                assert_eq!(positions_of(byte, group), scalar::positions_of(byte, group), "{byte} in {group:?}");
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn transposed_equals_scalar() {
        let rows: Vec<u64> = noise(64, 5).as_chunks().0.iter().map(|row| u64::from_le_bytes(*row)).collect();
        let rows = rows.try_into().unwrap();
        assert_eq!(sse2::transposed(rows), scalar::transposed(rows));
        assert_eq!(sse2::transposed(sse2::transposed(rows)), rows);
    }

    #[test]
    fn append_equals_extend_at_all_lengths_and_alignments() {
        let bytes = noise(400, 2);
        for len in 0..=300 {
            for at in 0..33 {
                let (mut fast, mut slow) = (vec![b'x'; at], vec![b'x'; at]);
                append(&mut fast, &bytes[at..at + len]);
                slow.extend_from_slice(&bytes[at..at + len]);
                assert_eq!(fast, slow, "length {len} at {at}");
                fast.truncate(at);
                append_range(&mut fast, &bytes, at, len);
                assert_eq!(fast, slow, "range, length {len} at {at}");
                fast.truncate(at);
                append_range_in_case(&mut fast, &bytes, at..at + len, AsciiCase::Upper);
                assert_eq!(fast[at..], bytes[at..at + len].to_ascii_uppercase(), "upper, length {len} at {at}");
                fast.truncate(at);
                append_range_in_case(&mut fast, &bytes, at..at + len, AsciiCase::Lower);
                assert_eq!(fast[at..], bytes[at..at + len].to_ascii_lowercase(), "lower, length {len} at {at}");
            }
        }
    }

    #[test]
    fn non_ascii_len_equals_a_count_at_all_lengths() {
        for len in 0..=200 {
            let mut text = vec![0xC3; len];
            for tail in [&b""[..], b"a", b"abcdefghi", b"\x7f"] {
                text.truncate(len);
                text.extend_from_slice(tail);
                assert_eq!(non_ascii_len(&text), len);
            }
        }
    }

    const ATTENTION: ByteSet =
        ByteSet::of(b"%<>\"{}|\\^`[]#").or(ByteSet::range(0, 0x20)).or(ByteSet::range(0x7F, 0xFF));
    const STOP: ByteSet = ByteSet::range(b'a', b'z').or(ByteSet::range(b'0', b'9')).or(ByteSet::of(b"-.")).not();
    const CLASSIFIER: Classifier = Classifier::new(ATTENTION, [b'/', b'.'], STOP, [b'-', b'-']);

    /// The definition of all classification kernels: returns the masks of up to 64 bytes that follow the byte `before`. Bits
    /// past the end of `bytes` are set in `attention` and `stop`.
    fn mask_block(bytes: &[u8], before: u8) -> MaskBlock {
        let mut block = MaskBlock::default();
        if bytes.len() < 64 {
            block.attention = !0 << bytes.len();
            block.stop = block.attention;
        }
        let mut previous = before;
        for (i, &byte) in bytes.iter().enumerate() {
            let pair = [previous, byte];
            block.newline |= u64::from(byte == b'\n') << i;
            block.attention |= u64::from(ATTENTION.contains(byte) || pair == CLASSIFIER.attention_pair) << i;
            block.stop |= u64::from(STOP.contains(byte) || pair == CLASSIFIER.stop_pair) << i;
            previous = byte;
        }
        block
    }

    /// Returns the masks of a whole text by the definition.
    fn mask_blocks(text: &[u8]) -> Vec<MaskBlock> {
        let before = |i: usize| if i == 0 { 0 } else { text[64 * i - 1] };
        text.chunks(64).enumerate().map(|(i, bytes)| mask_block(bytes, before(i))).collect()
    }

    /// Returns the masks of a text of `len` bytes in its bitmaps.
    fn blocks_of(bitmaps: &Bitmaps, len: usize) -> Vec<MaskBlock> {
        let mut newlines = Vec::new();
        bitmaps.push_newlines(&mut newlines);
        let block = |from: usize| {
            let offsets = newlines.iter().filter_map(|at| (*at as usize).checked_sub(from)).filter(|at| *at < 64);
            let newline = offsets.fold(0, |mask, at| mask | 1 << at);
            MaskBlock { newline, crlf: 0, attention: bitmaps.attentions(from), stop: bitmaps.stops(from) }
        };
        (0..len).step_by(64).map(block).collect()
    }

    #[test]
    fn classify_equals_scalar_at_all_lengths_positions_and_alignments() {
        let mut pool = noise(5000, 3);
        pool.extend(b"http://example.org/.a/../b--c\nhttp://xn--a/\r\n//..--".repeat(20));
        for len in (0..=200).chain([255, 256, 257, 1000, 5000]) {
            for at in 0..33 {
                let text = &pool[(at * 7)..][..len.min(pool.len() - at * 7)];
                let mut fast = Bitmaps::default();
                for level in SimdLevel::available() {
                    fast.classify_at_level(level, text, &CLASSIFIER);
                    assert_eq!(blocks_of(&fast, text.len()), mask_blocks(text), "{level:?}, length {len} at {at}");
                }
                check_searches(text, &fast);
            }
        }
    }

    /// Compares the searches of `bitmaps` with a scan of every byte.
    fn check_searches(text: &[u8], bitmaps: &Bitmaps) {
        let newlines: Vec<_> = (0..text.len() as u32).filter(|&at| text[at as usize] == b'\n').collect();
        let mut actual = Vec::new();
        bitmaps.push_newlines(&mut actual);
        assert_eq!(actual, newlines);
        for from in [0, 1, 7, 63, 64, 65, 130].into_iter().filter(|&from| from <= text.len()) {
            assert_eq!(bitmaps.next_attention_near(from), bitmaps.next_attention(from));
            let stop = (from..text.len()).find(|&at| bitmaps.next_stop(at) == at).unwrap_or(text.len());
            assert_eq!(bitmaps.next_stop(from).min(text.len()), stop);
            let stops = (from..text.len()).take(64).filter(|&at| bitmaps.next_stop(at) == at);
            let past_end = u64::MAX.checked_shl((text.len() - from) as u32).unwrap_or(0);
            assert_eq!(bitmaps.stops(from), stops.fold(past_end, |mask, at| mask | 1 << (at - from)));
        }
    }

    #[test]
    fn line_ends_of_two_bytes_are_found_at_all_positions() {
        let mut bitmaps = Bitmaps::default();
        for level in SimdLevel::available() {
            for at in 0..200 {
                for (pair, has_crlf) in [(b"\r\n", true), (b"\n\r", false), (b"a\n", false), (b"\r\r", false)] {
                    let mut text = vec![b'a'; 202];
                    text[at..at + 2].copy_from_slice(pair);
                    bitmaps.classify_at_level(level, &text, &CLASSIFIER);
                    assert_eq!(bitmaps.has_crlf(), has_crlf, "{level:?}, {pair:?} at {at}");
                    bitmaps.classify_at_level(level, &text[..at + 1], &CLASSIFIER);
                    assert!(!bitmaps.has_crlf(), "{level:?}, {pair:?} at {at}");
                }
            }
        }
    }

    #[test]
    fn every_byte_is_in_its_class() {
        for byte in 0..=255 {
            let text = [b'a', byte, b'a'];
            let mut bitmaps = Bitmaps::default();
            bitmaps.classify(&text, &CLASSIFIER);
            assert_eq!(bitmaps.next_attention(1) == 1, ATTENTION.contains(byte), "{byte}");
            assert_eq!(bitmaps.next_stop(1) == 1, STOP.contains(byte), "{byte}");
            let mut newlines = Vec::new();
            bitmaps.push_newlines(&mut newlines);
            assert_eq!(newlines == [1], byte == b'\n', "{byte}");
        }
    }

    /// No kernel reads a byte before or after its text, at any length.
    #[cfg(unix)]
    #[test]
    fn texts_between_inaccessible_pages_are_read_exactly() {
        use super::guarded::GuardedText;
        let bytes = noise(400, 5);
        for len in 0..=300 {
            let text = &bytes[..len];
            for guarded in [GuardedText::before_guard(text), GuardedText::after_guard(text)] {
                let mut bitmaps = Bitmaps::default();
                for level in SimdLevel::available() {
                    bitmaps.classify_at_level(level, &guarded, &CLASSIFIER);
                    assert_eq!(blocks_of(&bitmaps, len), mask_blocks(text), "{level:?}, length {len}");
                }
                let (mut fast, mut slow) = (Vec::new(), Vec::new());
                percent_encode(&guarded, &mut fast);
                scalar::percent_encode(text, &mut slow);
                assert_eq!(fast, slow);
                assert_eq!(non_ascii_len(&guarded), non_ascii_len(text));
                check_copies(&guarded, text);
            }
        }
        let last = GuardedText::before_guard(&bytes[..16]);
        let group: &[u8; 16] = last.first_chunk().expect("16 bytes");
        assert_eq!(positions_of(bytes[3], group), scalar::positions_of(bytes[3], group));
    }

    /// Copies of a part at either end of `guarded`, which equals `text`.
    fn check_copies(guarded: &[u8], text: &[u8]) {
        for at in [0, 1, text.len() / 2, text.len().saturating_sub(1)].into_iter().filter(|&at| at <= text.len()) {
            let mut out = Vec::new();
            append(&mut out, &guarded[at..]);
            append_range(&mut out, guarded, 0, at);
            append_range(&mut out, guarded, at, text.len() - at);
            append_range_in_case(&mut out, guarded, at..text.len(), AsciiCase::Lower);
            assert_eq!(out, [&text[at..], text, &text[at..].to_ascii_lowercase()].concat());
        }
    }
}
