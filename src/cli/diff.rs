//! `diff`: compares two keys. Counts which URLs one of them merges and the other does not, with examples, and what each
//! rule of a recipe merges by itself.
//!
//! Memory holds some tens of bytes and one URL per distinct pair of keys, so a sample of a crawl is a good input.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::fmt::Write;

use bstr::ByteSlice;
use serde_json::{Value, json};

use super::args::input::{InputArgs, WorkArgs};
use super::args::policy::{EquivalenceArgs, PolicyArgs, RecipeArgs, name_of_key, parse_key};
use super::error::CommandError;
use super::terminal::{print_error, print_json, print_lines, thousands};
use crate::batch::{ColumnId, ColumnSet};
use crate::canon::{Policy, RecipeColumn, Rows};
use crate::key::{KeyAlgorithm, KeyBytes, Recipe};
use crate::process::exit;
use crate::run::{self, Progress, RowGroup, RunOptions, RunRequest};

const EXAMPLES: &str = "\
Examples:
  What does the Wayback Machine's key merge that the rung scheme keeps apart?
      irikey diff --key scheme --key surt-wayback urls.txt

  The same for a program, with 20 examples of each kind:
      irikey diff --key scheme --key surt-wayback urls.txt --examples 20 --json";

/// Compare two keys: which URLs does one of them merge and the other not?
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The keys to compare; give the flag twice. A rung (simple, syntax, scheme; protocol, with --equivalences) or a recipe
    /// (surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix; rules, with --rules)
    #[arg(long, value_name = "KEY", value_parser = parse_key, required = true, help_heading = "Canonical form")]
    key: Vec<ColumnId>,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    #[command(flatten)]
    recipes: RecipeArgs,
    /// Number of examples of each kind
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Reporting")]
    examples: usize,
    /// Print JSON
    #[arg(long, help_heading = "Reporting")]
    json: bool,
    #[command(flatten)]
    work: WorkArgs,
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8, CommandError> {
    let options = args.input.run_options(&args.work, RunOptions::default().row_group_len)?;
    let plan = KeyPlan::new(args)?;
    let mut policy = Policy {
        more_keys: ColumnSet::of(&plan.keys).key_rungs(),
        recipes: plan.recipes.clone(),
        keep_input: true,
        ..args.policy.policy(&args.input)?
    };
    policy.equivalences = args.equivalences.read(&policy, args.key.contains(&ColumnId::KeyProtocol))?;
    let mut pairs = KeyPairs { variants: vec![HashSet::new(); plan.recipes.len()], ..KeyPairs::default() };
    let encode = |group: RowGroup| Ok::<_, Infallible>(Some(plan.keys_of(group.rows, policy.algorithm)));
    let append = |part: Vec<RecordKeys>| {
        part.into_iter().for_each(|keys| pairs.add(keys));
        Ok(())
    };
    let progress = Progress::new();
    let summary = run::canon(RunRequest::new(args.input.sources()?, &options, &policy, &progress), encode, append)?;
    summary.input_errors.iter().for_each(|error| print_error(&error.to_string()));
    let difference = KeyDifference::new(&pairs, &plan, args.examples);
    let status = match args.json {
        true => print_json(&format!("{:#}\n", difference.to_json())),
        false => print_lines(&difference.to_text()),
    };
    Ok(if status == exit::SUCCESS && !summary.input_errors.is_empty() { exit::INPUT } else { status })
}

/// The keys of one record: the pair that is compared, and one for each recipe of the plan.
struct RecordKeys {
    text: Vec<u8>,
    /// None if the record has a fault or lacks one of the keys.
    pair: Option<(KeyBytes, KeyBytes)>,
    recipes: Vec<Option<KeyBytes>>,
}

/// The keys that are made of each record.
struct KeyPlan {
    keys: [ColumnId; 2],
    /// The recipes among the keys, each followed by its variants without one rule.
    recipes: Vec<RecipeColumn>,
    /// Index in `recipes` of a recipe, index of a variant, and the rule that the variant lacks.
    rules: Vec<(usize, usize, &'static str)>,
}

impl KeyPlan {
    fn new(args: &DiffArgs) -> Result<KeyPlan, CommandError> {
        let keys = match args.key[..] {
            [first, second] if first != second => [first, second],
            _ => return Err(CommandError::usage("diff compares two different keys; give --key twice")),
        };
        let mut plan = KeyPlan { keys, recipes: Vec::new(), rules: Vec::new() };
        for wanted in args.recipes.columns(&ColumnSet::of(&keys).recipes())? {
            let (whole, name, rules) = (plan.recipes.len(), wanted.recipe.name().to_string(), wanted.recipe.rules());
            plan.recipes.push(wanted);
            for rule in rules.names() {
                let variant = Recipe::parse(&format!("{name},-{rule}"));
                let recipe = variant.map_err(|error| CommandError::Usage(error.to_string()))?;
                plan.rules.push((whole, plan.recipes.len(), rule));
                plan.recipes.push(RecipeColumn { column: "", recipe });
            }
        }
        Ok(plan)
    }

    fn name(&self, index: usize) -> &'static str {
        name_of_key(self.keys[index]).unwrap_or("key")
    }

