//! Learns rules about content from the captures of a run: [`learn_content`].
//!
//! ```text
//! rows --CaptureSort::sort--> sorted runs of captures, in memory and beyond its limit in a temporary file
//!      --HostReader--> captures of one host after the other --LearnedHost::learn, on all threads--> hosts of a site
//!      --GeneralRules::add_site--> rows of rules in a temporary file --> LearnedContent::batches
//! ```
//!
//! Memory does not depend on the number of captures, hosts or rules.

use super::RunError;
use super::capture_sort::ObserveError;
use super::held_out::{HeldOutCaptures, Validation, encode_held_out};
use super::host_reader::{HostReader, HostUnit};
use super::in_order::produced_in_order;
use crate::batch::{BatchError, applied_rule, rule_batch};
use crate::learn::Equivalences;
use crate::learn::content::{
    ContentLimits, ContentRule, EVERYWHERE, GeneralRules, JudgedRule, LearnedHost, RuleHighlights, RuleRefusal,
    ScopeRule, ScopedRule, site_of,
};
use crate::spill::{FileRange, ScratchFile, SpillError, decode_batch, encode_batch};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Most hosts of a site that are held at a time.
const MAX_SITE_HOSTS: usize = 1024;

/// The kind of rules that name aliases of hosts.
const ALIAS_KIND: &str = "same-as";

/// Rows of rules that are spilled at a time.
const SPILLED_ROWS: usize = 4096;

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
    /// Contents that are equal to others only because their texts are near.
    pub(crate) near_contents: u64,
    /// Rules that contents alone do not support enough.
    pub(crate) rules_by_canonical: u64,
    /// Hosts with rules of their own.
    pub(crate) hosts_with_rules: u64,
    /// Rules of hosts and domains.
    pub(crate) rules: u64,
    /// Refused rules, by reason.
    pub(crate) refused_counter_examples: u64,
    pub(crate) refused_support: u64,
}

/// Rules about content, in a temporary file.
#[derive(Debug)]
pub(crate) struct LearnedContent {
    pub(crate) counts: ContentCounts,
    pub(crate) highlights: RuleHighlights,
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

    /// Whether aliases of hosts were learned.
    pub(crate) fn has_aliases(&self) -> bool {
        self.highlights.kinds.contains_key(ALIAS_KIND)
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

/// Learns rules about content from the captures of all hosts, on `threads` threads, while the observer of `hosts` sees all redirects
/// and answers.
pub(super) fn learn_content(
    mut hosts: HostReader<'_>,
    (threads, directory): (usize, &Path),
    limits: &ContentLimits,
) -> Result<LearnedContent, RunError<ObserveError>> {
    let spilled = hosts.spilled;
    let mut sites = SiteCollector {
        hosts: Vec::new(),
        general: GeneralRules::default(),
        spool: RuleSpool { file: ScratchFile::new(directory), ranges: Vec::new(), pending: Vec::new() },
        counts: ContentCounts::default(),
        highlights: RuleHighlights::default(),
        held_out: HeldOutCaptures::new(directory),
        limits,
    };
    let next = || hosts.next_unit();
    let learn = |mut unit: Vec<HostUnit>| {
        if let Some(bits) = limits.near_bits {
            unit.iter_mut().for_each(|unit| unit.unite_near(bits));
        }
        let held_out = encode_held_out(unit.iter().map(HostUnit::held_out))?;
        let trained = unit.into_iter().filter(|unit| unit.captures.len() > 0);
        let learned = trained.map(|unit| LearnedUnit::learn(unit, limits));
        Ok((learned.collect::<Vec<_>>(), held_out))
    };
    let take = |(unit, held_out): (Vec<LearnedUnit>, Vec<u8>)| {
        sites.held_out.add(&held_out)?;
        unit.into_iter().try_for_each(|host| Ok(sites.add(host)?))
    };
    produced_in_order(threads, next, learn, take)?;
    let learned = sites.finish().map_err(|error| RunError::Output(error.into()))?;
    Ok(LearnedContent { spilled: spilled + learned.spilled, ..learned })
}

/// What was learned of a host, and what of.
struct LearnedUnit {
    host: LearnedHost,
    captures: u64,
    near_contents: u64,
}

impl LearnedUnit {
    fn learn(unit: HostUnit, limits: &ContentLimits) -> LearnedUnit {
        let HostUnit { host, captures, documents, near_contents, .. } = unit;
        let host = LearnedHost::learn(host, &captures, &documents, limits);
        LearnedUnit { host, captures: captures.captures(), near_contents }
    }
}

/// Collects the hosts of a site, and the rules of all sites.
struct SiteCollector<'a> {
    hosts: Vec<LearnedHost>,
    general: GeneralRules,
    spool: RuleSpool,
    counts: ContentCounts,
    highlights: RuleHighlights,
    held_out: HeldOutCaptures,
    limits: &'a ContentLimits,
}

impl SiteCollector<'_> {
    fn add(&mut self, unit: LearnedUnit) -> Result<(), SpillError> {
        let LearnedUnit { host, captures, near_contents } = unit;
        let is_other = self.hosts.first().is_some_and(|first| site_of(&first.host) != site_of(&host.host));
        if is_other || self.hosts.len() == MAX_SITE_HOSTS {
            self.finish_site()?;
        }
        let (counts, rules) = (&mut self.counts, &host.rules);
        counts.captures += captures;
        counts.near_contents += near_contents;
        counts.urls += rules.urls;
        counts.forms += rules.forms;
        counts.hosts += 1;
        counts.hosts_with_rules += u64::from(rules.rules.iter().any(|rule| rule.refusal.is_none()));
        self.highlights.add_host(&host);
        self.hosts.push(host);
        Ok(())
    }

    fn finish_site(&mut self) -> Result<(), SpillError> {
        let rules = self.general.add_site(std::mem::take(&mut self.hosts), self.limits);
        for rule in &rules {
            self.highlights.add_rule(rule);
            let refusal = rule.judged.refusal;
            self.counts.rules_by_canonical += u64::from(rule.judged.needs_canonical);
            self.counts.refused_counter_examples += u64::from(refusal == Some(RuleRefusal::CounterExamples));
            self.counts.refused_support += u64::from(refusal == Some(RuleRefusal::Support));
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
            counts: ContentCounts { rules: self.highlights.rule_count(), ..self.counts },
            highlights: self.highlights,
            general: self.general.finish(),
            spilled,
            spool: self.spool,
            looping: BTreeSet::new(),
            held_out: self.held_out,
        })
    }
}
