//! `learn`: learns from observed redirects and contents which URLs are the same resource, and writes them as a table.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use clap::Args;
use serde_json::{Map, Value, json};

use super::args::input::{InputArgs, WorkArgs};
use super::args::policy::PolicyArgs;
use super::args::reporting::{ReportFormat, ReportingArgs};
use super::args::spill::SpillArgs;
use super::error::CommandError;
use super::file_roles::FileRoles;
use super::files::abandoned;
use super::learn_page::LearnPage;
use super::learn_redirects::{WrittenPatterns, write_redirects};
use super::learn_rules::{Export, ExportedRule, HandRules, parse_export};
use super::learn_validation;
use super::progress::TerminalBar;
use super::report::{SourceError, advice_to_text, conclude, counts, replaced_to_text};
use super::terminal::{format_counts, print_error, thousands};
use crate::batch::{BatchError, applied_rule, equivalences_metadata, equivalences_schema};
use crate::canon::{Policy, Rung};
use crate::learn::content::{ContentLimits, KindTotals};
use crate::learn::{Equivalences, LearnCounts, LearnLimits, RedirectVerdict};
use crate::output::{OutputError, OutputFormat, TableWriter, metadata, write_file};
use crate::run::{
    self, ContentCounts, DocumentCounts, DocumentOptions, LearnedContent, ObserveOptions, ObserveResult, Progress,
    RunRequest, Summary, Validation, WorkerNeed, memory,
};

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

/// Learn which URLs are the same resource, from observed redirects and contents
///
/// Makes the equivalences of the rung protocol (RFC 3987 section 5.3.4). Reads status, redirect and digest from CDX, CDXJ,
/// WARC, ARC, JSON lines, crawl.log and the Parquet files of Common Crawl's index. Writes classes of URLs that redirects
/// connect, rewrite rules of hosts, and rules about what makes no difference to the content (session identifiers, the order
/// of parameters, index.html, letter case, aliases of hosts), each with its evidence. Rules that captures contradict are
/// refused and listed.
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
    /// Learn from redirects only, and not from digests of content
    #[arg(long, help_heading = "Learning")]
    no_content: bool,
    /// Number of different contents of a host for which a rule about content must have made no difference. Rules about the
    /// segments of paths need two or three times as many
    #[arg(long, value_name = "N", default_value_t = ContentLimits::default().min_contents,
          value_parser = clap::value_parser!(u64).range(1..), help_heading = "Learning")]
    min_contents: u64,
    /// Share of right merges that the captures of a host must show for a rule about content, not counting what the host
    /// changes by itself: above 0.5, up to 1
    #[arg(long, value_name = "SHARE", default_value_t = ContentLimits::default().min_precision,
          value_parser = parse_share, help_heading = "Learning")]
    min_precision: f64,
    /// Take contents of WARC and ARC files as equal whose texts are nearly so: SimHashes of 64 bits that differ in at most BITS
    /// bits, such as 3. The archives are read a second time
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(0..=16), conflicts_with = "no_content",
          help_heading = "Learning")]
    near_duplicates: Option<u32>,
    /// Take canonical links of documents in WARC and ARC files (link elements and Link header fields) as evidence: a rule that
    /// as many pages confirm so as contents are needed needs only half as many contents. The archives are read a second time
    #[arg(long, conflicts_with = "no_content", help_heading = "Learning")]
    canonical_links: bool,
    /// Add and strike out rules about content by hand: a CSV file with the columns host, pattern and how, and context if
    /// needed. how is hand for a rule to add, and strike for a learned rule to leave out; other rows are ignored. The file
    /// that --export csv=FILE writes can be edited so
    #[arg(long, value_name = "FILE", help_heading = "Learning")]
    rules: Option<PathBuf>,
    /// Also write the rules about content for other tools: csv=FILE (a table, for --rules), nutch=FILE
    /// (regex-normalize.xml), stormcrawler=FILE (a URL filter) or sql=FILE (a table of regular expressions). May be repeated
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_export, help_heading = "Output")]
    export: Vec<Export>,
    /// Hold out SHARE of the captures, learn from the others, and report precision, recall and reduction of the rules about
    /// content on what was held out: SHARE of the sites, and of the others the latest captures, or SHARE of the URLs if all
    /// captures are of one day. The file has the rules that were learned so: learn again without this flag to use all captures
    #[arg(long, value_name = "SHARE", value_parser = parse_held_out, conflicts_with = "no_content",
          help_heading = "Learning")]
    validate: Option<f64>,
    #[command(flatten)]
    spill: SpillArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.5 && *share <= 1.0);
    share.ok_or_else(|| "expected a number above 0.5 and up to 1, such as 0.95".to_string())
}

