//! Compares two keys of the records of sources, in one pass: which records does one of them merge and the other not, and what
//! does each rule of a recipe merge by itself: [`compare_keys`].
//!
//! ```text
//! rows --pairs of keys--> KeyPairs, in the order of the input --> keys that merge several others
//!      --texts of new pairs--> TextSpool ----------------------> examples
//!      --keys without one rule--> KeyCounter ------------------> merges by single rules
//! ```

use super::dedup::DedupError;
use super::{RowGroup, RowKey, RunError, RunOptions, RunRequest, Summary, canon, memory};
use crate::canon::{Policy, Rows};
use crate::dedup::{KeyBuffer, KeyCounter, KeyPairs, MergedKeys, PARTITION_GROUPS, PairBuffer, key_number};
use crate::key::{KeyAlgorithm, RULES};
use crate::spill::{SpillError, TextBlock, TextSpool};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which keys are compared and how.
#[derive(Clone, Debug)]
pub struct KeyDiffOptions {
    /// Two keys of the policy. A row has no key of a recipe that gives none.
    pub keys: [RowKey; 2],
    /// Number of examples of each kind.
    pub examples: usize,
    /// Bytes of memory; what does not fit goes to temporary files.
    pub memory: usize,
    /// Directory of temporary files.
    pub directory: PathBuf,
}

/// The result of a comparison of keys.
#[derive(Debug)]
pub struct KeyDifference {
    /// Counts of the run.
    pub summary: Summary,
    /// Records with a fault, and records that lack one of the keys. They are not compared.
    pub incomplete: u64,
    /// For each of the two kinds of keys: the records that it merges and the other keeps apart.
    pub merges: [KeyMerges; 2],
    /// What the rules of the compared recipes merge, recipe by recipe in the order of the policy.
    pub rules: Vec<RuleMerges>,
    /// Bytes of pairs of keys and texts that were written to temporary files while records were read.
    pub spilled: u64,
}

/// Records that one kind of key merges and the other keeps apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyMerges {
    /// Number of keys of this kind to which several keys of the other kind belong.
    pub keys: u64,
    /// Number of keys of the other kind that disappear by these merges: all but one per merging key.
    pub merges: u64,
    /// Examples of these keys: for each, the texts of its first records with different keys of the other kind, at most 4.
    /// Examples and their texts are in the order of the input.
    pub examples: Vec<Vec<Vec<u8>>>,
}

/// What a single rule of a recipe merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleMerges {
    /// The index of the recipe in the policy.
    pub recipe: usize,
    /// The name of the rule.
    pub rule: &'static str,
    /// How many more distinct keys there are without the rule.
    pub merges: u64,
}

/// Compares two keys of the policy over the records of the sources. The result depends neither on threads nor on memory.
///
/// # Errors
/// As [`canon`]; also if temporary files cannot be used.
pub fn compare_keys(request: RunRequest<'_>, diff: &KeyDiffOptions) -> Result<KeyDifference, RunError<DedupError>> {
    let options = &RunOptions { count_distinct: false, ..request.options.clone() };
    let policy = &Policy { keep_input: true, rule_variants: true, ..request.policy.clone() };
    let threads = options.clamped().threads;
    let job = KeyDiffJob::new(diff, policy, threads);
    let mut texts = TextSpool::new(job.memory / 8, &diff.directory);
    let collect = |row_group: RowGroup<'_>| job.add_rows(row_group);
    let append = |block: Option<TextBlock>| Ok(block.map_or(Ok(()), |block| texts.append(block))?);
    let request = RunRequest { options, policy, stage_count: PARTITION_GROUPS, ..request };
    let summary = canon(request, collect, append)?;
    job.finish(summary, &texts, threads).map_err(RunError::output)
}

/// A comparison while records are read.
struct KeyDiffJob<'a> {
    diff: &'a KeyDiffOptions,
    algorithm: KeyAlgorithm,
    /// Bytes of memory for pairs and their texts.
    memory: usize,
    pairs: KeyPairs,
    rules: Vec<RuleCount>,
    incomplete: AtomicU64,
    buffers: Mutex<Vec<RowGroupBuffers>>,
}

