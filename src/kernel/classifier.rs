//! Which bytes a [`super::Bitmaps`] marks: the caller's sets, compiled into the forms that the kernels read.

#[cfg(target_arch = "x86_64")]
use super::NibbleTables;
use super::byte_set::Runs;
use super::{Block, ByteSet};

/// Two sets of bytes, each joined by one pair: a byte is marked when it is in the set, or when it is the pair's second
/// byte and the pair's first stands before it.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    attention: ByteSet,
    stop: ByteSet,
    /// Nibble form of `attention`.
    #[cfg(target_arch = "x86_64")]
    pub(super) attention_tables: NibbleTables,
    /// Nibble form of the complement of `stop`, which is the smaller set.
    #[cfg(target_arch = "x86_64")]
    pub(super) go_tables: NibbleTables,
    /// Runs of `attention`.
    pub(super) attention_runs: Runs,
    /// Runs of the complement of `stop`.
    pub(super) go_runs: Runs,
    pub(super) attention_pair: [u8; 2],
    pub(super) stop_pair: [u8; 2],
}

impl Classifier {
    /// A classifier; `attention` and the complement of `stop` must each have at most eight different rows
    /// (see [`ByteSet::nibbles`]).
    pub const fn new(attention: ByteSet, attention_pair: [u8; 2], stop: ByteSet, stop_pair: [u8; 2]) -> Classifier {
        assert!(attention.contains(0) && stop.contains(0), "the padding of the last block must be marked");
        Classifier {
            attention,
            stop,
            #[cfg(target_arch = "x86_64")]
            attention_tables: attention.nibbles(),
            #[cfg(target_arch = "x86_64")]
            go_tables: stop.not().nibbles(),
            attention_runs: attention.runs(),
            go_runs: stop.not().runs(),
            attention_pair,
            stop_pair,
        }
    }

    /// Bytes marked in the attention lane wherever they stand.
    pub const fn attention(&self) -> &ByteSet {
        &self.attention
    }

    /// Bytes marked in the stop lane wherever they stand.
    pub const fn stop(&self) -> &ByteSet {
        &self.stop
    }
}

/// What a kernel tells of 64 bytes, before pairs are joined: one bit a byte.
pub(super) struct Marks {
    pub(super) newline: u64,
    /// In the attention set.
    pub(super) attention: u64,
    /// First and second bytes of the attention pair, wherever they stand.
    pub(super) attention_pair: [u64; 2],
    /// In the stop set.
    pub(super) stop: u64,
    /// Likewise of the stop pair.
    pub(super) stop_pair: [u64; 2],
}

/// Appends the blocks of `text`: `marks` tells of whole ones, pairs are joined across their ends, and what is left past
/// the last whole one is done by the definition. Inlined, so that `marks` runs with its caller's instructions.
#[inline(always)]
pub(super) fn push_blocks(
    text: &[u8],
    classifier: &Classifier,
    blocks: &mut Vec<Block>,
    marks: impl Fn(&[u8; 64]) -> Marks,
) {
    let (whole, tail) = text.as_chunks::<64>();
    let (mut attention_before, mut stop_before) = (0, 0);
    let pairs = |[firsts, seconds]: [u64; 2], before: u64| seconds & (firsts << 1 | before);
    blocks.extend(whole.iter().map(|bytes| {
        let marks = marks(bytes);
        let block = Block {
            newline: marks.newline,
            attention: marks.attention | pairs(marks.attention_pair, attention_before),
            stop: marks.stop | pairs(marks.stop_pair, stop_before),
        };
        attention_before = marks.attention_pair[0] >> 63;
        stop_before = marks.stop_pair[0] >> 63;
        block
    }));
    if !tail.is_empty() {
        let before = whole.last().map_or(0, |bytes| bytes[63]);
        blocks.push(super::scalar::block(tail, before, classifier));
    }
}
