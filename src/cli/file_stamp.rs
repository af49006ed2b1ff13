//! Recognizes an input that an earlier job has read: by its size, time, and a hash of the content.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use xxhash_rust::xxh3::Xxh3;

use super::error::CommandError;
use crate::input::{Origin, Source};
use crate::process::repeat_interrupted;
use crate::remote::RemoteObject;

/// What the hash of an input begins with if it is an entity tag.
const TAG: &str = "etag:";

/// Length and time of the last change ([`nanoseconds`]) of an input.
#[derive(PartialEq, Eq)]
pub(crate) struct FileStamp {
    pub(crate) size: u64,
    pub(crate) modified: u64,
}

impl FileStamp {
    pub(crate) fn of(source: &Source) -> Result<FileStamp, CommandError> {
        if let Origin::Remote(object) = &source.origin {
            return FileStamp::of_object(object);
        }
        let not_a_file = || match &source.origin {
            Origin::Unreadable(defect) => CommandError::Input(format!("{}: {defect}", source.name)),
            Origin::Member(_) => CommandError::Usage(format!(
                "{}: --resume does not take members of archives in stores; fetch the archive first",
                source.name
            )),
            _ => CommandError::Usage(format!(
                "{}: --resume reads only regular files and objects; copy the input to a file",
                source.name
            )),
        };
        let path = source.origin.file().ok_or_else(not_a_file)?;
        let failed = |error| CommandError::unreadable(path, &error);
        let metadata = fs::metadata(path).map_err(failed)?;
        let modified = metadata.modified().map_err(failed)?;
        match metadata.is_file() {
            true => Ok(FileStamp { size: metadata.len(), modified: nanoseconds(modified) }),
            false => Err(not_a_file()),
        }
    }

    /// The stamp of an object, which is requested unless a listing has stated it.
    fn of_object(object: &RemoteObject) -> Result<FileStamp, CommandError> {
        let object = found(object)?;
        let len = || {
            CommandError::Input(format!(
                "{}: the server does not report the length of the object, which --resume needs",
                object.name()
            ))
        };
        Ok(FileStamp { size: object.len().ok_or_else(len)?, modified: object.modified_ns() })
    }

    /// The source is the one from which its part was made: same size, and same time or same content. If there
    /// is an entity tag, it is compared instead of the time.
    pub(crate) fn check(&self, source: &Source, entry: &Value) -> Result<(), CommandError> {
        let has_tag = entry["hash"].as_str().is_some_and(|hash| hash.starts_with(TAG));
        let is_same_time = entry["modified"].as_u64() == Some(self.modified) && !has_tag;
        if entry["size"].as_u64() == Some(self.size) && (is_same_time || has_hash(source, entry)?) {
            return Ok(());
        }
        Err(CommandError::Input(format!(
            "{}: the input has changed since its part was made; remove its entry in the manifest and its part, or use \
             another directory",
            source.name
        )))
    }
}

/// Nanoseconds since 1970, modulo 2^64: also times before 1970 differ.
fn nanoseconds(time: SystemTime) -> u64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => since.as_nanos() as u64,
        Err(before) => (before.duration().as_nanos() as u64).wrapping_neg(),
    }
}

/// The entry states the hash of the source. An object without an entity tag has no hash: only its time shows that it has changed.
fn has_hash(source: &Source, entry: &Value) -> Result<bool, CommandError> {
    let hash = hash_file(source)?;
    Ok(!hash.is_empty() && entry["hash"] == hash)
}

/// The object with its version.
fn found(object: &RemoteObject) -> Result<RemoteObject, CommandError> {
    let failed = |error| CommandError::Input(format!("{}: cannot open: {error}", object.name()));
    object.clone().found().map_err(failed)
}

/// XXH3-128 of the bytes of an input file, or of the member of an archive as stored; the entity tag of an object, which is empty
/// if there is none.
pub(crate) fn hash_file(source: &Source) -> Result<String, CommandError> {
    if let Origin::Remote(object) = &source.origin {
        return Ok(found(object)?.tag().map_or_else(String::new, |tag| format!("{TAG}{tag}")));
    }
    let Some(path) = source.origin.file() else { return Ok(String::new()) };
    let failed = |error| CommandError::unreadable(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut rest = u64::MAX;
    if let Origin::Member(member) = &source.origin {
        file.seek(SeekFrom::Start(member.range.start)).map_err(failed)?;
        rest = member.range.end - member.range.start;
    }
    Ok(format!("{:032x}", hash_bytes(file.take(rest)).map_err(failed)?))
}

/// XXH3-128 of all bytes.
fn hash_bytes(mut bytes: impl Read) -> io::Result<u128> {
    let (mut hasher, mut buffer) = (Xxh3::new(), vec![0; 1 << 20]);
    loop {
        match repeat_interrupted(|| bytes.read(&mut buffer))? {
            0 => return Ok(hasher.digest128()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte at a time, and an interruption before each.
    struct InterruptedReader(&'static [u8], bool);

    impl Read for InterruptedReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.0.read(&mut into[..1])
        }
    }

    #[test]
    fn times_before_1970_differ() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.txt");
        let stamp = |seconds| {
            let file = File::create(&path).unwrap();
            file.set_modified(UNIX_EPOCH - std::time::Duration::from_secs(seconds)).unwrap();
            FileStamp::of(&Source::path(path.clone()).unwrap()).unwrap().modified
        };
        assert_eq!(stamp(0), 0);
        assert_eq!(stamp(1), u64::MAX - 999_999_999);
        assert_ne!(stamp(7), stamp(8));
    }

    #[test]
    fn interrupted_reads_are_repeated() {
        let hash = hash_bytes(InterruptedReader(b"http://example.org/\n", false)).unwrap();
        assert_eq!(hash, xxhash_rust::xxh3::xxh3_128(b"http://example.org/\n"));
    }
}
