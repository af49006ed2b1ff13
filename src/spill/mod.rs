//! Temporary files for data that does not fit into `--memory`, and the errors of using them.
//!
//! ```text
//! bytes          --ScratchFile::append, append_lz4--> file without a name --read, read_lz4--> the same bytes
//! record batch   --encode_batch--> Arrow IPC stream --decode_batch--> the same batch
//! texts          --TextSpool::append--> LZ4 in memory, then a file without a name --TextSpool::read--> single texts
//! pending rows   --RowSpool::append--> file without a name --RowSpool::read--> the same rows, in order
//! ```
//!
//! A scratch file has no name, so that the system removes it when the process ends, however it ends. Sorting and
//! deduplication both build on this module: [`crate::sort`] spills sorted runs, [`crate::dedup`] spills the keys of rows
//! that cannot be decided yet.

mod batch;
mod row_spool;
mod scratch;
mod text_spool;

pub(crate) use batch::{decode_batch, encode_batch};
pub(crate) use row_spool::{PendingRows, RowGroupExtent, RowSpool};
pub(crate) use scratch::{FileRange, ScratchFile, SpillError};
pub(crate) use text_spool::{TextBlock, TextSpool};