    fn keys_of(&self, rows: &Rows, algorithm: KeyAlgorithm) -> Vec<RecordKeys> {
        let row = |i: usize| {
            let hash = |text: &[u8]| (!text.is_empty()).then(|| algorithm.key(text));
            let recipes: Vec<Option<KeyBytes>> = rows.recipe_texts.iter().map(|texts| hash(texts.get(i))).collect();
            let mut rungs = rows.more_keys.iter();
            let mut key = |id: ColumnId| match id {
                ColumnId::RecipeKey(name) => {
                    recipes.get(self.recipes.iter().position(|recipe| recipe.column == name)?).copied()?
                }
                ColumnId::KeyProtocol => rows.protocol.get(i).copied(),
                _ => rungs.next().map(|keys| keys[i]),
            };
            let (first, second) = (key(self.keys[0]), key(self.keys[1]));
            let is_faulty = rows.faults.binary_search_by_key(&(i as u32), |(row, _)| *row).is_ok();
            let text = if rows.differs(i) { rows.input.get(i) } else { rows.uri.get(i) };
            RecordKeys { text: text.to_vec(), pair: first.zip(second).filter(|_| !is_faulty), recipes }
        };
        (0..rows.len()).map(row).collect()
    }
}

/// All distinct pairs of keys.
#[derive(Default)]
struct KeyPairs {
    /// By pair: number and text of its first record.
    first_records: HashMap<(KeyBytes, KeyBytes), (u64, Vec<u8>)>,
    /// The distinct keys of every recipe of the plan.
    variants: Vec<HashSet<KeyBytes>>,
    records: u64,
    /// Records without a pair.
    incomplete: u64,
}

impl KeyPairs {
    fn add(&mut self, keys: RecordKeys) {
        let number = self.records;
        self.records += 1;
        let Some(pair) = keys.pair else {
            self.incomplete += 1;
            return;
        };
        for (set, key) in self.variants.iter_mut().zip(keys.recipes) {
            set.extend(key);
        }
        self.first_records.entry(pair).or_insert((number, keys.text));
    }

    /// What one key of the pair (0 or 1) merges and the other does not.
    fn merges_by(&self, by: usize, plan: &KeyPlan, examples: usize) -> MergeCounts {
        let mut groups: HashMap<&KeyBytes, Vec<&(u64, Vec<u8>)>> = HashMap::new();
        for ((first, second), record) in &self.first_records {
            groups.entry(if by == 0 { first } else { second }).or_default().push(record);
        }
        let mut merged = BTreeMap::new();
        let mut merges = 0;
        for mut group in groups.into_values().filter(|group| group.len() > 1) {
            group.sort_unstable();
            merges += group.len() as u64 - 1;
            merged.insert(group[0].0, group);
        }
        let texts = |group: &Vec<&(u64, Vec<u8>)>| group.iter().take(4).map(|(_, text)| text.clone()).collect();
        let examples = merged.values().take(examples).map(texts).collect();
        MergeCounts { by: plan.name(by), not_by: plan.name(1 - by), keys: merged.len() as u64, merges, examples }
    }
}

/// URLs that one key merges and the other keeps apart.
struct MergeCounts {
    by: &'static str,
    not_by: &'static str,
    /// Keys of the one that stand for several keys of the other.
    keys: u64,
    /// By how many the keys of the other are more.
    merges: u64,
    examples: Vec<Vec<Vec<u8>>>,
}

/// The result of the comparison.
struct KeyDifference {
    records: u64,
    incomplete: u64,
    merges: [MergeCounts; 2],
    /// Recipe, rule, and how many keys only this rule merges.
    rules: Vec<(&'static str, &'static str, u64)>,
}

impl KeyDifference {
    fn new(pairs: &KeyPairs, plan: &KeyPlan, examples: usize) -> KeyDifference {
        let rule = |&(whole, variant, rule): &(usize, usize, &'static str)| {
            let [whole_count, variant_count] = [whole, variant].map(|index| pairs.variants[index].len() as u64);
            (plan.recipes[whole].column, rule, variant_count.saturating_sub(whole_count))
        };
        KeyDifference {
            records: pairs.records,
            incomplete: pairs.incomplete,
            merges: [0, 1].map(|by| pairs.merges_by(by, plan, examples)),
            rules: plan.rules.iter().map(rule).collect(),
        }
    }

    fn to_json(&self) -> Value {
        let merges = |counts: &MergeCounts| {
            let text = |url: &Vec<u8>| url.to_str_lossy().into_owned();
            json!({
                "merged_by": counts.by,
                "apart_by": counts.not_by,
                "keys": counts.keys,
                "merges": counts.merges,
                "examples": counts.examples.iter().map(|urls| urls.iter().map(text).collect()).collect::<Vec<Vec<_>>>(),
            })
        };
        let rule =
            |(recipe, rule, merges): &(&str, &str, u64)| json!({"recipe": recipe, "rule": rule, "merges": merges});
        json!({
            "records": self.records,
            "without_key": self.incomplete,
            "differences": self.merges.iter().map(merges).collect::<Vec<_>>(),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let (records, incomplete) = (thousands(self.records), thousands(self.incomplete));
        let mut text = format!("{records} records, {incomplete} without both keys\n");
        // Writing to a string does not fail.
        for MergeCounts { by, not_by, keys, merges, examples } in &self.merges {
            let (keys, merges) = (thousands(*keys), thousands(*merges));
            let _ = writeln!(text, "\n{by} merges what {not_by} keeps apart: {keys} keys, {merges} merges");
            for urls in examples {
                urls.iter().enumerate().for_each(|(i, url)| {
                    let _ = writeln!(text, "  {} {}", if i == 0 { "-" } else { " " }, url.as_bstr());
                });
            }
        }
        if !self.rules.is_empty() {
            text.push_str("\nMerges by single rules: how many more distinct keys there are without the rule\n");
        }
        for (recipe, rule, merges) in &self.rules {
            let _ = writeln!(text, "  {recipe:16} {rule:20} {}", thousands(*merges));
        }
        text
    }
}
