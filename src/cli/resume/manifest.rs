//! The manifest of a job that can be taken up again. In: a directory, inputs, a policy. Out: what is done of them, and what
//! is not; and the file that says so, written anew whenever that changes.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::super::canon::Failure;
use super::super::canon_args::Job;
use super::super::drive;
use super::super::files::write;
use super::super::report::InputFailure;
use crate::input::{Origin, Source, Sources};
use crate::output::FinishedOutput;

const MANIFEST: &str = "_manifest.json";

/// What a directory is known to hold.
pub(super) struct Manifest {
    path: PathBuf,
    /// What all parts are made under.
    policy: Value,
    /// Finished inputs by name, in the order in which they were first seen.
    inputs: Map<String, Value>,
    /// How far what is made of all parts together has come; null where nothing is.
    pub(super) whole: Value,
}

/// An input that is still to be done.
pub(super) struct Task {
    pub(super) source: Source,
    /// Of its part, which is the place in the list of inputs if that never changes.
    pub(super) number: u64,
    pub(super) part: PathBuf,
    size: u64,
    modified: u64,
}

/// What an earlier run left, and what it did.
pub(super) struct Rest {
    pub(super) tasks: Vec<Task>,
    /// Parts that are finished.
    pub(super) files: Vec<FinishedOutput>,
    /// What was wrong with their inputs.
    pub(super) errors: Vec<InputFailure>,
}

/// Removes what a run that was killed left under temporary names.
pub(super) fn remove_leftovers(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_leftover = |name: &str| name.starts_with(".irikey-") && name.ends_with(".tmp");
    // What stays is in nobody's way.
    entries.filter(|entry| is_leftover(&entry.file_name().to_string_lossy())).for_each(|entry| {
        let _ = fs::remove_file(entry.path());
    });
}

/// What rows and files depend on.
pub(super) fn policy(job: &Job) -> Value {
    let outputs = &job.outputs;
    let policy = job.policy.describe().into_iter().map(|(name, value)| (name.to_string(), json!(value)));
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "format": outputs.format.name(),
        "compression": outputs.compression.to_string(),
        "row_group_size": outputs.row_group_len,
        "columns": outputs.columns.names().collect::<Vec<_>>(),
        "input_format": format!("{:?}", drive::format(&job.inputs)),
        "record_types": job.inputs.record_types,
        "canonical_form": policy.collect::<Map<_, _>>(),
    })
}

