//! Writes encoded pages to a file without copying them in memory.
//!
//! The writer of the `parquet` crate copies a column chunk through a buffer of 8 KiB, and a buffered file would copy it again. So
//! the chunk that it copies consists of placeholders, zeros, and [`PageSink`] writes the pages in their place:
//!
//! ```text
//! pages --splice--> PageSink ---------------------------------------+
//! placeholders --> parquet's writer: offsets, metadata --> PageSink: dropped, the pages are written --> file
//! ```

use std::collections::VecDeque;
use std::io::{self, Read, Repeat, Take, Write};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::buffers::PageBuffers;
use crate::output::sink::Sink;

/// Writes what the `parquet` crate writes, with pages in place of their placeholders.
#[derive(Debug)]
pub(in crate::output) struct PageSink {
    sink: Sink,
    /// Pages whose placeholders have not been written yet, in the order of the file.
    splices: VecDeque<Splice>,
    /// Placeholders that are still to be dropped.
    placeholder_len: u64,
}

/// Pages that begin at byte `at` of the file. Their buffers return to `pool`.
#[derive(Debug)]
struct Splice {
    at: u64,
    pages: Vec<Bytes>,
    pool: Arc<PageBuffers>,
}

impl PageSink {
    pub(in crate::output) fn new(sink: Sink) -> PageSink {
        PageSink { sink, splices: VecDeque::new(), placeholder_len: 0 }
    }

    /// Replaces the placeholders that begin at byte `at` by `pages`, which have the same length. Offsets must ascend. When the
    /// pages are written, their buffers return to `pool`.
    pub(in crate::output) fn splice(&mut self, at: u64, pages: Vec<Bytes>, pool: &Arc<PageBuffers>) {
        self.splices.push_back(Splice { at, pages, pool: Arc::clone(pool) });
    }

    /// Returns the sink after the end of the file.
    pub(in crate::output) fn into_sink(self) -> Sink {
        self.sink
    }

    /// Writes pages and returns their length.
    fn write_pages(&mut self, Splice { pages, pool, .. }: Splice) -> io::Result<u64> {
        let mut len = 0;
        for bytes in pages {
            self.sink.write_all(&bytes)?;
            len += bytes.len() as u64;
            pool.put(bytes);
        }
        Ok(len)
    }
}

impl Write for PageSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Until all placeholders are dropped, the sink is ahead of the writer.
        while self.placeholder_len == 0
            && let Some(splice) = self.splices.pop_front_if(|splice| splice.at == self.sink.written())
        {
            self.placeholder_len = self.write_pages(splice)?;
        }
        let len = bytes.len() as u64;
        if self.placeholder_len > 0 {
            let dropped = len.min(self.placeholder_len);
            self.placeholder_len -= dropped;
            return Ok(dropped as usize);
        }
        // The bytes up to the next pages.
        let len = self.splices.front().map_or(len, |splice| len.min(splice.at.saturating_sub(self.sink.written())));
        self.sink.write(&bytes[..len as usize])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// This many bytes of placeholders, as the file of a column chunk.
pub(super) struct Placeholders(pub(super) u64);

impl Length for Placeholders {
    fn len(&self) -> u64 {
        self.0
    }
}

impl ChunkReader for Placeholders {
    type T = Take<Repeat>;

    fn get_read(&self, start: u64) -> Result<Take<Repeat>, ParquetError> {
        Ok(io::repeat(0).take(self.0.saturating_sub(start)))
    }

    fn get_bytes(&self, _: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(vec![0; length].into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{Destination, sink};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        /// Bytes and pages that alternate; pages may follow each other or be empty. Nearly all cuts are within placeholders.
        #[test]
        fn pages_replace_their_placeholders(
            parts in prop::collection::vec((any::<bool>(), 0_usize..20_000), 1..8),
            cuts in prop::collection::vec(1_usize..9_000, 1..40),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pages");
            let (sink, target) = sink::create(&Destination::File(path.clone())).unwrap();
            let (mut sink, pool) = (PageSink::new(sink), Arc::default());
            let (mut stream, mut expected) = (Vec::new(), Vec::new());
            for (number, (is_page, len)) in parts.into_iter().enumerate() {
                let bytes = vec![number as u8 + 1; len];
                if is_page {
                    let (first, second) = bytes.split_at(len / 3);
                    sink.splice(expected.len() as u64, vec![first.to_vec().into(), second.to_vec().into()], &pool);
                    Placeholders(len as u64).get_read(0).unwrap().read_to_end(&mut stream).unwrap();
                } else {
                    stream.extend_from_slice(&bytes);
                }
                expected.extend(bytes);
            }
            let (mut rest, mut cuts) = (&stream[..], cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (written, after) = rest.split_at(cuts.next().unwrap().min(rest.len()));
                sink.write_all(written).unwrap();
                rest = after;
            }
            target.commit(sink.into_sink()).unwrap();
            prop_assert!(std::fs::read(path).unwrap() == expected);
        }
    }
}
