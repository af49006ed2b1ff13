//! `--resume` of what is sorted or partitioned. In: inputs and a directory. Out: the same files as without the flag.
//!
//! Each input becomes sorted runs, a file of them in `_runs` below the directory, where the manifest is too; when all are
//! there they are merged into the parts. A job that was killed finds the runs that are finished; its merge it begins anew.
//! When the parts are whole, the runs go, and the manifest says what there is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::super::args::Sorting;
use super::super::canon::{Failure, bar, report};
use super::super::canon_args::Job;
use super::super::drive::{self, Ran};
use super::super::files::{Files, Written};
use super::super::report::Report;
use super::{Done, Manifest, Rest, Task, hash, make_directory, policy, remove_leftovers, run_all, source};
use crate::output::FinishedOutput;
use crate::process::TemporaryFileGuard;
use crate::run::{Progress, RunOptions, SortError, Sorter};
use crate::sort::RunFileWriter;

/// Where runs are, below the directory of the output.
const RUNS: &str = "_runs";

/// Suffix of a file of runs.
const SUFFIX: &str = "runs";

/// The manifest says so from the first part of the output on, until all are finished.
const MERGING: &str = "merging";

/// Does what is not done yet.
pub(super) fn perform(job: &Job, directory: &Path) -> Result<Report, Failure> {
    let begun = Instant::now();
    let runs = directory.join(RUNS);
    make_directory(&runs)?;
    remove_leftovers(&runs);
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let names = sources.names();
    let mut manifest = Manifest::open(&runs, sorted_policy(job))?;
    if !manifest.has_inputs(&names) {
        let advice = "its runs are of other inputs, or in another order / name those, or use another directory";
        return Err(Failure::Usage(format!("{}: {advice}", directory.display())));
    }
    let Rest { tasks, mut files, mut errors } = manifest.rest(sources, &runs, SUFFIX)?;
    let resumed = files.len() as u64;
    let progress = Arc::new(Progress::new());
    let (mut ran, written) = match finished(&manifest.whole, directory)? {
        Some(written) => (Ran::default(), written),
        None => sort(job, directory, &names, &mut manifest, (tasks, &mut files), &progress)?,
    };
    for runs in files.iter().filter_map(|file| file.path.as_deref()) {
        // What stays is in nobody's way.
        let _ = fs::remove_file(runs);
    }
    errors.append(&mut ran.errors);
    ran.errors = errors;
    let Written { all, files } = written;
    let all = FinishedOutput { path: Some(directory.to_path_buf()), ..all };
    let report = report(job, names, ran, all, begun.elapsed());
    Ok(Report { files, resumed: Some(resumed), ..report })
}

/// What rows and files depend on, their order included.
fn sorted_policy(job: &Job) -> Value {
    let Sorting { by, partition, ranges, part_rows, hive, bloom, .. } = &job.outputs.sorting;
    let mut policy = policy(job);
    let parting = partition.as_ref().map(|partition| format!("{:032x}", xxh3_128(format!("{partition:?}").as_bytes())));
    policy["sort"] = json!(by.to_string());
    policy["partition"] = json!([parting, ranges]);
    policy["part_rows"] = json!(part_rows);
    policy["hive"] = json!(hive);
    policy["bloom_filter"] = json!(bloom);
    policy
}

/// Makes the runs that are missing, and merges all.
fn sort(
    job: &Job,
    directory: &Path,
    names: &[String],
    manifest: &mut Manifest,
    (tasks, done): (Vec<Task>, &mut Vec<FinishedOutput>),
    progress: &Arc<Progress>,
) -> Result<(Ran, Written), Failure> {
    if manifest.whole == json!(MERGING) {
        remove_parts(job, directory)?;
    }
    let (encoder, files) = Files::create(job, names)?;
    let wanted = drive::sort_options(job).ok_or_else(|| Failure::Internal("there is nothing to sort by".into()))?;
    let how = drive::options(&job.inputs, &job.work, job.outputs.row_group_len);
    let bar = bar(job.reporting.progress, None, progress);
    let work = |task: Task, threads: usize| {
        let how = RunOptions { threads, ..how.clone() };
        make_runs(task, &Sorter::new(names, (&how, &wanted), &job.policy, &encoder)?, progress)
    };
    let ran = run_all(job.work.threads, tasks, manifest, done, work);
    drop(bar);
    let ran = ran?;
    manifest.whole = json!(MERGING);
    manifest.write()?;
    let written = merge(job, &Sorter::new(names, (&how, &wanted), &job.policy, &encoder)?, files, (manifest, done))?;
    manifest.whole = json!({"files": written.files.iter().map(described).collect::<Vec<_>>()});
    manifest.write()?;
    Ok((ran, written))
}

