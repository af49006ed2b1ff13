//! `bench`: measures the stages of `canon` on one thread, in nanoseconds per line. A plain copy of the lines is measured as
//! well, so that results of different machines can be compared.

mod report;
mod stages;

use std::path::{Path, PathBuf};

use crate::cli::args::{COMPRESSIONS, parse_number};
use crate::cli::error::CommandError;
use crate::cli::terminal::print;
use crate::input::detect::{ContentType, TableFormat, content_type};
use crate::input::{self, Defect, OpenOptions, Opened, StoredFile, TableColumns, TableOptions, TableReader};
use crate::output::Compression;
use crate::record::fields::FieldSet;
use report::{BenchReport, EarlierReport};

/// Bytes of a file that are measured; the rest is ignored.
const MAX_TEXT: usize = 64 << 20;

const EXAMPLES: &str = "\
Examples:
  irikey bench urls.txt.gz --json > before.json
  irikey bench urls.txt.gz --compare before.json";

/// Measure the stages of canon on one thread, from reading to writing
///
/// canon checks that a line is UTF-8 while it canonicalizes it. The stage validate is the time that a check of the whole text takes,
/// and canonicalize is the rest.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// File of lines, decompressed before the measurement; only its first 64 MiB are used
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Number of measurements, of which the median is reported
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = parse_number::<u16, 1, 65535>,
          allow_negative_numbers = true)]
    rounds: u16,
    // Not a comment for documentation, which would take `[:LEVEL]` for a link.
    #[arg(long, value_name = "CODEC", value_parser = COMPRESSIONS, hide_possible_values = true,
          default_value_t = Compression::default(),
          help = "Compression of the Parquet output: zstd[:LEVEL], lz4, snappy or none")]
    compression: Compression,
    /// Print JSON, for --compare
    #[arg(long)]
    json: bool,
    /// Compare each stage with REPORT, the --json of an earlier run. Both are relative to the plain copy on their machine,
    /// so that reports of different machines can be compared
    #[arg(long, value_name = "REPORT", conflicts_with = "json")]
    compare: Option<PathBuf>,
    /// Only decompress all of FILE, count its lines (of Parquet: decode the URLs) and print the number. Scripts that time
    /// whole runs use it as the lower bound of reading FILE
    #[arg(long, conflicts_with_all = ["json", "compare"])]
    floor: bool,
}

pub(crate) fn run(args: &BenchArgs) -> Result<u8, CommandError> {
    if args.floor {
        let count = count_lines(&args.file).map_err(CommandError::Input)?;
        return Ok(print(&format!("{count}\n")));
    }
    let earlier = args.compare.as_deref().map(read_report).transpose()?;
    let (name, text) = (args.file.display().to_string(), read_lines(&args.file).map_err(CommandError::Input)?);
    if text.is_empty() {
        return Err(CommandError::Input(format!("{name}: the file has no lines to measure")));
    }
    let times = stages::measure(&text, args.rounds, args.compression)
        .map_err(|error| CommandError::SideFile(format!("cannot write temporary files: {error}")))?;
    let report = BenchReport { corpus: name, compression: args.compression, times };
    let text = if args.json { format!("{:#}\n", report.to_json()) } else { report.to_text(earlier.as_ref()) };
    Ok(print(&text))
}

fn read_report(path: &Path) -> Result<EarlierReport, CommandError> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| CommandError::unreadable(path, &error))?;
    EarlierReport::parse(&text).ok_or_else(|| {
        CommandError::Usage(format!("{name}: not a report of irikey bench; make one with irikey bench --json"))
    })
}

/// Number of line ends in a file, decompressed; of Parquet, the number of URLs.
fn count_lines(path: &Path) -> Result<usize, String> {
    let message = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let count = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
    let is_parquet = |text: &[u8]| matches!(content_type(text), ContentType::Table(TableFormat::Parquet));
    let source = input::Source::path(path.to_path_buf()).map_err(|error| error.to_string())?;
    match source.open(OpenOptions::sequential(true)).map_err(|defect| message(&defect))? {
        Opened::Mapped(mapping) if is_parquet(&mapping) => count_urls(path).map_err(|defect| message(&defect)),
        Opened::Mapped(mapping) => Ok(count(&mapping)),
        // Short files are not mapped.
        Opened::Stream(mut stream) => {
            let (mut piece, mut lines, mut is_first) = (vec![0; 1 << 20], 0, true);
            loop {
                match stream.read(&mut piece).map_err(|defect| message(&defect))? {
                    0 => return Ok(lines),
                    len if std::mem::take(&mut is_first) && is_parquet(&piece[..len]) => {
                        return count_urls(path).map_err(|defect| message(&defect));
                    }
                    len => lines += count(&piece[..len]),
                }
            }
        }
    }
}

/// Decodes all URLs of a Parquet file and returns their number.
fn count_urls(path: &Path) -> Result<usize, Defect> {
    let (columns, carry) = (TableColumns::default(), FieldSet::default());
    let options = TableOptions { columns, carry, threads: 1, max_record_len: usize::MAX, held_len: 0 };
    let mut table = TableReader::parquet(&StoredFile::Path(path.to_path_buf()), &options)?;
    let mut rows = 0;
    while let Some(records) = table.read()? {
        rows += records.len();
    }
    Ok(rows)
}

/// The first complete lines of a file.
fn read_lines(path: &Path) -> Result<Vec<u8>, String> {
    let message = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    if path.is_dir() {
        return Err(message(&"is a directory; name one of its files"));
    }
    let source = input::Source::path(path.to_path_buf()).map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let opened = source.open(OpenOptions::sequential(false)).map_err(|defect| message(&defect))?;
    opened.into_stream().read_to_len(&mut text, MAX_TEXT).map_err(|defect| message(&defect))?;
    if text.len() == MAX_TEXT {
        let whole = memchr::memrchr(b'\n', &text).map_or(0, |at| at + 1);
        text.truncate(whole);
    }
    Ok(text)
}
