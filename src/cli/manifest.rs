//! The manifest of a job that can be resumed: the policy of its parts, its inputs, and which of them are finished.
//!
//! ```text
//! _manifest.json   written whole when the job begins and when it ends
//! _manifest.log    one line per input that is finished meanwhile: checksum and JSON, only appended
//! ```
//!
//! A part is on disk before its line is appended, so lines need not be synced: after a power failure the log may end
//! early or in a torn line, and the inputs that it does not list are read again.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128};

use super::error::CommandError;
use super::file_stamp::{FileStamp, hash_file};
use super::files::write_atomically;
use super::job::Job;
use super::report::{SourceError, pairs_to_json};
use crate::input::{Origin, Source, Sources};
use crate::output::{Destination, FinishedOutput};
use crate::process::part_names::{MANIFEST, is_part_name, part_name};
use crate::process::{file_names, parent, sync_directory};
use crate::run::Summary;
use crate::sort::Partition;

const LOG: &str = "_manifest.log";

/// Version of the manifest's format. A manifest of another version is refused.
const VERSION: u64 = 2;

/// The member of a policy that is the version of irikey.
const VERSION_SETTING: &str = "irikey";

/// What a directory holds.
pub(crate) struct Manifest {
    path: PathBuf,
    log: ManifestLog,
    /// Everything that the parts depend on: [`describe_job`].
    policy: Value,
    /// The inputs by [identity](Source::identity), in the order in which they were first seen.
    inputs: Map<String, Value>,
    /// State of the merge of all inputs, if they are sorted; null before it starts.
    pub(crate) merge: Value,
}

pub(crate) struct PendingInput {
    pub(crate) source: Source,
    /// Its place among all inputs.
    pub(crate) place: usize,
    /// Number of its part: one more than that of the last input before it.
    pub(crate) number: u64,
    pub(crate) part: PathBuf,
    pub(crate) stamp: FileStamp,
}

/// The inputs that were finished since the manifest was written.
struct ManifestLog {
    path: PathBuf,
    /// A line of another policy has a wrong checksum.
    seed: u64,
    /// Open once a line was appended.
    file: Option<File>,
}

/// The inputs of a job, divided into those that are finished and those that are not.
pub(crate) struct InputStates {
    pub(crate) pending: Vec<PendingInput>,
    /// The parts of finished inputs.
    pub(crate) finished: Vec<FinishedOutput>,
    /// Errors in finished inputs.
    pub(crate) errors: Vec<SourceError>,
    /// Number of records of finished inputs that have a fault.
    pub(crate) faulty: u64,
}

