//! A store of the keys of earlier jobs, in a directory: [`SeenStore`].
//!
//! ```text
//! DIR/manifest.json   the policy of the keys, the list of runs and the last finished jobs; replaced atomically by a rename
//! DIR/run-NNNNNN      sorted keys, with their policy and their number
//! DIR/lock            locked by a process that changes the store; the system releases it when the process ends
//! ```
//!
//! Every byte of a run and every value of the manifest is covered by a checksum that readers check. Runs that the manifest does
//! not list are ignored: a process that is killed may leave such files, and the next process that opens the store for changes
//! removes them. A job merges runs when later runs have become more than half as large as earlier ones, so that N keys are in
//! little more than log2 N runs.

mod manifest;
mod merge;
mod run_file;

pub(crate) use manifest::FinishedJob;
pub(crate) use merge::{KeyCursor, MergedRuns, RunMerge, SeenSet};
pub use run_file::SeenError;
pub(crate) use run_file::{RunInfo, RunWriter};

use crate::canon::describe_differences;
use crate::process::{DirectoryLock, NewDirectories, file_names, sync_directory};
use manifest::{MANIFEST, StoreManifest, is_run_name};
use merge::first_run_to_merge;
use run_file::{SealedRun, SeenRun};
use serde_json::{Map, Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const LOCK: &str = "lock";

/// How often a store is opened again because another process replaced its files.
const MAX_RETRIES: usize = 5;

/// A seen store.
#[derive(Debug)]
pub struct SeenStore {
    directory: PathBuf,
    /// Names and values of the settings that keys depend on.
    policy: Map<String, Value>,
    /// The number of runs that have been written. The next run is named after it.
    generation: u64,
    runs: Vec<SeenRun>,
    /// The last jobs that changed the store, the oldest first.
    jobs: Vec<FinishedJob>,
    /// Held by a store that is open for changes.
    lock: Option<DirectoryLock>,
    /// The directories of a new store. Dropped after the lock, whose file is in one of them.
    created: Option<NewDirectories>,
}

/// A description of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreInfo {
    /// The settings that its keys depend on.
    pub(crate) policy: Vec<(String, String)>,
    /// The number of runs that have been written.
    pub(crate) generation: u64,
    /// The runs, the oldest first.
    pub(crate) runs: Vec<RunInfo>,
}

impl SeenStore {
    /// Opens a store for reading.
    ///
    /// # Errors
    /// The store does not exist or is damaged.
    pub fn open(directory: &Path) -> Result<SeenStore, SeenError> {
        // Another process may remove merged runs after this one has read the manifest. Then there is a newer manifest.
        let mut retries = 0;
        loop {
            match SeenStore::load(directory) {
                Err(SeenError::Io { error, .. })
                    if error.kind() == io::ErrorKind::NotFound && retries < MAX_RETRIES =>
                {
                    retries += 1;
                }
                result => return result.map_err(SeenError::missing_as_damaged),
            }
        }
    }

    /// Opens a store to add keys of this policy. Creates the store if it does not exist.
    ///
    /// # Errors
    /// Another process is changing the store; the directory has other files; the store is damaged or of another policy.
    pub(crate) fn open_to_add(directory: &Path, policy: &[(&str, String)]) -> Result<SeenStore, SeenError> {
        if directory.exists() && !directory.is_dir() {
            return Err(SeenError::NotAStore(directory.to_path_buf()));
        }
        let created = NewDirectories::create(directory);
        let created = created.map_err(SeenError::io(directory, "create the directory"))?;
        let is_new = !directory.join(MANIFEST).exists();
        let names = file_names(directory).map_err(SeenError::io(directory, "list"))?;
        if is_new && !names.iter().all(|name| is_store_file(name)) {
            return Err(SeenError::NotAStore(directory.to_path_buf()));
        }
        let lock = lock(directory)?;
        // Loaded after locking, because another process may have changed the store before.
        let mut store = match directory.join(MANIFEST).exists() {
            true => SeenStore::load_locked(directory)?,
            false => SeenStore {
                directory: directory.to_path_buf(),
                policy: policy.iter().map(|(name, value)| (name.to_string(), json!(value))).collect(),
                generation: 0,
                runs: Vec::new(),
                jobs: Vec::new(),
                lock: None,
                created: None,
            },
        };
        (store.lock, store.created) = (Some(lock), Some(created));
        store.check_policy(policy)?;
        store.remove_unlisted_files();
        Ok(store)
    }

