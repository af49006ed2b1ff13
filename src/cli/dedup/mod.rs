//! `dedup`: writes one row per key, and remembers keys in a store for later jobs.

mod key_names;
mod keyed_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::SchemaRef;
use clap::Args;
use serde_json::json;

use self::key_names::{describe_keys, key_column, key_name};
use self::keyed_files::OpenedInputs;
use super::args::input::{InputArgs, WorkArgs};
use super::args::output::OutputArgs;
use super::args::policy::{KeyArgs, PolicyArgs, parse_key};
use super::args::reporting::ReportingArgs;
use super::args::spill::SpillArgs;
use super::args::values::Choices;
use super::error::CommandError;
use super::file_roles::{FileRoles, absolute};
use super::files::abandoned;
use super::job::Job;
use super::job_identity::JobIdentity;
use super::progress::Timeline;
use super::report::{CollisionReport, DedupReport, Report};
use super::terminal::print_error;
use crate::batch::{ColumnId, ColumnSet};
use crate::canon::{Policy, Rung};
use crate::dedup::evidence::{self, RecordLocator};
use crate::dedup::seen::{FinishedJob, MergedRuns, RunWriter, SeenError, SeenStore};
use crate::dedup::{Collision, KeepPolicy};
use crate::input::{Sources, copy_objects};
use crate::output::{self, Encoder, FinishedOutput, Output, OutputError, OutputFormat, TableWriter};
use crate::process::exit;
use crate::record::InputFormat;
use crate::remote::RemoteUrl;
use crate::run::{
    self, DedupKey, DedupOptions, DedupOutput, DedupSummary, DedupTotals, KeyedFiles, Progress, RunRequest, WorkerNeed,
};

const EXAMPLES: &str = "\
Examples:
  The distinct URIs of a list, in its order:
      irikey dedup urls.txt > distinct.txt

  One row per key, of many files, to Parquet, with at most 2 GiB of memory:
      irikey dedup @lists.txt -o distinct.parquet --memory 2G --tmp /big/disk

  Only what no earlier job has seen, which is then remembered:
      irikey dedup urls.txt.gz -o new.parquet --seen keys/ --update-seen

  The last record of each key, ignoring fragments:
      irikey dedup urls.txt.gz --keep last --drop-fragment -o last.parquet

  The best capture of each page as the Wayback Machine defines a page, with time and status:
      irikey dedup cdx-*.gz --key surt-wayback --keep best \\
          --columns +fetch_time,+fetch_status -o best.parquet";

const KEEP_RULES: Choices<KeepPolicy> = Choices(&[
    (KeepPolicy::First.name(), KeepPolicy::First, "The first record of the input"),
    (KeepPolicy::Last.name(), KeepPolicy::Last, "The last record of the input"),
    (
        KeepPolicy::Newest.name(),
        KeepPolicy::Newest,
        "The record fetched last; the first of the input among equals, or if none has a time",
    ),
    (KeepPolicy::Oldest.name(), KeepPolicy::Oldest, "The record fetched first; likewise"),
    (
        KeepPolicy::Best.name(),
        KeepPolicy::Best,
        "Status 2xx before 3xx, 4xx, 5xx, others and none; then the newest, https before other schemes, the shortest URI, \
         the first URI in byte order, the first record of the input",
    ),
]);

