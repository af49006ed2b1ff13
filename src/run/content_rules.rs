//! Learns rules about content from the captures of a run: [`CaptureSort`], [`learn_content`].
//!
//! ```text
//! rows --CaptureSort::sort--> sorted runs of captures, in memory and beyond its limit in a temporary file
//!      --merge--> captures of one host after the other --LearnedHost::learn, on all threads--> hosts of a site
//!      --GeneralRules::add_site--> rows of rules in a temporary file --> LearnedContent::batches
//! ```
//!
//! Captures are sorted by host, with the labels of the host reversed, so that the hosts of a site follow each other. Memory does not
//! depend on the number of captures, hosts or rules.

use super::held_out::{DAYS, DayCounts, HeldOutCaptures, HeldOutHost, HoldOut, Validation, encode_held_out};
use super::in_order::produced_in_order;
use super::{RowGroup, RunError};
use crate::batch::{BatchError, applied_rule, rule_batch};
use crate::canon::Rows;
use crate::learn::Equivalences;
use crate::learn::content::{
    ContentLimits, ContentRule, EVERYWHERE, GeneralRules, HostCaptures, JudgedRule, LearnedHost, RuleRefusal,
    ScopeRule, ScopedRule, UrlParts, site_of,
};
use crate::sort::{EncodedBlock, MergeLimits, Merger, SortBy, SortSchema, SortedRuns};
use crate::spill::{FileRange, ScratchFile, SpillError, decode_batch, encode_batch};
use arrow::array::{Array, AsArray, BooleanArray, Int32Array, RecordBatch, StringArray, StringBuilder, UInt64Array};
use arrow::buffer::Buffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Most bytes of a stored capture that has no content worth comparing.
const MAX_TINY_LEN: i64 = 128;

/// Digests of empty content: MD5, SHA-1 and SHA-256, as hexadecimal and as Base32 texts.
const EMPTY_DIGESTS: [&str; 5] = [
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
];

/// About the most URLs that a thread learns from at a time; a single host may have more.
const UNIT_URLS: usize = 4096;

/// Most hosts of a site that are held at a time.
const MAX_SITE_HOSTS: usize = 1024;

/// Rows of rules that are spilled at a time.
const SPILLED_ROWS: usize = 4096;

/// One `ALLOCATOR_SHARE`-th of the memory for runs is left to the allocator, see the sort job.
const ALLOCATOR_SHARE: usize = 4;

/// Sorts captures by host, URL and content.
#[derive(Debug)]
pub(crate) struct CaptureSort {
    table: SchemaRef,
    schema: SortSchema,
    /// Captures by day, if some are held out.
    days: Option<DayCounts>,
}

impl CaptureSort {
    /// `held_out` is the share of captures that rules are not learned from.
    pub(super) fn new(held_out: f64) -> Result<CaptureSort, SpillError> {
        let table = Arc::new(Schema::new(vec![
            Field::new("host", DataType::Utf8, false),
            Field::new("uri", DataType::Utf8, false),
            Field::new("content", DataType::UInt64, false),
            Field::new("day", DataType::Int32, false),
        ]));
        let by = SortBy::parse(["host", "uri", "content"]);
        let schema = SortSchema::new(&table, vec![None; 4], &by, None)?;
        Ok(CaptureSort { table, schema, days: (held_out > 0.0).then(DayCounts::default) })
    }

    /// An empty collection of runs that takes about `memory` bytes.
    pub(super) fn new_runs(memory: usize, directory: &Path) -> SortedRuns {
        SortedRuns::new(memory - memory / ALLOCATOR_SHARE, directory)
    }

