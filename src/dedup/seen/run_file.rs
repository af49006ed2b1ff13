//! A file of sorted keys in a store: [`RunWriter`] writes it under a temporary name, [`SeenRun`] reads it.
//!
//! Format: the magic bytes `IRIKEYS2`; the length of the policy (32 bits) and the policy; the keys, ascending, 16 bytes each;
//! for each block of [`BLOCK_KEYS`] keys its first key and the XXH3-64 of its bytes; the number of keys (64 bits); the
//! XXH3-128 of everything but the keys. Numbers are little-endian, keys and hashes big-endian. The last hash is also in the
//! manifest. It covers the hashes of the blocks, and a block is checked whenever it is read, so that no changed byte has an
//! effect.

use crate::process::{CommitError, Existing, PendingFile, error_and_remedy, read_exact_at};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const MAGIC: &[u8; 8] = b"IRIKEYS2";
/// Bytes before the policy.
const HEADER_LEN: u64 = 12;
const KEY_LEN: u64 = 16;
/// Keys that are read, checked and merged at a time.
pub(super) const BLOCK_KEYS: u64 = 4 << 10;
/// First key, checksum.
const ENTRY_LEN: u64 = 16 + 8;
/// Number of keys, checksum.
const TRAILER_LEN: u64 = 8 + 16;
/// Bytes that are written at a time.
pub(super) const BUFFER_LEN: usize = 1 << 18;

/// Why a seen store cannot be used. Except for [`SeenError::NotDurable`], the store has not changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeenError {
    /// The store does not exist.
    #[error("{}: no seen store exists there; create one with dedup --update-seen", .0.display())]
    Missing(PathBuf),
    /// The path is a file, or a directory with other files.
    #[error("{}: this is not a seen store, or it has other files as well; choose another directory", .0.display())]
    NotAStore(PathBuf),
    /// Another process is changing the store.
    #[error(
        "{}: another process is changing this seen store; wait until it has finished, or use another store",
        .0.display()
    )]
    Locked(PathBuf),
    /// The keys of the store were made with other settings than those of this job.
    #[error(
        "{}: the keys of this store were made with other settings: {differences}; use the same flags, or another store",
        directory.display()
    )]
    OtherPolicy {
        /// The store.
        directory: PathBuf,
        /// The settings that differ, with both values.
        differences: String,
    },
    /// A file does not match the manifest.
    #[error("{}: damaged: {reason}; restore the store from a copy, or start a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The store has its new keys, but may lose them.
    #[error(
        "{}: cannot {operation}: {}; the store has the new keys, but may lose them if the power fails now",
        path.display(),
        error_and_remedy(error)
    )]
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        error: io::Error,
    },
    /// A file operation failed.
    #[error("{}: cannot {operation}: {}; the store has not changed", path.display(), error_and_remedy(error))]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

impl SeenError {
    pub(super) fn damaged(path: &Path, reason: impl Into<String>) -> SeenError {
        SeenError::Damaged { path: path.to_path_buf(), reason: reason.into() }
    }

    /// Treats a missing file that the manifest names as damage, because no other process has just removed it.
    pub(super) fn missing_as_damaged(self) -> SeenError {
        match self {
            SeenError::Io { path, error, .. } if error.kind() == io::ErrorKind::NotFound => {
                SeenError::damaged(&path, "the file is missing")
            }
            error => error,
        }
    }

    /// Makes the argument of `map_err`.
    pub(super) fn io(path: &Path, operation: &'static str) -> impl FnOnce(io::Error) -> SeenError {
        let path = path.to_path_buf();
        move |error| SeenError::Io { path, operation, error }
    }
}

/// What the manifest contains about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunInfo {
    /// Name of the file.
    pub(crate) name: String,
    /// Number of keys.
    pub(crate) count: u64,
    /// The checksum at the end of the file, in hexadecimal.
    pub(crate) checksum: String,
}

/// The first key of a block, and the XXH3-64 of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockEntry {
    first: u128,
    checksum: u64,
}

/// Writes a run.
#[derive(Debug)]
pub(crate) struct RunWriter {
    file: BufWriter<File>,
    pending: PendingFile,
    header: Vec<u8>,
    /// The bytes of the keys of the current block.
    block: Vec<u8>,
    blocks: Vec<BlockEntry>,
    count: u64,
    last: Option<u128>,
}

impl RunWriter {
    /// A run in `directory`, of keys of this policy.
    pub(super) fn new(directory: &Path, policy: &str) -> Result<RunWriter, SeenError> {
        let created = PendingFile::create(directory);
        let (file, pending) = created.map_err(SeenError::io(directory, "create a file there"))?;
        let header = [MAGIC.as_slice(), &(policy.len() as u32).to_le_bytes(), policy.as_bytes()].concat();
        let file = BufWriter::with_capacity(BUFFER_LEN, file);
        let (block, blocks) = (Vec::new(), Vec::new());
        let mut writer = RunWriter { file, pending, header, block, blocks, count: 0, last: None };
        let written = writer.file.write_all(&writer.header);
        written.map_err(SeenError::io(writer.pending.path(), "write"))?;
        Ok(writer)
    }