    /// Opens an existing store to merge its runs.
    ///
    /// # Errors
    /// The store does not exist, another process is changing it, or it is damaged.
    pub(crate) fn open_to_merge(directory: &Path) -> Result<SeenStore, SeenError> {
        // Locking creates a file, which only a store may get.
        StoreManifest::read(directory)?;
        let lock = lock(directory)?;
        let store = SeenStore { lock: Some(lock), ..SeenStore::load_locked(directory)? };
        store.remove_unlisted_files();
        Ok(store)
    }

    /// Loads a store that this process has locked, so that no other process has just removed a file that the manifest names.
    fn load_locked(directory: &Path) -> Result<SeenStore, SeenError> {
        SeenStore::load(directory).map_err(SeenError::missing_as_damaged)
    }

    fn load(directory: &Path) -> Result<SeenStore, SeenError> {
        let StoreManifest { policy, generation, runs, jobs } = StoreManifest::read(directory)?;
        let runs = runs.into_iter().map(|run| SeenRun::open(directory, run)).collect::<Result<_, _>>()?;
        let directory = directory.to_path_buf();
        Ok(SeenStore { directory, policy, generation, runs, jobs, lock: None, created: None })
    }

    /// Checks that the keys of the store were made with this policy.
    ///
    /// # Errors
    /// [`SeenError::OtherPolicy`].
    pub(crate) fn check_policy(&self, policy: &[(&str, String)]) -> Result<(), SeenError> {
        let stored = |name: &str| self.policy.get(name).and_then(Value::as_str).unwrap_or_default();
        let both = policy.iter().map(|(name, value)| (*name, stored(name), value.as_str()));
        let differences = describe_differences("store", both.filter(|(_, stored, value)| stored != value));
        let error = |differences| SeenError::OtherPolicy { directory: self.directory.clone(), differences };
        differences.map_or(Ok(()), |differences| Err(error(differences)))
    }