    /// Returns the captures of a row group that are evidence, as a sorted run.
    pub(super) fn sort(&self, group: &RowGroup<'_>) -> Result<Vec<EncodedBlock>, SpillError> {
        let (mut hosts, mut uris, mut contents, mut days) =
            (StringBuilder::new(), StringBuilder::new(), Vec::new(), Vec::new());
        let mut host = String::new();
        for row in 0..group.rows.len() {
            let Some(content) = content_of(group.rows, row) else { continue };
            let Ok(uri) = std::str::from_utf8(group.rows.uri.get(row)) else { continue };
            let Some(parts) = UrlParts::of(uri.as_bytes()) else { continue };
            write_host_key(parts.authority(), &mut host);
            hosts.append_value(&host);
            uris.append_value(uri);
            contents.push(content);
            days.push(day_of(group.rows, row));
        }
        if let Some(counts) = &self.days {
            counts.add(&days);
        }
        let columns: Vec<Arc<dyn Array>> = vec![
            Arc::new(hosts.finish()),
            Arc::new(uris.finish()),
            Arc::new(UInt64Array::from(contents)),
            Arc::new(Int32Array::from(days)),
        ];
        let batch = RecordBatch::try_new(self.table.clone(), columns)?;
        Ok(self.schema.sort(&batch, group.ticket.first_row())?)
    }
}

/// Returns the day of a capture since 1970; 0 if it is unknown, or if days make no difference.
fn day_of(rows: &Rows, row: usize) -> i32 {
    const MS: i64 = 24 * 60 * 60 * 1000;
    let time = rows.carried.times.get(row).copied().flatten();
    time.map_or(0, |time| (time / MS).clamp(0, DAYS as i64 - 1) as i32)
}

/// Returns the hash of the digest of a capture, if that is evidence: a complete answer with success and with content.
fn content_of(rows: &Rows, row: usize) -> Option<u64> {
    let carried = &rows.carried;
    let digest = carried.digests.get(row);
    let is_revisit = carried.mimes.get(row) == b"warc/revisit";
    let is_success = match carried.statuses[row] {
        Some(200) => true,
        Some(304) | None => is_revisit,
        _ => false,
    };
    let is_tiny = !is_revisit && carried.capture_lengths[row].is_some_and(|len| len < MAX_TINY_LEN);
    let is_cut = !carried.truncated.get(row).is_empty();
    let name_len = memchr::memchr(b':', digest).map_or(0, |at| at + 1);
    let is_empty = digest.len() < 8 || EMPTY_DIGESTS.iter().any(|empty| empty.as_bytes() == &digest[name_len..]);
    (is_success && !is_tiny && !is_cut && !is_empty).then(|| xxh3_64(digest))
}

/// Writes the labels of a host in reverse, separated by a byte that is less than those of hosts.
fn write_host_key(authority: &[u8], out: &mut String) {
    out.clear();
    for (i, label) in authority.rsplit(|byte| *byte == b'.').enumerate() {
        out.push_str(if i > 0 { "!" } else { "" });
        out.push_str(&String::from_utf8_lossy(label));
    }
}

/// Counts of rules about content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentCounts {
    /// Captures that are evidence.
    pub(crate) captures: u64,
    /// Different URLs of them; of large hosts, those of a sample.
    pub(crate) urls: u64,
    /// Those that remain different after the rules of their hosts.
    pub(crate) forms: u64,
    pub(crate) hosts: u64,
    /// Hosts with rules of their own.
    pub(crate) hosts_with_rules: u64,
    /// Rules of hosts and domains.
    pub(crate) rules: u64,
    pub(crate) rules_by_kind: BTreeMap<&'static str, u64>,
    /// Refused rules, by reason.
    pub(crate) refused_counter_examples: u64,
    pub(crate) refused_support: u64,
}

/// Rules about content, in a temporary file.
#[derive(Debug)]
pub(crate) struct LearnedContent {
    pub(crate) counts: ContentCounts,
    /// Rules for all hosts.
    pub(crate) general: BTreeMap<ScopedRule, JudgedRule>,
    /// Bytes of temporary files.
    pub(crate) spilled: u64,
    spool: RuleSpool,
    /// Hosts whose aliases are left out.
    looping: BTreeSet<Vec<u8>>,
    held_out: HeldOutCaptures,
}

