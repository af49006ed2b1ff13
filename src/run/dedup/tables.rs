//! Dedup of rows that have keys already: [`dedup_tables`]. In: Parquet files that `canon` or `dedup` wrote, of one policy.
//! Out: their rows as they are, less those that another one stands for. Keys are believed, not made anew; a row group is
//! a span.

use super::super::in_order::OrderedPool;
use super::super::{Progress, RunError, Summary, Ticket, memory};
use super::job::{Job, STAGE_COUNT, Step};
use super::{DedupError, DedupKey, DedupOptions, Deduped, Given, finish};
use crate::canon::{Policy, Rows, Tally};
use crate::dedup::evidence::Places;
use crate::input::KeyedFile;
use crate::iri::{Component, Fault, FaultKind};
use crate::key::KeyBytes;
use crate::ordered::StageTicket;
use crate::output::{Encoder, OutputError};
use arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int16Type, Schema, SchemaRef, TimestampMillisecondType};
use std::sync::{Arc, Mutex, PoisonError};

/// Files of rows with keys, and which of their columns are asked.
#[derive(Debug)]
pub struct Tables {
    /// The files, in order.
    pub files: Vec<KeyedFile>,
    /// The column that rows are compared by.
    pub key: String,
}

/// A table that cannot be compared with what it should be compared with.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {what}")]
pub struct TableError {
    /// The file.
    pub name: String,
    /// What is wrong, and what to do.
    pub what: String,
}

impl Tables {
    /// Files whose keys are in column `key`.
    ///
    /// # Errors
    /// A file has no such keys, or made them by another policy than `policy`: keys of different policies do not compare.
    pub fn new(files: Vec<KeyedFile>, key: &str, policy: &Policy, wanted: &DedupOptions) -> Result<Tables, TableError> {
        let refused = |what: &str| TableError {
            name: files.first().map_or_else(String::new, |file| file.name.clone()),
            what: what.to_string(),
        };
        if wanted.has_evidence {
            return Err(refused(
                "--duplicates and --groups tell records as their sources have them; give the sources, or make keys anew with --column uri",
            ));
        }
        if wanted.survey {
            return Err(refused(
                "reports of what dedup bought look at records as their sources have them; give the sources, or make keys \
                 anew with --column uri",
            ));
        }
        if wanted.verify && wanted.key != DedupKey::Rung {
            return Err(refused(
                "--verify compares texts, and those of this key are not in the file; make keys anew with --column uri",
            ));
        }
        for file in &files {
            let refused = |what: String| TableError { name: file.name.clone(), what };
            check_policy(file, policy, wanted.key).map_err(refused)?;
            let has = |name: &str| file.columns().any(|column| column == name);
            let wants_uri = wanted.verify || wanted.keep.wants_status() || !has("fault");
            let wants = [
                (key, true),
                ("uri", wants_uri),
                ("fetch_time", wanted.keep.wants_time()),
                ("fetch_status", wanted.keep.wants_status()),
            ];
            if let Some((name, _)) = wants.into_iter().find(|(name, is_wanted)| *is_wanted && !has(name)) {
                return Err(refused(format!(
                    "there is no column {name}, which is compared; write it with canon, with --columns or --key, or make \
                     keys anew with --column"
                )));
            }
        }
        Ok(Tables { files, key: key.to_string() })
    }

    fn names(&self) -> Vec<String> {
        self.files.iter().map(|file| file.name.clone()).collect()
    }

    /// Columns to read: those of the output, and what rows are compared by.
    fn schema(&self, encoder: &Encoder) -> SchemaRef {
        let mut fields: Vec<Arc<Field>> = encoder.schema().fields().iter().cloned().collect();
        let more = [
            (self.key.as_str(), DataType::FixedSizeBinary(16)),
            ("key", DataType::FixedSizeBinary(16)),
            ("uri", DataType::Utf8),
            ("input", DataType::Binary),
            ("fault", DataType::Utf8),
            ("fetch_time", DataType::Timestamp(arrow::datatypes::TimeUnit::Millisecond, Some("UTC".into()))),
            ("fetch_status", DataType::Int16),
        ];
        for (name, kind) in more {
            let is_there = self.files.iter().all(|file| file.columns().any(|column| column == name));
            if is_there && !fields.iter().any(|field| field.name() == name) {
                fields.push(Arc::new(Field::new(name, kind, true)));
            }
        }
        Arc::new(Schema::new(fields))
    }
}