/// The runs of an input, from its first byte to their file's name.
fn make_runs(task: Task, sorter: &Sorter<'_>, progress: &Progress) -> Result<Done, Failure> {
    let sources = source(&task)?;
    let directory = task.part.parent().unwrap_or(Path::new("."));
    let mut runs = RunFileWriter::create(directory).map_err(SortError::from)?;
    let _guard = TemporaryFileGuard::register(runs.temporary_path());
    let summary = sorter.sort_runs(sources, task.number as u32, |blocks| runs.add(blocks), progress)?;
    let bytes = runs.finish(&task.part).map_err(SortError::from)?;
    let hash = hash(&task.source)?;
    let finished = FinishedOutput { path: Some(task.part.clone()), bytes, rows: summary.rows, parts: 1 };
    Ok(Done { task, finished, ran: drive::ran(summary), hash })
}

/// Merges the runs of all inputs into the files of the output.
fn merge(
    job: &Job,
    sorter: &Sorter<'_>,
    mut files: Files,
    (manifest, done): (&Manifest, &[FinishedOutput]),
) -> Result<Written, Failure> {
    let mut runs = sorter.new_runs();
    for path in done.iter().filter_map(|file| file.path.as_deref()) {
        runs.add_file(path).map_err(SortError::from)?;
    }
    let (rows, _) = sorter.merge(runs, |sorted| files.append_sorted(sorted))?;
    if rows != manifest.rows() {
        return Err(Failure::Internal(format!("{rows} rows were merged of {}", manifest.rows())));
    }
    let written = files.finish_counted(job, rows)?;
    Ok(written)
}

/// Removes the parts of a merge that was killed. The directory had none before it.
fn remove_parts(job: &Job, directory: &Path) -> Result<(), Failure> {
    let root = job.outputs.sorting.hive.iter().fold(directory.to_path_buf(), |path, part| path.join(part));
    remove_leftovers(&root);
    for entry in fs::read_dir(&root).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let removed = match path.is_dir() {
            true if name.starts_with("host_hash=") || name.starts_with("surt_range=") => fs::remove_dir_all(&path),
            false if name.starts_with("part-") || name == "splits.txt" => fs::remove_file(&path),
            _ => Ok(()),
        };
        removed.map_err(|error| Failure::Temporary(format!("{}: cannot remove: {error}", path.display())))?;
    }
    Ok(())
}

fn described(file: &FinishedOutput) -> Value {
    json!({"path": file.path, "rows": file.rows, "bytes": file.bytes, "groups": file.parts})
}

/// What an earlier job has finished, if it has.
fn finished(whole: &Value, directory: &Path) -> Result<Option<Written>, Failure> {
    let Some(files) = whole["files"].as_array() else { return Ok(None) };
    let file = |file: &Value| {
        let count = |name: &str| file[name].as_u64().unwrap_or(0);
        let path = file["path"].as_str().map(PathBuf::from);
        FinishedOutput { path, bytes: count("bytes"), rows: count("rows"), parts: count("groups") }
    };
    let files: Vec<FinishedOutput> = files.iter().map(file).collect();
    if let Some(lost) = files.iter().filter_map(|file| file.path.as_deref()).find(|path| !path.exists()) {
        let advice = "was finished, and is gone / remove the directory _runs to begin anew";
        return Err(Failure::Usage(format!("{}: {advice}", lost.display())));
    }
    Ok(Some(Written::of(directory.to_path_buf(), files)))
}
