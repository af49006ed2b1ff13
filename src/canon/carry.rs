//! Carries fields from records to rows: one entry per row in every column of the policy's
//! [`FieldSet`](crate::record::fields::FieldSet).
//!
//! A redirect is resolved against its row's URI (RFC 9110 section 10.2.2) and normalized to the row's rung; so is the URL
//! that redirected here. It does not inherit the fragment of the URI, which is for clients that show the response. A redirect
//! that is not a URI reference becomes null: it is not a fault of the record's own URL. An empty redirect becomes null: indexes
//! write one if the response has no redirect.

use std::ops::Range;
use std::sync::Arc;

use super::policy::Policy;
use super::record_text::RecordCharsets;
use super::reference::ReferenceWriter;
use super::tally::Tally;
use super::text_column::{TextColumn, retain_items};
use crate::iri::{Fault, MarkedReference, PreprocessOptions, find_scheme};
use crate::kernel::{Bitmaps, Span, strip_prefix_ignoring_case};
use crate::record::Records;
use crate::record::fields::{
    DigestField, FieldKind, IntegerField, LabelField, PageField, SegmentField, StatusField, TimeField, UriField,
    carried_fields,
};

/// How rows store a kind of field.
pub trait RowField: FieldKind {
    /// The column of the rows.
    type Column;
}

/// Appends a kind of field to rows.
trait AppendField: RowField {
    /// Appends the field of all records of `chunk`; where the format does not have the field, null for each row.
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Self::Value>], column: &mut Self::Column);
}

/// A column of rows; empty if the policy does not ask for it.
trait RowColumn {
    /// Removes all entries and keeps the memory.
    fn clear(&mut self);

    /// Returns the length of its texts, in bytes; 0 for a column of numbers.
    fn text_len(&self) -> usize;

    /// Keeps the entries of `rows`, which ascend.
    fn retain(&mut self, rows: &[u32]);
}

macro_rules! define_columns {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        /// The carried columns of rows. A column has one entry per row if the policy carries the field; otherwise it is
        /// empty. An empty text is null.
        #[derive(Clone, Debug, Default)]
        pub struct CarriedColumns {
            $(
                #[doc = concat!("Column `", $column, "`: ", $meaning, ".")]
                pub $buffer: <$kind as RowField>::Column,
            )*
        }

        impl CarriedColumns {
            /// Removes all rows and keeps the memory.
            pub(super) fn clear(&mut self) {
                $(RowColumn::clear(&mut self.$buffer);)*
            }

            /// Returns the name of each column and the length of its texts, in bytes.
            pub(super) fn text_lens(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$(($column, RowColumn::text_len(&self.$buffer))),*].into_iter()
            }

            /// Keeps `rows`, which ascend.
            pub(super) fn retain(&mut self, rows: &[u32]) {
                $(RowColumn::retain(&mut self.$buffer, rows);)*
            }

            /// Appends the fields of the records of `chunk` that the policy carries.
            pub(super) fn append(&mut self, chunk: &mut ChunkRecords<'_>) {
                let carry = chunk.policy.carry;
                if carry.is_empty() {
                    return;
                }
                $(if carry.$field {
                    <$kind as AppendField>::append(chunk, chunk.records.fields.$buffer, &mut self.$buffer);
                })*
            }
        }
    };
}
carried_fields!(define_columns);

/// Records of a chunk whose rows have just been made.
pub(super) struct ChunkRecords<'a> {
    /// The writer of the URIs among carried fields.
    pub(super) writer: &'a mut ReferenceWriter,
    pub(super) policy: &'a Policy,
    pub(super) records: &'a Records<'a>,
    pub(super) bitmaps: &'a Bitmaps,
    /// The URIs of all rows; those of the chunk begin at row `first`.
    pub(super) uris: &'a TextColumn,
    pub(super) first: usize,
    pub(super) tally: &'a mut Tally,
}

/// Returns the writer of the URIs among carried fields. The profile applies to fields as to the URLs of records. Repairs and a
/// base or scheme for all records do not.
pub(super) fn field_writer(policy: &Policy) -> ReferenceWriter {
    let preprocess = PreprocessOptions::default();
    ReferenceWriter::new(Arc::new(Policy { base: None, assume_scheme: None, preprocess, ..policy.clone() }))
}

impl ChunkRecords<'_> {
    /// Appends the canonical URI of a reference that a record with the URI `base` contains.
    fn write_uri(&mut self, span: Span, base: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let reference = MarkedReference { text: self.records.text, bitmaps: self.bitmaps, span };
        let prepared = self.writer.prepare(reference, base, RecordCharsets::default())?;
        self.writer.write_rung(reference, &prepared, self.policy.rung, out)?;
        Ok(())
    }
}

/// Sets the columns of kinds of fields.
macro_rules! row_fields {
    ($($kind:ident: $column:ty),*) => {
        $(impl RowField for $kind {
            type Column = $column;
        })*
    };
}
row_fields! {
    TimeField: Vec<Option<i64>>, StatusField: Vec<Option<i32>>, IntegerField: Vec<Option<i64>>,
    UriField: TextColumn, PageField: TextColumn, DigestField: TextColumn, LabelField: TextColumn, SegmentField: TextColumn
}

/// Kinds whose rows hold what records hold.
macro_rules! append_values {
    ($($kind:ident),*) => {
        $(impl AppendField for $kind {
            fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Self::Value>], column: &mut Self::Column) {
                column.extend_from_slice(values);
                column.resize(chunk.uris.len(), None);
            }
        })*
    };
}
append_values!(TimeField, StatusField, IntegerField);

