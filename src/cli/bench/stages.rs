//! Measures the stages of `canon` over a text.
//!
//! Each round processes the text once with a clock between the modules: slice by slice like a worker of `canon`, which keeps its
//! memory. Stages that are fused there (bitmaps, UTF-8 validation, hash) are measured once more by themselves, and their times
//! are subtracted from those of the modules.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Seek, Write};
use std::time::Instant;

use crate::batch::{ColumnSet, SourceRun};
use crate::canon::{Canonicalizer, Policy, Rows};
use crate::encoding::is_utf8;
use crate::iri::CLASSIFIER;
use crate::kernel::Bitmaps;
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::output::{self, Compression, Destination, Encoder, Output, OutputFormat, OutputOptions};
use crate::process::repeat_interrupted;
use crate::record::{TextDecoder, lines::Lines};

const CHUNK_LEN: usize = 256 << 10;
const CHUNKS_PER_SLICE: usize = 4;
const CHUNKS_PER_ROW_GROUP: usize = 32;

/// One time that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// A file in the page cache, read into a buffer.
    Read,
    /// Bitmaps of the bytes.
    Classify,
    /// Bitmaps and line ends.
    Decode,
    /// UTF-8 validation of the whole text, which stands for that of the lines in [`Clock::Rows`].
    Validate,
    /// UTF-8 validation, canonicalization, keys.
    Rows,
    /// Keys of the URIs.
    Hash,
    /// Arrow, Parquet encoding, compression.
    Encode,
    /// Appending to a file.
    Write,
    /// Copying each line to a buffer.
    Copy,
    /// The same, and hashing each line.
    CopyHash,
}

const CLOCKS: usize = Clock::CopyHash as usize + 1;

/// Nanoseconds by clock and round.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) lines: usize,
    pub(super) bytes: usize,
    rounds: Vec<[u64; CLOCKS]>,
}

impl Times {
    /// Nanoseconds per line of a sum or difference of clocks: median, minimum and maximum of the rounds.
    pub(super) fn per_line(&self, of: impl Fn(&dyn Fn(Clock) -> f64) -> f64) -> [f64; 3] {
        let lines = self.lines as f64;
        let mut all: Vec<f64> =
            self.rounds.iter().map(|round| of(&|clock| round[clock as usize] as f64).max(0.0) / lines).collect();
        all.sort_by(f64::total_cmp);
        [all[all.len() / 2], all[0], all[all.len() - 1]]
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds.len()
    }
}

/// The policy of the default columns, which the command has, too.
fn policy() -> Policy {
    ColumnSet::default().complete_policy(Policy::default())
}

/// Measures all stages over `text`, `rounds` times after a first round that does not count.
pub(super) fn measure(text: &[u8], rounds: u16, compression: Compression) -> Result<Times, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut file = tempfile::tempfile_in(directory.path())?;
    file.write_all(text)?;
    let lines = memchr::memchr_iter(b'\n', text).count() + usize::from(!text.ends_with(b"\n"));
    let (canonicalizer, rows) = (Canonicalizer::new(&policy()), Rows::default());
    let mut bench = Bench {
        chunks: chunks(text),
        file,
        canonicalizer,
        rows,
        scratch: Vec::with_capacity(text.len()),
        keys: Vec::new(),
    };
    let mut times = Times { lines, bytes: text.len(), rounds: Vec::new() };
    for round in 0..=rounds {
        let target = directory.path().join("rows.parquet");
        let clocks = bench.round(target, compression)?;
        // The memory is cold in the first round.
        if round > 0 {
            times.rounds.push(clocks);
        }
    }
    Ok(times)
}

struct Bench<'a> {
    chunks: Vec<&'a [u8]>,
    file: File,
    canonicalizer: Canonicalizer,
    rows: Rows,
    scratch: Vec<u8>,
    keys: Vec<KeyBytes>,
}