/// The file's keys were made as `policy` says.
fn check_policy(file: &KeyedFile, policy: &Policy, key: DedupKey) -> Result<(), String> {
    let is_recipe = matches!(key, DedupKey::Recipe(_));
    // Of recipes and lists the rungs know nothing.
    let counts = |name: &str| is_recipe || !matches!(name, "recipes" | "psl");
    let says = |name: &str| file.says(name).unwrap_or_default().to_string();
    let here = policy.describe().into_iter().filter(|(name, _)| counts(name));
    let differs = here.filter(|(name, value)| match *name {
        "recipes" => !value.split("; ").all(|recipe| says(name).split("; ").any(|other| other == recipe)),
        name => says(name) != *value,
    });
    let differences: Vec<_> =
        differs.map(|(name, value)| format!("{name} is {:?} there and {value:?} here", says(name))).collect();
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "its keys were made otherwise: {}; give the flags that canon was given, or make keys anew with --column uri",
            differences.join(", ")
        )),
    }
}

/// Keeps one row of each key of `tables`, as [`super::dedup`] does; the columns of `encoder` are among those of all files.
///
/// # Errors
/// A file that is damaged; as [`super::dedup`].
pub fn dedup_tables(
    tables: &Tables,
    threads: usize,
    wanted: &DedupOptions,
    policy: &Policy,
    encoder: &Encoder,
    mut append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    progress: &Progress,
) -> Result<Deduped, RunError<DedupError>> {
    let key = if wanted.key == DedupKey::Rung { DedupKey::Rung } else { DedupKey::More(0) };
    let wanted = &DedupOptions { key, ..wanted.clone() };
    let job = Job::new(wanted, encoder, policy, &tables.names()).map_err(|error| RunError::Output(error.into()))?;
    let spans: Vec<(usize, usize, u64)> = spans(tables).collect();
    let schema = tables.schema(encoder);
    let tally = Mutex::new(Tally::default());
    progress.set_total(Some(spans.iter().map(|(file, group, _)| tables.files[*file].row_group_len(*group)).sum()));
    let work = |stages: &StageTicket<'_>, (file, group, first_row): (usize, usize, u64)| {
        let file = &tables.files[file];
        let damaged = |error| DedupError::Table(TableError { name: file.name.clone(), what: format!("{error}") });
        let batch = file.read(group, &schema).map_err(damaged)?;
        progress.add_read(file.row_group_len(group));
        progress.add(batch.num_rows() as u64, batch.num_rows() as u64);
        let rows = rows_of(&batch, &tables.key, wanted.key);
        tally.lock().unwrap_or_else(PoisonError::into_inner).add(&rows.tally);
        let step = job.table_span(&Ticket { stages: *stages, first_row }, &rows, &batch)?;
        memory::sample();
        Ok(step)
    };
    let mut spool = job.spool();
    let take = |step: Step| step.take(&mut spool, &mut append);
    let pool = OrderedPool::new(threads.min(spans.len()), STAGE_COUNT)?;
    let mut spans = spans.into_iter();
    let work = |(): &mut (), stages: &StageTicket<'_>, span| work(stages, span).map_err(RunError::Output);
    pool.run(|| (), || Ok(spans.next()), work, take)?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    let summary = summary(tables, tally);
    let places = Places::new(tables.names(), &summary.source_records);
    finish(job, &spool, &places, threads, append, summary)
}

/// File, row group and number of rows before it.
fn spans(tables: &Tables) -> impl Iterator<Item = (usize, usize, u64)> {
    let all = tables.files.iter().enumerate();
    let groups = all.flat_map(|(file, table)| table.row_groups().enumerate().map(move |(i, rows)| (file, i, rows)));
    groups.scan(0, |first, (file, group, rows)| {
        *first += rows;
        Some((file, group, *first - rows))
    })
}

