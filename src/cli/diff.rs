//! `diff`: which URLs one key merges and another does not, with examples, and what each rule of a recipe merges alone. In:
//! two keys, records. Out: counts and examples on standard output, for a person or, with `--json`, for a program.
//!
//! Memory holds a few dozen bytes and one URL for each distinct pair of keys: a sample of a crawl is enough to judge by.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::fmt::Write;

use bstr::ByteSlice;
use serde_json::{Value, json};

use super::args::{EquivalenceArgs, FormArgs, InputArgs, Work, WorkArgs};
use super::canon_args::{PROTOCOL, parse_key};
use super::summary::thousands;
use super::{drive, print, say};
use crate::batch::{ColumnId, SourceRun};
use crate::canon::{Policy, RecipeColumn, Rows};
use crate::key::{KeyAlgorithm, KeyBytes, Recipe};
use crate::process::exit;
use crate::run::{self, Progress, RunOptions, Summary};

/// Compare two keys: which URLs one of them merges and the other does not
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    form: FormArgs,
    /// A key, twice: a rung (simple, syntax, scheme; protocol, for --equivalences) or a recipe (surt-wayback, surt-ia,
    /// crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix)
    #[arg(long, value_name = "KEY", value_parser = parse_key, required = true, help_heading = "Canonical form")]
    key: Vec<ColumnId>,
    #[command(flatten)]
    equivalences: EquivalenceArgs,
    /// Examples to show of each kind
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Reporting")]
    examples: usize,
    /// Print JSON
    #[arg(long, help_heading = "Reporting")]
    json: bool,
    #[command(flatten)]
    work: WorkArgs,
}

pub(super) fn run(args: &DiffArgs) -> u8 {
    match perform(args) {
        Ok((text, is_whole)) => {
            let status = print(&text);
            if status == exit::SUCCESS && !is_whole { exit::INPUT } else { status }
        }
        Err(message) => {
            say(&message);
            exit::USAGE
        }
    }
}

fn perform(args: &DiffArgs) -> Result<(String, bool), String> {
    let [first, second] = args.key[..] else { return Err("diff compares two keys; give --key twice".to_string()) };
    let (inputs, work) = (args.input.inputs()?, args.work.work()?);
    let wanted = Wanted::of([first, second])?;
    let mut policy = Policy {
        more_keys: wanted.rungs(),
        recipes: wanted.recipes.clone(),
        keep_input: true,
        ..args.form.policy(&args.input)?
    };
    policy.equivalences = args.equivalences.read(&policy, args.key.contains(&ColumnId::KeyProtocol))?;
    let sources = drive::sources(&inputs)?;
    let options = RunOptions { format: drive::format(&inputs), ..options(&work, &inputs) };
    let mut pairs = Pairs { without: vec![HashSet::new(); wanted.recipes.len()], ..Pairs::default() };
    let encode = |rows: &mut Rows, _: &[SourceRun]| Ok::<_, Infallible>(wanted.keys(rows, policy.algorithm));
    let append = |part: Vec<Keys>| {
        part.into_iter().for_each(|keys| pairs.add(keys));
        Ok(())
    };
    let summary = run::canon(
        run::RunRequest::new(sources, &options, &policy, &Progress::new()),
        |group| encode(group.rows, group.runs).map(Some),
        append,
    );
    let summary = summary.map_err(|error| error.to_string())?;
    summary.input_errors.iter().for_each(|error| say(&error.to_string()));
    let found = Found::of(&pairs, &wanted, &summary, args.examples);
    let text = if args.json { format!("{:#}\n", found.to_json()) } else { found.to_text() };
    Ok((text, summary.input_errors.is_empty()))
}

fn options(work: &Work, inputs: &super::args::Inputs) -> RunOptions {
    RunOptions {
        threads: work.threads,
        chunk_len: work.chunk_len,
        max_record_len: inputs.max_record_len,
        mmap: inputs.mmap,
        record_types: inputs.record_types.clone(),
        ..RunOptions::default()
    }
}

/// The keys of one record: the two that are compared, then one for each recipe less one rule.
struct Keys {
    text: Vec<u8>,
    pair: Option<(KeyBytes, KeyBytes)>,
    recipes: Vec<Option<KeyBytes>>,
}

/// What is made of each record.
struct Wanted {
    keys: [ColumnId; 2],
    /// Recipes of the keys, and those less one rule.
    recipes: Vec<RecipeColumn>,
    /// Place in `recipes` of a whole recipe, of one less a rule, and the rule.
    rules: Vec<(usize, usize, &'static str)>,
}

impl Wanted {
    fn of(keys: [ColumnId; 2]) -> Result<Wanted, String> {
        let mut wanted = Wanted { keys, recipes: Vec::new(), rules: Vec::new() };
        for key in keys {
            let ColumnId::RecipeKey(column) = key else { continue };
            let parse = |text: &str| Recipe::parse(text).map_err(|error| error.to_string());
            let (recipe, whole) = (parse(column)?, wanted.recipes.len());
            let rules: Vec<_> = recipe.rules().names().collect();
            wanted.recipes.push(RecipeColumn { column, recipe });
            for rule in rules {
                wanted.rules.push((whole, wanted.recipes.len(), rule));
                wanted.recipes.push(RecipeColumn { column: "", recipe: parse(&format!("{column},-{rule}"))? });
            }
        }
        Ok(wanted)
    }

    fn rungs(&self) -> Vec<crate::iri::Rung> {
        let rung = |key: &ColumnId| if let ColumnId::KeyOf(rung) = key { Some(*rung) } else { None };
        self.keys.iter().filter_map(rung).collect()
    }

