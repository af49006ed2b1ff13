//! `diff`: compares two keys. Counts which URLs one of them merges and the other does not, with examples, and what each
//! rule of a recipe merges by itself.

use std::fmt::Write;
use std::path::PathBuf;

use bstr::ByteSlice;
use serde_json::{Value, json};

use super::args::{
    InputArgs, KEYS, KeyArgs, NO_CLOBBER_REPORT_HELP, PolicyArgs, ReportingArgs, WorkArgs, name_of_key,
    parse_number_from,
};
use super::error::CommandError;
use super::progress::watch;
use super::report::{PrintedResult, Table, with_run_figures};
use super::terminal::{count_of, thousands};
use crate::batch::ColumnId;
use crate::run::{self, KeyDiffOptions, KeyDifference, KeyMerges, RuleMerges, RunRequest, WorkerNeed};

const EXAMPLES: &str = "\
Examples:
  What does the Wayback Machine's key merge that the rung scheme keeps apart?
      irikey diff --key scheme,surt-wayback urls.txt

  The same for a program, with 20 examples of each kind:
      irikey diff --key scheme,surt-wayback urls.txt --examples 20 --json";

/// Input bytes that are compared at a time: rows with the texts of recipes are many times as long.
const ROW_GROUP_LEN: usize = 256 << 10;

// The keys are chosen by --key, so that --rung changes nothing.
/// Compare two keys: which URLs does one of them merge and the other not?
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = super::help::long_examples(EXAMPLES),
          mut_arg("no_clobber", |flag| flag.help(NO_CLOBBER_REPORT_HELP)),
          mut_arg("rung", |flag| flag.hide(true)))]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    policy: PolicyArgs,
    /// The two keys to compare, separated by a comma. A rung (simple, syntax, scheme; protocol, with --equivalences) or a
    /// recipe (surt-wayback, surt-ia, crawler-commons, nutch, w3lib, urlcanon-aggressive, heritrix; rules, with --rules)
    #[arg(long, value_name = "LIST", value_parser = KEYS, hide_possible_values = true, value_delimiter = ',',
          required = true, help_heading = "Canonical form")]
    key: Vec<ColumnId>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Number of examples of each kind
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_number_from::<usize, 0>,
          allow_negative_numbers = true, help_heading = "Reporting")]
    examples: usize,
    /// Print JSON
    #[arg(long, help_heading = "Reporting")]
    json: bool,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    reporting: ReportingArgs,
}

impl DiffArgs {
    fn compared(&self) -> Result<[ColumnId; 2], CommandError> {
        match self.key[..] {
            [first, second] if first != second => Ok([first, second]),
            _ => Err(CommandError::usage("diff compares two different keys; name them with --key A,B")),
        }
    }
}

pub(crate) fn run(args: &DiffArgs) -> Result<u8, CommandError> {
    let keys = args.compared()?;
    let (difference, recipes, replaced) = perform(args, &keys)?;
    args.input.print_unused_flag(&difference.summary, args.reporting.quiet);
    let shown = ShownDifference { names: keys.map(|key| name_of_key(key).unwrap_or("key")), recipes, difference };
    let json = shown.to_json();
    let mut report = json.clone();
    report["irikey"] = json!(env!("CARGO_PKG_VERSION"));
    report["temporary_bytes"] = json!(shown.difference.spilled);
    let report = with_run_figures(report, &shown.difference.summary);
    let result = PrintedResult {
        command: "diff",
        summary: &shown.difference.summary,
        replaced: &replaced,
        text: shown.to_text(),
        json,
        report,
        tables: shown.to_tables(),
    };
    result.conclude(args.json, &args.reporting)
}

/// Compares these keys. Returns the difference, the names of the recipes, and the files that will be replaced.
fn perform(
    args: &DiffArgs,
    keys: &[ColumnId; 2],
) -> Result<(KeyDifference, Vec<&'static str>, Vec<PathBuf>), CommandError> {
    let mut options = args.input.run_options(&args.work, ROW_GROUP_LEN)?;
    let (policy, keys) = args.keys.complete(args.policy.policy(&args.input)?, keys)?;
    // Of short lines, the keys without single rules take three times as much as the rows.
    let memory = args.input.reserve_memory(&args.work, &mut options, WorkerNeed::keys(4 * ROW_GROUP_LEN))?;
    let directory = args.work.directory()?;
    let sources = args.input.sources()?;
    let replaced = args.keys.add_to(args.reporting.files(&args.input.files.inputs)).check(&sources)?;
    let diff = KeyDiffOptions { keys: [keys[0], keys[1]], examples: args.examples, memory, directory };
    let (difference, _) = watch(&args.reporting, sources.total_len(), |progress| {
        run::compare_keys(RunRequest::new(sources, &options, &policy, progress), &diff)
    });
    Ok((difference?, policy.recipes.iter().map(|recipe| recipe.column).collect(), replaced))
}

