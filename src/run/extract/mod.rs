//! Finds the links of documents: [`extract_links`].
//!
//! ```text
//! sources --DocumentUnits--> units --LinkFinder, on all threads--> blocks of rows, in order --> append
//! ```

mod links;
mod rows;
mod units;

use crate::extract::DocumentContext;
use crate::input::Sources;
use crate::ordered::{QueueLimits, ReadAhead};
use crate::output::OutputError;
use links::LinkFinder;
pub(crate) use links::{ExtractCounts, FoundLinks, MAX_MESSAGES};
use parking_lot::Mutex;
use rows::LinkRows;
pub(crate) use rows::{LINK_COLUMNS, RowLayout};
use units::{DocumentUnits, ReadOptions, ReadUnit, RowRoom};

use super::{Progress, RunError};

/// Bytes of encoded rows that wait for those of earlier documents.
const MAX_WAITING_LEN: usize = 32 << 20;

/// How links are found.
#[derive(Clone, Debug)]
pub(crate) struct ExtractOptions {
    /// What the user states of all documents.
    pub(crate) context: DocumentContext,
    /// Maximum length of a document, in bytes.
    pub(crate) max_len: usize,
    /// Maximum number of rows. With a limit, one thread reads.
    pub(crate) limit: Option<u64>,
    pub(crate) threads: usize,
    /// The columns of the rows.
    pub(crate) layout: RowLayout,
}

/// Finds the links of all documents, on all threads, and calls `append` with them, in the order of the documents.
///
/// # Errors
/// The threads cannot be started, rows cannot be encoded, or `append` fails.
pub(crate) fn extract_links(
    sources: Sources,
    options: ExtractOptions,
    progress: &Progress,
    mut append: impl FnMut(FoundLinks) -> Result<(), OutputError>,
) -> Result<(), RunError<OutputError>> {
    let found = find_links(sources, options).map_err(|error| RunError::Threads(error.to_string()))?;
    for found in found {
        let lost = |_| RunError::Panicked("a thread that read documents".to_string());
        let found = found.map_err(lost)?.map_err(RunError::Output)?;
        progress.add_read(found.read_len);
        progress.add(found.links.links, found.links.links);
        append(found).map_err(RunError::Output)?;
    }
    Ok(())
}

/// Starts the threads that find links.
fn find_links(
    sources: Sources,
    ExtractOptions { context, max_len, limit, threads, layout }: ExtractOptions,
) -> std::io::Result<ReadAhead<Result<FoundLinks, OutputError>>> {
    let options = ReadOptions { context, max_len, room: RowRoom::new(limit) };
    let mut units = DocumentUnits::new(sources, options.clone());
    let next = move |_| units.next().map(|unit| (unit.unit.weight(), unit));
    let unused = Mutex::<Vec<LinkRows>>::default();
    let threads = if limit.is_some() { 1 } else { threads };
    let limits = QueueLimits { window: 2 * threads, bytes: MAX_WAITING_LEN };
    ReadAhead::spawn(threads, limits, next, move |unit: ReadUnit, sender| {
        let rows = unused.lock().pop().unwrap_or_else(|| LinkRows::new(&layout));
        let mut give = |found: Result<FoundLinks, OutputError>| {
            let len = found.as_ref().map_or(0, |found| found.links.rows.len());
            sender.push(found, len)
        };
        let rows = LinkFinder::new(&options, rows, &mut give).read(unit);
        unused.lock().push(rows);
    })
}
