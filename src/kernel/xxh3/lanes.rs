//! What the vector kernels share for any number of lanes: the constants of XXH3, and the choice of the texts that are
//! hashed in lanes.

use xxhash_rust::const_xxh3::const_custom_default_secret;
use xxhash_rust::xxh3::xxh3_128;

/// Number of bytes that a kernel reads after the start and before the end of each text, whatever its length.
pub(super) const REACH: usize = 64;
/// Text lengths that the four mixing steps of the kernels define.
pub(super) const MEDIUM: std::ops::RangeInclusive<u64> = 17..=128;

/// The words of XXH3's default secret that texts of these lengths are mixed with, four per step.
pub(super) const SECRET: [[u64; 4]; 4] = {
    let bytes = const_custom_default_secret(0);
    let mut words = [[0; 4]; 4];
    let mut i = 0;
    while i < 128 {
        words[i / 32][i / 8 % 4] |= (bytes[i] as u64) << (i % 8 * 8);
        i += 1;
    }
    words
};

/// `PRIME64_1`, `_2` and `_4` of XXH64, multipliers for the length of a text and its two sums.
pub(super) const PRIME_1: u64 = 0x9E37_79B1_85EB_CA87;
pub(super) const PRIME_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
pub(super) const PRIME_4: u64 = 0x85EB_CA77_C2B2_AE63;
/// The multiplier of the final avalanche step of XXH3.
pub(super) const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;

/// Returns the hash of the text `texts[ends[0]..ends[1]]`.
#[inline(always)]
pub(super) fn hash(texts: &[u8], ends: &[i32]) -> [u8; 16] {
    xxh3_128(&texts[ends[0] as usize..ends[1] as usize]).to_be_bytes()
}

/// Whether so few of `LANES` texts are of medium length that hashing one by one is faster. `others` is the bitmap of texts of
/// other lengths.
#[inline(always)]
pub(super) fn has_few_medium<const LANES: u32>(others: u32) -> bool {
    others.count_ones() > LANES / 2
}

/// Writes the hashes of the texts in the bitmap `which`, one by one.
#[cold]
fn hash_some<const LANES: usize>(texts: &[u8], ends: &[i32], mut which: u32, hashes: &mut [[u8; 16]; LANES]) {
    while which != 0 {
        let i = which.trailing_zeros() as usize;
        hashes[i] = hash(texts, &ends[i..]);
        which &= which - 1;
    }
}

/// Appends the hashes of the leading texts, and returns the ends of the texts that are too near to the end of `texts` for
/// a kernel. Texts that are too near to the start of `texts` are hashed one by one. `ENDS` is one more than `LANES`.
///
/// `hash_lanes` receives the ends of texts for which [`REACH`] bytes after each start and before each end are within
/// `texts`. It writes the hashes of texts of [medium](MEDIUM) length, and returns a bitmap of the texts that are still to be
/// hashed, one by one.
#[inline(always)]
pub(super) fn push<'a, const LANES: usize, const ENDS: usize>(
    texts: &[u8],
    ends: &'a [i32],
    hashes: &mut Vec<[u8; 16]>,
    hash_lanes: impl Fn(&[i32; ENDS], &mut [[u8; 16]; LANES]) -> u32,
) -> &'a [i32] {
    const { assert!(ENDS == LANES + 1) };
    let first = ends.iter().skip(1).take_while(|&&end| (end as usize) < REACH).count();
    hashes.extend(ends[..first + 1].windows(2).map(|ends| hash(texts, ends)));
    let mut rest = &ends[first..];
    while let Some(ends) = rest.first_chunk::<ENDS>()
        && ends[LANES - 1] as usize + REACH <= texts.len()
    {
        hashes.resize(hashes.len() + LANES, [0; 16]);
        if let Some(hashes) = hashes.last_chunk_mut::<LANES>() {
            let others = hash_lanes(ends, hashes);
            if others != 0 {
                hash_some(texts, ends, others, hashes);
            }
        }
        rest = &rest[LANES..];
    }
    rest
}
