//! What a run came to: the numbers that the summary shows and `--report` writes as JSON.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::timeline::Moment;
use crate::canon::{RecipeTally, Tally};
use crate::dedup::{Findings, RuleFindings};
use crate::iri::{Changes, FaultKind, Flags, SpoofingFlags};
use crate::key::RULES;
use crate::output::FinishedOutput;

/// An input that could not be read wholly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFailure {
    /// The source, as it was named.
    pub source: String,
    /// Where and why, and what was still written; without the source.
    pub message: String,
}

/// The numbers of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Names of the sources, in order.
    pub sources: Vec<String>,
    /// What became of the records.
    pub tally: Tally,
    /// `tally.spoofing_flags` was counted.
    pub has_spoofing_flags: bool,
    /// Header and comment lines of the inputs, which are no records.
    pub headers: u64,
    /// Records of archives that --record-types left out; they are no rows.
    pub skipped: u64,
    /// `tally` counts what equivalences did.
    pub has_equivalences: bool,
    /// Names and versions of the recipes that `tally` counts, in its order.
    pub recipes: Vec<String>,
    /// How many different keys there are.
    pub distinct: u64,
    /// `distinct` was counted, not estimated.
    pub distinct_is_exact: bool,
    /// Bytes of input, after decompression.
    pub input_bytes: u64,
    /// From the first byte read to the output's final name.
    pub elapsed: Duration,
    /// Most memory that was resident at one time, mapped input included; bytes.
    pub peak_memory: Option<u64>,
    /// Most anonymous memory at one time, as seen by sampling; bytes.
    pub peak_anonymous: Option<u64>,
    /// Worker threads.
    pub threads: usize,
    /// What the rows depended on: [`crate::canon::Policy::describe`].
    pub policy: Vec<(&'static str, String)>,
    /// The name of the output's format.
    pub output_format: &'static str,
    /// The output.
    pub output: Option<FinishedOutput>,
    /// The files of an output that is a directory.
    pub files: Vec<FinishedOutput>,
    /// Inputs that an earlier run had done, if this one took it up; what is counted is the rest.
    pub resumed: Option<u64>,
    /// Inputs that could not be read wholly.
    pub errors: Vec<InputFailure>,
    /// Throughput and memory over time; empty unless a report is written.
    pub timeline: Vec<Moment>,
    /// What the groups of a dedup showed, if somebody looked.
    pub findings: Option<Findings>,
    /// What was left out and why, if duplicates were.
    pub dedup: Option<DedupReport>,
}

/// The numbers of a dedup: `kept + duplicates + seen + faulty` is the number of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DedupReport {
    /// Rows kept, one a key.
    pub kept: u64,
    /// Rows that another one stands for.
    pub duplicates: u64,
    /// Rows whose key earlier runs have seen.
    pub seen: u64,
    /// Bytes of temporary files.
    pub spilled: u64,
    /// The name of the key that records were compared by, if it is no rung's.
    pub key: String,
    /// The name of the policy that chose.
    pub keep: &'static str,
    /// Rows that competed without a time, where the policy looks at times.
    pub undated: u64,
    /// Texts that have another text's key, and where the first of them are; if texts were compared.
    pub collisions: Option<(u64, Vec<CollisionAt>)>,
}

/// Two texts with one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollisionAt {
    /// The key, in hexadecimal.
    pub key: String,
    /// Of both: source, record and text.
    pub rows: [(String, u64, String); 2],
}

impl DedupReport {
    fn to_json(&self, faulty: u64) -> Value {
        let examples = |examples: &Vec<CollisionAt>| examples.iter().map(CollisionAt::to_json).collect::<Vec<_>>();
        json!({
            "keep": self.keep,
            "kept": self.kept,
            "duplicates": self.duplicates,
            "seen": self.seen,
            "faulty": faulty,
            "undated": self.undated,
            "collisions": self.collisions.as_ref().map(|(count, _)| count),
            "collision_examples": self.collisions.as_ref().map(|(_, all)| examples(all)),
            "temporary_bytes": self.spilled,
        })
    }
}

