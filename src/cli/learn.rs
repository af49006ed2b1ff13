//! `learn`: learns from observed redirects which URLs are the same resource, and writes them as a table.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::{Map, Value, json};

use super::args::input::{InputArgs, WorkArgs};
use super::args::policy::PolicyArgs;
use super::args::reporting::ReportingArgs;
use super::args::values::parse_size;
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::files::abandoned;
use super::progress::TerminalBar;
use super::report::{SourceError, conclude, counts, replaced_to_text};
use super::terminal::format_counts;
use crate::batch::{BatchError, equivalences_batches, equivalences_metadata, equivalences_schema};
use crate::canon::{Policy, Rung};
use crate::learn::{LearnLimits, Learned, RedirectVerdict};
use crate::output::{OutputError, OutputFormat, TableWriter, metadata};
use crate::run::{self, Budget, ObserveResult, Progress, RunRequest, Summary, WorkerNeed, memory};

const EXAMPLES: &str = "\
Examples:
  Learn from the redirects of a crawl, then remove duplicates with the result:
      irikey learn crawl-data/*.warc.gz -o equivalences.parquet
      irikey dedup urls.txt.gz -o distinct.parquet --key protocol \\
          --equivalences equivalences.parquet

  Learn from indexes and from temporary redirects as well, but only within registered domains:
      irikey learn cdx-*.gz --weak --same-site -o equivalences.parquet

  Show what was learned of a host:
      duckdb -c \"SELECT * FROM 'equivalences.parquet' WHERE host = 'example.org'\"";

/// Input bytes that are processed at a time.
const ROW_GROUP_LEN: usize = 4 << 20;

/// Learn which URLs are the same resource, from observed redirects
///
/// Makes the equivalences of the rung protocol (RFC 3987 section 5.3.4). Reads status and redirect from CDX, CDXJ, WARC,
/// ARC, JSON lines, crawl.log and the Parquet files of Common Crawl's index. Writes classes of URLs that redirects connect,
/// and rewrite rules of hosts, each with its evidence. All different redirects are held in memory: see --memory.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES))]
pub(crate) struct LearnArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Output file for the equivalences, Parquet
    #[arg(short, long, value_name = "FILE", required = true, help_heading = "Output")]
    output: PathBuf,
    /// Accept temporary redirects (302, 303, 307) and those of unknown status, unless a permanent one contradicts
    #[arg(long, help_heading = "Learning")]
    weak: bool,
    /// Number of different URLs that may redirect to one target; a target of more is a sink and is ignored. The target
    /// with another scheme, with or without www. or a final slash does not count and is always accepted
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().max_sources, help_heading = "Learning")]
    max_sources: u64,
    /// Accept only redirects within one registered domain
    #[arg(long, help_heading = "Learning")]
    same_site: bool,
    /// Number of different URLs of a host that must support a rewrite rule
    #[arg(long, value_name = "N", default_value_t = LearnLimits::default().min_support,
          value_parser = clap::value_parser!(u64).range(1..), help_heading = "Learning")]
    min_support: u64,
    /// Share of the URLs that a rewrite rule applies to which must support it: above 0.5, up to 1
    #[arg(long, value_name = "SHARE", default_value_t = LearnLimits::default().min_confidence,
          value_parser = parse_share, help_heading = "Learning")]
    min_confidence: f64,
    /// Memory for the job in bytes [default: half of what is available]. It holds about 600 bytes per different redirect
    /// and 10 to 40 per different URL with an answer; if a crawl needs more, nothing is written
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.5 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0.5 and up to 1, such as 0.95".to_string())
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

    fn policy(&self) -> Result<Policy, CommandError> {
        if OutputFormat::of_path(&self.output) != Some(OutputFormat::Parquet) {
            let path = self.output.display();
            let message = format!("{path}: equivalences are written as Parquet; use a name that ends in .parquet");
            return Err(CommandError::Usage(message));
        }
        let policy = self.policy.policy(&self.input)?;
        if policy.rung != Rung::Scheme {
            return Err(CommandError::usage("irikey learn needs the rung scheme; remove --rung"));
        }
        if policy.profile.is_whatwg() {
            return Err(CommandError::usage(
                "irikey learn does not support --profile whatwg, because targets are normalized as in RFC 3987; remove it",
            ));
        }
        Ok(policy)
    }
}

pub(crate) fn run(args: &LearnArgs) -> Result<u8, CommandError> {
    let started = Instant::now();
    let (policy, limits) = (args.policy()?, args.limits());
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    let mut budget = Budget::new(args.memory);
    options.threads = budget.reserve_workers(options.threads, WorkerNeed::keys(ROW_GROUP_LEN))?;
    let sources = args.input.sources()?;
    let files = FileRoles::new(args.reporting.replace.no_clobber)
        .arguments(&args.input.inputs)
        .output("-o", Some(&args.output));
    let files = files.report(args.reporting.report.as_deref());
    let replaced = files.check(&sources)?;
    let metadata = [metadata(&policy, sources.0.len()), equivalences_metadata(&limits)].concat();
    let destination = args.reporting.replace.file(&args.output);
    let mut table = TableWriter::create(&destination, equivalences_schema(), &metadata)?;
    let progress = Arc::new(Progress::new());
    let bar = TerminalBar::start(args.reporting.progress(), sources.total_len(), &progress);
    let watched = run::observe(RunRequest::new(sources, &options, &policy, &progress), budget.remaining());
    drop(bar);
    let ObserveResult { mut summary, observed, sources } = watched?;
    let learned = observed.learn(&limits, policy.algorithm);
    let (read, judged) = (summary.tally.redirects, learned.counts.read);
    if judged != read {
        return Err(CommandError::Internal(format!("{judged} of {read} redirects were evaluated")));
    }
    if summary.is_nothing_read() {
        abandoned(&destination);
        drop(table);
    } else {
        for batch in equivalences_batches(&learned, &sources) {
            table.append(&batch.map_err(|error| OutputError::from(BatchError::from(error)))?)?;
        }
        table.finish()?;
    }
    summary.memory = memory::peaks();
    let errors = SourceError::of_run(&summary);
    let replaced = files.replaced_after(replaced, &summary);
    let text = to_text(&learned, &summary) + &replaced_to_text(&replaced);
    conclude(&args.reporting, (&errors, summary.tally.faulty), &text, |_| {
        let mut json = to_json(&learned, &summary, &errors);
        json["limits"] = pairs_to_json(limits.describe());
        json["policy"] = pairs_to_json(policy.describe());
        json["seconds"] = json!(started.elapsed().as_secs_f64());
        format!("{json:#}\n")
    })
}

fn to_text(learned: &Learned, summary: &Summary) -> String {
    let counts = &learned.counts;
    let refused = &counts.refused;
    let verdicts = RedirectVerdict::ALL.iter().zip(counts.records).filter(|(_, count)| *count > 0);
    let verdicts: Vec<_> = verdicts.map(|(verdict, count)| (format!("  {}", verdict.name()), count)).collect();
    let results = [
        ("different redirects accepted", counts.redirects[RedirectVerdict::Accepted as usize]),
        ("  that change scheme or www.", counts.origin_changes),
        ("  that change a final slash", counts.slash_changes),
        ("classes", counts.classes),
        ("  URLs in them", learned.members.len() as u64),
        ("  URLs in the largest", counts.largest),
        ("URLs that answered without a redirect", counts.served),
        ("rewrite rules", learned.patterns.len() as u64),
        ("  rejected, too little support", refused.support),
        ("  rejected, too little confidence", refused.confidence),
        ("  rejected, circular", refused.circular),
    ];
    let records = [("records", summary.tally.rows), ("redirects", counts.read)];
    let verdicts = verdicts.iter().map(|(label, count)| (label.as_str(), *count));
    format_counts(records.into_iter().chain(verdicts).chain(results))
}

fn pairs_to_json(pairs: Vec<(&'static str, String)>) -> Value {
    pairs.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>().into()
}

fn to_json(learned: &Learned, summary: &Summary, errors: &[SourceError]) -> Value {
    let found = &learned.counts;
    let by_verdict = |numbers: &[u64]| counts(RedirectVerdict::ALL.iter().map(|verdict| verdict.name()), numbers);
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": summary.tally.rows,
        "faulty": summary.tally.faulty,
        "redirects": found.read,
        "verdicts": by_verdict(&found.records),
        "different_redirects": by_verdict(&found.redirects),
        "origin_changes": found.origin_changes,
        "slash_changes": found.slash_changes,
        "classes": found.classes,
        "members": learned.members.len(),
        "largest_class": found.largest,
        "served": found.served,
        "patterns": learned.patterns.len(),
        "patterns_refused": {
            "support": found.refused.support,
            "confidence": found.refused.confidence,
            "circular": found.refused.circular,
        },
        "peak_anonymous_bytes": summary.memory.peak_anonymous,
        "errors": errors.iter().map(SourceError::to_json).collect::<Vec<_>>(),
    })
}
