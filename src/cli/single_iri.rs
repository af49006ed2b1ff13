//! Commands on single IRIs: how they are parsed (for `compare` and `explain`), and `compare`, which finds the lowest rung
//! on which two IRIs are equivalent (RFC 3987 section 5.3).

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use super::args::PolicyArgs;
use super::error::CommandError;
use super::terminal::print;
use crate::canon::{Canonicalizer, Policy, Rows, Rung};
use crate::iri::{FaultKind, Spaces};
use crate::kernel::Bitmaps;
use crate::key::KeyBytes;
use crate::process::exit;
use crate::record::{RecordBuffer, Splitter};

/// The help of the flag that has another meaning if there are no columns of bases.
pub(crate) const LITERAL_BASE_HELP: &str =
    "Resolve exactly as in RFC 3986 section 5.2, keeping the dot segments of the base itself. Needs --base";

/// The row that `canon` makes of each IRI. If fields are split, an IRI has a row for each reference in it; the first value
/// has the references.
pub(crate) fn rows_of(policy: &Policy, iris: &[&[u8]]) -> (Vec<Vec<u8>>, Rows) {
    let (mut buffer, mut bitmaps) = (RecordBuffer::default(), Bitmaps::default());
    let mut rows = Rows::default();
    iris.iter().for_each(|iri| buffer.push_url(iri));
    let mut splitter = Splitter::default();
    let mut records = buffer.classified_records(&mut bitmaps);
    if policy.preprocess.spaces == Spaces::Split {
        (records, _) = splitter.split(&records, &policy.preprocess);
    }
    Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
    (records.urls.iter().map(|url| url.of(records.text).to_vec()).collect(), rows)
}

const EXAMPLES: &str = "\
Examples:
  irikey compare http://example.org:80/%7Euser HTTP://EXAMPLE.org/~user
  irikey compare http://example.org/a http://example.org/b || echo different";

/// Name the lowest rung on which two IRIs are equivalent; exit code 1 if there is none
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("literal_base", |flag| flag.help(LITERAL_BASE_HELP)),
          mut_arg("rung", |flag| flag.help("Highest rung of RFC 3987 section 5.3 to compare on")),
          mut_arg("key_hash", |flag| flag.hide(true)))]
pub(crate) struct CompareArgs {
    /// First IRI
    #[arg(value_name = "A")]
    a: OsString,
    /// Second IRI
    #[arg(value_name = "B")]
    b: OsString,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run_compare(args: &CompareArgs) -> Result<u8, CommandError> {
    let lowest = lowest_rung(args)?;
    let text = match lowest {
        _ if args.json => json!({"equivalent": lowest.is_some(), "rung": lowest.map(Rung::name)}).to_string(),
        Some(rung) => format!("equivalent on rung {}", rung.name()),
        None => format!("not equivalent on any rung up to {}", args.policy.rung.name()),
    };
    match print(&format!("{text}\n")) {
        exit::SUCCESS if lowest.is_none() => Ok(exit::DIFFERENT),
        status => Ok(status),
    }
}

/// The lowest rung on which both have the same key. Relative references have keys only with a base; without one, equal
/// texts are equivalent on rung `simple`.
fn lowest_rung(args: &CompareArgs) -> Result<Option<Rung>, CommandError> {
    let more_keys = args.policy.rung.up_to().collect();
    let policy = Policy { more_keys, ..args.policy.policy_of_arguments()? };
    let (iris, rows) = rows_of(&policy, &[args.a.as_encoded_bytes(), args.b.as_encoded_bytes()]);
    if iris.len() != 2 {
        return Err(CommandError::usage(
            "--inner-spaces split: an argument holds several references; name one in each",
        ));
    }
    let is_relative = |row| rows.fault(row).is_some_and(|fault| fault.kind == FaultKind::Relative);
    if args.a == args.b && is_relative(0) {
        return Ok(Some(Rung::Simple));
    }
    for (row, name) in ["A", "B"].into_iter().enumerate() {
        if let Some(fault) = rows.fault(row) {
            let value = [&args.a, &args.b][row].to_string_lossy();
            return Err(CommandError::Usage(format!("{name} {value}: {fault}")));
        }
    }
    let is_equal = |keys: &Vec<KeyBytes>| keys[0] == keys[1];
    Ok(policy.more_keys.iter().copied().zip(&rows.more_keys).find(|(_, keys)| is_equal(keys)).map(|(rung, _)| rung))
}
