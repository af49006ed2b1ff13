//! `learn`: crawl records in, a table of equivalences out, and on standard error what became of every redirect.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::{FormArgs, InputArgs, Reporting, ReportingArgs, WorkArgs};
use super::canon::{Failure, bar, fail};
use super::size::parse_size;
use super::summary::thousands;
use super::{drive, say};
use crate::batch::{equivalences_batches, equivalences_metadata, equivalences_schema};
use crate::canon::{Policy, Rung};
use crate::learn::{LearnLimits, Learned, RedirectVerdict};
use crate::output::{OutputError, OutputFormat, TableWriter, metadata};
use crate::process::exit;
use crate::run::{self, Budget, ObserveError, ObserveResult, Progress, RunOptions, Summary, WorkerNeed, memory};

const EXAMPLES: &str = "\
Examples:
  What the redirects of a crawl show, and a dedup that believes it:
      irikey learn crawl-data/*.warc.gz -o equivalences.parquet
      irikey dedup urls.txt.gz -o distinct.parquet --key protocol --equivalences equivalences.parquet

  From indexes, temporary redirects as well, within registered domains only:
      irikey learn cdx-*.gz --weak --same-site -o equivalences.parquet

  What was learned of a host:
      duckdb -c \"SELECT * FROM 'equivalences.parquet' WHERE host = 'example.org'\"";

/// Input that is looked at at a time.
const SPAN_LEN: usize = 4 << 20;

/// Learn from observed redirects which URLs are one: the rung protocol of RFC 3987 section 5.3.4
///
/// Reads status and redirect from CDX, CDXJ, WARC, ARC, JSON lines, crawl.log and the Parquet of Common Crawl's index, and
/// writes the classes of URLs that redirects join, and the patterns of hosts, each with its evidence. Memory holds every
/// different redirect: see --memory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{}", super::exit_help()))]
pub(super) struct LearnArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    /// Where the equivalences go, a Parquet file
    #[arg(short, long, value_name = "FILE", required = true, help_heading = "Output")]
    output: PathBuf,
    /// Believe temporary redirects (302, 303, 307) and those of unknown status, where no permanent one contradicts
    #[arg(long, help_heading = "Learning")]
    weak: bool,
    /// Different URLs that may redirect to one target; where more do, it is a sink, and they stay apart. The target with
    /// another scheme, with or without www. or a final slash does not count, and is joined with it
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().max_sources, help_heading = "Learning")]
    max_sources: u64,
    /// Believe redirects within one registered domain only
    #[arg(long, help_heading = "Learning")]
    same_site: bool,
    /// Different URLs of a host that must have shown a pattern
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().min_support,
          value_parser = clap::value_parser!(u64).range(1..), help_heading = "Learning")]
    min_support: u64,
    /// Share of a host's URLs, of those that a pattern speaks of, that must have shown it: more than 0.5, to 1
    #[arg(long, value_name = "SHARE", default_value_t = LearnLimits::default().min_confidence,
          value_parser = parse_share, help_heading = "Learning")]
    min_confidence: f64,
    /// Memory to take, in bytes [default: half of what there is]. All that was observed is held in it, some 600 bytes a
    /// different redirect and 10 to 40 a different URL that answered; a crawl that shows more is refused, and nothing written
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.5 && *share <= 1.0);
    share.ok_or_else(|| "a share is a number above 0.5 and up to 1, such as 0.95".to_string())
}

impl From<ObserveError> for Failure {
    fn from(error: ObserveError) -> Failure {
        let what = "nothing was written; allow more with --memory, or learn from part of the crawl";
        Failure::Usage(format!("--memory: {error}; {what}"))
    }
}

pub(super) fn run(args: &LearnArgs) -> u8 {
    let reporting = args.reporting.reporting();
    match perform(args, &reporting) {
        Ok(told) => close(&reporting, told),
        Err(Failure::Usage(message)) => fail(&format!("{message}\nFor more, try 'irikey learn --help'."), exit::USAGE),
        Err(failure) => failure.tell(),
    }
}

/// What the closing words are made of.
struct Told {
    text: String,
    json: Value,
    errors: Vec<super::InputFailure>,
    has_faults: bool,
}

impl LearnArgs {
    fn limits(&self) -> LearnLimits {
        LearnLimits {
            weak: self.weak,
            max_sources: self.max_sources,
            same_site: self.same_site,
            min_support: self.min_support,
            min_confidence: self.min_confidence,
        }
    }

    fn policy(&self) -> Result<Policy, String> {
        if OutputFormat::of_path(&self.output) != Some(OutputFormat::Parquet) {
            return Err(format!(
                "{}: equivalences are Parquet; name a file that ends in .parquet",
                self.output.display()
            ));
        }
        let policy = self.form.policy(&self.input)?;
        match () {
            () if policy.rung != Rung::Scheme => Err("learn stands on the rung scheme; leave --rung out".to_string()),
            () if policy.profile.is_whatwg() => {
                Err("learn does not take --profile whatwg: targets are normalised by RFC 3987".to_string())
            }
            () => Ok(policy),
        }
    }
}

fn perform(args: &LearnArgs, reporting: &Reporting) -> Result<Told, Failure> {
    let begun = Instant::now();
    let policy = args.policy().map_err(Failure::Usage)?;
    let inputs = args.input.inputs().map_err(Failure::Usage)?;
    let mut work = args.work.work().map_err(Failure::Usage)?;
    let mut budget = Budget::new(args.memory);
    let threads = budget.reserve_workers(work.threads, WorkerNeed::keys(SPAN_LEN));
    work.threads = threads.map_err(|error| Failure::Usage(error.to_string()))?;
    let limits = args.limits();
    let sources = drive::sources(&inputs).map_err(Failure::Input)?;
    let options: RunOptions = drive::options(&inputs, &work, SPAN_LEN);
    let said = [metadata(&policy, sources.0.len()), equivalences_metadata(&limits)].concat();
    let mut table = TableWriter::create(&args.output, equivalences_schema(), &said)?;
    let progress = Arc::new(Progress::new());
    let bar = bar(reporting.progress, sources.total_len(), &progress);
    let request = run::RunRequest::new(sources, &options, &policy, &progress);
    let watched = run::observe(request, budget.remaining());
    drop(bar);
    let ObserveResult { summary, observed, sources } = watched?;
    let redirects = summary.tally.redirects;
    let learned = observed.learn(&limits, policy.algorithm);
    if learned.counts.read != redirects {
        let message = format!("{redirects} redirects were read, and {} judged", learned.counts.read);
        return Err(Failure::Internal(message));
    }
    for batch in equivalences_batches(&learned, &sources) {
        table.append(&batch.map_err(|error| OutputError::from(crate::batch::BatchError::from(error)))?)?;
    }
    table.finish()?;
    let summary = Summary { memory: memory::peaks(), ..summary };
    Ok(tell(&learned, drive::ran(summary), &policy, &limits, begun.elapsed().as_secs_f64()))
}

fn close(reporting: &Reporting, told: Told) -> u8 {
    for error in &told.errors {
        say(&format!("{}: {}", error.source, error.message));
    }
    if !reporting.quiet {
        // On stderr, whoever listens.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), told.text.as_bytes());
    }
    if let Some(path) = &reporting.report
        && let Err(error) = write_report(path, &told.json)
    {
        let path = path.display();
        return fail(&format!("{path}: cannot write the report: {error}; the output is whole"), exit::OUTPUT);
    }
    match told {
        Told { errors, .. } if !errors.is_empty() => exit::INPUT,
        Told { has_faults: true, .. } if reporting.fail_on_fault => exit::FAULTS,
        _ => exit::SUCCESS,
    }
}

fn write_report(path: &Path, json: &Value) -> std::io::Result<()> {
    std::fs::write(path, format!("{json:#}\n"))
}

fn tell(learned: &Learned, ran: drive::Ran, policy: &Policy, limits: &LearnLimits, seconds: f64) -> Told {
    let lines = lines(learned, &ran);
    let labels = lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
    let numbers = lines.iter().map(|(_, count)| thousands(*count).len()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, count) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:labels$}  {:>numbers$}", thousands(count));
    }
    let json = to_json(learned, &ran, policy, limits, seconds);
    Told { text, json, has_faults: ran.tally.faulty > 0, errors: ran.errors }
}

fn lines(learned: &Learned, ran: &drive::Ran) -> Vec<(String, u64)> {
    let counts = &learned.counts;
    let mut lines = vec![("records".to_string(), ran.tally.rows), ("redirects".to_string(), counts.read)];
    let verdicts = RedirectVerdict::ALL.iter().zip(counts.records);
    lines.extend(
        verdicts.filter(|(_, count)| *count > 0).map(|(verdict, count)| (format!("  {}", verdict.name()), count)),
    );
    let refused = &counts.refused;
    lines.extend(
        [
            ("different redirects accepted", counts.redirects[RedirectVerdict::Accepted as usize]),
            ("  that change scheme or www.", counts.origin_changes),
            ("  that change a final slash", counts.slash_changes),
            ("classes", counts.classes),
            ("  URLs in them", learned.members.len() as u64),
            ("  URLs in the largest", counts.largest),
            ("URLs that answered themselves", counts.served),
            ("patterns", learned.patterns.len() as u64),
            ("  not learned, of little support", refused.support),
            ("  not learned, of little confidence", refused.confidence),
            ("  not learned, going round", refused.circular),
        ]
        .map(|(label, count)| (label.to_string(), count)),
    );
    lines
}

fn to_json(learned: &Learned, ran: &drive::Ran, policy: &Policy, limits: &LearnLimits, seconds: f64) -> Value {
    let counts = &learned.counts;
    let by_verdict = |counts: &[u64]| -> Map<String, Value> {
        RedirectVerdict::ALL
            .iter()
            .zip(counts)
            .map(|(verdict, count)| (verdict.name().to_string(), json!(count)))
            .collect()
    };
    let pairs = |pairs: Vec<(&'static str, String)>| -> Map<String, Value> {
        pairs.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
    };
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": ran.tally.rows,
        "faulty": ran.tally.faulty,
        "redirects": counts.read,
        "verdicts": by_verdict(&counts.records),
        "different_redirects": by_verdict(&counts.redirects),
        "origin_changes": counts.origin_changes,
        "slash_changes": counts.slash_changes,
        "classes": counts.classes,
        "members": learned.members.len(),
        "largest_class": counts.largest,
        "served": counts.served,
        "patterns": learned.patterns.len(),
        "patterns_refused": {
            "support": counts.refused.support,
            "confidence": counts.refused.confidence,
            "circular": counts.refused.circular,
        },
        "limits": pairs(limits.describe()),
        "policy": pairs(policy.describe()),
        "seconds": seconds,
        "peak_anonymous_bytes": ran.peak_anonymous,
        "errors": ran.errors.iter().map(|error| json!({
            "source": error.source,
            "message": error.message,
        })).collect::<Vec<_>>(),
    })
}
