//! `dedup`: writes one row per key, and remembers keys in a store for later jobs.

mod args;
mod keyed_files;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;

pub(crate) use self::args::DedupArgs;
use self::keyed_files::keyed_files;
use super::args::PROTOCOL;
use super::error::CommandError;
use super::files::{OutputFiles, WrittenFiles, check_written};
use super::job::Job;
use super::progress::{TimelineSample, watch};
use super::report::{CollisionReport, DedupReport, Report, after_closed_pipe};
use super::terminal::{print_error, visible};
use crate::canon::{Policy, RecipeColumn};
use crate::dedup::evidence::{self, RecordLocator};
use crate::dedup::seen::{FinishedJob, SeenError, SeenStore};
use crate::dedup::{Collision, KeepPolicy};
use crate::input::Sources;
use crate::output::{self, Encoder, OutputError, TableWriter};
use crate::run::{self, DedupOptions, DedupOutput, DedupSummary, DedupTotals, RowKey, RunRequest};

pub(crate) fn run(args: &DedupArgs) -> Result<u8, CommandError> {
    perform(args).map_err(|error| after_closed_pipe(error, &args.reporting))
}

/// Everything until the output has its final name, then the report, and then the change of the store. Returns the exit code.
fn perform(args: &DedupArgs) -> Result<u8, CommandError> {
    let started = Instant::now();
    let (mut job, mut dedup) = args.job()?;
    let sources = job.input.sources()?;
    let replaced = job.files.check(&sources)?;
    dedup.seen = args.open_store(&describe_keys(&job, dedup.key))?;
    let identity = args.identity(&job, &sources);
    if let Some((store, identity)) = dedup.seen.as_ref().zip(identity.as_ref())
        && let Some(status) = identity.status_before(store, args.reporting.fail_on_fault)?
    {
        if let Some(report) = &args.reporting.report {
            let report = report.display().to_string();
            print_error(&format!("{}: not written: a report is about the run that did the job", visible(&report)));
        }
        return Ok(status);
    }
    let names = sources.names();
    let ((mut deduped, outputs), timeline) = deduplicate(args, &mut job, &mut dedup, sources)?;
    let replaced = job.files.replaced_after(replaced, deduped.summary.is_nothing_read());
    let WrittenFiles { whole, files } = outputs.finish(&job, &mut deduped)?;
    let output_len = whole.as_ref().map_or(0, |whole| whole.bytes);
    let counts = count_rows(&job, &dedup, &deduped, &names);
    print_warnings(&counts);
    let (summary, findings) = (std::mem::take(&mut deduped.summary), deduped.findings.take());
    let report = job.report(names, summary, whole, started.elapsed());
    let temporary_bytes = Some(counts.totals.spilled);
    let report = Report { files, dedup: Some(counts), timeline, findings, temporary_bytes, replaced, ..report };
    args.input.print_unused_flag(&report.summary, args.reporting.quiet);
    let has_new_keys = deduped.new_keys.is_some();
    let status = report.conclude(&args.reporting).map_err(|error| after_missing_report(error, has_new_keys))?;
    // The store changes last. Keys without rows would be lost to every later job, and a job whose keys are in the store is not
    // done again, so that a report after it could be missing for good.
    let store = dedup.seen.take().and_then(Arc::into_inner);
    let finished_job = identity.map(|identity| identity.finished(output_len, report.status(true)));
    store.map_or(Ok(()), |store| add_to_store(store, &mut deduped, finished_job))?;
    Ok(status)
}

/// The error of a job whose report cannot be written, so that the store is not changed.
fn after_missing_report(error: CommandError, has_new_keys: bool) -> CommandError {
    match error {
        CommandError::SideFile(message) if has_new_keys => {
            CommandError::SideFile(format!("{message}, but its keys are not in the store; run the job again"))
        }
        error => error,
    }
}

/// Deduplicates the sources and writes rows to outputs, which are not complete yet. Also returns samples for a report.
fn deduplicate(
    args: &DedupArgs,
    job: &mut Job,
    dedup: &mut DedupOptions,
    sources: Sources,
) -> Result<((DedupSummary, DedupOutputs), Vec<TimelineSample>), CommandError> {
    let files = keyed_files(&sources, job, dedup, args)?;
    let (encoder, mut outputs) = DedupOutputs::create(args, job, &sources.names())?;
    let (deduped, timeline) = watch(job.reporting, sources.total_len(), |progress| {
        let append = |given| outputs.append(given);
        let request = RunRequest::new(sources, &job.options, &job.policy, progress);
        match files {
            Some(files) => run::dedup_keyed_files(request, files, dedup, &encoder, append),
            None => run::dedup(request, dedup, &encoder, append),
        }
    });
    Ok(((deduped?, outputs), timeline))
}

/// The name of a key; empty if it is that of the rung.
fn key_name(policy: &Policy, key: RowKey) -> String {
    match key {
        RowKey::Rung => String::new(),
        RowKey::More(place) => policy.more_keys.get(place).map_or("", |rung| rung.name()).to_string(),
        RowKey::Recipe(place) => policy.recipes.get(place).map(RecipeColumn::describe).unwrap_or_default(),
        RowKey::Protocol => PROTOCOL.to_string(),
    }
}

