//! Power loss: every state in which a power failure may leave the files of a job is made, and the next job must find the old
//! state or the new one.
//!
//! `strace` records the system calls of a job that change files. A model of the file system replays them. At any moment, the
//! data of a file is certain up to the last fsync of the file, and a name is certain if its directory was synced after it was
//! made, changed or removed. The rest may have reached the disk or not: later data is lost, torn, replaced by zeros or
//! complete, and each subset of the other changes of names is tried.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::irikey;

/// A system call that changes files, or makes changes durable.
#[derive(Clone, Debug, PartialEq)]
enum Call {
    /// A file was opened, and created if it did not exist.
    Create(PathBuf),
    Mkdir(PathBuf),
    Write(PathBuf, Vec<u8>),
    SetLen(PathBuf, usize),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Remove(PathBuf),
}

/// Runs a command and returns its calls for files below `root`.
fn record(arguments: &[String], root: &Path) -> Vec<Call> {
    let log = root.with_extension("strace");
    let calls = "trace=open,openat,creat,write,writev,pwrite64,pwritev,truncate,ftruncate,fallocate,fsync,fdatasync,rename,\
                 renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,copy_file_range,sendfile";
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-xx", "-s", "100000000", "-e", calls, "-e", "signal=none", "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_irikey")).args(arguments).stdin(Stdio::null());
    let ran = command.output().expect("strace is required: apt-get install strace");
    assert!(ran.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    let text = fs::read_to_string(&log).unwrap();
    let calls = whole_lines(&text).into_iter().filter_map(|line| parse(&line));
    let is_below = |call: &Call| match call {
        Call::Create(path) | Call::Mkdir(path) | Call::Write(path, _) | Call::SetLen(path, _) => path.starts_with(root),
        Call::Sync(path) | Call::Rename(_, path) | Call::Link(_, path) | Call::Remove(path) => path.starts_with(root),
    };
    calls.filter(is_below).collect()
}

/// The calls of a log, in the order in which they began: a line that ends early is joined with the line that goes on.
fn whole_lines(log: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut unfinished: HashMap<&str, usize> = HashMap::new();
    for line in log.lines() {
        let (process, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(begin) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(process, lines.len());
            lines.push(begin.to_string());
        } else if let Some((_, rest)) = call.strip_prefix("<... ").and_then(|rest| rest.split_once("resumed>")) {
            lines[unfinished.remove(process).unwrap()] += rest;
        } else {
            lines.push(call.to_string());
        }
    }
    lines
}

/// The change that a call made; `None` if it made none.
fn parse(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(") = ").or_else(|| rest.rsplit_once(')'))?;
    let result = result.trim_start_matches([' ', '=']);
    if result.starts_with('-') || result.starts_with('?') {
        return None;
    }
    let texts: Vec<Vec<u8>> = arguments.split('"').skip(1).step_by(2).map(decode).collect();
    let path = |i: usize| PathBuf::from(String::from_utf8(texts[i].clone()).unwrap());
    // The path of a descriptor; files without a name have none.
    let of_descriptor = |text: &str| -> Option<PathBuf> {
        let (_, path) = text.split_once('<')?;
        let path = String::from_utf8(decode(&path[..path.rfind('>')?])).ok()?;
        (path.starts_with('/') && !path.contains("(deleted)") && !path.contains('#')).then(|| PathBuf::from(path))
    };
    let first = || of_descriptor(arguments.split(", ").next()?);
    let number = || arguments.rsplit(", ").next()?.parse().ok();
    Some(match name {
        "open" | "openat" | "creat" if arguments.contains("O_TMPFILE") => return None,
        "open" | "openat" | "creat" if arguments.contains("O_CREAT") => Call::Create(of_descriptor(result)?),
        "open" | "openat" => {
            assert!(!arguments.contains("O_TRUNC") || path(0).starts_with("/dev"), "{line}");
            return None;
        }
        "mkdir" | "mkdirat" => Call::Mkdir(path(0)),
        "write" => Call::Write(first()?, texts.into_iter().next()?),
        "ftruncate" => Call::SetLen(first()?, number()?),
        "fsync" | "fdatasync" => Call::Sync(first()?),
        "rename" | "renameat" | "renameat2" => Call::Rename(path(0), path(1)),
        "link" | "linkat" => Call::Link(path(0), path(1)),
        "unlink" | "unlinkat" | "rmdir" => Call::Remove(path(0)),
        _ => {
            assert!(first().is_none(), "the model does not know this call: {line}");
            return None;
        }
    })
}

/// Bytes that strace printed as `\xNN`.
fn decode(text: &str) -> Vec<u8> {
    if !text.starts_with("\\x") {
        return text.as_bytes().to_vec();
    }
    text.as_bytes()
        .chunks(4)
        .map(|hex| u8::from_str_radix(std::str::from_utf8(&hex[2..]).unwrap(), 16).unwrap())
        .collect()
}

/// Files and directories by path; a directory has no contents.
pub(super) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

pub(super) fn tree(root: &Path) -> Tree {
    let mut found = Tree::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            let is_directory = entry.file_type().unwrap().is_dir();
            found.insert(path.clone(), (!is_directory).then(|| fs::read(&path).unwrap()));
            if is_directory {
                todo.push(path);
            }
        }
    }
    found
}

