//! Sorts the records of learning in memory up to a limit and beyond it on disk: [`DiskStore`].

use crate::learn::{ReadRecords, RecordStore, SortRecords};
use crate::sort::{BytesMerger, BytesSorter};
use crate::spill::SpillError;
use std::path::PathBuf;

/// Makes sorters that each take about `sorter_memory` bytes.
#[derive(Clone, Debug)]
pub(crate) struct DiskStore {
    pub(super) sorter_memory: usize,
    pub(super) directory: PathBuf,
}

impl RecordStore for DiskStore {
    type Error = SpillError;
    type Sorter = BytesSorter;

    fn sorter(&self) -> BytesSorter {
        BytesSorter::new(self.sorter_memory, &self.directory)
    }
}

impl SortRecords for BytesSorter {
    type Error = SpillError;
    type Reader = BytesMerger;

    fn push(&mut self, record: &[u8]) -> Result<(), SpillError> {
        BytesSorter::push(self, record)
    }

    fn sorted(self) -> Result<BytesMerger, SpillError> {
        BytesSorter::sorted(self)
    }
}

impl ReadRecords for BytesMerger {
    type Error = SpillError;

    fn next_record(&mut self) -> Result<Option<&[u8]>, SpillError> {
        BytesMerger::next_record(self)
    }
}