/// Write one row per key: the output of canon without duplicates
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES))]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Key by which records are compared: the rung simple, that of --rung, or protocol (with --equivalences); or the
    /// recipe surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix, or rules (with
    /// --rules). A URL without a key of the recipe is compared by its URI [default: the rung]
    #[arg(long, value_name = "NAME", value_parser = parse_key, help_heading = "Dedup")]
    key: Option<ColumnId>,
    /// Which record of each key to keep. The kept records stay in the order of the input. Times and statuses come from
    /// the format; records without them rank last. Every rule but first needs space in --tmp for all rows
    #[arg(long, value_name = "RULE", value_parser = KEEP_RULES, default_value = "first", help_heading = "Dedup")]
    keep: KeepPolicy,
    /// Write records with a fault as well, each in its place; otherwise they are only counted
    #[arg(long, help_heading = "Dedup")]
    keep_faulty: bool,
    /// Leave out records whose keys are in this store, which --update-seen has written. See also 'irikey seen'
    #[arg(long, value_name = "DIR", help_heading = "Dedup")]
    seen: Option<PathBuf>,
    /// Add the keys of kept records to the store when the output is complete. Creates the store if it does not exist;
    /// merges its runs in the background if there are many
    #[arg(long, requires = "seen", help_heading = "Dedup")]
    update_seen: bool,
    /// Compare the texts behind equal keys. Different texts are reported (status 7), and each keeps a record. Needs space
    /// in --tmp for all rows and texts. Keys of earlier jobs (--seen) have no texts
    #[arg(long, help_heading = "Dedup")]
    verify: bool,
    /// Compare only the first N bits of keys, to make --verify find collisions
    #[arg(long, value_name = "N", hide = true, requires = "verify", conflicts_with = "seen", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..=128))]
    key_bits: u32,
    /// Write the records that are left out to FILE (Parquet), each with its representative and the rung on which both are
    /// equal (the recipe, if on none; or "seen"). Needs space in --tmp for all rows, and 8 bytes of memory per row
    #[arg(long, value_name = "FILE", value_parser = parse_parquet_path, help_heading = "Dedup")]
    duplicates: Option<PathBuf>,
    /// Write the representatives of two or more records to FILE (Parquet), with the number of records. Costs as much as
    /// --duplicates
    #[arg(long, value_name = "FILE", value_parser = parse_parquet_path, help_heading = "Dedup")]
    groups: Option<PathBuf>,
    /// Add a survey of the groups of duplicates to --report: sizes, what made records duplicates, hosts, and groups whose
    /// content digests differ. Takes about 30 MB; larger groups are sampled. A --report for people (.html, .txt) has it
    /// anyway
    #[arg(long, requires = "report", help_heading = "Dedup")]
    survey: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    spill: SpillArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

/// The destinations of a dedup's rows.
struct DedupOutputs {
    kept: Output,
    duplicates: Option<TableWriter>,
    groups: Option<TableWriter>,
}

impl DedupArgs {
    /// The job of these flags and how duplicates are found, without the store.
    fn job(&self) -> Result<(Job<'_>, DedupOptions), CommandError> {
        let row_group_len = self.output.row_group_size;
        let mut options = self.input.run_options(&self.work, row_group_len)?;
        let (destination, output, layout) = self.output.options(&[], None)?;
        let destination = self.reporting.replace.apply(destination);
        let mut budget = self.spill.budget(&self.input);
        options.threads = budget.reserve_workers(options.threads, self.need(row_group_len))?;
        // The key is made even if it is no column of the output.
        let mut columns = output.columns.clone();
        columns.add_keys(self.key.as_slice());
        let mut policy = self.keys.complete(self.policy.policy(&self.input)?, &columns)?;
        self.check_times(&options.format)?;
        let dedup = DedupOptions {
            key: self.key(&policy)?,
            keep: self.keep,
            keep_faulty: self.keep_faulty,
            memory: budget.remaining(),
            directory: self.spill.directory()?,
            seen: None,
            gather_new: self.update_seen,
            has_evidence: self.table_count() > 0,
            verify: self.verify,
            survey: self.has_survey(),
            key_bits: self.key_bits,
        };
        policy.carry.time |= self.keep.compares_time();
        policy.carry.status |= self.keep.compares_status() || dedup.survey;
        policy.carry.digest |= dedup.survey;
        policy.keep_input |= dedup.has_evidence;
        if dedup.has_evidence || dedup.survey {
            let levels = [Rung::Simple, Rung::Syntax].into_iter().filter(|rung| !policy.more_keys.contains(rung));
            let levels: Vec<_> = levels.collect();
            policy.more_keys.extend(levels);
        }
        let (input, reporting, sort) = (&self.input, &self.reporting, None);
        let files = FileRoles::new(self.reporting.replace.no_clobber).arguments(&input.inputs);
        let is_local = |path: &&Path| path.to_str().and_then(RemoteUrl::parse).is_none();
        let files = files.store(self.seen.as_deref().filter(is_local)).destination(&destination, output.format);
        let files = self.keys.add_to(files).output("--duplicates", self.duplicates.as_deref());
        let files = files.output("--groups", self.groups.as_deref()).report(reporting.report.as_deref());
        Ok((Job { input, options, policy, destination, output, layout, sort, files, reporting }, dedup))
    }

