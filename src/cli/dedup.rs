//! `dedup`: a job from its flags to its exit status, as `canon` does it, with a verdict on every row.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;

use super::args::{InputFormat, Reporting};
use super::canon::{Failure, bar, close, fail, output_options, report};
use super::canon_args::Job;
use super::dedup_args::{DedupArgs, Plan};
use super::report::{CollisionAt, DedupReport, Report};
use super::timeline::Timeline;
use super::{drive, say, summary};
use crate::batch::ColumnSet;
use crate::canon::{Policy, RecipeColumn};
use crate::dedup::Collision;
use crate::dedup::evidence::{self, RecordLocator};
use crate::dedup::seen::{MergedRuns, RunWriter, SeenError, SeenStore};
use crate::input::{KeyedFile, Origin, Source, Sources};
use crate::output;
use crate::output::{OutputError, TableWriter};
use crate::process::exit;
use crate::run::{
    self, DedupError, DedupKey, DedupOptions, DedupOutput, DedupSummary, KeyedFileDefect, KeyedFileError, KeyedFiles,
    Progress, RunRequest,
};

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
            DedupError::KeyedFile(error) => Failure::Input(error.to_string()),
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
    let Plan { mut job, mut dedup, seen, update, duplicates, groups } = plan;
    let keys = describe_keys(&job.policy, dedup.key);
    dedup.seen = seen.map(|seen| open(&seen, update, &keys)).transpose()?.map(Arc::new);
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let (names, total) = (sources.names(), sources.total_len());
    let files = keyed_files(&sources, &mut job, &dedup)?;
    let made_for = output_options(&job.outputs, &job.policy, &names);
    let (encoder, mut output) = output::create(&job.outputs.destination, made_for)?;
    let progress = Arc::new(Progress::new());
    let bar = bar(job.reporting.progress, total, &progress);
    let timeline = job.reporting.report.as_ref().map(|_| Timeline::start(&progress));
    let options = drive::options(&job.inputs, &job.work, job.outputs.row_group_len);
    let mut duplicates = table(duplicates, evidence::duplicates_schema(), &job.policy, names.len())?;
    let mut groups = table(groups, evidence::groups_schema(), &job.policy, names.len())?;
    let append = |given| match given {
        DedupOutput::Kept(part) => output.append(part),
        DedupOutput::Duplicates(rows) => duplicates.as_mut().map_or(Ok(()), |table| table.append(&rows)),
        DedupOutput::Groups(rows) => groups.as_mut().map_or(Ok(()), |table| table.append(&rows)),
    };
    let request = RunRequest::new(sources, &options, &job.policy, &progress);
    let ran = match &files {
        Some(files) => run::dedup_keyed_files(request, files, (&dedup, &encoder), append),
        None => run::dedup(request, &dedup, &encoder, append),
    };
    drop(bar);
    let timeline = timeline.map_or_else(Vec::new, Timeline::finish);
    let mut deduped = ran?;
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
    duplicates.into_iter().chain(groups).try_for_each(TableWriter::finish)?;
    let finished = output.finish()?;
    // Never before the output is whole: keys in the store without their rows would be lost to every later run.
    if let (Some(new_keys), Some(store)) = (deduped.new_keys.take(), dedup.seen.and_then(Arc::into_inner)) {
        add(store, new_keys, std::mem::replace(&mut deduped.merged, Ok(None)))?;
    }
    let counts = DedupReport {
        kept: deduped.kept,
        duplicates: deduped.duplicates,
        seen: deduped.seen,
        spilled: deduped.spilled,
        key: key_name(&job.policy, dedup.key),
        keep: dedup.keep.name(),
        undated: deduped.undated,
        collisions: dedup.verify.then(|| collisions(&deduped, &names)),
    };
    tell(&counts);
    let findings = deduped.findings.take();
    let report = report(&job, names, drive::ran(deduped.summary), finished, begun.elapsed());
    let report =
        Report { distinct: counts.kept, distinct_is_exact: true, dedup: Some(counts), timeline, findings, ..report };
    Ok((job.reporting, report))
}

/// Opens a table beside the output, if there is to be one.
fn table(
    path: Option<PathBuf>,
    schema: SchemaRef,
    policy: &Policy,
    sources: usize,
) -> Result<Option<TableWriter>, OutputError> {
    path.map(|path| TableWriter::create(&path, schema, &output::metadata(policy, sources))).transpose()
}

