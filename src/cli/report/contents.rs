//! What the report of a job contains, and its JSON.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::advice::advice;
use super::survey;
use crate::canon::{Policy, RecipeColumn, RecipeTally};
use crate::cli::progress::TimelineSample;
use crate::dedup::{Estimate, Findings, KeepPolicy};
use crate::input::InputError;
use crate::output::FinishedOutput;
use crate::process::path_name;
use crate::remote::Transfer;
use crate::run::{DedupTotals, Summary};

/// An input that could not be read completely.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SourceError {
    /// Name of the source.
    pub(crate) source: String,
    /// Where reading stopped and why, without the source.
    pub(crate) message: String,
}

impl From<&InputError> for SourceError {
    fn from(error: &InputError) -> SourceError {
        let message = error.to_string();
        let message = message.strip_prefix(&format!("{}: ", error.name)).unwrap_or(&message).to_string();
        SourceError { source: error.name.clone(), message }
    }
}

impl SourceError {
    pub(crate) fn of_run(summary: &Summary) -> Vec<SourceError> {
        summary.input_errors.iter().map(SourceError::from).collect()
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"source": self.source, "message": self.message})
    }
}

/// The report of `canon` and `dedup`.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) summary: Summary,
    /// Names of the sources, in order.
    pub(crate) sources: Vec<String>,
    /// Inputs that could not be read completely, also in earlier runs of a resumed job.
    pub(crate) errors: Vec<SourceError>,
    /// The command line, quoted for a shell.
    pub(crate) command: String,
    /// When the job had finished: date and time in UTC.
    pub(crate) finished: String,
    /// From the start of the job until the output got its final name.
    pub(crate) elapsed: Duration,
    pub(crate) threads: usize,
    /// What the rows depend on.
    pub(crate) policy: Policy,
    pub(crate) output_format: &'static str,
    /// The output as a whole; `None` if there is none, because an input has an error and there are no records.
    pub(crate) output: Option<FinishedOutput>,
    /// The files of an output that is a directory.
    pub(crate) files: Vec<FinishedOutput>,
    pub(crate) replaced: Vec<PathBuf>,
    /// The inputs that earlier runs had finished, if this run resumed them. The summary is about the rest.
    pub(crate) resumed: Option<ResumedInputs>,
    /// What was requested of stores and servers, if anything was.
    pub(crate) transfer: Option<Transfer>,
    /// Bytes of temporary files, if rows were sorted or compared.
    pub(crate) temporary_bytes: Option<u64>,
    /// Throughput and memory over time; empty unless a report is written.
    pub(crate) timeline: Vec<TimelineSample>,
    /// What the survey of the groups of duplicates found.
    pub(crate) findings: Option<Findings>,
    /// What was left out and why.
    pub(crate) dedup: Option<DedupReport>,
}

/// Inputs that earlier runs of a job had finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResumedInputs {
    pub(crate) count: u64,
    /// Number of their records that have a fault.
    pub(crate) faulty: u64,
}

/// What a dedup reports besides the counts of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DedupReport {
    /// Counts of the run.
    pub(crate) totals: DedupTotals,
    /// Name of the key that records were compared by; empty if it is that of the rung.
    pub(crate) key: String,
    /// The rule that chose representatives.
    pub(crate) keep: KeepPolicy,
    /// Number of different texts with the key of another text, and the first of them; if texts were compared.
    pub(crate) collisions: Option<(u64, Vec<CollisionReport>)>,
}

/// Two different texts with the same key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CollisionReport {
    /// The key in hexadecimal.
    pub(crate) key: String,
    /// Source, record and text of both.
    pub(crate) rows: [(String, u64, String); 2],
}

impl DedupReport {
    fn to_json(&self) -> Value {
        let examples =
            |examples: &Vec<CollisionReport>| examples.iter().map(CollisionReport::to_json).collect::<Vec<_>>();
        json!({
            "keep": self.keep.name(),
            "kept": self.totals.kept,
            "duplicates": self.totals.duplicates,
            "seen": self.totals.seen,
            "faulty": self.totals.faulty,
            "undated": self.totals.undated,
            "collisions": self.collisions.as_ref().map(|(count, _)| count),
            "collision_examples": self.collisions.as_ref().map(|(_, all)| examples(all)),
        })
    }
}

