//! A file of sorted keys in a store: [`RunWriter`] writes it under a temporary name, [`SeenRun`] reads it.
//!
//! Format: the magic bytes `IRIKEYS1`; the length of the policy (32 bits, little-endian) and the policy; the keys, ascending,
//! 16 bytes each; the number of keys (64 bits, little-endian); the XXH3-128 of the keys.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempPath;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"IRIKEYS1";
/// Bytes before the policy.
const HEADER_LEN: u64 = 12;
const KEY_LEN: u64 = 16;
/// Number of keys, checksum.
const TRAILER_LEN: u64 = 8 + 16;
/// Bytes that are written at a time.
pub(super) const BUFFER_LEN: usize = 1 << 18;

/// Why a store of seen keys cannot be used. The store has not changed.
#[derive(Debug, thiserror::Error)]
pub enum SeenError {
    /// The store does not exist.
    #[error("{}: no store of seen keys exists there; create one with dedup --update-seen", .0.display())]
    Missing(PathBuf),
    /// The directory has other files.
    #[error("{}: the directory has other files than a store of seen keys; choose another directory", .0.display())]
    NotAStore(PathBuf),
    /// Another process is changing the store.
    #[error(
        "{}: another process is changing this store of seen keys; wait until it has finished, or use another store",
        .0.display()
    )]
    Locked(PathBuf),
    /// The keys of the store do not compare with those of this run.
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
    /// A file is not what the manifest says.
    #[error("{}: damaged: {reason}; restore the store from a copy, or start a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file operation failed.
    #[error("{}: cannot {operation}: {error}; the store has not changed", path.display())]
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

    /// Makes the argument of `map_err`.
    pub(super) fn io(path: &Path, operation: &'static str) -> impl FnOnce(io::Error) -> SeenError {
        let path = path.to_path_buf();
        move |error| SeenError::Io { path, operation, error }
    }
}

/// What the manifest says about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunInfo {
    /// Name of the file.
    pub(crate) name: String,
    /// Number of keys.
    pub(crate) count: u64,
    /// XXH3-128 of the keys, in hexadecimal.
    pub(crate) checksum: String,
}

/// Writes a run.
#[derive(Debug)]
pub(crate) struct RunWriter {
    file: BufWriter<File>,
    temporary: TempPath,
    hash: DebugXxh3,
    count: u64,
    last: Option<u128>,
}

/// [`Xxh3`] with a short `Debug`.
struct DebugXxh3(Xxh3);

impl std::fmt::Debug for DebugXxh3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Xxh3")
    }
}

impl RunWriter {
    /// A run in `directory`, of keys of this policy.
    pub(super) fn new(directory: &Path, policy: &str) -> Result<RunWriter, SeenError> {
        let mut builder = tempfile::Builder::new();
        let created = builder.prefix("run-").suffix(".tmp").tempfile_in(directory);
        let (file, temporary) = created.map_err(SeenError::io(directory, "create a file there"))?.into_parts();
        let mut writer = RunWriter {
            file: BufWriter::with_capacity(BUFFER_LEN, file),
            temporary,
            hash: DebugXxh3(Xxh3::new()),
            count: 0,
            last: None,
        };
        let policy_len = (policy.len() as u32).to_le_bytes();
        [MAGIC.as_slice(), &policy_len, policy.as_bytes()].into_iter().try_for_each(|bytes| writer.write(bytes))?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), SeenError> {
        self.file.write_all(bytes).map_err(SeenError::io(&self.temporary, "write"))
    }

    /// Appends keys in ascending order. A key that is equal to the one before it is ignored.
    pub(crate) fn extend(&mut self, keys: impl IntoIterator<Item = u128>) -> Result<(), SeenError> {
        for key in keys {
            debug_assert!(self.last.is_none_or(|last| last <= key), "keys are sorted");
            if self.last.is_none_or(|last| last < key) {
                let bytes = key.to_be_bytes();
                self.hash.0.update(&bytes);
                self.write(&bytes)?;
                self.count += 1;
                self.last = Some(key);
            }
        }
        Ok(())
    }