/// The distinct keys of a compared recipe without each of its rules.
struct RuleCount {
    /// The index of the recipe in the policy.
    recipe: usize,
    /// Which of the two keys is that of the recipe.
    side: usize,
    /// The bits of the rules of the recipe, by their indices in [`RULES`].
    rules: u64,
    counter: KeyCounter<u64>,
}

/// How many distinct keys a recipe has without one of its rules.
#[derive(Clone, Copy)]
struct KeysWithoutRule {
    recipe: usize,
    side: usize,
    /// The index of the rule in [`RULES`].
    rule: usize,
    distinct: u64,
}

/// Buffers of a worker, reused for their memory.
#[derive(Default)]
struct RowGroupBuffers {
    pairs: PairBuffer,
    /// The rows with both keys.
    paired: Vec<u32>,
    /// The keys of each of [`KeyDiffJob::rules`].
    rules: Vec<KeyBuffer<u64>>,
}

impl<'a> KeyDiffJob<'a> {
    fn new(diff: &'a KeyDiffOptions, policy: &Policy, threads: usize) -> KeyDiffJob<'a> {
        let recipe_of = |side: usize| match diff.keys[side] {
            RowKey::Recipe(recipe) => Some((recipe, side)),
            _ => None,
        };
        let mut recipes: Vec<(usize, usize)> = [0, 1].into_iter().filter_map(recipe_of).collect();
        recipes.sort_unstable();
        // With rules, they and the pairs have a half each.
        let memory = if recipes.is_empty() { diff.memory } else { diff.memory / 2 };
        let limit = memory / recipes.len().max(1);
        let count = |(recipe, side): (usize, usize)| RuleCount {
            recipe,
            side,
            rules: policy.recipes[recipe].recipe.rules().bits(),
            counter: KeyCounter::new(limit, threads, &diff.directory),
        };
        KeyDiffJob {
            diff,
            algorithm: policy.algorithm,
            memory,
            pairs: KeyPairs::new(memory / 8 * 7, &diff.directory),
            rules: recipes.into_iter().map(count).collect(),
            incomplete: AtomicU64::new(0),
            buffers: Mutex::default(),
        }
    }

    /// Adds the keys of a row group, and returns the texts of rows that may be examples; `None` if the run was stopped.
    fn add_rows(&self, row_group: RowGroup<'_>) -> Result<Option<Option<TextBlock>>, DedupError> {
        let RowGroup { rows, ticket, .. } = row_group;
        let mut buffers = self.buffers.lock().pop().unwrap_or_default();
        buffers.rules.resize_with(self.rules.len(), KeyBuffer::default);
        let RowGroupBuffers { pairs, paired, .. } = &mut buffers;
        self.fill(rows, paired, pairs);
        for group in 0..PARTITION_GROUPS {
            if ticket.pass(group, || self.pairs.insert(group, pairs)).is_none() {
                return Ok(None);
            }
        }
        let first_row = ticket.first_row();
        self.pairs.store(pairs, first_row)?;
        let first_rows = pairs.first_rows();
        let texts = first_rows.iter().map(|&row| (first_row + u64::from(row), record_text(rows, row as usize)));
        let block = TextBlock::new(texts);
        self.count_rules(rows, &mut buffers)?;
        self.buffers.lock().push(buffers);
        Ok(Some(block))
    }

    /// Finds the rows that have both keys, and their pairs.
    fn fill(&self, rows: &Rows, paired: &mut Vec<u32>, pairs: &mut PairBuffer) {
        let keys = self.diff.keys;
        let mut faults = rows.faults.iter().map(|(row, _)| *row).peekable();
        let is_sound = |row: &u32| faults.next_if_eq(row).is_none();
        let has_keys = |row: &u32| keys.iter().all(|key| key.has_key(rows, *row as usize));
        paired.clear();
        paired.extend((0..rows.len() as u32).filter(is_sound).filter(has_keys));
        self.incomplete.fetch_add((rows.len() - paired.len()) as u64, Ordering::Relaxed);
        let [first, second] = keys.map(|key| key.of_rows(rows, self.algorithm));
        let both = first.iter().zip(&*second).map(|(first, second)| [key_number(first), key_number(second)]);
        pairs.fill(both, paired.iter().copied());
    }

    /// Counts the keys of recipes without each of their rules.
    fn count_rules(&self, rows: &Rows, buffers: &mut RowGroupBuffers) -> Result<(), SpillError> {
        let RowGroupBuffers { pairs, paired, rules: own } = buffers;
        for (count, own) in self.rules.iter().zip(own) {
            let variants = &rows.rule_variants[count.recipe];
            let mut places = variants.places.iter().enumerate().peekable();
            for &row in &*paired {
                let mut unchanged = count.rules;
                while let Some((text, (at, rule))) = places.next_if(|(_, (at, _))| *at <= row) {
                    let bit = 1 << rule;
                    match variants.texts.get(text) {
                        _ if *at < row => continue,
                        [] => (),
                        text => own.push(key_number(&self.algorithm.key(text)), bit),
                    }
                    unchanged &= !bit;
                }
                // Rules that did not change the row make no difference to its key.
                own.push(pairs.key(row, count.side), unchanged);
            }
            count.counter.insert_full(own)?;
        }
        Ok(())
    }

    fn finish(self, summary: Summary, texts: &TextSpool, threads: usize) -> Result<KeyDifference, SpillError> {
        let KeyDiffJob { diff, memory: limit, pairs, rules, incomplete, buffers, .. } = self;
        let spilled = pairs.written_len() + texts.written_len();
        let mut own: Vec<Vec<KeyBuffer<u64>>> = rules.iter().map(|_| Vec::new()).collect();
        for buffers in buffers.into_inner() {
            own.iter_mut().zip(buffers.rules).for_each(|(own, buffer)| own.push(buffer));
        }
        let counted = rules.into_iter().zip(own).map(|(count, buffers)| count.finish(buffers));
        let without_rules = counted.collect::<Result<Vec<_>, SpillError>>()?.concat();
        let merged = pairs.finish(threads, limit / 2, diff.examples)?;
        memory::sample();
        let merges = |KeysWithoutRule { recipe, side, rule, distinct }| {
            let merges = distinct.saturating_sub(merged[side].distinct);
            RuleMerges { recipe, rule: RULES[rule].name, merges }
        };
        let rules = without_rules.into_iter().map(merges).collect();
        let [first, second] = merged.map(|merged| with_texts(merged, texts));
        let (merges, summary) = ([first?, second?], Summary { memory: memory::peaks(), ..summary });
        Ok(KeyDifference { summary, incomplete: incomplete.into_inner(), merges, rules, spilled })
    }
}

impl RuleCount {
    /// Counts what is left in `buffers`, those of all workers, and frees the memory of the keys.
    fn finish(self, mut buffers: Vec<KeyBuffer<u64>>) -> Result<Vec<KeysWithoutRule>, SpillError> {
        let RuleCount { recipe, side, rules, counter } = self;
        counter.insert_rest(&mut buffers)?;
        memory::sample();
        let counts = counter.finish(&buffers)?;
        memory::sample();
        let without = |rule: usize| KeysWithoutRule { recipe, side, rule, distinct: counts[rule] };
        Ok((0..RULES.len()).filter(|rule| rules >> rule & 1 == 1).map(without).collect())
    }
}

/// The record of a row.
fn record_text(rows: &Rows, row: usize) -> &[u8] {
    if rows.differs(row) { rows.input.get(row) } else { rows.uri.get(row) }
}

/// Reads the texts of examples.
fn with_texts(merged: MergedKeys, texts: &TextSpool) -> Result<KeyMerges, SpillError> {
    let mut texts = texts.read(&merged.groups.iter().flatten().copied().collect())?;
    let read = |group: &Vec<u64>| group.iter().filter_map(|ordinal| texts.remove(ordinal)).collect();
    let examples = merged.groups.iter().map(read).collect();
    Ok(KeyMerges { keys: merged.keys, merges: merged.merges, examples })
}
