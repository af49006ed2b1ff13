//! Sorters of the records that learning collects: [`SorterFactory`]. The library sorts in memory ([`MemorySorters`]), jobs
//! sort on disk if the records exceed a limit.
//!
//! A record is a byte string. Its fields are numbers of fixed length, most significant byte first, and texts that end with
//! a zero byte, which no canonical URI contains. So records compare in the order of their fields.

use super::redirect::RecordPlace;
use std::convert::Infallible;

/// Creates sorters.
pub(crate) trait SorterFactory {
    type Error;
    type Sorter: SortRecords<Error = Self::Error>;

    /// Returns a sorter without records.
    fn sorter(&self) -> Self::Sorter;
}

/// Takes records in any order.
pub(crate) trait SortRecords {
    type Error;
    type Reader: ReadRecords<Error = Self::Error>;

    /// Adds a record.
    fn push(&mut self, record: &[u8]) -> Result<(), Self::Error>;

    /// Starts reading the records in order.
    fn sorted(self) -> Result<Self::Reader, Self::Error>;
}

/// Returns records in order.
pub(crate) trait ReadRecords {
    type Error;

    /// Returns the next record; `None` after the last.
    fn next_record(&mut self) -> Result<Option<&[u8]>, Self::Error>;
}

/// The reader of sorted records.
pub(super) type ReaderOf<S> = <<S as SorterFactory>::Sorter as SortRecords>::Reader;

/// Appends fields to a record.
pub(crate) trait RecordFields {
    fn put_u32(&mut self, number: u32);
    fn put_u64(&mut self, number: u64);
    fn put_place(&mut self, place: RecordPlace);
    fn put_text(&mut self, text: &[u8]);
}

impl RecordFields for Vec<u8> {
    fn put_u32(&mut self, number: u32) {
        self.extend_from_slice(&number.to_be_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.extend_from_slice(&number.to_be_bytes());
    }

    fn put_place(&mut self, place: RecordPlace) {
        self.put_u32(place.source);
        self.put_u64(place.record);
    }

    fn put_text(&mut self, text: &[u8]) {
        self.extend_from_slice(text);
        self.push(0);
    }
}

const SHORT_RECORD: &str = "a record that is shorter than its fields";

/// Reads the fields of a record from its beginning.
///
/// # Panics
/// A field is missing, so that what wrote the record and what reads it differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn u8(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.array())
    }

    pub(crate) fn place(&mut self) -> RecordPlace {
        RecordPlace { source: self.u32(), record: self.u64() }
    }

    pub(crate) fn text(&mut self) -> &'a [u8] {
        let len = memchr::memchr(0, self.0).expect(SHORT_RECORD);
        let text = &self.0[..len];
        self.0 = &self.0[len + 1..];
        text
    }

    pub(super) fn array<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect(SHORT_RECORD);
        self.0 = rest;
        *field
    }
}

/// Creates sorters in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemorySorters;

/// Records in memory.
#[derive(Debug, Default)]
pub(super) struct MemoryRecords {
    records: Vec<Vec<u8>>,
    next: usize,
}

impl SorterFactory for MemorySorters {
    type Error = Infallible;
    type Sorter = MemoryRecords;

    fn sorter(&self) -> MemoryRecords {
        MemoryRecords::default()
    }
}

impl SortRecords for MemoryRecords {
    type Error = Infallible;
    type Reader = MemoryRecords;

    fn push(&mut self, record: &[u8]) -> Result<(), Infallible> {
        self.records.push(record.to_vec());
        Ok(())
    }

    fn sorted(mut self) -> Result<MemoryRecords, Infallible> {
        self.records.sort_unstable();
        Ok(self)
    }
}

impl ReadRecords for MemoryRecords {
    type Error = Infallible;

    fn next_record(&mut self) -> Result<Option<&[u8]>, Infallible> {
        self.next += 1;
        Ok(self.records.get(self.next - 1).map(Vec::as_slice))
    }
}
