//! The list of carried fields: what a record states besides its URL and what an output column can show.
//!
//! The macro `carried_fields!` is the only list. Everything else derives from it, column by column:
//!
//! ```text
//! record   FieldSet, FieldValues, FieldBuffers, FieldViews; members of index lines (capture_fields)
//! canon    CarriedColumns, the columns of rows (carry)
//! input    the columns that are read from Parquet and Arrow files (table::rows)
//! batch    Arrow columns, the schema and its documentation (carried, columns)
//! output   members of CDXJ lines (index_lines)
//! ```
//!
//! To add a field, add one entry here and let the decoders that know it fill it. Only a new *kind* of field needs more:
//! a marker type here and its implementations of the conversion traits (`JsonField`, `RowField`, `TableField`,
//! `ArrowField`).

use crate::kernel::Span;

/// How the values of a carried field are stored in records. Each kind is a marker type, so that code generated from the
/// list is resolved at compile time.
pub trait FieldKind {
    /// A value of one record.
    type Value: Copy;
}

/// Defines the kinds of fields.
macro_rules! field_kinds {
    ($($(#[$doc:meta])* $kind:ident($value:ty);)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub struct $kind;

            impl FieldKind for $kind {
                type Value = $value;
            }
        )*
    };
}

field_kinds! {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    TimeField(i64);
    /// A status code; the column has 16 bits.
    StatusField(i32);
    /// A count of bytes.
    IntegerField(i64);
    /// A URI reference, which rows resolve against the record's URI and normalize.
    UriField(Span);
    /// The URI of the page that contains the record, which rows normalize.
    PageField(Span);
    /// A digest, which rows store without the prefix `sha1:`.
    DigestField(Span);
    /// Text with few distinct values.
    LabelField(Span);
    /// The segment of a crawl; without it, rows take it from the name of the archive.
    SegmentField(Span);
}

/// Calls the macro `$callback` with the list of carried fields, in the order of the output columns.
///
/// - `field`, `buffer`: names in structures that hold one value and one column of values
/// - `kind`: a [`FieldKind`]
/// - `column`: name of the column in outputs and in tables that are read, as in Common Crawl's columnar index
/// - `json`: name of the member in CDXJ lines, which CDXJ and JSON lines that are read may have instead of `column`
/// - `cdxj`: position of that member in CDXJ lines that are written, from 0
/// - `meaning`: documentation of the column
macro_rules! carried_fields {
    ($callback:ident) => {
        $callback! {
            FetchTime {
                field: time, buffer: times, kind: TimeField,
                column: "fetch_time", json: Some("timestamp"), cdxj: None,
                meaning: "when the URL was fetched, as the record states it",
            }
            FetchStatus {
                field: status, buffer: statuses, kind: StatusField,
                column: "fetch_status", json: Some("status"), cdxj: Some(2),
                meaning: "HTTP status of the fetch, or a status of the crawler, which may be negative",
            }
            FetchRedirect {
                field: redirect, buffer: redirects, kind: UriField,
                column: "fetch_redirect", json: Some("redirect"), cdxj: Some(9),
                meaning: "the URI that the response redirects to, resolved against uri and normalized like it, but not repaired",
            }
            FetchRedirectedFrom {
                field: redirected_from, buffer: redirected_from, kind: UriField,
                column: "fetch_redirected_from", json: None, cdxj: None,
                meaning: "the URI that redirected to this one (crawl.log: the via of a discovery path that ends in R)",
            }
            ContentDigest {
                field: digest, buffer: digests, kind: DigestField,
                column: "content_digest", json: Some("digest"), cdxj: Some(3),
                meaning: "digest of the content as the record states it, without the prefix sha1:, as in indexes",
            }
            PayloadDigest {
                field: payload_digest, buffer: payload_digests, kind: LabelField,
                column: "payload_digest", json: None, cdxj: None,
                meaning: "digest of the payload with its prefix, as the record states it; the SHA-1 if a record of an archive states none",
            }
            ContentCharset {
                field: charset, buffer: charsets, kind: LabelField,
                column: "content_charset", json: Some("charset"), cdxj: Some(7),
                meaning: "label of the content's charset, as the record states it",
            }
            ContentMimeType {
                field: mime, buffer: mimes, kind: LabelField,
                column: "content_mime_type", json: Some("mime"), cdxj: Some(0),
                meaning: "media type of the content as the server stated it, without parameters; warc/revisit for a revisit",
            }
            ContentMimeDetected {
                field: detected_mime, buffer: detected_mimes, kind: LabelField,
                column: "content_mime_detected", json: Some("mime-detected"), cdxj: Some(1),
                meaning: "media type of the content as the crawler detected it",
            }
            ContentLanguages {
                field: languages, buffer: languages, kind: LabelField,
                column: "content_languages", json: Some("languages"), cdxj: Some(8),
                meaning: "languages of the content, ISO 639-3, separated by commas, the most frequent first",
            }
            ContentTruncated {
                field: truncated, buffer: truncated, kind: LabelField,
                column: "content_truncated", json: Some("truncated"), cdxj: Some(10),
                meaning: "why the content was cut short: length, time, disconnect or unspecified",
            }
            WarcFilename {
                field: filename, buffer: filenames, kind: LabelField,
                column: "warc_filename", json: Some("filename"), cdxj: Some(6),
                meaning: "the archive that contains the capture, as the record states it; for a WARC or ARC input, the name of the input",
            }
            WarcRecordOffset {
                field: capture_offset, buffer: capture_offsets, kind: IntegerField,
                column: "warc_record_offset", json: Some("offset"), cdxj: Some(5),
                meaning: "byte offset of the capture in that archive as it is stored",
            }
            WarcRecordLength {
                field: capture_length, buffer: capture_lengths, kind: IntegerField,
                column: "warc_record_length", json: Some("length"), cdxj: Some(4),
                meaning: "length of the capture in that archive as it is stored, in bytes",
            }
            RequestMethod {
                field: method, buffer: methods, kind: LabelField,
                column: "request_method", json: Some("method"), cdxj: Some(12),
                meaning: "method of the HTTP request, unless it is GET or HEAD (WARC, CDXJ, JSON lines, access logs, HAR)",
            }
            RequestBody {
                field: request_body, buffer: request_bodies, kind: LabelField,
                column: "request_body", json: Some("requestBody"), cdxj: Some(11),
                meaning: "body of a POST or PUT request, written as a query, at most 4096 characters",
            }
            CdxjMembers {
                field: cdxj_members, buffer: cdxj_members, kind: LabelField,
                column: "cdxj_members", json: None, cdxj: None,
                meaning: "the members of a CDXJ line that no other column holds, as a JSON object: unchanged, except that bytes that are not UTF-8 are percent-encoded",
            }
            WarcSegment {
                field: segment, buffer: segments, kind: SegmentField,
                column: "warc_segment", json: None, cdxj: None,
                meaning: "the segment of the crawl to which the archive belongs, as the record states it or the name of the archive: segments/NAME/",
            }
            Page {
                field: page, buffer: pages, kind: PageField,
                column: "page", json: None, cdxj: None,
                meaning: "the URI of the page that contains the link, normalized like uri (WAT); the referrer (HAR)",
            }
            LinkType {
                field: link_type, buffer: link_types, kind: LabelField,
                column: "link_type", json: None, cdxj: None,
                meaning: "element and attribute of the link, such as A@/href, or HTTP@/ and a header field (WAT); kind of the resource (HAR)",
            }
            LinkRel {
                field: link_rel, buffer: link_rels, kind: LabelField,
                column: "link_rel", json: None, cdxj: None,
                meaning: "relation of the link to the page: its rel; redirect or refresh; the name of a meta element (WAT)",
            }
            LinkText {
                field: link_text, buffer: link_texts, kind: LabelField,
                column: "link_text", json: None, cdxj: None,
                meaning: "text of the link, or the alternative text of an image, at most 1 KiB (WAT)",
            }
        }
    };
}
pub(crate) use carried_fields;

macro_rules! define_fields {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        /// A carried field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CarriedField {
            $(#[doc = concat!("Column `", $column, "`: ", $meaning, ".")] $id,)*
        }

        impl CarriedField {
            /// All carried fields, in the order of the output columns.
            pub const ALL: &'static [CarriedField] = &[$(CarriedField::$id),*];

            /// Name of the field's column in outputs and in tables.
            pub const fn column(self) -> &'static str {
                match self { $(CarriedField::$id => $column,)* }
            }

            /// Documentation of the column, one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(CarriedField::$id => $meaning,)* }
            }

            /// Name of the field in the JSON of CDXJ and JSON lines, if they have it.
            pub(crate) const fn json_name(self) -> Option<&'static str> {
                match self { $(CarriedField::$id => $json,)* }
            }

            /// Position of the field among the JSON members of a CDXJ line that is written, if it is written.
            #[cfg(feature = "pipeline")]
            pub(crate) const fn cdxj_position(self) -> Option<u8> {
                match self { $(CarriedField::$id => $cdxj,)* }
            }
        }

        /// The fields that a run carries from records to rows. Decoders need not look for others.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct FieldSet {
            $(#[doc = concat!("[`CarriedField::", stringify!($id), "`]")] pub $field: bool,)*
        }

        impl FieldSet {
            /// All fields.
            pub const ALL: FieldSet = FieldSet { $($field: true,)* };

            /// Returns whether the set contains `field`.
            pub const fn contains(self, field: CarriedField) -> bool {
                match field { $(CarriedField::$id => self.$field,)* }
            }

            /// Adds `field`.
            pub(crate) const fn insert(&mut self, field: CarriedField) {
                match field { $(CarriedField::$id => self.$field = true,)* }
            }
        }

        /// The carried fields of a chunk's records, column by column. A column has one entry per record
        /// ([`super::Records::urls`]) or is empty. Spans point into [`super::Records::text`].
        #[derive(Clone, Copy, Debug, Default)]
        pub struct FieldViews<'a> {
            $(
                #[doc = concat!("[`CarriedField::", stringify!($id), "`]")]
                pub $buffer: &'a [Option<<$kind as FieldKind>::Value>],
            )*
        }

        impl FieldViews<'_> {
            /// Keeps the first `len` records.
            pub(super) fn truncate(&mut self, len: usize) {
                $(self.$buffer = &self.$buffer[..len.min(self.$buffer.len())];)*
            }
        }

        /// The carried fields of one record.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct FieldValues {
            $(
                #[doc = concat!("[`CarriedField::", stringify!($id), "`]")]
                pub $field: Option<<$kind as FieldKind>::Value>,
            )*
        }

        /// Buffers of the carried fields that a decoder fills, record by record or column by column.
        #[derive(Clone, Debug)]
        pub(super) struct FieldBuffers {
            carry: FieldSet,
            $(
                #[doc = concat!("[`CarriedField::", stringify!($id), "`]")]
                pub(super) $buffer: Vec<Option<<$kind as FieldKind>::Value>>,
            )*
        }

        impl Default for FieldBuffers {
            fn default() -> FieldBuffers {
                FieldBuffers { carry: FieldSet::ALL, $($buffer: Vec::new(),)* }
            }
        }

        impl FieldBuffers {
            /// Removes all records and keeps the memory.
            pub(crate) fn clear(&mut self) {
                $(self.$buffer.clear();)*
            }

            /// Replaces the records by the entries `origins` of `from`; empty columns stay empty.
            pub(super) fn gather(&mut self, origins: &[u32], from: &FieldViews<'_>) {
                $(gather(origins, from.$buffer, &mut self.$buffer);)*
            }

            /// Appends the fields of one record, those of the set that is carried.
            #[inline]
            pub(super) fn push(&mut self, values: &FieldValues) {
                if self.carry.is_empty() {
                    return;
                }
                $(if self.carry.$field {
                    self.$buffer.push(values.$field);
                })*
                self.complete_digests();
            }

            /// Returns the columns.
            pub(crate) fn views(&self) -> FieldViews<'_> {
                FieldViews { $($buffer: &self.$buffer,)* }
            }
        }
    };
}
carried_fields!(define_fields);

