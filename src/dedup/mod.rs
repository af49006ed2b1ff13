//! Deduplication: which of the rows with one key is kept. The result is exact, memory is bounded, and the number of threads
//! does not change the result. This module has the policies and data structures; [`crate::run`] has the job.
//!
//! ```text
//! keys of a row group --PartitionedKeys--> by partition --KeySet::insert--> new | present | unknown: out of memory
//!                                                                                           |
//!     Decisions: kept | duplicate | seen <--PartitionResolver-- EntrySpill <--PendingEntry--+
//!                                                               RowSpool   <--rows of pending entries
//! ```
//!
//! While memory lasts, it is decided immediately whether a row is kept: the first row of each key is. When the table of a
//! partition may not grow any more, or the policy needs all rows to choose one, rows are *pending*: they are stored in a
//! `spill::RowSpool` and their keys in an `EntrySpill`.
//!
//! - `keep`: which row of a key is kept ([`KeepPolicy`]).
//! - `key_table`, `key_set`: the keys of the job; `key_growth`: how many there will be; `key_count`: the number of distinct
//!   keys of several kinds; `key_pairs`: the keys that merge several other keys. `parallel` has the threads of both,
//!   `spilled_table` the tables of keys for which there was no memory at first, and `block_arena` the memory of tables.
//! - `entries`, `resolution`, `decisions`: pending rows and the decisions on them.
//! - `evidence`: tables of duplicates and groups; `survey`: statistics of duplicates.
//! - [`seen`]: keys of earlier jobs.

mod block_arena;
mod decisions;
mod entries;
pub(crate) mod evidence;
mod keep;
mod key_count;
mod key_growth;
mod key_pairs;
mod key_set;
mod key_table;
mod parallel;
mod resolution;
pub mod seen;
mod spilled_table;
mod survey;

pub(crate) use decisions::Decisions;
pub(crate) use entries::{EntryLayout, EntrySpill, EntryTexts, PendingEntry};
pub use keep::{Candidate, KeepPolicy};
pub(crate) use key_count::{KeyBuffer, KeyCounter, KindBits, MAX_KINDS, OnlyKind};
pub(crate) use key_pairs::{KeyPairs, MergedKeys, PairBuffer};
pub(crate) use key_set::{Inserted, KeySet, PARTITION_BITS, PARTITION_GROUPS, PARTITIONS, PartitionedKeys, key_number};
pub(crate) use key_table::KeyTable;
pub(crate) use resolution::Collision;
pub use resolution::Collisions;
pub(crate) use resolution::{PartitionResolver, resolve_by_order};
pub(crate) use survey::{Coverage, Estimate, Findings, HostFindings, RuleFindings};
pub(crate) use survey::{DuplicateSurvey, RowFate, RowGroupSurvey, SurveyRow, SurveyTotals};
#[cfg(all(test, feature = "cli"))]
pub(crate) use survey::{KeyFindings, SizeClass};