/// Rows of rules on disk.
#[derive(Debug)]
struct RuleSpool {
    file: ScratchFile,
    ranges: Vec<FileRange>,
    pending: Vec<ScopeRule>,
}

impl RuleSpool {
    fn add(&mut self, rules: Vec<ScopeRule>) -> Result<(), SpillError> {
        self.pending.extend(rules);
        if self.pending.len() >= SPILLED_ROWS { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<(), SpillError> {
        let mut bytes = Vec::new();
        encode_batch(&rule_batch(&std::mem::take(&mut self.pending))?, Some(CompressionType::LZ4_FRAME), &mut bytes)?;
        self.ranges.push(self.file.append(&bytes)?);
        Ok(())
    }

    fn read(&self, range: FileRange) -> Result<RecordBatch, SpillError> {
        let mut bytes = Vec::new();
        self.file.read(range, &mut bytes)?;
        Ok(decode_batch(Buffer::from_vec(bytes))?)
    }
}

impl LearnedContent {
    /// Returns the rows of the rules: those for all hosts, then those of sites and hosts.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, BatchError>> + '_ {
        let general = self.general.values().cloned();
        let general: Vec<ScopeRule> = general.map(|judged| ScopeRule::learned(EVERYWHERE.to_vec(), judged)).collect();
        let first = (!general.is_empty()).then(|| rule_batch(&general));
        let read = |range: &FileRange| {
            self.spool.read(*range).map_err(|error| ArrowError::from_external_error(Box::new(error)))
        };
        let spooled = self.spool.ranges.iter().map(read);
        first.into_iter().chain(spooled).map(|batch: Result<RecordBatch, ArrowError>| {
            let batch = batch?;
            Ok(filter_record_batch(&batch, &self.needed(&batch))?)
        })
    }

    /// Tries rules on the captures that were held out.
    pub(crate) fn validate(&self, rules: &Equivalences) -> Result<Validation, SpillError> {
        self.held_out.validate(rules)
    }

    /// Leaves out learned aliases of hosts that form a loop with other equivalences.
    pub(crate) fn leave_out_loops(&mut self, mut all: Equivalences) -> Result<(), BatchError> {
        for batch in self.batches() {
            let batch = batch?;
            let rules = (0..batch.num_rows()).filter_map(|row| applied_rule(&batch, row));
            let aliases = rules.filter(|(_, rule)| matches!(rule.rule, ContentRule::SameAs { .. }));
            aliases.for_each(|(host, rule)| all.add_rule(host, rule));
        }
        self.looping = all.find_loops().into_iter().collect();
        Ok(())
    }

    /// Rows that the rules for all hosts do not contain, and exceptions from these rules.
    fn needed(&self, batch: &RecordBatch) -> BooleanArray {
        let text = |name: &str| batch.column_by_name(name).map(|column| column.as_string::<i32>());
        let (Some(kinds), Some(patterns), Some(contexts)) = (text("kind"), text("pattern"), text("context")) else {
            return BooleanArray::from(vec![true; batch.num_rows()]);
        };
        let is_general = |rule: ContentRule| self.general.contains_key(&ScopedRule::from(rule));
        let is_looping = |row: usize| {
            let (host, rule) = applied_rule(batch, row)?;
            Some(matches!(rule.rule, ContentRule::SameAs { .. }) && self.looping.contains(host))
        };
        let is_needed = |row: usize| match ContentRule::parse(patterns.value(row)) {
            _ if is_looping(row) == Some(true) => false,
            Some(ContentRule::KeepParameter(name)) => is_general(ContentRule::Parameter(name, None)),
            Some(rule) => kinds.value(row) != "rule" || contexts.is_valid(row) || !is_general(rule),
            None => true,
        };
        (0..batch.num_rows()).map(|row| Some(is_needed(row))).collect()
    }
}

/// Learns from sorted captures, on `threads` threads.
pub(crate) fn learn_content<E: From<SpillError> + Send>(
    runs: SortedRuns,
    sort: &CaptureSort,
    (threads, directory): (usize, &Path),
    limits: &ContentLimits,
) -> Result<LearnedContent, RunError<E>> {
    let failed = |error: SpillError| RunError::Output(E::from(error));
    let mut runs = runs.reduce(&sort.schema).map_err(failed)?;
    let spilled = runs.written_len();
    let limits_of_merge = MergeLimits { rows: 16 << 10, len: 4 << 20, part_rows: None };
    let merger = runs.merger(&sort.schema, limits_of_merge).map_err(failed)?;
    let hold_out = sort.days.as_ref().map(|days| HoldOut::new(limits.held_out, days));
    let mut hosts = HostReader { merger, schema: &sort.schema, hold_out, batch: None, row: 0 };
    let mut sites = SiteCollector {
        hosts: Vec::new(),
        general: GeneralRules::default(),
        spool: RuleSpool { file: ScratchFile::new(directory), ranges: Vec::new(), pending: Vec::new() },
        counts: ContentCounts::default(),
        held_out: HeldOutCaptures::new(directory),
        limits,
    };
    let next = || Ok::<_, E>(hosts.next_unit()?);
    let learn = |unit: Vec<HostUnit>| {
        let held_out = encode_held_out(unit.iter().map(HostUnit::held_out))?;
        let trained = unit.into_iter().filter(|unit| unit.captures.len() > 0);
        let learned = trained
            .map(|HostUnit { host, captures, .. }| (captures.captures(), LearnedHost::learn(host, &captures, limits)));
        Ok((learned.collect::<Vec<_>>(), held_out))
    };
    let take = |(unit, held_out): (Vec<(u64, LearnedHost)>, Vec<u8>)| {
        sites.held_out.add(&held_out)?;
        unit.into_iter().try_for_each(|host| Ok(sites.add(host)?))
    };
    produced_in_order(threads, next, learn, take)?;
    let learned = sites.finish().map_err(failed)?;
    Ok(LearnedContent { spilled: spilled + learned.spilled, ..learned })
}

/// The captures of a host.
struct HostUnit {
    host: Vec<u8>,
    captures: HostCaptures,
    held_out: HostCaptures,
    is_site_held_out: bool,
}

impl HostUnit {
    fn held_out(&self) -> HeldOutHost<'_> {
        HeldOutHost { host: &self.host, captures: &self.held_out, is_site: self.is_site_held_out }
    }
}