impl InputStates {
    /// Adds the part of a finished input, which has this entry in the manifest.
    fn add_finished(&mut self, source: &str, part: FinishedOutput, entry: &Value) {
        self.finished.push(part);
        self.faulty += entry["faulty"].as_u64().unwrap_or(0);
        let messages = entry["errors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        self.errors
            .extend(messages.map(|message| SourceError { source: source.to_string(), message: message.to_string() }));
    }
}

/// Everything that rows, parts and their order depend on, under explicit names: manifests are compared field by field.
pub(crate) fn describe_job(job: &Job) -> Value {
    let layout = &job.layout;
    let partition = match (&layout.partition, layout.ranges) {
        (Some(Partition::Host(count)), _) => Some(format!("host:{count}")),
        (Some(Partition::Surt(points)), _) => {
            Some(format!("surt:split points {:032x}", xxh3_128(points.to_string().as_bytes())))
        }
        (None, ranges) => ranges.map(|count| format!("surt:{count}")),
    };
    json!({
        VERSION_SETTING: env!("CARGO_PKG_VERSION"),
        "format": job.output.format.name(),
        "compression": job.output.compression.to_string(),
        "row_group_size": job.options.row_group_len,
        "columns": job.output.columns.names().collect::<Vec<_>>(),
        "input": job.input.to_json(),
        "archive_paths": job.options.archive_paths,
        "canonical_form": pairs_to_json(job.policy.describe()),
        "sort": layout.arrangement.by.to_string(),
        "partition": partition,
        "part_rows": layout.part_rows,
        "hive": layout.hive,
        "bloom_filter": layout.arrangement.bloom,
    })
}

impl Manifest {
    /// Reads the manifest of a directory; an empty one if there is no file, or if the job that wrote it has finished no input.
    ///
    /// # Errors
    /// A file that is not a manifest of this version; parts that were made under another policy.
    pub(crate) fn open(directory: &Path, policy: Value) -> Result<Manifest, CommandError> {
        let path = directory.join(MANIFEST);
        let text = read_if_exists(&path)?;
        let log = ManifestLog::new(directory, &policy);
        let empty = |path, log, policy| Manifest { path, log, policy, inputs: Map::new(), merge: Value::Null };
        let Some(text) = text else { return Ok(empty(path, log, policy)) };
        let found = serde_json::from_slice::<Value>(&text);
        let has_no_part =
            |found: &Value| found["inputs"].as_object().is_some_and(|inputs| is_unused(inputs, &found["merge"]));
        // Nothing is lost if the job starts again, with any flags.
        if found.as_ref().map_or(true, has_no_part) && !has_parts(directory)? {
            return Ok(empty(path, log, policy));
        }
        let mut found = found.map_err(|error| damaged(&path, &error.to_string()))?;
        let Some(Value::Object(mut inputs)) = found.get_mut("inputs").map(Value::take) else {
            return Err(damaged(&path, "it has no list of inputs"));
        };
        check_policy(&path, &found, &policy)?;
        inputs.extend(log.read()?);
        check_numbers(&path, &inputs)?;
        Ok(Manifest { inputs, path, log, policy, merge: found["merge"].take() })
    }

    /// Finds out which inputs are finished and which are not, and writes the list of inputs. Parts are in `directory` and have
    /// `suffix`.
    ///
    /// # Errors
    /// An input that is named twice, or has changed since its part was made.
    pub(crate) fn divide(
        &mut self,
        sources: Sources,
        stamps: Vec<FileStamp>,
        (directory, suffix): (&Path, &str),
    ) -> Result<InputStates, CommandError> {
        check_named_once(&sources)?;
        let is_complete = self.is_complete();
        let mut states = InputStates { pending: Vec::new(), finished: Vec::new(), errors: Vec::new(), faulty: 0 };
        let mut next_number = self.next_number();
        for (place, (source, stamp)) in sources.0.into_iter().zip(stamps).enumerate() {
            let identity = source.identity();
            let is_new = !self.inputs.contains_key(&identity);
            let number = self.number(&identity, &mut next_number);
            let part = directory.join(part_name(number, suffix));
            if is_new && part.exists() {
                return Err(foreign_part(&part));
            }
            let entry = &self.inputs[&identity];
            // Of a complete job, the parts that were merged are not needed any more.
            if entry["rows"].is_null() || (!is_complete && (is_repeated(entry) || !part.exists())) {
                states.pending.push(PendingInput { source, place, number, part, stamp });
                continue;
            }
            stamp.check(&source, entry)?;
            if !is_complete {
                check_length(&part, entry)?;
            }
            let finished = FinishedOutput { path: Some(part), ..finished_from_json(entry, directory) };
            states.add_finished(&source.name, finished, entry);
        }
        self.write("no input was read")?;
        Ok(states)
    }

    /// The parts are merged, and no input has to be read again.
    pub(crate) fn is_complete(&self) -> bool {
        !self.merge["files"].is_null() && !self.inputs.values().any(is_repeated)
    }

    /// The inputs seen so far are these, in this order; or there are none.
    pub(crate) fn has_inputs(&self, identities: &[String]) -> bool {
        self.inputs.is_empty() || self.inputs.keys().eq(identities)
    }

    /// The first input seen so far that is not among `identities`, and the number of these.
    pub(crate) fn others_than(&self, identities: &[String]) -> Option<(&str, usize)> {
        let named: HashSet<&String> = identities.iter().collect();
        let mut others = self.inputs.keys().filter(|name| !named.contains(name));
        Some((others.next()?, 1 + others.count()))
    }

    /// Number of rows in the parts of all finished inputs.
    pub(crate) fn rows(&self) -> u64 {
        self.inputs.values().map(|entry| entry["rows"].as_u64().unwrap_or(0)).sum()
    }

