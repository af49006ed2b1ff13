//! `seen`: shows, checks and merges a store of the keys that earlier jobs have seen.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use serde_json::{Map, Value, json};

use super::args::named_path;
use super::error::CommandError;
use super::terminal::{count_of, print_json, print_lines, thousands};
use crate::dedup::seen::{RunInfo, SeenStore, StoreInfo};

const EXAMPLES: &str = "\
Examples:
  irikey dedup urls.txt -o new.parquet --seen keys/ --update-seen
  irikey seen info keys/ --json
  irikey seen verify keys/";

/// Show, check or merge a seen store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SeenArgs {
    #[command(subcommand)]
    action: SeenAction,
}

#[derive(Debug, Subcommand)]
enum SeenAction {
    /// Show the policy of the keys and the runs in which they are stored
    Info(InfoArgs),
    /// Merge all runs into one, so that later jobs read fewer files
    Merge(DirectoryArgs),
    /// Check all keys: order, checksums, no key twice
    Verify(DirectoryArgs),
}

#[derive(Debug, Args)]
struct InfoArgs {
    #[command(flatten)]
    store: DirectoryArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct DirectoryArgs {
    /// Directory of the store, on a local disk
    #[arg(value_name = "DIR", value_parser = named_path())]
    directory: PathBuf,
}

pub(crate) fn run(args: &SeenArgs) -> Result<u8, CommandError> {
    let (SeenAction::Info(InfoArgs { store, .. }) | SeenAction::Merge(store) | SeenAction::Verify(store)) =
        &args.action;
    let directory = &store.directory;
    CommandError::refuse_remote(directory)?;
    match &args.action {
        SeenAction::Info(InfoArgs { json, .. }) => {
            let info = SeenStore::open(directory)?.info();
            Ok(if *json { print_json(&format!("{:#}\n", to_json(&info))) } else { print_lines(&to_text(&info)) })
        }
        SeenAction::Merge(_) => {
            let mut store = SeenStore::open_to_merge(directory)?;
            store.merge()?;
            Ok(print_lines(&to_text(&store.info())))
        }
        SeenAction::Verify(_) => {
            let store = SeenStore::open(directory)?;
            store.verify()?;
            let (keys, runs) = (count_of(store.count(), "key"), count_of(store.info().runs.len() as u64, "run"));
            Ok(print_lines(&format!("{keys} in {runs}, all in order\n")))
        }
    }
}

fn key_count(info: &StoreInfo) -> u64 {
    info.runs.iter().map(|run| run.count).sum()
}

fn to_text(info: &StoreInfo) -> String {
    let mut text = format!("keys        {}\ngeneration  {}\n", thousands(key_count(info)), info.generation);
    // Writing to a string does not fail.
    for RunInfo { name, count, checksum } in &info.runs {
        let _ = writeln!(text, "{name}  {}, checksum {checksum}", count_of(*count, "key"));
    }
    for (name, value) in info.policy.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name}: {value}");
    }
    text
}

/// The store as JSON, with the names of its manifest.
fn to_json(info: &StoreInfo) -> Value {
    let run = |RunInfo { name, count, checksum }: &RunInfo| json!({"name": name, "keys": count, "checksum": checksum});
    let policy: Map<_, _> = info.policy.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    json!({
        "keys": key_count(info),
        "generation": info.generation,
        "runs": info.runs.iter().map(run).collect::<Vec<_>>(),
        "policy": policy,
    })
}