impl Bench<'_> {
    fn round(
        &mut self,
        target: std::path::PathBuf,
        compression: Compression,
    ) -> Result<[u64; CLOCKS], Box<dyn std::error::Error>> {
        let mut clocks = [0; CLOCKS];
        let options = OutputOptions {
            format: OutputFormat::Parquet,
            compression,
            columns: ColumnSet::default(),
            policy: policy(),
            sources: vec!["lines".to_string()],
        };
        let (encoder, output) = output::create(&Destination::File(target), options)?;
        self.measure_pipeline(&encoder, output, &mut clocks)?;
        self.measure_single_stages(&mut clocks)?;
        Ok(clocks)
    }

    /// Does the work of a worker, with a clock between the modules.
    fn measure_pipeline(
        &mut self,
        encoder: &Encoder,
        mut output: Output,
        clocks: &mut [u64; CLOCKS],
    ) -> Result<(), Box<dyn std::error::Error>> {
        let (mut lines, mut bitmaps) = (Lines::default(), Bitmaps::default());
        let Bench { chunks, canonicalizer, rows, keys, .. } = self;
        let mut next_record = 1;
        let slice_len = if encoder.joins_slices() { CHUNKS_PER_SLICE } else { CHUNKS_PER_ROW_GROUP };
        for row_group in chunks.chunks(CHUNKS_PER_ROW_GROUP) {
            let mut slices = Vec::new();
            for slice in row_group.chunks(slice_len) {
                for chunk in slice {
                    let began = Instant::now();
                    let records = lines.decode(chunk, 0, &mut bitmaps);
                    clocks[Clock::Decode as usize] += nanoseconds(began);
                    let began = Instant::now();
                    canonicalizer.append(&records, &bitmaps, rows);
                    clocks[Clock::Rows as usize] += nanoseconds(began);
                }
                keys.clear();
                let began = Instant::now();
                KeyAlgorithm::Xxh3.push_keys(&rows.uri.values, &rows.uri.offsets, black_box(keys));
                clocks[Clock::Hash as usize] += nanoseconds(began);
                let run = SourceRun { source: 0, first_record: next_record, rows: rows.len() as u32 };
                next_record += rows.len() as u64;
                let began = Instant::now();
                slices.extend(encoder.slices(rows, &[run], None)?);
                clocks[Clock::Encode as usize] += nanoseconds(began);
            }
            let began = Instant::now();
            let encoded = encoder.join(slices)?;
            clocks[Clock::Encode as usize] += nanoseconds(began);
            let began = Instant::now();
            output.append(encoded)?;
            clocks[Clock::Write as usize] += nanoseconds(began);
        }
        Ok(output.abort()?)
    }

    /// Measures the stages that are fused with others, and plain copies.
    fn measure_single_stages(&mut self, clocks: &mut [u64; CLOCKS]) -> std::io::Result<()> {
        let mut bitmaps = Bitmaps::default();
        let mut time = |clock, work: &mut dyn FnMut(&[u8])| {
            let began = Instant::now();
            self.chunks.iter().for_each(|chunk| work(chunk));
            clocks[clock as usize] = nanoseconds(began);
        };
        time(Clock::Classify, &mut |chunk| bitmaps.classify(black_box(chunk), &CLASSIFIER));
        time(Clock::Validate, &mut |chunk| {
            black_box(is_utf8(black_box(chunk)));
        });
        let mut lines = Lines::default();
        for clock in [Clock::Copy, Clock::CopyHash] {
            self.scratch.clear();
            // Lines are found before the clock starts: only their copies are measured.
            for chunk in &self.chunks {
                let records = lines.decode(chunk, 0, &mut bitmaps);
                let began = Instant::now();
                for url in records.urls {
                    let line = url.of(records.text);
                    self.scratch.extend_from_slice(line);
                    if clock == Clock::CopyHash {
                        black_box(KeyAlgorithm::Xxh3.key(line));
                    }
                }
                clocks[clock as usize] += nanoseconds(began);
            }
            black_box(&self.scratch);
        }
        clocks[Clock::Read as usize] = self.read()?;
        Ok(())
    }

    fn read(&mut self) -> std::io::Result<u64> {
        self.file.rewind()?;
        let mut buffer = vec![0; 1 << 20];
        let began = Instant::now();
        while repeat_interrupted(|| self.file.read(&mut buffer))? > 0 {
            black_box(&buffer);
        }
        Ok(nanoseconds(began))
    }
}

fn nanoseconds(began: Instant) -> u64 {
    began.elapsed().as_nanos() as u64
}

/// Divides text into chunks of complete lines, of about [`CHUNK_LEN`] bytes.
fn chunks(text: &[u8]) -> Vec<&[u8]> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let near = rest.len().min(CHUNK_LEN);
        let end = memchr::memrchr(b'\n', &rest[..near])
            .or_else(|| memchr::memchr(b'\n', &rest[near..]).map(|at| near + at))
            .map_or(rest.len(), |at| at + 1);
        let (chunk, after) = rest.split_at(end);
        chunks.push(chunk);
        rest = after;
    }
    chunks
}
