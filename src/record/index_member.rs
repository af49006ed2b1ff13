//! Members of a capture's JSON, in CDXJ and in JSON lines, and what they say. In: a key, a value. Out: a [`Field`].
//!
//! Numbers may be strings and strings bare. `-` and `null` say nothing; of members of one name the first that says
//! something counts.

use super::copies::put;
use super::fields::{Carry, Field};
use super::json::unescape;
use super::shape::{Found, Kind};
use super::{Span, time};
use crate::kernel::append_range;
use std::str::FromStr;

/// What a key means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Member {
    /// Nothing that is wanted.
    #[default]
    Other,
    Url,
    Status,
    Timestamp,
    Redirect,
    Digest,
    Charset,
    Mime,
    MimeDetected,
    Languages,
    Filename,
    Offset,
    Length,
}

/// How many there are.
const COUNT: usize = Member::Length as usize + 1;

impl Member {
    /// By the names that indexes have for them.
    pub(super) fn of(key: &[u8], carry: Carry) -> Member {
        let (member, is_wanted) = match key {
            b"url" => (Member::Url, true),
            b"status" => (Member::Status, carry.status),
            b"timestamp" => (Member::Timestamp, carry.time),
            b"redirect" => (Member::Redirect, carry.redirect),
            b"digest" => (Member::Digest, carry.digest),
            b"charset" => (Member::Charset, carry.charset),
            b"mime" => (Member::Mime, carry.mime),
            b"mime-detected" => (Member::MimeDetected, carry.detected_mime),
            b"languages" => (Member::Languages, carry.languages),
            b"filename" => (Member::Filename, carry.filename),
            b"offset" => (Member::Offset, carry.capture_offset),
            b"length" => (Member::Length, carry.capture_length),
            _ => (Member::Other, false),
        };
        if is_wanted { member } else { Member::Other }
    }
}

/// What the members of a record said so far.
#[derive(Debug, Default)]
pub(super) struct Said {
    values: [Value; COUNT],
}

/// Where a value stands, if it is there.
#[derive(Clone, Copy, Debug, Default)]
struct Value {
    span: Span,
    is_said: bool,
    has_escapes: bool,
}

impl Said {
    /// Takes a member.
    #[inline(always)]
    pub(super) fn hear<M>(&mut self, member: Member, found: &Found<M>, chunk: &[u8]) {
        let value = &mut self.values[member as usize];
        if member != Member::Other && !value.is_said && found.kind != Kind::Nested {
            let is_said = !matches!(found.span.of(chunk), b"-" | b"null");
            *value = Value { span: found.span, is_said, has_escapes: found.has_escapes };
        }
    }

    /// All of it; strings are copied to `text`.
    #[inline(always)]
    pub(super) fn field(&self, chunk: &[u8], text: &mut Vec<u8>) -> Field {
        let said = |member: Member| Some(self.values[member as usize]).filter(|value| value.is_said);
        let bytes = |member: Member| said(member).map(|value| value.span.of(chunk));
        let mut put = |member: Member| said(member).map(|value| copy(chunk, value.span, value.has_escapes, text));
        Field {
            status: bytes(Member::Status).and_then(number),
            time: bytes(Member::Timestamp).and_then(|text| time::from_digits(text).or_else(|| time::from_iso(text))),
            redirect: put(Member::Redirect),
            redirected_from: None,
            digest: put(Member::Digest),
            charset: put(Member::Charset),
            mime: put(Member::Mime),
            detected_mime: put(Member::MimeDetected),
            languages: put(Member::Languages),
            filename: put(Member::Filename),
            capture_offset: bytes(Member::Offset).and_then(number),
            capture_length: bytes(Member::Length).and_then(number),
        }
    }
}

/// Copies a string of `chunk`, its escapes undone, and `LF` behind it.
#[inline(always)]
pub(super) fn copy(chunk: &[u8], span: Span, has_escapes: bool, text: &mut Vec<u8>) -> Span {
    if has_escapes {
        return put(text, |out| unescape(span.of(chunk), out));
    }
    let at = text.len() as u32;
    append_range(text, chunk, span.at as usize, span.len as usize);
    text.push(b'\n');
    Span { at, len: span.len }
}

fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
