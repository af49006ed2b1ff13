//! Learns rules about content from the captures of a run: [`learn_content`].
//!
//! ```text
//! rows --CaptureSort::sort--> sorted runs of captures, in memory and beyond its limit in a temporary file
//!      --HostReader--> captures of one host after the other --LearnedHost::learn, on all threads--> hosts of a site
//!      --GeneralRules::add_site--> rows of rules in a temporary file --> LearnedContent::batches
//! ```
//!
//! Memory does not depend on the number of captures, hosts or rules.

use super::super::in_order::produced_in_order;
use super::super::{RunError, memory};
use super::capture_sort::ObserveError;
use super::held_out::{HeldOutSpool, Validation};
use super::host_reader::{DiskSorters, HostReader, HostUnit};
use super::rule_collector::{BatchSpool, ContentCounts, RuleCollector};
use crate::batch::{BatchError, PartRow, applied_rule, part_row, rule_batch, vote_batch};
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::learn::content::{
    ContentLimits, ContentRule, EVERYWHERE, GeneralRules, JudgedRule, LearnedHost, OpenSite, RuleHighlights,
    RuleRefusal, ScopeRule, ScopedRule, site_of,
};
use crate::learn::{Equivalences, EquivalencesBuilder, FieldReader, RedirectObserver};
use crate::sort::BytesSorter;
use crate::spill::SpillError;
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::error::ArrowError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of hosts of a site that are held at a time. Aliases are found among these.
const MAX_SITE_HOSTS: usize = 1024;

/// The kind of rules that name aliases of hosts.
const ALIAS_KIND: &str = "same-as";

/// Rules about content, in a temporary file.
#[derive(Debug)]
pub(crate) struct LearnedContent {
    pub(crate) counts: ContentCounts,
    pub(crate) highlights: RuleHighlights,
    /// Rules for all hosts.
    pub(crate) general: BTreeMap<ScopedRule, JudgedRule>,
    /// The votes of registered domains on rules for all hosts.
    votes: GeneralRules,
    /// Bytes of temporary files.
    pub(crate) spilled: u64,
    /// The rules of sites and hosts.
    spool: BatchSpool,
    /// Hosts whose aliases are refused.
    looping: BTreeSet<Vec<u8>>,
    /// Captures that were held out.
    held_out: HeldOutSpool,
}