    /// Appends keys in ascending order. A key that is equal to the one before it is ignored.
    pub(crate) fn extend(&mut self, keys: impl IntoIterator<Item = u128>) -> Result<(), SeenError> {
        for key in keys {
            debug_assert!(self.last.is_none_or(|last| last <= key), "keys are sorted");
            if self.last.is_none_or(|last| last < key) {
                self.block.extend(key.to_be_bytes());
                self.count += 1;
                self.last = Some(key);
                if self.count.is_multiple_of(BLOCK_KEYS) {
                    self.end_block()?;
                }
            }
        }
        Ok(())
    }

    fn end_block(&mut self) -> Result<(), SeenError> {
        self.blocks.extend(BlockEntry::of(&self.block));
        let written = self.file.write_all(&self.block);
        self.block.clear();
        written.map_err(SeenError::io(self.pending.path(), "write"))
    }

    /// Number of keys.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Completes the file and makes it durable, still under its temporary name.
    pub(super) fn seal(mut self) -> Result<SealedRun, SeenError> {
        self.end_block()?;
        let mut end: Vec<u8> = self.blocks.iter().flat_map(|block| block.to_bytes()).collect();
        end.extend(self.count.to_le_bytes());
        let checksum = checksum_of([&self.header, &end]);
        end.extend(checksum.to_be_bytes());
        let RunWriter { mut file, pending, count, .. } = self;
        let written = file.write_all(&end).and_then(|()| file.flush());
        written.map_err(SeenError::io(pending.path(), "write"))?;
        pending.sync().map_err(SeenError::io(pending.path(), "write to the disk"))?;
        Ok(SealedRun { pending, count, checksum: format!("{checksum:032x}") })
    }
}

/// A complete run under a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct SealedRun {
    pending: PendingFile,
    count: u64,
    checksum: String,
}

impl SealedRun {
    /// Gives the file its name, which is durable when the directory has been synced.
    pub(super) fn persist(self, directory: &Path, name: String) -> Result<RunInfo, SeenError> {
        let SealedRun { pending, count, checksum } = self;
        let path = directory.join(&name);
        pending.rename(&path, Existing::Replace)?;
        Ok(RunInfo { name, count, checksum })
    }
}

impl From<CommitError> for SeenError {
    fn from(CommitError { path, operation, error, is_named }: CommitError) -> SeenError {
        match is_named {
            true => SeenError::NotDurable { path, operation, error },
            false => SeenError::Io { path, operation, error },
        }
    }
}

impl BlockEntry {
    /// The entry of a block with these bytes; `None` if it has no key.
    fn of(block: &[u8]) -> Option<BlockEntry> {
        let first = block.first_chunk().map(|key| u128::from_be_bytes(*key))?;
        Some(BlockEntry { first, checksum: xxh3_64(block) })
    }

    fn to_bytes(self) -> Vec<u8> {
        [&self.first.to_be_bytes()[..], &self.checksum.to_be_bytes()].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Option<BlockEntry> {
        let (first, checksum) = (bytes.first_chunk()?, bytes.last_chunk()?);
        Some(BlockEntry { first: u128::from_be_bytes(*first), checksum: u64::from_be_bytes(*checksum) })
    }
}

/// XXH3-128 of two texts, one after the other.
fn checksum_of(texts: [&[u8]; 2]) -> u128 {
    let mut hash = Xxh3::new();
    texts.into_iter().for_each(|text| hash.update(text));
    hash.digest128()
}

/// A run that is read.
#[derive(Debug)]
pub(super) struct SeenRun {
    path: PathBuf,
    file: File,
    /// Offset of the first key.
    start: u64,
    blocks: Vec<BlockEntry>,
    info: RunInfo,
}

impl SeenRun {
    /// Opens a run and checks everything but its blocks of keys.
    pub(super) fn open(directory: &Path, info: RunInfo) -> Result<SeenRun, SeenError> {
        let path = directory.join(&info.name);
        let file = File::open(&path).map_err(SeenError::io(&path, "open"))?;
        let len = file.metadata().map_err(SeenError::io(&path, "read"))?.len();
        let mut run = SeenRun { path, file, start: HEADER_LEN, blocks: Vec::new(), info };
        let wrong_len = || run.damaged(&format!("{len} bytes is not the length of a run of {} keys", run.info.count));
        let header = run.read(0, HEADER_LEN.min(len))?;
        let (magic, policy_len) = header.split_at_checked(8).ok_or_else(wrong_len)?;
        let policy_len = policy_len.first_chunk().map(|len| u32::from_le_bytes(*len)).ok_or_else(wrong_len)?;
        let start = HEADER_LEN + u64::from(policy_len);
        if magic != MAGIC {
            return Err(run.damaged("it does not begin as a run of keys"));
        }
        let end_len = run.info.count.div_ceil(BLOCK_KEYS) * ENTRY_LEN + TRAILER_LEN;
        if run.info.count.checked_mul(KEY_LEN).and_then(|keys| keys.checked_add(start + end_len)) != Some(len) {
            return Err(wrong_len());
        }
        run.start = start;
        let end = run.read(len - end_len, end_len)?;
        let (covered, checksum) = end.split_at(end.len() - 16);
        let (entries, count) = covered.split_at(covered.len() - 8);
        if count != run.info.count.to_le_bytes() {
            return Err(run.damaged("its number of keys is not that of the manifest"));
        }
        let found = checksum_of([&run.read(0, start)?, covered]);
        if checksum != found.to_be_bytes() || run.info.checksum != format!("{found:032x}") {
            return Err(run.damaged("its checksum is wrong"));
        }
        run.blocks = entries.chunks_exact(ENTRY_LEN as usize).filter_map(BlockEntry::of_bytes).collect();
        Ok(run)
    }