impl AppendField for LabelField {
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Span>], column: &mut TextColumn) {
        push_texts(chunk, values, |text| text, column);
    }
}

impl AppendField for DigestField {
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Span>], column: &mut TextColumn) {
        push_texts(chunk, values, strip_sha1_prefix, column);
    }
}

impl AppendField for SegmentField {
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Span>], column: &mut TextColumn) {
        let records = chunk.records;
        let filenames = records.fields.filenames;
        for i in 0..values.len().max(filenames.len()) {
            let text = |spans: &[Option<Span>]| spans.get(i).copied().flatten().map(|span| span.of(records.text));
            if let Some(segment) = text(values).or_else(|| segment_of(text(filenames)?)) {
                column.values.extend_from_slice(segment);
            }
            column.end();
        }
        fill_nulls(chunk.uris.len(), column);
    }
}

impl AppendField for UriField {
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Span>], column: &mut TextColumn) {
        let uris = chunk.uris;
        for (i, span) in values.iter().enumerate() {
            if let Some(span) = span.filter(|span| span.len > 0) {
                chunk.tally.redirects += 1;
                let start = column.values.len();
                let base = uris.get(chunk.first + i);
                let is_long = span.len as usize > chunk.policy.max_url_len.0;
                if is_long || chunk.write_uri(span, base, &mut column.values).is_err() {
                    chunk.tally.unreadable_redirects += 1;
                    column.values.truncate(start);
                }
            }
            column.end();
        }
        fill_nulls(uris.len(), column);
    }
}

impl AppendField for PageField {
    /// The links of a page follow each other and share its text: it is normalized once.
    fn append(chunk: &mut ChunkRecords<'_>, values: &[Option<Span>], column: &mut TextColumn) {
        let mut last: Option<(Span, Range<usize>)> = None;
        for span in values.iter() {
            match (span, &last) {
                (Some(span), Some((page, made))) if span == page => column.values.extend_from_within(made.clone()),
                (Some(span), _) => {
                    let (start, text) = (column.values.len(), span.of(chunk.records.text));
                    let is_long = text.len() > chunk.policy.max_url_len.0 || find_scheme(text).is_none();
                    if is_long || chunk.write_uri(*span, &[], &mut column.values).is_err() {
                        column.values.truncate(start);
                    }
                    last = Some((*span, start..column.values.len()));
                }
                (None, _) => {}
            }
            column.end();
        }
        fill_nulls(chunk.uris.len(), column);
    }
}

impl<T: Copy> RowColumn for Vec<Option<T>> {
    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn text_len(&self) -> usize {
        0
    }

    fn retain(&mut self, rows: &[u32]) {
        retain_items(self, rows);
    }
}

impl RowColumn for TextColumn {
    fn clear(&mut self) {
        TextColumn::clear(self);
    }

    fn text_len(&self) -> usize {
        self.values.len()
    }

    fn retain(&mut self, rows: &[u32]) {
        TextColumn::retain(self, rows);
    }
}

/// The segment of the crawl in the path of an archive, as Common Crawl names them:
/// `crawl-data/CC-MAIN-2024-10/segments/1707947473347.0/warc/x.warc.gz`.
fn segment_of(filename: &[u8]) -> Option<&[u8]> {
    const PARENT: &[u8] = b"segments/";
    let at = memchr::memmem::rfind(filename, PARENT)?;
    let is_whole = at == 0 || filename[at - 1] == b'/';
    let segment = &filename[at + PARENT.len()..];
    let end = memchr::memchr(b'/', segment)?;
    (is_whole && end > 0).then_some(&segment[..end])
}

/// Removes the prefix `sha1:`. Indexes contain SHA-1 digests without a prefix; other digests keep theirs.
pub(crate) fn strip_sha1_prefix(digest: &[u8]) -> &[u8] {
    strip_prefix_ignoring_case(digest, b"sha1:").unwrap_or(digest)
}

fn push_texts(
    chunk: &ChunkRecords<'_>,
    spans: &[Option<Span>],
    transform: impl Fn(&[u8]) -> &[u8],
    column: &mut TextColumn,
) {
    for span in spans {
        if let Some(span) = span {
            column.values.extend_from_slice(transform(span.of(chunk.records.text)));
        }
        column.end();
    }
    fill_nulls(chunk.uris.len(), column);
}

/// Appends empty texts up to `len` entries.
fn fill_nulls(len: usize, column: &mut TextColumn) {
    column.offsets.resize(len + 1, column.values.len() as i32);
}

#[cfg(test)]
mod tests {
    use super::segment_of;

    #[test]
    fn segments_are_those_of_paths_of_common_crawl() {
        let of = |filename: &'static str| {
            segment_of(filename.as_bytes()).map(|segment| std::str::from_utf8(segment).unwrap())
        };
        assert_eq!(of("crawl-data/CC-MAIN-2024-10/segments/1707947473347.0/warc/x.warc.gz"), Some("1707947473347.0"));
        assert_eq!(of("segments/1/x.warc.gz"), Some("1"));
        assert_eq!(of("segments/1/segments/2/x.warc.gz"), Some("2"));
        for other in
            ["", "x.warc.gz", "segments/x.warc.gz", "segments//x.warc.gz", "subsegments/1/x.warc.gz", "segment/1/x"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
