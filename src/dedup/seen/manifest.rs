//! The manifest of a store: [`StoreManifest`].

use super::run_file::{RunInfo, SeenError};
use crate::process::{Existing, PendingFile};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_128;

pub(super) const MANIFEST: &str = "manifest.json";

const FORMAT: &str = "irikey seen 2";
const FORMAT_NAME: &str = "irikey seen ";

const MALFORMED: &str = "it is not a manifest of seen keys";

/// Jobs that a store remembers.
const MAX_JOBS: usize = 1000;

/// The contents of the manifest.
#[derive(Debug)]
pub(super) struct StoreManifest {
    pub(super) policy: Map<String, Value>,
    pub(super) generation: u64,
    pub(super) runs: Vec<RunInfo>,
    pub(super) jobs: Vec<FinishedJob>,
}

/// A job whose keys are in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinishedJob {
    /// Hash of everything that the output of the job depends on, but the times of its inputs.
    pub(crate) id: String,
    /// Hash of the times of its inputs.
    pub(crate) times: String,
    /// Length of its output in bytes.
    pub(crate) output_len: u64,
    /// Its exit code with `--fail-on-fault`.
    pub(crate) status: u8,
    /// Hash like `id`, without the sizes of the inputs.
    pub(crate) names: String,
    /// Hash of its inputs with their sizes and of its output, without its flags.
    pub(crate) files: String,
}

impl StoreManifest {
    pub(super) fn read(directory: &Path) -> Result<StoreManifest, SeenError> {
        let path = directory.join(MANIFEST);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SeenError::Missing(directory.to_path_buf()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(SeenError::NotAStore(directory.to_path_buf()));
            }
            text => text.map_err(SeenError::io(&path, "read"))?,
        };
        StoreManifest::parse(&text).map_err(|reason| SeenError::damaged(&path, reason))
    }

    fn parse(text: &[u8]) -> Result<StoreManifest, String> {
        let found: Value = serde_json::from_slice(text).map_err(|error| format!("{MALFORMED}: {error}"))?;
        Ok(StoreManifest::of_json(found)?)
    }

    fn of_json(mut found: Value) -> Result<StoreManifest, &'static str> {
        let manifest = found.as_object_mut().ok_or(MALFORMED)?;
        let checksum = manifest.shift_remove("checksum");
        match manifest.get("format").and_then(Value::as_str) {
            Some(FORMAT) if checksum == Some(json!(checksum_of(manifest))) => {}
            Some(FORMAT) => return Err("its checksum is wrong"),
            Some(format) if format.starts_with(FORMAT_NAME) => {
                return Err("its format is unknown; use the version of irikey that wrote it");
            }
            _ => return Err(MALFORMED),
        }
        let runs = found["runs"].as_array().ok_or(MALFORMED)?.iter().map(run_of_json);
        let runs: Vec<RunInfo> = runs.collect::<Option<_>>().ok_or("its list of runs is wrong")?;
        if runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.count)).is_none() {
            return Err("its numbers of keys are wrong");
        }
        let jobs = found["jobs"].as_array().ok_or(MALFORMED)?.iter().map(FinishedJob::of_json);
        Ok(StoreManifest {
            generation: found["generation"].as_u64().filter(|last| *last < u64::MAX / 2).ok_or(MALFORMED)?,
            jobs: jobs.collect::<Option<_>>().ok_or(MALFORMED)?,
            policy: found["policy"].as_object().ok_or(MALFORMED)?.clone(),
            runs,
        })
    }

    /// Replaces the manifest of a store.
    pub(super) fn write(&self, directory: &Path) -> Result<(), SeenError> {
        let run =
            |RunInfo { name, count, checksum }: &RunInfo| json!({"name": name, "keys": count, "checksum": checksum});
        let jobs = &self.jobs[self.jobs.len().saturating_sub(MAX_JOBS)..];
        let mut manifest = Map::new();
        manifest.insert("format".to_string(), json!(FORMAT));
        manifest.insert("generation".to_string(), json!(self.generation));
        manifest.insert("policy".to_string(), json!(self.policy));
        manifest.insert("runs".to_string(), self.runs.iter().map(run).collect());
        manifest.insert("jobs".to_string(), jobs.iter().map(FinishedJob::to_json).collect());
        manifest.insert("checksum".to_string(), json!(checksum_of(&manifest)));
        let path = directory.join(MANIFEST);
        let created = PendingFile::create(directory);
        let (mut file, pending) = created.map_err(SeenError::io(&path, "create a temporary file for"))?;
        let written = file.write_all(format!("{:#}\n", Value::Object(manifest)).as_bytes());
        written.map_err(SeenError::io(&path, "write"))?;
        Ok(pending.commit(&path, Existing::Replace)?)
    }
}

impl FinishedJob {
    fn to_json(&self) -> Value {
        let FinishedJob { id, times, output_len, status, names, files } = self;
        json!({
            "id": id, "times": times, "output_bytes": output_len, "exit_code": status, "names": names, "files": files
        })
    }

    fn of_json(json: &Value) -> Option<FinishedJob> {
        let text = |name: &str| json[name].as_str().map(str::to_string);
        Some(FinishedJob {
            id: text("id")?,
            times: text("times")?,
            output_len: json["output_bytes"].as_u64()?,
            status: u8::try_from(json["exit_code"].as_u64()?).ok()?,
            names: text("names")?,
            files: text("files")?,
        })
    }
}

/// XXH3-128 of the values, in hexadecimal. White space does not count.
pub(super) fn checksum_of(manifest: &Map<String, Value>) -> String {
    format!("{:032x}", xxh3_128(json!(manifest).to_string().as_bytes()))
}

/// A run of the manifest; `None` if a value is missing, or if the name leads out of the store.
fn run_of_json(run: &Value) -> Option<RunInfo> {
    let text = |name: &str| run[name].as_str().map(str::to_string);
    let name = text("name").filter(|name| is_run_name(name))?;
    Some(RunInfo { name, count: run["keys"].as_u64()?, checksum: text("checksum")? })
}

/// The name of a run: `run-` and a number.
pub(super) fn is_run_name(name: &str) -> bool {
    let number = name.strip_prefix("run-");
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
