//! `dedup`: a job from its flags to its exit status, as `canon` does it, with a verdict on every row.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;

use super::args::Reporting;
use super::canon::{Failure, bar, close, fail, output_options, report};
use super::dedup_args::{DedupArgs, Plan};
use super::report::{DedupReport, Report};
use super::{drive, exit, summary};
use crate::canon::Policy;
use crate::dedup::evidence;
use crate::dedup::seen::{RunWriter, SeenError, Store};
use crate::output::{OutputError, Table};
use crate::run::{self, DedupError, Given, Progress};
use crate::{input, output};

impl From<SeenError> for Failure {
    fn from(error: SeenError) -> Failure {
        match error {
            SeenError::Missing(_) | SeenError::NotAStore(_) | SeenError::Locked(_) | SeenError::OtherPolicy { .. } => {
                Failure::Usage(error.to_string())
            }
            SeenError::Damaged { .. } => Failure::Input(error.to_string()),
            SeenError::Io { .. } => Failure::Temporary(error.to_string()),
        }
    }
}

impl From<DedupError> for Failure {
    fn from(error: DedupError) -> Failure {
        match error {
            DedupError::Output(error) => Failure::Output(error),
            DedupError::Spill(error) => Failure::Temporary(error.to_string()),
            DedupError::Seen(error) => error.into(),
            DedupError::Lost { .. } => Failure::Internal(error.to_string()),
        }
    }
}

pub(super) fn run(args: &DedupArgs) -> u8 {
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(message) => return fail(&format!("{message}\nFor more, try 'irikey dedup --help'."), exit::USAGE),
    };
    match perform(plan) {
        Ok((reporting, report)) => close(&reporting, &report, &summary(&report)),
        Err(failure) => failure.tell(),
    }
}

/// Everything up to the output's final name, and then the store's change.
fn perform(plan: Plan) -> Result<(Reporting, Report), Failure> {
    let begun = Instant::now();
    let Plan { job, mut dedup, seen, update, duplicates, groups } = plan;
    dedup.seen = seen.map(|seen| open(&seen, update, &job.policy)).transpose()?.map(Arc::new);
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let (names, total) = (sources.names(), sources.total_len());
    let made_for = output_options(&job.outputs, &job.policy, &names);
    let (encoder, mut output) = output::create(&job.outputs.destination, made_for)?;
    let progress = Arc::new(Progress::new());
    let bar = bar(job.reporting.progress, total, &progress);
    if let Some(path) = output.temporary_path() {
        input::remove_on_signal(path);
    }
    let options = drive::options(&job.inputs, &job.work, job.outputs.row_group_len);
    let mut duplicates = table(duplicates, evidence::duplicates_schema(), &job.policy, names.len())?;
    let mut groups = table(groups, evidence::groups_schema(), &job.policy, names.len())?;
    let append = |given| match given {
        Given::Kept(part) => output.append(part),
        Given::Duplicates(rows) => duplicates.as_mut().map_or(Ok(()), |table| table.append(&rows)),
        Given::Groups(rows) => groups.as_mut().map_or(Ok(()), |table| table.append(&rows)),
    };
    let ran = run::dedup(sources, &options, &dedup, &job.policy, &encoder, append, &progress);
    drop(bar);
    let deduped = ran?;
    if output.rows() != deduped.written {
        let message = format!("{} rows to write gave {} rows", deduped.written, output.rows());
        output.abort()?;
        return Err(Failure::Internal(message));
    }
    if duplicates.as_ref().is_some_and(|table| table.rows() != deduped.duplicates + deduped.seen) {
        let message = format!("{} duplicates are not all in their table", deduped.duplicates + deduped.seen);
        output.abort()?;
        return Err(Failure::Internal(message));
    }
    // The output comes last: when it bears its name, all is there.
    duplicates.into_iter().chain(groups).try_for_each(Table::finish)?;
    let finished = output.finish()?;
    input::forget();
    // Never before the output is whole: keys in the store without their rows would be lost to every later run.
    if let (Some(new_keys), Some(store)) = (deduped.new_keys, dedup.seen.and_then(Arc::into_inner)) {
        add(store, new_keys)?;
    }
    let counts = DedupReport {
        kept: deduped.kept,
        duplicates: deduped.duplicates,
        seen: deduped.seen,
        spilled: deduped.spilled,
        keep: dedup.keep.name(),
    };
    let report = report(&job, names, drive::ran(deduped.summary), finished, begun.elapsed());
    let report = Report { distinct: counts.kept, distinct_is_exact: true, dedup: Some(counts), ..report };
    Ok((job.reporting, report))
}

/// Opens a table beside the output, if there is to be one.
fn table(
    path: Option<PathBuf>,
    schema: SchemaRef,
    policy: &Policy,
    sources: usize,
) -> Result<Option<Table>, OutputError> {
    let table = path.map(|path| Table::create(&path, schema, &output::metadata(policy, sources))).transpose()?;
    if let Some(path) = table.as_ref().and_then(Table::temporary_path) {
        input::remove_on_signal(&path);
    }
    Ok(table)
}

fn open(directory: &Path, update: bool, policy: &Policy) -> Result<Store, SeenError> {
    if update {
        return Store::open_to_add(directory, &policy.describe());
    }
    let store = Store::open(directory)?;
    store.check_policy(&policy.describe())?;
    Ok(store)
}

fn add(mut store: Store, new_keys: RunWriter) -> Result<(), Failure> {
    let added = store.add(new_keys);
    added.map_err(|error| Failure::Temporary(format!("{error}; the output is whole, and a rerun gives the same one")))
}
