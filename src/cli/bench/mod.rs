//! `bench`: where the time of one line goes, stage by stage, on this machine. In: a file of lines, or a made corpus.
//! Out: nanoseconds a line of each stage beside those of a plain copy, as a table or as JSON that a later run compares
//! itself with.

mod corpus;
mod report;
mod stages;

use std::path::{Path, PathBuf};

use super::{print, say};
use crate::input::detect::{ContentType, content_type};
use crate::input::{self, Defect, OpenOptions, Opened, TableColumns, TableOptions, TableReader};
use crate::output::Compression;
use crate::process::exit;
use crate::record::fields::FieldSet;
use report::Measured;

/// Text of a file that is measured, bytes; the rest is left out.
const MOST_TEXT: usize = 64 << 20;

/// Times the stages of canon on one thread: read, classify, split, validate, canonicalise, hash, encode, write
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
    /// Lines to measure with, the first 64 MiB of them; gzip and zstd are unpacked before. Without it, lines like those
    /// of a crawl are made, the same ones everywhere
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// How many lines to make when there is no FILE
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    lines: u32,
    /// How often to measure; the median counts
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Codec of the Parquet that is written: zstd[:LEVEL], lz4, snappy or none
    #[arg(long, value_name = "CODEC", default_value_t = Compression::default())]
    compression: Compression,
    /// Print JSON, which --compare takes
    #[arg(long)]
    json: bool,
    /// Beside each stage, what it took in REPORT, an earlier --json; both are measured by their machine's copy, so that
    /// reports of different machines can be compared
    #[arg(long, value_name = "REPORT", conflicts_with = "json")]
    compare: Option<PathBuf>,
    /// Measure nothing: unpack FILE, all of it, find its line ends, and print how many there are; of Parquet, decode the
    /// URLs. That is the floor of whatever reads FILE, for scripts that time whole runs
    #[arg(long, requires = "file", conflicts_with_all = ["json", "compare"])]
    floor: bool,
}

pub(super) fn run(args: &BenchArgs) -> u8 {
    if let Some(path) = args.file.as_deref().filter(|_| args.floor) {
        return match line_ends(path) {
            Ok(count) => print(&format!("{count}\n")),
            Err(message) => fail(&message, exit::INPUT),
        };
    }
    let earlier = match args.compare.as_deref().map(earlier).transpose() {
        Ok(earlier) => earlier,
        Err(message) => return fail(&message, exit::USAGE),
    };
    let (name, text) = match &args.file {
        Some(path) => match text_of(path) {
            Ok(text) => (path.display().to_string(), text),
            Err(message) => return fail(&message, exit::INPUT),
        },
        None => ("made by irikey bench".to_string(), corpus::lines(args.lines)),
    };
    if text.is_empty() {
        return fail(&format!("{name}: no lines to measure with"), exit::INPUT);
    }
    match stages::measure(&text, args.rounds, args.compression) {
        Ok(times) => print(&shown(&Measured { corpus: name, compression: args.compression, times }, args, earlier)),
        Err(message) => fail(&message, exit::OUTPUT),
    }
}

fn shown(measured: &Measured, args: &BenchArgs, earlier: Option<report::Earlier>) -> String {
    if args.json { format!("{:#}\n", measured.to_json()) } else { measured.table(earlier.as_ref()) }
}

fn fail(message: &str, status: u8) -> u8 {
    say(message);
    status
}

fn earlier(path: &Path) -> Result<report::Earlier, String> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{place}: cannot read the report: {error}"))?;
    report::Earlier::parse(&text)
        .ok_or_else(|| format!("{place}: this is no report of irikey bench; make one with irikey bench --json"))
}

/// How many lines end in a file, once it is unpacked.
fn line_ends(path: &Path) -> Result<usize, String> {
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let count = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    let source = input::Source::path(path.to_path_buf()).map_err(|error| error.to_string())?;
    match source.open(OpenOptions { mmap: true, threads: 1 }).map_err(|defect| say(&defect))? {
        Opened::Mapped(mapping) if matches!(content_type(&mapping), ContentType::Binary("Parquet")) => {
            urls(path).map_err(|defect| say(&defect))
        }
        Opened::Mapped(mapping) => Ok(count(&mapping)),
        Opened::Stream(mut stream) => {
            let (mut piece, mut lines) = (vec![0; 1 << 20], 0);
            loop {
                match stream.read(&mut piece).map_err(|defect| say(&defect))? {
                    0 => return Ok(lines),
                    len => lines += count(&piece[..len]),
                }
            }
        }
    }
}

/// How many rows a Parquet file has, once its URLs are decoded.
fn urls(path: &Path) -> Result<usize, Defect> {
    let (columns, carry) = (TableColumns::default(), FieldSet::default());
    let options = TableOptions { columns, carry, threads: 1, max_record_len: usize::MAX, held_len: 0 };
    let mut table = TableReader::parquet(path, &options)?;
    let mut rows = 0;
    while let Some(records) = table.read()? {
        rows += records.len();
    }
    Ok(rows)
}

/// The first whole lines of a file.
fn text_of(path: &Path) -> Result<Vec<u8>, String> {
    let say = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let source = input::Source::path(path.to_path_buf()).map_err(|error| error.to_string())?;
    let mut text = vec![0; MOST_TEXT];
    let len = match source.open(OpenOptions { mmap: false, threads: 1 }).map_err(|defect| say(&defect))? {
        Opened::Mapped(mapping) => {
            let len = mapping.len().min(MOST_TEXT);
            text[..len].copy_from_slice(&mapping[..len]);
            len
        }
        Opened::Stream(mut stream) => fill(&mut stream, &mut text).map_err(|defect| say(&defect))?,
    };
    text.truncate(len);
    if len == MOST_TEXT {
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        text.truncate(whole);
    }
    Ok(text)
}

fn fill(stream: &mut input::Stream, text: &mut [u8]) -> Result<usize, input::Defect> {
    let mut len = 0;
    while len < text.len() {
        match stream.read(&mut text[len..])? {
            0 => break,
            count => len += count,
        }
    }
    Ok(len)
}