    fn name(&self, place: usize) -> &'static str {
        match self.keys[place] {
            ColumnId::KeyOf(rung) => rung.name(),
            ColumnId::KeyProtocol => PROTOCOL,
            ColumnId::RecipeKey(name) => name,
            _ => "key",
        }
    }

    fn keys(&self, rows: &Rows, algorithm: KeyAlgorithm) -> Vec<Keys> {
        let row = |i: usize| {
            let recipes: Vec<_> = rows.recipe_texts.iter().map(|texts| texts.get(i)).collect();
            let hash = |text: &&[u8]| (!text.is_empty()).then(|| algorithm.key(text));
            let recipes: Vec<Option<KeyBytes>> = recipes.iter().map(hash).collect();
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
            Keys { text: text.to_vec(), pair: first.zip(second).filter(|_| !is_faulty), recipes }
        };
        (0..rows.len()).map(row).collect()
    }
}

/// What was seen of all records.
#[derive(Default)]
struct Pairs {
    /// By both keys: order of the first record, and its text.
    seen: HashMap<(KeyBytes, KeyBytes), (u64, Vec<u8>)>,
    /// Distinct keys of every recipe.
    without: Vec<HashSet<KeyBytes>>,
    records: u64,
    keyless: u64,
}

impl Pairs {
    fn add(&mut self, keys: Keys) {
        let order = self.records;
        self.records += 1;
        let Some(pair) = keys.pair else {
            self.keyless += 1;
            return;
        };
        for (set, key) in self.without.iter_mut().zip(keys.recipes) {
            set.extend(key);
        }
        self.seen.entry(pair).or_insert((order, keys.text));
    }
}

/// URLs that one key merges and the other keeps apart.
struct Merged {
    by: &'static str,
    not_by: &'static str,
    /// Keys of the one that stand for several of the other.
    keys: u64,
    /// Keys of the other that are too many for it.
    merges: u64,
    examples: Vec<Vec<Vec<u8>>>,
}

struct Found {
    records: u64,
    keyless: u64,
    merged: Vec<Merged>,
    /// Recipe, rule, keys that only this rule made one.
    rules: Vec<(&'static str, &'static str, u64)>,
}

impl Found {
    fn of(pairs: &Pairs, wanted: &Wanted, summary: &Summary, examples: usize) -> Found {
        let merged = [0, 1].map(|by| merged(pairs, wanted, by, examples)).into();
        let rule = |&(whole, part, rule): &(usize, usize, &'static str)| {
            let [whole_count, part_count] = [whole, part].map(|place| pairs.without[place].len() as u64);
            (wanted.recipes[whole].column, rule, part_count.saturating_sub(whole_count))
        };
        let rules = wanted.rules.iter().map(rule).collect();
        Found { records: summary.records, keyless: pairs.keyless, merged, rules }
    }

    fn to_json(&self) -> Value {
        let merged = |merged: &Merged| {
            let text = |url: &Vec<u8>| url.to_str_lossy().into_owned();
            json!({
                "merged_by": merged.by,
                "apart_by": merged.not_by,
                "keys": merged.keys,
                "merges": merged.merges,
                "examples": merged.examples.iter().map(|urls| urls.iter().map(text).collect()).collect::<Vec<Vec<_>>>(),
            })
        };
        let rule =
            |(recipe, rule, merges): &(&str, &str, u64)| json!({"recipe": recipe, "rule": rule, "merges": merges});
        json!({
            "records": self.records,
            "without_key": self.keyless,
            "differences": self.merged.iter().map(merged).collect::<Vec<_>>(),
            "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let mut text = format!("{} records, {} without both keys\n", thousands(self.records), thousands(self.keyless));
        // Writing to a string does not fail.
        for Merged { by, not_by, keys, merges, examples } in &self.merged {
            let _ = writeln!(
                text,
                "\n{by} merges what {not_by} keeps apart: {} keys, {} merges",
                thousands(*keys),
                thousands(*merges)
            );
            for urls in examples {
                urls.iter().enumerate().for_each(|(i, url)| {
                    let _ = writeln!(text, "  {} {}", if i == 0 { "-" } else { " " }, url.as_bstr());
                });
            }
        }
        if !self.rules.is_empty() {
            text.push_str("\nMerges that a rule alone causes: distinct keys more without it\n");
        }
        for (recipe, rule, merges) in &self.rules {
            let _ = writeln!(text, "  {recipe:16} {rule:20} {}", thousands(*merges));
        }
        text
    }
}

fn merged(pairs: &Pairs, wanted: &Wanted, by: usize, examples: usize) -> Merged {
    let mut groups: HashMap<&KeyBytes, Vec<&(u64, Vec<u8>)>> = HashMap::new();
    for ((first, second), seen) in &pairs.seen {
        groups.entry(if by == 0 { first } else { second }).or_default().push(seen);
    }
    let mut several = BTreeMap::new();
    let mut merges = 0;
    for mut group in groups.into_values().filter(|group| group.len() > 1) {
        group.sort_unstable();
        merges += group.len() as u64 - 1;
        several.insert(group[0].0, group);
    }
    let texts = |group: &Vec<&(u64, Vec<u8>)>| group.iter().take(4).map(|(_, text)| text.clone()).collect();
    let examples = several.values().take(examples).map(texts).collect();
    Merged { by: wanted.name(by), not_by: wanted.name(1 - by), keys: several.len() as u64, merges, examples }
}
