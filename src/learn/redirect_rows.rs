//! Records that [`RedirectObserver`](super::observer::RedirectObserver) writes and [`super::resolution`] reads. Each is written
//! and read in one place, so that both agree.

use super::redirect::{RedirectCode, RedirectEvidence};
use super::sorter::{FieldReader, RecordFields};
use crate::key::KeyBytes;

/// What the number in a [`KeyRow`] is. The row of the URL itself is sorted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyOf {
    /// The number of the URL that has the key.
    Url = 0,
    /// The number of a URL that leads to it.
    Target = 1,
    /// None: rules about content make the URL of another one. A content of that one follows.
    Form = 2,
}

impl KeyOf {
    const fn numbered(number: u8) -> KeyOf {
        match number {
            0 => KeyOf::Url,
            1 => KeyOf::Target,
            _ => KeyOf::Form,
        }
    }
}

/// The key of a URL, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRow {
    pub(super) key: KeyBytes,
    pub(super) of: KeyOf,
    pub(super) number: u32,
}

impl KeyRow {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key);
        out.push(self.of as u8);
        out.put_u32(self.number);
    }

    pub(super) fn read(fields: &mut FieldReader<'_>) -> KeyRow {
        let (key, of) = (fields.array(), KeyOf::numbered(fields.u8()));
        KeyRow { key, of, number: fields.u32() }
    }
}

/// A content of a numbered URL: the hash of its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentRow {
    pub(super) number: u32,
    pub(super) content: u64,
    /// The URL has the content if this is `None`. Otherwise the URL with this number has it, and its redirects end here.
    pub(super) sought_for: Option<u32>,
}

impl ContentRow {
    /// Rows that say what a URL has come before those that say what is sought there.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.number);
        out.put_u64(self.content);
        self.sought_for.into_iter().for_each(|number| out.put_u32(number));
    }

    pub(super) fn read(record: &[u8]) -> ContentRow {
        let mut fields = FieldReader(record);
        let (number, content) = (fields.u32(), fields.u64());
        ContentRow { number, content, sought_for: (!fields.0.is_empty()).then(|| fields.u32()) }
    }
}

/// A URL and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedUrl<'a> {
    pub(super) number: u32,
    pub(super) uri: &'a [u8],
}

impl<'a> NumberedUrl<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.number);
        out.extend_from_slice(self.uri);
    }

    pub(super) fn read(mut fields: FieldReader<'a>) -> NumberedUrl<'a> {
        NumberedUrl { number: fields.u32(), uri: fields.0 }
    }
}

/// An accepted redirect, with the number of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeRow<'a> {
    pub(super) number: u32,
    pub(super) evidence: RedirectEvidence,
    pub(super) from: &'a [u8],
    pub(super) to: &'a [u8],
}

impl<'a> EdgeRow<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.number);
        out.push(self.evidence.code as u8);
        out.put_u64(self.evidence.records);
        out.put_place(self.evidence.first);
        out.put_text(self.from);
        out.extend_from_slice(self.to);
    }

    pub(super) fn read(record: &'a [u8]) -> EdgeRow<'a> {
        let mut fields = FieldReader(record);
        let (number, code) = (fields.u32(), RedirectCode::numbered(fields.u8()));
        let evidence = RedirectEvidence { code, records: fields.u64(), first: fields.place() };
        EdgeRow { number, evidence, from: fields.text(), to: fields.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::redirect::RecordPlace;
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let mut record = Vec::new();
        let key = KeyRow { key: [7; 16], of: KeyOf::Target, number: 0x0102_0304 };
        key.write(&mut record);
        assert_eq!(KeyRow::read(&mut FieldReader(&record)), key);
        record.clear();
        let url = NumberedUrl { number: 5, uri: b"http://a/" };
        url.write(&mut record);
        assert_eq!(NumberedUrl::read(FieldReader(&record)), url);
        for sought_for in [None, Some(9)] {
            record.clear();
            let row = ContentRow { number: 5, content: 1 << 60, sought_for };
            row.write(&mut record);
            assert_eq!(ContentRow::read(&record), row);
        }
        record.clear();
        let first = RecordPlace { source: 1, record: 2 };
        let evidence = RedirectEvidence { records: 3, code: RedirectCode::Temporary, first };
        let edge = EdgeRow { number: 4, evidence, from: b"http://a/", to: b"http://b/" };
        edge.write(&mut record);
        assert_eq!(EdgeRow::read(&record), edge);
    }

    #[test]
    #[should_panic(expected = "a record that is shorter than its fields")]
    fn a_short_record_is_not_read_as_zeros() {
        EdgeRow::read(&[0; 12]);
    }
}
