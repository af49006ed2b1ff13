//! Columns that are computed from the URI on request: the IRI, its visual order and the violations of the rules for
//! right-to-left text, and the skeleton of the host.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};

use super::column::ColumnId;
use crate::canon::Rows;
use crate::iri::{BidiProblem, BidiRules, HostMapping, Parts, Profile, bidi_visual, check_bidi, is_bidi, skeleton};

/// Returns the array of a derived column for URIs of `profile`, or `None` for any other column.
pub(super) fn array(id: ColumnId, rows: &Rows, profile: &Profile) -> Option<ArrayRef> {
    let iri = |uri: &str| profile.to_iri(uri, HostMapping::Unicode);
    let bidi_iri = |uri: &str| Some(iri(uri)).filter(|iri| is_bidi(iri));
    let rules = profile.bidi_rules.unwrap_or_default();
    match id {
        ColumnId::Iri => Some(texts(rows, |uri| Some(iri(uri)))),
        ColumnId::HostSkeleton => Some(texts(rows, host_skeleton)),
        ColumnId::IriVisual => Some(texts(rows, |uri| bidi_iri(uri).map(|iri| bidi_visual(&iri, rules).into_owned()))),
        ColumnId::Bidi => Some(texts(rows, |uri| bidi_problems(&bidi_iri(uri)?, rules))),
        _ => None,
    }
}

/// Computes one text per row; null for rows without a URI or a text.
fn texts(rows: &Rows, text: impl Fn(&str) -> Option<String>) -> ArrayRef {
    let mut array = StringBuilder::with_capacity(rows.len(), rows.uri.values.len());
    for row in 0..rows.len() {
        // A URI is ASCII. It is empty only if the row has none.
        let uri = std::str::from_utf8(rows.uri.get(row)).unwrap_or_default();
        array.append_option(Some(uri).filter(|uri| !uri.is_empty()).and_then(&text));
    }
    Arc::new(array.finish())
}

fn host_skeleton(uri: &str) -> Option<String> {
    Parts::split(uri.as_bytes()).host(uri.as_bytes()).map(skeleton)
}

/// Describes the violations: the rule, the component and the byte offset in the IRI.
fn bidi_problems(iri: &str, rules: BidiRules) -> Option<String> {
    let problems = check_bidi(iri, rules);
    let describe = |problem: &BidiProblem| {
        format!("{} in {} at byte {}", problem.violation.name(), problem.part.name(), problem.at)
    };
    (!problems.is_empty()).then(|| problems.iter().map(describe).collect::<Vec<_>>().join("; "))
}
