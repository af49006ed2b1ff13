//! `learn`: learns from observed redirects and contents which URLs are the same resource, and writes them as a table.

mod args;
mod export;
mod hand_rules;
mod report;
mod validation;

use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

pub(crate) use self::args::LearnArgs;
use self::export::ExportedRule;
use self::hand_rules::HandRules;
use self::report::LearnReport;
use super::error::CommandError;
use super::files::print_abandoned;
use super::progress::watch;
use super::terminal::{count_of, print_error};
use crate::batch::{BatchError, EquivalenceRows, applied_rule, equivalences_metadata, equivalences_schema};
use crate::learn::{EquivalencesBuilder, LearnedRedirects, Pattern};
use crate::output::{OutputError, TableWriter, check_creatable, metadata, write_file};
use crate::run::{self, DiskSorters, LearnedContent, ObserveError, ObserveResult, RunRequest, Validation, WorkerNeed};

/// Input bytes that are processed at a time.
const ROW_GROUP_LEN: usize = 4 << 20;

/// The inputs that state redirects and digests.
const LEARN_INPUTS: &str = "CDX, CDXJ, WARC, ARC, HAR, JSON lines, crawl.log, and Parquet or Arrow files with the columns \
     fetch_status, fetch_redirect or content_digest";

/// Maximum number of patterns that the report shows.
const MAX_SHOWN: usize = 20;

pub(crate) fn run(args: &LearnArgs) -> Result<u8, CommandError> {
    let started = Instant::now();
    let (policy, limits) = (args.policy()?, args.limits()?);
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    let need = WorkerNeed::keys(ROW_GROUP_LEN).with_tables(1).with_data("redirects");
    let memory = args.input.reserve_memory(&args.work, &mut options, need)?;
    let parts = args.parts()?;
    let files = args.files(&parts);
    let observe_options = args.observe_options(memory, parts)?;
    let sources = args.sources()?;
    let documents = args.document_options(&sources)?;
    let replaced = files.check(&sources)?;
    args.export.iter().try_for_each(|export| check_creatable(&export.path))?;
    let mut hand = args.hand_rules()?;
    let metadata = [metadata(&policy, sources.0.len()), equivalences_metadata(&limits), args.more_metadata()].concat();
    let destination = args.reporting.replace.file(&args.output);
    let table = TableWriter::create(&destination, equivalences_schema(), &metadata)?;
    let (observed, _) = watch(&args.reporting, sources.total_len(), |progress| {
        run::observe(RunRequest::new(sources, &options, &policy, progress), &observe_options, documents)
    });
    let mut observed = observed?;
    check_observed(&observed, args)?;
    let mut written = WrittenPatterns::default();
    if observed.summary.is_nothing_read() {
        print_abandoned(&destination);
        drop(table);
    } else {
        written = write_table(args, &mut hand, &mut observed, table)?;
    }
    observed.summary.memory = run::memory::peaks();
    args.input.print_unused_flag(&observed.summary, args.reporting.quiet);
    args.print_unused_documents(&observed.summary);
    let validation = match &observed.content {
        Some(content) if args.validate.is_some() => Some(validate(content, written.applied)?),
        _ => None,
    };
    let replaced = files.replaced_after(replaced, observed.summary.is_nothing_read());
    let (patterns, hand) = (written.shown, args.rules.is_some().then(|| hand.counts()));
    let report = LearnReport { args, limits, policy, observed, patterns, hand, validation, replaced, started };
    report.conclude()
}

/// Checks that every redirect was evaluated, and that there is something to learn from.
fn check_observed(observed: &ObserveResult, args: &LearnArgs) -> Result<(), CommandError> {
    let tally = &observed.summary.tally;
    let (read, judged) = (tally.redirects, observed.redirects.counts.read);
    if judged != read {
        return Err(CommandError::Internal(format!("{judged} of {read} redirects were evaluated")));
    }
    let captures = observed.content.as_ref().map(|content| content.counts.captures);
    if tally.rows > 0 && read == 0 && captures == Some(0) && !args.may_learn_nothing() {
        let is_held_out = observed.content.as_ref().is_some_and(LearnedContent::has_held_out);
        return Err(if is_held_out { all_held_out() } else { nothing_to_learn(tally.rows) });
    }
    Ok(())
}

/// Why nothing can be learned if all captures are held out.
fn all_held_out() -> CommandError {
    CommandError::Usage(
        "--validate held out all captures, because there are few sites or URLs; hold out a smaller share, or give more captures"
            .to_string(),
    )
}

/// Why nothing can be learned from records.
fn nothing_to_learn(records: u64) -> CommandError {
    CommandError::Usage(format!(
        "nothing to learn from: of {}, none states a redirect, and none the digest (of 8 or more characters) of a response with \
         status 200 that is not truncated and was stored in at least 128 bytes; give {LEARN_INPUTS}",
        count_of(records, "record")
    ))
}

