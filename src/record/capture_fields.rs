//! Fields of a capture in JSON, shared by CDXJ and JSON lines: which member means what, and its value.
//!
//! Numbers may be written as strings and strings without quotes. `-` and `null` mean that there is no value. Of several
//! members with one name, the first that has a value is used.

use super::buffer::append_with;
use super::fields::{
    CarriedField, DigestField, FieldBuffers, FieldKind, FieldSet, IntegerField, LabelField, PageField, SegmentField,
    StatusField, TimeField, UriField, carried_fields,
};
use super::json::{unescape, unescaped};
use super::member_cache::{JsonKind, JsonMember};
use super::time;
use crate::kernel::{Span, append_range, parse_bytes};

/// What a member of a CDXJ line holds.
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
    /// Returns what the member of the still escaped name `key` holds in a CDXJ line, if it is in `carry`, or may be kept among the
    /// other members.
    pub(super) fn of_line(key: &[u8], carry: FieldSet) -> IndexMember {
        let key = &*unescaped(key);
        let is_named = |field: &&CarriedField| field.json_name().is_some_and(|name| name.as_bytes() == key);
        match CarriedField::ALL.iter().find(is_named) {
            _ if key == b"url" => IndexMember::Url,
            Some(field) if carry.cdxj_members || carry.contains(*field) => IndexMember::Field(*field),
            None if carry.cdxj_members => IndexMember::Other,
            _ => IndexMember::Ignored,
        }
    }
}

/// Returns which field in `carry` the member of name `key` holds in JSON lines: the name is that of a CDXJ line, or that of the
/// column, as rows are written.
pub(super) fn field_of_row(key: &[u8], carry: FieldSet) -> Option<CarriedField> {
    // The pages of a WACZ package name their time so.
    let key = if key == b"ts" { b"timestamp" } else { key };
    let is_named = |field: &&CarriedField| {
        [field.json_name(), Some(field.column())].into_iter().flatten().any(|name| name.as_bytes() == key)
    };
    CarriedField::ALL.iter().find(is_named).copied().filter(|field| carry.contains(*field))
}

/// The members of one record that were read so far.
#[derive(Debug, Default)]
pub(super) struct CaptureFields {
    /// Bit `i` is set if the record has a value of the field `i`. Values whose bit is 0 are stale.
    present: u32,
    values: [FieldText; CarriedField::ALL.len()],
}

const _: () = assert!(CarriedField::ALL.len() <= u32::BITS as usize);

/// The value of a member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldText {
    span: Span,
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
            /// Appends the fields of the record to `columns`; text is copied to `text`.
            #[inline(always)]
            pub(super) fn push(&self, chunk: &[u8], columns: &mut FieldBuffers, text: &mut Vec<u8>) {
                let carry = columns.carry();
                if carry.is_empty() {
                    return;
                }
                $(if carry.$field {
                    let member = self.get(CarriedField::$id);
                    columns.$buffer.push(member.and_then(|member| $kind::read(member, chunk, text)));
                })*
                columns.complete_digests();
            }
        }
    };
}
carried_fields!(define_values);

impl CaptureFields {
    /// Begins a record, which has no members yet.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.present = 0;
    }

    #[inline(always)]
    fn get(&self, field: CarriedField) -> Option<FieldText> {
        (self.present >> field as u32 & 1 != 0).then_some(self.values[field as usize])
    }

    /// Sets `field` to the value that was found, unless an earlier member of that name has a value.
    #[inline(always)]
    pub(super) fn set<M>(&mut self, field: CarriedField, found: &JsonMember<M>, chunk: &[u8]) {
        let is_value = found.kind != JsonKind::Nested && !matches!(found.span.of(chunk), b"-" | b"null");
        if is_value && self.get(field).is_none() {
            self.present |= 1 << field as u32;
            self.values[field as usize] = FieldText { span: found.span, has_escapes: found.has_escapes };
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
