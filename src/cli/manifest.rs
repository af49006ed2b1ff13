//! The manifest of a job that can be resumed: the policy of its parts, and the inputs that are finished. The file is
//! written anew whenever an input is finished.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::args::layout::Partitioning;
use super::error::CommandError;
use super::files::{policy_to_json, write_atomically};
use super::job::Job;
use super::report::SourceError;
use crate::input::{Origin, Source, Sources};
use crate::output::FinishedOutput;
use crate::sort::Partition;

const FILE_NAME: &str = "_manifest.json";

/// Version of the manifest's format. A manifest of another version is refused.
const VERSION: u64 = 2;

/// What a directory holds.
pub(crate) struct Manifest {
    path: PathBuf,
    /// Everything that the parts depend on: [`describe_job`].
    policy: Value,
    /// The inputs by name, in the order in which they were first seen.
    inputs: Map<String, Value>,
    /// State of the merge of all inputs, if they are sorted; null before it starts.
    pub(crate) merge: Value,
}

/// An input that is not finished.
pub(crate) struct PendingInput {
    pub(crate) source: Source,
    /// Number of its part: its place in the list of inputs, if the list never changes.
    pub(crate) number: u64,
    /// Path of its part.
    pub(crate) part: PathBuf,
    stamp: FileStamp,
}

/// Length and time of the last change (nanoseconds since 1970) of an input.
struct FileStamp {
    size: u64,
    modified: u64,
}

/// The inputs of a job, divided into those that are finished and those that are not.
pub(crate) struct InputStates {
    pub(crate) pending: Vec<PendingInput>,
    /// The parts of finished inputs.
    pub(crate) finished: Vec<FinishedOutput>,
    /// Errors in finished inputs.
    pub(crate) errors: Vec<SourceError>,
}

/// Everything that rows, parts and their order depend on, under explicit names: manifests are compared field by field.
pub(crate) fn describe_job(job: &Job) -> Value {
    let layout = &job.layout;
    let partition = layout.partitioning.as_ref().map(|partitioning| match partitioning {
        Partitioning::By(Partition::Host(count)) => format!("host:{count}"),
        Partitioning::By(Partition::Surt(points)) => {
            format!("surt:split points {:032x}", xxh3_128(points.to_string().as_bytes()))
        }
        Partitioning::Ranges(count) => format!("surt:{count}"),
    });
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "format": job.output.format.name(),
        "compression": job.output.compression.to_string(),
        "row_group_size": job.options.row_group_len,
        "columns": job.output.columns.names().collect::<Vec<_>>(),
        "input": job.input.to_json(),
        "canonical_form": policy_to_json(job),
        "sort": layout.arrangement.by.to_string(),
        "partition": partition,
        "part_rows": layout.part_rows,
        "hive": layout.hive,
        "bloom_filter": layout.arrangement.bloom,
    })
}

