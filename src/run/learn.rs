//! Records in, what their redirects and answers showed out: [`observe`].

use super::{Progress, RowGroup, RunError, RunOptions, RunRequest, Summary, canon};
use crate::batch::SourceRun;
use crate::canon::{Policy, Rows, Rung};
use crate::input::Sources;
use crate::learn::{Observations, RecordPlace, RowGroupObservations};
use crate::record::fields::FieldSet;

/// What was observed.
#[derive(Debug)]
pub struct ObserveResult {
    /// What reading came to.
    pub summary: Summary,
    /// Redirects and answers.
    pub observed: Observations,
    /// Names of the sources, in the order of their bytes: what [`RecordPlace::source`] counts in.
    pub sources: Vec<String>,
}

/// Why observing failed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// What was observed, and learning from it, would take more memory than is allowed.
    #[error(
        "{redirects} different redirects after {records} records, and what answered, are more than {limit} bytes hold"
    )]
    TooMuch {
        /// Bytes that are allowed.
        limit: usize,
        /// Different redirects seen so far.
        redirects: u64,
        /// Records read so far.
        records: u64,
    },
}

/// Gathers what the records of `inputs` show, on the rung `scheme` of `policy`, in about `memory` bytes, of which learning
/// from it has its share.
///
/// # Errors
/// As [`canon`]; more was shown than memory holds.
pub fn observe(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    memory: usize,
    progress: &Progress,
) -> Result<ObserveResult, RunError<ObserveError>> {
    let carry = FieldSet { status: true, redirect: true, redirected_from: true, ..FieldSet::default() };
    let policy = Policy { rung: Rung::Scheme, keep_input: false, carry, ..policy.clone() };
    let names = inputs.names();
    let mut sources = names.clone();
    sources.sort_unstable();
    let rank = |name: &String| sources.binary_search(name).unwrap_or(0) as u32;
    let ranks: Vec<u32> = names.iter().map(rank).collect();
    let mut observed = Observations::default();
    let encode = |group: RowGroup<'_>| Ok(Some(sightings(group.rows, group.runs, &ranks, &policy)));
    let append = |sightings: RowGroupObservations| {
        if observed.memory_len(&sightings) > memory {
            let (redirects, records) = (observed.redirect_count(), progress.records());
            return Err(ObserveError::TooMuch { limit: memory, redirects, records });
        }
        observed.add(sightings);
        Ok(())
    };
    let summary = canon(RunRequest::new(inputs, options, &policy, progress), encode, append)?;
    Ok(ObserveResult { summary, observed, sources })
}

/// What a span's rows show.
fn sightings(rows: &Rows, runs: &[SourceRun], ranks: &[u32], policy: &Policy) -> RowGroupObservations {
    let mut sightings = RowGroupObservations::default();
    sightings.unparsable(rows.tally.unreadable_redirects);
    let mut row = 0;
    for run in runs {
        for i in 0..run.rows {
            let place = RecordPlace { source: ranks[run.source as usize], record: run.first_record + u64::from(i) };
            see(rows, row, place, policy, &mut sightings);
            row += 1;
        }
    }
    sightings
}

/// What one row shows: where it redirects to, whose redirect it is the target of, or that it answered.
fn see(rows: &Rows, row: usize, place: RecordPlace, policy: &Policy, out: &mut RowGroupObservations) {
    let carried = &rows.carried;
    let status = carried.statuses[row];
    let (uri, to, from) = (rows.uri.get(row), carried.redirects.get(row), carried.redirected_from.get(row));
    if uri.is_empty() {
        return out.unparsable(u64::from(!to.is_empty()) + u64::from(!from.is_empty()));
    }
    let this = (uri, rows.key[row]);
    let other = |text| (text, policy.algorithm.key(text));
    if !from.is_empty() {
        // Its status is that of its own record.
        out.redirect(other(from), this, None, place);
    }
    match status {
        _ if !to.is_empty() => out.redirect(this, other(to), status, place),
        Some(status) => out.answer(uri, this.1, status),
        None => (),
    }
}
