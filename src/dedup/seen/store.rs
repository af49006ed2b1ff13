//! The store as a whole: opening, adding, merging, verifying.

use super::cursor::Cursor;
use super::error::SeenError;
use super::merging::{Merge, Merged, first_due};
use super::run_file::{Run, RunInfo, RunWriter, Sealed};
use serde_json::{Map, Value, json};
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const FORMAT: &str = "irikey seen 1";
const MANIFEST: &str = "manifest.json";
const LOCK: &str = "lock";

/// Names and values that keys depend on.
type Policy = Map<String, Value>;

/// A store of seen keys.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    policy: Policy,
    /// Raised by every change.
    generation: u64,
    runs: Vec<Run>,
    /// Held while it may be added to.
    lock: Option<File>,
}

/// What is in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// What its keys depend on.
    pub policy: Vec<(String, String)>,
    /// How often it was changed.
    pub generation: u64,
    /// File, number of keys and checksum of every run, the oldest first.
    pub runs: Vec<(String, u64, String)>,
}

impl Store {
    /// Opens a store to read it.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(directory: &Path) -> Result<Store, SeenError> {
        // Runs may be merged away between reading the manifest and opening them; then there is a newer manifest.
        let mut tries = 0;
        loop {
            match Store::load(directory) {
                Err(SeenError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound && tries < 5 => tries += 1,
                result => return result,
            }
        }
    }

    /// Opens a store to add to it; makes one if there is none.
    ///
    /// # Errors
    /// Another process adds to it; the directory holds something else; the store is damaged.
    pub fn open_to_add(directory: &Path, policy: &[(&str, String)]) -> Result<Store, SeenError> {
        fs::create_dir_all(directory).map_err(SeenError::io(directory, "make the directory"))?;
        let is_new = !directory.join(MANIFEST).exists();
        let mut others = fs::read_dir(directory).map_err(SeenError::io(directory, "list"))?.flatten();
        if is_new && others.any(|entry| !is_ours(&entry.file_name())) {
            return Err(SeenError::NotAStore(directory.to_path_buf()));
        }
        let lock = lock(directory)?;
        // Only now: another process may have changed it meanwhile.
        let mut store = match directory.join(MANIFEST).exists() {
            true => Store::load(directory)?,
            false => Store {
                directory: directory.to_path_buf(),
                policy: policy.iter().map(|(name, value)| (name.to_string(), json!(value))).collect(),
                generation: 0,
                runs: Vec::new(),
                lock: None,
            },
        };
        store.lock = Some(lock);
        store.check_policy(policy)?;
        store.sweep();
        Ok(store)
    }

    /// Takes the lock of a store that is there, to merge it.
    ///
    /// # Errors
    /// There is none; another process adds to it; it is damaged.
    pub fn open_to_merge(directory: &Path) -> Result<Store, SeenError> {
        Store::open(directory)?;
        let lock = lock(directory)?;
        let store = Store { lock: Some(lock), ..Store::load(directory)? };
        store.sweep();
        Ok(store)
    }

