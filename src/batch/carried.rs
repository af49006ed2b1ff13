//! Columns that rows carry from their records. In: rows. Out: Arrow arrays; an empty text is a null, and bytes that are
//! not UTF-8 are U+FFFD: labels and digests are for people and joins, never for keys.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int16Array, Int32Array, StringBuilder, TimestampMillisecondArray};

use super::{BatchError, ColumnId};
use crate::canon::{Carried, Rows, Texts};

/// The array of a carried column; `None` for every other column.
pub(super) fn array(id: ColumnId, rows: &Rows) -> Option<Result<ArrayRef, BatchError>> {
    let (carried, count) = (&rows.carried, rows.len());
    let texts = |name, column: &Texts| texts(name, column, count);
    Some(match id {
        ColumnId::FetchTime => times(carried, count),
        ColumnId::FetchStatus => statuses(carried, count),
        ColumnId::FetchRedirect => texts("fetch_redirect", &carried.redirects),
        ColumnId::FetchRedirectedFrom => texts("fetch_redirected_from", &carried.redirected_from),
        ColumnId::ContentDigest => texts("content_digest", &carried.digests),
        ColumnId::ContentCharset => texts("content_charset", &carried.charsets),
        ColumnId::ContentMimeType => texts("content_mime_type", &carried.mimes),
        ColumnId::ContentMimeDetected => texts("content_mime_detected", &carried.detected_mimes),
        ColumnId::ContentLanguages => texts("content_languages", &carried.languages),
        ColumnId::WarcFilename => texts("warc_filename", &carried.filenames),
        ColumnId::WarcRecordOffset => integers("warc_record_offset", &carried.capture_offsets, count),
        ColumnId::WarcRecordLength => integers("warc_record_length", &carried.capture_lengths, count),
        _ => return None,
    })
}

fn times(carried: &Carried, count: usize) -> Result<ArrayRef, BatchError> {
    even("fetch_time", count, carried.times.len())?;
    Ok(Arc::new(carried.times.iter().copied().collect::<TimestampMillisecondArray>().with_timezone("UTC")))
}

/// A status that 16 bits cannot hold is none.
fn statuses(carried: &Carried, count: usize) -> Result<ArrayRef, BatchError> {
    even("fetch_status", count, carried.statuses.len())?;
    let short = |status: &Option<i32>| status.and_then(|status| i16::try_from(status).ok());
    Ok(Arc::new(carried.statuses.iter().map(short).collect::<Int16Array>()))
}

/// A number that 32 bits cannot hold is none: the index's columns have no more.
fn integers(name: &'static str, column: &[Option<i64>], count: usize) -> Result<ArrayRef, BatchError> {
    even(name, count, column.len())?;
    let short = |value: &Option<i64>| value.and_then(|value| i32::try_from(value).ok());
    Ok(Arc::new(column.iter().map(short).collect::<Int32Array>()))
}

/// A column of texts; empty ones are null.
pub(super) fn texts(name: &'static str, column: &Texts, count: usize) -> Result<ArrayRef, BatchError> {
    even(name, count, column.len())?;
    let mut array = StringBuilder::with_capacity(column.len(), column.values.len());
    for i in 0..column.len() {
        let text = String::from_utf8_lossy(column.get(i));
        array.append_option(Some(text).filter(|text| !text.is_empty()));
    }
    Ok(Arc::new(array.finish()))
}

fn even(column: &'static str, expected: usize, found: usize) -> Result<(), BatchError> {
    if expected == found { Ok(()) } else { Err(BatchError::Uneven { column, expected, found }) }
}
