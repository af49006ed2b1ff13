//! Which bytes a [`super::Bitmaps`] marks: the caller's sets, compiled into the forms that the kernels read.

use super::{ByteSet, NibbleTables};

/// Two sets of bytes, each joined by one pair: a byte is marked when it is in the set, or when it is the pair's second
/// byte and the pair's first stands before it.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    attention: ByteSet,
    stop: ByteSet,
    /// Nibble form of `attention`.
    pub(super) attention_tables: NibbleTables,
    /// Nibble form of the complement of `stop`, which is the smaller set.
    pub(super) go_tables: NibbleTables,
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
            attention_tables: attention.nibbles(),
            go_tables: stop.not().nibbles(),
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