    fn damaged(&self, reason: &str) -> SeenError {
        SeenError::damaged(&self.path, reason)
    }

    pub(super) fn info(&self) -> &RunInfo {
        &self.info
    }

    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, SeenError> {
        let mut bytes = vec![0; len as usize];
        read_exact_at(&self.file, &mut bytes, at).map_err(SeenError::io(&self.path, "read"))?;
        Ok(bytes)
    }

    fn read_block(&self, block: u64) -> Result<Vec<u8>, SeenError> {
        let first = block * BLOCK_KEYS;
        let count = BLOCK_KEYS.min(self.info.count - first);
        self.read(self.start + first * KEY_LEN, count * KEY_LEN)
    }

    /// Number of blocks.
    pub(super) fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Reads and checks the keys of a block.
    pub(super) fn keys(&self, block: usize) -> Result<Vec<u128>, SeenError> {
        let bytes = self.read_block(block as u64)?;
        if BlockEntry::of(&bytes) != Some(self.blocks[block]) {
            let (first, last) = (block as u64 * BLOCK_KEYS, block as u64 * BLOCK_KEYS + bytes.len() as u64 / KEY_LEN);
            return Err(self.damaged(&format!("the checksum of keys {} to {last} is wrong", first + 1)));
        }
        Ok(bytes.as_chunks().0.iter().map(|key| u128::from_be_bytes(*key)).collect())
    }

    /// The block in which the keys that are at least `key` begin: a key that is less may come before them.
    pub(super) fn block_of(&self, key: u128) -> usize {
        self.blocks.partition_point(|block| block.first <= key).saturating_sub(1)
    }

    /// Reads the whole run, and checks that keys ascend and that checksums are right.
    pub(super) fn verify(&self) -> Result<(), SeenError> {
        let mut last = None;
        for block in 0..self.block_count() {
            for key in self.keys(block)? {
                if last.is_some_and(|last| last >= key) {
                    return Err(self.damaged("its keys are not in order"));
                }
                last = Some(key);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores of earlier builds stay readable.
    #[test]
    fn a_run_is_written_as_described() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::new(directory.path(), "{}").unwrap();
        writer.extend([1, 2, 2]).unwrap();
        writer.extend([2, 0x0300]).unwrap();
        let run = writer.seal().unwrap().persist(directory.path(), "run-000001".to_string()).unwrap();
        let header = b"IRIKEYS2\x02\0\0\0{}";
        let keys = [1_u128, 2, 0x0300].map(u128::to_be_bytes).concat();
        let end = [&1_u128.to_be_bytes()[..], &xxh3_64(&keys).to_be_bytes(), &3_u64.to_le_bytes()].concat();
        let checksum = xxhash_rust::xxh3::xxh3_128(&[&header[..], &end].concat());
        let expected = [&header[..], &keys, &end, &checksum.to_be_bytes()].concat();
        assert_eq!(std::fs::read(directory.path().join("run-000001")).unwrap(), expected);
        assert_eq!((run.count, run.checksum), (3, format!("{checksum:032x}")));
    }

    #[test]
    fn keys_that_are_not_in_order_are_found() {
        for keys in [[1u128, 2], [2, 1], [1, 1]] {
            let directory = tempfile::tempdir().unwrap();
            let mut writer = RunWriter::new(directory.path(), "{}").unwrap();
            keys.iter().for_each(|key| writer.block.extend(key.to_be_bytes()));
            writer.count = 2;
            let info = writer.seal().unwrap().persist(directory.path(), "run-000001".to_string()).unwrap();
            let found = SeenRun::open(directory.path(), info).unwrap().verify();
            let is_refused = found.is_err_and(|error| error.to_string().contains("its keys are not in order"));
            assert_eq!(is_refused, keys[0] >= keys[1], "{keys:?}");
        }
    }
}