    /// What a worker thread needs.
    fn need(&self, row_group_len: usize) -> WorkerNeed {
        let rows = WorkerNeed::rows(row_group_len);
        let with_keys = if self.has_survey() || self.table_count() > 0 { rows.with_lower_keys() } else { rows };
        let with_survey = if self.has_survey() { with_keys.with_survey() } else { with_keys };
        with_survey.with_tables(self.table_count())
    }

    fn has_survey(&self) -> bool {
        self.survey || self.reporting.is_for_people()
    }

    /// The number of tables that explain duplicates.
    fn table_count(&self) -> usize {
        usize::from(self.duplicates.is_some()) + usize::from(self.groups.is_some())
    }

    /// The key by which records are compared, among the keys of the policy.
    fn key(&self, policy: &Policy) -> Result<DedupKey, CommandError> {
        match self.key {
            None => Ok(DedupKey::Rung),
            Some(ColumnId::KeyOf(rung)) if rung == policy.rung => Ok(DedupKey::Rung),
            Some(ColumnId::KeyOf(Rung::Simple)) if self.verify => Err(CommandError::usage(
                "--verify compares the texts that are written, and those of --key simple are not; remove one of the flags",
            )),
            Some(ColumnId::KeyOf(Rung::Simple)) => {
                Ok(DedupKey::More(policy.more_keys.iter().position(|key| *key == Rung::Simple).unwrap_or_default()))
            }
            Some(ColumnId::KeyProtocol) if self.verify => Err(CommandError::usage(
                "--verify compares texts, and --key protocol merges URLs with different texts; remove one of the flags",
            )),
            Some(ColumnId::KeyProtocol) => Ok(DedupKey::Protocol),
            Some(ColumnId::RecipeKey(name)) => {
                let place = policy.recipes.iter().position(|wanted| wanted.column == name);
                Ok(DedupKey::Recipe(place.unwrap_or_default()))
            }
            Some(_) => Err(CommandError::usage(
                "--key names another rung than --rung, so that the URIs would not fit the keys; set --rung instead",
            )),
        }
    }

    /// A rule that compares times needs a format that can have them.
    fn check_times(&self, format: &InputFormat) -> Result<(), CommandError> {
        match self.keep {
            KeepPolicy::Newest | KeepPolicy::Oldest if !format.has_times() => Err(CommandError::Usage(format!(
                "--keep {} compares the times of records, and this format has none; use --keep first or last, or an index, \
                 an archive, a log, JSON lines, or Parquet with fetch_time",
                self.keep.name()
            ))),
            _ => Ok(()),
        }
    }

    /// Identifies the job, if it adds to a store and writes a file.
    fn identity(&self, job: &Job, sources: &Sources) -> Option<JobIdentity> {
        let output = job.destination.path().filter(|_| self.update_seen)?;
        let outputs = [&self.duplicates, &self.groups].map(|path| path.as_deref().map(absolute));
        let more = json!([self.input.limit, self.keep.name(), self.keep_faulty, outputs]);
        JobIdentity::new(job, sources, output, &more)
    }

    fn open_store(&self, keys: &[(&str, String)]) -> Result<Option<Arc<SeenStore>>, CommandError> {
        let Some(directory) = &self.seen else { return Ok(None) };
        let url = directory.to_str().and_then(RemoteUrl::parse);
        let store = match url {
            Some(_) if self.update_seen => {
                return Err(CommandError::usage(
                    "--update-seen changes a store of seen keys on the local disk; copy the store that --seen names",
                ));
            }
            Some(url) => self.open_copy(&url)?,
            None if self.update_seen => return Ok(Some(Arc::new(SeenStore::open_to_add(directory, keys)?))),
            None => SeenStore::open(directory)?,
        };
        store.check_policy(keys)?;
        Ok(Some(Arc::new(store)))
    }