pub(super) fn write_tree(root: &Path, tree: &Tree) {
    let _ = fs::remove_dir_all(root);
    fs::create_dir(root).unwrap();
    for (path, contents) in tree {
        match contents {
            None => fs::create_dir(path).unwrap(),
            Some(bytes) => fs::write(path, bytes).unwrap(),
        }
    }
}

/// A change of names in a directory.
#[derive(Clone, Debug)]
struct NameChange {
    /// Names, each with the file that it has now.
    set: Vec<(PathBuf, Option<usize>)>,
    /// The call after which it is certain.
    certain_at: usize,
}

/// The contents of a file after each call that changed them.
#[derive(Clone, Debug, Default)]
struct FileHistory {
    versions: Vec<(usize, Option<Vec<u8>>)>,
    syncs: Vec<usize>,
}

/// What reached the disk of the data that was not synced.
#[derive(Clone, Copy, Debug)]
enum Unsynced {
    Lost,
    Torn,
    Zeros,
    Complete,
}

impl FileHistory {
    fn at(&self, call: usize) -> Option<Vec<u8>> {
        self.versions.iter().rev().find(|(at, _)| *at < call).map_or(Some(Vec::new()), |(_, bytes)| bytes.clone())
    }

    /// The contents after a power failure before `call`.
    fn after_failure(&self, call: usize, unsynced: Unsynced) -> Option<Vec<u8>> {
        let now = self.at(call)?;
        let synced = self.syncs.iter().rev().find(|at| **at < call).map_or(0, |at| *at);
        let certain = self.at(synced.max(1)).unwrap_or_default();
        if now == certain {
            return Some(now);
        }
        let common = certain.iter().zip(&now).take_while(|(a, b)| a == b).count();
        Some(match unsynced {
            Unsynced::Lost => certain,
            Unsynced::Torn => now[..common + (now.len() - common) / 2].to_vec(),
            Unsynced::Zeros => [&now[..common], &vec![0; now.len() - common]].concat(),
            Unsynced::Complete => now,
        })
    }
}

/// The calls of a job, as changes of files and of names.
struct Replay {
    before: HashMap<PathBuf, usize>,
    files: Vec<FileHistory>,
    changes: Vec<(usize, NameChange)>,
    call_count: usize,
}

