//! Commands on single IRIs: how they are parsed (for `compare` and `explain`), and `compare`, which finds the lowest rung
//! on which two IRIs are equivalent (RFC 3987 section 5.3).

use std::ffi::OsString;

use clap::Args;
use serde_json::json;

use super::args::parse_profile;
use super::error::CommandError;
use super::terminal::print;
use crate::canon::{Canonicalizer, Policy, Rows, Rung};
use crate::iri::{Base, CLASSIFIER, Fault, FaultKind, ParseMode, PreprocessOptions, Profile};
use crate::kernel::Bitmaps;
use crate::key::KeyBytes;
use crate::process::exit;
use crate::record::RecordBuffer;

/// Flags of the commands that take IRIs as arguments.
#[derive(Debug, Args)]
pub(crate) struct SingleIriArgs {
    /// Resolve relative references against this absolute IRI
    #[arg(long, value_name = "URI")]
    base: Option<String>,
    /// Reject what RFC 3987 does not allow, instead of percent-encoding and flagging it
    #[arg(long)]
    strict: bool,
    /// Specification whose syntax and repairs apply: rfc3987, duerst-00, duerst-01, masinter-07, weber-00 or whatwg
    #[arg(long, value_name = "NAME", value_parser = parse_profile, default_value = "rfc3987")]
    profile: &'static Profile,
}

impl SingleIriArgs {
    pub(crate) fn base(&self) -> Result<Option<Base>, CommandError> {
        let base = self.base.as_deref().map(|base| Base::new(base.as_bytes())).transpose();
        base.map_err(|fault| CommandError::Usage(format!("--base: {fault}")))
    }

    pub(crate) fn parse_mode(&self) -> ParseMode {
        if self.strict { ParseMode::Strict } else { ParseMode::Lenient }
    }

    /// The profile is that of RFC 3987, whose ladder has steps to show.
    pub(crate) fn is_rfc3987(&self) -> bool {
        self.profile.name == <&Profile>::default().name
    }

    /// The policy that these flags choose, with the keys of all rungs.
    pub(crate) fn policy(&self, rung: Rung) -> Policy {
        Policy {
            profile: self.profile,
            intake: self.parse_mode(),
            rung,
            more_keys: Rung::ALL.to_vec(),
            base: self.base.clone().map(String::into_bytes),
            preprocess: PreprocessOptions {
                is_trimmed: self.profile.is_field_of_references,
                ..PreprocessOptions::default()
            },
            ..Policy::default()
        }
    }

    /// The rows that `canon` makes of these IRIs on a rung, with the keys of all rungs.
    pub(crate) fn rows(&self, iris: &[&[u8]], rung: Rung) -> Rows {
        let policy = self.policy(rung);
        let (mut buffer, mut bitmaps, mut rows) =
            (RecordBuffer::default(), Bitmaps::default(), Rows::new(Rung::ALL.len()));
        iris.iter().for_each(|iri| buffer.push_url(iri));
        let records = buffer.records();
        bitmaps.classify(records.text, &CLASSIFIER);
        Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
        rows
    }
}

pub(crate) fn fault_of(rows: &Rows, row: usize) -> Option<Fault> {
    rows.faults.iter().find(|(at, _)| *at as usize == row).map(|(_, fault)| *fault)
}

const EXAMPLES: &str = "\
Examples:
  irikey compare http://example.org:80/%7Euser HTTP://EXAMPLE.org/~user
  irikey compare http://example.org/a http://example.org/b || echo different";

/// Name the lowest rung on which two IRIs are equivalent; exit code 1 if there is none
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// First IRI
    #[arg(value_name = "A")]
    a: OsString,
    /// Second IRI
    #[arg(value_name = "B")]
    b: OsString,
    #[command(flatten)]
    iri: SingleIriArgs,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run_compare(args: &CompareArgs) -> Result<u8, CommandError> {
    let lowest = lowest_rung(args)?;
    let text = match lowest {
        _ if args.json => json!({"equivalent": lowest.is_some(), "rung": lowest.map(Rung::name)}).to_string(),
        Some(rung) => format!("equivalent on rung {}", rung.name()),
        None => "not equivalent on any rung up to scheme".to_string(),
    };
    match print(&format!("{text}\n")) {
        exit::SUCCESS if lowest.is_none() => Ok(exit::DIFFERENT),
        status => Ok(status),
    }
}

/// The lowest rung on which both have the same key. Relative references have keys only with a base; without one, equal
/// texts are equivalent on rung `simple`.
fn lowest_rung(args: &CompareArgs) -> Result<Option<Rung>, CommandError> {
    args.iri.base()?;
    let rows = args.iri.rows(&[args.a.as_encoded_bytes(), args.b.as_encoded_bytes()], Rung::default());
    let is_relative = |row| fault_of(&rows, row).is_some_and(|fault| fault.kind == FaultKind::Relative);
    if args.a == args.b && is_relative(0) {
        return Ok(Some(Rung::Simple));
    }
    for (row, name) in ["A", "B"].into_iter().enumerate() {
        if let Some(fault) = fault_of(&rows, row) {
            return Err(CommandError::Usage(format!("{name}: {fault}")));
        }
    }
    let is_equal = |keys: &Vec<KeyBytes>| keys[0] == keys[1];
    Ok(Rung::ALL.into_iter().zip(&rows.more_keys).find(|(_, keys)| is_equal(keys)).map(|(rung, _)| rung))
}