/// Reads captures of one host after the other.
struct HostReader<'a> {
    merger: Merger<'a>,
    schema: &'a SortSchema,
    hold_out: Option<HoldOut>,
    batch: Option<RecordBatch>,
    row: usize,
}

impl HostReader<'_> {
    /// Returns hosts with about [`UNIT_URLS`] URLs together; `None` after the last.
    fn next_unit(&mut self) -> Result<Option<Vec<HostUnit>>, SpillError> {
        let (mut unit, mut urls) = (Vec::new(), 0);
        while urls < UNIT_URLS {
            let Some(host) = self.next_host()? else { break };
            urls += host.captures.len() + host.held_out.len() + 8;
            unit.push(host);
        }
        Ok((!unit.is_empty()).then_some(unit))
    }

    fn next_host(&mut self) -> Result<Option<HostUnit>, SpillError> {
        let mut key = None;
        let (captures, held_out) = (HostCaptures::default(), HostCaptures::default());
        let mut unit = HostUnit { host: Vec::new(), captures, held_out, is_site_held_out: false };
        while self.fill()? {
            let Some(batch) = &self.batch else { break };
            let (hosts, uris) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
            let contents = batch.column(2).as_primitive::<UInt64Type>();
            let days = batch.column(3).as_primitive::<Int32Type>();
            let host = hosts.value(self.row);
            match &key {
                None => {
                    key = Some(host.to_string());
                    unit.host = UrlParts::of(uris.value(self.row).as_bytes())
                        .map_or(Vec::new(), |url| url.authority().to_vec());
                    unit.is_site_held_out = self.hold_out.is_some_and(|hold_out| hold_out.contains_site(&unit.host));
                }
                Some(key) if key != host => break,
                Some(_) => (),
            }
            let end = end_of_host(hosts, self.row);
            for row in self.row..end {
                let uri = uris.value(row).as_bytes();
                let is_held_out = unit.is_site_held_out
                    || self.hold_out.is_some_and(|hold_out| hold_out.contains(uri, days.value(row)));
                let captures = if is_held_out { &mut unit.held_out } else { &mut unit.captures };
                captures.push(uri, contents.value(row));
            }
            self.row = end;
        }
        Ok(key.map(|_| unit))
    }

    /// Makes the next row available; false after the last.
    fn fill(&mut self) -> Result<bool, SpillError> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.num_rows()) {
            let Some(picked) = self.merger.next_rows()? else { return Ok(false) };
            (self.batch, self.row) = (Some(self.schema.gather(&picked)?), 0);
        }
        Ok(true)
    }
}

