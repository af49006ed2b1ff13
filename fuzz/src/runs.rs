//! Runs the pipeline over bytes and collects its rows as one batch, for comparisons.

use crate::memory;
use crate::pieces::Pieces;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use irikey::batch::{BatchBuilder, COLUMNS, ColumnSet};
use irikey::canon::Policy;
use irikey::input::{InputError, Source, Sources};
use irikey::run::{Progress, ReadError, RunError, RunOptions, RunRequest, canon};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The first bytes of an input, which choose options. The rest is data.
pub fn split_choices<const N: usize>(input: &[u8]) -> Option<([usize; N], &[u8])> {
    let (choices, data) = input.split_first_chunk::<N>()?;
    Some((choices.map(usize::from), data))
}

/// The element of `all` that a choice names.
pub fn choose<T: Clone>(all: &[T], choice: usize) -> T {
    all[choice % all.len()].clone()
}

/// A directory for files that a target needs. A target ends without removing it: scripts/fuzz does that.
pub fn directory() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| tempfile::tempdir().expect("a temporary directory can be created").keep())
}

/// Writes the file that a target reads, over the one before.
pub fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory().join(name);
    std::fs::write(&path, bytes).expect("the file can be written");
    path
}

/// The sources of a run that reads a file.
pub fn path_of(path: PathBuf) -> Sources {
    Sources(vec![Source::path(path).expect("the file exists")])
}

/// The sources of a run that reads `bytes` from a pipe, at most `step` bytes at a time. The name is that of `path`.
pub fn pipe(name: &str, bytes: &[u8], step: usize) -> Sources {
    Sources(vec![Source::reader(name, Pieces::new(bytes, step.max(1)))])
}

/// The result of a run: all rows, and the counts that must not depend on how the input was read.
#[derive(Debug)]
pub struct Outcome {
    pub rows: Option<RecordBatch>,
    pub counts: String,
    /// Whether a source ended early.
    pub has_defect: bool,
}

/// The columns that depend on the decoder. The others follow from them.
pub fn columns() -> ColumnSet {
    let derived = ["key_", "url_", "iri", "bidi", "host_", "fragment", "spoofing"];
    let names = COLUMNS.iter().map(|column| column.name);
    ColumnSet::named(names.filter(|name| !derived.iter().any(|prefix| name.starts_with(prefix)))).expect("known names")
}

impl Outcome {
    fn row_count(&self) -> usize {
        self.rows.as_ref().map_or(0, RecordBatch::num_rows)
    }

    /// Panics if the outcomes differ in a count or a column whose name does not begin with one of `ignored`.
    pub fn assert_equals(&self, other: &Outcome, ignored: &[&str], how: &str) {
        assert_eq!(self.counts, other.counts, "counts, {how}");
        assert_eq!(self.row_count(), other.row_count(), "rows, {how}");
        let (Some(left), Some(right)) = (&self.rows, &other.rows) else { return };
        for (at, field) in left.schema().fields().iter().enumerate() {
            if !ignored.iter().any(|prefix| field.name().starts_with(prefix)) {
                assert_eq!(left.column(at), right.column(at), "column {}, {how}", field.name());
            }
        }
    }
}

/// Options for small inputs and one thread, in which row groups and chunks have these lengths.
pub fn options(row_group_len: usize, chunk_len: usize) -> RunOptions {
    RunOptions { threads: 1, row_group_len, chunk_len, ..RunOptions::default() }
}

/// Describes what ended a source. Where a decompressor finds damage, and whether it takes it for an early end, depends on how
/// many bytes it is given at a time.
fn describe(error: &InputError) -> String {
    match error.is_compressed {
        true => format!("{} records, then a defect after {} more bytes", error.records, error.lost),
        false => error.to_string(),
    }
}

/// Runs `canon` and collects its rows. The message of an error that refuses the input is the outcome's `counts`.
pub fn run(sources: Sources, options: &RunOptions, policy: &Policy) -> Outcome {
    let names = sources.names();
    let builder = BatchBuilder::new(columns(), &[], policy, &names);
    let (mut batches, mut recent) = (Vec::new(), Vec::new());
    let append = |batch: RecordBatch| {
        // The batch, and its copy in a longer one.
        memory::allow(2 * batch.get_array_memory_size());
        recent.push(batch);
        // A batch of one row takes 12 kB.
        if recent.len() == 256 {
            batches.extend(concat(&recent));
            recent.clear();
        }
        Ok(())
    };
    let progress = Progress::new();
    let request = RunRequest::new(sources, options, policy, &progress);
    let ran = canon(request, |group| builder.build(group.rows, group.runs).map(Some), append);
    let summary = match ran {
        Ok(summary) => summary,
        Err(error @ RunError::Read(ReadError::Columns { .. })) => {
            return Outcome { rows: None, counts: error.to_string(), has_defect: true };
        }
        Err(error) => panic!("{error}"),
    };
    batches.append(&mut recent);
    let rows = concat(&batches);
    assert_eq!(rows.as_ref().map_or(0, RecordBatch::num_rows) as u64, summary.records, "every record is a row");
    let errors: Vec<String> = summary.input_errors.iter().map(describe).collect();
    let counts = format!(
        "bytes {} headers {} skipped {} {:?} {:?} {errors:?}",
        summary.bytes, summary.headers, summary.skipped, summary.source_records, summary.tally
    );
    Outcome { rows, counts, has_defect: !errors.is_empty() }
}

fn concat(batches: &[RecordBatch]) -> Option<RecordBatch> {
    let first = batches.first()?;
    Some(concat_batches(&first.schema(), batches).expect("batches of one schema"))
}
