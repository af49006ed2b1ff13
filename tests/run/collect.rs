//! Runs [`canon`], collects every row for comparisons, and creates inputs.

use crate::pieces::Pieces;
use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows};
use irikey::input::{Source, Sources};
use irikey::output::{self, Destination, OutputError, OutputOptions};
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::{Progress, RunError, RunOptions, RunRequest, Summary, canon};
use std::convert::Infallible;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A row and the position of its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub source: u32,
    pub record: u64,
    pub offset: u64,
    pub uri: Vec<u8>,
    pub input: Vec<u8>,
    pub differs: bool,
    pub key: [u8; 16],
    pub flags: u32,
    pub fault: Option<String>,
}

/// The result of a run: the rows, the number of rows of each part, and the summary.
#[derive(Debug)]
pub struct Out {
    pub rows: Vec<Row>,
    pub parts: Vec<usize>,
    pub summary: Summary,
}

fn collect(rows: &Rows, runs: &[SourceRun]) -> Vec<Row> {
    let origins = runs.iter().flat_map(|run| (0..u64::from(run.rows)).map(|i| (run.source, run.first_record + i)));
    let fault = |i: usize| rows.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.to_string());
    let row = |(i, (source, record))| Row {
        source,
        record,
        offset: rows.offset[i],
        uri: rows.uri.get(i).to_vec(),
        input: rows.input.get(i).to_vec(),
        differs: rows.differs(i),
        key: rows.key[i],
        flags: rows.flags[i],
        fault: fault(i),
    };
    let all: Vec<Row> = origins.enumerate().map(row).collect();
    assert_eq!(all.len(), rows.len(), "the source runs cover all rows");
    all
}

/// The policy of these tests: it keeps the inputs, so that rows contain them.
pub fn policy() -> Policy {
    Policy { keep_input: true, ..Policy::default() }
}

/// Runs [`canon`] and collects the rows.
pub fn try_run(sources: Sources, options: &RunOptions) -> Result<Out, RunError<Infallible>> {
    let (mut rows, mut parts) = (Vec::new(), Vec::new());
    let progress = Progress::new();
    let total = sources.total_len();
    let encode = |rows: &mut Rows, runs: &[SourceRun]| Ok(collect(rows, runs));
    let append = |part: Vec<Row>| {
        parts.push(part.len());
        rows.extend(part);
        Ok(())
    };
    let summary = canon(
        RunRequest::new(sources, options, &policy(), &progress),
        |group| encode(group.rows, group.runs).map(Some),
        append,
    )?;
    assert_eq!(summary.records, rows.len() as u64);
    assert_eq!((summary.rows, summary.tally.rows), (summary.records, summary.records));
    assert_eq!((progress.records(), progress.rows()), (summary.records, summary.rows));
    assert_eq!(progress.total(), total);
    if let Some(total) = total.filter(|_| summary.input_errors.is_empty()) {
        assert_eq!(progress.read(), total);
    }
    Ok(Out { rows, parts, summary })
}

/// Runs [`canon`] and collects the rows. Panics if the run fails.
pub fn run(sources: Sources, options: &RunOptions) -> Out {
    try_run(sources, options).unwrap()
}

/// Runs [`canon`] and returns the results of `encode` for every row group, in order, and the summary.
pub fn run_groups<T: Send>(
    sources: Sources,
    options: &RunOptions,
    policy: &Policy,
    encode: impl Fn(&mut Rows, &[SourceRun]) -> T + Sync,
) -> (Vec<T>, Summary) {
    let mut all = Vec::new();
    let append = |group: T| {
        all.push(group);
        Ok::<(), Infallible>(())
    };
    let summary = canon(
        RunRequest::new(sources, options, policy, &Progress::new()),
        |group| Ok(Some(encode(group.rows, group.runs))),
        append,
    )
    .unwrap();
    (all, summary)
}

/// The lines of the JSON lines that [`canon`] writes to `target`.
pub fn written_lines(target: &Path, sources: Sources, output_options: OutputOptions) -> Vec<String> {
    let policy = output_options.policy.clone();
    let (encoder, mut output) = output::create(&Destination::File(target.to_path_buf()), output_options).unwrap();
    canon::<_, OutputError>(
        RunRequest::new(sources, &options(1, 1 << 20, 1 << 20), &policy, &Progress::new()),
        |group| encoder.encode(group.rows, group.runs).map(Some),
        |encoded| output.append(encoded),
    )
    .unwrap();
    output.finish().unwrap();
    std::fs::read_to_string(target).unwrap().lines().map(str::to_string).collect()
}

/// Options for small inputs.
pub fn options(threads: usize, row_group_len: usize, chunk_len: usize) -> RunOptions {
    RunOptions { threads, row_group_len, chunk_len, ..RunOptions::default() }
}

/// Options for small inputs whose format is recognized.
pub fn auto(threads: usize, row_group_len: usize, chunk_len: usize) -> RunOptions {
    let format = InputFormat::Auto(FormatOptions::default());
    RunOptions { format, ..options(threads, row_group_len, chunk_len) }
}

/// The path of a sample.
pub fn sample_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples").join(name)
}

/// The bytes of a sample.
pub fn sample(name: &str) -> Vec<u8> {
    std::fs::read(sample_path(name)).unwrap()
}

/// Creates a file in the directory of a test.
pub fn file(directory: &tempfile::TempDir, name: &str, bytes: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// The sources of a run that reads one file.
pub fn path(path: &Path) -> Sources {
    Sources(vec![Source::path(path.to_path_buf()).unwrap()])
}

/// The sources of a run that reads `bytes` from a pipe, at most `step` bytes at a time.
pub fn pipe(bytes: &[u8], step: usize) -> Sources {
    Sources(vec![Source::reader("pipe", Pieces::new(bytes, step))])
}

/// One gzip member.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One zstd frame.
pub fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A linear congruential generator; the high bits are the random ones.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}

/// Returns about `len` bytes of lines of many kinds: empty ones, long ones and malformed ones.
pub fn lines(len: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let mut random = Random(1);
    while text.len() < len {
        let number = random.next() >> 33;
        match number % 23 {
            0 => (),
            1 => text.extend_from_slice(b"relative/../x\r"),
            2 => text.extend_from_slice(b"http://a/\0\xff\xEF\xBB\xBF\r\rx"),
            3 => text.extend(format!("HTTP://Example.org/{}", "y".repeat(number as usize % 3000)).into_bytes()),
            _ => text.extend(format!("http://example.org/{number:x}?q={}", number % 7).into_bytes()),
        }
        text.push(b'\n');
    }
    text
}
