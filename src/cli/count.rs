//! `count`: counts the distinct URLs on every rung, or by other keys.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::args::{InputArgs, KEYS, KeyArgs, NO_CLOBBER_REPORT_HELP, PolicyArgs, ReportingArgs, WorkArgs, name_of_key};
use super::error::CommandError;
use super::progress::watch;
use super::report::{PrintedResult, Table, counts, with_run_figures};
use super::terminal::{format_counts, thousands};
use crate::batch::ColumnId;
use crate::dedup::MAX_KINDS;
use crate::run::{self, CountMethod, DistinctCounts, RunRequest, Summary, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  How many different URLs are there, and how many differ only in spelling?
      irikey count @lists.txt

  About how many, with a few megabytes of memory, for a script:
      irikey count urls.txt.gz --approximate --json

  How many remain after merging the URLs that redirects connect?
      irikey count urls.txt.gz --key scheme,protocol --equivalences equivalences.parquet

  How many does the Wayback Machine keep apart?
      irikey count urls.txt.gz --key surt-wayback";

const RUNG_HELP: &str = "\
Highest rung to count, unless --key names the keys. A URL without a key of a recipe counts by its URI on this rung";

/// Input bytes that are counted at a time: few enough for the processor's caches.
const ROW_GROUP_LEN: usize = 1 << 20;

/// Count the distinct URLs of the inputs on every rung, or by other keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES),
          mut_arg("no_clobber", |flag| flag.help(NO_CLOBBER_REPORT_HELP)),
          mut_arg("rung", |flag| flag.help(RUNG_HELP)))]
pub(crate) struct CountArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    keys: KeyArgs,
    /// Keys to count, separated by commas: of the rungs simple, syntax, scheme, and protocol (with --equivalences); of the
    /// recipes surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix, and rules (with
    /// --rules). At most 8 [default: all rungs up to --rung]
    #[arg(long, value_name = "LIST", value_parser = KEYS, hide_possible_values = true, value_delimiter = ',',
          help_heading = "Count")]
    key: Vec<ColumnId>,
    /// Estimate instead of counting, nearly always within 2 %; takes very little memory
    #[arg(long, conflicts_with_all = ["memory", "tmp"], help_heading = "Count")]
    approximate: bool,
    /// Print JSON
    #[arg(long, help_heading = "Count")]
    json: bool,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

impl CountArgs {
    fn keys(&self) -> Vec<ColumnId> {
        if self.key.is_empty() {
            return self.policy.rung.up_to().map(ColumnId::KeyOf).collect();
        }
        let is_first = |place: usize| !self.key[..place].contains(&self.key[place]);
        (0..self.key.len()).filter(|place| is_first(*place)).map(|place| self.key[place]).collect()
    }
}

pub(crate) fn run(args: &CountArgs) -> Result<u8, CommandError> {
    let keys = args.keys();
    let (DistinctCounts { summary, distinct }, replaced) = perform(args, &keys)?;
    args.input.print_unused_flag(&summary, args.reporting.quiet);
    let distinct: Vec<_> = keys.iter().filter_map(|key| name_of_key(*key)).zip(distinct).collect();
    let counts = labeled_counts(&summary, &distinct, !args.approximate);
    let rows = counts.iter().map(|(label, count)| vec![label.clone(), thousands(*count)]);
    let json = with_run_figures(to_json(&summary, &distinct, !args.approximate), &summary);
    let result = PrintedResult {
        command: "count",
        summary: &summary,
        replaced: &replaced,
        text: format_counts(counts.iter().map(|(label, count)| (label.as_str(), *count))),
        report: json.clone(),
        json,
        tables: vec![Table::new("Records and distinct URLs", &["count of", "#number"], rows)],
    };
    result.conclude(args.json, &args.reporting)
}

/// Counts by these keys. Returns the counts, and the files that will be replaced.
fn perform(args: &CountArgs, keys: &[ColumnId]) -> Result<(DistinctCounts, Vec<PathBuf>), CommandError> {
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    if keys.len() > MAX_KINDS {
        let count = keys.len();
        return Err(CommandError::Usage(format!("--key names {count} keys; at most {MAX_KINDS} are counted at once")));
    }
    let (policy, keys) = args.keys.complete(args.policy.policy(&args.input)?, keys)?;
    let method = if args.approximate {
        CountMethod::Approximate
    } else {
        let memory = args.input.reserve_memory(&args.work, &mut options, WorkerNeed::keys(ROW_GROUP_LEN))?;
        CountMethod::Exact { memory, directory: args.work.directory()? }
    };
    let sources = args.input.sources()?;
    let replaced = args.keys.add_to(args.reporting.files(&args.input.files.inputs)).check(&sources)?;
    let (counts, _) = watch(&args.reporting, sources.total_len(), |progress| {
        run::count(RunRequest::new(sources, &options, &policy, progress), &keys, &method)
    });
    Ok((counts?, replaced))
}

/// The counts, without the figures of the run.
fn to_json(summary: &Summary, distinct: &[(&'static str, u64)], is_exact: bool) -> Value {
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": summary.tally.rows,
        "faulty": summary.tally.faulty,
        "distinct": counts(distinct.iter().copied()),
        "distinct_exact": is_exact,
    })
}

/// What was counted, with its label.
fn labeled_counts(summary: &Summary, distinct: &[(&'static str, u64)], is_exact: bool) -> Vec<(String, u64)> {
    let about = if is_exact { "" } else { ", about" };
    let records = [("records", summary.tally.rows), ("faulty", summary.tally.faulty)];
    let records = records.map(|(label, count)| (label.to_string(), count));
    let distinct = distinct.iter().map(|(name, count)| (format!("distinct, {name}{about}"), *count));
    records.into_iter().chain(distinct).collect()
}