    /// Number of keys.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Completes the file and makes it durable, still under its temporary name.
    pub(super) fn seal(mut self) -> Result<SealedRun, SeenError> {
        let hash = self.hash.0.digest128();
        self.write(&self.count.to_le_bytes())?;
        self.write(&hash.to_be_bytes())?;
        let RunWriter { file, temporary, count, .. } = self;
        let file = file.into_inner().map_err(|error| SeenError::io(&temporary, "write")(error.into_error()))?;
        file.sync_all().map_err(SeenError::io(&temporary, "write to the disk"))?;
        Ok(SealedRun { temporary, count, checksum: format!("{hash:032x}") })
    }
}

/// A complete run under a temporary name. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct SealedRun {
    temporary: TempPath,
    count: u64,
    checksum: String,
}

impl SealedRun {
    /// Gives the file its name.
    pub(super) fn persist(self, directory: &Path, name: String) -> Result<RunInfo, SeenError> {
        let SealedRun { temporary, count, checksum } = self;
        let path = directory.join(&name);
        temporary.persist(&path).map_err(|error| SeenError::io(&path, "rename")(error.error))?;
        Ok(RunInfo { name, count, checksum })
    }
}

/// A run that is read.
#[derive(Debug)]
pub(super) struct SeenRun {
    path: PathBuf,
    file: Mutex<File>,
    /// Offset of the first key.
    start: u64,
    info: RunInfo,
}

impl SeenRun {
    /// Opens a run and checks its length and number of keys.
    pub(super) fn open(directory: &Path, info: RunInfo) -> Result<SeenRun, SeenError> {
        let path = directory.join(&info.name);
        let file = File::open(&path).map_err(SeenError::io(&path, "open"))?;
        let len = file.metadata().map_err(SeenError::io(&path, "read"))?.len();
        let mut run = SeenRun { path, file: Mutex::new(file), start: HEADER_LEN, info };
        let header = run.read(0, HEADER_LEN.min(len))?;
        let policy_len = header.get(8..).and_then(|bytes| bytes.first_chunk());
        run.start += policy_len.map_or(0, |len| u64::from(u32::from_le_bytes(*len)));
        if !header.starts_with(MAGIC) || len != run.start + run.info.count * KEY_LEN + TRAILER_LEN {
            let reason = format!("{len} bytes is not the length of a run of {} keys", run.info.count);
            return Err(SeenError::damaged(&run.path, reason));
        }
        let count = run.read(len - TRAILER_LEN, 8)?;
        if count != run.info.count.to_le_bytes() {
            return Err(SeenError::damaged(&run.path, "its number of keys is not that of the manifest"));
        }
        Ok(run)
    }

    pub(super) fn info(&self) -> &RunInfo {
        &self.info
    }

    fn read(&self, at: u64, len: u64) -> Result<Vec<u8>, SeenError> {
        let mut bytes = vec![0; len as usize];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(SeenError::io(&self.path, "read"))?;
        Ok(bytes)
    }

    /// Reads at most `count` keys from number `first` on.
    pub(super) fn keys(&self, first: u64, count: u64) -> Result<Vec<u128>, SeenError> {
        let count = count.min(self.info.count - first);
        let bytes = self.read(self.start + first * KEY_LEN, count * KEY_LEN)?;
        Ok(bytes.as_chunks().0.iter().map(|key| u128::from_be_bytes(*key)).collect())
    }

    /// Number of keys that are less than `key`.
    pub(super) fn count_less(&self, key: u128) -> Result<u64, SeenError> {
        let (mut low, mut high) = (0, self.info.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.keys(middle, 1)?.first().is_some_and(|found| *found < key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        Ok(low)
    }

    /// Reads the whole run, and checks that keys ascend and that the checksum is right.
    pub(super) fn verify(&self) -> Result<(), SeenError> {
        let (mut hash, mut last, mut at) = (Xxh3::new(), None, 0);
        while at < self.info.count {
            let keys = self.keys(at, 1 << 16)?;
            for key in &keys {
                if last.is_some_and(|last| last >= *key) {
                    return Err(SeenError::damaged(&self.path, "its keys are not in order"));
                }
                last = Some(*key);
                hash.update(&key.to_be_bytes());
            }
            at += keys.len() as u64;
        }
        let checksum = hash.digest128();
        let trailer = self.read(self.start + self.info.count * KEY_LEN + 8, 16)?;
        if format!("{checksum:032x}") != self.info.checksum || trailer != checksum.to_be_bytes() {
            return Err(SeenError::damaged(&self.path, "its checksum is wrong"));
        }
        Ok(())
    }
}