    /// Number of rows of an input; 0 if it is not finished.
    pub(crate) fn rows_of(&self, identity: &str) -> u64 {
        self.inputs.get(identity).and_then(|entry| entry["rows"].as_u64()).unwrap_or(0)
    }

    /// The name of the format in which an input was read; `None` if it is not finished, or the manifest does not have it.
    pub(crate) fn format_of(&self, identity: &str) -> Option<Cow<'static, str>> {
        self.inputs
            .get(identity)
            .and_then(|entry| entry["format"].as_str())
            .map(|format| Cow::Owned(format.to_string()))
    }

    /// Number of the part of the next new input.
    fn next_number(&self) -> u64 {
        // An entry may have been removed, because its input has changed.
        self.inputs.values().filter_map(|entry| entry["part"].as_u64()).max().map_or(0, |last| last + 1)
    }

    /// Number of the part of an input, which is the same in every run. A new input gets the number `next`, which is then raised.
    fn number(&mut self, identity: &str, next: &mut u64) -> u64 {
        let entry = self.inputs.entry(identity).or_insert_with(|| json!({"part": *next}));
        let number = entry["part"].as_u64().unwrap_or(*next);
        *next = (*next).max(number + 1);
        number
    }

    /// Records that an input is finished. `hash` is [`hash_file`] of it.
    pub(crate) fn add(
        &mut self,
        input: &PendingInput,
        hash: &str,
        finished: &FinishedOutput,
        summary: &Summary,
    ) -> Result<(), CommandError> {
        let entry = json!({
            "part": input.number,
            "size": input.stamp.size,
            "modified": input.stamp.modified,
            "hash": hash,
            "rows": finished.rows,
            "faulty": summary.tally.faulty,
            "bytes": finished.bytes,
            "groups": finished.row_groups,
            "format": summary.source_formats.first(),
            "errors": SourceError::of_run(summary).iter().map(|error| &error.message).collect::<Vec<_>>(),
            "repeat": input.is_repeated(summary),
        });
        let identity = input.source.identity();
        self.log.append(&identity, &entry)?;
        self.inputs.insert(identity, entry);
        Ok(())
    }