    /// Opens a copy of a store of seen keys that is in an object store. The copy has no names once it is open.
    fn open_copy(&self, url: &RemoteUrl) -> Result<SeenStore, CommandError> {
        let failed = |error| CommandError::Input(format!("--seen {}: cannot copy: {error}", url.name()));
        let directory = tempfile::tempdir_in(self.spill.directory()?).map_err(failed)?;
        copy_objects(&url.prefix(), directory.path()).map_err(failed)?;
        Ok(SeenStore::open(directory.path())?)
    }
}

pub(crate) fn run(args: &DedupArgs) -> Result<u8, CommandError> {
    match perform(args)? {
        Some(report) => report.conclude(&args.reporting),
        None => Ok(exit::SUCCESS),
    }
}

/// Everything until the output has its final name, and then the change of the store. Returns `None` if this job has been
/// done before.
fn perform(args: &DedupArgs) -> Result<Option<Report>, CommandError> {
    let started = Instant::now();
    let (mut job, mut dedup) = args.job()?;
    let sources = job.input.sources()?;
    let replaced = job.files.check(&sources)?;
    dedup.seen = args.open_store(&describe_keys(&job.policy, dedup.key))?;
    let identity = args.identity(&job, &sources);
    if let Some((store, identity)) = dedup.seen.as_ref().zip(identity.as_ref())
        && identity.is_done(store)?
    {
        return Ok(None);
    }
    let names = sources.names();
    let files = keyed_files(&sources, &mut job, &dedup, args)?;
    let (encoder, mut outputs) = DedupOutputs::create(args, &job, &names)?;
    let progress = Arc::new(Progress::new());
    let bar = job.progress_bar(sources.total_len(), &progress);
    let timeline = job.timeline(&progress);
    let append = |given| outputs.append(given);
    let request = RunRequest::new(sources, &job.options, &job.policy, &progress);
    let result = match files {
        Some(files) => run::dedup_keyed_files(request, files, (&dedup, &encoder), append),
        None => run::dedup(request, &dedup, &encoder, append),
    };
    drop(bar);
    let timeline = timeline.map_or_else(Vec::new, Timeline::finish);
    let mut deduped = result?;
    let is_nothing_read = deduped.summary.is_nothing_read();
    let replaced = job.files.replaced_after(replaced, &deduped.summary);
    let finished = match is_nothing_read {
        true => abandoned(&job.destination),
        false => outputs.finish(&deduped)?,
    };
    // The store changes only after the output is complete: keys without rows would be lost to every later job.
    let new_keys = deduped.new_keys.take().filter(|_| !is_nothing_read);
    if let (Some(new_keys), Some(store)) = (new_keys, dedup.seen.and_then(Arc::into_inner)) {
        let job = identity.map(|identity| identity.finished(finished.bytes));
        add_to_store(store, (new_keys, job), std::mem::replace(&mut deduped.merged, Ok(None)))?;
    }
    let counts = DedupReport {
        totals: deduped.totals,
        key: key_name(&job.policy, dedup.key),
        keep: dedup.keep,
        collisions: dedup.verify.then(|| collisions(&deduped, &names)),
    };
    print_warnings(&counts);
    let findings = deduped.findings.take();
    let mut report = job.report(names, deduped.summary, finished, started.elapsed());
    (report.summary.distinct_keys, report.summary.is_distinct_exact) = (counts.totals.kept, true);
    Ok(Some(Report { dedup: Some(counts), timeline, findings, replaced, ..report }))
}

