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
use crate::learn::RewriteRule;
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
            "patterns": RewriteRule::all().into_iter().map(RewriteRule::name).collect::<Vec<_>>(),
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
    values.iter().map(|value| json!({"name": value.get_name(), "meaning": meaning(value.get_help())})).collect()
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
    text.push_str("\nBits of the column flags\n");
    for (bit, name, meaning) in Flags::ALL {
        let _ = writeln!(text, "  {:>6} {name:16} {meaning}", bit.0);
    }
    text.push_str("\nBits of the column spoofing_flags\n");
    for (bit, name, meaning) in SpoofingFlags::ALL {
        let _ = writeln!(text, "  {:>6} {name:16} {meaning}", bit.0);
    }
    text.push_str("\nValues of the column fault\n");
    for kind in FaultKind::ALL {
        let _ = writeln!(text, "  {:16} {}", kind.name(), kind.meaning());
    }
    text.push_str("\nChanges that the summary and the report count\n");
    for (_, name, meaning) in Changes::ALL {
        let _ = writeln!(text, "  {name:16} {meaning}");
    }
    text.push_str("\nRules of recipes and --rules, in the order in which they are applied\n");
    for rule in RULES {
        let _ = writeln!(text, "  {:19} {}", rule.name, rule.meaning);
    }
    text.push_str("\nRecipes (--key, --columns)\n");
    for recipe in recipes() {
        let rules = recipe.rules().names().collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "  {:19} version {}: {rules}", recipe.name(), recipe.version());
    }
    text.push_str("\nColumns of the table written by irikey learn\n");
    for (name, meaning) in EQUIVALENCE_COLUMNS {
        let _ = writeln!(text, "  {name:19} {meaning}");
    }
    let patterns: Vec<_> = RewriteRule::all().into_iter().map(RewriteRule::name).collect();
    let _ = writeln!(text, "\nRewrite rules in it: {}", patterns.join(", "));
    text.push_str("\nRules about content in it\n");
    for (name, meaning) in ContentRule::FORMS {
        let _ = writeln!(text, "  {name:29} {meaning}");
    }
    text.push_str("\nMetadata of Parquet and Arrow files\n");
    for name in metadata_names() {
        let _ = writeln!(text, "  {name}");
    }
    text
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