    /// Removes the manifest of a job that has finished no input, so that its flags do not bind the next job.
    pub(crate) fn remove_unused(&self) {
        if is_unused(&self.inputs, &self.merge) && has_parts(parent(&self.path)).is_ok_and(|has| !has) {
            // If this fails, the manifest stays, as after an interruption.
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Writes the manifest, which then contains what was in the log. An error ends with `parts_state`.
    pub(crate) fn write(&mut self, parts_state: &str) -> Result<(), CommandError> {
        let manifest = json!({
            "manifest_version": VERSION,
            "policy": self.policy,
            "inputs": self.inputs,
            "merge": self.merge,
        });
        write_atomically(&Destination::File(self.path.clone()), &format!("{manifest:#}\n"), parts_state)?;
        self.log.remove()
    }
}

/// Refuses an input that is named twice, whose part would be made twice.
fn check_named_once(sources: &Sources) -> Result<(), CommandError> {
    let mut seen = HashSet::new();
    match sources.0.iter().find(|source| !seen.insert(source.identity())) {
        None => Ok(()),
        Some(Source { name, .. }) => {
            let message = format!("{name}: the input is named twice, and --resume takes each input once; name it once");
            Err(CommandError::Usage(message))
        }
    }
}

/// An input that could not be read completely, and may be readable in the next run.
fn is_repeated(entry: &Value) -> bool {
    entry["repeat"] == true
}

/// Returns whether the manifest (without its log) lists no finished input and no merge.
fn is_unused(inputs: &Map<String, Value>, merge: &Value) -> bool {
    inputs.values().all(|entry| entry["rows"].is_null()) && merge.is_null()
}

/// Numbers of parts are less than this. Without a limit, there might be no number after one that was changed by hand.
const MAX_NUMBERS: u64 = 1 << 48;

/// Checks that every input has the number of a part of its own.
fn check_numbers(path: &Path, inputs: &Map<String, Value>) -> Result<(), CommandError> {
    let mut numbers = HashSet::new();
    let mut is_own =
        |entry: &Value| entry["part"].as_u64().is_some_and(|number| number < MAX_NUMBERS && numbers.insert(number));
    match inputs.iter().find(|(_, entry)| !is_own(entry)) {
        None => Ok(()),
        Some((input, entry)) => {
            let number = &entry["part"];
            let reason = "is too large, not a number, or also the part of another input";
            Err(damaged(path, &format!("the part of {input} is {number}, which {reason}")))
        }
    }
}

/// Refuses a file that does not have the length with which it was finished.
fn check_length(path: &Path, entry: &Value) -> Result<(), CommandError> {
    let found = fs::metadata(path).map_err(|error| CommandError::side_file(path, "read", error))?.len();
    match entry["bytes"].as_u64() {
        Some(expected) if expected != found => Err(CommandError::Usage(format!(
            "{}: the file has {found} bytes, but was finished with {expected}; remove it, and it is written again",
            path.display()
        ))),
        _ => Ok(()),
    }
}

impl ManifestLog {
    fn new(directory: &Path, policy: &Value) -> ManifestLog {
        let seed = xxh3_64(policy.to_string().as_bytes());
        ManifestLog { path: directory.join(LOG), seed, file: None }
    }

    /// The entries of the log, by input. What follows a torn line was not finished.
    fn read(&self) -> Result<Map<String, Value>, CommandError> {
        let text = read_if_exists(&self.path)?.unwrap_or_default();
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        Ok(lines.map_while(|line| self.parse(line)).collect())
    }

    fn parse(&self, line: &[u8]) -> Option<(String, Value)> {
        let (checksum, json) = line.strip_suffix(b"\n")?.split_at_checked(16)?;
        if checksum != format!("{:016x}", xxh3_64_with_seed(json, self.seed)).as_bytes() {
            return None;
        }
        let mut entry: Value = serde_json::from_slice(json).ok()?;
        Some((entry["input"].as_str()?.to_string(), entry["entry"].take()))
    }

    fn append(&mut self, input: &str, entry: &Value) -> Result<(), CommandError> {
        let json = format!(" {}", json!({"input": input, "entry": entry}));
        let line = format!("{:016x}{json}\n", xxh3_64_with_seed(json.as_bytes(), self.seed));
        let failed = |error| CommandError::side_file(&self.path, "write", error);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let opened = File::options().create(true).append(true).open(&self.path);
                self.file.insert(opened.map_err(failed)?)
            }
        };
        file.write_all(line.as_bytes()).map_err(failed)
    }

    fn remove(&mut self) -> Result<(), CommandError> {
        self.file = None;
        match fs::remove_file(&self.path).and_then(|()| sync_directory(parent(&self.path))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(CommandError::side_file(&self.path, "remove", error))
            }
            _ => Ok(()),
        }
    }
}

fn read_if_exists(path: &Path) -> Result<Option<Vec<u8>>, CommandError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(|error| CommandError::side_file(path, "read", error)),
    }
}

/// Checks that the parts were made by this version of the format and with this policy.
fn check_policy(path: &Path, found: &Value, policy: &Value) -> Result<(), CommandError> {
    let name = path.display();
    if found["manifest_version"] != VERSION {
        return Err(CommandError::Usage(format!(
            "{name}: this job was begun by a version of irikey with another manifest format; finish it with that version, \
             or use another directory"
        )));
    }
    match first_difference(&found["policy"], policy) {
        None => Ok(()),
        Some((VERSION_SETTING, before, _)) => Err(CommandError::Usage(format!(
            "{name}: this job was begun by version {before} of irikey; finish it with that version, or use another directory"
        ))),
        Some((setting, before, now)) => Err(CommandError::Usage(format!(
            "{name}: the parts were made with {setting} {before}, but this job has {now}; use the same flags, or another \
             directory"
        ))),
    }
}

/// The first setting that differs: its name, and both values.
fn first_difference<'a>(before: &'a Value, now: &'a Value) -> Option<(&'a str, &'a Value, &'a Value)> {
    let mut names = [now, before].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let name = names.find(|name| before[*name] != now[*name])?;
    let (before, now) = (&before[name], &now[name]);
    first_difference(before, now).or(Some((name, before, now)))
}