impl CollisionReport {
    fn to_json(&self) -> Value {
        let row =
            |(source, record, text): &(String, u64, String)| json!({"source": source, "record": record, "text": text});
        json!({"key": self.key, "rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }
}

impl Report {
    pub(super) fn command_name(&self) -> &'static str {
        if self.dedup.is_some() { "dedup" } else { "canon" }
    }

    pub(super) fn records_per_second(&self) -> f64 {
        self.summary.tally.rows as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn bytes_per_second(&self) -> f64 {
        self.summary.bytes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The number of duplicates by what makes them duplicates, from the weakest: the rungs, and the key if it has a name. A
    /// rung is listed once, also if it is that of `--rung` or of `--key`.
    pub(super) fn duplicates_by_level(&self, findings: &Findings) -> Vec<(String, Estimate)> {
        let key = self.dedup.as_ref().map_or("", |dedup| &dedup.key);
        let mut levels: Vec<(String, Estimate)> = Vec::new();
        for (name, count) in ["simple", "syntax", self.policy.rung.name(), key].into_iter().zip(findings.by_step) {
            match levels.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => (all.value, all.margin) = (all.value + count.value, all.margin + count.margin),
                None if name.is_empty() => (),
                None => levels.push((name.to_string(), count)),
            }
        }
        levels
    }

    /// As JSON with every count, also those that are 0.
    pub(super) fn to_json(&self) -> Value {
        let parts = [self.records_to_json(), self.keys_to_json(), self.cost_to_json(), self.files_to_json()];
        let mut report: Map<_, _> = parts.into_iter().flatten().collect();
        if let Some(findings) = &self.findings {
            report.insert("survey".to_string(), survey::to_json(findings, &self.duplicates_by_level(findings)));
        }
        if let Some(dedup) = &self.dedup {
            report.insert("dedup".to_string(), dedup.to_json());
        }
        report.into()
    }

    /// The job, and what became of its records.
    fn records_to_json(&self) -> Map<String, Value> {
        let (summary, tally) = (&self.summary, &self.summary.tally);
        let is_canonicalized = !summary.has_keyed_rows;
        object(json!({
            "irikey": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "finished": self.finished,
            "inputs": self.sources,
            "input_formats": self.summary.source_formats,
            "formats": counts(summary.sources_by_format()),
            "records": tally.rows,
            "headers": summary.headers,
            "skipped": summary.skipped,
            "pages": summary.pages,
            "unchanged": is_canonicalized.then_some(tally.unchanged),
            "changed": is_canonicalized.then_some(tally.changed),
            "changes": is_canonicalized.then(|| counts(tally.named_changes())),
            "faulty": tally.faulty,
            "faults": counts(tally.named_faults()),
            "fault_examples": summary.fault_examples.iter().map(|example| json!({
                "fault": example.fault.kind.name(),
                "source": self.sources.get(example.source),
                "record": example.record,
                "text": example.text,
            })).collect::<Vec<_>>(),
            "flags": is_canonicalized.then(|| counts(tally.named_flags())),
            "spoofing_flags": self.policy.spoofing_flags.then(|| counts(tally.named_spoofing_flags())),
        }))
    }

    /// Keys, and what equivalences and recipes did to them.
    fn keys_to_json(&self) -> Map<String, Value> {
        let (summary, tally) = (&self.summary, &self.summary.tally);
        object(json!({
            "recipes": self.recipes_to_json(),
            "equivalences": self.policy.equivalences.is_some().then(|| json!({
                "by_class": tally.by_class,
                "by_pattern": tally.by_pattern,
                "by_rule": tally.by_rule,
            })),
            "resumed_inputs": self.resumed.map(|resumed| resumed.count),
            "resumed_faulty": self.resumed.map(|resumed| resumed.faulty),
            "distinct_keys": self.resumed.is_none().then_some(summary.distinct_keys),
            "distinct_keys_exact": summary.is_distinct_exact,
        }))
    }

    /// Time, memory, and bytes that were read and received.
    fn cost_to_json(&self) -> Map<String, Value> {
        let summary = &self.summary;
        object(json!({
            "input_bytes": summary.bytes,
            "seconds": self.elapsed.as_secs_f64(),
            "records_per_second": self.records_per_second(),
            "input_bytes_per_second": self.bytes_per_second(),
            "transfer": self.transfer.map(|transfer| json!({
                "requests": transfer.requests,
                "failed_requests": transfer.failed_requests,
                "received_bytes": transfer.received,
            })),
            "peak_memory_bytes": summary.memory.peak_resident,
            "peak_anonymous_bytes": summary.memory.peak_anonymous,
            "temporary_bytes": self.temporary_bytes,
            "threads": self.threads,
        }))
    }

    /// The policy, the files that were written, errors and advice.
    fn files_to_json(&self) -> Map<String, Value> {
        object(json!({
            "policy": pairs_to_json(self.policy.describe()),
            "output": self.output.as_ref().map(|output| {
                let mut json = file_to_json(output);
                (json["format"], json["row_groups"]) = (json!(self.output_format), json!(output.row_groups));
                json
            }),
            "files": self.files.iter().map(file_to_json).collect::<Vec<_>>(),
            "replaced": replaced_to_json(&self.replaced),
            "advice": advice_to_json(&self.summary),
            "errors": self.errors.iter().map(SourceError::to_json).collect::<Vec<_>>(),
            "timeline": self.timeline.iter().map(|at| json!([at.seconds, at.records, at.memory])).collect::<Vec<_>>(),
        }))
    }

    fn recipes_to_json(&self) -> Vec<Value> {
        let recipe = |(name, recipe): (String, &RecipeTally)| {
            json!({
                "recipe": name,
                "keys": recipe.keys,
                "fired": counts(recipe.named_rules()),
            })
        };
        self.recipes().map(recipe).collect()
    }

    /// Names and versions of the recipes, with their counts.
    pub(super) fn recipes(&self) -> impl Iterator<Item = (String, &RecipeTally)> {
        self.policy.recipes.iter().map(RecipeColumn::describe).zip(&self.summary.tally.recipes)
    }
}

/// The advice on the inputs.
pub(super) fn advice_to_json(summary: &Summary) -> Value {
    advice(summary).iter().map(|advice| json!({"source": advice.source, "message": advice.text})).collect()
}

fn file_to_json(file: &FinishedOutput) -> Value {
    json!({
        "path": file.path.as_deref().map(path_name),
        "bytes": file.bytes,
        "rows": file.rows,
    })
}

/// The members of a value that is an object.
fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// Settings by their names.
pub(crate) fn pairs_to_json(pairs: Vec<(&'static str, String)>) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect()
}

/// The names of files that were replaced.
pub(crate) fn replaced_to_json(paths: &[PathBuf]) -> Value {
    paths.iter().map(|path| path_name(path)).collect()
}

/// Counts by their names.
pub(crate) fn counts<'a>(counts: impl IntoIterator<Item = (&'a str, u64)>) -> Map<String, Value> {
    counts.into_iter().map(|(name, count)| (name.to_string(), json!(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::{Changes, FaultKind};

    #[test]
    fn json_has_every_count() {
        let mut report = Report { sources: vec!["a.txt".to_string()], ..Report::default() };
        let tally = &mut report.summary.tally;
        (tally.rows, tally.faulty, tally.faults[FaultKind::Port as usize]) = (4, 4, 4);
        report.errors.push(SourceError { source: "a.txt".to_string(), message: "ends early".to_string() });
        let json = report.to_json();
        assert_eq!(
            (&json["records"], &json["faults"]["port"], &json["faults"]["empty"]),
            (&json!(4), &json!(4), &json!(0))
        );
        assert_eq!(json["changes"].as_object().unwrap().len(), Changes::ALL.len());
        assert_eq!(json["errors"][0]["source"], "a.txt");
        let path = Some(PathBuf::from("x.csv"));
        report.output = Some(FinishedOutput { path, bytes: 9, rows: 4, row_groups: 2 });
        let output = json!({"path": "x.csv", "format": "", "bytes": 9, "rows": 4, "row_groups": 2});
        assert_eq!(report.to_json()["output"], output);
        assert!(json["output"].is_null() && json["spoofing_flags"].is_null());
        report.policy.spoofing_flags = true;
        report.summary.tally.spoofing_flags[13] = 2;
        assert_eq!(report.to_json()["spoofing_flags"]["encoded-slash"], 2);
    }
}