impl DedupOutputs {
    fn create(args: &DedupArgs, job: &Job, names: &[String]) -> Result<(Encoder, DedupOutputs), CommandError> {
        let (encoder, kept) = output::create(&job.destination, job.output_options(names))?;
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
            DedupOutput::Kept(part) => self.kept.append(part),
            DedupOutput::Duplicates(rows) => self.duplicates.as_mut().map_or(Ok(()), |table| table.append(&rows)),
            DedupOutput::Groups(rows) => self.groups.as_mut().map_or(Ok(()), |table| table.append(&rows)),
        }
    }

    /// Completes all outputs, if the counts add up. The main output is the last one: when it has its name, the others have
    /// theirs.
    fn finish(self, deduped: &DedupSummary) -> Result<FinishedOutput, CommandError> {
        let left_out = deduped.totals.duplicates + deduped.totals.seen;
        let message = match &self.duplicates {
            _ if self.kept.rows() != deduped.totals.written => {
                format!("{} of {} rows were written", self.kept.rows(), deduped.totals.written)
            }
            Some(table) if table.rows() != left_out => {
                format!("{} of {left_out} duplicates were written", table.rows())
            }
            _ => {
                self.duplicates.into_iter().chain(self.groups).try_for_each(TableWriter::finish)?;
                return Ok(self.kept.finish()?);
            }
        };
        self.kept.abort()?;
        Err(CommandError::Internal(message))
    }
}

/// The inputs as tables of rows with keys, if all are such files and no flag chooses another column. The output then has
/// their columns, unless a flag chooses others.
fn keyed_files(
    sources: &Sources,
    job: &mut Job,
    dedup: &DedupOptions,
    args: &DedupArgs,
) -> Result<Option<KeyedFiles>, CommandError> {
    if !args.input.is_auto() {
        return Ok(None);
    }
    let inputs = OpenedInputs::open(sources);
    let Some(first) = inputs.keyed.first() else { return Ok(None) };
    if args.input.limit.is_some() {
        let message = format!("{}: --limit does not apply to files with keys; remove it", first.name);
        return Err(CommandError::Usage(message));
    }
    if let Some(other) = inputs.others.first() {
        return Err(CommandError::Usage(format!(
            "{}: this file has keys, but the input {other} has none; run irikey canon on such inputs first, or make all keys \
             again with --column uri",
            first.name
        )));
    }
    if !args.output.are_columns_chosen(job.output.format) {
        let is_known = |name: &&str| ColumnSet::named([*name]).is_ok();
        let names: Vec<&str> = first.columns().filter(is_known).collect();
        job.output.columns = ColumnSet::named(names).map_err(|error| CommandError::Internal(error.to_string()))?;
    }
    inputs.check_columns(&job.output.columns)?;
    let key = key_column(&job.policy, dedup.key);
    // A report for people has a survey only where there is something to survey.
    let dedup = DedupOptions { survey: args.survey, ..dedup.clone() };
    let files = KeyedFiles::new(inputs.keyed, &key, &job.policy, &dedup);
    let files = files.map_err(|error| CommandError::Usage(error.to_string()))?;
    Ok(Some(files.with_unread(inputs.unread)))
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
            "--keep {keep}: no record has a time, so the first record of each key was kept; check the format of the inputs"
        ));
    }
    for CollisionReport { key, rows: [a, b] } in counts.collisions.iter().flat_map(|(_, examples)| examples) {
        let row = |(source, record, text): &(String, u64, String)| format!("{source}: record {record}: {text:?}");
        let (a, b) = (row(a), row(b));
        print_error(&format!("collision: two texts have the key {key}, and a record of each was kept: {a}; {b}"));
    }
}

fn add_to_store(
    mut store: SeenStore,
    (new_keys, job): (RunWriter, Option<FinishedJob>),
    merged: Result<Option<MergedRuns>, SeenError>,
) -> Result<(), CommandError> {
    let merged = merged.unwrap_or_else(|error| {
        print_error(&format!("{error}; the store is intact, but its runs were not merged"));
        None
    });
    job.into_iter().for_each(|job| store.record(job));
    store.add(new_keys, merged).map_err(|error| {
        CommandError::SideFile(format!(
            "{error}; the output is complete, and running the job again gives the same output"
        ))
    })
}

fn parse_parquet_path(text: &str) -> Result<PathBuf, String> {
    match OutputFormat::of_path(Path::new(text)) {
        Some(OutputFormat::Parquet) => Ok(PathBuf::from(text)),
        _ => Err("expected a file name that ends in .parquet".to_string()),
    }
}