impl Replay {
    fn new(before: &Tree, calls: &[Call]) -> Replay {
        let mut files: Vec<FileHistory> = Vec::new();
        let mut new_file = |bytes: Option<Vec<u8>>| {
            files.push(FileHistory { versions: vec![(0, bytes)], syncs: vec![0] });
            files.len() - 1
        };
        let names: HashMap<PathBuf, usize> =
            before.iter().map(|(path, bytes)| (path.clone(), new_file(bytes.clone()))).collect();
        let mut replay = Replay { before: names.clone(), files, changes: Vec::new(), call_count: calls.len() + 1 };
        let mut names = names;
        for (at, call) in calls.iter().enumerate().map(|(at, call)| (at + 1, call)) {
            replay.add(at, call, &mut names, calls);
        }
        replay
    }

    fn add(&mut self, at: usize, call: &Call, names: &mut HashMap<PathBuf, usize>, calls: &[Call]) {
        let set = match call {
            Call::Create(path) if names.contains_key(path) => return,
            Call::Create(path) | Call::Mkdir(path) => {
                let bytes = matches!(call, Call::Create(_)).then(Vec::new);
                self.files.push(FileHistory { versions: vec![(0, bytes)], syncs: vec![] });
                vec![(path.clone(), Some(self.files.len() - 1))]
            }
            Call::Link(from, to) => vec![(to.clone(), Some(names[from]))],
            Call::Rename(from, to) => vec![(to.clone(), Some(names[from])), (from.clone(), None)],
            Call::Remove(path) => vec![(path.clone(), None)],
            Call::Write(path, _) | Call::SetLen(path, _) | Call::Sync(path) => {
                if let Some(file) = names.get(path).map(|file| &mut self.files[*file]) {
                    let mut bytes = file.at(at).unwrap_or_default();
                    match call {
                        Call::Write(_, more) => bytes.extend(more),
                        Call::SetLen(_, len) => bytes.resize(*len, 0),
                        _ => return file.syncs.push(at),
                    }
                    file.versions.push((at, Some(bytes)));
                }
                return;
            }
        };
        for (path, file) in &set {
            match file {
                Some(file) => drop(names.insert(path.clone(), *file)),
                None => drop(names.remove(path)),
            }
        }
        let parent = set[0].0.parent().unwrap();
        let is_sync = |(_, call): &(usize, &Call)| matches!(call, Call::Sync(path) if path == parent);
        let later = calls.iter().enumerate().skip(at).find(is_sync);
        let certain_at = later.map_or(usize::MAX, |(index, _)| index + 1);
        self.changes.push((at, NameChange { set, certain_at }));
    }

    /// All states after a power failure at any moment.
    fn states(&self) -> Vec<Tree> {
        let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
        for call in 1..=self.call_count {
            let made: Vec<&NameChange> =
                self.changes.iter().filter(|(at, _)| *at < call).map(|(_, change)| change).collect();
            let uncertain: Vec<usize> = (0..made.len()).filter(|i| made[*i].certain_at >= call).collect();
            for lost in subsets(&uncertain) {
                for unsynced in [Unsynced::Lost, Unsynced::Torn, Unsynced::Zeros, Unsynced::Complete] {
                    let kept = made.iter().enumerate().filter(|(i, _)| !lost.contains(i)).map(|(_, change)| *change);
                    let state = self.state(call, kept, unsynced);
                    let mut hasher = DefaultHasher::new();
                    state.hash(&mut hasher);
                    if seen.insert(hasher.finish()) {
                        found.push(state);
                    }
                }
            }
        }
        found
    }

    fn state<'a>(&self, call: usize, changes: impl Iterator<Item = &'a NameChange>, unsynced: Unsynced) -> Tree {
        let mut names: BTreeMap<&Path, usize> =
            self.before.iter().map(|(path, file)| (path.as_path(), *file)).collect();
        for (path, file) in changes.flat_map(|change| &change.set) {
            match file {
                Some(file) => drop(names.insert(path, *file)),
                None => drop(names.remove(path.as_path())),
            }
        }
        let mut state = Tree::new();
        for (path, file) in names {
            let parent = path.parent().unwrap();
            // What is in a directory whose name was lost is lost with it.
            let has_parent = state.get(parent).is_some_and(Option::is_none) || !self.is_inner(parent);
            if has_parent {
                state.insert(path.to_path_buf(), self.files[file].after_failure(call, unsynced));
            }
        }
        state
    }

    /// The path is a directory that was there before, or that the job made.
    fn is_inner(&self, path: &Path) -> bool {
        self.before.contains_key(path)
            || self.changes.iter().any(|(_, change)| change.set.iter().any(|(set, _)| set == path))
    }
}