/// What the keys in a store depend on: the policy, and which of its keys they are, `dedup_key`. `max_record` counts if records
/// may be shorter than URLs.
fn describe_keys(Job { policy, options, .. }: &Job, key: RowKey) -> Vec<(&'static str, String)> {
    let max_record = Some(options.max_record_len).filter(|len| *len < policy.max_url_len.0);
    let max_record = max_record.map_or(String::new(), |len| len.to_string());
    let of_store = [("max_record", max_record), ("dedup_key", key_name(policy, key))];
    policy.describe_keys().into_iter().chain(of_store).collect()
}

fn count_rows(job: &Job, dedup: &DedupOptions, deduped: &DedupSummary, names: &[String]) -> DedupReport {
    DedupReport {
        totals: deduped.totals,
        key: key_name(&job.policy, dedup.key),
        keep: dedup.keep,
        collisions: dedup.verify.then(|| collisions(deduped, names)),
    }
}

/// The number of collisions, and the places of the first ones.
fn collisions(deduped: &DedupSummary, names: &[String]) -> (u64, Vec<CollisionReport>) {
    let places = RecordLocator::new(names.to_vec(), &deduped.summary.source_records);
    let report = |collision: &Collision| CollisionReport {
        key: format!("{:032x}", collision.key),
        rows: [0, 1].map(|i| {
            let (source, record) = places.find(collision.ordinals[i]);
            (source.to_string(), record, String::from_utf8_lossy(&collision.texts[i]).into_owned())
        }),
    };
    (deduped.collisions.count, deduped.collisions.examples.iter().map(report).collect())
}

/// Prints what a person should know even with --quiet.
fn print_warnings(counts: &DedupReport) {
    let DedupTotals { kept, duplicates, seen, undated, .. } = counts.totals;
    let keep = counts.keep;
    let compares_only_times = matches!(keep, KeepPolicy::Newest | KeepPolicy::Oldest);
    if compares_only_times && undated > 0 && undated == kept + duplicates + seen {
        let keep = keep.name();
        print_error(&format!(
            "--keep {keep}: no record has a time, so the first record of each key was kept; irikey \
             reads times from indexes, archives, logs, JSON lines and Parquet"
        ));
    }
    for CollisionReport { key, rows: [a, b] } in counts.collisions.iter().flat_map(|(_, examples)| examples) {
        let row = |(source, record, text): &(String, u64, String)| format!("{source}: record {record}: {text:?}");
        let (a, b) = (row(a), row(b));
        print_error(&format!("collision: two texts have the key {key}, and a record of each was kept: {a}; {b}"));
    }
}

/// Adds the new keys of a job, if they were gathered, to the store it was compared with.
fn add_to_store(
    mut store: SeenStore,
    deduped: &mut DedupSummary,
    job: Option<FinishedJob>,
) -> Result<(), CommandError> {
    let Some(new_keys) = deduped.new_keys.take() else { return Ok(()) };
    let merged = std::mem::replace(&mut deduped.merged, Ok(None)).unwrap_or_else(|error| {
        print_error(&format!("{error}; the store is intact, but its runs were not merged"));
        None
    });
    store.add(new_keys, merged, job).map_err(|error| {
        let advice = match error {
            SeenError::NotDurable { .. } => "the output is complete",
            _ => "the output is complete, and running the job again gives the same output",
        };
        CommandError::SideFile(format!("{error}; {advice}"))
    })
}

struct DedupOutputs {
    kept: OutputFiles,
    duplicates: Option<TableWriter>,
    groups: Option<TableWriter>,
}

impl DedupOutputs {
    /// Opens the outputs of a job over sources of these names.
    fn create(args: &DedupArgs, job: &Job, names: &[String]) -> Result<(Encoder, DedupOutputs), CommandError> {
        let (encoder, kept) = OutputFiles::create(job, names, false)?;
        let metadata = output::metadata(&job.policy, names.len());
        let table = |path: &Option<PathBuf>, schema: SchemaRef| {
            let destination = path.as_ref().map(|path| args.reporting.replace.file(path));
            destination.map(|destination| TableWriter::create(&destination, schema, &metadata)).transpose()
        };
        let duplicates = table(&args.duplicates, evidence::duplicates_schema())?;
        let groups = table(&args.groups, evidence::groups_schema())?;
        Ok((encoder, DedupOutputs { kept, duplicates, groups }))
    }

    fn append(&mut self, given: DedupOutput) -> Result<(), OutputError> {
        match given {
            DedupOutput::Kept(encoded) => self.kept.append(encoded),
            DedupOutput::Duplicates(rows) => self.duplicates.as_mut().map_or(Ok(()), |table| table.append(&rows)),
            DedupOutput::Groups(rows) => self.groups.as_mut().map_or(Ok(()), |table| table.append(&rows)),
        }
    }

    /// Completes all outputs, if the counts add up. The main output is the last one: when it has its name, the others have
    /// theirs. If errors of the inputs left no record, no file is written, and the store gets no keys.
    fn finish(self, job: &Job, deduped: &mut DedupSummary) -> Result<WrittenFiles, CommandError> {
        if deduped.summary.is_nothing_read() {
            // The file of the keys is removed before the directory of a new store, which must be empty then.
            deduped.new_keys = None;
            return self.kept.abandon(&job.destination);
        }
        // Before the tables have their names.
        check_written(self.kept.rows(), deduped.totals.written)?;
        if let Some(table) = &self.duplicates {
            check_written(table.rows(), deduped.totals.duplicates + deduped.totals.seen)?;
        }
        self.duplicates.into_iter().chain(self.groups).try_for_each(TableWriter::finish)?;
        self.kept.finish(job, deduped.totals.written)
    }
}
