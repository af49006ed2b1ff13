//! The flags that say in which order rows are written and to which files, and the [`FileLayout`] that they stand for.

use std::path::{Path, PathBuf};

use clap::Args;

use super::values::{COLUMN_NAMES, check_named, find_repeated, parse_number_from, read_text, sort_order};
use crate::batch::ColumnSet;
use crate::cli::error::CommandError;
use crate::cli::file_roles::FileRoles;
use crate::output::{Arrangement, Destination, INDEX_KEY, OutputFormat};
use crate::process::part_names::is_hidden_name;
use crate::run::{PartCut, SortOptions};
use crate::sort::{Partition, SortBy, SplitPoints};

/// Highest number of partitions; each is a directory.
const MAX_PARTITIONS: u32 = 65_536;

/// The order of CDXJ as --sort names it. Lines that are equal in these are sorted by the rest of the line.
const INDEX_ORDER: [&str; 2] = [INDEX_KEY, "fetch_time"];

/// Flags of a command that writes rows to several files.
#[derive(Debug, Args)]
pub(crate) struct PartArgs {
    /// Write a directory of parts with N rows each. Sorted parts end where the value of the first column of --sort
    /// changes, so that no two parts share a value
    #[arg(long, value_name = "N", value_parser = parse_number_from::<u64, 1>, allow_negative_numbers = true,
          help_heading = "Order and files")]
    part_rows: Option<u64>,
    /// Names of directories to create between -o and the parts, separated by commas, outermost first, such as
    /// crawl=CC-MAIN-2026-47,subset=warc
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_hive, help_heading = "Order and files")]
    hive: Vec<String>,
}

/// Flags of a command that writes rows in order or to several files.
#[derive(Debug, Args)]
pub(crate) struct SortArgs {
    /// Columns to sort by, separated by commas, such as url_surtkey,fetch_time; a - before a name sorts it in descending
    /// order. Columns that --columns does not name are added at the end. Nulls come last, equal rows keep the order of the
    /// input. Parquet files then declare their order and have page statistics of these columns. Files in Parquet, Arrow, CDXJ
    /// and ZipNum are read again and checked [default for cdxj and zipnum: url_surtkey_ia,fetch_time]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = COLUMN_NAMES,
        hide_possible_values = true,
        allow_hyphen_values = true,
        help_heading = "Order and files"
    )]
    sort: Vec<String>,
    #[command(flatten)]
    parts: PartArgs,
    /// Write a directory of partitions: host:N, by a hash of the host; surt:N, N ranges of the SURT key with about the
    /// same number of rows, whose split points are written to splits.txt; surt:FILE, the ranges between the split points
    /// in FILE
    #[arg(long, value_name = "HOW", value_parser = parse_partition, help_heading = "Order and files")]
    partition: Option<PartitionFlag>,
    /// Write Bloom filters of the column key, so that a lookup of few keys skips most row groups. Only with Parquet
    #[arg(long, help_heading = "Order and files")]
    bloom_filter: bool,
    /// Write a directory with one part per input and a manifest of the finished inputs. After an interruption, the same
    /// command does the rest; other flags, or an input that has changed, are refused. With --sort or --partition, parts
    /// follow the order of the rows instead, and sorted runs of the finished inputs are kept in _runs below -o
    #[arg(long, help_heading = "Order and files")]
    resume: bool,
}

const NOT_SPLIT_POINTS: &str = "not split points; expected UTF-8 text such as the splits.txt of an output";

/// The value of `--partition`. The file of split points, which may be in a store, is read after the options of stores.
#[derive(Clone, Debug)]
enum PartitionFlag {
    Host(u32),
    /// This many ranges of the SURT key.
    Ranges(u32),
    /// The ranges between the split points in a file.
    Points(PathBuf),
}

/// The flags of a command for the order and the files of its output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LayoutArgs<'a> {
    /// Of a command that can sort.
    Sort(&'a SortArgs),
    /// Of a command that writes rows in the order of the input.
    Parts(&'a PartArgs),
}

/// The order and the files of an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileLayout {
    /// What rows are sorted by (nothing: the order of the input), and bloom filters.
    pub(crate) arrangement: Arrangement,
    /// How rows are assigned to directories, if this does not depend on all rows.
    pub(crate) partition: Option<Partition>,
    /// The file with the split points of `partition`.
    pub(crate) split_points_file: Option<PathBuf>,
    /// Directories for this many ranges of the SURT key, of about equal size; their split points are written.
    pub(crate) ranges: Option<u32>,
    pub(crate) part_rows: Option<u64>,
    /// The output is a directory of files.
    pub(crate) is_directory: bool,
    /// Directories above the parts, outermost first.
    pub(crate) hive: Vec<String>,
    /// Finished inputs are kept, so that the job can be resumed.
    pub(crate) resume: bool,
}