/// All subsets of a few changes; of many, those of the last few, each single one, and all.
fn subsets(changes: &[usize]) -> Vec<Vec<usize>> {
    const MOST: usize = 5;
    let last = &changes[changes.len().saturating_sub(MOST)..];
    let mut subsets: Vec<Vec<usize>> = (0u32..1 << last.len())
        .map(|mask| last.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).map(|(_, change)| *change).collect())
        .collect();
    subsets.extend(changes.iter().map(|change| vec![*change]));
    subsets.push(changes.to_vec());
    subsets
}

/// Records a job in `root`, makes all states, and calls `check` in each. Returns the number of states. `check` gets the
/// files before and after the job.
fn replay(arguments: &[String], root: &Path, check: impl Fn(&Tree, &Tree, &str)) -> usize {
    let before = tree(root);
    let calls = record(arguments, root);
    let after = tree(root);
    let states = Replay::new(&before, &calls).states();
    assert!(states.contains(&before) && states.contains(&after), "the states before and after the job are among all");
    for (number, state) in states.iter().enumerate() {
        write_tree(root, state);
        check(&before, &after, &format!("state {number} of {}: {:?}", states.len(), state.keys()));
    }
    println!("{}: {} calls, {} states", arguments[0], calls.len(), states.len());
    states.len()
}

fn run(arguments: &[String]) -> (Option<i32>, String) {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = irikey(&arguments, b"", Stdio::null());
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

/// The same files, without those that only a killed job leaves.
fn assert_same(found: &Tree, expected: &Tree, context: &str) {
    let names = |tree: &Tree| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(expected), "{context}");
    let differing: Vec<_> =
        found.iter().filter(|(path, bytes)| expected[*path] != **bytes).map(|(path, _)| path).collect();
    assert!(differing.is_empty(), "{context}: {differing:?}");
}

struct Place {
    _directory: tempfile::TempDir,
    inputs: Vec<String>,
    root: PathBuf,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let base = directory.path().canonicalize().unwrap();
        let write = |i: usize| {
            let path = base.join(format!("in-{i}.txt"));
            let lines: String = (0..300).map(|line| format!("HTTP://Example.org/{}\n", i * 200 + line)).collect();
            fs::write(&path, lines).unwrap();
            path.display().to_string()
        };
        let inputs = (0..3).map(write).collect();
        let root = base.join("work");
        fs::create_dir(&root).unwrap();
        Place { _directory: directory, inputs, root }
    }

    fn path(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    /// A command over some of the inputs; words that begin with `:` are paths in the work directory.
    fn job(&self, words: &str, inputs: &[usize]) -> Vec<String> {
        let word = |word: &str| word.strip_prefix(':').map_or(word.to_string(), |name| self.path(name));
        words.split(' ').map(word).chain(inputs.iter().map(|i| self.inputs[*i].clone())).collect()
    }
}

#[test]
fn an_output_is_old_or_new() {
    let place = Place::new();
    let job = place.job("canon -q -o :x.csv --report :x.json", &[0]);
    fs::write(place.root.join("x.csv"), "old").unwrap();
    let states = replay(&job, &place.root, |before, after, context| {
        let path = place.root.join("x.csv");
        let found = Some(fs::read(&path).unwrap());
        assert!(found == before[&path] || found == after[&path], "{context}");
        assert_eq!(run(&job).0, Some(0), "{context}");
        assert!(fs::read(&path).ok() == after[&path], "{context}");
        assert_eq!(tree(&place.root).len(), 2, "{context}");
    });
    assert!(states > 10, "{states}");
}

