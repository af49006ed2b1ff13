//! Collects what records state about redirects and answers: [`observe`].

use super::{RowGroup, RunError, RunRequest, Summary, canon};
use crate::canon::{Policy, Rows, Rung};
use crate::learn::{Observations, RecordPlace, RowGroupObservations};
use crate::record::fields::FieldSet;

/// The result of [`observe`].
#[derive(Debug)]
pub struct ObserveResult {
    /// Summary of the run.
    pub summary: Summary,
    /// Observed redirects and answers.
    pub observed: Observations,
    /// Names of the sources, sorted by bytes; [`RecordPlace::source`] is an index of this list.
    pub sources: Vec<String>,
}

/// Why observations could not be collected.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The observations, and learning from them, would exceed the memory limit.
    #[error(
        "{redirects} distinct redirects after {records} records, and the URLs that answered, exceed the limit of {limit} bytes"
    )]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
        /// Distinct redirects so far.
        redirects: u64,
        /// Records read so far.
        records: u64,
    },
}

/// Collects the redirects and answers that the records of a run state, on the rung `scheme` of its policy. `memory` is the
/// limit in bytes of the observations and of learning from them.
///
/// # Errors
/// As [`canon`]; the observations exceed the limit.
pub fn observe(request: RunRequest<'_>, memory: usize) -> Result<ObserveResult, RunError<ObserveError>> {
    let carry = FieldSet { status: true, redirect: true, redirected_from: true, ..FieldSet::default() };
    let policy = Policy { rung: Rung::Scheme, keep_input: false, carry, ..request.policy.clone() };
    let request = RunRequest { policy: &policy, ..request };
    let (names, progress) = (request.sources.names(), request.progress);
    let mut sources = names.clone();
    sources.sort_unstable();
    let rank = |name: &String| sources.binary_search(name).unwrap_or(0) as u32;
    let ranks: Vec<u32> = names.iter().map(rank).collect();
    let mut observed = Observations::default();
    let encode = |group: RowGroup<'_>| Ok(Some(observe_row_group(&group, &ranks, &policy)));
    let append = |observations: RowGroupObservations| {
        if observed.memory_len(&observations) > memory {
            let (redirects, records) = (observed.redirect_count(), progress.records());
            return Err(ObserveError::TooLarge { limit: memory, redirects, records });
        }
        observed.add(observations);
        Ok(())
    };
    let summary = canon(request, encode, append)?;
    Ok(ObserveResult { summary, observed, sources })
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
        match status {
            _ if !to.is_empty() => out.redirect(this, other(to), status, place),
            Some(status) => out.answer(uri, this.1, status),
            None => (),
        }
    }
}
