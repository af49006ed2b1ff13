//! The run whose rows are written in the order of the input: [`canon_encoded`].

use parking_lot::Mutex;

use super::canonicalize::{RowGroup, canon};
use super::error::RunError;
use super::options::RunRequest;
use super::summary::Summary;
use crate::output::{Encoder, FileRows, OutputError, Part};

/// The stage in which slices are put together.
const JOIN_STAGE: usize = 0;

/// [`canon`], with rows that `encoder` encodes. If files have `file_rows` rows, no part that `append` gets belongs to two
/// files.
///
/// If the format allows it, workers take slices of row groups. Slices of lines follow each other in the file. Slices of a row
/// group of Parquet are joined by the worker with the last one. Where slices end depends on the input only.
///
/// # Errors
/// As [`canon`].
pub(crate) fn canon_encoded(
    request: RunRequest<'_>,
    encoder: &Encoder,
    file_rows: Option<u64>,
    mut append: impl FnMut(Part) -> Result<(), OutputError> + Send,
) -> Result<Summary, RunError<OutputError>> {
    let joins_slices = encoder.joins_slices();
    let request = if joins_slices || !encoder.has_groups() { request.in_slices() } else { request };
    let request = request.with_stages(JOIN_STAGE + 1);
    let group = Mutex::new(Vec::new());
    let encode = |RowGroup { rows, runs, ticket, ends_group }: RowGroup<'_>| {
        let files = file_rows.map(|limit| FileRows { written: ticket.first_row(), limit });
        let ends_file = files.is_some_and(|files| files.remaining() == rows.len() as u64);
        let slices = encoder.slices(rows, runs, files)?;
        if !joins_slices {
            return slices.into_iter().map(|slice| encoder.join(vec![slice])).collect::<Result<_, _>>().map(Some);
        }
        let add = || add_slices(&mut group.lock(), slices, ends_group || ends_file);
        let Some(groups) = ticket.pass(JOIN_STAGE, add) else { return Ok(None) };
        groups.into_iter().map(|group| encoder.join(group)).collect::<Result<Vec<_>, _>>().map(Some)
    };
    let summary = canon(request, encode, |parts| parts.into_iter().try_for_each(&mut append))?;
    let rest = group.into_inner();
    let appended = if rest.is_empty() { Ok(()) } else { encoder.join(rest).and_then(append) };
    appended.map(|()| summary).map_err(RunError::Output)
}

/// Adds slices to `group`, and returns the row groups that are complete. Each slice but the last ends a row group.
fn add_slices(group: &mut Vec<Part>, slices: Vec<Part>, last_ends_group: bool) -> Vec<Vec<Part>> {
    let (count, mut complete) = (slices.len(), Vec::new());
    for (number, slice) in (1..).zip(slices) {
        group.push(slice);
        if number < count || last_ends_group {
            complete.push(std::mem::take(group));
        }
    }
    complete
}
