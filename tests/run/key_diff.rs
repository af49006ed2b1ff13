//! Comparisons of keys agree with maps over the rows of `canon`, in which every rule of a recipe is left out in turn, and do
//! not depend on threads, row groups or memory.

use super::dedup::lines;
use crate::collect::{file, options, path, sample_path};
use irikey::canon::{Policy, RecipeColumn, Rows, Rung};
use irikey::input::Sources;
use irikey::key::{KeyAlgorithm, KeyBytes, RULES, Recipe, Rule};
use irikey::run::{KeyDiffOptions, KeyMerges, Progress, RowKey, RuleMerges, RunRequest, canon, compare_keys};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;

const EXAMPLES: usize = 7;

fn recipe(name: &str) -> RecipeColumn {
    RecipeColumn { column: "", recipe: Recipe::parse(name).unwrap() }
}

/// The recipe without each of its rules, with the name of the rule.
fn variants(name: &str) -> Vec<(&'static str, RecipeColumn)> {
    let without = |rule: &Rule| Recipe::parse(&format!("{name},-{}", rule.name)).ok();
    let variant = |rule: &Rule| Some((rule.name, RecipeColumn { column: "", recipe: without(rule)? }));
    RULES.iter().filter_map(variant).collect()
}

type Found = (u64, u64, [KeyMerges; 2], Vec<RuleMerges>);

/// The pairs of keys with their first records, and the distinct keys of each recipe of the policy.
#[derive(Default)]
struct Pairs {
    records: u64,
    incomplete: u64,
    first: HashMap<[KeyBytes; 2], (u64, Vec<u8>)>,
    distinct: Vec<HashSet<KeyBytes>>,
}

impl Pairs {
    fn add(&mut self, rows: &Rows, keys: [RowKey; 2]) {
        for row in 0..rows.len() {
            let hash = |text: &[u8]| (!text.is_empty()).then(|| KeyAlgorithm::Xxh3.key(text));
            let key = |key| match key {
                RowKey::Rung => Some(rows.key[row]),
                RowKey::More(index) => Some(rows.more_keys[index][row]),
                RowKey::Recipe(index) => hash(rows.recipe_texts[index].get(row)),
                RowKey::Protocol => panic!("no equivalences"),
            };
            let record = self.records;
            self.records += 1;
            let is_faulty = rows.faults.iter().any(|(faulty, _)| *faulty as usize == row);
            let (false, [Some(first), Some(second)]) = (is_faulty, keys.map(key)) else {
                self.incomplete += 1;
                continue;
            };
            let text = if rows.differs(row) { rows.input.get(row) } else { rows.uri.get(row) };
            self.first.entry([first, second]).or_insert_with(|| (record, text.to_vec()));
            self.distinct.resize_with(rows.recipe_texts.len(), HashSet::new);
            let texts = rows.recipe_texts.iter().map(|texts| hash(texts.get(row)));
            self.distinct.iter_mut().zip(texts).for_each(|(keys, key)| keys.extend(key));
        }
    }

    fn merges(&self, side: usize) -> KeyMerges {
        let mut groups: HashMap<KeyBytes, BTreeMap<u64, Vec<u8>>> = HashMap::new();
        for (keys, (record, text)) in &self.first {
            groups.entry(keys[side]).or_default().insert(*record, text.clone());
        }
        let mut merged: Vec<_> = groups.into_values().filter(|group| group.len() > 1).collect();
        merged.sort_by_key(|group| *group.keys().next().unwrap());
        let merges = merged.iter().map(|group| group.len() as u64 - 1).sum();
        let texts = |group: &BTreeMap<u64, Vec<u8>>| group.values().take(4).cloned().collect();
        KeyMerges { keys: merged.len() as u64, merges, examples: merged.iter().take(EXAMPLES).map(texts).collect() }
    }
}

/// The comparison by maps. All variants of recipes are recipes of the policy.
fn expected(sources: Sources, keys: [RowKey; 2], recipes: &[&str]) -> Found {
    let names: Vec<_> = recipes.iter().map(|name| variants(name)).collect();
    let whole = recipes.iter().map(|name| recipe(name));
    let all = whole.chain(names.iter().flatten().map(|(_, variant)| variant.clone())).collect();
    let policy = Policy { recipes: all, ..policy(&[]) };
    let mut pairs = Pairs::default();
    let append = |rows: Rows| {
        pairs.add(&rows, keys);
        Ok(())
    };
    let request_options = options(1, 1 << 16, 1 << 16);
    let progress = Progress::new();
    let request = RunRequest::new(sources, &request_options, &policy, &progress);
    canon::<Rows, Infallible>(request, |group| Ok(Some(group.rows.clone())), append).unwrap();
    let mut variant = recipes.len();
    let mut rules = Vec::new();
    for (recipe, names) in names.iter().enumerate() {
        for (rule, _) in names {
            let merges = pairs.distinct[variant].len().saturating_sub(pairs.distinct[recipe].len()) as u64;
            rules.push(RuleMerges { recipe, rule, merges });
            variant += 1;
        }
    }
    (pairs.records, pairs.incomplete, [0, 1].map(|side| pairs.merges(side)), rules)
}

