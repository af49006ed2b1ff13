//! Collects what records state about redirects, answers and contents: [`observe`].

use super::capture_sort::CaptureSort;
use super::content_rules::{LearnedContent, learn_content};
use super::{RowGroup, RunError, RunRequest, Summary, canon};
use crate::canon::{Policy, Rows, Rung};
use crate::learn::content::ContentLimits;
use crate::learn::{Observations, RecordPlace, RowGroupObservations};
use crate::record::fields::FieldSet;
use crate::spill::SpillError;
use std::path::PathBuf;

/// How observations are held.
#[derive(Clone, Debug)]
pub(crate) struct ObserveOptions {
    /// Bytes of memory for observations, and for learning from them.
    pub(crate) memory: usize,
    /// Directory of temporary files.
    pub(crate) directory: PathBuf,
    /// What rules about content need; `None` if none are learned.
    pub(crate) content: Option<ContentLimits>,
}

/// The result of [`observe`].
#[derive(Debug)]
pub(crate) struct ObserveResult {
    /// Summary of the run.
    pub(crate) summary: Summary,
    /// Observed redirects and answers.
    pub(crate) observed: Observations,
    /// Names of the sources, sorted by bytes; [`RecordPlace::source`] is an index of this list.
    pub(crate) sources: Vec<String>,
    /// Rules about content.
    pub(crate) content: Option<LearnedContent>,
}

/// Why observations could not be collected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    /// The observations, and learning from them, would exceed the memory limit.
    #[error(
        "{redirects} distinct redirects after {records} records exceed the limit of {limit} bytes, half of the memory for data"
    )]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// Distinct redirects so far.
        redirects: u64,
        /// Records read so far.
        records: u64,
    },
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
}

/// Collects the redirects and answers that the records of a run state, on the rung `scheme` of its policy, and learns rules about
/// content from their captures.
///
/// # Errors
/// As [`canon`]; the observations of redirects exceed the limit; temporary files cannot be used.
pub(crate) fn observe(
    request: RunRequest<'_>,
    options: &ObserveOptions,
) -> Result<ObserveResult, RunError<ObserveError>> {
    let redirects = FieldSet { status: true, redirect: true, redirected_from: true, ..FieldSet::default() };
    let is_validated = options.content.is_some_and(|limits| limits.held_out > 0.0);
    let content = FieldSet {
        time: is_validated,
        digest: true,
        payload_digest: true,
        mime: true,
        truncated: true,
        capture_length: true,
        ..redirects
    };
    let carry = if options.content.is_some() { content } else { redirects };
    let policy = Policy { rung: Rung::Scheme, keep_input: false, carry, ..request.policy.clone() };
    let request = RunRequest { policy: &policy, ..request };
    let (names, progress, threads) = (request.sources.names(), request.progress, request.options.threads);
    let mut sources = names.clone();
    sources.sort_unstable();
    let rank = |name: &String| sources.binary_search(name).unwrap_or(0) as u32;
    let ranks: Vec<u32> = names.iter().map(rank).collect();
    let memory = options.memory / 2;
    let mut observed = Observations::default();
    let held_out = options.content.map_or(0.0, |limits| limits.held_out);
    let sort = CaptureSort::new(held_out).map_err(|error| RunError::Output(error.into()))?;
    let mut captures = CaptureSort::new_runs(options.memory - memory, &options.directory);
    let encode = |group: RowGroup<'_>| {
        let blocks = sort.sort(&group, options.content.is_some())?;
        Ok(Some((observe_row_group(&group, &ranks, &policy), blocks)))
    };
    let append = |(observations, blocks): (RowGroupObservations, _)| {
        if observed.memory_len(&observations) > memory {
            let (redirects, records) = (observed.redirect_count(), progress.records());
            return Err(ObserveError::TooLarge { limit: memory, redirects, records });
        }
        observed.add(observations);
        Ok(captures.add(blocks)?)
    };
    let summary = canon(request, encode, append)?;
    observed.prepare_answers(policy.algorithm);
    let limits = options.content.unwrap_or_default();
    let content = learn_content(captures, &sort, (threads, &options.directory), &limits, &mut observed)?;
    Ok(ObserveResult { summary, observed, sources, content: options.content.map(|_| content) })
}

/// Returns what the records of a row group state.
fn observe_row_group(group: &RowGroup<'_>, ranks: &[u32], policy: &Policy) -> RowGroupObservations {
    let mut observations = RowGroupObservations::default();
    observations.unparsable(group.rows.tally.unreadable_redirects);
    let mut row = 0;
    for run in group.runs {
        for i in 0..run.rows {
            let place = RecordPlace { source: ranks[run.source as usize], record: run.first_record + u64::from(i) };
            ObservedRow { rows: group.rows, row, place }.observe(policy, &mut observations);
            row += 1;
        }
    }
    observations
}

/// A row and the place of its record.
struct ObservedRow<'a> {
    rows: &'a Rows,
    row: usize,
    place: RecordPlace,
}

impl ObservedRow<'_> {
    /// Adds what the record states: the target of its redirect, the URL that redirected to it, or its answer.
    fn observe(&self, policy: &Policy, out: &mut RowGroupObservations) {
        let ObservedRow { rows, row, place } = *self;
        let carried = &rows.carried;
        let status = carried.statuses[row];
        let (uri, to, from) = (rows.uri.get(row), carried.redirects.get(row), carried.redirected_from.get(row));
        if uri.is_empty() {
            return out.unparsable(u64::from(!to.is_empty()) + u64::from(!from.is_empty()));
        }
        let this = (uri, rows.key[row]);
        let other = |text| (text, policy.algorithm.key(text));
        if !from.is_empty() {
            // The status of that redirect is in the record of `from`.
            out.redirect(other(from), this, None, place);
        }
        if !to.is_empty() {
            out.redirect(this, other(to), status, place);
        }
    }
}
