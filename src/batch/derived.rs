//! Columns that follow from a row's own URI and are made only when asked for: the IRI, its visual order and what is wrong
//! with that, the host's skeleton. In: rows, before their vectors move. Out: Arrow arrays.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};

use super::ColumnId;
use crate::canon::Rows;
use crate::iri::{BidiProblem, BidiRules, HostMapping, Parts, bidi_visual, check_bidi, is_bidi, skeleton, to_iri};

/// The array of a derived column; `None` for every other column.
pub(super) fn array(id: ColumnId, rows: &Rows) -> Option<ArrayRef> {
    match id {
        ColumnId::Iri => Some(texts(rows, |uri| Some(to_iri(uri, HostMapping::Unicode)))),
        ColumnId::HostSkeleton => Some(texts(rows, host_skeleton)),
        ColumnId::IriVisual => Some(texts(rows, iri_visual)),
        ColumnId::Bidi => Some(texts(rows, bidi_problems)),
        _ => None,
    }
}

/// One text a row with a URI; null where there is no URI, or no text.
fn texts(rows: &Rows, text: impl Fn(&str) -> Option<String>) -> ArrayRef {
    let mut array = StringBuilder::with_capacity(rows.len(), rows.uri.values.len());
    for row in 0..rows.len() {
        // A URI is ASCII, and never empty unless there is none.
        let uri = std::str::from_utf8(rows.uri.get(row)).unwrap_or_default();
        array.append_option(Some(uri).filter(|uri| !uri.is_empty()).and_then(&text));
    }
    Arc::new(array.finish())
}

fn host_skeleton(uri: &str) -> Option<String> {
    Parts::split(uri.as_bytes()).host(uri.as_bytes()).map(skeleton)
}

/// The IRI, if it has right-to-left characters.
fn bidi_iri(uri: &str) -> Option<String> {
    Some(to_iri(uri, HostMapping::Unicode)).filter(|iri| is_bidi(iri))
}

fn iri_visual(uri: &str) -> Option<String> {
    bidi_iri(uri).map(|iri| bidi_visual(&iri, BidiRules::Rfc3987).into_owned())
}

/// What is violated, by which component, where in the IRI; `None` where nothing is.
fn bidi_problems(uri: &str) -> Option<String> {
    let problems = check_bidi(&bidi_iri(uri)?, BidiRules::Rfc3987);
    let tell = |problem: &BidiProblem| {
        format!("{} in {} at byte {}", problem.violation.name(), problem.part.name(), problem.at)
    };
    (!problems.is_empty()).then(|| problems.iter().map(tell).collect::<Vec<_>>().join("; "))
}