/// The inputs as files of rows with keys, if they are such files and the flags do not name another column or format. The
/// output has their columns, unless the flags choose columns.
fn keyed_files(sources: &Sources, job: &mut Job, dedup: &DedupOptions) -> Result<Option<KeyedFiles>, Failure> {
    if job.inputs.column.is_some() || job.inputs.format != InputFormat::Auto {
        return Ok(None);
    }
    let open = |source: &Source| match &source.origin {
        Origin::Path(path) => KeyedFile::open(&source.name, path),
        Origin::Stdin | Origin::Reader(_) => Ok(None),
    };
    // A file that cannot be read is told of when its turn comes.
    let files: Vec<KeyedFile> = sources.0.iter().filter_map(|source| open(source).ok().flatten()).collect();
    let Some(first) = files.first() else { return Ok(None) };
    if files.len() < sources.0.len() {
        return Err(Failure::Usage(format!(
            "{}: this file has keys, and other inputs have none; run canon on those first, or make keys anew with --column \
             uri",
            first.name
        )));
    }
    let key = match dedup.key {
        DedupKey::Rung => "key".to_string(),
        DedupKey::More(_) => "key_simple".to_string(),
        DedupKey::Protocol => "key_protocol".to_string(),
        DedupKey::Recipe(place) => {
            let name = job.policy.recipes.get(place).map_or("", |wanted| wanted.column);
            format!("key_{}", name.replace('-', "_"))
        }
    };
    let refused = |error: KeyedFileError| Failure::Usage(error.to_string());
    let columns = if job.outputs.are_columns_chosen {
        job.outputs.columns.clone()
    } else {
        let known = |name: &&str| ColumnSet::named([*name]).is_ok();
        let names: Vec<&str> = first.columns().filter(known).collect();
        ColumnSet::named(names).map_err(|error| Failure::Internal(error.to_string()))?
    };
    for file in &files {
        if let Some(name) = columns.names().find(|name| !file.columns().any(|column| column == *name)) {
            let reason = KeyedFileDefect::NoOutputColumn(name.to_string());
            return Err(refused(KeyedFileError { name: file.name.clone(), reason }));
        }
    }
    job.outputs.columns = columns;
    KeyedFiles::new(files, &key, &job.policy, dedup).map(Some).map_err(refused)
}

/// What keys depend on: the policy, and which of its keys they are.
fn describe_keys(policy: &Policy, key: DedupKey) -> Vec<(&'static str, String)> {
    policy.describe().into_iter().chain([("dedup_key", key_name(policy, key))]).collect()
}

/// The name of a key, empty if it is the rung's.
fn key_name(policy: &Policy, key: DedupKey) -> String {
    match key {
        DedupKey::Rung => String::new(),
        DedupKey::More(place) => policy.more_keys.get(place).map_or("", |rung| rung.name()).to_string(),
        DedupKey::Recipe(place) => policy.recipes.get(place).map(RecipeColumn::describe).unwrap_or_default(),
        DedupKey::Protocol => "protocol".to_string(),
    }
}

/// Where the first collisions are.
fn collisions(deduped: &DedupSummary, names: &[String]) -> (u64, Vec<CollisionAt>) {
    let places = RecordLocator::new(names.to_vec(), &deduped.summary.source_records);
    let at = |collision: &Collision| CollisionAt {
        key: format!("{:032x}", collision.key),
        rows: [0, 1].map(|i| {
            let (source, record) = places.find(collision.ordinals[i]);
            (source.to_string(), record, String::from_utf8_lossy(&collision.texts[i]).into_owned())
        }),
    };
    (deduped.collisions.count, deduped.collisions.examples.iter().map(at).collect())
}

/// Tells what a person should know even if no summary is wanted.
fn tell(counts: &DedupReport) {
    let DedupReport { kept, duplicates, undated, keep, .. } = counts;
    if matches!(*keep, "newest" | "oldest") && *undated > 0 && *undated == kept + duplicates + counts.seen {
        say(&format!(
            "--keep {keep}: no record has a time, so the first of each key was kept; is this the right format?"
        ));
    }
    for CollisionAt { key, rows: [a, b] } in counts.collisions.iter().flat_map(|(_, examples)| examples) {
        let row = |(source, record, text): &(String, u64, String)| format!("{source}: record {record}: {text:?}");
        say(&format!("collision: key {key} is that of two texts, each of which keeps a row: {}; {}", row(a), row(b)));
    }
}

fn open(directory: &Path, update: bool, keys: &[(&str, String)]) -> Result<SeenStore, SeenError> {
    if update {
        return SeenStore::open_to_add(directory, keys);
    }
    let store = SeenStore::open(directory)?;
    store.check_policy(keys)?;
    Ok(store)
}

fn add(
    mut store: SeenStore,
    new_keys: RunWriter,
    merged: Result<Option<MergedRuns>, SeenError>,
) -> Result<(), Failure> {
    let merged = merged.unwrap_or_else(|error| {
        say(&format!("{error}; the store is whole, but its runs were not merged"));
        None
    });
    let added = store.add(new_keys, merged);
    added.map_err(|error| Failure::Temporary(format!("{error}; the output is whole, and a rerun gives the same one")))
}
