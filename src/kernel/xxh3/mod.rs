//! XXH3 with 128 bits and seed 0 of many short texts. In: texts end to end. Out: a hash each.
//!
//! xxhash-rust defines what a hash is. `avx2.rs` equals it, four texts at once, and `avx512.rs`, eight: which of the
//! steps a text takes, its length decides, and that is a branch which cannot be foreseen a text at a time.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod lanes;

use xxhash_rust::xxh3::xxh3_128;

use super::Level;

/// Appends the hash, most significant byte first, of each text `texts[ends[i]..ends[i + 1]]`.
///
/// ```
/// let mut hashes = Vec::new();
/// irikey::kernel::push_xxh3_128(b"http://a/http://b/", &[0, 9, 18], &mut hashes);
/// assert_eq!(hashes[1], xxhash_rust::xxh3::xxh3_128(b"http://b/").to_be_bytes());
/// ```
///
/// # Panics
/// When the ends do not ascend or pass the texts' end.
pub fn push_xxh3_128(texts: &[u8], ends: &[i32], hashes: &mut Vec<[u8; 16]>) {
    assert!(
        ends.is_sorted() && ends.first() >= Some(&0) && ends.last().is_some_and(|&end| end as usize <= texts.len())
    );
    hashes.reserve(ends.len());
    push_at(Level::best(), texts, ends, hashes);
}

/// [`push_xxh3_128`] with the instructions of `level`; the ends have been looked at.
fn push_at(level: Level, texts: &[u8], ends: &[i32], hashes: &mut Vec<[u8; 16]>) {
    let rest = match level {
        Level::Words => ends,
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is only made where the processor has it; the ends ascend from 0 on and stay within the texts.
        Level::Avx2 => unsafe { avx2::push(texts, ends, hashes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: likewise.
        Level::Avx512 => unsafe { avx512::push(texts, ends, hashes) },
    };
    hashes.extend(rest.windows(2).map(|ends| hash(texts, ends)));
}

#[inline(always)]
fn hash(texts: &[u8], ends: &[i32]) -> [u8; 16] {
    xxh3_128(&texts[ends[0] as usize..ends[1] as usize]).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of all these lengths end to end, and their hashes one by one.
    fn check(lens: impl Iterator<Item = usize> + Clone, before: usize, after: usize) {
        let mut seed = 1_u64;
        let noise = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 56) as u8
        });
        let texts: Vec<u8> = noise.take(before + lens.clone().sum::<usize>() + after).collect();
        let mut ends = vec![before as i32];
        ends.extend(lens.scan(before, |end, len| {
            *end += len;
            Some(*end as i32)
        }));
        let expected: Vec<_> = ends.windows(2).map(|ends| hash(&texts, ends)).collect();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut hashes = Vec::new();
            push_at(level, &texts, &ends, &mut hashes);
            assert_eq!(hashes, expected, "{level:?}, from {before} on, {after} after");
        }
    }

    #[test]
    fn hashes_equal_those_of_xxhash_rust_at_all_lengths_alignments_and_neighbours() {
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

    #[test]
    #[should_panic]
    fn ends_past_the_texts_are_refused() {
        push_xxh3_128(b"http://example.org/", &[0, 20], &mut Vec::new());
    }

    #[test]
    #[should_panic]
    fn ends_that_descend_are_refused() {
        push_xxh3_128(b"http://example.org/", &[0, 9, 8], &mut Vec::new());
    }
}