impl Manifest {
    /// What the directory says of itself.
    pub(super) fn open(directory: &Path, policy: Value) -> Result<Manifest, Failure> {
        let path = directory.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Manifest { path, policy, inputs: Map::new(), whole: Value::Null });
            }
            Err(error) => return Err(Failure::Temporary(format!("{}: cannot read: {error}", path.display()))),
        };
        let found: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(inputs) = found["inputs"].as_object() else {
            let advice = "is no manifest of --resume / choose another directory";
            return Err(Failure::Usage(format!("{}: {advice}", path.display())));
        };
        if let Some(name) =
            policy.as_object().and_then(|all| all.keys().find(|name| found["policy"][*name] != all[*name]))
        {
            let (before, now) = (&found["policy"][name], &policy[name]);
            return Err(Failure::Usage(format!(
                "{}: its parts were made with {name} {before}, not {now} / use the same flags, or another directory",
                path.display()
            )));
        }
        Ok(Manifest { inputs: inputs.clone(), path, policy, whole: found["whole"].clone() })
    }

    /// What is to be done, the parts that are finished, and what was wrong with their inputs.
    pub(super) fn rest(&mut self, sources: Sources, directory: &Path, suffix: &str) -> Result<Rest, Failure> {
        let (mut tasks, mut files, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let names = sources.names();
        let mut seen = HashSet::new();
        if let Some(name) = names.iter().find(|name| !seen.insert(*name)) {
            return Err(Failure::Usage(format!("{name}: --resume takes each input once; name it once")));
        }
        for source in sources.0 {
            let (size, modified) = stat(&source)?;
            let number = self.number(&source.name);
            let part = directory.join(format!("part-{number:05}.{suffix}"));
            let entry = &self.inputs[&source.name];
            // Of what all parts became, parts need not stay.
            if entry["rows"].is_null() || (self.whole["files"].is_null() && !part.exists()) {
                tasks.push(Task { source, number, part, size, modified });
                continue;
            }
            let same_time = entry["modified"].as_u64() == Some(modified);
            if entry["size"].as_u64() != Some(size) || (!same_time && entry["hash"] != json!(hash(&source)?)) {
                let advice =
                    "is not what its part was made of / remove its entry and its part, or use another directory";
                return Err(Failure::Input(format!("{}: {advice}", source.name)));
            }
            let count = |name: &str| entry[name].as_u64().unwrap_or(0);
            files.push(FinishedOutput {
                path: Some(part),
                bytes: count("bytes"),
                rows: count("rows"),
                parts: count("groups"),
            });
            if let Some(message) = entry["error"].as_str() {
                errors.push(InputFailure { source: source.name.clone(), message: message.to_string() });
            }
        }
        self.write()?;
        Ok(Rest { tasks, files, errors })
    }

    /// The inputs that were seen so far are these, in this order, or there are none.
    pub(super) fn has_inputs(&self, names: &[String]) -> bool {
        self.inputs.is_empty() || self.inputs.keys().eq(names)
    }

    /// Rows of all parts that are finished.
    pub(super) fn rows(&self) -> u64 {
        self.inputs.values().map(|entry| entry["rows"].as_u64().unwrap_or(0)).sum()
    }

    /// The part of an input, which stays the same from run to run.
    fn number(&mut self, name: &str) -> u64 {
        let next = self.inputs.len();
        let entry = self.inputs.entry(name).or_insert_with(|| json!({"part": next}));
        entry["part"].as_u64().unwrap_or(next as u64)
    }

    /// An input is done.
    pub(super) fn add(
        &mut self,
        task: &Task,
        hash: &str,
        finished: &FinishedOutput,
        error: Option<&str>,
    ) -> Result<(), Failure> {
        let part = self.number(&task.source.name);
        let entry = json!({
            "part": part,
            "size": task.size,
            "modified": task.modified,
            "hash": hash,
            "rows": finished.rows,
            "bytes": finished.bytes,
            "groups": finished.parts,
            "error": error,
        });
        self.inputs.insert(task.source.name.clone(), entry);
        self.write()
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let manifest = json!({"policy": self.policy, "inputs": self.inputs, "whole": self.whole});
        write(&self.path, &format!("{manifest:#}\n"))
    }
}

/// Length, and time of the last change in nanoseconds.
fn stat(source: &Source) -> Result<(u64, u64), Failure> {
    let Origin::Path(path) = &source.origin else {
        return Err(Failure::Usage(format!(
            "{}: --resume takes files: what is read once cannot be taken up",
            source.name
        )));
    };
    let failed = |error| Failure::Input(format!("{}: {error}", path.display()));
    let metadata = fs::metadata(path).map_err(failed)?;
    let modified = metadata.modified().map_err(failed)?.duration_since(UNIX_EPOCH).unwrap_or_default();
    if !metadata.is_file() {
        return Err(Failure::Usage(format!("{}: --resume takes regular files", source.name)));
    }
    Ok((metadata.len(), modified.as_nanos() as u64))
}

/// XXH3-128 of a file as it is.
pub(super) fn hash(source: &Source) -> Result<String, Failure> {
    let Origin::Path(path) = &source.origin else { return Ok(String::new()) };
    let failed = |error| Failure::Input(format!("{}: {error}", path.display()));
    let (mut file, mut hasher) = (File::open(path).map_err(failed)?, Xxh3::new());
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece).map_err(failed)? {
            0 => return Ok(format!("{:032x}", hasher.digest128())),
            count => hasher.update(&piece[..count]),
        }
    }
}
