//! `compare`: two IRIs in, the lowest rung on which they are equivalent out (RFC 3987 section 5.3).

use serde_json::json;

use super::reading::Reading;
use super::{exit, print, say};
use crate::iri::{Fault, Intake, Rung, climb, find_scheme};

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
    let intake = args.reading.intake();
    let lowest = match lowest_rung(args, intake) {
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

/// The lowest rung on which both have the same text.
fn lowest_rung(args: &CompareArgs, intake: Intake) -> Result<Option<Rung>, (&'static str, Fault)> {
    let base = args.reading.base();
    let base = base.map_err(|fault| ("--base", fault))?;
    let absolute = |name, iri: &std::ffi::OsString| {
        let iri = iri.as_encoded_bytes();
        match &base {
            Some(base) if find_scheme(iri).is_none() => base.resolve(iri),
            _ => Ok(iri.to_vec()),
        }
        .map_err(|fault| (name, fault))
    };
    let (a, b) = (absolute("A", &args.a)?, absolute("B", &args.b)?);
    for rung in Rung::ALL {
        let (a, _) = climb(&a, rung, intake).map_err(|fault| ("A", fault))?;
        let (b, _) = climb(&b, rung, intake).map_err(|fault| ("B", fault))?;
        if a == b {
            return Ok(Some(rung));
        }
    }
    Ok(None)
}
