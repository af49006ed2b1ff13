//! The one place where a [`Job`] meets the run: lists the sources, says how their records are written, hands parts to
//! the output.

use super::args::{InputFormat, Inputs};
use super::canon_args::Job;
use super::report::InputFailure;
use crate::canon::Tally;
use crate::input::{FormatName, InputError, Sources, list, sniff_format};
use crate::output::{Encoder, Output, OutputError};
use crate::record::Format;
use crate::record::csv::{Column, CsvOptions, Header};
use crate::run::{self, Progress, RunError, RunOptions, Summary};

/// What the run came to, less what only the caller knows.
pub(super) struct Ran {
    pub(super) tally: Tally,
    pub(super) distinct: u64,
    pub(super) distinct_is_exact: bool,
    pub(super) input_bytes: u64,
    pub(super) peak_memory: Option<u64>,
    pub(super) peak_anonymous: Option<u64>,
    pub(super) errors: Vec<InputFailure>,
}

/// Lists the sources of a run. The error is a message that names the input.
pub(super) fn sources(inputs: &Inputs) -> Result<Sources, String> {
    list(&inputs.paths).map_err(|error| error.to_string())
}

/// How the records of all sources are written: by the flags, or by the names, which must agree then.
pub(super) fn format(inputs: &Inputs, sources: &Sources) -> Result<Format, String> {
    let has_columns = inputs.column.is_some()
        || inputs.base_column.is_some()
        || inputs.charset_column.is_some()
        || inputs.query_charset_column.is_some()
        || inputs.delimiter.is_some()
        || !inputs.may_have_header;
    let name = match inputs.format {
        InputFormat::Lines => FormatName::Lines,
        InputFormat::Csv => FormatName::Csv,
        InputFormat::Tsv => FormatName::Tsv,
        InputFormat::Auto => match format_by_name(sources)? {
            FormatName::Lines if has_columns => FormatName::Csv,
            name => name,
        },
    };
    let delimiter = match name {
        FormatName::Lines => return Ok(Format::Lines),
        FormatName::Csv => b',',
        FormatName::Tsv => b'\t',
    };
    Ok(Format::Csv(CsvOptions {
        delimiter: inputs.delimiter.unwrap_or(delimiter),
        url: inputs.column.as_deref().map(Column::parse),
        base: inputs.base_column.as_deref().map(Column::parse),
        charset: inputs.charset_column.as_deref().map(Column::parse),
        query_charset: inputs.query_charset_column.as_deref().map(Column::parse),
        header: if inputs.may_have_header { Header::Sniff } else { Header::No },
    }))
}

fn format_by_name(sources: &Sources) -> Result<FormatName, String> {
    let mut names = sources.0.iter().map(|source| (sniff_format(&source.name), &source.name));
    let Some((first, first_name)) = names.next() else { return Ok(FormatName::Lines) };
    match names.find(|(format, _)| *format != first) {
        None => Ok(first),
        Some((_, other)) => Err(format!(
            "{first_name} and {other} differ in their format by name; say which one with --format, or run once for each"
        )),
    }
}

/// Does the job.
pub(super) fn run(
    job: &Job,
    sources: Sources,
    format: Format,
    encoder: &Encoder,
    output: &mut Output,
    progress: &Progress,
) -> Result<Ran, RunError<OutputError>> {
    let options = RunOptions {
        threads: job.work.threads,
        row_group_len: job.outputs.row_group_len,
        chunk_len: job.work.chunk_len,
        max_record_len: job.inputs.max_record_len,
        mmap: job.inputs.mmap,
        format,
    };
    let encode = |rows: &mut _, runs: &[_]| encoder.encode(rows, runs);
    let summary = run::canon(sources, &options, &job.policy, encode, |part| output.append(part), progress)?;
    Ok(ran(summary))
}

fn ran(summary: Summary) -> Ran {
    Ran {
        tally: summary.tally,
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