fn parse_held_out(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share < 0.9);
    share.ok_or_else(|| "expected a number above 0 and below 0.9, such as 0.2".to_string())
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

    fn observe_options(&self, memory: usize) -> Result<ObserveOptions, CommandError> {
        let content = ContentLimits {
            min_contents: self.min_contents,
            min_precision: self.min_precision,
            held_out: self.validate.unwrap_or(0.0),
            near_bits: self.near_duplicates,
        };
        Ok(ObserveOptions {
            memory,
            directory: self.spill.directory()?,
            redirects: self.limits(),
            content: (!self.no_content).then_some(content),
        })
    }

    /// What is looked for in documents, with the sources that are read a second time for it.
    fn document_options(&self) -> Result<Option<DocumentOptions>, CommandError> {
        let (has_texts, has_canonical) = (self.near_duplicates.is_some(), self.canonical_links);
        if !has_texts && !has_canonical {
            return Ok(None);
        }
        if self.input.inputs.is_empty() || self.input.inputs.iter().any(|input| input.as_os_str() == "-") {
            return Err(CommandError::usage(
                "--near-duplicates and --canonical-links read archives twice, which standard input does not allow; name the files",
            ));
        }
        Ok(Some(DocumentOptions { sources: self.input.sources()?.0, has_texts, has_canonical }))
    }

    /// Metadata of the table about documents; none if these were not read.
    fn document_metadata(&self) -> Vec<(String, String)> {
        let near = self.near_duplicates.map(|bits| ("irikey.learn.near_duplicates".to_string(), bits.to_string()));
        let canonical = self.canonical_links.then(|| ("irikey.learn.canonical_links".to_string(), "yes".to_string()));
        near.into_iter().chain(canonical).collect()
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
    let mut budget = args.spill.budget(&args.input);
    options.threads = budget.reserve_workers(options.threads, WorkerNeed::keys(ROW_GROUP_LEN).with_tables(1))?;
    let observe_options = args.observe_options(budget.remaining())?;
    let (sources, documents) = (args.input.sources()?, args.document_options()?);
    let files = FileRoles::new(args.reporting.replace.no_clobber)
        .arguments(&args.input.inputs)
        .input("--rules", args.rules.as_deref())
        .output("-o", Some(&args.output));
    let files = args.export.iter().fold(files, |files, export| files.output("--export", Some(&export.path)));
    let files = files.report(args.reporting.report.as_deref());
    let replaced = files.check(&sources)?;
    let hand = args.rules.as_deref().map(HandRules::read).transpose()?.unwrap_or_default();
    let metadata =
        [metadata(&policy, sources.0.len()), equivalences_metadata(&limits), args.document_metadata()].concat();
    let destination = args.reporting.replace.file(&args.output);
    let mut table = TableWriter::create(&destination, equivalences_schema(), &metadata)?;
    let progress = Arc::new(Progress::new());
    let bar = TerminalBar::start(args.reporting.progress(), sources.total_len(), &progress);
    let watched = run::observe(RunRequest::new(sources, &options, &policy, &progress), &observe_options, documents);
    drop(bar);
    let ObserveResult { mut summary, redirects, sources, mut content, documents } = watched?;
    let redirect_counts = redirects.counts.clone();
    let (read, judged) = (summary.tally.redirects, redirect_counts.read);
    if judged != read {
        return Err(CommandError::Internal(format!("{judged} of {read} redirects were evaluated")));
    }
    let captures = content.as_ref().map(|content| content.counts.captures);
    if summary.tally.rows > 0 && read == 0 && captures == Some(0) && args.rules.is_none() {
        return Err(nothing_to_learn(summary.tally.rows));
    }
    let (mut exported, mut patterns, mut applied) = (Vec::new(), WrittenPatterns::default(), Equivalences::default());
    if summary.is_nothing_read() {
        abandoned(&destination);
        drop(table);
    } else {
        let has_aliases = content.as_ref().is_some_and(LearnedContent::has_aliases);
        let is_compared = has_aliases || args.rules.is_some() || args.validate.is_some();
        patterns = write_redirects(redirects, &sources, &mut table, is_compared)?;
        applied = hand.with_patterns(std::mem::take(&mut patterns.applied))?;
        if let Some(content) = content.as_mut().filter(|_| has_aliases) {
            content.leave_out_loops(applied.clone()).map_err(OutputError::from)?;
        }
        for batch in content.iter().flat_map(LearnedContent::batches) {
            let batch = hand.without_struck(batch.map_err(OutputError::from)?);
            let batch = batch.map_err(batch_error)?;
            if args.validate.is_some() {
                add_rules(&mut applied, &batch);
            }
            append_rules(&mut table, batch, args, &mut exported)?;
        }
        append_rules(&mut table, hand.added_batch().map_err(batch_error)?, args, &mut exported)?;
        table.finish()?;
        export(args, &exported)?;
    }
    summary.memory = memory::peaks();
    let errors = SourceError::of_run(&summary);
    let replaced = files.replaced_after(replaced, &summary);
    let found = content.as_ref().map(|content| content.counts.clone()).unwrap_or_default();
    let validation = match (&content, args.validate) {
        (Some(content), Some(_)) => Some(validate(content, applied)?),
        _ => None,
    };
    let text = to_text(&redirect_counts, &found, &summary) + &documents_to_text(args, &documents, &found);
    let text = text
        + &validation.as_ref().map_or(String::new(), learn_validation::to_text)
        + &replaced_to_text(&replaced)
        + &advice_to_text(&summary);
    conclude(&args.reporting, (&errors, &summary.tally), &text, |format| {
        if format == ReportFormat::Page {
            let settings = [limits.describe(), policy.describe()].concat();
            let page =
                LearnPage { text: &text, patterns: &patterns.shown, content: content.as_ref(), settings: &settings };
            return page.to_html();
        }
        if format == ReportFormat::Text {
            return text.clone();
        }
        let mut json = to_json(&redirect_counts, &summary, &errors);
        json["content"] = content.as_ref().map_or(Value::Null, content_to_json);
        if args.near_duplicates.is_some() || args.canonical_links {
            json["documents"] = documents_to_json(&documents, &found);
        }
        json["validation"] = validation.as_ref().map_or(Value::Null, learn_validation::to_json);
        json["limits"] = pairs_to_json(limits.describe());
        json["policy"] = pairs_to_json(policy.describe());
        json["seconds"] = json!(started.elapsed().as_secs_f64());
        format!("{json:#}\n")
    })
}

