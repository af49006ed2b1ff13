//! External sort: record batches in any order in, the same rows in order out, in bounded memory.
//!
//! ```text
//! batch of a row group --SortSchema::sort--> a sorted run of encoded blocks
//!     --SortedRuns--> memory, and beyond its limit a temporary file
//!     --RunFileWriter--> a file with a name, which a later job can merge
//! SortedRuns --Merger--> PickedRows: consecutive rows --SortSchema::gather--> batch of a row group
//! ```
//!
//! `BytesSorter` sorts byte strings, without columns and batches. Both keep their runs in `held_runs`.
//!
//! Rows are ordered by their partition, by the columns of a [`SortBy`], and then by their position in the input, so that
//! no two rows are equal and the result does not depend on threads or memory. Sorting by partition first means that
//! output files are written one after the other. [`OrderCheck`] verifies the order of rows that were written.

mod block;
mod byte_strings;
mod held_runs;
mod loser_tree;
mod merge;
mod offset_code;
mod order;
mod partition;
mod prefix;
mod run_file;
mod runs;

pub(crate) use block::{EncodedBlock, PickedRows, PlainMemory, SortSchema};
pub(crate) use byte_strings::{BytesBuffer, BytesMerger, BytesRun, BytesRuns, BytesSorter};
pub(crate) use merge::MergeLimits;
pub use order::{OrderCheck, OrderError, SortBy};
pub(crate) use order::{OrderColumn, SORT_METADATA_KEY, line_key};
pub use partition::{Partition, SplitPoints};
pub(crate) use run_file::RunFileWriter;
pub(crate) use runs::SortedRuns;
