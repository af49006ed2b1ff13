//! `count`: flags in, distinct URLs on every rung out, on standard output.

use std::fmt::Write;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::{EquivalenceArgs, FormArgs, InputArgs, Reporting, ReportingArgs, SpillArgs, WorkArgs};
use super::canon::{Failure, bar, fail};
use super::summary::thousands;
use super::{drive, say};
use crate::canon::Policy;
use crate::process::exit;
use crate::run::{self, CountMethod, DistinctCounts, Progress, RunOptions, RunRequest, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  How many different URLs, and how many of them differ in spelling alone?
      irikey count @lists.txt

  About, in a few megabytes of memory, for a script:
      irikey count urls.txt.gz --approximate --json

  How many are left once redirects have been learned from?
      irikey count urls.txt.gz --key protocol --equivalences equivalences.parquet";

/// Input that is counted at a time: short enough to stay near the processor.
const SPAN_LEN: usize = 4 << 20;

/// Flags of `count`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit_help()))]
pub(super) struct CountArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    /// Count what is distinct on the rung protocol as well, by --equivalences
    #[arg(long, value_name = "NAME", value_parser = ["protocol"], help_heading = "Count")]
    key: Option<String>,
    /// Estimate instead of counting, within 2 % nearly always; takes next to no memory
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

pub(super) fn run(args: &CountArgs) -> u8 {
    let reporting = args.reporting.reporting();
    match perform(args, &reporting) {
        Ok(counted) => close(args, &reporting, counted),
        Err(Failure::Usage(message)) => fail(&format!("{message}\nFor more, try 'irikey count --help'."), exit::USAGE),
        Err(failure) => failure.tell(),
    }
}

fn perform(args: &CountArgs, reporting: &Reporting) -> Result<DistinctCounts, Failure> {
    let inputs = args.input.inputs().map_err(Failure::Usage)?;
    let mut policy: Policy = args.form.policy(&args.input).map_err(Failure::Usage)?;
    policy.equivalences = args.equivalences.read(&policy, args.key.is_some()).map_err(Failure::Usage)?;
    let mut work = args.work.work().map_err(Failure::Usage)?;
    let counting = if args.approximate {
        CountMethod::Approximate
    } else {
        let mut budget = args.spill.budget();
        let threads = budget.reserve_workers(work.threads, WorkerNeed::keys(SPAN_LEN));
        work.threads = threads.map_err(|error| Failure::Usage(error.to_string()))?;
        CountMethod::Exact { memory: budget.remaining(), directory: args.spill.directory() }
    };
    let sources = drive::sources(&inputs).map_err(Failure::Input)?;
    let options: RunOptions = drive::options(&inputs, &work, SPAN_LEN);
    let progress = Arc::new(Progress::new());
    let bar = bar(reporting.progress, sources.total_len(), &progress);
    let counted = run::count(RunRequest::new(sources, &options, &policy, &progress), &counting);
    drop(bar);
    Ok(counted?)
}

fn close(args: &CountArgs, reporting: &Reporting, counted: DistinctCounts) -> u8 {
    let DistinctCounts { summary, rungs, protocol } = counted;
    let ran = drive::ran(summary);
    for error in &ran.errors {
        say(&format!("{}: {}", error.source, error.message));
    }
    let protocol = protocol.map(|count| ("protocol", count));
    let rungs: Vec<_> = rungs.into_iter().map(|(rung, count)| (rung.name(), count)).chain(protocol).collect();
    let json = to_json(&ran, &rungs, !args.approximate);
    let text = if args.json { format!("{json:#}\n") } else { to_text(&ran, &rungs, !args.approximate) };
    let status = super::print(&text);
    if status != exit::SUCCESS {
        return status;
    }
    if let Some(path) = &reporting.report
        && let Err(error) = std::fs::write(path, format!("{json:#}\n"))
    {
        return fail(&format!("{}: cannot write the report: {error}", path.display()), exit::OUTPUT);
    }
    match ran {
        drive::Ran { errors, .. } if !errors.is_empty() => exit::INPUT,
        drive::Ran { tally, .. } if reporting.fail_on_fault && tally.faulty > 0 => exit::FAULTS,
        _ => exit::SUCCESS,
    }
}

fn to_json(ran: &drive::Ran, rungs: &[(&'static str, u64)], is_exact: bool) -> Value {
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": ran.tally.rows,
        "faulty": ran.tally.faulty,
        "distinct": rungs.iter().map(|(name, count)| (name.to_string(), json!(count))).collect::<Map<_, _>>(),
        "distinct_exact": is_exact,
        "input_bytes": ran.input_bytes,
        "peak_memory_bytes": ran.peak_memory,
        "peak_anonymous_bytes": ran.peak_anonymous,
        "errors": ran.errors.iter().map(|error| json!({
            "source": error.source,
            "message": error.message,
        })).collect::<Vec<_>>(),
    })
}

fn to_text(ran: &drive::Ran, rungs: &[(&'static str, u64)], is_exact: bool) -> String {
    let distinct = |name| format!("distinct, {name}{}", if is_exact { "" } else { ", about" });
    let mut lines = vec![("records".to_string(), ran.tally.rows), ("faulty".to_string(), ran.tally.faulty)];
    lines.extend(rungs.iter().map(|(name, count)| (distinct(name), *count)));
    let labels = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let numbers = lines.iter().map(|(_, count)| thousands(*count).len()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, count) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:labels$}  {:>numbers$}", thousands(count));
    }
    text
}
