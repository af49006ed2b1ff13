//! What a decoder of a crawl format finds, record by record, kept until the chunk is done. In: spans, fields, refusals.
//! Out: [`Records`]. The formats differ in how a line is read; that every line begun is one record is kept here.

use super::fields::{FieldBuffers, FieldSet, FieldValues};
use super::{Offsets, Records, Span};
use crate::iri::{Component, Fault, FaultKind};

/// Records of a chunk, column by column; a decoder keeps the memory.
#[derive(Debug, Default)]
pub(super) struct Collected {
    urls: Vec<Span>,
    bases: Vec<Span>,
    offsets: Vec<u64>,
    faults: Vec<(u32, Fault)>,
    fields: FieldBuffers,
    header_count: u32,
}

impl Collected {
    /// Forgets the last chunk.
    pub(super) fn clear(&mut self) {
        self.urls.clear();
        self.bases.clear();
        self.offsets.clear();
        self.faults.clear();
        self.fields.clear();
        self.header_count = 0;
    }

    /// The fields that are kept from now on.
    pub(super) fn set_carry(&mut self, carry: FieldSet) {
        self.fields.set_carry(carry);
    }

    /// The fields that are kept.
    pub(super) fn carry(&self) -> FieldSet {
        self.fields.carry()
    }

    /// A line that is no record.
    pub(super) fn header(&mut self) {
        self.header_count += 1;
    }

    /// A record begins at byte `offset` of the source; [`Self::push`] ends it.
    pub(super) fn begin(&mut self, offset: u64) {
        self.offsets.push(offset);
    }

    /// The record that has begun is refused as a whole.
    pub(super) fn refuse(&mut self, kind: FaultKind) {
        self.faults.push((self.urls.len() as u32, Fault::new(kind, Component::Reference, 0)));
    }

    /// The base of the record that has begun, in formats that have one.
    pub(super) fn base(&mut self, base: Span) {
        self.bases.push(base);
    }

    /// The URL of the record that has begun, or its line where it is refused, and what the format says beside it.
    pub(super) fn push(&mut self, url: Span, field: FieldValues) {
        self.urls.push(url);
        self.fields.push(field);
    }

    /// All of it; spans point into `text`.
    pub(super) fn records<'a>(&'a self, text: &'a [u8]) -> Records<'a> {
        Records {
            text,
            urls: &self.urls,
            bases: &self.bases,
            offsets: Offsets::Each(&self.offsets),
            faults: &self.faults,
            fields: self.fields.views(),
            header_count: self.header_count,
            ..Records::default()
        }
    }
}

/// The lines of `chunk` without their `LF`, each with the byte at which it begins.
pub(super) fn lines(chunk: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = chunk.get(at..).filter(|rest| !rest.is_empty())?;
        let len = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = (at, &rest[..len]);
        at += len + 1;
        Some(line)
    })
}

/// The lines of `chunk` that are not blank, without their `LF` or `CR LF`, each with the byte at which it begins.
pub(super) fn filled_lines(chunk: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let filled = lines(chunk).filter(|(_, line)| !line.trim_ascii().is_empty());
    filled.map(|(at, line)| (at, line.strip_suffix(b"\r").unwrap_or(line)))
}