/// A difference with the names of what was compared.
struct ShownDifference {
    names: [&'static str; 2],
    /// The names of the recipes of the policy.
    recipes: Vec<&'static str>,
    difference: KeyDifference,
}

impl ShownDifference {
    /// What each key merges, with its name and that of the other.
    fn merges(&self) -> impl Iterator<Item = (&'static str, &'static str, &KeyMerges)> {
        let [first, second] = self.names;
        [(first, second), (second, first)]
            .into_iter()
            .zip(&self.difference.merges)
            .map(|((by, not_by), merges)| (by, not_by, merges))
    }

    fn to_json(&self) -> Value {
        let merges = |(by, not_by, merges): (&str, &str, &KeyMerges)| {
            let text = |url: &Vec<u8>| url.to_str_lossy().into_owned();
            json!({
                "merged_by": by,
                "apart_by": not_by,
                "keys": merges.keys,
                "merges": merges.merges,
                "examples": merges.examples.iter().map(|urls| urls.iter().map(text).collect()).collect::<Vec<Vec<_>>>(),
            })
        };
        let rule = |RuleMerges { recipe, rule, merges }: &RuleMerges| json!({"recipe": self.recipes[*recipe], "rule": rule, "merges": merges});
        json!({
            "records": self.difference.summary.tally.rows,
            "without_key": self.difference.incomplete,
            "differences": self.merges().map(merges).collect::<Vec<_>>(),
            "rules": self.difference.rules.iter().map(rule).collect::<Vec<_>>(),
        })
    }

    fn to_text(&self) -> String {
        let KeyDifference { summary, incomplete, rules, .. } = &self.difference;
        let (records, incomplete) = (count_of(summary.tally.rows, "record"), thousands(*incomplete));
        let mut text = format!("{records}, {incomplete} of which lack one or both keys\n");
        // Writing to a string does not fail.
        for (by, not_by, merged) in self.merges() {
            let (keys, merges) = (count_of(merged.keys, "key"), count_of(merged.merges, "merge"));
            let _ = writeln!(text, "\n{by} merges what {not_by} keeps apart: {keys}, {merges}");
            for urls in &merged.examples {
                urls.iter().enumerate().for_each(|(i, url)| {
                    let _ = writeln!(text, "  {} {}", if i == 0 { "-" } else { " " }, url.as_bstr());
                });
            }
        }
        if !rules.is_empty() {
            text.push_str("\nMerges by single rules: how many more distinct keys there are without the rule\n");
        }
        for RuleMerges { recipe, rule, merges } in rules {
            let _ = writeln!(text, "  {:16} {rule:20} {}", self.recipes[*recipe], thousands(*merges));
        }
        text
    }

    fn to_tables(&self) -> Vec<Table> {
        let KeyDifference { summary, incomplete, rules, .. } = &self.difference;
        let counts = [("records", summary.tally.rows), ("lacking one or both keys", *incomplete)];
        let counts = counts.map(|(label, count)| vec![label.to_string(), thousands(count)]);
        let merges = self.merges().map(|(by, not_by, merged)| {
            vec![by.to_string(), not_by.to_string(), thousands(merged.keys), thousands(merged.merges)]
        });
        let rules = rules.iter().map(|RuleMerges { recipe, rule, merges }| {
            vec![self.recipes[*recipe].to_string(), rule.to_string(), thousands(*merges)]
        });
        let examples =
            self.merges().flat_map(|(by, _, merged)| (1..).zip(&merged.examples).map(move |example| (by, example)));
        let urls = examples.flat_map(|(by, (number, urls))| {
            urls.iter().map(move |url| vec![by.to_string(), thousands(number), url.to_str_lossy().into_owned()])
        });
        vec![
            Table::new("Records", &["count of", "#number"], counts),
            Table::new("Merges", &["merged by", "kept apart by", "#keys", "#merges"], merges),
            Table::new("Merges by single rules", &["recipe", "rule", "#more keys without it"], rules),
            Table::new("Examples", &["merged by", "#example", "URL"], urls),
        ]
    }
}