impl FieldSet {
    /// Returns whether the set contains no field.
    pub(crate) fn is_empty(self) -> bool {
        self == FieldSet::default()
    }
}

impl FieldBuffers {
    /// Gives the last record the digest of its content as that of its payload, if it has no other: what a record states is not
    /// computed.
    #[inline(always)]
    pub(super) fn complete_digests(&mut self) {
        if let (Some(payload_digest), Some(digest)) = (self.payload_digests.last_mut(), self.digests.last()) {
            *payload_digest = payload_digest.or(*digest);
        }
    }

    /// Sets the fields that records which are pushed from now on have.
    pub(crate) fn set_carry(&mut self, carry: FieldSet) {
        self.carry = carry;
    }

    /// Returns the fields that are carried.
    pub(crate) fn carry(&self) -> FieldSet {
        self.carry
    }
}

/// Copies the entries of `from` at the indexes `origins`; an empty column stays empty.
pub(super) fn gather<T: Copy>(origins: &[u32], from: &[T], into: &mut Vec<T>) {
    into.clear();
    if !from.is_empty() {
        into.extend(origins.iter().map(|&origin| from[origin as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_hold_what_was_inserted() {
        for field in CarriedField::ALL {
            let mut set = FieldSet::default();
            assert!(set.is_empty());
            set.insert(*field);
            assert!(CarriedField::ALL.iter().all(|other| set.contains(*other) == (other == field)));
            assert!(FieldSet::ALL.contains(*field));
        }
    }
}
