//! The index of a zipnum cluster: `key time`, file, offset, length and, in the newer dialect, a number, between tabs. In: a
//! chunk of whole lines. Out: a record a line.
//!
//! A line tells which key a block of captures begins with and no URL, and what a key was made of cannot be told from it.
//! So each is a row with the fault `no-url`, the line being its URL, that carries the time; the captures themselves are in
//! the files that it names.

use super::collected::{Collected, filled_lines};
use super::fields::{FieldSet, FieldValues};
use super::{Records, Span, time};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::Bitmaps;

/// Decoder of indexes; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct ZipnumIndex {
    found: Collected,
}

impl ZipnumIndex {
    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.found.set_carry(carry);
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe `chunk` afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::zipnum::ZipnumIndex};
    /// let line = b"com,example)/ 20140127171200\tcdx-00000.gz\t0\t275\t1";
    /// let (mut index, mut bitmaps) = (ZipnumIndex::default(), Bitmaps::default());
    /// let records = index.decode(line, 0, &mut bitmaps);
    /// assert_eq!((records.urls.len(), records.faults.len()), (1, 1));
    /// assert_eq!(records.fields.times, [Some(1_390_842_720_000)]);
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.found.clear();
        for (at, line) in filled_lines(chunk) {
            self.found.begin(offset + at as u64);
            let time = key_time(line);
            self.found.refuse(if is_record(line) { FaultKind::NoUrl } else { FaultKind::NotOfFormat });
            let span = Span { at: at as u32, len: line.len() as u32 };
            self.found.push(span, FieldValues { time, ..FieldValues::default() });
        }
        self.found.records(chunk)
    }
}

/// The time behind the key.
fn key_time(line: &[u8]) -> Option<i64> {
    let head = line.split(|&byte| byte == b'\t').next()?;
    time::from_digits(&head[memchr::memrchr(b' ', head)? + 1..])
}

/// `line` is of an index: a key with a time, a file, and two or three numbers.
pub(super) fn is_record(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
    let is_number = |field: &&[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    matches!(fields.len(), 4 | 5) && key_time(line).is_some() && fields[2..].iter().all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_dialects_and_what_is_none() {
        let text = b"com,a)/ 20140127171200\tzipnum\t0\t275\t1\r\ncom,b)/x 20140127171201\tpart-a-00000\t275\t9\n\ncom,c)/\tx\t1\t2\n";
        let (mut index, mut bitmaps) = (ZipnumIndex::default(), Bitmaps::default());
        let records = index.decode(text, 0, &mut bitmaps);
        let kinds: Vec<_> = records.faults.iter().map(|(_, fault)| fault.kind).collect();
        assert_eq!(kinds, [FaultKind::NoUrl, FaultKind::NoUrl, FaultKind::NotOfFormat]);
        assert_eq!(records.fields.times.iter().filter(|time| time.is_some()).count(), 2);
    }
}