impl LearnedContent {
    /// Returns the rows of the rules: those for all hosts, then those of sites and hosts.
    pub(crate) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, BatchError>> + '_ {
        let general = self.general.values().cloned();
        let general: Vec<ScopeRule> = general.map(|judged| ScopeRule::learned(EVERYWHERE.to_vec(), judged)).collect();
        let first = (!general.is_empty()).then(|| rule_batch(&general));
        let spooled = self.spooled().map(|batch| {
            let batch = self.with_loops_refused(batch?)?;
            filter_record_batch(&batch, &self.needed(&batch))
        });
        first.into_iter().chain(spooled).map(|batch: Result<RecordBatch, ArrowError>| Ok(batch?))
    }

    fn spooled(&self) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> + '_ {
        self.spool.batches().map(|batch| batch.map_err(|error| ArrowError::from_external_error(Box::new(error))))
    }

    /// Marks aliases that form a loop as refused.
    fn with_loops_refused(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let is_looping = |row: usize| {
            let alias = applied_rule(&batch, row).filter(|(_, rule)| matches!(rule.rule, ContentRule::SameAs { .. }));
            alias.is_some_and(|(host, _)| self.looping.contains(host))
        };
        if self.looping.is_empty() || !(0..batch.num_rows()).any(is_looping) {
            return Ok(batch);
        }
        let mut rules = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if let PartRow::Rule(mut rule) = part_row(&batch, row).map_err(ArrowError::SchemaError)? {
                rule.judged.refusal = rule.judged.refusal.or(is_looping(row).then_some(RuleRefusal::Circular));
                rules.push(rule);
            }
        }
        rule_batch(&rules)
    }

    /// Returns the rows of a part, from which [`OpenParts::merge`](super::learned_parts::OpenParts::merge) makes the rules:
    /// votes, and all rules of sites and hosts.
    pub(crate) fn part_batches(&self) -> impl Iterator<Item = Result<RecordBatch, BatchError>> + '_ {
        let votes = std::iter::once_with(|| vote_batch(self.votes.votes()));
        votes.chain(self.spooled()).map(|batch| Ok(batch?))
    }

    /// Returns what was collected of sites, as what was learned.
    pub(super) fn collected(collector: RuleCollector, held_out: HeldOutSpool) -> LearnedContent {
        let RuleCollector { general, spool, counts, highlights, .. } = collector;
        let for_all_hosts = general.finish();
        let rules_for_all_hosts = for_all_hosts.len() as u64;
        LearnedContent {
            counts: ContentCounts { rules: highlights.rule_count(), rules_for_all_hosts, ..counts },
            highlights,
            general: for_all_hosts,
            votes: general,
            spilled: spool.written_len(),
            spool,
            looping: BTreeSet::new(),
            held_out,
        }
    }

    /// Whether aliases of hosts were learned.
    pub(crate) fn has_aliases(&self) -> bool {
        self.highlights.kinds.contains_key(ALIAS_KIND)
    }

    pub(crate) fn has_held_out(&self) -> bool {
        !self.held_out.is_empty()
    }

    /// Tries rules on the captures that were held out.
    pub(crate) fn validate(&self, rules: &Equivalences) -> Result<Validation, SpillError> {
        self.held_out.validate(rules)
    }

    /// Refuses learned aliases of hosts that form a loop with other equivalences.
    pub(crate) fn refuse_loops(&mut self, mut all: EquivalencesBuilder) -> Result<(), BatchError> {
        for batch in self.batches() {
            let batch = batch?;
            let rules = (0..batch.num_rows()).filter_map(|row| applied_rule(&batch, row));
            let aliases = rules.filter(|(_, rule)| matches!(rule.rule, ContentRule::SameAs { .. }));
            aliases.for_each(|(host, rule)| all.add_rule(host, rule));
        }
        self.looping = all.build_unchecked().find_loops().into_iter().collect();
        Ok(())
    }

    /// Rows that the rules for all hosts do not contain, and exceptions from these rules.
    fn needed(&self, batch: &RecordBatch) -> BooleanArray {
        let text = |name: &str| batch.column_by_name(name).map(|column| column.as_string::<i32>());
        let (Some(kinds), Some(patterns), Some(contexts)) = (text("kind"), text("pattern"), text("context")) else {
            return BooleanArray::from(vec![true; batch.num_rows()]);
        };
        let is_general = |rule: ContentRule| self.general.contains_key(&ScopedRule::from(rule));
        let is_needed = |row: usize| match ContentRule::parse(patterns.value(row)) {
            Some(ContentRule::KeepParameter(name)) => is_general(ContentRule::Parameter(name, None)),
            Some(rule) => kinds.value(row) != "rule" || contexts.is_valid(row) || !is_general(rule),
            None => true,
        };
        (0..batch.num_rows()).map(|row| Some(is_needed(row))).collect()
    }
}

/// How rules about content are learned.
#[derive(Clone, Copy, Debug)]
pub(super) struct ContentJob<'a> {
    pub(super) threads: usize,
    pub(super) directory: &'a Path,
    pub(super) limits: &'a ContentLimits,
    /// The algorithm of the keys of URLs that rules make.
    pub(super) algorithm: KeyAlgorithm,
}

/// Learns rules about content from the captures of all hosts, while the observer of `hosts` sees all redirects and responses.
/// Writes to `forms` the keys of URLs that rules make, each with a content of the URL of which they make it.
pub(super) fn learn_content(
    mut hosts: HostReader<'_>,
    job: ContentJob<'_>,
    forms: &mut BytesSorter,
) -> Result<LearnedContent, RunError<ObserveError>> {
    let (spilled, ContentJob { threads, directory, limits, .. }) = (hosts.spilled, job);
    let mut sites = SiteCollector {
        open: Vec::new(),
        collector: RuleCollector::new(directory),
        held_out: HeldOutSpool::new(directory),
        limits,
    };
    let next = || hosts.next_unit();
    let learn = |mut unit: Vec<HostUnit>| {
        memory::sample();
        if let Some(bits) = limits.near_bits {
            unit.iter_mut().for_each(|unit| unit.unite_near(bits));
        }
        let mut held_out = Vec::new();
        unit.iter().for_each(|host| host.held_out().write(&mut held_out));
        let trained = unit.into_iter().filter(|unit| unit.captures.len() > 0);
        let learned = trained.map(|unit| LearnedUnit::learn(unit, job));
        Ok((learned.collect::<Vec<_>>(), held_out))
    };
    let take = |(unit, held_out): (Vec<LearnedUnit>, Vec<u8>)| {
        sites.held_out.append(&held_out)?;
        unit.into_iter().try_for_each(|host| {
            host.forms.iter().try_for_each(|(key, content)| forms.push(&form_record(*key, *content)))?;
            Ok(sites.add(host)?)
        })
    };
    produced_in_order(threads, next, learn, take)?;
    let learned = sites.finish().map_err(RunError::output)?;
    Ok(LearnedContent { spilled: spilled + learned.spilled, ..learned })
}