/// Why nothing can be learned from records.
fn nothing_to_learn(records: u64) -> CommandError {
    CommandError::Usage(format!(
        "nothing to learn from: of {} records, none states a redirect, and none a digest of a complete answer with status 200; give \
         CDX, CDXJ, WARC, ARC, JSON lines, crawl.log or the index of Common Crawl, with these fields",
        thousands(records)
    ))
}

fn batch_error(error: ArrowError) -> OutputError {
    OutputError::from(BatchError::from(error))
}

/// Adds the rules of a batch.
fn add_rules(rules: &mut Equivalences, batch: &RecordBatch) {
    let applied = (0..batch.num_rows()).filter_map(|row| applied_rule(batch, row));
    applied.for_each(|(scope, rule)| rules.add_rule(scope, rule));
}

/// Tries rules on the captures that were held out.
fn validate(content: &LearnedContent, mut rules: Equivalences) -> Result<Validation, CommandError> {
    rules.find_loops();
    content
        .validate(&rules)
        .map_err(|error| CommandError::SideFile(format!("{error} (--validate; the equivalences are complete)")))
}

/// Writes rules about content, and keeps them if they are exported.
fn append_rules(
    table: &mut TableWriter,
    batch: RecordBatch,
    args: &LearnArgs,
    exported: &mut Vec<ExportedRule>,
) -> Result<(), CommandError> {
    if !args.export.is_empty() {
        exported.extend(ExportedRule::of_batch(&batch));
    }
    Ok(table.append(&batch)?)
}

/// Writes the files of `--export`.
fn export(args: &LearnArgs, rules: &[ExportedRule]) -> Result<(), CommandError> {
    for export in &args.export {
        let (text, left_out) = export.render(rules);
        write_file(&args.reporting.replace.file(&export.path), text.as_bytes())
            .map_err(|error| CommandError::SideFile(format!("{error} (--export; the equivalences are complete)")))?;
        if left_out > 0 && !args.reporting.quiet {
            let path = export.path.display();
            print_error(&format!(
                "{path}: {left_out} rules are left out, because regular expressions cannot express them"
            ));
        }
    }
    Ok(())
}

