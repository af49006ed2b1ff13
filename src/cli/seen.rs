//! `seen`: what is in a store of seen keys, whether it is whole, and merging its runs.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::canon::Failure;
use super::summary::thousands;
use crate::dedup::seen::{RunInfo, SeenError, SeenStore};

/// Flags of `seen`.
#[derive(Debug, Args)]
pub(super) struct SeenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the policy of the keys and the runs that they are in
    Info(Place),
    /// Merge all runs to one, so that later jobs read fewer files
    Merge(Place),
    /// Read everything and check it: order, checksums, no key twice
    Verify(Place),
}

#[derive(Debug, Args)]
struct Place {
    /// The store
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(args: &SeenArgs) -> u8 {
    match perform(&args.action) {
        Ok(text) => super::print(&text),
        Err(error) => Failure::from(error).tell(),
    }
}

fn perform(action: &Action) -> Result<String, SeenError> {
    let store = match action {
        Action::Info(place) => SeenStore::open(&place.directory)?,
        Action::Merge(place) => {
            let mut store = SeenStore::open_to_merge(&place.directory)?;
            store.merge()?;
            store
        }
        Action::Verify(place) => {
            let store = SeenStore::open(&place.directory)?;
            store.verify()?;
            return Ok(format!(
                "{} keys in {} runs, all in order\n",
                thousands(store.count()),
                store.info().runs.len()
            ));
        }
    };
    let info = store.info();
    let mut text = format!("keys        {}\ngeneration  {}\n", thousands(store.count()), info.generation);
    // Writing to a string does not fail.
    for RunInfo { name, count, checksum } in &info.runs {
        let _ = writeln!(text, "{name}  {} keys, checksum {checksum}", thousands(*count));
    }
    for (name, value) in info.policy.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(text, "{name}: {value}");
    }
    Ok(text)
}