impl FileLayout {
    /// Rows are not written in the order of the input.
    pub(crate) fn is_sorted(&self) -> bool {
        !self.arrangement.by.is_empty() || self.partition.is_some()
    }

    /// The directory above all parts of an output at `path`.
    pub(crate) fn root(&self, path: &Path) -> PathBuf {
        self.hive.iter().fold(path.to_path_buf(), |path, part| path.join(part))
    }

    /// Adds the files that an output at `destination` has.
    pub(crate) fn add_to(&self, files: FileRoles, destination: &Destination, format: OutputFormat) -> FileRoles {
        match destination.path().filter(|_| self.is_directory) {
            Some(path) => files.directory(path, (!self.resume).then(|| self.root(path))),
            None => files.destination(destination, format),
        }
    }

    /// The sort that makes this order, with so much memory and spill files in `directory`.
    pub(crate) fn sort_options(&self, memory: usize, directory: PathBuf) -> SortOptions {
        let cut = match (self.ranges, self.part_rows) {
            (Some(count), _) => PartCut::Count(count),
            (None, Some(rows)) => PartCut::Rows(rows),
            (None, None) => PartCut::None,
        };
        SortOptions { by: self.arrangement.by.clone(), partition: self.partition.clone(), cut, memory, directory }
    }
}

impl LayoutArgs<'_> {
    /// The command can sort.
    pub(crate) fn can_sort(self) -> bool {
        matches!(self, LayoutArgs::Sort(_))
    }

    /// The output is a directory of files, whatever its name is.
    pub(crate) fn is_directory(self) -> bool {
        match self {
            LayoutArgs::Sort(sort) => sort.is_directory(),
            LayoutArgs::Parts(parts) => parts.is_directory(),
        }
    }

    /// The flags by which the output becomes a directory, for messages.
    pub(crate) fn flags_of_directories(self) -> &'static str {
        match self {
            LayoutArgs::Sort(_) => "--part-rows, --partition, --hive and --resume",
            LayoutArgs::Parts(_) => "--part-rows and --hive",
        }
    }

    /// The layout of an output of this format.
    pub(crate) fn layout(self, format: OutputFormat) -> Result<FileLayout, CommandError> {
        match self {
            LayoutArgs::Sort(sort) => sort.layout(format),
            LayoutArgs::Parts(parts) => parts.layout(),
        }
    }

    /// The columns by which rows are sorted.
    pub(crate) fn columns(self) -> Result<ColumnSet, CommandError> {
        match self {
            LayoutArgs::Sort(sort) => sort.sort().map(|(_, columns)| columns),
            LayoutArgs::Parts(_) => Ok(ColumnSet::of(&[])),
        }
    }
}

impl PartArgs {
    fn is_directory(&self) -> bool {
        self.part_rows.is_some() || !self.hive.is_empty()
    }

    /// The layout of an output in the order of the input.
    fn layout(&self) -> Result<FileLayout, CommandError> {
        // Readers such as DuckDB compare the names without case.
        let names = self.hive.iter().filter_map(|part| Some(part.split_once('=')?.0.to_ascii_lowercase()));
        if let Some(name) = find_repeated(names) {
            let message = format!("--hive names `{name}` twice; each directory has a name of its own");
            return Err(CommandError::Usage(message));
        }
        let (part_rows, hive) = (self.part_rows, self.hive.clone());
        Ok(FileLayout { part_rows, is_directory: self.is_directory(), hive, ..FileLayout::default() })
    }
}

impl SortArgs {
    fn is_directory(&self) -> bool {
        self.parts.is_directory() || self.partition.is_some() || self.resume
    }

