//! What the readers of sources have in common, whether these are compressed or not: [`Unpacker`].

use super::error::Defect;
use std::vec::Drain;

pub(super) trait Unpacker: Send {
    /// Decompresses into `into`. Returns the number of bytes; 0 is the end.
    ///
    /// # Errors
    /// The defect that ends the source early. All bytes before it were returned.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect>;

    /// Bytes of the file consumed so far.
    fn consumed(&self) -> u64;

    /// Returns the ends of gzip members or zstd frames that were passed since the last call, in order; `None` for a compression
    /// whose parts are not records. An end may be ahead of the bytes that were read so far, but is never reported later than
    /// the bytes before it.
    fn take_ends(&mut self) -> Option<Drain<'_, MemberEnd>> {
        None
    }
}

/// Where a gzip member or a zstd frame ends, counted from the start of its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberEnd {
    /// Decompressed bytes before the end.
    pub(crate) unpacked: u64,
    /// Compressed bytes before the end.
    pub(crate) packed: u64,
}

impl MemberEnd {
    /// The same position counted from where `start` is counted from, for a reader that began at `start`.
    pub(super) fn after(self, start: MemberEnd) -> MemberEnd {
        MemberEnd { unpacked: start.unpacked + self.unpacked, packed: start.packed + self.packed }
    }
}
