//! The flags that say how single IRIs are read, declared once for the commands that take them.

use super::args::parse_profile;
use crate::canon::{Canonicalizer, Policy, Rows, Rung};
use crate::iri::{Base, CLASSIFIER, Fault, ParseMode, PreprocessOptions, Profile};
use crate::kernel::Bitmaps;
use crate::record::RecordBuffer;

/// How IRIs of the command line are read.
#[derive(Debug, clap::Args)]
pub(super) struct Reading {
    /// Resolve relative references against this absolute IRI
    #[arg(long, value_name = "URI")]
    base: Option<String>,
    /// Refuse whatever RFC 3987 section 2.2 or 4.1 refuses, instead of repairing and flagging it
    #[arg(long)]
    strict: bool,
    /// Specification whose syntax and repairs apply: rfc3987, duerst-00, duerst-01, masinter-07, weber-00 or whatwg
    #[arg(long, value_name = "NAME", value_parser = parse_profile, default_value = "rfc3987")]
    profile: &'static Profile,
}

impl Reading {
    /// The base, if one was given.
    pub(super) fn base(&self) -> Result<Option<Base>, Fault> {
        self.base.as_deref().map(|base| Base::new(base.as_bytes())).transpose()
    }

    pub(super) fn intake(&self) -> ParseMode {
        if self.strict { ParseMode::Strict } else { ParseMode::Lenient }
    }

    /// What is read is read by RFC 3987 itself, whose ladder has steps to show.
    pub(super) fn is_of_rfc3987(&self) -> bool {
        self.profile.name == <&Profile>::default().name
    }

    /// The rows that `canon` makes of these IRIs on a rung, with the keys of all rungs.
    pub(super) fn rows(&self, iris: &[&[u8]], rung: Rung) -> Rows {
        let policy = Policy {
            profile: self.profile,
            intake: self.intake(),
            rung,
            more_keys: Rung::ALL.to_vec(),
            base: self.base.clone().map(String::into_bytes),
            preprocess: PreprocessOptions {
                is_trimmed: self.profile.is_field_of_references,
                ..PreprocessOptions::default()
            },
            ..Policy::default()
        };
        let (mut copies, mut bitmaps, mut rows) =
            (RecordBuffer::default(), Bitmaps::default(), Rows::new(Rung::ALL.len()));
        iris.iter().for_each(|iri| copies.push_url(iri));
        let records = copies.records();
        bitmaps.classify(records.text, &CLASSIFIER);
        Canonicalizer::new(&policy).append(&records, &bitmaps, &mut rows);
        rows
    }
}

/// Why a row has no URI, if it has none.
pub(super) fn fault_of(rows: &Rows, row: usize) -> Option<Fault> {
    rows.faults.iter().find(|(at, _)| *at as usize == row).map(|(_, fault)| *fault)
}
