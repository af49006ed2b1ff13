//! `count`: counts the distinct URLs on every rung.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::input::{InputArgs, WorkArgs};
use super::args::policy::{EquivalenceArgs, PROTOCOL, PolicyArgs};
use super::args::reporting::{ReportFormat, ReportingArgs};
use super::args::spill::SpillArgs;
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::progress::TerminalBar;
use super::report::{SourceError, Table, advice_to_text, conclude, document, replaced_to_text};
use super::terminal::{format_counts, print_json, print_lines, thousands};
use crate::process::exit;
use crate::run::{self, CountMethod, DistinctCounts, Progress, RunRequest, Summary, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  How many different URLs are there, and how many differ only in spelling?
      irikey count @lists.txt

  About how many, with a few megabytes of memory, for a script:
      irikey count urls.txt.gz --approximate --json

  How many remain after merging what redirects have shown to be the same?
      irikey count urls.txt.gz --key protocol --equivalences equivalences.parquet";

const TITLE: &str = "irikey count report";

/// Input bytes that are counted at a time: few enough for the processor's caches.
const ROW_GROUP_LEN: usize = 1 << 20;

/// Count the distinct URLs of the inputs on every rung
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES))]
pub(crate) struct CountArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    /// Count on the rung protocol as well, with --equivalences
    #[arg(long, value_name = "NAME", value_parser = [PROTOCOL], help_heading = "Count")]
    key: Option<String>,
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

pub(crate) fn run(args: &CountArgs) -> Result<u8, CommandError> {
    let (DistinctCounts { summary, rungs, protocol }, replaced) = perform(args)?;
    let protocol = protocol.map(|count| (PROTOCOL, count));
    let distinct: Vec<_> = rungs.into_iter().map(|(rung, count)| (rung.name(), count)).chain(protocol).collect();
    let errors = SourceError::of_run(&summary);
    let json = format!("{:#}\n", to_json(&summary, &distinct, &errors, !args.approximate));
    let counts = labeled_counts(&summary, &distinct, !args.approximate);
    let text = format_counts(counts.iter().map(|(label, count)| (label.as_str(), *count)));
    let status = if args.json { print_json(&json) } else { print_lines(&text) };
    if status != exit::SUCCESS {
        return Ok(status);
    }
    let messages = replaced_to_text(&replaced) + &advice_to_text(&summary);
    conclude(&args.reporting, (&errors, &summary), &messages, |format| match format {
        ReportFormat::Page => to_html(&counts),
        ReportFormat::Text => text,
        ReportFormat::Json => json,
    })
}

/// The counts, and the files that will be replaced.
fn perform(args: &CountArgs) -> Result<(DistinctCounts, Vec<PathBuf>), CommandError> {
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    let mut policy = args.policy.policy(&args.input)?;
    policy.equivalences = args.equivalences.read(&policy, args.key.is_some())?;
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
    let counts = run::count(RunRequest::new(sources, &options, &policy, &progress), &method)?;
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