fn has_parts(directory: &Path) -> Result<bool, CommandError> {
    let names = file_names(directory).map_err(|error| CommandError::side_file(directory, "list", error))?;
    Ok(names.iter().any(|name| is_part_name(&name.to_string_lossy())))
}

fn damaged(path: &Path, reason: &str) -> CommandError {
    let path = path.display();
    CommandError::Usage(format!(
        "{path}: not a manifest of --resume ({reason}), so it is not known which parts are finished; to start again, remove \
         this file and the parts beside it; or use another directory"
    ))
}

fn foreign_part(part: &Path) -> CommandError {
    let part = part.display();
    CommandError::Usage(format!(
        "{part}: the file exists, but the manifest of --resume does not list it, so it would be lost; move it away, or use \
         another directory"
    ))
}

impl PendingInput {
    /// The input as the only source of a run.
    pub(crate) fn sources(&self) -> Sources {
        Sources(vec![self.source.again().expect("an input with a stamp can be read again")])
    }

    /// The input could not be read completely, and the next run reads it again: the system could not open or read it, or it is an
    /// object, which may have been damaged on the way.
    fn is_repeated(&self, summary: &Summary) -> bool {
        let is_remote = matches!(self.source.origin, Origin::Remote(_));
        summary.input_errors.iter().any(|error| is_remote || error.defect.is_of_system())
    }

    /// Checks that the input is as it was before it was read, and returns [`hash_file`] of it; an empty text if it is read again.
    ///
    /// # Errors
    /// The input has changed meanwhile.
    pub(crate) fn hash_unchanged(&self, summary: &Summary) -> Result<String, CommandError> {
        let hash = if self.is_repeated(summary) { String::new() } else { hash_file(&self.source)? };
        match FileStamp::of(&self.source)? == self.stamp {
            true => Ok(hash),
            false => Err(CommandError::Input(format!(
                "{}: the input changed while it was read, so its part was not written; run the job again when nothing writes \
                 the input any more",
                self.source.name
            ))),
        }
    }
}

/// The counts of a file, and its path within the directory of the job, so that the directory can be moved.
pub(crate) fn finished_to_json(file: &FinishedOutput, directory: &Path) -> Value {
    let path = file.path.as_deref().map(|path| path.strip_prefix(directory).unwrap_or(path).to_string_lossy());
    json!({"path": path, "rows": file.rows, "bytes": file.bytes, "groups": file.row_groups})
}

