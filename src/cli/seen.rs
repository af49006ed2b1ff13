//! `seen`: shows, checks and merges a store of the keys that earlier jobs have seen.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::error::CommandError;
use super::terminal::{count_of, print_lines, thousands};
use crate::dedup::seen::{RunInfo, SeenError, SeenStore};

const EXAMPLES: &str = "\
Examples:
  irikey dedup urls.txt -o new.parquet --seen keys/ --update-seen
  irikey seen info keys/
  irikey seen verify keys/";

/// Show, check or merge a store of seen keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SeenArgs {
    #[command(subcommand)]
    action: SeenAction,
}

#[derive(Debug, Subcommand)]
enum SeenAction {
    /// Show the policy of the keys and the runs in which they are stored
    Info(StoreArgs),
    /// Merge all runs into one, so that later jobs read fewer files
    Merge(StoreArgs),
    /// Check all keys: order, checksums, no key twice
    Verify(StoreArgs),
}

#[derive(Debug, Args)]
struct StoreArgs {
    /// Directory of the store, on a local disk
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(args: &SeenArgs) -> Result<u8, CommandError> {
    let (SeenAction::Info(store) | SeenAction::Merge(store) | SeenAction::Verify(store)) = &args.action;
    CommandError::refuse_remote(&store.directory)?;
    Ok(print_lines(&perform(&args.action)?))
}

fn perform(action: &SeenAction) -> Result<String, SeenError> {
    let store = match action {
        SeenAction::Info(args) => SeenStore::open(&args.directory)?,
        SeenAction::Merge(args) => {
            let mut store = SeenStore::open_to_merge(&args.directory)?;
            store.merge()?;
            store
        }
        SeenAction::Verify(args) => {
            let store = SeenStore::open(&args.directory)?;
            store.verify()?;
            return Ok(format!(
                "{} in {}, all in order\n",
                count_of(store.count(), "key"),
                count_of(store.info().runs.len() as u64, "run")
            ));
        }
    };
    let info = store.info();
    let mut text = format!("keys        {}\ngeneration  {}\n", thousands(store.count()), info.generation);
    // Writing to a string does not fail.
    for RunInfo { name, count, checksum } in &info.runs {
        let _ = writeln!(text, "{name}  {}, checksum {checksum}", count_of(*count, "key"));
    }
    for (name, value) in info.policy.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name}: {value}");
    }
    Ok(text)
}
