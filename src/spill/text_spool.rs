//! Texts of rows, of which few are read at the end: [`TextSpool`].

use super::scratch::{FileRange, ScratchFile, SpillError};
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Texts by the ordinals of their rows, compressed, in memory up to a limit and beyond it in a temporary file.
#[derive(Debug)]
pub(crate) struct TextSpool {
    file: ScratchFile,
    /// Bytes of memory for further blocks.
    remaining: usize,
    /// Each with the ordinal of its first text. Ordinals ascend.
    blocks: Vec<(u64, TextPlace)>,
}

#[derive(Debug)]
enum TextPlace {
    Memory(Box<[u8]>),
    File(FileRange),
}

#[derive(Debug)]
pub(crate) struct TextBlock {
    first: u64,
    compressed: Vec<u8>,
}

impl TextBlock {
    /// Compresses texts with their ordinals, which ascend; `None` if there are no texts. Workers call it in parallel.
    pub(crate) fn new<'t>(texts: impl Iterator<Item = (u64, &'t [u8])>) -> Option<TextBlock> {
        let (mut first, mut bytes) = (None, Vec::new());
        for (ordinal, text) in texts {
            first.get_or_insert(ordinal);
            bytes.extend_from_slice(&ordinal.to_le_bytes());
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text);
        }
        first.map(|first| TextBlock { first, compressed: compress_prepend_size(&bytes) })
    }
}

impl TextSpool {
    /// No texts. They take about `limit` bytes of memory; further ones go to a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> TextSpool {
        TextSpool { file: ScratchFile::new(directory), remaining: limit, blocks: Vec::new() }
    }

    /// Appends the texts of the next row group.
    pub(crate) fn append(&mut self, block: TextBlock) -> Result<(), SpillError> {
        let TextBlock { first, compressed } = block;
        let place = if compressed.len() <= self.remaining {
            self.remaining -= compressed.len();
            TextPlace::Memory(compressed.into_boxed_slice())
        } else {
            TextPlace::File(self.file.append(&compressed)?)
        };
        self.blocks.push((first, place));
        Ok(())
    }

    /// Returns the texts of the rows with these ordinals, without those that were not appended.
    pub(crate) fn read(&self, ordinals: &BTreeSet<u64>) -> Result<BTreeMap<u64, Vec<u8>>, SpillError> {
        let ends = self.blocks.iter().skip(1).map(|(first, _)| *first).chain([u64::MAX]);
        let mut found = BTreeMap::new();
        for ((first, place), end) in self.blocks.iter().zip(ends) {
            if ordinals.range(first..&end).next().is_some() {
                let bytes = self.unpack(place)?;
                let wanted = texts(&bytes).filter(|(ordinal, _)| ordinals.contains(ordinal));
                found.extend(wanted.map(|(ordinal, text)| (ordinal, text.to_vec())));
            }
        }
        Ok(found)
    }

    fn unpack(&self, place: &TextPlace) -> Result<Vec<u8>, SpillError> {
        match place {
            TextPlace::Memory(compressed) => {
                decompress_size_prepended(compressed).map_err(|error| self.file.corrupt(&error))
            }
            TextPlace::File(range) => self.file.read_lz4(*range, &mut Vec::new()),
        }
    }

    /// Bytes written to the temporary file.
    pub(crate) fn written_len(&self) -> u64 {
        self.file.written_len()
    }
}

/// The texts of a block with their ordinals.
fn texts(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (ordinal, rest) = bytes.split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk()?;
        let (text, rest) = rest.split_at_checked(u64::from_le_bytes(*len) as usize)?;
        bytes = rest;
        Some((u64::from_le_bytes(*ordinal), text))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let text = |ordinal: u64| format!("http://example.org/{}", ordinal * ordinal);
        for limit in [usize::MAX, 3_000, 0] {
            let mut spool = TextSpool::new(limit, directory.path());
            for first in (0..10_000).step_by(100) {
                let texts: Vec<(u64, String)> = (first..first + 50).step_by(2).map(|i| (i, text(i))).collect();
                let block = TextBlock::new(texts.iter().map(|(ordinal, text)| (*ordinal, text.as_bytes())));
                spool.append(block.unwrap()).unwrap();
            }
            assert_eq!(spool.written_len() > 0, limit < usize::MAX);
            let present = [0, 2, 48, 100, 5_022, 9_948];
            let found = spool.read(&present.into_iter().chain([1, 50, 99, 9_950, u64::MAX]).collect()).unwrap();
            assert!(found.into_iter().eq(present.map(|ordinal| (ordinal, text(ordinal).into_bytes()))));
        }
        assert!(TextBlock::new(std::iter::empty()).is_none());
        assert!(TextSpool::new(0, directory.path()).read(&BTreeSet::from([0])).unwrap().is_empty());
    }
}
