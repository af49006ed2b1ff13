//! Columns that follow from a row's own texts and are made only when asked for: the IRI, what misleads in it, the
//! host's skeleton. In: rows, before their vectors move. Out: Arrow arrays.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder, UInt32Array};

use super::ColumnId;
use crate::canon::Rows;
use crate::iri::{HostMapping, Parts, SpoofFlags, look, skeleton, to_iri};

/// The array of a derived column; `None` for every other column.
pub(super) fn array(id: ColumnId, rows: &Rows) -> Option<ArrayRef> {
    match id {
        ColumnId::Iri => Some(texts(rows, |uri| Some(to_iri(uri, HostMapping::Unicode)))),
        ColumnId::HostSkeleton => Some(texts(rows, host_skeleton)),
        ColumnId::Looks => Some(Arc::new(UInt32Array::from_iter_values((0..rows.len()).map(|row| looks(rows, row))))),
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

/// What misleads in a record as it was written, and the structure of its right-to-left parts, escaped ones too.
fn looks(rows: &Rows, row: usize) -> u32 {
    let uri = rows.uri.get(row);
    let record = if rows.differs(row) { rows.input.get(row) } else { uri };
    let found = look(record).flags;
    let has_hidden_characters = uri.contains(&b'%') || uri.windows(4).any(|bytes| bytes == b"xn--");
    if !has_hidden_characters {
        return found.0;
    }
    let iri = to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode);
    found.0 | (look(iri.as_bytes()).flags.0 & SpoofFlags::BIDI_STRUCTURE.0)
}