/// Reads [`finished_to_json`].
pub(crate) fn finished_from_json(json: &Value, directory: &Path) -> FinishedOutput {
    let count = |name: &str| json[name].as_u64().unwrap_or(0);
    let path = json["path"].as_str().map(|path| directory.join(path));
    FinishedOutput { path, bytes: count("bytes"), rows: count("rows"), row_groups: count("groups") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(log: &mut ManifestLog, name: &str) {
        log.append(name, &json!({"part": 0, "rows": 3})).unwrap();
    }

    fn names(log: &ManifestLog) -> Vec<String> {
        log.read().unwrap().into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_log_is_read_up_to_its_first_damaged_line() {
        let directory = tempfile::tempdir().unwrap();
        let policy = json!({"format": "csv"});
        let mut log = ManifestLog::new(directory.path(), &policy);
        assert_eq!(names(&log), [""; 0]);
        ["a", "b\n", "c"].into_iter().for_each(|name| append(&mut log, name));
        assert_eq!(names(&log), ["a", "b\n", "c"]);
        assert_eq!(log.read().unwrap()["c"], json!({"part": 0, "rows": 3}));
        let path = directory.path().join(LOG);
        let whole = fs::read(&path).unwrap();
        let line_len = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        // A torn line, and a changed one.
        for len in [whole.len() - 1, whole.len() - 3, whole.len() - line_len + 1] {
            fs::write(&path, &whole[..len]).unwrap();
            assert_eq!(names(&log), ["a", "b\n"], "{len}");
        }
        let text = String::from_utf8(whole.clone()).unwrap();
        fs::write(&path, text.replacen("\"rows\":3", "\"rows\":4", 1)).unwrap();
        assert_eq!(names(&log), [""; 0]);
        fs::write(&path, &whole).unwrap();
        // Lines of another policy.
        assert_eq!(names(&ManifestLog::new(directory.path(), &json!({"format": "tsv"}))), [""; 0]);
        // A later job appends to the lines that are there; after its end, a new log begins.
        let mut later = ManifestLog::new(directory.path(), &policy);
        append(&mut later, "d");
        assert_eq!(names(&later), ["a", "b\n", "c", "d"]);
        later.remove().unwrap();
        assert!(!path.exists() && names(&later).is_empty());
        append(&mut later, "e");
        assert_eq!(names(&later), ["e"]);
    }

    /// A job that is killed has not written its manifest again.
    #[test]
    fn finished_inputs_are_known_before_the_manifest_is_written_again() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let (policy, mut pending) = (json!({"format": "csv"}), Vec::new());
        for (number, name) in ["a.txt", "b.txt"].into_iter().enumerate() {
            fs::write(place.join(name), "http://example.org/\n").unwrap();
            let source = Source::path(place.join(name)).unwrap();
            let (stamp, part) = (FileStamp::of(&source).unwrap(), place.join(format!("part-0000{number}.csv")));
            fs::write(&part, "uri\n").unwrap();
            pending.push(PendingInput { source, place: number, number: number as u64, part, stamp });
        }
        let mut manifest = Manifest::open(place, policy.clone()).unwrap();
        manifest.write("no input was read").unwrap();
        for input in &pending {
            let finished = FinishedOutput { path: Some(input.part.clone()), bytes: 4, rows: 7, row_groups: 1 };
            manifest.add(input, "hash", &finished, &Summary::default()).unwrap();
        }
        let mut found = Manifest::open(place, policy.clone()).unwrap();
        assert_eq!(pending.iter().map(|input| found.rows_of(&input.source.name)).collect::<Vec<_>>(), [7, 7]);
        assert!(found.inputs == manifest.inputs && found.rows() == 14);
        // The manifest takes up the log.
        found.write("no input was read").unwrap();
        assert!(!place.join(LOG).exists());
        assert!(Manifest::open(place, policy).unwrap().inputs == manifest.inputs);
    }

    /// A part is the file of one input.
    #[test]
    fn an_input_without_a_part_of_its_own_is_damage() {
        let directory = tempfile::tempdir().unwrap();
        let policy = json!({"format": "csv"});
        let open = |parts: [Value; 2]| {
            let [a, b] = parts.map(|part| json!({"part": part, "rows": 3}));
            let inputs = json!({"a": a, "b": b});
            let manifest = json!({"manifest_version": VERSION, "policy": policy, "inputs": inputs, "merge": null});
            fs::write(directory.path().join(MANIFEST), manifest.to_string()).unwrap();
            Manifest::open(directory.path(), policy.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(open([json!(7), json!(3)]).unwrap().next_number(), 8);
        assert_eq!(open([json!(MAX_NUMBERS - 1), json!(1_u64 << 32)]).unwrap().next_number(), MAX_NUMBERS);
        for part in [json!(0), json!(MAX_NUMBERS), json!(u64::MAX), json!(-1), json!(1.0), json!("1"), Value::Null] {
            let message = open([json!(0), part]).err().unwrap();
            assert!(
                message.contains("_manifest.json: not a manifest") && message.contains("part of b is "),
                "{message}"
            );
        }
    }

    /// What is finished binds the next job, also if its parts were moved away.
    #[test]
    fn a_manifest_is_unused_if_nothing_is_finished() {
        let inputs = |entry: Value| Map::from_iter([("a".to_string(), entry), ("b".to_string(), json!({"part": 1}))]);
        let (pending, finished) = (inputs(json!({"part": 0})), inputs(json!({"part": 0, "rows": 0})));
        assert!(is_unused(&pending, &Value::Null) && is_unused(&Map::new(), &Value::Null));
        assert!(!is_unused(&finished, &Value::Null) && !is_unused(&pending, &json!("merging")));
    }
}
