//! `schema`: lists what outputs consist of: columns with type and meaning, flags, changes, faults, recipes, metadata.

use std::fmt::Write;

use clap::{Arg, Args, Command};
use serde_json::{Value, json};

use super::error::CommandError;
use super::terminal::print;
use crate::batch::{COLUMNS, Column, EQUIVALENCE_COLUMNS};
use crate::canon::Policy;
use crate::iri::{Changes, FaultKind, Flags, SpoofingFlags};
use crate::key::{RULES, Recipe};
use crate::learn::RewritePattern;
use crate::learn::content::ContentRule;
use crate::output;
use crate::process::exit;

const EXAMPLES: &str = "\
Examples:
  irikey schema
  irikey schema --json > schema.json";

/// Show all columns, flags, faults, changes, recipes, formats and exit codes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchemaArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the schema. The formats are those that the flags of `command` accept.
pub(crate) fn run(args: &SchemaArgs, command: &Command) -> Result<u8, CommandError> {
    let text = if args.json { format!("{:#}\n", to_json(command)) } else { to_text() };
    Ok(print(&text))
}

fn recipes() -> impl Iterator<Item = Recipe> {
    Recipe::names().filter_map(|name| Recipe::parse(name).ok())
}

fn metadata_names() -> Vec<String> {
    output::metadata(&Policy::default(), 0).into_iter().map(|(name, _)| name).collect()
}

fn to_json(command: &Command) -> Value {
    let column = |column: &Column| {
        json!({
            "name": column.name,
            "type": column.kind.data_type().to_string(),
            "nullable": column.nullable,
            "default": column.is_default,
            "meaning": column.meaning,
        })
    };
    let bits = |bits: Vec<(u32, &str, &str)>| -> Vec<Value> {
        bits.into_iter().map(|(bit, name, meaning)| json!({"bit": bit, "name": name, "meaning": meaning})).collect()
    };
    json!({
        "columns": COLUMNS.iter().map(column).collect::<Vec<_>>(),
        "flags": bits(Flags::ALL.iter().map(|(bit, name, meaning)| (bit.0, *name, *meaning)).collect()),
        "spoofing_flags": bits(SpoofingFlags::ALL.iter().map(|(bit, name, meaning)| (bit.0, *name, *meaning)).collect()),
        "changes": bits(Changes::ALL.iter().map(|(bit, name, meaning)| (bit.0, *name, *meaning)).collect()),
        "faults": FaultKind::ALL.map(|kind| json!({"name": kind.name(), "meaning": kind.meaning()})),
        "rules": RULES.iter().map(|rule| json!({"name": rule.name, "meaning": rule.meaning})).collect::<Vec<_>>(),
        "recipes": recipes().map(|recipe| json!({
            "name": recipe.name(),
            "version": recipe.version(),
            "rules": recipe.rules().names().collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "equivalences": {
            "columns": EQUIVALENCE_COLUMNS.map(|(name, meaning)| json!({"name": name, "meaning": meaning})),
            "patterns": RewritePattern::all().into_iter().map(RewritePattern::name).collect::<Vec<_>>(),
            "rules": ContentRule::FORMS.map(|(name, meaning)| json!({"name": name, "meaning": meaning})),
        },
        "metadata": metadata_names(),
        "input_formats": possible_values(command, "format"),
        "output_formats": possible_values(command, "output_format"),
        "exit_codes": exit::ALL.map(|(code, meaning)| json!({"code": code, "meaning": meaning})),
    })
}

/// The values that a flag of `canon` accepts, as in its help.
fn possible_values(command: &Command, flag: &str) -> Vec<Value> {
    let canon = command.find_subcommand("canon");
    let argument = canon.and_then(|canon| canon.get_arguments().find(|argument| argument.get_id() == flag));
    let values = argument.map(Arg::get_possible_values).unwrap_or_default();
    let meaning = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let shown = values.iter().filter(|value| !value.is_hide_set());
    shown.map(|value| json!({"name": value.get_name(), "meaning": meaning(value.get_help())})).collect()
}

fn to_text() -> String {
    let mut text = String::from("Columns (those with * are written only if --columns or --key names them)\n");
    // Writing to a string does not fail.
    for column in COLUMNS {
        let name = format!("{}{}", column.name, if column.is_default { "" } else { "*" });
        let null = if column.nullable { "null" } else { "" };
        let kind = column.kind.data_type().to_string();
        let _ = writeln!(text, "  {name:27} {kind:27} {null:4}  {}", column.meaning);
    }
    let bits = |bit: u32, name: &str, meaning: &str| (format!("{bit:>6} {name}"), meaning.to_string());
    let of = |name: &str, meaning: &str| (name.to_string(), meaning.to_string());
    let flags = Flags::ALL.iter().map(|(bit, name, meaning)| bits(bit.0, name, meaning));
    push_names(&mut text, "Bits of the column flags", 23, flags);
    let flags = SpoofingFlags::ALL.iter().map(|(bit, name, meaning)| bits(bit.0, name, meaning));
    push_names(&mut text, "Bits of the column spoofing_flags", 23, flags);
    let faults = FaultKind::ALL.into_iter().map(|kind| of(kind.name(), kind.meaning()));
    push_names(&mut text, "Values of the column fault", 16, faults);
    let changes = Changes::ALL.iter().map(|(_, name, meaning)| of(name, meaning));
    push_names(&mut text, "Changes that the summary and the report count", 16, changes);
    let rules = RULES.iter().map(|rule| of(rule.name, rule.meaning));
    push_names(&mut text, "Rules of recipes and --rules, in the order in which they are applied", 19, rules);
    let recipe = |recipe: Recipe| {
        let rules = recipe.rules().names().collect::<Vec<_>>().join(",");
        (recipe.name().to_string(), format!("version {}: {rules}", recipe.version()))
    };
    push_names(&mut text, "Recipes (--key, --columns)", 19, recipes().map(recipe));
    let columns = EQUIVALENCE_COLUMNS.into_iter().map(|(name, meaning)| of(name, meaning));
    push_names(&mut text, "Columns of the table written by irikey learn", 19, columns);
    let patterns: Vec<_> = RewritePattern::all().into_iter().map(RewritePattern::name).collect();
    let _ = writeln!(text, "\nPatterns in it: {}", patterns.join(", "));
    let forms = ContentRule::FORMS.into_iter().map(|(name, meaning)| of(name, meaning));
    push_names(&mut text, "Rules about content in it", 29, forms);
    text + "\nMetadata of Parquet and Arrow files\n  " + &metadata_names().join("\n  ") + "\n"
}

/// Appends a title, and a line for each name with its meaning.
fn push_names(text: &mut String, title: &str, width: usize, names: impl Iterator<Item = (String, String)>) {
    let _ = writeln!(text, "\n{title}");
    for (name, meaning) in names {
        let _ = writeln!(text, "  {name:width$} {meaning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_named() {
        let (text, json) = (to_text(), to_json(&Command::new("irikey")));
        for column in COLUMNS {
            assert!(text.contains(column.meaning));
        }
        for (name, meaning) in EQUIVALENCE_COLUMNS {
            assert!(text.contains(&format!("  {name:19} {meaning}\n")));
        }
        assert_eq!(json["columns"].as_array().unwrap().len(), COLUMNS.len());
        assert_eq!(json["flags"][1]["bit"], 2);
        assert!(text.contains("irikey.key_version") && text.contains("irikey.sources"));
    }
}