/// Writes what was learned, and the files of `--export`. The rules of the result include those about content if they are to be
/// validated.
fn write_table(
    args: &LearnArgs,
    hand: &mut HandRules,
    observed: &mut ObserveResult,
    mut table: TableWriter,
) -> Result<WrittenPatterns, CommandError> {
    let ObserveResult { redirects, sources, content, .. } = observed;
    if args.part {
        for batch in content.iter().flat_map(LearnedContent::part_batches) {
            table.append(&batch.map_err(OutputError::from)?)?;
        }
        table.finish()?;
        return Ok(WrittenPatterns::default());
    }
    let has_aliases = content.as_ref().is_some_and(LearnedContent::has_aliases);
    let is_compared = has_aliases || args.rules.is_some() || args.validate.is_some();
    let WrittenPatterns { shown, applied } = write_redirects(redirects, sources, &mut table, is_compared)?;
    let mut applied = hand.with_patterns(applied)?;
    if let Some(content) = content.as_mut().filter(|_| has_aliases) {
        content.refuse_loops(applied.clone()).map_err(OutputError::from)?;
    }
    let mut exported = Vec::new();
    for batch in content.iter().flat_map(LearnedContent::batches) {
        let batch = hand.without_struck(batch.map_err(OutputError::from)?).map_err(batch_error)?;
        if args.validate.is_some() {
            add_rules(&mut applied, &batch);
        }
        append_rules(&mut table, batch, args, &mut exported)?;
    }
    hand.unlearned().into_iter().for_each(|message| print_error(&message));
    append_rules(&mut table, hand.added_batch().map_err(batch_error)?, args, &mut exported)?;
    table.finish()?;
    export(args, &exported)?;
    Ok(WrittenPatterns { shown, applied })
}

fn batch_error(error: ArrowError) -> OutputError {
    OutputError::from(BatchError::from(error))
}

fn add_rules(rules: &mut EquivalencesBuilder, batch: &RecordBatch) {
    let applied = (0..batch.num_rows()).filter_map(|row| applied_rule(batch, row));
    applied.for_each(|(scope, rule)| rules.add_rule(scope, rule));
}

/// Tries rules on the captures that were held out.
fn validate(content: &LearnedContent, rules: EquivalencesBuilder) -> Result<Validation, CommandError> {
    content
        .validate(&rules.build_unchecked())
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

fn export(args: &LearnArgs, rules: &[ExportedRule]) -> Result<(), CommandError> {
    for export in &args.export {
        let (text, left_out) = export.render(rules);
        write_file(&args.reporting.replace.file(&export.path), text.as_bytes())
            .map_err(|error| CommandError::SideFile(format!("{error} (--export; the equivalences are complete)")))?;
        if left_out > 0 && !args.reporting.quiet {
            let path = export.path.display();
            let rules = count_of(left_out as u64, "rule");
            print_error(&format!("{path}: {rules} left out, because regular expressions cannot express all rules"));
        }
    }
    Ok(())
}

/// Patterns that are needed after they were written.
#[derive(Debug, Default)]
struct WrittenPatterns {
    /// Those with the most support.
    shown: Vec<Pattern>,
    /// All of them, if rules about content have to be compared with them.
    applied: EquivalencesBuilder,
}

/// Writes members of classes and patterns of hosts. `is_compared` says that all patterns are needed afterwards.
fn write_redirects(
    redirects: &mut LearnedRedirects<DiskSorters>,
    sources: &[String],
    table: &mut TableWriter,
    is_compared: bool,
) -> Result<WrittenPatterns, CommandError> {
    let (mut rows, mut written) = (EquivalenceRows::default(), WrittenPatterns::default());
    while let Some(member) = redirects.next_member().map_err(ObserveError::Spill)? {
        rows.add_member(&member, sources).map_err(batch_error)?;
        append_full(&mut rows, table)?;
    }
    append(&mut rows, table)?;
    while let Some(pattern) = redirects.next_pattern().map_err(ObserveError::Spill)? {
        rows.add_pattern(&pattern);
        append_full(&mut rows, table)?;
        written.add(pattern, is_compared);
    }
    append(&mut rows, table)?;
    Ok(written)
}

impl WrittenPatterns {
    fn add(&mut self, pattern: Pattern, is_compared: bool) {
        if is_compared {
            // Patterns that contradict each other were refused before.
            let added = self.applied.add_pattern(&pattern.host, pattern.rewrite);
            debug_assert!(added.is_ok());
        }
        let at = self.shown.partition_point(|shown| shown.support >= pattern.support);
        if at < MAX_SHOWN {
            self.shown.insert(at, pattern);
            self.shown.truncate(MAX_SHOWN);
        }
    }
}

fn append_full(rows: &mut EquivalenceRows, table: &mut TableWriter) -> Result<(), CommandError> {
    if rows.is_full() { append(rows, table) } else { Ok(()) }
}

fn append(rows: &mut EquivalenceRows, table: &mut TableWriter) -> Result<(), CommandError> {
    let batch = rows.take_batch().map_err(batch_error)?;
    Ok(batch.map_or(Ok(()), |batch| table.append(&batch))?)
}
