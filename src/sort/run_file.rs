//! Sorted runs in a file with a name, for a job that can be resumed: [`RunFileWriter`]. The file gets its name only when
//! it is complete. [`super::SortedRuns::add_file`] reads it.
//!
//! Format: the blocks; one entry of 48 bytes per block (run, offset, length, rows, decoded length, XXH3-64 of the block); the
//! number of entries; the XXH3-64 of the entries and their number; an end mark. All numbers are 64 bits, little-endian.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use super::block::EncodedBlock;
use crate::process::{PendingFile, parent};
use crate::spill::{FileRange, ScratchFile, SpillError};

/// The end mark. It has to change when the format of blocks or entries changes.
const END_MARK: &[u8; 8] = b"irikrun2";

/// Bytes of an entry.
const ENTRY_LEN: usize = 48;

/// Bytes after the entries.
const TRAILER_LEN: usize = 24;

#[derive(Debug)]
pub(crate) struct RunFileWriter {
    file: File,
    pending: PendingFile,
    entries: Vec<RunFileEntry>,
    runs: u64,
    end: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RunFileEntry {
    pub(super) run: u64,
    pub(super) range: FileRange,
    pub(super) rows: u64,
    pub(super) memory_len: u64,
    /// XXH3-64 of the block.
    pub(super) hash: u64,
}

impl RunFileWriter {
    /// A file in `directory` under a temporary name.
    pub(crate) fn create(directory: &Path) -> Result<RunFileWriter, SpillError> {
        let created = PendingFile::create(directory);
        let (file, pending) = created.map_err(|error| SpillError::Runs(directory.to_path_buf(), error))?;
        Ok(RunFileWriter { file, pending, entries: Vec::new(), runs: 0, end: 0 })
    }

    pub(crate) fn add(&mut self, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
        for EncodedBlock { bytes, rows, memory_len } in blocks {
            self.write(&bytes)?;
            let range = FileRange { offset: self.end, len: bytes.len() };
            let (rows, memory_len, hash) = (rows as u64, memory_len as u64, xxh3_64(&bytes));
            self.entries.push(RunFileEntry { run: self.runs, range, rows, memory_len, hash });
            self.end += bytes.len() as u64;
        }
        self.runs += 1;
        Ok(())
    }

    /// Completes the file, which keeps its temporary name, and returns its length.
    pub(crate) fn finish(mut self) -> Result<(u64, PendingFile), SpillError> {
        let mut index: Vec<u8> = Vec::with_capacity((self.entries.len() + 1) * ENTRY_LEN);
        for RunFileEntry { run, range, rows, memory_len, hash } in &self.entries {
            let numbers = [*run, range.offset, range.len as u64, *rows, *memory_len, *hash];
            numbers.iter().for_each(|number| index.extend(number.to_le_bytes()));
        }
        index.extend((self.entries.len() as u64).to_le_bytes());
        index.extend(xxh3_64(&index).to_le_bytes());
        index.extend(END_MARK);
        self.write(&index)?;
        Ok((self.end + index.len() as u64, self.pending))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        self.file.write_all(bytes).map_err(|error| SpillError::Runs(parent(self.pending.path()).to_path_buf(), error))
    }
}

pub(super) fn read_entries(file: &ScratchFile) -> Result<Vec<RunFileEntry>, SpillError> {
    let damaged = || file.corrupt(&"not a complete file of sorted runs; remove it and start again");
    let (len, mut trailer) = (file.written_len(), Vec::new());
    let trailer_at = len.checked_sub(TRAILER_LEN as u64).ok_or_else(damaged)?;
    file.read(FileRange { offset: trailer_at, len: TRAILER_LEN }, &mut trailer)?;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let index_len = number(&trailer, 0).checked_mul(ENTRY_LEN as u64).filter(|len| *len <= trailer_at);
    let index_len = index_len.ok_or_else(damaged)?;
    let mut index = Vec::new();
    file.read(FileRange { offset: trailer_at - index_len, len: index_len as usize + 8 }, &mut index)?;
    if &trailer[16..] != END_MARK || xxh3_64(&index) != number(&trailer, 1) {
        return Err(damaged());
    }
    let entry = |bytes: &[u8]| {
        let [run, offset, len, rows, memory_len, hash] = std::array::from_fn(|at| number(bytes, at));
        RunFileEntry { run, range: FileRange { offset, len: len as usize }, rows, memory_len, hash }
    };
    Ok(index[..index_len as usize].chunks_exact(ENTRY_LEN).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::super::held_runs::BlockPlace;
    use super::*;
    use std::sync::Arc;

    fn write_file(directory: &Path) -> std::path::PathBuf {
        let block = |byte: u8, rows| EncodedBlock { bytes: vec![byte; 9], rows, memory_len: 50 };
        let mut writer = RunFileWriter::create(directory).unwrap();
        writer.add(vec![block(1, 3), block(2, 4)]).unwrap();
        writer.add(vec![block(3, 5)]).unwrap();
        let path = directory.join("x.runs");
        let (len, pending) = writer.finish().unwrap();
        assert_eq!(len, 3 * 9 + 3 * 48 + 24);
        pending.commit(&path, crate::process::Existing::Replace).unwrap();
        path
    }

    fn read_blocks(path: &Path) -> Result<Vec<Vec<u8>>, SpillError> {
        let (path, file): (Arc<Path>, _) = (path.into(), ScratchFile::open(path)?);
        let read = |RunFileEntry { range, hash, .. }| {
            let mut bytes = Vec::new();
            BlockPlace::RunFile(Arc::clone(&path), range, hash).read(&mut bytes)?;
            Ok(bytes)
        };
        read_entries(&file)?.into_iter().map(read).collect()
    }

    #[test]
    fn written_runs_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = write_file(directory.path());
        let entries = read_entries(&ScratchFile::open(&path).unwrap()).unwrap();
        let numbers: Vec<_> = entries.iter().map(|entry| (entry.run, entry.rows, entry.memory_len)).collect();
        assert_eq!(numbers, [(0, 3, 50), (0, 4, 50), (1, 5, 50)]);
        assert_eq!(read_blocks(&path).unwrap(), [[1; 9], [2; 9], [3; 9]]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// The directory of runs belongs to the output, so that `--tmp` would not help.
    #[test]
    fn errors_of_writing_name_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("missing");
        let error = RunFileWriter::create(&missing).unwrap_err().to_string();
        assert!(error.contains("missing: cannot write sorted runs there") && !error.contains("--tmp"), "{error}");
        let full = SpillError::Runs(missing, std::io::ErrorKind::StorageFull.into()).to_string();
        assert!(full.contains("free disk space there") && !full.contains("--tmp"), "{full}");
    }

    #[test]
    fn damaged_files_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = write_file(directory.path());
        let whole = std::fs::read(&path).unwrap();
        let is_refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_blocks(&path).is_err()
        };
        assert!(!is_refused(&whole));
        assert!((0..whole.len()).all(|len| is_refused(&whole[..len])));
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            assert!(is_refused(&bytes), "{at}");
        }
    }
}
