//! The kernel for every processor: sets as bounds that compilers turn into whatever vectors there are, bits gathered in
//! words of 64. Equals its definition in `scalar.rs`.

use super::byte_set::Runs;
use super::classifier::{Marks, push_blocks};
use super::{Block, Classifier};

/// As the definition, [`super::scalar::block`] after block.
pub fn classify(text: &[u8], classifier: &Classifier, blocks: &mut Vec<Block>) {
    push_blocks(text, classifier, blocks, |bytes| Marks {
        newline: bits(&equal(bytes, b'\n')),
        attention: bits(&within(bytes, &classifier.attention_runs)),
        attention_pair: classifier.attention_pair.map(|byte| bits(&equal(bytes, byte))),
        stop: !bits(&within(bytes, &classifier.go_runs)),
        stop_pair: classifier.stop_pair.map(|byte| bits(&equal(bytes, byte))),
    });
}

/// 1 for each byte that is `wanted`, else 0.
#[inline(always)]
fn equal(bytes: &[u8; 64], wanted: u8) -> [u8; 64] {
    bytes.map(|byte| u8::from(byte == wanted))
}

/// 1 for each byte in one of `runs`, else 0.
#[inline(always)]
fn within(bytes: &[u8; 64], runs: &Runs) -> [u8; 64] {
    let mut within = [0; 64];
    for (first, further) in runs.iter() {
        for (within, byte) in within.iter_mut().zip(bytes) {
            *within |= u8::from(byte.wrapping_sub(first) <= further);
        }
    }
    within
}

/// The lowest bit of each byte, which has no other.
#[inline(always)]
fn bits(flags: &[u8; 64]) -> u64 {
    // Byte `i` of a word is moved to bit `56 + i`; what else the product moves stays below or runs out.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (words, _) = flags.as_chunks::<8>();
    words.iter().rev().fold(0, |bits, word| bits << 8 | u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56)
}