fn to_text(counts: &LearnCounts, content: &ContentCounts, summary: &Summary) -> String {
    let refused = &counts.refused;
    let verdicts = RedirectVerdict::ALL.iter().zip(counts.records).filter(|(_, count)| *count > 0);
    let verdicts: Vec<_> = verdicts.map(|(verdict, count)| (format!("  {}", verdict.name()), count)).collect();
    let results = [
        ("different redirects accepted", counts.redirects[RedirectVerdict::Accepted as usize]),
        ("  that change scheme or www.", counts.origin_changes),
        ("  that change a final slash", counts.slash_changes),
        ("classes", counts.classes),
        ("  URLs in them", counts.members),
        ("  URLs in the largest", counts.largest),
        ("URLs that answered without a redirect", counts.served),
        ("rewrite rules", counts.patterns),
        ("  rejected, too little support", refused.support),
        ("  rejected, too little confidence", refused.confidence),
        ("  rejected, circular", refused.circular),
        ("captures with content", content.captures),
        ("  different URLs of them", content.urls),
        ("  different after rules about content", content.forms),
        ("rules about content", content.rules),
        ("  rejected, contradicted by captures", content.refused_counter_examples),
        ("  rejected, too little support", content.refused_support),
    ];
    let records = [("records", summary.tally.rows), ("redirects", counts.read)];
    let verdicts = verdicts.iter().map(|(label, count)| (label.as_str(), *count));
    format_counts(records.into_iter().chain(verdicts).chain(results))
}

/// Lines about the documents of archives; none if these were not read.
fn documents_to_text(args: &LearnArgs, documents: &DocumentCounts, content: &ContentCounts) -> String {
    let texts =
        [("  with a text to compare", documents.texts), ("contents with nearly equal texts", content.near_contents)];
    let links = [
        ("  with a canonical link to another URL", documents.canonical),
        ("rules that needed canonical links", content.rules_by_canonical),
    ];
    let texts = texts.into_iter().filter(|_| args.near_duplicates.is_some());
    let links = links.into_iter().filter(|_| args.canonical_links);
    let all = [("documents of archives", documents.documents), ("  that could not be decoded", documents.unread)];
    let is_read = args.near_duplicates.is_some() || args.canonical_links;
    format_counts(all.into_iter().chain(texts).chain(links).filter(|_| is_read))
}

fn documents_to_json(documents: &DocumentCounts, content: &ContentCounts) -> Value {
    json!({
        "read": documents.documents,
        "unread": documents.unread,
        "texts": documents.texts,
        "near_contents": content.near_contents,
        "canonical_links": documents.canonical,
        "rules_by_canonical": content.rules_by_canonical,
    })
}

fn pairs_to_json(pairs: Vec<(&'static str, String)>) -> Value {
    pairs.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>().into()
}

fn content_to_json(content: &LearnedContent) -> Value {
    let counts = &content.counts;
    let by_kind = |number: fn(&KindTotals) -> u64| {
        let kinds = content.highlights.kinds.iter();
        kinds.map(|(kind, totals)| ((*kind).to_string(), json!(number(totals)))).collect::<Map<_, _>>()
    };
    json!({
        "captures": counts.captures,
        "urls": counts.urls,
        "different_after_rules": counts.forms,
        "hosts": counts.hosts,
        "hosts_with_rules": counts.hosts_with_rules,
        "rules": counts.rules,
        "rules_for_all_hosts": content.general.len(),
        "rules_by_kind": by_kind(|kind| kind.rules),
        "merged_by_kind": by_kind(|kind| kind.merged),
        "refused": {"counter_examples": counts.refused_counter_examples, "support": counts.refused_support},
        "spilled_bytes": content.spilled,
    })
}

fn to_json(found: &LearnCounts, summary: &Summary, errors: &[SourceError]) -> Value {
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
        "members": found.members,
        "largest_class": found.largest,
        "served": found.served,
        "patterns": found.patterns,
        "patterns_refused": {
            "support": found.refused.support,
            "confidence": found.refused.confidence,
            "circular": found.refused.circular,
        },
        "peak_anonymous_bytes": summary.memory.peak_anonymous,
        "errors": errors.iter().map(SourceError::to_json).collect::<Vec<_>>(),
    })
}
