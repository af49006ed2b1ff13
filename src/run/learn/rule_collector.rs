//! Collects the rules of sites, in a temporary file, and counts them: [`RuleCollector`].

use crate::batch::rule_batch;
use crate::learn::content::{GeneralRules, RuleHighlights, RuleRefusal, ScopeRule};
use crate::spill::{FileRange, ScratchFile, SpillError, decode_batch, encode_batch};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::CompressionType;
use std::path::Path;

/// Rows of rules that are spilled at a time.
const SPILLED_ROWS: usize = 4096;

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
    /// Those of domains.
    pub(crate) rules_for_domains: u64,
    /// Rules for all hosts, which are not among these.
    pub(crate) rules_for_all_hosts: u64,
    /// Refused rules, by reason.
    pub(crate) refused_counter_examples: u64,
    pub(crate) refused_support: u64,
}

/// The rules of sites, and their votes on rules for all hosts.
#[derive(Debug)]
pub(super) struct RuleCollector {
    pub(super) general: GeneralRules,
    pub(super) spool: BatchSpool,
    /// Rules that are not in the spool yet.
    pending: Vec<ScopeRule>,
    pub(super) counts: ContentCounts,
    pub(super) highlights: RuleHighlights,
}

impl RuleCollector {
    pub(super) fn new(directory: &Path) -> RuleCollector {
        RuleCollector {
            general: GeneralRules::default(),
            spool: BatchSpool::new(directory),
            pending: Vec::new(),
            counts: ContentCounts::default(),
            highlights: RuleHighlights::default(),
        }
    }

    pub(super) fn add_rules(&mut self, rules: Vec<ScopeRule>) -> Result<(), SpillError> {
        for rule in &rules {
            self.highlights.add_rule(rule);
            let refusal = rule.judged.refusal;
            let is_for_domain = refusal.is_none() && rule.scope.starts_with(b"*.");
            self.counts.rules_for_domains += u64::from(is_for_domain);
            self.counts.rules_by_canonical += u64::from(rule.judged.needs_canonical);
            self.counts.refused_counter_examples += u64::from(refusal == Some(RuleRefusal::CounterExamples));
            self.counts.refused_support += u64::from(refusal == Some(RuleRefusal::Support));
        }
        self.pending.extend(rules);
        if self.pending.len() >= SPILLED_ROWS { self.spill() } else { Ok(()) }
    }

    /// Writes the rules that are not in the spool yet. Must be called after the last rules.
    pub(super) fn spill(&mut self) -> Result<(), SpillError> {
        match std::mem::take(&mut self.pending) {
            rules if rules.is_empty() => Ok(()),
            rules => self.spool.append(&rule_batch(&rules)?),
        }
    }
}

/// Batches on disk.
#[derive(Debug)]
pub(super) struct BatchSpool {
    file: ScratchFile,
    ranges: Vec<FileRange>,
}

impl BatchSpool {
    fn new(directory: &Path) -> BatchSpool {
        BatchSpool { file: ScratchFile::new(directory), ranges: Vec::new() }
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<(), SpillError> {
        let mut bytes = Vec::new();
        encode_batch(batch, Some(CompressionType::LZ4_FRAME), &mut bytes)?;
        self.ranges.push(self.file.append(&bytes)?);
        Ok(())
    }

    /// Returns the batches, in the order in which they were added.
    pub(super) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch, SpillError>> + '_ {
        self.ranges.iter().map(|range| self.read(*range))
    }

    /// Returns the bytes of the temporary file.
    pub(super) fn written_len(&self) -> u64 {
        self.file.written_len()
    }

    fn read(&self, range: FileRange) -> Result<RecordBatch, SpillError> {
        let mut bytes = Vec::new();
        self.file.read(range, &mut bytes)?;
        Ok(decode_batch(Buffer::from_vec(bytes))?)
    }
}
