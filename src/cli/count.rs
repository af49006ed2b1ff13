//! `count`: counts the distinct URLs on every rung, or by other keys.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::{
    EquivalenceArgs, InputArgs, PolicyArgs, RecipeArgs, ReportFormat, ReportingArgs, SpillArgs, WorkArgs, name_of_key,
    parse_key,
};
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::progress::TerminalBar;
use super::report::{SourceError, Table, advice_to_text, conclude, document, replaced_to_text};
use super::terminal::{format_counts, print_json, print_lines, thousands};
use crate::batch::ColumnId;
use crate::canon::Rung;
use crate::dedup::MAX_KINDS;
use crate::process::exit;
use crate::run::{self, CountMethod, DistinctCounts, Progress, RunRequest, Summary, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  How many different URLs are there, and how many differ only in spelling?
      irikey count @lists.txt

  About how many, with a few megabytes of memory, for a script:
      irikey count urls.txt.gz --approximate --json

  How many remain after merging what redirects have shown to be the same?
      irikey count urls.txt.gz --key scheme,protocol --equivalences equivalences.parquet

  How many does the Wayback Machine keep apart?
      irikey count urls.txt.gz --key surt-wayback";

const TITLE: &str = "irikey count report";

/// Input bytes that are counted at a time: few enough for the processor's caches.
const ROW_GROUP_LEN: usize = 1 << 20;

/// Count the distinct URLs of the inputs on every rung, or by other keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES))]
pub(crate) struct CountArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    #[command(flatten)]
    recipes: RecipeArgs,
    /// Keys to count, separated by commas: of the rungs simple, syntax, scheme, and protocol (with --equivalences); of the
    /// recipes surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix, and rules (with
    /// --rules). At most 8 [default: all rungs up to --rung]
    #[arg(long, value_name = "LIST", value_parser = parse_key, value_delimiter = ',', help_heading = "Count")]
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
    spill: SpillArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

impl CountArgs {
    /// The keys to count.
    fn keys(&self) -> Vec<ColumnId> {
        if self.key.is_empty() {
            let rungs = Rung::ALL.into_iter().filter(|rung| *rung <= self.policy.rung);
            return rungs.map(ColumnId::KeyOf).collect();
        }
        let is_first = |place: usize| !self.key[..place].contains(&self.key[place]);
        (0..self.key.len()).filter(|place| is_first(*place)).map(|place| self.key[place]).collect()
    }
}

pub(crate) fn run(args: &CountArgs) -> Result<u8, CommandError> {
    let keys = args.keys();
    let (DistinctCounts { summary, distinct }, replaced) = perform(args, &keys)?;
    let distinct: Vec<_> = keys.iter().filter_map(|key| name_of_key(*key)).zip(distinct).collect();
    let errors = SourceError::of_run(&summary);
    let json = format!("{:#}\n", to_json(&summary, &distinct, &errors, !args.approximate));
    let counts = labeled_counts(&summary, &distinct, !args.approximate);
    let text = format_counts(counts.iter().map(|(label, count)| (label.as_str(), *count)));
    let status = if args.json { print_json(&json) } else { print_lines(&text) };
    if status != exit::SUCCESS {
        return Ok(status);
    }
    let messages = replaced_to_text(&replaced) + &advice_to_text(&summary);
    conclude(&args.reporting, &errors, &summary, &messages, |format| match format {
        ReportFormat::Page => to_html(&counts),
        ReportFormat::Text => text,
        ReportFormat::Json => json,
    })
}

/// Counts by these keys. Returns the counts, and the files that will be replaced.
fn perform(args: &CountArgs, keys: &[ColumnId]) -> Result<(DistinctCounts, Vec<PathBuf>), CommandError> {
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    if keys.len() > MAX_KINDS {
        let count = keys.len();
        return Err(CommandError::Usage(format!("--key names {count} keys; at most {MAX_KINDS} are counted at once")));
    }
    let (policy, keys) = args.policy.key_policy(&args.input, (&args.equivalences, &args.recipes), keys)?;
    let method = if args.approximate {
        CountMethod::Approximate
    } else {
        let mut budget = args.spill.budget(&args.input);
        options.threads = budget.reserve_workers(options.threads, WorkerNeed::keys(ROW_GROUP_LEN))?;
        CountMethod::Exact { memory: budget.remaining(), directory: args.spill.directory()? }
    };
    let sources = args.input.sources()?;
    let files = FileRoles::new(args.reporting.replace.no_clobber).arguments(&args.input.inputs);
    let files = files.input("--equivalences", args.equivalences.path());
    let replaced = files.report(args.reporting.report.as_deref()).check(&sources)?;
    let progress = Arc::new(Progress::new());
    let _bar = TerminalBar::start(args.reporting.progress(), sources.total_len(), &progress);
    let counts = run::count(RunRequest::new(sources, &options, &policy, &progress), &keys, &method)?;
    Ok((counts, replaced))
}

fn to_json(summary: &Summary, distinct: &[(&'static str, u64)], errors: &[SourceError], is_exact: bool) -> Value {
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": summary.tally.rows,
        "faulty": summary.tally.faulty,
        "distinct": distinct.iter().map(|(name, count)| (name.to_string(), json!(count))).collect::<Map<_, _>>(),
        "distinct_exact": is_exact,
        "input_bytes": summary.bytes,
        "peak_memory_bytes": summary.memory.peak_resident,
        "peak_anonymous_bytes": summary.memory.peak_anonymous,
        "errors": errors.iter().map(SourceError::to_json).collect::<Vec<_>>(),
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

fn to_html(counts: &[(String, u64)]) -> String {
    let rows = counts.iter().map(|(label, count)| vec![label.clone(), thousands(*count)]);
    let table = Table::new("Records and distinct URLs", &["count of", "#number"]).with_rows(rows);
    document(TITLE, &format!("<header>\n<h1>{TITLE}</h1>\n</header>\n<section>\n{}</section>\n", table.to_html()))
}
