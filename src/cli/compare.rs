//! `compare`: two IRIs in, the lowest rung on which they are equivalent out (RFC 3987 section 5.3).

use serde_json::json;

use super::reading::{Reading, fault_of};
use super::{print, say};
use crate::iri::{Fault, Rung};
use crate::key::KeyBytes;
use crate::process::exit;

/// Names the lowest rung on which two IRIs are equivalent; exit status 0 if there is one, 1 if not
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// One IRI
    #[arg(value_name = "A")]
    a: std::ffi::OsString,
    /// The other
    #[arg(value_name = "B")]
    b: std::ffi::OsString,
    #[command(flatten)]
    reading: Reading,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CompareArgs) -> u8 {
    let lowest = match lowest_rung(args) {
        Ok(lowest) => lowest,
        Err((which, fault)) => {
            say(&format!("{which}: {fault}"));
            return exit::USAGE;
        }
    };
    let text = match lowest {
        _ if args.json => json!({"equivalent": lowest.is_some(), "rung": lowest.map(Rung::name)}).to_string(),
        Some(rung) => format!("equivalent on rung {}", rung.name()),
        None => "not equivalent on any rung up to scheme".to_string(),
    };
    match print(&format!("{text}\n")) {
        exit::SUCCESS if lowest.is_none() => exit::DIFFERENT,
        status => status,
    }
}

/// The lowest rung on which both have the same key.
fn lowest_rung(args: &CompareArgs) -> Result<Option<Rung>, (&'static str, Fault)> {
    args.reading.base().map_err(|fault| ("--base", fault))?;
    let rows = args.reading.rows(&[args.a.as_encoded_bytes(), args.b.as_encoded_bytes()], Rung::default());
    for (row, name) in ["A", "B"].into_iter().enumerate() {
        if let Some(fault) = fault_of(&rows, row) {
            return Err((name, fault));
        }
    }
    let is_equal = |keys: &Vec<KeyBytes>| keys[0] == keys[1];
    Ok(Rung::ALL.into_iter().zip(&rows.more_keys).find(|(_, keys)| is_equal(keys)).map(|(rung, _)| rung))
}
