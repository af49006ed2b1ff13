//! The flags of `dedup`, and the job they describe.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::batch::{ColumnId, ColumnSet};
use crate::canon::{Policy, Rung};
use crate::cli::args::{
    Choices, ColumnArgs, InputArgs, KEYS, LayoutArgs, OutputArgs, PartArgs, PolicyArgs, ReportingArgs, WorkArgs,
    named_path, parquet_path,
};
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::cli::job::Job;
use crate::cli::job_identity::JobIdentity;
use crate::dedup::KeepPolicy;
use crate::dedup::seen::SeenStore;
use crate::input::{Sources, copy_objects};
use crate::process::TemporaryDirectory;
use crate::record::InputFormat;
use crate::remote::RemoteUrl;
use crate::run::{DedupOptions, RowKey, RunOptions, WorkerNeed};

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
        "The record that was fetched last; the first of the input if several have this time, or none has a time",
    ),
    (
        KeepPolicy::Oldest.name(),
        KeepPolicy::Oldest,
        "The record that was fetched first; the first of the input if several have this time, or none has a time",
    ),
    (
        KeepPolicy::Best.name(),
        KeepPolicy::Best,
        "The record with the best status: 2xx, then 3xx, 4xx, 5xx, any other, none. Ties are decided in this order: the \
         newest, one with https, the shortest URI, the first URI in byte order, the first of the input",
    ),
]);

/// What differs from other commands, for the flags that it shares with them.
const OUTPUT_HELP: &str = "\
Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]. A directory \
if it ends with /, or with --part-rows or --hive";
const PART_ROWS_HELP: &str = "\
Write a directory of parts. A part ends with the row group after which it has N rows or more";

/// Write one row per key: the output of canon without duplicates
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = crate::cli::help::long_examples(EXAMPLES),
          mut_arg("output", |output| output.help(OUTPUT_HELP)), mut_arg("part_rows", |rows| rows.help(PART_ROWS_HELP)))]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Key by which records are compared: the rung simple, that of --rung, or protocol (with --equivalences); or the
    /// recipe surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix, or rules (with
    /// --rules). A URL without a key of the recipe is compared by its URI [default: the rung]
    #[arg(long, value_name = "NAME", value_parser = KEYS, hide_possible_values = true, help_heading = "Dedup")]
    key: Option<ColumnId>,
    /// Which record of each key to keep. The kept records stay in the order of the input. Times and statuses are those of the
    /// input format; records without them come last. All rules except first read all inputs before they write. Files are then
    /// read a second time; all rows of other inputs, such as pipes, and of WARC files need space in --tmp
    #[arg(long, value_name = "RULE", value_parser = KEEP_RULES, default_value = "first", help_heading = "Dedup")]
    keep: KeepPolicy,
    /// Write records with a fault as well, each in its place; otherwise they are only counted
    #[arg(long, help_heading = "Dedup")]
    keep_faulty: bool,
    /// Leave out records whose keys are in this store, which earlier jobs wrote with --update-seen. See also 'irikey seen'
    #[arg(long, value_name = "DIR", value_parser = named_path(), help_heading = "Dedup")]
    seen: Option<PathBuf>,
    /// Add the keys of kept records to the store when the output and the report (--report) are complete. Creates the store
    /// if it does not exist; merges its runs in the background if there are many
    #[arg(long, requires = "seen", help_heading = "Dedup")]
    update_seen: bool,
    /// Compare the texts of equal keys. Different texts are reported (exit code 7), and a record of each is kept. Texts
    /// that do not fit into memory need space in --tmp. Keys of earlier jobs (--seen) cannot be verified
    #[arg(long, help_heading = "Dedup")]
    verify: bool,
    /// Compare only the first N bits of keys, to make --verify find collisions
    #[arg(long, value_name = "N", hide = true, requires = "verify", conflicts_with = "seen", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..=128))]
    key_bits: u32,
    /// Write the records that are left out to FILE (Parquet), each with the record that was kept instead and the lowest rung
    /// on which both are equal. Needs space in --tmp for all rows
    #[arg(long, value_name = "FILE", value_parser = parquet_path(), help_heading = "Dedup")]
    pub(super) duplicates: Option<PathBuf>,
    /// Write the kept records that have duplicates to FILE (Parquet), with the number of records of their key. Needs as much
    /// space as --duplicates
    #[arg(long, value_name = "FILE", value_parser = parquet_path(), help_heading = "Dedup")]
    pub(super) groups: Option<PathBuf>,
    /// Add a survey of the duplicates to --report: sizes of groups, rungs or rules that made records equal, hosts, and
    /// groups whose content digests differ. Large inputs are sampled. A report as .html or .txt always has it
    #[arg(long, requires = "report", help_heading = "Dedup")]
    pub(super) survey: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    #[command(flatten)]
    parts: PartArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    pub(super) reporting: ReportingArgs,
}

impl DedupArgs {
    /// The job of these flags and how duplicates are found, without the store.
    pub(super) fn job(&self) -> Result<(Job<'_>, DedupOptions), CommandError> {
        let row_group_len = self.output.row_group_size;
        let mut options = self.input.run_options(&self.work, row_group_len)?;
        let (destination, output, layout) = self.output.options(&[], LayoutArgs::Parts(&self.parts))?;
        let destination = self.reporting.replace.apply(destination);
        // The key is made even if it is not a column of the output.
        let mut columns = output.columns.clone();
        columns.add_keys(self.key.as_slice());
        let need = self.need(row_group_len).with_columns(&columns);
        let memory = self.input.reserve_memory(&self.work, &mut options, need)?;
        let mut policy = self.columns.complete(self.policy.policy(&self.input)?, &columns)?;
        self.check_times(&options.format)?;
        let dedup = DedupOptions {
            key: self.key(&mut policy)?,
            keep: self.keep,
            keep_faulty: self.keep_faulty,
            memory,
            directory: self.work.directory()?,
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
            for rung in [Rung::Simple, Rung::Syntax] {
                policy.add_key(rung);
            }
        }
        let (input, reporting, sort) = (&self.input, &self.reporting, None);
        let files = layout.add_to(self.files(), &destination, output.format);
        Ok((Job { max_runs: 1, input, options, policy, destination, output, layout, sort, files, reporting }, dedup))
    }

