//! The flags of `dedup`, and the [`Job`] that they mean.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::args::{FormArgs, InputArgs, OutputArgs, RecipeArgs, ReportingArgs, SpillArgs, WorkArgs};
use super::canon_args::Job;
use crate::canon::Rung;
use crate::dedup::Keep;
use crate::output::Format;
use crate::run::DedupOptions;

const EXAMPLES: &str = "\
Examples:
  The distinct URIs of a list, in its order:
      irikey dedup urls.txt > distinct.txt

  One row a key, of many files, to Parquet, with not more than 2 GiB of memory:
      irikey dedup @lists.txt -o distinct.parquet --memory 2G --tmp /big/disk

  Only what no earlier run has seen, and remember it:
      irikey dedup today.txt.gz -o new.parquet --seen keys/ --update-seen

  The last of each, fragments not counted:
      irikey dedup urls.txt.gz --keep last --drop-fragment -o last.parquet";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KeepName {
    /// The first of the input
    First,
    /// The last of the input
    Last,
}

/// Flags of `dedup`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit::help()))]
pub struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    recipes: RecipeArgs,
    /// Which of the records of one key is kept; the kept ones stay in the order of the input. Any but first needs room
    /// in --tmp for all rows
    #[arg(long, value_enum, default_value_t = KeepName::First, help_heading = "Dedup")]
    keep: KeepName,
    /// Write records with a fault as well, each where it stands; otherwise they are only counted
    #[arg(long, help_heading = "Dedup")]
    keep_faulty: bool,
    /// Leave out what earlier runs have seen: a store of keys that --update-seen made. See also 'irikey seen'
    #[arg(long, value_name = "DIR", help_heading = "Dedup")]
    seen: Option<PathBuf>,
    /// Add the keys of the rows that are kept to the store, once the output is whole. Makes the store if there is none
    #[arg(long, requires = "seen", help_heading = "Dedup")]
    update_seen: bool,
    /// Write the records that are left out to FILE (Parquet): each with its representative, and the rung on which the two
    /// are equal, or "seen". All rows wait in --tmp then, and take 8 bytes of memory each
    #[arg(long, value_name = "FILE", help_heading = "Dedup")]
    duplicates: Option<PathBuf>,
    /// Write the representatives of two or more records to FILE (Parquet), with their number. As costly as --duplicates
    #[arg(long, value_name = "FILE", help_heading = "Dedup")]
    groups: Option<PathBuf>,
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
        let memory = self.spill.key_memory(work.threads, outputs.row_group_len)?;
        let dedup = DedupOptions {
            keep: match self.keep {
                KeepName::First => Keep::First,
                KeepName::Last => Keep::Last,
            },
            keep_faulty: self.keep_faulty,
            memory,
            directory: self.spill.directory(),
            seen: None,
            gather_new: self.update_seen,
            has_evidence: self.duplicates.is_some() || self.groups.is_some(),
        };
        check_table("--duplicates", self.duplicates.as_deref())?;
        check_table("--groups", self.groups.as_deref())?;
        let mut job = Job::new(&self.input, &self.form, &self.recipes, outputs, work, self.reporting.reporting())?;
        if dedup.has_evidence {
            job.policy.keep_input = true;
            let more = [Rung::Simple, Rung::Syntax].into_iter().filter(|rung| !job.policy.more_keys.contains(rung));
            let more: Vec<_> = more.collect();
            job.policy.more_keys.extend(more);
        }
        let (duplicates, groups) = (self.duplicates.clone(), self.groups.clone());
        Ok(Plan { job, dedup, seen: self.seen.clone(), update: self.update_seen, duplicates, groups })
    }
}

fn check_table(flag: &str, path: Option<&Path>) -> Result<(), String> {
    match path.map(Format::of_path) {
        None | Some(Some(Format::Parquet)) => Ok(()),
        Some(_) => Err(format!("{flag} is written as Parquet; name a file that ends in .parquet")),
    }
}