    /// Number of keys.
    pub(crate) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.info().count).sum()
    }

    /// Describes the store.
    pub(crate) fn info(&self) -> StoreInfo {
        let pair = |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap_or_default().to_string());
        StoreInfo {
            policy: self.policy.iter().map(pair).collect(),
            generation: self.generation,
            runs: self.runs.iter().map(|run| run.info().clone()).collect(),
        }
    }

    /// The keys in ascending order, from the first that is at least `from`.
    pub(crate) fn cursor(&self, from: u128) -> Result<KeyCursor<'_>, SeenError> {
        KeyCursor::new(&self.runs, from)
    }

    /// Reads the whole store: checksums must be right, keys in order, and no key in two runs.
    pub(crate) fn verify(&self) -> Result<(), SeenError> {
        self.runs.iter().try_for_each(SeenRun::verify)?;
        let (mut cursor, mut last) = (self.cursor(0)?, None);
        while let Some(key) = cursor.next_key()? {
            if last == Some(key) {
                return Err(SeenError::damaged(&self.directory, format!("key {key:032x} is in two runs")));
            }
            last = Some(key);
        }
        Ok(())
    }

    /// Starts a run of new keys.
    pub(crate) fn writer(&self) -> Result<RunWriter, SeenError> {
        RunWriter::new(&self.directory, &Value::Object(self.policy.clone()).to_string())
    }

    /// The merge that is due, if several runs should become one. Pass its result to [`SeenStore::add`].
    pub(crate) fn due_merge(&self) -> Result<Option<RunMerge>, SeenError> {
        let counts: Vec<u64> = self.runs.iter().map(|run| run.info().count).collect();
        self.merge_from(first_run_to_merge(&counts))
    }

    fn merge_from(&self, first: usize) -> Result<Option<RunMerge>, SeenError> {
        match &self.runs[first..] {
            [] | [_] => Ok(None),
            runs => RunMerge::new(&self.directory, runs, self.writer()?).map(Some),
        }
    }

    /// The last jobs that added their keys.
    pub(crate) fn finished_jobs(&self) -> &[FinishedJob] {
        &self.jobs
    }

    /// Adds a run, replaces merged runs and records the job that made the keys. The change is atomic: a reader sees the old store
    /// or the new one.
    pub(crate) fn add(
        &mut self,
        writer: RunWriter,
        merged: Option<MergedRuns>,
        job: Option<FinishedJob>,
    ) -> Result<(), SeenError> {
        if writer.count() == 0 && merged.is_none() && job.is_none() && self.generation > 0 {
            return Ok(());
        }
        // Complete before any run gets its name: if the disk is full, both temporary files are removed.
        let added = if writer.count() > 0 { Some(writer.seal()?) } else { None };
        let has_merged = merged.is_some();
        merged.map_or(Ok(()), |merged| self.replace(merged))?;
        if let Some(added) = added {
            let run = self.persist(added)?;
            self.runs.push(run);
        }
        if let Some(job) = job {
            self.jobs.retain(|other| other.id != job.id);
            self.jobs.push(job);
        }
        self.commit()?;
        if has_merged {
            self.remove_unlisted_files();
        }
        Ok(())
    }

    /// Merges all runs into one.
    pub(crate) fn merge(&mut self) -> Result<(), SeenError> {
        let merge = self.merge_from(0)?;
        let merged = merge.map(|merge| merge.run(&AtomicBool::new(false))).transpose()?.flatten();
        let Some(merged) = merged else { return Ok(()) };
        self.replace(merged)?;
        self.commit()?;
        self.remove_unlisted_files();
        Ok(())
    }

    /// Replaces the last runs by the run that they were merged to.
    fn replace(&mut self, MergedRuns { replaces, run }: MergedRuns) -> Result<(), SeenError> {
        let first = self.runs.len().saturating_sub(replaces.len());
        if !self.runs[first..].iter().map(SeenRun::info).eq(&replaces) {
            return Err(SeenError::damaged(&self.directory, "its runs are not those that were merged"));
        }
        let run = self.persist(run)?;
        self.runs.truncate(first);
        self.runs.push(run);
        Ok(())
    }

    /// Gives a run the next name.
    fn persist(&mut self, run: SealedRun) -> Result<SeenRun, SeenError> {
        self.generation += 1;
        let info = run.persist(&self.directory, format!("run-{:06}", self.generation))?;
        SeenRun::open(&self.directory, info)
    }

    /// Replaces the manifest, when the names of the runs are durable.
    fn commit(&self) -> Result<(), SeenError> {
        sync_directory(&self.directory).map_err(SeenError::io(&self.directory, "make the runs durable"))?;
        let manifest = StoreManifest {
            policy: self.policy.clone(),
            generation: self.generation,
            runs: self.runs.iter().map(|run| run.info().clone()).collect(),
            jobs: self.jobs.clone(),
        };
        manifest.write(&self.directory)
    }

    /// Removes files of merged runs and of killed processes. A file that cannot be removed does no harm.
    fn remove_unlisted_files(&self) {
        let is_listed = |name: &str| self.runs.iter().any(|run| run.info().name == name);
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            if is_run_name(&text) && !is_listed(&text) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// The name of a file that a store creates.
fn is_store_file(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name == LOCK || name == MANIFEST || name.starts_with(".irikey-") || is_run_name(&name)
}

fn lock(directory: &Path) -> Result<DirectoryLock, SeenError> {
    let path = directory.join(LOCK);
    let lock = DirectoryLock::acquire(&path).map_err(SeenError::io(&path, "lock"))?;
    lock.ok_or_else(|| SeenError::Locked(directory.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::{PartitionedKeys, key_number};
    use std::collections::BTreeSet;

    fn policy(rung: &str) -> [(&'static str, String); 2] {
        [("rung", rung.to_string()), ("key", "xxh3-128".to_string())]
    }

    fn key(i: u64) -> u128 {
        key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    fn add(store: &mut SeenStore, keys: impl Iterator<Item = u128>) {
        add_by_job(store, keys, None);
    }

    fn add_by_job(store: &mut SeenStore, keys: impl Iterator<Item = u128>, job: Option<FinishedJob>) {
        let mut writer = store.writer().unwrap();
        writer.extend(keys.collect::<BTreeSet<_>>()).unwrap();
        let merge = store.due_merge().unwrap();
        let merged = merge.and_then(|merge| merge.run(&AtomicBool::new(false)).unwrap());
        store.add(writer, merged, job).unwrap();
    }

    #[test]
    fn runs_are_added_merged_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let all = |store: &SeenStore| {
            let (mut cursor, mut keys) = (store.cursor(0).unwrap(), Vec::new());
            while let Some(key) = cursor.next_key().unwrap() {
                keys.push(key);
            }
            keys
        };
        let is_run = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("run-");
        let count_runs = |directory: &Path| fs::read_dir(directory).unwrap().flatten().filter(is_run).count();
        let mut expected = BTreeSet::new();
        for round in 0..9u64 {
            let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
            let keys = round * 1_000..round * 1_000 + 500 + round * 37 % 400;
            expected.extend(keys.clone().map(key));
            add(&mut store, keys.map(key));
            let store = SeenStore::open(directory.path()).unwrap();
            store.verify().unwrap();
            assert!(all(&store).iter().eq(&expected));
            assert!(store.info().runs.len() <= 6);
            assert_eq!(count_runs(directory.path()), store.info().runs.len(), "merged runs are removed");
        }
        // A merge that is stopped or not used leaves no file.
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        assert!(store.merge_from(0).unwrap().unwrap().run(&AtomicBool::new(true)).unwrap().is_none());
        let late = store.merge_from(0).unwrap().unwrap().run(&AtomicBool::new(false)).unwrap().unwrap();
        add(&mut store, std::iter::empty());
        add(&mut store, [key(1 << 40)].into_iter());
        expected.insert(key(1 << 40));
        assert!(matches!(store.replace(late), Err(SeenError::Damaged { .. })));
        drop(store);
        assert_eq!(count_runs(directory.path()), SeenStore::open(directory.path()).unwrap().info().runs.len());
        let from = *expected.iter().nth(777).unwrap();
        let mut store = SeenStore::open_to_merge(directory.path()).unwrap();
        let mut cursor = store.cursor(from).unwrap();
        assert!(cursor.seek(from).unwrap() && !cursor.seek(from + 1).unwrap());
        drop(cursor);
        store.merge().unwrap();
        assert_eq!((count_runs(directory.path()), all(&store).len()), (1, expected.len()));
        let set = SeenSet::read(store.cursor(0).unwrap()).unwrap();
        let mut keys = PartitionedKeys::default();
        keys.fill((0..12_000).map(|i| (key(i), i as u32)));
        let mut seen = BTreeSet::new();
        set.find(&keys, |row| assert!(seen.insert(row)));
        assert!((0..12_000).all(|i| seen.contains(&(i as u32)) == expected.contains(&key(i))));
    }

    #[test]
    fn unusable_stores_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("seen");
        assert!(matches!(SeenStore::open(&path), Err(SeenError::Missing(_))));
        let mut store = SeenStore::open_to_add(&path, &policy("scheme")).unwrap();
        assert!(matches!(SeenStore::open_to_add(&path, &policy("scheme")), Err(SeenError::Locked(_))));
        add(&mut store, (0..100).map(key));
        drop(store);
        let other = SeenStore::open_to_add(&path, &policy("syntax")).unwrap_err().to_string();
        assert!(other.contains(r#"rung is "scheme" in the store and "syntax" in this run"#), "{other}");
        // A truncated run, a changed byte, and files that a killed process left.
        let run = path.join("run-000001");
        let whole = fs::read(&run).unwrap();
        fs::write(&run, &whole[..whole.len() - 1]).unwrap();
        assert!(matches!(SeenStore::open(&path), Err(SeenError::Damaged { .. })));
        let mut changed = whole.clone();
        changed[whole.len() - 300] ^= 1;
        fs::write(&run, changed).unwrap();
        let error = SeenStore::open(&path).unwrap().verify().unwrap_err().to_string();
        assert!(error.contains("the checksum of keys 1 to 100 is wrong"), "{error}");
        fs::write(&run, whole).unwrap();
        fs::write(path.join("run-000099"), "left").unwrap();
        SeenStore::open_to_add(&path, &policy("scheme")).unwrap().verify().unwrap();
        assert!(!path.join("run-000099").exists());
        let manifests = [
            ("{", "not a manifest of seen keys: EOF while parsing an object at line 1 column 1;"),
            (r#"{"format": "other 1"}"#, "not a manifest"),
            (r#"{"format": "irikey seen 3"}"#, "use the version of irikey that wrote it"),
        ];
        for (manifest, message) in manifests {
            fs::write(path.join(MANIFEST), manifest).unwrap();
            let error = SeenStore::open(&path).unwrap_err();
            assert!(matches!(error, SeenError::Damaged { .. }) && error.to_string().contains(message), "{error}");
        }
        fs::write(directory.path().join("other"), "").unwrap();
        assert!(matches!(SeenStore::open_to_add(directory.path(), &policy("")), Err(SeenError::NotAStore(_))));
        let file = directory.path().join("other");
        assert!(matches!(SeenStore::open(&file), Err(SeenError::NotAStore(_))));
        assert!(matches!(SeenStore::open_to_add(&file, &policy("")), Err(SeenError::NotAStore(_))));
        let error = SeenError::io(&file, "read")(io::Error::from_raw_os_error(5)).to_string();
        assert!(error.ends_with("cannot read: input/output error; the store has not changed"), "{error}");
    }

    #[test]
    fn a_directory_that_is_not_a_store_stays_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path(), &directory.path().join("missing")] {
            assert!(matches!(SeenStore::open_to_merge(path), Err(SeenError::Missing(_))), "{}", path.display());
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    /// A killed job may leave a run that the manifest does not name.
    #[test]
    fn runs_that_are_not_listed_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        add(&mut store, (0..10).map(key));
        drop(store);
        let stray = directory.path().join("run-000007");
        for open in [SeenStore::open_to_merge, |path: &Path| SeenStore::open_to_add(path, &policy("scheme"))] {
            fs::write(&stray, "").unwrap();
            open(directory.path()).unwrap();
            assert!(!stray.exists());
        }
    }

    fn finished_job(id: &str) -> FinishedJob {
        FinishedJob { id: id.into(), times: "b".into(), output_len: 7, status: 4, names: "c".into(), files: "d".into() }
    }

    /// A job that is run again has one entry, the last.
    #[test]
    fn jobs_are_recorded_by_identity() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        for (number, id) in ["a", "b", "a"].into_iter().enumerate() {
            let job = FinishedJob { output_len: number as u64, ..finished_job(id) };
            add_by_job(&mut store, [key(number as u64)].into_iter(), Some(job));
        }
        drop(store);
        let store = SeenStore::open(directory.path()).unwrap();
        let output_len = |id| store.finished_jobs().iter().find(|job| job.id == id).map(|job| job.output_len);
        assert_eq!((output_len("a"), output_len("b"), output_len("c")), (Some(2), Some(1), None));
        assert_eq!(store.jobs.len(), 2);
        drop(store);
        // Also a job without new keys.
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        add_by_job(&mut store, std::iter::empty(), Some(finished_job("c")));
        let store = SeenStore::open(directory.path()).unwrap();
        assert!(store.jobs.iter().any(|job| job.id == "c") && store.jobs.len() == 3 && store.count() == 3);
    }

    /// Damage in a block is found if the block is read, so that it shows which blocks are read.
    #[test]
    fn blocks_without_the_key_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let keys: BTreeSet<u128> = (0..80_000).map(key).collect();
        let sorted: Vec<u128> = keys.iter().copied().collect();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        add(&mut store, keys.into_iter());
        let path = directory.path().join(&store.info().runs[0].name);
        let mut bytes = fs::read(&path).unwrap();
        // Block 10 of 20 begins with key 40,960.
        let damaged = bytes.windows(16).position(|bytes| bytes == sorted[41_000].to_be_bytes()).unwrap();
        bytes[damaged] ^= 1;
        fs::write(&path, bytes).unwrap();
        let mut cursor = store.cursor(sorted[100]).unwrap();
        let before: Vec<usize> = (100..6_000).step_by(7).chain([40_958]).collect();
        let after: Vec<usize> = (45_056..80_000).step_by(997).chain(79_990..80_000).collect();
        for i in before.into_iter().chain(after) {
            assert!(cursor.seek(sorted[i]).unwrap() && cursor.seek(sorted[i]).unwrap(), "{i}");
            assert!(!cursor.seek(sorted[i] + 1).unwrap(), "{i}");
        }
        assert!(!cursor.seek(u128::MAX).unwrap() && cursor.next_key().unwrap().is_none());
        assert!(store.cursor(0).unwrap().seek(sorted[41_001]).is_err());
        assert!(store.cursor(sorted[40_000]).unwrap().seek(sorted[40_959] + 1).is_err());
    }

    #[test]
    fn a_missing_file_is_damage() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        add(&mut store, (0..10).map(key));
        let run = directory.path().join(&store.info().runs[0].name);
        drop(store);
        fs::remove_file(&run).unwrap();
        let open_to_add = |path: &Path| SeenStore::open_to_add(path, &policy("scheme"));
        for open in [SeenStore::open, open_to_add, SeenStore::open_to_merge, SeenStore::load_locked] {
            assert!(matches!(open(directory.path()), Err(SeenError::Damaged { path, .. }) if path == run));
        }
    }

    /// Flips one bit of each byte of each file of a store. Everything that a reader returns is as before, or an error.
    #[test]
    fn every_flipped_bit_is_found() {
        let keys: BTreeSet<u128> = (0..5_000).map(key).collect();
        let probes: Vec<u128> = keys.iter().copied().step_by(499).chain((6_000..6_010).map(key)).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        add_by_job(&mut store, keys.iter().copied().take(4_700), Some(finished_job("a")));
        add(&mut store, keys.iter().copied().skip(4_700));
        drop(store);
        let read = || -> Result<_, SeenError> {
            let store = SeenStore::open(directory.path())?;
            let (mut cursor, mut all) = (store.cursor(0)?, Vec::new());
            while let Some(key) = cursor.next_key()? {
                all.push(key);
            }
            let find = |key: &u128| store.cursor(*key)?.seek(*key);
            let found: Vec<bool> = probes.iter().map(find).collect::<Result<_, _>>()?;
            Ok((store.info().policy, store.jobs, all, found))
        };
        let expected = read().unwrap();
        let (mut errors, mut flips) = (0, 0);
        for entry in fs::read_dir(directory.path()).unwrap().flatten() {
            let (path, whole) = (entry.path(), fs::read(entry.path()).unwrap());
            let step = if whole.len() > 10_000 { 331 } else { 2 };
            for at in (0..whole.len()).filter(|at| at % step == 0 || at + 80 > whole.len() || *at < 80) {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                fs::write(&path, bytes).unwrap();
                let found = read();
                match &found {
                    Ok(found) => assert!(*found == expected, "{}: byte {at}", path.display()),
                    Err(SeenError::Damaged { .. } | SeenError::Io { .. }) => errors += 1,
                    Err(error) => panic!("{error}"),
                }
                flips += 1;
            }
            fs::write(&path, whole).unwrap();
        }
        assert!(errors * 10 > flips * 8, "only {errors} of {flips} flipped bits have an effect");
    }

    /// Writes a manifest of these runs, with the right checksum.
    fn write_manifest(directory: &Path, runs: Value) {
        let manifest = json!({"format": "irikey seen 2", "generation": 1, "policy": {}, "runs": runs});
        let mut manifest = manifest.as_object().unwrap().clone();
        manifest.insert("checksum".to_string(), json!(manifest::checksum_of(&manifest)));
        fs::write(directory.join(MANIFEST), Value::Object(manifest).to_string()).unwrap();
    }

    #[test]
    fn a_manifest_with_wrong_names_or_numbers_is_refused() {
        let refused = |run: Value| {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("run-1"), [&b"IRIKEYS2"[..], &[0; 28]].concat()).unwrap();
            write_manifest(directory.path(), json!([run]));
            matches!(SeenStore::open(directory.path()), Err(SeenError::Damaged { .. }))
        };
        for name in ["../run-1", "/run-1", "run-1/x", "run-", "run-x", "lock", ""] {
            assert!(refused(json!({"name": name, "keys": 0, "checksum": ""})), "{name}");
        }
        for count in [1, 2, 1 << 60, u64::MAX / 16, u64::MAX / 16 + 1, u64::MAX] {
            assert!(refused(json!({"name": "run-1", "keys": count, "checksum": ""})), "{count}");
        }
        assert!(refused(json!({"name": "run-1", "keys": -1, "checksum": ""})));
    }

    /// Writes a run of `keys`, in this order.
    fn add_run(store: &mut SeenStore, keys: &[u128]) {
        let mut writer = store.writer().unwrap();
        writer.extend(keys.iter().copied()).unwrap();
        store.add(writer, None, None).unwrap();
    }

    /// What a verification finds in a store with these runs, whose checksums are right.
    fn verified(runs: &[&[u128]]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut store = SeenStore::open_to_add(directory.path(), &policy("scheme")).unwrap();
        runs.iter().for_each(|keys| add_run(&mut store, keys));
        drop(store);
        let found = SeenStore::open(directory.path()).unwrap().verify();
        found.map_or_else(|error| error.to_string(), |()| "sound".to_string())
    }

    #[test]
    fn keys_that_are_in_two_runs_are_found() {
        assert_eq!(verified(&[&[1, 2], &[3, 4]]), "sound");
        assert!(verified(&[&[1, 2], &[3, 4], &[2, 5]]).contains("key 00000000000000000000000000000002 is in two runs"));
    }

    #[test]
    fn a_store_has_fewer_than_2_to_the_64_keys() {
        let directory = tempfile::tempdir().unwrap();
        let run = |number: u32, count: u64| json!({"name": format!("run-{number}"), "keys": count, "checksum": "0"});
        write_manifest(directory.path(), json!([run(1, u64::MAX), run(2, 1)]));
        let error = SeenStore::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains("its numbers of keys are wrong"), "{error}");
    }
}