    fn layout(&self, format: OutputFormat) -> Result<FileLayout, CommandError> {
        let by = self.order(format)?;
        if self.bloom_filter && format != OutputFormat::Parquet {
            let message = format!("--bloom-filter is for Parquet, but the output is {}", format.name());
            return Err(CommandError::Usage(message));
        }
        let mut layout = FileLayout {
            arrangement: Arrangement { by, bloom: self.bloom_filter },
            is_directory: self.is_directory(),
            resume: self.resume,
            ..self.parts.layout()?
        };
        match &self.partition {
            None => {}
            Some(PartitionFlag::Host(count)) => layout.partition = Some(Partition::Host(*count)),
            Some(PartitionFlag::Ranges(count)) => layout.ranges = Some(*count),
            Some(PartitionFlag::Points(path)) => {
                let failed = |line| format!("line {line}: not greater than the line before");
                let parse = |text: String| SplitPoints::parse(&text).map_err(failed);
                layout.partition =
                    Some(Partition::Surt(read_text("--partition surt:", path, NOT_SPLIT_POINTS, parse)?));
                layout.split_points_file = Some(path.clone());
            }
        }
        if layout.ranges.is_some() && layout.part_rows.is_some() {
            let message = "--partition surt:N makes parts of equal size; remove --part-rows, or use surt:FILE";
            return Err(CommandError::usage(message));
        }
        if self.resume && !layout.is_sorted() && self.parts.is_directory() {
            let message = "--resume writes one part per input; remove --part-rows and --hive, or add --sort";
            return Err(CommandError::usage(message));
        }
        Ok(layout)
    }

    /// The order of `--sort`, and its columns.
    fn sort(&self) -> Result<(SortBy, ColumnSet), CommandError> {
        let by = sort_order("--sort", &self.sort)?;
        let columns = ColumnSet::named(by.names());
        let columns = columns.map_err(|error| CommandError::Usage(format!("--sort: {error}")))?;
        // The column of `NAME=` is called `NAME`.
        Ok((by.renamed(columns.names()), columns))
    }

    /// What rows are sorted by: the flag, or what the format or the partitions require.
    fn order(&self, format: OutputFormat) -> Result<SortBy, CommandError> {
        let (by, _) = self.sort()?;
        if format.is_index() {
            if !by.is_empty() && by != SortBy::parse(INDEX_ORDER) {
                let message = format!("{} is sorted by {}; remove --sort", format.name(), INDEX_ORDER.join(","));
                return Err(CommandError::Usage(message));
            }
            return Ok(SortBy::parse(INDEX_ORDER));
        }
        if matches!(self.partition, None | Some(PartitionFlag::Host(_))) {
            return Ok(by);
        }
        match by.columns().first() {
            None => Ok(SortBy::parse(["url_surtkey"])),
            Some(first) if first.name != "url_surtkey" => Err(CommandError::usage(
                "--partition surt makes ranges of url_surtkey; sort by url_surtkey first, or remove --sort",
            )),
            Some(first) if first.descending && matches!(self.partition, Some(PartitionFlag::Ranges(_))) => {
                Err(CommandError::usage(
                    "--partition surt:N makes ranges that ascend; remove the - before url_surtkey, or use surt:FILE",
                ))
            }
            Some(_) => Ok(by),
        }
    }
}

fn parse_partition(text: &str) -> Result<PartitionFlag, String> {
    let count = |text: &str| match text.parse() {
        Ok(count @ 1..=MAX_PARTITIONS) => Ok(count),
        _ => Err(format!("expected a number of partitions from 1 to {MAX_PARTITIONS}")),
    };
    match text.split_once(':') {
        Some(("host", text)) => count(text).map(PartitionFlag::Host),
        Some(("surt", text)) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            count(text).map(PartitionFlag::Ranges)
        }
        Some(("surt", path)) if !path.is_empty() => Ok(PartitionFlag::Points(check_named(PathBuf::from(path))?)),
        _ => Err("expected host:N, surt:N or surt:FILE".to_string()),
    }
}

fn parse_hive(text: &str) -> Result<String, String> {
    let is_partition = |name: &str| {
        [Partition::HOST_DIRECTORY, Partition::SURT_DIRECTORY].iter().any(|own| own.eq_ignore_ascii_case(name))
    };
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '\\', '=']) && part != "..";
    match text.split_once('=') {
        Some((name, _)) if is_hidden_name(name.as_bytes()) => {
            Err("readers skip directories whose names begin with . or _; choose another name".to_string())
        }
        Some((name, _)) if is_partition(name) => {
            Err(format!("`{name}` is the name of directories of --partition; choose another name"))
        }
        Some((name, value)) if is_plain(name) && is_plain(value) => Ok(text.to_string()),
        _ => Err("expected NAME=VALUE, without slashes".to_string()),
    }
}
