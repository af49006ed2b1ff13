//! Advice on inputs, such as those that were probably read in the wrong way.

use crate::cli::terminal::{count_of, thousands};
use crate::iri::{FaultKind, Flags};
use crate::run::{Advice, Summary};

/// What to do about each source whose format may have been guessed wrong. If there are none: what to do if most records have
/// the same fault, or all were skipped.
pub(crate) fn advice(summary: &Summary) -> Vec<Advice> {
    let of_records = || fault_advice(summary).or_else(|| charset_advice(summary)).or_else(|| skip_advice(summary));
    match &summary.advice[..] {
        [] => of_records().map(|text| Advice { source: None, text }).into_iter().collect(),
        of_sources => of_sources.to_vec(),
    }
}

/// What to do if no record of archives became a row.
fn skip_advice(summary: &Summary) -> Option<String> {
    let is_skipped = summary.records == 0 && summary.skipped > 0;
    let advice = "no record has one of the types that become rows; choose types with --record-types, or use --format wat if the \
                  input is a WAT file";
    (is_skipped && summary.has_record_types()).then(|| advice.to_string())
}

/// What to do if most records are not UTF-8, which is a fault with `--strict`.
fn charset_advice(summary: &Summary) -> Option<String> {
    let tally = &summary.tally;
    let flag = ("flag", tally.flags[Flags::NOT_UTF8.0.trailing_zeros() as usize]);
    let fault = ("fault", tally.faults[FaultKind::NotUtf8 as usize]);
    let (kind, count) = [flag, fault].into_iter().find(|(_, count)| count * 2 > tally.rows)?;
    let (found, records) = (thousands(count), count_of(tally.rows, "record"));
    let advice = match summary.is_all_json() {
        true => "these URLs are not UTF-8, as JSON has to be; convert the inputs, for example with iconv",
        false => "these URLs are not UTF-8; name their charset with --charset",
    };
    Some(format!("{kind} {} in {found} of {records}: {advice}", Flags::NOT_UTF8))
}

/// What to do if most records have the same fault.
fn fault_advice(summary: &Summary) -> Option<String> {
    const ADVICE: [(FaultKind, &str); 5] = [
        (
            FaultKind::Relative,
            "relative references have no URI without a base; name the column of their pages with --base-column, or one base \
             for all with --base; if they are hosts without a scheme, use --assume-scheme https; if they are not URLs, check \
             --format and --column",
        ),
        (FaultKind::Scheme, "these records do not begin like URLs; check --format and --column"),
        (FaultKind::NoUrl, "these records have no URL; name its column or member with --column, and check --format"),
        (
            FaultKind::MissingColumn,
            "these records have fewer fields than the number of the chosen column; check --column and --format",
        ),
        (FaultKind::NotOfFormat, "these records do not have the format of their input; check --format"),
    ];
    let tally = &summary.tally;
    let count = |kind: FaultKind| tally.faults[kind as usize];
    let (kind, advice) = ADVICE.into_iter().find(|(kind, _)| count(*kind) * 2 > tally.rows)?;
    let (faulty, records) = (thousands(count(kind)), count_of(tally.rows, "record"));
    Some(format!("fault {} in {faulty} of {records}: {advice}", kind.name()))
}