#[test]
fn a_store_and_its_output_are_old_or_new() {
    let place = Place::new();
    for input in [0, 1] {
        assert_eq!(run(&place.job("dedup -q -o :first.csv --seen :seen --update-seen", &[input])).0, Some(0));
        fs::remove_file(place.root.join("first.csv")).unwrap();
    }
    let job = place.job("dedup -q -o :new.csv --seen :seen --update-seen --report :report.json", &[2]);
    let keys = || {
        let ran = irikey(&["seen", "verify", &place.path("seen")], b"", Stdio::piped());
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().split(' ').next().unwrap().to_string()
    };
    let old_keys = keys();
    let states = replay(&job, &place.root, |_, after, context| {
        let (found, output) = (keys(), fs::read(place.root.join("new.csv")).ok());
        let new = &after[&place.root.join("new.csv")];
        assert!(output.is_none() || output == *new, "{context}");
        assert!(found == old_keys || output == *new, "{context}: keys without rows would be lost");
        assert_eq!(run(&job).0, Some(0), "{context}");
        assert!(fs::read(place.root.join("new.csv")).ok() == *new, "{context}");
        assert!(place.root.join("report.json").exists(), "{context}");
        assert!(keys() != old_keys, "{context}");
        assert!(!tree(&place.root).keys().any(|path| path.display().to_string().contains(".irikey-")), "{context}");
    });
    assert!(states > 20, "{states}");
}

#[test]
fn an_index_is_never_beside_other_data() {
    let place = Place::new();
    assert_eq!(run(&place.job("canon -q -o :x.cdx.gz", &[0])).0, Some(0));
    let job = place.job("canon -q -o :x.cdx.gz", &[1, 2]);
    let states = replay(&job, &place.root, |before, after, context| {
        let [data, index] = ["x.cdx.gz", "x.idx"].map(|name| place.root.join(name));
        let found = [&data, &index].map(|path| fs::read(path).ok());
        let is_of = |tree: &Tree| found[0] == tree[&data] && (found[1] == tree[&index] || found[1].is_none());
        assert!(is_of(before) || is_of(after), "{context}");
        assert_eq!(run(&job).0, Some(0), "{context}");
        assert_same(&tree(&place.root), after, context);
    });
    assert!(states > 10, "{states}");
}

#[test]
fn a_directory_of_parts_is_complete_or_made_again() {
    let place = Place::new();
    for flags in ["--part-rows 200", "--partition surt:2", "--partition host:2 --hive crawl=A"] {
        let job = place.job(&format!("canon -q --output-format csv {flags} -o :out"), &[0, 1]);
        let _ = fs::remove_dir_all(&place.root);
        fs::create_dir(&place.root).unwrap();
        let states = replay(&job, &place.root, |_, after, context| {
            let found = tree(&place.root);
            let is_complete = found == *after;
            let (status, message) = run(&job);
            // Only a complete directory is refused.
            assert_eq!(status, Some(if is_complete { 2 } else { 0 }), "{context}: {message}");
            assert_same(&tree(&place.root), after, context);
        });
        assert!(states > 20, "{states}");
    }
}

#[test]
fn a_resumed_job_goes_on() {
    let place = Place::new();
    for flags in ["", " --sort -uri --part-rows 250"] {
        let job = place.job(&format!("canon -q --output-format csv --resume{flags} -o :out -j 1"), &[0, 1, 2]);
        let _ = fs::remove_dir_all(&place.root);
        fs::create_dir(&place.root).unwrap();
        let states = replay(&job, &place.root, |_, after, context| {
            for (path, bytes) in tree(&place.root) {
                let is_part = path.extension().is_some_and(|end| end == "csv");
                assert!(!is_part || after.get(&path) == Some(&bytes), "{context}: {}", path.display());
            }
            let (status, message) = run(&job);
            assert_eq!(status, Some(0), "{context}: {message}");
            assert_same(&tree(&place.root), after, context);
        });
        assert!(states > 20, "{states}");
    }
}
