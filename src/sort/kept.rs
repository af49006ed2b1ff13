//! Sorted runs in a file with a name, for a job that is taken up again: [`KeptRuns`]. In: packed blocks. Out: a file that
//! bears its name only when it is whole, and from which [`super::Runs::add_kept`] takes the runs as if they had just been
//! made.
//!
//! The file is the blocks, then an entry of 40 bytes for each (run, offset, length, rows, length in memory), then the number
//! of entries, the XXH3-64 of all of that and a mark; numbers are of 8 bytes, least significant first.

use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use xxhash_rust::xxh3::xxh3_64;

use super::Packed;
use crate::dedup::{Scratch, SpillError};

/// The end of every such file; its number goes up when blocks or entries change.
const MARK: &[u8; 8] = b"irikruns";

/// Bytes of an entry.
const ENTRY_LEN: usize = 40;

/// Bytes behind the entries.
const END_LEN: usize = 24;

/// Runs that are being written.
#[derive(Debug)]
pub struct KeptRuns {
    file: NamedTempFile,
    entries: Vec<Entry>,
    runs: u64,
    end: u64,
}

/// A block of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) run: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) rows: u64,
    pub(super) memory_len: u64,
}

impl KeptRuns {
    /// No runs yet, in a file of `directory` without its name.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(directory: &Path) -> Result<KeptRuns, SpillError> {
        let made = tempfile::Builder::new().prefix(".irikey-").suffix(".tmp").tempfile_in(directory);
        let file = made.map_err(|error| SpillError::Create { directory: directory.to_path_buf(), error })?;
        Ok(KeptRuns { file, entries: Vec::new(), runs: 0, end: 0 })
    }

    /// Adds a run.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn add(&mut self, blocks: Vec<Packed>) -> Result<(), SpillError> {
        for Packed { bytes, rows, memory_len } in blocks {
            self.write(&bytes)?;
            let (len, rows, memory_len) = (bytes.len() as u64, rows as u64, memory_len as u64);
            self.entries.push(Entry { run: self.runs, offset: self.end, len, rows, memory_len });
            self.end += len;
        }
        self.runs += 1;
        Ok(())
    }

    /// The file's name as long as it has not its own.
    pub fn temporary_path(&self) -> &Path {
        self.file.path()
    }

    /// Ends the file, which is `path` from then on; says how long it is.
    ///
    /// # Errors
    /// As [`KeptRuns::add`].
    pub fn finish(mut self, path: &Path) -> Result<u64, SpillError> {
        let mut index: Vec<u8> = Vec::with_capacity((self.entries.len() + 1) * ENTRY_LEN);
        for entry in &self.entries {
            let numbers = [entry.run, entry.offset, entry.len, entry.rows, entry.memory_len];
            numbers.iter().for_each(|number| index.extend(number.to_le_bytes()));
        }
        index.extend((self.entries.len() as u64).to_le_bytes());
        index.extend(xxh3_64(&index).to_le_bytes());
        index.extend(MARK);
        self.write(&index)?;
        let synced = self.file.as_file().sync_all();
        synced.map_err(|error| torn(path, error))?;
        self.file.persist(path).map_err(|error| torn(path, error.error))?;
        Ok(self.end + index.len() as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SpillError> {
        let directory = self.file.path().parent().unwrap_or(Path::new(".")).to_path_buf();
        self.file.write_all(bytes).map_err(|error| SpillError::Write { directory, error })
    }
}

fn torn(path: &Path, error: io::Error) -> SpillError {
    SpillError::Write { directory: path.parent().unwrap_or(path).to_path_buf(), error }
}

/// The blocks of a file that was finished.
///
/// # Errors
/// It cannot be read, or is not what was written.
pub(super) fn entries(file: &Scratch) -> Result<Vec<Entry>, SpillError> {
    let not_whole = || file.torn(&"these are no runs, or not whole; remove the file");
    let (len, mut end) = (file.written(), Vec::new());
    let end_at = len.checked_sub(END_LEN as u64).ok_or_else(not_whole)?;
    file.read(end_at, END_LEN, &mut end)?;
    let number = |bytes: &[u8], at: usize| {
        bytes.get(at * 8..at * 8 + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let index_len = number(&end, 0).checked_mul(ENTRY_LEN as u64).filter(|len| *len <= end_at).ok_or_else(not_whole)?;
    let mut index = Vec::new();
    file.read(end_at - index_len, index_len as usize + 8, &mut index)?;
    if &end[16..] != MARK || xxh3_64(&index) != number(&end, 1) {
        return Err(not_whole());
    }
    let entry = |bytes: &[u8]| {
        let [run, offset, len, rows, memory_len] = std::array::from_fn(|at| number(bytes, at));
        Entry { run, offset, len, rows, memory_len }
    };
    Ok(index[..index_len as usize].chunks_exact(ENTRY_LEN).map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(directory: &Path) -> std::path::PathBuf {
        let block = |byte: u8, rows| Packed { bytes: vec![byte; 9], rows, memory_len: 50 };
        let mut runs = KeptRuns::create(directory).unwrap();
        runs.add(vec![block(1, 3), block(2, 4)]).unwrap();
        runs.add(vec![block(3, 5)]).unwrap();
        let path = directory.join("x.runs");
        assert_eq!(runs.finish(&path).unwrap(), 3 * 9 + 3 * 40 + 24);
        path
    }

    #[test]
    fn what_is_kept_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let file = Scratch::open(&written(directory.path())).unwrap();
        let found = entries(&file).unwrap();
        let told: Vec<_> = found.iter().map(|entry| (entry.run, entry.rows, entry.memory_len)).collect();
        assert_eq!(told, [(0, 3, 50), (0, 4, 50), (1, 5, 50)]);
        let mut bytes = Vec::new();
        file.read(found[2].offset, found[2].len as usize, &mut bytes).unwrap();
        assert_eq!(bytes, [3; 9]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_not_whole_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = written(directory.path());
        let whole = std::fs::read(&path).unwrap();
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            entries(&Scratch::open(&path).unwrap()).is_err()
        };
        assert!(!refused(&whole));
        assert!((0..whole.len()).all(|len| refused(&whole[..len])));
        // The blocks themselves are Arrow's to check.
        for at in 27..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            assert!(refused(&bytes), "{at}");
        }
    }
}
