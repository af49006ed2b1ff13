//! Batches in any order in, the same rows in order out; exact, in bounded memory, and the same answer however the work
//! is shared.
//!
//! ```text
//! batch of a span --Shape::sort--> a run of blocks --Runs--> memory, and past its limit a file without a name
//!                              (or KeptRuns: a file with a name, which outlives the process)
//! Runs --Merger--> groups: rows that follow each other --Shape::gather--> batch of a row group
//! ```
//!
//! The order is that of the columns asked for, then that of the input, so that no two rows are equal. Where a group, a
//! part or a partition ends depends on the rows alone. Partitions are the first thing that is sorted by, so that one
//! file is written after the other.

mod block;
mod by;
mod check;
mod kept;
mod merge;
mod partition;
mod runs;

pub use block::{Packed, Shape};
pub use by::{OrderColumn, SortBy};
pub use check::{Check, CheckError};
pub use kept::KeptRuns;
pub use merge::{Group, Limits, Merger};
pub use partition::{Partition, SplitPoints};
pub use runs::Runs;
