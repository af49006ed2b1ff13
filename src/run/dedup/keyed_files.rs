//! Deduplicates rows that have keys already: [`dedup_keyed_files`] reads Parquet files that `canon` or `dedup` wrote with the
//! same policy, and writes their rows without duplicates. The keys of the files are used as they are; a row group of a file
//! is a row group of the run.

use super::super::in_order::OrderedPool;
use super::super::{Phase, Progress, RowKey, RunError, RunRequest, Summary, Ticket, memory};
use super::job::{DedupJob, DedupStep, PendingRowGroups, STAGE_COUNT};
use super::options::DedupOptions;
use super::resolve::{ReadRun, finish, resolve};
use super::shared_dictionaries::SharedDictionaries;
use super::summary::{DedupError, DedupOutput, DedupSummary};
use crate::canon::{Policy, RecipeColumn, Rows, Tally, describe_differences};
use crate::input::detect::TableFormat;
use crate::input::{Defect, InputError, KeyedFile};
use crate::iri::{Component, Fault, FaultKind};
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::ordered::StageTicket;
use crate::output::{Encoder, OutputError};
use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int16Type, Schema, SchemaRef, TimeUnit, TimestampMillisecondType};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// The stage that counts the rows of a row group, before those of a dedup run.
const READ_STAGE: usize = STAGE_COUNT;

/// Files of rows with keys.
#[derive(Debug)]
pub(crate) struct KeyedFiles {
    /// The files, in order.
    files: Vec<KeyedFile>,
    /// The sources that cannot be read, in order.
    unread: Vec<InputError>,
    /// The column that rows are compared by.
    key: String,
    /// See [`KeyedFiles::with_shared_dictionaries`].
    shares_dictionaries: bool,
}

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {reason}")]
pub(crate) struct KeyedFileError {
    /// Name of the file.
    pub(crate) name: String,
    /// What is wrong.
    pub(crate) reason: KeyedFileDefect,
}

/// Why a file of keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyedFileDefect {
    #[error(
        "--duplicates and --groups need the records of the sources; use the sources as inputs, or make new keys with \
         --column uri"
    )]
    Evidence,
    #[error(
        "reports on duplicates need the records of the sources; use the sources as inputs, or make new keys with --column \
         uri"
    )]
    Survey,
    #[error("--verify needs the texts of the keys, which are not in the file; make new keys with --column uri")]
    Verify,
    #[error(
        "the file has no column {0}, which rows are compared by; write it with canon --columns or --key, or make new keys \
         with --column"
    )]
    NoColumn(String),
    #[error(
        "the file has no column {0}, which the output needs; choose columns that it has with --columns, or \
         make the rows again with --column uri"
    )]
    NoOutputColumn(String),
    #[error(
        "the keys of the file were made with other settings: {0}; use the flags that canon was run with, or make new keys \
         with --column uri"
    )]
    OtherPolicy(String),
}

impl KeyedFiles {
    /// Files whose keys are in column `key`, among sources that cannot be read, which are reported.
    ///
    /// # Errors
    /// A file has no such column, or its keys were made with another policy and do not compare with others.
    pub(crate) fn new(
        (files, unread): (Vec<KeyedFile>, Vec<InputError>),
        key: &str,
        policy: &Policy,
        options: &DedupOptions,
    ) -> Result<KeyedFiles, KeyedFileError> {
        let defect = match options {
            DedupOptions { has_evidence: true, .. } => Some(KeyedFileDefect::Evidence),
            DedupOptions { survey: true, .. } => Some(KeyedFileDefect::Survey),
            DedupOptions { verify: true, key, .. } if *key != RowKey::Rung => Some(KeyedFileDefect::Verify),
            _ => None,
        };
        if let Some(reason) = defect {
            let name = files.first().map_or_else(String::new, |file| file.name.clone());
            return Err(KeyedFileError { name, reason });
        }
        for file in &files {
            let error = |reason| KeyedFileError { name: file.name.clone(), reason };
            check_policy(file, policy, options.key).map_err(error)?;
            let has = |name: &str| file.columns().any(|column| column == name);
            let needs_uri = options.verify || options.keep.compares_status() || !has("fault");
            let needs = [
                (key, true),
                // A URL without a key of the recipe is compared by its URI.
                ("key", matches!(options.key, RowKey::Recipe(_)) && !has("uri")),
                ("uri", needs_uri),
                ("fetch_time", options.keep.compares_time()),
                ("fetch_status", options.keep.compares_status()),
            ];
            if let Some((name, _)) = needs.into_iter().find(|(name, is_needed)| *is_needed && !has(name)) {
                return Err(error(KeyedFileDefect::NoColumn(name.to_string())));
            }
        }
        Ok(KeyedFiles { files, unread, key: key.to_string(), shares_dictionaries: false })
    }