/// What was learned of a host, and from how many captures.
struct LearnedUnit {
    host: LearnedHost,
    captures: u64,
    near_contents: u64,
    /// Keys of URLs that rules make, with contents.
    forms: Vec<(KeyBytes, u64)>,
}

impl LearnedUnit {
    fn learn(unit: HostUnit, job: ContentJob<'_>) -> LearnedUnit {
        let HostUnit { host, captures, documents, near_contents, has_redirects, .. } = unit;
        let host = LearnedHost::learn(host, &captures, &documents, job.limits);
        // The observer knows the contents of URLs as they are stated, without those that are nearly equal.
        let is_complete = job.limits.near_bits.is_some();
        let forms = if has_redirects { host.forms(&captures, is_complete, job.algorithm) } else { Vec::new() };
        LearnedUnit { host, captures: captures.captures(), near_contents, forms }
    }
}

fn form_record(key: KeyBytes, content: u64) -> [u8; 24] {
    let mut record = [0; 24];
    record[..16].copy_from_slice(&key);
    record[16..].copy_from_slice(&content.to_be_bytes());
    record
}

/// Gives the observer what [`learn_content`] wrote to `forms`.
pub(super) fn observe_forms(
    forms: BytesSorter,
    observer: &mut RedirectObserver<DiskSorters>,
) -> Result<(), SpillError> {
    let mut forms = forms.sorted()?;
    while let Some(record) = forms.next_record()? {
        if let Some((key, content)) = record.split_first_chunk::<16>() {
            observer.form(*key, FieldReader(content).u64())?;
        }
    }
    Ok(())
}

/// Collects the hosts of sites, and the rules of all sites. Hosts come in the order of their reversed labels: those of a site
/// may come before and after those of sites below it, such as `a.amazonaws.com` and `x.s3.amazonaws.com`.
struct SiteCollector<'a> {
    /// The sites to which hosts may be added. Each but the first is below the one before it.
    open: Vec<OpenSite>,
    collector: RuleCollector,
    held_out: HeldOutSpool,
    limits: &'a ContentLimits,
}

impl SiteCollector<'_> {
    fn add(&mut self, unit: LearnedUnit) -> Result<(), SpillError> {
        let LearnedUnit { host, captures, near_contents, .. } = unit;
        while let Some(site) = self.open.pop_if(|site| !site.contains(&host.host)) {
            self.finish_site(site)?;
        }
        let (counts, rules) = (&mut self.collector.counts, &host.rules);
        counts.captures += captures;
        counts.near_contents += near_contents;
        counts.urls += rules.urls;
        counts.forms += rules.forms;
        counts.hosts += 1;
        counts.hosts_with_rules += u64::from(rules.rules.iter().any(|rule| rule.refusal.is_none()));
        self.collector.highlights.add_host(&host);
        self.add_to_site(host)
    }

    fn add_to_site(&mut self, host: LearnedHost) -> Result<(), SpillError> {
        let mut site = match self.open.pop_if(|site| site.site == site_of(&host.host)) {
            Some(site) => site,
            None => OpenSite::of(&host.host),
        };
        if site.host_count() == MAX_SITE_HOSTS {
            self.collector.add_rules(site.take_rules(self.limits))?;
        }
        site.add(host);
        self.open.push(site);
        Ok(())
    }

    fn finish_site(&mut self, site: OpenSite) -> Result<(), SpillError> {
        let rules = self.collector.general.add_site(site, self.limits);
        self.collector.add_rules(rules)
    }

    fn finish(mut self) -> Result<LearnedContent, SpillError> {
        while let Some(site) = self.open.pop() {
            self.finish_site(site)?;
        }
        self.collector.spill()?;
        Ok(LearnedContent::collected(self.collector, self.held_out))
    }
}
