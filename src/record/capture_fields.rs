//! Fields of a capture in JSON, shared by CDXJ and JSON lines: which member means what, and its value.
//!
//! Numbers may be written as strings and strings without quotes. `-` and `null` mean that there is no value. Of several
//! members with one name, the first that has a value is used.

use super::buffer::append_with;
use super::fields::{
    CarriedField, DigestField, FieldKind, FieldSet, FieldValues, IntegerField, LabelField, PageField, SegmentField,
    StatusField, TimeField, UriField, carried_fields,
};
use super::json::unescape;
use super::member_cache::{JsonKind, JsonMember};
use super::time;
use crate::kernel::{Span, append_range, parse_bytes};

/// What a member of a capture's JSON holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum IndexMember {
    /// Nothing that is carried.
    #[default]
    Ignored,
    Url,
    Field(CarriedField),
    /// A value that has no field of its own, if these members are carried.
    Other,
}

impl IndexMember {
    /// Returns what the member of name `key` holds, if its field is in `carry`. The name is that of an index line, or that of the
    /// column, as rows are written.
    pub(super) fn of(key: &[u8], carry: FieldSet) -> IndexMember {
        if key == b"url" {
            return IndexMember::Url;
        }
        // The pages of a WACZ package name their time so.
        let key = if key == b"ts" { b"timestamp" } else { key };
        let is_named = |field: &&CarriedField| {
            [field.json_name(), Some(field.column())].into_iter().flatten().any(|name| name.as_bytes() == key)
        };
        match CarriedField::ALL.iter().find(is_named) {
            Some(field) if carry.contains(*field) => IndexMember::Field(*field),
            None if carry.contains(CarriedField::CdxjMembers) => IndexMember::Other,
            _ => IndexMember::Ignored,
        }
    }
}

/// The members of one record that were read so far.
#[derive(Debug, Default)]
pub(super) struct CaptureFields {
    values: [FieldText; CarriedField::ALL.len()],
}

/// The value of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldText {
    span: Span,
    has_value: bool,
    has_escapes: bool,
}

/// A kind of field that a capture's JSON can hold.
trait JsonField: FieldKind {
    /// Reads the value; copies text to `text`.
    fn read(member: FieldText, chunk: &[u8], text: &mut Vec<u8>) -> Option<Self::Value>;
}

impl JsonField for TimeField {
    #[inline(always)]
    fn read(member: FieldText, chunk: &[u8], _: &mut Vec<u8>) -> Option<i64> {
        let text = member.span.of(chunk);
        time::from_digits(text).or_else(|| time::from_iso_with_zone(text))
    }
}

/// Kinds whose values are numbers.
macro_rules! number_fields {
    ($($kind:ident: $number:ty),*) => {
        $(impl JsonField for $kind {
            #[inline(always)]
            fn read(member: FieldText, chunk: &[u8], _: &mut Vec<u8>) -> Option<$number> {
                parse_bytes(member.span.of(chunk))
            }
        })*
    };
}
number_fields!(StatusField: i32, IntegerField: i64);

/// Kinds whose values are text.
macro_rules! text_fields {
    ($($kind:ident),*) => {
        $(impl JsonField for $kind {
            #[inline(always)]
            fn read(member: FieldText, chunk: &[u8], text: &mut Vec<u8>) -> Option<Span> {
                Some(copy_string(chunk, member.span, member.has_escapes, text))
            }
        })*
    };
}
text_fields!(UriField, PageField, DigestField, LabelField, SegmentField);

macro_rules! define_values {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        impl CaptureFields {
            /// Returns the fields of the record; text is copied to `text`.
            #[inline(always)]
            pub(super) fn values(&self, chunk: &[u8], text: &mut Vec<u8>) -> FieldValues {
                let member = |field: CarriedField| Some(self.values[field as usize]).filter(|value| value.has_value);
                FieldValues {
                    $($field: member(CarriedField::$id).and_then(|member| $kind::read(member, chunk, text)),)*
                }
            }
        }
    };
}
carried_fields!(define_values);

impl CaptureFields {
    /// Sets `field` to the value that was found, unless an earlier member of that name has a value.
    #[inline(always)]
    pub(super) fn set<M>(&mut self, field: CarriedField, found: &JsonMember<M>, chunk: &[u8]) {
        let value = &mut self.values[field as usize];
        if !value.has_value && found.kind != JsonKind::Nested {
            let has_value = !matches!(found.span.of(chunk), b"-" | b"null");
            *value = FieldText { span: found.span, has_value, has_escapes: found.has_escapes };
        }
    }
}

/// Copies a string of `chunk`, with its escapes undone, and appends an `LF`.
#[inline(always)]
pub(super) fn copy_string(chunk: &[u8], span: Span, has_escapes: bool, text: &mut Vec<u8>) -> Span {
    if has_escapes {
        return append_with(text, |out| unescape(span.of(chunk), out));
    }
    let at = text.len();
    append_range(text, chunk, span.at as usize, span.len as usize);
    text.push(b'\n');
    Span::new(at, span.len as usize)
}