    fn load(directory: &Path) -> Result<Store, SeenError> {
        let path = directory.join(MANIFEST);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SeenError::Missing(directory.to_path_buf()));
            }
            text => text.map_err(SeenError::io(&path, "read"))?,
        };
        let torn = || SeenError::damaged(&path, "it is no manifest of seen keys");
        let manifest: Value = serde_json::from_slice(&text).map_err(|_| torn())?;
        if manifest["format"] != FORMAT {
            return Err(torn());
        }
        let runs = manifest["runs"].as_array().ok_or_else(torn)?.iter().map(|run| {
            let text = |name: &str| run[name].as_str().map(str::to_string).ok_or_else(torn);
            let info = RunInfo {
                name: text("name")?,
                count: run["keys"].as_u64().ok_or_else(torn)?,
                checksum: text("checksum")?,
            };
            Run::open(directory, info)
        });
        Ok(Store {
            directory: directory.to_path_buf(),
            policy: manifest["policy"].as_object().ok_or_else(torn)?.clone(),
            generation: manifest["generation"].as_u64().ok_or_else(torn)?,
            runs: runs.collect::<Result<_, _>>()?,
            lock: None,
        })
    }

    /// Its keys are of this policy.
    ///
    /// # Errors
    /// What differs.
    pub fn check_policy(&self, policy: &[(&str, String)]) -> Result<(), SeenError> {
        let there = |name: &str| self.policy.get(name).and_then(Value::as_str).unwrap_or_default();
        let differs = policy.iter().filter(|(name, value)| there(name) != value);
        let differences: Vec<_> =
            differs.map(|(name, value)| format!("{name} is {:?} there and {value:?} here", there(name))).collect();
        match differences.is_empty() {
            true => Ok(()),
            false => {
                Err(SeenError::OtherPolicy { directory: self.directory.clone(), differences: differences.join(", ") })
            }
        }
    }

    /// How many keys there are.
    pub fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.info().count).sum()
    }

    /// What is in it.
    pub fn info(&self) -> Info {
        let pair = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap_or_default().to_string());
        let run = |run: &Run| (run.info().name.clone(), run.info().count, run.info().checksum.clone());
        Info {
            policy: self.policy.iter().map(pair).collect(),
            generation: self.generation,
            runs: self.runs.iter().map(run).collect(),
        }
    }

    /// Its keys, ascending, from the first that is not below `from`.
    ///
    /// # Errors
    /// A run could not be read.
    pub fn cursor(&self, from: u128) -> Result<Cursor<'_>, SeenError> {
        Cursor::new(&self.runs, from)
    }

    /// Reads everything: checksums are right, keys in order and none in two runs.
    ///
    /// # Errors
    /// What is wrong.
    pub fn verify(&self) -> Result<(), SeenError> {
        self.runs.iter().try_for_each(Run::verify)?;
        let (mut cursor, mut last) = (self.cursor(0)?, None);
        while let Some(key) = cursor.take_next()? {
            if last == Some(key) {
                return Err(SeenError::damaged(&self.directory, format!("key {key:032x} is in two runs")));
            }
            last = Some(key);
        }
        Ok(())
    }

    /// Begins a run of keys to add.
    ///
    /// # Errors
    /// The file could not be made.
    pub fn writer(&self) -> Result<RunWriter, SeenError> {
        RunWriter::new(&self.directory, &Value::Object(self.policy.clone()).to_string())
    }

    /// The runs that are to be merged next, if there are several: to be done beside other work, and given to
    /// [`Store::add`].
    ///
    /// # Errors
    /// A run could not be opened, or a file not be made.
    pub fn merge_due(&self) -> Result<Option<Merge>, SeenError> {
        let counts: Vec<u64> = self.runs.iter().map(|run| run.info().count).collect();
        self.merge_from(first_due(&counts))
    }

    fn merge_from(&self, first: usize) -> Result<Option<Merge>, SeenError> {
        match &self.runs[first..] {
            [] | [_] => Ok(None),
            runs => Merge::new(&self.directory, runs, self.writer()?).map(Some),
        }
    }

    /// Adds a run, and takes in what was merged: until this returns, the store is the old one; after, the new one; and
    /// never anything else.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn add(&mut self, writer: RunWriter, merged: Option<Merged>) -> Result<(), SeenError> {
        if writer.count() == 0 && merged.is_none() && self.generation > 0 {
            return Ok(());
        }
        let has_merged = merged.is_some();
        merged.map_or(Ok(()), |merged| self.replace(merged))?;
        if writer.count() > 0 {
            let run = self.name(writer.seal()?)?;
            self.runs.push(run);
        }
        self.commit()?;
        if has_merged {
            self.sweep();
        }
        Ok(())
    }

    /// Merges all runs to one.
    ///
    /// # Errors
    /// A file could not be read or written.
    pub fn merge(&mut self) -> Result<(), SeenError> {
        let Some(merged) = self.merge_from(0)?.map(|merge| merge.run(&AtomicBool::new(false))).transpose()?.flatten()
        else {
            return Ok(());
        };
        self.replace(merged)?;
        self.commit()?;
        self.sweep();
        Ok(())
    }

    /// Puts a merged run where the last ones were that it was made of.
    fn replace(&mut self, Merged { of, run }: Merged) -> Result<(), SeenError> {
        let first = self.runs.len().saturating_sub(of.len());
        if !self.runs[first..].iter().map(Run::info).eq(&of) {
            return Err(SeenError::damaged(&self.directory, "its runs are not those that were merged"));
        }
        let run = self.name(run)?;
        self.runs.truncate(first);
        self.runs.push(run);
        Ok(())
    }

    fn name(&mut self, run: Sealed) -> Result<Run, SeenError> {
        self.generation += 1;
        let info = run.name(&self.directory, format!("run-{:06}", self.generation))?;
        Run::open(&self.directory, info)
    }

    /// Replaces the manifest.
    fn commit(&self) -> Result<(), SeenError> {
        let run = |run: &Run| {
            let RunInfo { name, count, checksum } = run.info();
            json!({"name": name, "keys": count, "checksum": checksum})
        };
        let manifest = json!({
            "format": FORMAT,
            "generation": self.generation,
            "policy": self.policy,
            "runs": self.runs.iter().map(run).collect::<Vec<_>>(),
        });
        let path = self.directory.join(MANIFEST);
        let failed = |operation| SeenError::io(&path, operation);
        sync(&self.directory).map_err(failed("make its runs durable"))?;
        let made = tempfile::Builder::new().prefix(MANIFEST).suffix(".tmp").tempfile_in(&self.directory);
        let mut file = made.map_err(failed("make a file beside it"))?;
        file.write_all(format!("{manifest:#}\n").as_bytes()).map_err(failed("write"))?;
        file.as_file().sync_all().map_err(failed("write to the disk"))?;
        file.persist(&path).map_err(|error| failed("rename")(error.error))?;
        sync(&self.directory).map_err(failed("make its name durable"))
    }

    /// Removes what the manifest does not name: what killed processes left, and what was merged. What cannot be removed
    /// does no harm.
    fn sweep(&self) {
        let is_run = |name: &str| self.runs.iter().any(|run| run.info().name == name);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_ours(name.as_ref().as_ref()) && name != MANIFEST && name != LOCK && !is_run(&name) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// A file that a store makes.
fn is_ours(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name == LOCK || name.starts_with(MANIFEST) || name.starts_with("run-")
}

fn lock(directory: &Path) -> Result<File, SeenError> {
    let path = directory.join(LOCK);
    let file = File::options().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(SeenError::io(&path, "open"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SeenError::Locked(directory.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(SeenError::io(&path, "lock")(error)),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::SeenSet;
    use super::*;
    use crate::dedup::{Scattered, number};
    use std::collections::BTreeSet;

    fn policy(rung: &str) -> [(&'static str, String); 2] {
        [("rung", rung.to_string()), ("key", "xxh3-128".to_string())]
    }

    fn key(i: u64) -> u128 {
        number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    fn add(store: &mut Store, keys: impl Iterator<Item = u128>) {
        let mut writer = store.writer().unwrap();
        writer.extend(keys.collect::<BTreeSet<_>>()).unwrap();
        let merge = store.merge_due().unwrap();
        let merged = merge.and_then(|merge| merge.run(&AtomicBool::new(false)).unwrap());
        store.add(writer, merged).unwrap();
    }

    #[test]
    fn runs_are_added_merged_and_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let all = |store: &Store| {
            let (mut cursor, mut keys) = (store.cursor(0).unwrap(), Vec::new());
            while let Some(key) = cursor.take_next().unwrap() {
                keys.push(key);
            }
            keys
        };
        let mut want = BTreeSet::new();
        for round in 0..9u64 {
            let mut store = Store::open_to_add(directory.path(), &policy("scheme")).unwrap();
            let keys = round * 1_000..round * 1_000 + 500 + round * 37 % 400;
            want.extend(keys.clone().map(key));
            add(&mut store, keys.map(key));
            let store = Store::open(directory.path()).unwrap();
            store.verify().unwrap();
            assert!(all(&store).iter().eq(&want));
            assert!(store.info().runs.len() <= 6);
        }
        let runs = |directory: &Path| fs::read_dir(directory).unwrap().count() - 2;
        // Merging that is stopped, or not taken in, leaves nothing.
        let mut store = Store::open_to_add(directory.path(), &policy("scheme")).unwrap();
        assert!(store.merge_from(0).unwrap().unwrap().run(&AtomicBool::new(true)).unwrap().is_none());
        let late = store.merge_from(0).unwrap().unwrap().run(&AtomicBool::new(false)).unwrap().unwrap();
        add(&mut store, std::iter::empty());
        add(&mut store, [key(1 << 40)].into_iter());
        want.insert(key(1 << 40));
        assert!(matches!(store.replace(late), Err(SeenError::Damaged { .. })));
        drop(store);
        assert_eq!(runs(directory.path()), Store::open(directory.path()).unwrap().info().runs.len());
        let from = *want.iter().nth(777).unwrap();
        let mut store = Store::open_to_merge(directory.path()).unwrap();
        let mut cursor = store.cursor(from).unwrap();
        assert!(cursor.has(from).unwrap() && !cursor.has(from + 1).unwrap());
        drop(cursor);
        store.merge().unwrap();
        assert_eq!((runs(directory.path()), all(&store).len()), (1, want.len()));
        let set = SeenSet::read(&store).unwrap();
        let mut scattered = Scattered::default();
        scattered.scatter((0..12_000).map(|i| (key(i), i as u32)), 0);
        let mut seen = BTreeSet::new();
        set.meet(&scattered, |row| assert!(seen.insert(row)));
        assert!((0..12_000).all(|i| seen.contains(&(i as u32)) == want.contains(&key(i))));
    }

    #[test]
    fn what_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        assert!(matches!(Store::open(&path), Err(SeenError::Missing(_))));
        let mut store = Store::open_to_add(&path, &policy("scheme")).unwrap();
        assert!(matches!(Store::open_to_add(&path, &policy("scheme")), Err(SeenError::Locked(_))));
        add(&mut store, (0..100).map(key));
        drop(store);
        let other = Store::open_to_add(&path, &policy("syntax")).unwrap_err().to_string();
        assert!(other.contains(r#"rung is "scheme" there and "syntax" here"#), "{other}");
        // A run that was cut short, one whose byte was changed, and leftovers.
        let run = path.join("run-000001");
        let whole = fs::read(&run).unwrap();
        fs::write(&run, &whole[..whole.len() - 1]).unwrap();
        assert!(matches!(Store::open(&path), Err(SeenError::Damaged { .. })));
        let mut changed = whole.clone();
        changed[whole.len() - 300] ^= 1;
        fs::write(&run, changed).unwrap();
        assert!(matches!(Store::open(&path).unwrap().verify(), Err(SeenError::Damaged { .. })));
        fs::write(&run, whole).unwrap();
        fs::write(path.join("run-x.tmp"), "left").unwrap();
        Store::open_to_add(&path, &policy("scheme")).unwrap().verify().unwrap();
        assert!(!path.join("run-x.tmp").exists());
        fs::write(path.join(MANIFEST), "{").unwrap();
        assert!(matches!(Store::open(&path), Err(SeenError::Damaged { .. })));
        fs::write(directory.path().join("other"), "").unwrap();
        assert!(matches!(Store::open_to_add(directory.path(), &policy("")), Err(SeenError::NotAStore(_))));
    }
}
