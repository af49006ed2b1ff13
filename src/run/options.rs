//! How a run is done. None of this changes a row; `row_group_len` says where parts end.

use crate::record::Format;

/// The longest record that may be allowed, bytes. Percent-encoding makes three bytes of one, and the texts of a part
/// together with it must stay below the 2 GiB that Arrow's 32-bit offsets reach.
pub const MAX_RECORD_LEN: usize = 512 << 20;

/// The longest row group that may be asked for, bytes of input.
pub const MAX_ROW_GROUP_LEN: usize = 128 << 20;

/// How a run is done.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Worker threads; 0 is one a core.
    pub threads: usize,
    /// Bytes of input that become a part; at most [`MAX_ROW_GROUP_LEN`].
    pub row_group_len: usize,
    /// Bytes that are decoded at a time; whole records, so longer for a longer record.
    pub chunk_len: usize,
    /// The longest record with its end, bytes; at most [`MAX_RECORD_LEN`].
    pub max_record_len: usize,
    /// Map files where possible.
    pub mmap: bool,
    /// Format of all sources.
    pub format: Format,
    /// Types of the records of archives that become rows; all if there are none.
    pub record_types: Vec<String>,
    /// Tell how many keys are distinct; whoever finds it out anyhow spares the memory.
    pub count_distinct: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            threads: 0,
            row_group_len: 8 << 20,
            chunk_len: 256 << 10,
            max_record_len: 256 << 20,
            mmap: true,
            format: Format::Lines,
            record_types: Vec::new(),
            count_distinct: true,
        }
    }
}

impl RunOptions {
    /// The options within their limits.
    pub fn clamped(&self) -> RunOptions {
        let cores = || std::thread::available_parallelism().map_or(1, |count| count.get());
        RunOptions {
            threads: if self.threads == 0 { cores() } else { self.threads },
            row_group_len: self.row_group_len.clamp(1, MAX_ROW_GROUP_LEN),
            chunk_len: self.chunk_len.clamp(1, MAX_ROW_GROUP_LEN),
            max_record_len: self.max_record_len.clamp(1, MAX_RECORD_LEN),
            mmap: self.mmap,
            format: self.format.clone(),
            record_types: self.record_types.clone(),
            count_distinct: self.count_distinct,
        }
    }
}
