//! The one place where a [`Job`] meets the run: lists the sources, turns them into rows, hands parts to the output.

use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use super::canon_args::Job;
use super::progress::Sample;
use super::report::InputFailure;
use crate::batch::SourceRun;
use crate::canon::{Canonicalizer, Rows, Tally};
use crate::kernel::Bitmaps;
use crate::output::{Encoder, Output, OutputError};
use crate::record::lines::Lines;

/// Numbers that a run counts while it goes, for the bar.
#[derive(Debug, Default)]
pub(super) struct Counters {
    bytes: AtomicU64,
    records: AtomicU64,
}

impl Counters {
    pub(super) fn sample(&self) -> Sample {
        Sample { bytes: self.bytes.load(Ordering::Relaxed), records: self.records.load(Ordering::Relaxed) }
    }
}

/// The inputs, listed.
pub(super) struct Sources {
    /// Their names, as errors and the column `source` have them.
    pub(super) names: Vec<String>,
    /// Their length in bytes as they lie in files, where it is known of all.
    pub(super) total: Option<u64>,
    paths: Vec<PathBuf>,
}

/// What the run came to, less what only the caller knows.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) tally: Tally,
    pub(super) distinct: u64,
    pub(super) distinct_is_exact: bool,
    pub(super) input_bytes: u64,
    pub(super) errors: Vec<InputFailure>,
}

/// Lists the sources of a job. The error is a message that names the input.
pub(super) fn sources(job: &Job) -> Result<Sources, String> {
    let names = job.inputs.iter().map(|path| path.display().to_string()).collect();
    let total = job.inputs.iter().map(|path| std::fs::metadata(path).ok().map(|file| file.len())).sum();
    Ok(Sources { names, total, paths: job.inputs.clone() })
}

/// Does the job: whole inputs, one after the other, lines only.
pub(super) fn run(
    job: &Job,
    sources: &Sources,
    encoder: &Encoder,
    output: &mut Output,
    counters: &Counters,
) -> Result<Ran, OutputError> {
    let mut ran = Ran { distinct_is_exact: true, ..Ran::default() };
    let mut keys = std::collections::HashSet::new();
    let (mut canonicalizer, mut lines, mut bitmaps) =
        (Canonicalizer::new(&job.policy), Lines::default(), Bitmaps::default());
    let mut rows = Rows::new(job.policy.more_keys.len());
    for (source, path) in sources.paths.iter().enumerate() {
        let text = match read(path) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("cannot read: {error}");
                ran.errors.push(InputFailure { source: sources.names[source].clone(), message });
                continue;
            }
        };
        canonicalizer.append(&lines.decode(&text, 0, &mut bitmaps), &bitmaps, &mut rows);
        counters.bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        counters.records.fetch_add(rows.len() as u64, Ordering::Relaxed);
        ran.input_bytes += text.len() as u64;
        ran.tally.add(&rows.tally);
        keys.extend(rows.key.iter().copied());
        let run = SourceRun { source: source as u32, first_record: 1, rows: rows.len() as u32 };
        output.append(encoder.encode(&mut rows, &[run])?)?;
    }
    ran.distinct = keys.len() as u64;
    Ok(ran)
}

fn read(path: &PathBuf) -> std::io::Result<Vec<u8>> {
    if path.as_os_str() != "-" {
        return std::fs::read(path);
    }
    let mut text = Vec::new();
    std::io::stdin().lock().read_to_end(&mut text)?;
    Ok(text)
}