    /// The same for an output that has one dictionary per column. Its columns with dictionaries are read once before.
    pub(crate) fn with_shared_dictionaries(self) -> KeyedFiles {
        KeyedFiles { shares_dictionaries: true, ..self }
    }

    /// The dictionaries that all rows share; `None` if the output may have several per column. Row groups that cannot be read are
    /// reported when they are read again.
    fn dictionaries(&self, encoder: &Encoder) -> Option<SharedDictionaries> {
        if !self.shares_dictionaries {
            return None;
        }
        let mut shared = SharedDictionaries::new(encoder.schema());
        let schema = shared.schema();
        let batches =
            self.row_groups().into_iter().filter_map(|row_group| row_group.file.read(row_group.group, &schema).ok());
        batches.for_each(|batch| shared.add(&batch));
        Some(shared)
    }

    /// A value of each source, in order: that of a file, or `unread`.
    fn per_source<T: Clone>(&self, of: impl Fn(&KeyedFile) -> T, unread: impl Fn(&InputError) -> T) -> Vec<T> {
        let mut values: Vec<T> = self.files.iter().map(of).collect();
        self.unread.iter().for_each(|error| values.insert(error.source_number as usize, unread(error)));
        values
    }

    fn names(&self) -> Vec<String> {
        self.per_source(|file| file.name.clone(), |error| error.name.clone())
    }

    /// The columns to read of a file: those of the output, and those of the file that rows are compared by.
    fn schema(&self, file: &KeyedFile, encoder: &Encoder) -> SchemaRef {
        let mut fields: Vec<Arc<Field>> = encoder.schema().fields().iter().cloned().collect();
        let more = [
            (self.key.as_str(), DataType::FixedSizeBinary(16)),
            ("key", DataType::FixedSizeBinary(16)),
            ("uri", DataType::Utf8),
            ("fault", DataType::Utf8),
            ("fetch_time", DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))),
            ("fetch_status", DataType::Int16),
        ];
        for (name, kind) in more {
            let is_present = file.columns().any(|column| column == name);
            if is_present && !fields.iter().any(|field| field.name() == name) {
                fields.push(Arc::new(Field::new(name, kind, true)));
            }
        }
        Arc::new(Schema::new(fields))
    }

    /// The row groups of all files, in order.
    fn row_groups(&self) -> Vec<KeyedRowGroup<'_>> {
        let unread: HashSet<u32> = self.unread.iter().map(|error| error.source_number).collect();
        let numbers = (0..).filter(|number| !unread.contains(number));
        let files = self.files.iter().zip(numbers);
        let row_groups = files.flat_map(|(file, source)| {
            (0..file.row_group_count()).map(move |group| KeyedRowGroup { file, source, group })
        });
        row_groups.collect()
    }
}

/// A row group of a file.
struct KeyedRowGroup<'a> {
    file: &'a KeyedFile,
    /// The number of the file among all sources.
    source: u32,
    /// Its index in the file.
    group: usize,
}

impl KeyedRowGroup<'_> {
    /// Bytes in the file.
    fn len(&self) -> u64 {
        self.file.row_group_len(self.group)
    }
}

/// What was read of the files. Row groups are added in order. A file ends at its first row group that cannot be read.
#[derive(Debug)]
struct ReadRowGroups {
    /// Rows of each source.
    source_records: Vec<u64>,
    rows: u64,
    bytes: u64,
    errors: Vec<InputError>,
}

impl ReadRowGroups {
    fn is_ended(&self, source: u32) -> bool {
        self.errors.last().is_some_and(|error| error.source_number == source)
    }

    /// Adds a row group. Returns its first row and its rows; no rows after the end of the file.
    fn add(
        &mut self,
        row_group: &KeyedRowGroup<'_>,
        read: Option<Result<RecordBatch, Defect>>,
    ) -> (u64, Option<RecordBatch>) {
        let (first_row, source) = (self.rows, row_group.source);
        let read = read.filter(|_| !self.is_ended(source));
        let records = &mut self.source_records[source as usize];
        match read {
            Some(Ok(batch)) => {
                *records += batch.num_rows() as u64;
                self.rows += batch.num_rows() as u64;
                self.bytes += row_group.len();
                (first_row, Some(batch))
            }
            Some(Err(defect)) => {
                let error = InputError::new(source, row_group.file.name.clone(), defect);
                self.errors.push(InputError { records: *records, ..error });
                (first_row, None)
            }
            None => (first_row, None),
        }
    }
}

