//! A job that can be taken up again: `--resume`. In: inputs and a directory. Out: a part for each input, and a manifest
//! that names inputs, policy and finished parts, written anew after every part. Whenever the job ends, however it ends, a
//! second run finds in it what is done and does the rest; the directory is then the same as that of one run.
//!
//! A run under another policy is refused, and so is an input that is not what it was: its part would not be that of its
//! name.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, UNIX_EPOCH};

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::Xxh3;

use super::canon::{Failure, bar, output_options, report};
use super::canon_args::Job;
use super::drive::{self, Ran};
use super::files::write;
use super::report::{InputFailure, Report};
use crate::input::{Origin, Source, Sources};
use crate::output::{self, Arrangement, Destination, Finished};
use crate::run::{self, Progress, RunError};

const MANIFEST: &str = "_manifest.json";

/// What a directory is known to hold.
struct Manifest {
    path: PathBuf,
    /// What all parts are made under.
    policy: Value,
    /// Finished inputs by name, in the order in which they were first seen.
    inputs: Map<String, Value>,
}

/// An input that is still to be done.
struct Task {
    source: Source,
    part: PathBuf,
    size: u64,
    modified: u64,
}

/// What an earlier run left, and what it did.
struct Rest {
    tasks: Vec<Task>,
    /// Parts that are finished.
    files: Vec<Finished>,
    /// What was wrong with their inputs.
    errors: Vec<InputFailure>,
}

/// Does what is not done yet.
pub(super) fn perform(job: &Job) -> Result<Report, Failure> {
    let begun = Instant::now();
    let directory = match &job.outputs.destination {
        Destination::File(path) => path.clone(),
        Destination::Stdout => return Err(Failure::Usage("--resume makes files; name their directory with -o".into())),
    };
    let made = fs::create_dir_all(&directory);
    made.map_err(|error| Failure::Temporary(format!("{}: cannot make the directory: {error}", directory.display())))?;
    remove_leftovers(&directory);
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let names = sources.names();
    let mut manifest = Manifest::open(&directory, policy(job))?;
    let Rest { tasks, mut files, mut errors } = manifest.rest(sources, &directory, job)?;
    let resumed = files.len() as u64;
    let progress = Arc::new(Progress::new());
    let bar = bar(job.reporting.progress, None, &progress);
    let ran = run_all(job, tasks, &mut manifest, &mut files, &progress);
    drop(bar);
    let mut ran = ran?;
    errors.append(&mut ran.errors);
    ran.errors = errors;
    let sum = |count: fn(&Finished) -> u64| files.iter().map(count).sum();
    let all = Finished {
        path: Some(directory),
        bytes: sum(|file| file.bytes),
        rows: sum(|file| file.rows),
        parts: sum(|file| file.parts),
    };
    let report = report(job, names, ran, all, begun.elapsed());
    Ok(Report { files, resumed: Some(resumed), ..report })
}

/// Removes what a run that was killed left under temporary names.
fn remove_leftovers(directory: &Path) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_leftover = |name: &str| name.starts_with(".irikey-") && name.ends_with(".tmp");
    // What stays is in nobody's way.
    entries.filter(|entry| is_leftover(&entry.file_name().to_string_lossy())).for_each(|entry| {
        let _ = fs::remove_file(entry.path());
    });
}