fn policy(recipes: &[&str]) -> Policy {
    let recipes = recipes.iter().map(|name| recipe(name)).collect();
    Policy { keep_input: true, more_keys: vec![Rung::Simple], recipes, ..Policy::default() }
}

/// Compares with any threads, row groups and memory. Returns the expected result.
fn check(sources: impl Fn() -> Sources, keys: [RowKey; 2], recipes: &[&str]) -> Found {
    let directory = tempfile::tempdir().unwrap();
    let expected = expected(sources(), keys, recipes);
    let policy = policy(recipes);
    let settings = [(1, 1 << 20, usize::MAX), (3, 20_000, 600_000), (5, 700, 0), (2, 5_000, 200_000)];
    for (threads, row_group_len, memory) in settings {
        let diff = KeyDiffOptions { keys, examples: EXAMPLES, memory, directory: directory.path().to_path_buf() };
        let options = options(threads, row_group_len, 1 + row_group_len / 3);
        let progress = Progress::new();
        let found = compare_keys(RunRequest::new(sources(), &options, &policy, &progress), &diff).unwrap();
        match memory {
            0 => assert!(found.spilled > 0),
            usize::MAX => assert_eq!(found.spilled, 0),
            _ => (),
        }
        let found = (found.summary.tally.rows, found.incomplete, found.merges, found.rules);
        assert!(found == expected, "{recipes:?} {threads} {memory}: {found:?}, expected {expected:?}");
    }
    expected
}

#[test]
fn differences_agree_with_maps() {
    let directory = tempfile::tempdir().unwrap();
    let spelled = |i: u64| match i % 8 {
        0 => format!("http://www.example.org/Page/{}?b=2&a=1\n", i * i % 211),
        1 => format!("https://example.org/page/{}/?a=1&b=2#top\n", i * i % 211),
        2 => format!("HTTP://EXAMPLE.org:80/page/{};jsessionid={:032x}\n", i * i % 211, i % 3),
        3 => format!("http://u@example.org/%7Epage/../page//{}\n", i % 13),
        _ => format!("http://h{}.example/{:x}\n", i % 7, i * i % 1_009),
    };
    let text = [lines(3_000), (0..3_000).map(spelled).collect::<String>().into_bytes()].concat();
    let generated = file(&directory, "a.txt", &text);
    let sample = sample_path("urls.txt");
    let compared = [
        ([RowKey::Rung, RowKey::Recipe(0)], &["surt-wayback"][..]),
        ([RowKey::Recipe(1), RowKey::Recipe(0)], &["urlcanon-aggressive", "surt-ia"]),
        ([RowKey::Recipe(0), RowKey::More(0)], &["crawler-commons"]),
        ([RowKey::Recipe(0), RowKey::Rung], &["nutch,-fragment"]),
        ([RowKey::Recipe(0), RowKey::Recipe(1)], &["w3lib", "heritrix"]),
        ([RowKey::More(0), RowKey::Rung], &[]),
    ];
    let (mut merged, mut by_rules) = (0, 0);
    for (keys, recipes) in compared {
        let (records, incomplete, merges, rules) = check(|| path(&generated), keys, recipes);
        assert!(records == 6_000 && incomplete > 200, "{incomplete}");
        merged += merges.iter().map(|merges| merges.merges).sum::<u64>();
        by_rules += rules.iter().map(|rule| rule.merges).sum::<u64>();
        check(|| path(&sample), keys, recipes);
    }
    assert!(merged > 100 && by_rules > 0, "{merged} {by_rules}");
}

#[test]
fn nothing_is_compared_without_records() {
    let directory = tempfile::tempdir().unwrap();
    let empty = file(&directory, "empty.txt", b"");
    let found = check_empty(&empty, directory.path());
    assert_eq!(found, (0, 0, [KeyMerges::default(), KeyMerges::default()]));
}

fn check_empty(input: &std::path::Path, directory: &std::path::Path) -> (u64, u64, [KeyMerges; 2]) {
    let keys = [RowKey::Rung, RowKey::Recipe(0)];
    let diff = KeyDiffOptions { keys, examples: 1, memory: 1 << 20, directory: directory.to_path_buf() };
    let (options, policy, progress) = (options(2, 100, 10), policy(&["surt-wayback"]), Progress::new());
    let found = compare_keys(RunRequest::new(path(input), &options, &policy, &progress), &diff).unwrap();
    (found.summary.records, found.incomplete, found.merges)
}