impl Manifest {
    /// Reads the manifest of a directory; an empty one if there is none.
    ///
    /// # Errors
    /// A file that is no manifest of this version; parts that were made under another policy.
    pub(crate) fn open(directory: &Path, policy: Value) -> Result<Manifest, CommandError> {
        let path = directory.join(FILE_NAME);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Manifest { path, policy, inputs: Map::new(), merge: Value::Null });
            }
            Err(error) => return Err(CommandError::side_file(&path, "read", error)),
        };
        let mut found: Value = serde_json::from_str(&text).unwrap_or_default();
        let name = path.display();
        let inputs = match found["inputs"].take() {
            Value::Object(inputs) if found["manifest_version"] == VERSION => inputs,
            Value::Object(_) => {
                return Err(CommandError::Usage(format!(
                    "{name}: this job was begun by a version of irikey with another manifest format; finish it with that \
                     version, or use another directory"
                )));
            }
            _ => {
                let message = format!("{name}: not a manifest of --resume; use another directory");
                return Err(CommandError::Usage(message));
            }
        };
        let fields = policy.as_object().into_iter().flat_map(Map::keys);
        if let Some(field) = fields.into_iter().find(|field| found["policy"][*field] != policy[*field]) {
            let (before, now) = (&found["policy"][field], &policy[field]);
            return Err(CommandError::Usage(format!(
                "{name}: the parts were made with {field} {before}, but the flags say {now}; use the same flags, or \
                 another directory"
            )));
        }
        Ok(Manifest { inputs, path, policy, merge: found["merge"].take() })
    }

    /// Finds out which inputs are finished and which are not, and writes the list of inputs.
    ///
    /// # Errors
    /// An input that is named twice, is no regular file, or has changed since its part was made.
    pub(crate) fn divide(
        &mut self,
        sources: Sources,
        directory: &Path,
        suffix: &str,
    ) -> Result<InputStates, CommandError> {
        let names = sources.names();
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
            let message = format!("{name}: the input is named twice, and --resume takes each input once; name it once");
            return Err(CommandError::Usage(message));
        }
        let mut states = InputStates { pending: Vec::new(), finished: Vec::new(), errors: Vec::new() };
        for source in sources.0 {
            let stamp = FileStamp::of(&source)?;
            let number = self.number(&source.name);
            let part = directory.join(format!("part-{number:05}.{suffix}"));
            let entry = &self.inputs[&source.name];
            // After the merge, the parts that were merged are not needed any more.
            if entry["rows"].is_null() || (self.merge["files"].is_null() && !part.exists()) {
                states.pending.push(PendingInput { source, number, part, stamp });
                continue;
            }
            stamp.check(&source, entry)?;
            states.finished.push(FinishedOutput { path: Some(part), ..finished_from_json(entry) });
            if let Some(message) = entry["error"].as_str() {
                let (source, message) = (source.name.clone(), message.to_string());
                states.errors.push(SourceError { source, message });
            }
        }
        self.write()?;
        Ok(states)
    }

    /// The inputs seen so far are these, in this order; or there are none.
    pub(crate) fn has_inputs(&self, names: &[String]) -> bool {
        self.inputs.is_empty() || self.inputs.keys().eq(names)
    }

    /// Number of rows in the parts of all finished inputs.
    pub(crate) fn rows(&self) -> u64 {
        self.inputs.values().map(|entry| entry["rows"].as_u64().unwrap_or(0)).sum()
    }

    /// Number of the part of an input, which is the same in every run.
    fn number(&mut self, name: &str) -> u64 {
        let next = self.inputs.len();
        let entry = self.inputs.entry(name).or_insert_with(|| json!({"part": next}));
        entry["part"].as_u64().unwrap_or(next as u64)
    }

    /// Records that an input is finished. `hash` is [`hash_file`] of it.
    pub(crate) fn add(
        &mut self,
        input: &PendingInput,
        hash: &str,
        finished: &FinishedOutput,
        error: Option<&SourceError>,
    ) -> Result<(), CommandError> {
        let entry = json!({
            "part": self.number(&input.source.name),
            "size": input.stamp.size,
            "modified": input.stamp.modified,
            "hash": hash,
            "rows": finished.rows,
            "bytes": finished.bytes,
            "groups": finished.parts,
            "error": error.map(|error| &error.message),
        });
        self.inputs.insert(input.source.name.clone(), entry);
        self.write()
    }

    /// Writes the manifest.
    pub(crate) fn write(&self) -> Result<(), CommandError> {
        let manifest = json!({
            "manifest_version": VERSION,
            "policy": self.policy,
            "inputs": self.inputs,
            "merge": self.merge,
        });
        write_atomically(&self.path, &format!("{manifest:#}\n"))
    }
}

impl FileStamp {
    fn of(source: &Source) -> Result<FileStamp, CommandError> {
        let not_a_file = || CommandError::Usage(format!("{}: --resume takes only regular files", source.name));
        let Origin::Path(path) = &source.origin else { return Err(not_a_file()) };
        let failed = |error| CommandError::Input(format!("{}: {error}", path.display()));
        let metadata = fs::metadata(path).map_err(failed)?;
        let modified = metadata.modified().map_err(failed)?.duration_since(UNIX_EPOCH).unwrap_or_default();
        match metadata.is_file() {
            true => Ok(FileStamp { size: metadata.len(), modified: modified.as_nanos() as u64 }),
            false => Err(not_a_file()),
        }
    }

    /// The source is the one from which its part was made: same size, and same time or same content.
    fn check(&self, source: &Source, entry: &Value) -> Result<(), CommandError> {
        let is_same_time = entry["modified"].as_u64() == Some(self.modified);
        if entry["size"].as_u64() == Some(self.size) && (is_same_time || entry["hash"] == json!(hash_file(source)?)) {
            return Ok(());
        }
        Err(CommandError::Input(format!(
            "{}: the input has changed since its part was made; remove its entry in the manifest and its part, or use \
             another directory",
            source.name
        )))
    }
}

/// The counts of a file, as in a manifest.
pub(crate) fn finished_to_json(file: &FinishedOutput) -> Value {
    json!({"path": file.path, "rows": file.rows, "bytes": file.bytes, "groups": file.parts})
}

/// Reads [`finished_to_json`].
pub(crate) fn finished_from_json(json: &Value) -> FinishedOutput {
    let count = |name: &str| json[name].as_u64().unwrap_or(0);
    let path = json["path"].as_str().map(PathBuf::from);
    FinishedOutput { path, bytes: count("bytes"), rows: count("rows"), parts: count("groups") }
}

/// XXH3-128 of the bytes of an input file.
pub(crate) fn hash_file(source: &Source) -> Result<String, CommandError> {
    let Origin::Path(path) = &source.origin else { return Ok(String::new()) };
    let failed = |error| CommandError::Input(format!("{}: {error}", path.display()));
    let (mut file, mut hasher) = (File::open(path).map_err(failed)?, Xxh3::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(format!("{:032x}", hasher.digest128())),
            count => hasher.update(&buffer[..count]),
        }
    }
}