    /// The files of the job, without the destination of the rows.
    fn files(&self) -> FileRoles {
        let is_local = |path: &&Path| RemoteUrl::of_path(path).is_none();
        let files = self.reporting.files(&self.input.files.inputs).store(self.seen.as_deref().filter(is_local));
        let files = self.columns.add_to(files).output("--duplicates", self.duplicates.as_deref());
        files.output("--groups", self.groups.as_deref())
    }

    /// What a worker thread needs.
    fn need(&self, row_group_len: usize) -> WorkerNeed {
        // Also with --keep first, rows wait as soon as the keys exceed their share.
        let rows = WorkerNeed::rows(row_group_len).with_pending_rows("keys");
        let with_keys = if self.has_survey() || self.table_count() > 0 { rows.with_lower_keys() } else { rows };
        let with_survey = if self.has_survey() { with_keys.with_survey() } else { with_keys };
        with_survey.with_tables(self.table_count())
    }

    /// Reserves memory for workers that read row groups of `len` bytes, if that is more than the rows of the output need. Returns
    /// the rest, bytes.
    pub(super) fn reserve_row_groups(
        &self,
        len: usize,
        options: &mut RunOptions,
    ) -> Result<Option<usize>, CommandError> {
        let need = WorkerNeed::read_rows(len);
        let is_more = need.is_more_than(self.need(self.output.row_group_size));
        let long = |error| CommandError::Usage(format!("the longest row group of the inputs has {len} bytes: {error}"));
        is_more.then(|| self.input.reserve_memory(&self.work, options, need).map_err(long)).transpose()
    }

    fn has_survey(&self) -> bool {
        self.survey || self.reporting.is_for_people()
    }

    /// The number of tables that explain duplicates.
    fn table_count(&self) -> usize {
        usize::from(self.duplicates.is_some()) + usize::from(self.groups.is_some())
    }

    /// The key by which records are compared, among the keys of the policy.
    fn key(&self, policy: &mut Policy) -> Result<RowKey, CommandError> {
        match self.key {
            None => Ok(RowKey::Rung),
            Some(ColumnId::KeyOf(Rung::Simple)) if self.verify => Err(CommandError::usage(
                "--verify compares the texts that are written, and those of --key simple are not; remove one of the flags",
            )),
            Some(ColumnId::KeyProtocol) if self.verify => Err(CommandError::usage(
                "--verify compares texts, and --key protocol merges URLs with different texts; remove one of the flags",
            )),
            Some(ColumnId::KeyOf(rung)) if rung != policy.rung && rung != Rung::Simple => {
                Err(CommandError::Usage(format!(
                    "--key {key} needs --rung {key} (now {now}), so that URIs and keys fit; use --rung {key} and omit --key",
                    key = rung.name(),
                    now = policy.rung.name()
                )))
            }
            Some(key) => Ok(RowKey::of_column(key, policy)),
        }
    }

    pub(super) fn key_column(&self, policy: &Policy) -> &'static str {
        let key = self.key.filter(|key| *key != ColumnId::KeyOf(policy.rung));
        key.and_then(|key| ColumnSet::of(&[key]).names().next()).unwrap_or("key")
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

    /// Identifies the job, if it adds to a store and writes files.
    pub(super) fn identity(&self, job: &Job, sources: &Sources) -> Option<JobIdentity> {
        let output = job.destination.path().filter(|_| self.update_seen)?;
        let root = job.layout.root(output);
        let tables = [self.duplicates.as_deref(), self.groups.as_deref()];
        let mut more = vec![json!(self.input.limit), json!(self.keep.name()), json!(self.keep_faulty)];
        // It keeps a record of each text, also if keys are equal.
        more.extend(self.verify.then(|| json!("verify")));
        JobIdentity::new(job, sources, (&root, tables), more)
    }

    pub(super) fn open_store(&self, keys: &[(&str, String)]) -> Result<Option<Arc<SeenStore>>, CommandError> {
        let Some(directory) = &self.seen else { return Ok(None) };
        let store = match RemoteUrl::of_path(directory) {
            Some(_) if self.update_seen => {
                return Err(CommandError::usage(
                    "--update-seen changes a seen store on the local disk; copy the store that --seen names",
                ));
            }
            Some(url) => self.open_copy(&url)?,
            None if self.update_seen => return Ok(Some(Arc::new(SeenStore::open_to_add(directory, keys)?))),
            None => SeenStore::open(directory)?,
        };
        store.check_policy(keys)?;
        Ok(Some(Arc::new(store)))
    }

    /// Opens a copy of a seen store that is in an object store. The copy has no names once it is open.
    fn open_copy(&self, url: &RemoteUrl) -> Result<SeenStore, CommandError> {
        let failed = |error| CommandError::Input(format!("--seen {}: cannot copy: {error}", url.name()));
        let mut directory = TemporaryDirectory::create(&self.work.directory()?).map_err(failed)?;
        copy_objects(&url.prefix(), &mut directory).map_err(failed)?;
        Ok(SeenStore::open(directory.path())?)
    }
}