/// Returns the end of the rows with the host of row `from`.
fn end_of_host(hosts: &StringArray, from: usize) -> usize {
    let host = hosts.value(from);
    (from..hosts.len()).find(|row| hosts.value(*row) != host).unwrap_or(hosts.len())
}

/// Collects the hosts of a site, and the rules of all sites.
struct SiteCollector<'a> {
    hosts: Vec<LearnedHost>,
    general: GeneralRules,
    spool: RuleSpool,
    counts: ContentCounts,
    held_out: HeldOutCaptures,
    limits: &'a ContentLimits,
}

impl SiteCollector<'_> {
    fn add(&mut self, (captures, host): (u64, LearnedHost)) -> Result<(), SpillError> {
        let is_other = self.hosts.first().is_some_and(|first| site_of(&first.host) != site_of(&host.host));
        if is_other || self.hosts.len() == MAX_SITE_HOSTS {
            self.finish_site()?;
        }
        let (counts, rules) = (&mut self.counts, &host.rules);
        counts.captures += captures;
        counts.urls += rules.urls;
        counts.forms += rules.forms;
        counts.hosts += 1;
        counts.hosts_with_rules += u64::from(rules.rules.iter().any(|rule| rule.refusal.is_none()));
        self.hosts.push(host);
        Ok(())
    }

    fn finish_site(&mut self) -> Result<(), SpillError> {
        let rules = self.general.add_site(std::mem::take(&mut self.hosts), self.limits);
        for judged in rules.iter().map(|rule| &rule.judged) {
            let is_kept = matches!(judged.rule.rule, ContentRule::KeepParameter(_));
            if judged.refusal.is_none() && !is_kept {
                self.counts.rules += 1;
                *self.counts.rules_by_kind.entry(judged.rule.rule.kind()).or_default() += 1;
            }
            self.counts.refused_counter_examples += u64::from(judged.refusal == Some(RuleRefusal::CounterExamples));
            self.counts.refused_support += u64::from(judged.refusal == Some(RuleRefusal::Support));
        }
        self.spool.add(rules)
    }

    fn finish(mut self) -> Result<LearnedContent, SpillError> {
        self.finish_site()?;
        if !self.spool.pending.is_empty() {
            self.spool.spill()?;
        }
        let spilled = self.spool.file.written_len();
        Ok(LearnedContent {
            counts: self.counts,
            general: self.general.finish(),
            spilled,
            spool: self.spool,
            looping: BTreeSet::new(),
            held_out: self.held_out,
        })
    }
}
