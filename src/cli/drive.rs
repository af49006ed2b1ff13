//! The one place where a [`Job`] meets the run: lists the sources, says how their records are written, hands parts to
//! the output.

use super::args::{Inputs, Sorting, Work};
use super::canon::Failure;
use super::canon_args::Job;
use super::files::Files;
use super::report::InputFailure;
use crate::canon::Tally;
use crate::input::{InputError, Sources, list};
use crate::output::Encoder;
use clap::ValueEnum as _;

use crate::record::csv::{CsvColumn, CsvHeader, CsvOptions};
use crate::record::{self, FormatOptions};
use crate::run::{self, Progress, RunOptions, SortOptions, Sorter, Summary};

/// What the run came to, less what only the caller knows.
#[derive(Default)]
pub(super) struct Ran {
    pub(super) tally: Tally,
    pub(super) headers: u64,
    pub(super) skipped: u64,
    pub(super) distinct: u64,
    pub(super) distinct_is_exact: bool,
    pub(super) input_bytes: u64,
    pub(super) peak_memory: Option<u64>,
    pub(super) peak_anonymous: Option<u64>,
    pub(super) errors: Vec<InputFailure>,
}

impl Ran {
    /// Adds another run of the same job. How many keys the two have in common nobody knows.
    pub(super) fn add(&mut self, mut other: Ran) {
        self.tally.add(&other.tally);
        self.headers += other.headers;
        self.skipped += other.skipped;
        self.input_bytes += other.input_bytes;
        self.peak_memory = self.peak_memory.max(other.peak_memory);
        self.peak_anonymous = self.peak_anonymous.max(other.peak_anonymous);
        self.errors.append(&mut other.errors);
    }
}

/// Lists the sources of a run. The error is a message that names the input.
pub(super) fn sources(inputs: &Inputs) -> Result<Sources, String> {
    list(&inputs.paths).map_err(|error| error.to_string())
}

/// The format of the sources, as far as the flags determine it.
pub(super) fn format(inputs: &Inputs) -> record::InputFormat {
    let column = |name: &Option<String>| name.as_deref().map(CsvColumn::parse);
    let csv = CsvOptions {
        delimiter: inputs.delimiter.unwrap_or(b','),
        url: column(&inputs.column),
        base: column(&inputs.base_column),
        charset: column(&inputs.charset_column),
        query_charset: column(&inputs.query_charset_column),
        header: if inputs.may_have_header { CsvHeader::Detect } else { CsvHeader::Absent },
    };
    let columns = [&csv.url, &csv.base, &csv.charset, &csv.query_charset];
    let has_columns = columns.into_iter().any(Option::is_some) || !inputs.may_have_header;
    let has_delimiter = inputs.delimiter.is_some();
    let is_table = has_columns || has_delimiter;
    let options = FormatOptions { csv, has_delimiter, is_table, log_format: inputs.log_format.clone() };
    let name = inputs.format.to_possible_value();
    name.and_then(|name| record::InputFormat::named(name.get_name(), &options)).unwrap_or_default()
}

/// How the run is done.
pub(super) fn options(inputs: &Inputs, work: &Work, row_group_len: usize) -> RunOptions {
    RunOptions {
        threads: work.threads,
        row_group_len,
        chunk_len: work.chunk_len,
        max_record_len: inputs.max_record_len,
        mmap: inputs.mmap,
        format: format(inputs),
        record_types: inputs.record_types.clone(),
        count_distinct: true,
    }
}

/// Does the job.
pub(super) fn run(
    job: &Job,
    sources: Sources,
    encoder: &Encoder,
    files: &mut Files,
    progress: &Progress,
) -> Result<Ran, Failure> {
    let options = options(&job.inputs, &job.work, job.outputs.row_group_len);
    let Some(wanted) = sort_options(job) else {
        let encode = |rows: &mut _, runs: &[_]| encoder.encode(rows, runs);
        let append = |part| files.append(part);
        return Ok(ran(run::canon(
            run::RunRequest::new(sources, &options, &job.policy, progress),
            |group| encode(group.rows, group.runs).map(Some),
            append,
        )?));
    };
    let append = |sorted| files.append_sorted(sorted);
    let sorter = Sorter::new(&sources.names(), (&options, &wanted), &job.policy, encoder)?;
    Ok(ran(run::sort(sources, &sorter, append, progress)?.summary))
}

/// How rows are sorted, if they are.
pub(super) fn sort_options(job: &Job) -> Option<SortOptions> {
    let (memory, directory) = job.spill.clone()?;
    let Sorting { by, partition, .. } = job.outputs.sorting.clone();
    Some(SortOptions { by, partition, cut: job.outputs.sorting.cut(), memory, directory })
}

pub(super) fn ran(summary: Summary) -> Ran {
    Ran {
        tally: summary.tally,
        headers: summary.headers,
        skipped: summary.skipped,
        distinct: summary.distinct_keys,
        distinct_is_exact: summary.is_distinct_exact,
        input_bytes: summary.bytes,
        peak_memory: summary.memory.peak_resident,
        peak_anonymous: summary.memory.peak_anonymous,
        errors: summary.input_errors.iter().map(failure).collect(),
    }
}

/// The error's message names its source first; the report has the two apart.
fn failure(error: &InputError) -> InputFailure {
    let message = error.to_string();
    let message = message.strip_prefix(&format!("{}: ", error.name)).unwrap_or(&message).to_string();
    InputFailure { source: error.name.clone(), message }
}
