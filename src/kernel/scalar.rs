//! The definition of each kernel, one byte at a time. Tests compare every faster variant with it.

use super::classifier::{Classifier, MaskBlock};

/// Hexadecimal digits of percent-encodings, upper case as RFC 3986 section 2.1 recommends.
pub(super) const HEX: [u8; 16] = *b"0123456789ABCDEF";

pub(super) fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(&[b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
pub(super) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    bytes.iter().rev().fold(0, |positions, other| positions << 1 | u32::from(*other == byte))
}

/// Returns the masks of up to 64 bytes that follow the byte `before`. Bits past the end of `bytes` are set in
/// `attention` and `stop`.
pub(super) fn mask_block(bytes: &[u8], before: u8, classifier: &Classifier) -> MaskBlock {
    let mut block = MaskBlock::default();
    if bytes.len() < 64 {
        block.attention = !0 << bytes.len();
        block.stop = block.attention;
    }
    let mut previous = before;
    for (i, &byte) in bytes.iter().enumerate() {
        let pair = [previous, byte];
        block.newline |= u64::from(byte == b'\n') << i;
        let attention = classifier.attention().contains(byte) || pair == classifier.attention_pair;
        block.attention |= u64::from(attention) << i;
        block.stop |= u64::from(classifier.stop().contains(byte) || pair == classifier.stop_pair) << i;
        previous = byte;
    }
    block
}

/// Returns the masks of a whole text.
#[cfg(test)]
pub(super) fn mask_blocks(text: &[u8], classifier: &Classifier) -> Vec<MaskBlock> {
    let mut before = 0;
    let mut blocks = Vec::new();
    for bytes in text.chunks(64) {
        blocks.push(mask_block(bytes, before, classifier));
        before = bytes[bytes.len() - 1];
    }
    blocks
}
