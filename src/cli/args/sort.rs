//! The flags that say in which order rows are written, and into which files.

use std::path::PathBuf;

use clap::Args;

use crate::batch::ColumnSet;
use crate::output::OutputFormat;
use crate::run::PartCut;
use crate::sort::{Partition, SortBy, SplitPoints};

/// Most partitions: each is a directory.
const MOST_PARTITIONS: u32 = 65_536;

/// Flags of a command that writes rows in order or in several files.
#[derive(Debug, Args)]
pub struct SortArgs {
    /// Columns to sort by, a list with commas, such as url_surtkey,fetch_time; a - before a name sorts from high to low.
    /// Nulls come last, equal rows stay in the order of the input. Parquet then says what it is sorted by, and has
    /// statistics of these columns for every page; what is written is read again and checked [default for cdxj and
    /// zipnum: url_surtkey,fetch_time]
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Order and files"
    )]
    sort: Vec<String>,
    /// Directory output: a part ends after so many rows. Sorted parts end where the first column of --sort changes, so
    /// that none share a value of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Order and files")]
    part_rows: Option<u64>,
    /// Directory output by partition: host:N, by a hash of the host; surt:N, N ranges of the SURT key with about equally
    /// many rows, whose split points go to splits.txt; surt:FILE, ranges between the split points of such a file
    #[arg(long, value_name = "HOW", value_parser = parse_partition, help_heading = "Order and files")]
    partition: Option<Parting>,
    /// Directories between -o and the parts, a list with commas, outermost first, such as crawl=CC-MAIN-2026-47,subset=warc
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_hive, help_heading = "Order and files")]
    hive: Vec<String>,
    /// Write bloom filters of the column key, so that a reader who looks for few keys skips most row groups. Only with
    /// Parquet
    #[arg(long, help_heading = "Order and files")]
    bloom_filter: bool,
    /// Directory output, a part for each input, with a manifest that names what is done: run again after whatever ended
    /// it, the same command does the rest. With --sort or --partition the parts are those of the order, and sorted runs of
    /// the inputs that are done wait in _runs, below -o. Another policy, or an input that has changed, is refused
    #[arg(long, help_heading = "Order and files")]
    resume: bool,
}

/// What `--partition` says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Parting {
    By(Partition),
    /// So many ranges of the SURT key.
    Ranges(u32),
}

/// The order and the files of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorting {
    /// What rows are sorted by; the input's order if nothing.
    pub by: SortBy,
    /// How they are parted.
    pub partition: Option<Partition>,
    /// So many ranges of the SURT key are to be made, and their split points written.
    pub ranges: Option<u32>,
    /// Rows of a part.
    pub part_rows: Option<u64>,
    /// Directories above the parts.
    pub hive: Vec<String>,
    /// Bloom filters of the key are wanted.
    pub bloom: bool,
    /// A part for each input, and what is done already is not done again.
    pub resume: bool,
}

impl Sorting {
    /// Rows are written in another order than that of the input.
    pub fn is_sorted(&self) -> bool {
        !self.by.is_empty() || self.partition.is_some()
    }

    /// The output is a directory of files.
    pub fn is_directory(&self) -> bool {
        let is_parted = self.partition.is_some() || self.ranges.is_some() || self.part_rows.is_some();
        is_parted || !self.hive.is_empty() || self.resume
    }

    /// Where parts end.
    pub fn cut(&self) -> PartCut {
        match (self.ranges, self.part_rows) {
            (Some(count), _) => PartCut::Count(count),
            (None, Some(rows)) => PartCut::Rows(rows),
            (None, None) => PartCut::None,
        }
    }
}

impl SortArgs {
    /// The output is a directory of files.
    pub fn is_directory(&self) -> bool {
        self.part_rows.is_some() || self.partition.is_some() || !self.hive.is_empty() || self.resume
    }

    /// What the flags mean for an output of this format.
    ///
    /// # Errors
    /// A column that is not there; flags that do not go together.
    pub fn sorting(&self, format: OutputFormat) -> Result<Sorting, String> {
        let names = self.sort.iter().map(|name| name.trim());
        let mut by = SortBy::parse(names);
        if format.is_index() {
            if by.is_empty() {
                by = SortBy::parse(["url_surtkey", "fetch_time"]);
            }
            if by.columns().iter().any(|column| column.descending) || by.names().ne(["url_surtkey", "fetch_time"]) {
                return Err(format!("{} is sorted by url_surtkey,fetch_time; leave --sort out", format.name()));
            }
            // Where a line has no time, `-` stands there, before all digits.
            by = by.with_nulls_first();
        }
        ColumnSet::named(by.names()).map_err(|unknown| format!("--sort: {unknown}"))?;
        if self.bloom_filter && format != OutputFormat::Parquet {
            return Err(format!("--bloom-filter is for Parquet, and the output is {}", format.name()));
        }
        let (partition, ranges) = match self.partition.clone() {
            Some(Parting::By(partition)) => (Some(partition), None),
            Some(Parting::Ranges(count)) => (None, Some(count)),
            None => (None, None),
        };
        if let (Some(_), Some(_)) = (ranges, self.part_rows) {
            return Err("--partition surt:N makes parts of equal size; leave --part-rows out, or use surt:FILE".into());
        }
        if self.resume
            && by.is_empty()
            && self.partition.is_none()
            && (self.part_rows.is_some() || !self.hive.is_empty())
        {
            return Err("--resume makes a part for each input; leave --part-rows and --hive out, or add --sort".into());
        }
        if ranges.is_some() || matches!(partition, Some(Partition::Surt(_))) {
            if by.is_empty() {
                by = SortBy::parse(["url_surtkey"]);
            }
            if by.names().next() != Some("url_surtkey") {
                return Err(
                    "--partition surt is by ranges of url_surtkey; sort by that first, or leave --sort out".into()
                );
            }
        }
        Ok(Sorting {
            by,
            partition,
            ranges,
            part_rows: self.part_rows,
            hive: self.hive.clone(),
            bloom: self.bloom_filter,
            resume: self.resume,
        })
    }
}

fn parse_partition(text: &str) -> Result<Parting, String> {
    let number = |text: &str| match text.parse() {
        Ok(count @ 1..=MOST_PARTITIONS) => Ok(count),
        _ => Err(format!("a number of partitions is from 1 to {MOST_PARTITIONS}")),
    };
    match text.split_once(':') {
        Some(("host", count)) => Ok(Parting::By(Partition::Host(number(count)?))),
        Some(("surt", count)) if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) => {
            Ok(Parting::Ranges(number(count)?))
        }
        Some(("surt", path)) if !path.is_empty() => split_points(&PathBuf::from(path)).map(Parting::By),
        _ => Err("expected host:N, surt:N or surt:FILE".into()),
    }
}

fn split_points(path: &std::path::Path) -> Result<Partition, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let points = SplitPoints::parse(&text);
    let points =
        points.map_err(|line| format!("{}: line {line}: does not stand after the one before", path.display()))?;
    Ok(Partition::Surt(points))
}

fn parse_hive(text: &str) -> Result<String, String> {
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['/', '\\', '=']) && part != "..";
    match text.split_once('=') {
        Some((name, value)) if is_plain(name) && is_plain(value) => Ok(text.to_string()),
        _ => Err("expected NAME=VALUE, without slashes".into()),
    }
}
