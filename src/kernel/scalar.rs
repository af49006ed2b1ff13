//! The definitions: what each kernel does, a byte at a time.

use super::{Block, Classifier};

/// Digits of escapes, RFC 3986 section 2.1: upper case.
pub const HEX: [u8; 16] = *b"0123456789ABCDEF";

pub fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        out.extend_from_slice(&[b'%', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
pub fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    bytes.iter().rev().fold(0, |positions, other| positions << 1 | u32::from(*other == byte))
}

/// Marks of up to 64 bytes, the byte `before` standing in front of them; past the end all but `newline` are set.
pub fn block(bytes: &[u8], before: u8, classifier: &Classifier) -> Block {
    let mut block = Block::default();
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

/// All marks of a text.
#[cfg(test)]
pub fn blocks(text: &[u8], classifier: &Classifier) -> Vec<Block> {
    let mut before = 0;
    let mut blocks = Vec::new();
    for bytes in text.chunks(64) {
        blocks.push(block(bytes, before, classifier));
        before = bytes[bytes.len() - 1];
    }
    blocks
}