fn summary(tables: &Tables, tally: Tally) -> Summary {
    let source_records: Vec<u64> = tables.files.iter().map(|file| file.row_groups().sum()).collect();
    let records = source_records.iter().sum();
    let bytes = |file: &KeyedFile| (0..file.row_groups().count()).map(|group| file.row_group_len(group)).sum::<u64>();
    Summary {
        bytes: tables.files.iter().map(bytes).sum(),
        records,
        headers: 0,
        skipped: 0,
        rows: records,
        tally,
        source_records,
        input_errors: Vec::new(),
        distinct_keys: 0,
        is_distinct_exact: false,
        memory: memory::peaks(),
    }
}

/// What rows compete with, taken from columns: keys, URIs, times, statuses; and which have faults.
fn rows_of(batch: &RecordBatch, key: &str, wanted: DedupKey) -> Rows {
    let mut rows = Rows::new(0);
    let column = |name: &str| batch.column_by_name(name);
    let keys = |name: &str| column(name).and_then(|column| column.as_fixed_size_binary_opt());
    let of = |keys: Option<&FixedSizeBinaryArray>, row| {
        keys.filter(|keys| keys.is_valid(row)).and_then(|keys| KeyBytes::try_from(keys.value(row)).ok())
    };
    // A recipe may give none.
    let (own, rung) = (keys(key), keys("key"));
    let bytes = |row| of(own, row).or_else(|| of(rung, row));
    rows.key = (0..batch.num_rows()).map(|row| bytes(row).unwrap_or_default()).collect();
    if let DedupKey::More(place) = wanted {
        rows.more_keys = vec![rows.key.clone(); place + 1];
    }
    let uris = column("uri").and_then(|column| column.as_string_opt::<i32>());
    for row in 0..batch.num_rows() {
        if let Some(uris) = uris.filter(|uris| uris.is_valid(row)) {
            rows.uri.values.extend_from_slice(uris.value(row).as_bytes());
        }
        rows.uri.end();
    }
    if let Some(times) = column("fetch_time").and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>()) {
        rows.carried.times = times.iter().collect();
    }
    if let Some(statuses) = column("fetch_status").and_then(|column| column.as_primitive_opt::<Int16Type>()) {
        rows.carried.statuses = statuses.iter().map(|status| status.map(i32::from)).collect();
    }
    let has_fault = |row: usize| match (column("fault"), uris) {
        (Some(faults), _) => faults.is_valid(row),
        (None, Some(uris)) => uris.is_null(row),
        (None, None) => false,
    };
    let faulty = (0..batch.num_rows()).filter(|row| has_fault(*row) || bytes(*row).is_none());
    rows.faults = faulty.map(|row| (row as u32, fault(batch, row))).collect();
    rows.tally = tally(batch, &rows);
    rows
}

/// The fault of a row by its name.
fn fault(batch: &RecordBatch, row: usize) -> Fault {
    let name = batch.column_by_name("fault").map(|faults| arrow::util::display::array_value_to_string(faults, row));
    let name = name.and_then(Result::ok).unwrap_or_default();
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(FaultKind::NoUrl);
    Fault::new(kind, Component::Reference, 0)
}

/// Rows with an input differ from it; where inputs are not kept, nothing is known of that.
fn tally(batch: &RecordBatch, rows: &Rows) -> Tally {
    let mut tally = Tally { rows: batch.num_rows() as u64, faulty: rows.faults.len() as u64, ..Tally::default() };
    rows.faults.iter().for_each(|(_, fault)| tally.faults[fault.kind as usize] += 1);
    let mut faults = rows.faults.iter().map(|(row, _)| *row as usize).peekable();
    let sound = (0..batch.num_rows()).filter(|row| faults.next_if_eq(row).is_none());
    let inputs = batch.column_by_name("input");
    tally.changed = sound.filter(|row| inputs.is_some_and(|inputs| inputs.is_valid(*row))).count() as u64;
    tally.unchanged = tally.rows - tally.faulty - tally.changed;
    tally
}
