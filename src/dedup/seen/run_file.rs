//! A file of sorted keys: magic, policy, keys, number of keys, checksum. Written once, from left to right, under a
//! temporary name; read from any key on.

use super::error::SeenError;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::TempPath;
use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"IRIKEYS1";
const KEY_LEN: u64 = 16;
/// Number of keys, checksum.
const TRAILER_LEN: u64 = 8 + 16;

/// A run that is being written.
#[derive(Debug)]
pub struct RunWriter {
    file: BufWriter<File>,
    temporary: TempPath,
    hash: Xxh3Debug,
    count: u64,
    last: Option<u128>,
}

/// [`Xxh3`] says too much of itself.
struct Xxh3Debug(Xxh3);

impl std::fmt::Debug for Xxh3Debug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Xxh3")
    }
}

/// What a manifest says of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// Its file.
    pub name: String,
    /// How many keys it has.
    pub count: u64,
    /// Of its keys, in hexadecimal.
    pub checksum: String,
}

impl RunWriter {
    /// A run in `directory`, of keys of this policy.
    pub(super) fn new(directory: &Path, policy: &str) -> Result<RunWriter, SeenError> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix("run-").suffix(".tmp").tempfile_in(directory);
        let (file, temporary) = made.map_err(SeenError::io(directory, "make a file there"))?.into_parts();
        let mut writer = RunWriter {
            file: BufWriter::with_capacity(1 << 18, file),
            temporary,
            hash: Xxh3Debug(Xxh3::new()),
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

    /// Appends keys, each greater than the one before; one that is not is left out, for it is there already.
    ///
    /// # Errors
    /// The file could not be written.
    pub fn extend(&mut self, keys: impl IntoIterator<Item = u128>) -> Result<(), SeenError> {
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

    /// How many keys it has.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Ends it and makes its bytes durable, under the temporary name still.
    pub(super) fn seal(mut self) -> Result<Sealed, SeenError> {
        let hash = self.hash.0.digest128();
        self.write(&self.count.to_le_bytes())?;
        self.write(&hash.to_be_bytes())?;
        let RunWriter { file, temporary, count, .. } = self;
        let file = file.into_inner().map_err(|error| SeenError::io(&temporary, "write")(error.into_error()))?;
        file.sync_all().map_err(SeenError::io(&temporary, "write to the disk"))?;
        Ok(Sealed { temporary, count, checksum: format!("{hash:032x}") })
    }
}

/// A run that is whole and has no name yet; dropped, it is gone.
#[derive(Debug)]
pub struct Sealed {
    temporary: TempPath,
    count: u64,
    checksum: String,
}

impl Sealed {
    /// Gives it its name.
    pub(super) fn name(self, directory: &Path, name: String) -> Result<RunInfo, SeenError> {
        let Sealed { temporary, count, checksum } = self;
        let path = directory.join(&name);
        temporary.persist(&path).map_err(|error| SeenError::io(&path, "rename")(error.error))?;
        Ok(RunInfo { name, count, checksum })
    }
}

/// A run that is read.
#[derive(Debug)]
pub struct Run {
    path: PathBuf,
    file: Mutex<File>,
    /// Where keys begin.
    start: u64,
    info: RunInfo,
}

impl Run {
    /// Opens a run and looks whether it is whole.
    pub(super) fn open(directory: &Path, info: RunInfo) -> Result<Run, SeenError> {
        let path = directory.join(&info.name);
        let file = File::open(&path).map_err(SeenError::io(&path, "open"))?;
        let len = file.metadata().map_err(SeenError::io(&path, "read"))?.len();
        let mut run = Run { path, file: Mutex::new(file), start: 12, info };
        let head = run.bytes(0, 12.min(len))?;
        let policy_len =
            head.get(8..12).and_then(|bytes| bytes.first_chunk()).map_or(0, |len| u32::from_le_bytes(*len));
        run.start += u64::from(policy_len);
        if !head.starts_with(MAGIC) || len != run.start + run.info.count * KEY_LEN + TRAILER_LEN {
            return Err(SeenError::damaged(&run.path, format!("{len} bytes are not those of {} keys", run.info.count)));
        }
        let count = run.bytes(len - TRAILER_LEN, 8)?;
        if count != run.info.count.to_le_bytes() {
            return Err(SeenError::damaged(&run.path, "it ends with another number of keys than the manifest has"));
        }
        Ok(run)
    }

    /// What the manifest says of it.
    pub fn info(&self) -> &RunInfo {
        &self.info
    }

    fn bytes(&self, at: u64, len: u64) -> Result<Vec<u8>, SeenError> {
        use std::io::Read;
        let mut bytes = vec![0; len as usize];
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(SeenError::io(&self.path, "read"))?;
        Ok(bytes)
    }

    /// Keys from number `first` on, at most `most`.
    pub(super) fn keys(&self, first: u64, most: u64) -> Result<Vec<u128>, SeenError> {
        let count = most.min(self.info.count - first);
        let bytes = self.bytes(self.start + first * KEY_LEN, count * KEY_LEN)?;
        Ok(bytes.as_chunks().0.iter().map(|key| u128::from_be_bytes(*key)).collect())
    }

    /// Number of the first key that is not below `key`.
    pub(super) fn find(&self, key: u128) -> Result<u64, SeenError> {
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

    /// Reads it all: keys ascend, and the checksum is right.
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
        let trailer = self.bytes(self.start + self.info.count * KEY_LEN + 8, 16)?;
        if format!("{checksum:032x}") != self.info.checksum || trailer != checksum.to_be_bytes() {
            return Err(SeenError::damaged(&self.path, "its checksum is wrong"));
        }
        Ok(())
    }
}
