//! The flags of `dedup`, and the [`Job`] that they mean.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::args::{
    EquivalenceArgs, FormArgs, InputArgs, InputFormat, Inputs, OutputArgs, RecipeArgs, ReportingArgs, SpillArgs, Work,
    WorkArgs,
};
use super::canon_args::{Job, parse_key};
use crate::batch::ColumnId;
use crate::canon::{Policy, Rung};
use crate::dedup::KeepPolicy;
use crate::output::OutputFormat;
use crate::run::{DedupKey, DedupOptions, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  The distinct URIs of a list, in its order:
      irikey dedup urls.txt > distinct.txt

  One row a key, of many files, to Parquet, with not more than 2 GiB of memory:
      irikey dedup @lists.txt -o distinct.parquet --memory 2G --tmp /big/disk

  Only what no earlier run has seen, and remember it:
      irikey dedup today.txt.gz -o new.parquet --seen keys/ --update-seen

  The last of each, fragments not counted:
      irikey dedup urls.txt.gz --keep last --drop-fragment -o last.parquet

  The best capture of each page in the eyes of the Wayback Machine, with time and status:
      irikey dedup cdx/*.gz --key surt-wayback --keep best --columns +fetch_time,+fetch_status -o best.parquet";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeepName {
    /// The first of the input
    First,
    /// The last of the input
    Last,
    /// The one fetched last; of several, or where none has a time, the first of the input
    Newest,
    /// The one fetched first; likewise
    Oldest,
    /// Status 2xx before 3xx, 4xx, 5xx, any other, none; then the newest, https before other schemes, the shortest URI,
    /// the one with the least bytes, the first of the input
    Best,
}

impl KeepName {
    fn keep(self) -> KeepPolicy {
        match self {
            KeepName::First => KeepPolicy::First,
            KeepName::Last => KeepPolicy::Last,
            KeepName::Newest => KeepPolicy::Newest,
            KeepName::Oldest => KeepPolicy::Oldest,
            KeepName::Best => KeepPolicy::Best,
        }
    }
}

/// Flags of `dedup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit_help()))]
pub struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    #[command(flatten)]
    recipes: RecipeArgs,
    /// What records are compared by: a rung, simple, that of --rung, or protocol, for --equivalences; or a recipe,
    /// surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix or rules, for --rules. A URL
    /// that a recipe has no key for is compared by its URI [default: the
    /// rung]
    #[arg(long, value_name = "NAME", value_parser = parse_key, help_heading = "Dedup")]
    key: Option<ColumnId>,
    /// Which of the records of one key is kept, by an order without ties; the kept ones stay in the order of the input.
    /// Times and statuses are those of the format; records without come last. Any but first needs room in --tmp for all
    /// rows
    #[arg(long, value_enum, default_value_t = KeepName::First, help_heading = "Dedup")]
    keep: KeepName,
    /// Write records with a fault as well, each where it stands; otherwise they are only counted
    #[arg(long, help_heading = "Dedup")]
    keep_faulty: bool,
    /// Leave out what earlier runs have seen: a store of keys that --update-seen made. See also 'irikey seen'
    #[arg(long, value_name = "DIR", help_heading = "Dedup")]
    seen: Option<PathBuf>,
    /// Add the keys of the rows that are kept to the store, once the output is whole. Makes the store if there is none, and
    /// merges its runs meanwhile, on a thread of its own, if they have become many
    #[arg(long, requires = "seen", help_heading = "Dedup")]
    update_seen: bool,
    /// Compare the texts that keys are made of wherever keys are equal. Texts that differ are told (status 7) and each
    /// keeps a record. All rows and texts wait in --tmp then. Keys of earlier runs (--seen) have no texts
    #[arg(long, help_heading = "Dedup")]
    verify: bool,
    /// Compare the first N bits of keys only, to see --verify find something
    #[arg(long, value_name = "N", hide = true, requires = "verify", conflicts_with = "seen", default_value_t = 128,
          value_parser = clap::value_parser!(u32).range(1..=128))]
    key_bits: u32,
    /// Write the records that are left out to FILE (Parquet): each with its representative, and the rung on which the two
    /// are equal, the recipe if they are on none, or "seen". All rows wait in --tmp then, and take 8 bytes of memory each
    #[arg(long, value_name = "FILE", help_heading = "Dedup")]
    duplicates: Option<PathBuf>,
    /// Write the representatives of two or more records to FILE (Parquet), with their number. As costly as --duplicates
    #[arg(long, value_name = "FILE", help_heading = "Dedup")]
    groups: Option<PathBuf>,
    /// Look into groups for --report: how large they are, what made records duplicates, hosts, and where members of a group
    /// disagree in their content digests. Takes some 30 MB; groups past that are sampled. --report FILE.html and .txt
    /// imply it
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

/// What `dedup` has to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What `canon` would do.
    pub job: Job,
    /// How duplicates are found; without the store.
    pub dedup: DedupOptions,
    /// Where the store is.
    pub seen: Option<PathBuf>,
    /// It is added to.
    pub update: bool,
    /// Where the table of duplicates goes.
    pub duplicates: Option<PathBuf>,
    /// Where the table of groups goes.
    pub groups: Option<PathBuf>,
}

impl DedupArgs {
    /// What the flags mean.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do.
    pub fn plan(&self) -> Result<Plan, String> {
        let (outputs, work) = (self.output.outputs(&[])?, self.work.work()?);
        let (mut budget, need) = (self.spill.budget(), WorkerNeed::rows(outputs.row_group_len));
        let threads = budget.reserve_workers(work.threads, need).map_err(|error| error.to_string())?;
        let work = Work { threads, ..work };
        check_table("--duplicates", self.duplicates.as_deref())?;
        check_table("--groups", self.groups.as_deref())?;
        let keep = self.keep.keep();
        // The key is made whether it is a column or not.
        let columns = outputs.columns.clone();
        let mut outputs = outputs;
        outputs.columns.add_keys(self.key.as_slice());
        let mut job = Job::new(&self.input, &self.form, &self.recipes, outputs, work, self.reporting.reporting())?;
        let is_wanted = job.outputs.columns.contains(ColumnId::KeyProtocol);
        job.policy.equivalences = self.equivalences.read(&job.policy, is_wanted)?;
        job.outputs.columns = columns;
        job.policy.carry.time |= keep.compares_time();
        job.policy.carry.status |= keep.compares_status();
        check_times(keep, &job.inputs)?;
        let dedup = DedupOptions {
            key: self.key(&job.policy)?,
            keep,
            keep_faulty: self.keep_faulty,
            memory: budget.remaining(),
            directory: self.spill.directory(),
            seen: None,
            gather_new: self.update_seen,
            has_evidence: self.duplicates.is_some() || self.groups.is_some(),
            verify: self.verify,
            survey: self.survey || self.reporting.is_for_people(),
            key_bits: self.key_bits,
        };
        job.policy.keep_input |= dedup.has_evidence;
        job.policy.carry.status |= dedup.survey;
        job.policy.carry.digest |= dedup.survey;
        if dedup.has_evidence || dedup.survey {
            let more = [Rung::Simple, Rung::Syntax].into_iter().filter(|rung| !job.policy.more_keys.contains(rung));
            let more: Vec<_> = more.collect();
            job.policy.more_keys.extend(more);
        }
        let (duplicates, groups) = (self.duplicates.clone(), self.groups.clone());
        Ok(Plan { job, dedup, seen: self.seen.clone(), update: self.update_seen, duplicates, groups })
    }

    /// What records are compared by, among the keys that the policy makes.
    fn key(&self, policy: &Policy) -> Result<DedupKey, String> {
        match self.key {
            None => Ok(DedupKey::Rung),
            Some(ColumnId::KeyOf(rung)) if rung == policy.rung => Ok(DedupKey::Rung),
            Some(ColumnId::KeyOf(Rung::Simple)) if self.verify => {
                Err("--verify compares texts that are written, and those of --key simple are not".to_string())
            }
            Some(ColumnId::KeyOf(Rung::Simple)) => {
                Ok(DedupKey::More(policy.more_keys.iter().position(|key| *key == Rung::Simple).unwrap_or_default()))
            }
            Some(ColumnId::KeyProtocol) if self.verify => {
                Err("--verify compares texts, and URLs that --key protocol makes one differ in them".to_string())
            }
            Some(ColumnId::KeyProtocol) => Ok(DedupKey::Protocol),
            Some(ColumnId::RecipeKey(name)) => {
                let place = policy.recipes.iter().position(|wanted| wanted.column == name);
                Ok(DedupKey::Recipe(place.unwrap_or_default()))
            }
            Some(_) => Err("--key of another rung than --rung would keep one URI of several; set --rung".to_string()),
        }
    }
}

/// The format may have times, if the policy goes by them before all else.
fn check_times(keep: KeepPolicy, inputs: &Inputs) -> Result<(), String> {
    let has_none = matches!(inputs.format, InputFormat::Lines | InputFormat::Csv | InputFormat::Tsv);
    match keep {
        KeepPolicy::Newest | KeepPolicy::Oldest if has_none => Err(format!(
            "--keep {} goes by the times of records, and this format has none; take first or last, or an index, an \
             archive, a log, JSON lines or Parquet with fetch_time",
            keep.name()
        )),
        _ => Ok(()),
    }
}

fn check_table(flag: &str, path: Option<&Path>) -> Result<(), String> {
    match path.map(OutputFormat::of_path) {
        None | Some(Some(OutputFormat::Parquet)) => Ok(()),
        Some(_) => Err(format!("{flag} is written as Parquet; name a file that ends in .parquet")),
    }
}
