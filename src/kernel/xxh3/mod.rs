//! XXH3 with 128 bits and seed 0 for many short texts at once.
//!
//! xxhash-rust defines the hash. The number of mixing steps depends on the length of a text, so hashing one text after
//! the other mispredicts branches. The vector kernels hash four texts (`avx2.rs`) or eight (`avx512.rs`) at once, one per
//! 64-bit lane, execute every step for all lanes, and discard the results of steps that a lane does not need. They
//! handle lengths from 17 to 128 bytes; xxhash-rust hashes all other texts.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
mod lanes;

use super::cpu::SimdLevel;
use lanes::hash;

/// Appends the hash of each text `texts[ends[i]..ends[i + 1]]`, most significant byte first.
///
/// # Panics
/// If there are no ends, or they do not ascend from 0 or more, or exceed the length of `texts`.
pub(crate) fn push_xxh3_128(texts: &[u8], ends: &[i32], hashes: &mut Vec<[u8; 16]>) {
    push_at_level(SimdLevel::best(), texts, ends, hashes);
}

/// [`push_xxh3_128`] with the instructions of `level`.
fn push_at_level(level: SimdLevel, texts: &[u8], ends: &[i32], hashes: &mut Vec<[u8; 16]>) {
    assert!(
        ends.is_sorted() && ends.first() >= Some(&0) && ends.last().is_some_and(|&end| end as usize <= texts.len())
    );
    hashes.reserve(ends.len());
    let rest = match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx2::new` created the value in `level` after it found that the processor has AVX2. The ends
        // ascend from 0 or more and are within `texts`, by the assertion above.
        SimdLevel::Avx2(_) => unsafe { avx2::push(texts, ends, hashes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Avx512::new` created the value in `level` after it found that the processor has AVX-512 F, BW and DQ.
        // The ends ascend from 0 or more and are within `texts`, by the assertion above.
        SimdLevel::Avx512(_) => unsafe { avx512::push(texts, ends, hashes) },
        _ => ends,
    };
    hashes.extend(rest.windows(2).map(|ends| hash(texts, ends)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::noise;

    /// Hashes texts of the lengths `lens`, with other bytes before and after them, at every level, and compares the
    /// results with those of xxhash-rust.
    fn check(lens: impl Iterator<Item = usize> + Clone, before: usize, after: usize) {
        let texts = noise(before + lens.clone().sum::<usize>() + after, 1);
        let mut ends = vec![before as i32];
        ends.extend(lens.scan(before, |end, len| {
            *end += len;
            Some(*end as i32)
        }));
        let expected: Vec<_> = ends.windows(2).map(|ends| hash(&texts, ends)).collect();
        for level in SimdLevel::available() {
            let mut hashes = Vec::new();
            push_at_level(level, &texts, &ends, &mut hashes);
            assert_eq!(hashes, expected, "{level:?}, {before} bytes before, {after} after");
        }
    }

    #[test]
    fn hashes_equal_those_of_xxhash_rust_at_all_lengths_alignments_and_neighbors() {
        for before in 0..70 {
            check(0..=300, before, before % 7 * 20);
            check((0..=150).rev().flat_map(|len| [len, 33 + len % 96]), before, 0);
        }
        for len in 0..=140 {
            for count in 0..20 {
                check(std::iter::repeat_n(len, count), 0, 0);
                check(std::iter::repeat_n(len, count), 64, 64);
            }
        }
    }

    /// The kernels of every level read no byte before or after the texts.
    #[cfg(unix)]
    #[test]
    fn texts_between_inaccessible_pages_are_read_exactly() {
        use crate::kernel::guarded::GuardedText;
        for len in 0..=300_usize {
            for count in [1, 4, 8, 9] {
                let text: Vec<u8> = (0..len * count).map(|at| (at * 7) as u8).collect();
                let ends: Vec<i32> = (0..=count).map(|i| (i * len) as i32).collect();
                let expected: Vec<_> = ends.windows(2).map(|ends| hash(&text, ends)).collect();
                for guarded in [GuardedText::before_guard(&text), GuardedText::after_guard(&text)] {
                    for level in SimdLevel::available() {
                        let mut hashes = Vec::new();
                        push_at_level(level, &guarded, &ends, &mut hashes);
                        assert_eq!(hashes, expected, "{level:?}, {count} texts of {len} bytes");
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic]
    fn ends_past_the_text_panic() {
        push_xxh3_128(b"http://example.org/", &[0, 20], &mut Vec::new());
    }

    #[test]
    #[should_panic]
    fn descending_ends_panic() {
        push_xxh3_128(b"http://example.org/", &[0, 9, 8], &mut Vec::new());
    }
}