/// What rows and files depend on.
fn policy(job: &Job) -> Value {
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
    fn open(directory: &Path, policy: Value) -> Result<Manifest, Failure> {
        let path = directory.join(MANIFEST);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Manifest { path, policy, inputs: Map::new() });
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
        Ok(Manifest { inputs: inputs.clone(), path, policy })
    }

    /// What is to be done, the parts that are finished, and what was wrong with their inputs.
    fn rest(&mut self, sources: Sources, directory: &Path, job: &Job) -> Result<Rest, Failure> {
        let (mut tasks, mut files, mut errors) = (Vec::new(), Vec::new(), Vec::new());
        let suffix = job.outputs.format.suffixes()[0];
        for source in sources.0 {
            let (size, modified) = stat(&source)?;
            let number = self.number(&source.name);
            let part = directory.join(format!("part-{number:05}.{suffix}"));
            let entry = &self.inputs[&source.name];
            if entry["rows"].is_null() {
                tasks.push(Task { source, part, size, modified });
                continue;
            }
            let same_time = entry["modified"].as_u64() == Some(modified);
            if entry["size"].as_u64() != Some(size) || (!same_time && entry["hash"] != json!(hash(&source)?)) {
                let advice =
                    "is not what its part was made of / remove its entry and its part, or use another directory";
                return Err(Failure::Input(format!("{}: {advice}", source.name)));
            }
            let count = |name: &str| entry[name].as_u64().unwrap_or(0);
            files.push(Finished {
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

    /// The part of an input, which stays the same from run to run.
    fn number(&mut self, name: &str) -> u64 {
        let next = self.inputs.len();
        let entry = self.inputs.entry(name).or_insert_with(|| json!({"part": next}));
        entry["part"].as_u64().unwrap_or(next as u64)
    }

    /// An input is done.
    fn add(&mut self, task: &Task, hash: &str, finished: &Finished, error: Option<&str>) -> Result<(), Failure> {
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

    fn write(&self) -> Result<(), Failure> {
        let manifest = json!({"policy": self.policy, "inputs": self.inputs});
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
fn hash(source: &Source) -> Result<String, Failure> {
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

/// Several inputs side by side while there are enough of them, and one with all threads otherwise: parts are the same.
fn run_all(
    job: &Job,
    tasks: Vec<Task>,
    manifest: &mut Manifest,
    files: &mut Vec<Finished>,
    progress: &Progress,
) -> Result<Ran, Failure> {
    let (beside, threads) = if tasks.len() >= job.work.threads { (job.work.threads, 1) } else { (1, job.work.threads) };
    let mut all = Ran::default();
    let mut tasks = tasks.into_iter();
    let work = |task: Task| one(job, task, threads, progress);
    let append = |(task, finished, ran, hash): (Task, Finished, Ran, String)| {
        manifest.add(&task, &hash, &finished, ran.errors.first().map(|error| error.message.as_str()))?;
        files.push(finished);
        all.add(ran);
        Ok(())
    };
    run::produced_in_order(beside, || Ok(tasks.next()), work, append).map_err(|error| match error {
        RunError::Output(failure) => failure,
        RunError::Threads(message) | RunError::Panicked(message) => Failure::Internal(message),
        _ => Failure::Internal("the inputs could not be shared out".into()),
    })?;
    Ok(all)
}

/// One input from its first byte to its part's name.
fn one(job: &Job, task: Task, threads: usize, progress: &Progress) -> Result<(Task, Finished, Ran, String), Failure> {
    let source = match &task.source.origin {
        Origin::Path(path) => Source::path(path.clone()).map_err(|error| Failure::Input(error.to_string()))?,
        _ => return Err(Failure::Usage("--resume takes files".into())),
    };
    let options = output_options(&job.outputs, &job.policy, std::slice::from_ref(&task.source.name));
    let arrangement = Arrangement { bloom: job.outputs.sorting.bloom, ..Arrangement::default() };
    let destination = Destination::File(task.part.clone());
    let (encoder, mut output) = output::create_arranged(&destination, options, &arrangement)?;
    if let Some(path) = output.temporary_path() {
        crate::input::remove_on_signal(path);
    }
    let mut how = drive::options(&job.inputs, &job.work, job.outputs.row_group_len);
    how.threads = threads;
    let encode = |rows: &mut _, runs: &[_]| encoder.encode(rows, runs);
    let append = |part| output.append(part);
    let summary = run::canon(Sources(vec![source]), &how, &job.policy, encode, append, progress)?;
    if output.rows() != summary.rows {
        return Err(Failure::Internal(format!("{} rows of {} were written", output.rows(), summary.rows)));
    }
    let finished = output.finish()?;
    crate::input::forget();
    let hash = hash(&task.source)?;
    Ok((task, finished, drive::ran(summary), hash))
}
