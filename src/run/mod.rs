//! Jobs over sources: canonicalize, deduplicate, sort, count, compare keys and learn. This module connects all lower modules
//! and owns the threads and the memory budget of a job.
//!
//! ```text
//!            one worker at a time      every worker                            one worker at a time, in order
//! Sources --[cut: row groups]----> text or rows --decode--> records --canon--> Rows --encode--> append
//!                                                               ^
//!                                            [stage: record numbers, in order]
//! ```
//!
//! A **row group** is the unit of output order: the whole records that begin in one range of `row_group_len` bytes of the
//! concatenated sources. So rows and their bytes depend on the sources, the format and `row_group_len` only, and not on the
//! number of threads, the chunk length, memory mapping or timing. At most two row groups per thread are between cutting and
//! appending, which bounds memory. Workers take the row groups of Parquet slice by slice; then at most two slices per thread
//! and one row group are between cutting and appending. Jobs that append nothing need no limit, because a row group ends with
//! its worker.
//!
//! # Example
//!
//! A job that writes the URLs of a file to Parquet:
//!
//! ```
//! use irikey::batch::ColumnSet;
//! use irikey::canon::Policy;
//! use irikey::output::{self, Compression, Destination, OutputFormat, OutputOptions};
//! use irikey::run::{self, Progress, RunOptions, RunRequest};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let (list, target) = (directory.path().join("urls.txt"), directory.path().join("urls.parquet"));
//! # std::fs::write(&list, "HTTP://example.org:80\nhttp://example.org/\n../x\n")?;
//! let sources = irikey::input::list(&[list])?;
//! let columns = ColumnSet::named(["source", "record", "uri", "key", "fault"])?;
//! let policy = columns.complete_policy(Policy::default());
//! let output_options = OutputOptions {
//!     format: OutputFormat::Parquet,
//!     compression: Compression::default(),
//!     columns,
//!     policy,
//!     sources: sources.names(),
//! };
//! let (encoder, mut output) = output::create(&Destination::File(target), output_options)?;
//!
//! let (options, progress) = (RunOptions::default(), Progress::new());
//! let request = RunRequest::new(sources, &options, encoder.policy(), &progress);
//! let encode = |group: run::RowGroup<'_>| encoder.encode(group.rows, group.runs).map(Some);
//! let summary = run::canon(request, encode, |encoded| output.append(encoded))?;
//! output.finish()?;
//! // A source that cannot be read, or is damaged, does not stop the run.
//! if let Some(error) = summary.input_errors.first() {
//!     return Err(error.to_string().into());
//! }
//! assert_eq!((summary.rows, summary.tally.faulty, summary.distinct_keys), (3, 1, 2));
//! # Ok(())
//! # }
//! ```
//!
//! [`dedup()`] and [`sort()`] write some of the rows, or in another order; [`count()`] and [`compare_keys`] write none.
//!
//! # Modules
//!
//! - Reading: `open_source` detects the format of a source. `body` holds its text; `row_reader` and `archive` read what
//!   gives rows instead. `cut` makes row groups of both, and `line_counts` counts lines for it.
//! - Making rows: `canonicalize` has the run that all jobs share. `worker` is one thread of it, `in_order` starts the threads
//!   and appends their results in order, and `distinct` counts keys. `by_input` makes runs of several inputs side by side, and
//!   `as_finished` takes their results.
//! - Jobs over rows: `sort`, `dedup`, `count`, `key_diff` and `learn`. `row_key` is the choice among the keys of a row.
//! - `extract` finds links in documents. Files that are read for other reasons: `check_sorted`, `documents`, `equivalences`.
//! - `options` and `summary` are what a run takes and returns; `budget` and `memory` are the memory of a job.

mod archive;
mod as_finished;
mod body;
mod budget;
mod by_input;
mod canonicalize;
mod check_sorted;
mod count;
mod cut;
mod dedup;
mod distinct;
#[cfg(feature = "cli")]
mod documents;
mod equivalences;
mod error;
#[cfg(feature = "cli")]
mod extract;
mod in_order;
mod key_diff;
#[cfg(feature = "cli")]
mod learn;
mod line_counts;
pub(crate) mod memory;
mod open_source;
mod options;
mod row_key;
mod row_reader;
mod sort;
mod summary;
mod worker;

#[cfg(feature = "cli")]
pub(crate) use as_finished::as_finished;
pub(crate) use budget::{Budget, BudgetError, WorkerNeed};
#[cfg(feature = "cli")]
pub(crate) use by_input::{InputRun, OrderedSummaries, ThreadShares};
pub use canonicalize::{RowGroup, canon};
pub(crate) use canonicalize::{Ticket, canon_encoded};
pub(crate) use check_sorted::sorted_rows_counter;
pub use check_sorted::{CheckSortedError, CheckSortedReason, check_sorted};
pub use count::{CountMethod, DistinctCounts, count};
pub use dedup::{DedupError, DedupOptions, DedupOutput, DedupSummary, DedupTotals, dedup};
pub(crate) use dedup::{KeyedFileDefect, KeyedFileError, KeyedFiles, dedup_keyed_files};
#[cfg(feature = "cli")]
pub(crate) use documents::SkipReason;
pub(crate) use equivalences::read_equivalences;
#[cfg(feature = "cli")]
pub(crate) use equivalences::read_evidence;
pub use error::{ReadError, RunError};
#[cfg(feature = "cli")]
pub(crate) use extract::{
    ExtractCounts, ExtractOptions, FoundLinks, LINK_COLUMNS, MAX_MESSAGES, RowLayout, extract_links,
};
pub use key_diff::{KeyDiffOptions, KeyDifference, KeyMerges, RuleMerges, compare_keys};
#[cfg(feature = "cli")]
pub(crate) use learn::{
    ContentCounts, DiskSorters, DocumentCounts, DocumentOptions, LearnedContent, ObserveError, ObserveOptions,
    ObserveResult, PartsError, Validation, observe,
};
pub(crate) use options::{MAX_RECORD_LEN, MAX_ROW_GROUP_LEN, core_count};
pub use options::{MAX_THREADS, RunOptions, RunRequest};
pub use row_key::RowKey;
#[cfg(feature = "cli")]
pub(crate) use sort::{MAX_SORTED_SOURCE_ROWS, MAX_SORTED_SOURCES};
pub use sort::{PartCut, SortError, SortOptions, SortSummary, SortedRows, sort};
pub(crate) use sort::{Sorter, columns_to_sort};
pub(crate) use summary::{Advice, FaultExample};
pub use summary::{Phase, Progress, Summary};