/// Reads row groups of files for a dedup job.
struct KeyedReader<'a> {
    files: &'a KeyedFiles,
    encoder: &'a Encoder,
    algorithm: KeyAlgorithm,
    progress: &'a Progress,
    /// The dictionaries that all rows share, and their arrays.
    dictionaries: Option<(SharedDictionaries, Vec<ArrayRef>)>,
    read: Mutex<ReadRowGroups>,
    tally: Mutex<Tally>,
}

impl<'a> KeyedReader<'a> {
    fn new(files: &'a KeyedFiles, encoder: &'a Encoder, request: &RunRequest<'a>) -> KeyedReader<'a> {
        let with_values = |shared: SharedDictionaries| {
            let values = shared.values();
            (shared, values)
        };
        let source_records = vec![0; files.names().len()];
        KeyedReader {
            files,
            encoder,
            algorithm: request.policy.algorithm,
            progress: request.progress,
            dictionaries: files.dictionaries(encoder).map(with_values),
            read: Mutex::new(ReadRowGroups { source_records, rows: 0, bytes: 0, errors: Vec::new() }),
            tally: Mutex::default(),
        }
    }

    /// Decides about the rows of a row group as far as possible; `None` if the run was stopped.
    fn decide(
        &self,
        job: &DedupJob<'_>,
        stages: &StageTicket<'_>,
        row_group: &KeyedRowGroup<'_>,
    ) -> Result<Option<DedupStep>, DedupError> {
        let Some((first_row, batch)) = self.read(stages, row_group) else { return Ok(None) };
        let rows = rows_of(&batch, &self.files.key, job.options.key, self.algorithm);
        self.tally.lock().add(&rows.tally);
        let batch = match &self.dictionaries {
            Some((shared, values)) => shared.apply(&batch, values).ok_or(DedupError::Changed)?,
            None => batch,
        };
        let step = job.add_batch(&Ticket { stages: *stages, first_row }, &rows, &batch)?;
        memory::sample();
        Ok(step)
    }

    /// Reads a row group. Returns its first row and its rows; no rows after the end of the file; `None` if
    /// the run was stopped.
    fn read(&self, stages: &StageTicket<'_>, row_group: &KeyedRowGroup<'_>) -> Option<(u64, RecordBatch)> {
        let schema = self.files.schema(row_group.file, self.encoder);
        let is_ended = self.read.lock().is_ended(row_group.source);
        let batch = (!is_ended).then(|| row_group.file.read(row_group.group, &schema));
        let (first_row, batch) = stages.pass(READ_STAGE, || self.read.lock().add(row_group, batch))?;
        let batch = batch.unwrap_or_else(|| RecordBatch::new_empty(schema));
        self.progress.add_read(row_group.len());
        self.progress.add(batch.num_rows() as u64, batch.num_rows() as u64);
        Some((first_row, batch))
    }
}

/// Checks that the keys of a file were made with this policy.
fn check_policy(file: &KeyedFile, policy: &Policy, key: RowKey) -> Result<(), KeyedFileDefect> {
    let settings = policy.describe_keys();
    let stored = |name: &str| file.metadata(name).unwrap_or_default();
    let both = settings.iter().map(|(name, value)| (*name, stored(name), value.as_str()));
    let differing = both.filter(|(_, stored, value)| stored != value);
    let recipes = policy.recipes.iter().map(RecipeColumn::describe).collect::<Vec<_>>();
    let has_recipes = || recipes.iter().all(|recipe| stored("recipes").split("; ").any(|other| other == recipe));
    let joined = recipes.join("; ");
    let is_other = matches!(key, RowKey::Recipe(_)) && !has_recipes();
    let differing = differing.chain(is_other.then(|| ("recipes", stored("recipes"), joined.as_str())));
    describe_differences("file", differing).map_or(Ok(()), |text| Err(KeyedFileDefect::OtherPolicy(text)))
}

/// Keeps one row of each key of `files` and passes it to `append`, as [`super::dedup`] does. The sources of the request are not
/// read; the files have all columns of `encoder`. Files that cannot be read to their end are reported in the summary.
///
/// # Errors
/// As [`super::dedup`].
pub(crate) fn dedup_keyed_files(
    request: RunRequest<'_>,
    files: KeyedFiles,
    options: &DedupOptions,
    encoder: &Encoder,
    mut append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
) -> Result<DedupSummary, RunError<DedupError>> {
    let (progress, threads) = (request.progress, request.options.clamped().threads);
    let key = if options.key == RowKey::Rung { RowKey::Rung } else { RowKey::More(0) };
    let options = &DedupOptions { key, survey: false, ..options.clone() };
    let names = files.names();
    let mut job = DedupJob::new(options, encoder, &request, &names).map_err(RunError::output)?;
    let reader = KeyedReader::new(&files, encoder, &request);
    let row_groups = files.row_groups();
    progress.set_total(Some(row_groups.iter().map(KeyedRowGroup::len).sum()));
    let mut pending = PendingRowGroups::new(&options.directory);
    let take = |step: DedupStep| step.append(&mut pending, &mut append);
    let pool = OrderedPool::new(threads.min(row_groups.len()), STAGE_COUNT + 1)?;
    let mut row_groups = row_groups.into_iter();
    let next = || Ok(row_groups.next().map(|row_group| (1, row_group)));
    let work = |(): &mut (), stages: &StageTicket<'_>, row_group: KeyedRowGroup<'_>| {
        reader.decide(&job, stages, &row_group).map_err(RunError::Output)
    };
    pool.run(|| (), next, work, take)?;
    let KeyedReader { read, tally, .. } = reader;
    let summary = summary(files, read.into_inner(), tally.into_inner());
    let read = ReadRun { names, threads, summary };
    progress.begin(Phase::Resolve);
    let resolved = resolve(&mut job, &pending, &read)?;
    progress.begin(Phase::Write);
    finish(job, resolved, (&pending.spool, read), append)
}

fn summary(files: KeyedFiles, read: ReadRowGroups, tally: Tally) -> Summary {
    let source_formats = files.per_source(|_| Some(TableFormat::Parquet.name().into()), |_| None);
    let mut input_errors = files.unread;
    input_errors.extend(read.errors);
    input_errors.sort_by_key(|error| error.source_number);
    Summary {
        bytes: read.bytes,
        records: read.rows,
        rows: read.rows,
        tally,
        has_keyed_rows: true,
        source_formats,
        source_records: read.source_records,
        input_errors,
        memory: memory::peaks(),
        ..Summary::default()
    }
}

/// The values of rows that deduplication compares: keys, URIs, times, statuses and faults.
fn rows_of(batch: &RecordBatch, key: &str, dedup_key: RowKey, algorithm: KeyAlgorithm) -> Rows {
    let mut rows = Rows::default();
    let column = |name: &str| batch.column_by_name(name);
    let keys = |name: &str| column(name).and_then(|column| column.as_fixed_size_binary_opt());
    let value = |keys: Option<&FixedSizeBinaryArray>, row| {
        keys.filter(|keys| keys.is_valid(row)).and_then(|keys| KeyBytes::try_from(keys.value(row)).ok())
    };
    let uris = column("uri").and_then(|column| column.as_string_opt::<i32>());
    let uri = |row| uris.filter(|uris| uris.is_valid(row)).map(|uris| uris.value(row).as_bytes());
    // A recipe may give no key; then the key of the rung counts, which is that of the URI.
    let (own, rung) = (keys(key), keys("key"));
    let key_of = |row| value(own, row).or_else(|| value(rung, row)).or_else(|| uri(row).map(|uri| algorithm.key(uri)));
    let found: Vec<Option<KeyBytes>> = (0..batch.num_rows()).map(key_of).collect();
    rows.key = found.iter().map(|key| key.unwrap_or_default()).collect();
    if let RowKey::More(_) = dedup_key {
        rows.more_keys = vec![rows.key.clone()];
    }
    for row in 0..batch.num_rows() {
        rows.uri.values.extend_from_slice(uri(row).unwrap_or_default());
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
    let faulty = (0..batch.num_rows()).filter(|row| has_fault(*row) || found[*row].is_none());
    rows.faults = faulty.map(|row| (row as u32, fault(batch, row))).collect();
    rows.tally = tally(batch, &rows);
    rows
}

/// The fault of a row, by its name.
fn fault(batch: &RecordBatch, row: usize) -> Fault {
    let name = batch.column_by_name("fault").map(|faults| arrow::util::display::array_value_to_string(faults, row));
    let name = name.and_then(Result::ok).unwrap_or_default();
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(FaultKind::NoUrl);
    Fault::new(kind, Component::Reference, 0)
}

/// Counts rows and faults. What was changed is not known.
fn tally(batch: &RecordBatch, rows: &Rows) -> Tally {
    let mut tally = Tally { rows: batch.num_rows() as u64, faulty: rows.faults.len() as u64, ..Tally::default() };
    rows.faults.iter().for_each(|(_, fault)| tally.faults[fault.kind as usize] += 1);
    tally.unchanged = tally.rows - tally.faulty;
    tally
}