impl CollisionAt {
    fn to_json(&self) -> Value {
        let row =
            |(source, record, text): &(String, u64, String)| json!({"source": source, "record": record, "text": text});
        json!({"key": self.key, "rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }
}

impl Report {
    /// Records a second.
    pub fn records_per_second(&self) -> f64 {
        self.tally.rows as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Bytes of input a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.input_bytes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// What makes records duplicates, the weakest first: the rungs, and the key if it is none.
    pub fn steps(&self) -> [String; 4] {
        let rung = self.policy.iter().find(|(name, _)| *name == "rung").map_or("", |(_, rung)| rung.as_str());
        let key = self.dedup.as_ref().map_or("", |dedup| &dedup.key);
        ["simple", "syntax", rung, if key.is_empty() { "key" } else { key }].map(str::to_string)
    }

    /// As JSON, every count in it, also those that are 0.
    pub fn to_json(&self) -> Value {
        let tally = &self.tally;
        let mut report = json!({
            "irikey": env!("CARGO_PKG_VERSION"),
            "inputs": self.sources,
            "records": tally.rows,
            "headers": self.headers,
            "skipped": self.skipped,
            "unchanged": tally.unchanged,
            "changed": tally.changed,
            "changes": counts(Changes::ALL.iter().map(|(_, name, _)| *name), &tally.changes),
            "faulty": tally.faulty,
            "faults": counts(FaultKind::ALL.into_iter().map(FaultKind::name), &tally.faults),
            "flags": counts(Flags::ALL.iter().map(|(_, name, _)| *name), &tally.flags),
            "spoofing_flags": self.has_spoofing_flags.then(|| counts(SpoofingFlags::ALL.iter().map(|(_, name, _)| *name), &tally.spoofing_flags)),
            "recipes": self.recipes_to_json(),
            "equivalences": self.has_equivalences.then(|| json!({
                "by_class": tally.by_class,
                "by_pattern": tally.by_pattern,
            })),
            "resumed_inputs": self.resumed,
            "distinct_keys": self.resumed.is_none().then_some(self.distinct),
            "distinct_keys_exact": self.distinct_is_exact,
            "input_bytes": self.input_bytes,
            "seconds": self.elapsed.as_secs_f64(),
            "records_per_second": self.records_per_second(),
            "input_bytes_per_second": self.bytes_per_second(),
            "peak_memory_bytes": self.peak_memory,
            "peak_anonymous_bytes": self.peak_anonymous,
            "threads": self.threads,
            "policy": self.policy.iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>(),
            "output": self.output.as_ref().map(|output| self.output_to_json(output)),
            "files": self.files.iter().map(file_to_json).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(|error| json!({
                "source": error.source,
                "message": error.message,
            })).collect::<Vec<_>>(),
            "timeline": self.timeline.iter().map(|at| json!([at.seconds, at.records, at.memory])).collect::<Vec<_>>(),
        });
        if let Some(found) = &self.findings {
            report["survey"] = survey(found, &self.steps());
        }
        if let Some(dedup) = &self.dedup {
            report["dedup"] = dedup.to_json(tally.faulty);
        }
        report
    }

    fn recipes_to_json(&self) -> Vec<Value> {
        let recipe = |(name, recipe): (_, &RecipeTally)| {
            json!({
                "recipe": name,
                "keys": recipe.keys,
                "fired": counts(RULES.iter().map(|rule| rule.name), &recipe.applied),
            })
        };
        self.recipes.iter().zip(&self.tally.recipes).map(recipe).collect()
    }

    fn output_to_json(&self, output: &FinishedOutput) -> Value {
        json!({
            "path": output.path.as_ref().map(|path| path.display().to_string()),
            "format": self.output_format,
            "bytes": output.bytes,
            "rows": output.rows,
            "parts": output.parts,
        })
    }
}

fn file_to_json(file: &FinishedOutput) -> Value {
    json!({
        "path": file.path.as_ref().map(|path| path.display().to_string()),
        "bytes": file.bytes,
        "rows": file.rows,
    })
}

fn survey(found: &Findings, steps: &[String; 4]) -> Value {
    let rule = |(name, rule): (&String, &RuleFindings)| {
        let found = json!({
            "merged": rule.merged,
            "compared": rule.compared,
            "differing": rule.differing,
            "examples": rule.examples,
        });
        (name.clone(), found)
    };
    json!({
        "share": found.share,
        "groups_sampled": found.sampled,
        "groups_by_size": found.sizes.iter().map(|class| json!({
            "from": class.from,
            "to": class.to,
            "groups": class.groups,
            "records": class.rows,
        })).collect::<Vec<_>>(),
        "duplicates_by": steps.iter().zip(found.by_step).map(|(name, count)| (name.clone(), json!(count))).collect::<Map<_, _>>(),
        "rules": found.rules.iter().map(rule).collect::<Map<_, _>>(),
        "same_uri": {"compared": found.repeated.0, "differing": found.repeated.1},
        "hosts": found.hosts.iter().map(|host| json!({
            "host": host.host,
            "records": host.records,
            "duplicates": host.duplicates,
        })).collect::<Vec<_>>(),
        "hosts_records_short_by_at_most": found.host_error,
    })
}

fn counts<'a>(names: impl Iterator<Item = &'a str>, counts: &[u64]) -> Map<String, Value> {
    names.zip(counts).map(|(name, count)| (name.to_string(), json!(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_every_count() {
        let mut report = Report { distinct: 3, sources: vec!["a.txt".to_string()], ..Report::default() };
        report.tally.rows = 4;
        report.tally.faulty = 4;
        report.tally.faults[FaultKind::Port as usize] = 4;
        report.errors.push(InputFailure { source: "a.txt".to_string(), message: "ends early".to_string() });
        let json = report.to_json();
        assert_eq!(
            (&json["records"], &json["faults"]["port"], &json["faults"]["empty"]),
            (&json!(4), &json!(4), &json!(0))
        );
        assert_eq!(json["changes"].as_object().unwrap().len(), Changes::ALL.len());
        assert_eq!(json["errors"][0]["source"], "a.txt");
        assert!(json["output"].is_null() && json["spoofing_flags"].is_null());
        report.has_spoofing_flags = true;
        report.tally.spoofing_flags[13] = 2;
        assert_eq!(report.to_json()["spoofing_flags"]["encoded-slash"], 2);
    }
}
