//! The flags that say what is written: where to, in which format, which columns.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::sizes::at_most_text;
use super::sort::{SortArgs, Sorting};
use crate::batch::{ColumnId, ColumnSet};
use crate::cli::size::parse_size;
use crate::output::{Compression, Destination, OutputFormat, index_columns};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Apache Parquet
    Parquet,
    /// Arrow IPC file
    Arrow,
    /// Arrow IPC stream
    ArrowStream,
    /// Comma-separated values with a header; keys in hexadecimal, nulls empty
    Csv,
    /// Tab-separated values with a header, otherwise as csv
    Tsv,
    /// One JSON object a line; keys in hexadecimal, flags by name
    Jsonl,
    /// CDXJ: SURT key, time and JSON a line, sorted by these
    Cdxj,
    /// CDXJ in gzip members of 3000 lines, with an index of these beside it (.idx)
    Zipnum,
    /// One canonical URI a line, an empty line where the record has a fault: line n is record n
    Text,
}

/// Flags of every command that writes rows.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Output file, written under a temporary name and renamed when whole; - is standard output [default: -]. A directory
    /// with --part-rows, --partition, --hive or --resume
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the output [default: by the suffix of -o: parquet, pq, arrow, feather, arrows, csv, tsv, jsonl, ndjson,
    /// cdxj, cdx.gz, txt; text on standard output, Parquet in directories]
    #[arg(long, value_name = "FORMAT", value_enum, help_heading = "Output")]
    output_format: Option<FormatName>,
    /// Columns and their order, a list with commas; or, each with a + before it, columns besides the default ones, such
    /// as +iri,+spoofing_flags. `irikey schema` names them all. Not with text output
    #[arg(long, value_name = "LIST", value_delimiter = ',', help_heading = "Output")]
    columns: Vec<String>,
    /// Short for the column host_skeleton: hosts that look alike have equal ones. Not with text output
    #[arg(long, help_heading = "Output")]
    skeleton: bool,
    /// Codec of Parquet's text columns: zstd[:LEVEL], lz4, snappy or none [default: zstd:1]. Only with Parquet
    #[arg(long, value_name = "CODEC", help_heading = "Output")]
    compression: Option<Compression>,
    /// Input text that makes one row group or record batch, in bytes. At most 512M
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "8M", help_heading = "Output")]
    row_group_size: usize,
}

/// What is written: [`OutputArgs`], checked against each other and with their defaults filled in.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// Where the output goes.
    pub destination: Destination,
    /// Its format.
    pub format: OutputFormat,
    /// Codec of Parquet's text columns.
    pub compression: Compression,
    /// Its columns.
    pub columns: ColumnSet,
    /// They were chosen by a flag, or are the format's.
    pub are_columns_chosen: bool,
    /// Bytes of input that make a row group.
    pub row_group_len: usize,
    /// In which order and into which files.
    pub sorting: Sorting,
}

impl OutputArgs {
    /// What the flags mean; key columns of `keys`, asked for by a flag of another group, are among the columns.
    ///
    /// # Errors
    /// Flags that contradict each other, as a sentence that says what to do.
    pub fn outputs(&self, keys: &[ColumnId]) -> Result<Outputs, String> {
        let outputs = self.outputs_in(keys, None)?;
        match outputs.format.is_index() {
            true => Err(format!("{} is written by 'irikey canon', which sorts", outputs.format.name())),
            false => Ok(outputs),
        }
    }

    /// [`OutputArgs::outputs`], in the order and into the files that other flags say.
    ///
    /// # Errors
    /// As there.
    pub fn outputs_in(&self, keys: &[ColumnId], sort: Option<&SortArgs>) -> Result<Outputs, String> {
        at_most_text("--row-group-size", self.row_group_size)?;
        let (destination, format) = self.destination(sort.is_some_and(SortArgs::is_directory))?;
        self.check(&destination, format, keys)?;
        let sorting = sort.map(|sort| sort.sorting(format)).transpose()?.unwrap_or_default();
        let mut columns = self.columns(format, keys)?;
        if format != OutputFormat::Text {
            columns.add_named(sorting.by.names());
        }
        Ok(Outputs {
            sorting,
            destination,
            format,
            compression: self.compression.unwrap_or_default(),
            columns,
            are_columns_chosen: !self.columns.is_empty() || format == OutputFormat::Text,
            row_group_len: self.row_group_size,
        })
    }

    fn destination(&self, is_directory: bool) -> Result<(Destination, OutputFormat), String> {
        let named = self.output_format.map(FormatName::format);
        match &self.output {
            Some(path) if is_directory && path.as_os_str() != "-" => {
                Ok((Destination::File(path.clone()), named.unwrap_or(OutputFormat::Parquet)))
            }
            _ if is_directory => {
                Err("--part-rows, --partition, --hive and --resume make files; name their directory with -o".into())
            }
            Some(path) if path.as_os_str() != "-" => {
                let format = named.or_else(|| OutputFormat::of_path(path)).ok_or_else(|| {
                    let suffixes: Vec<_> =
                        OutputFormat::ALL.iter().flat_map(|format| format.suffixes()).copied().collect();
                    let path = path.display();
                    format!("{path}: no format has this suffix ({}); use --output-format", suffixes.join(", "))
                })?;
                Ok((Destination::File(path.clone()), format))
            }
            _ => Ok((Destination::Stdout, named.unwrap_or(OutputFormat::Text))),
        }
    }

    fn check(&self, destination: &Destination, format: OutputFormat, keys: &[ColumnId]) -> Result<(), String> {
        if self.compression.is_some() && format != OutputFormat::Parquet {
            return Err(format!("--compression is for Parquet, and the output is {}", format.name()));
        }
        let wants_columns =
            [("--key", !keys.is_empty()), ("--columns", !self.columns.is_empty()), ("--skeleton", self.skeleton)];
        if let Some((flag, _)) = wants_columns.iter().find(|(_, wanted)| *wanted && format.is_index()) {
            return Err(format!("{} has fields of its own; leave {flag} out", format.name()));
        }
        if let Some((flag, _)) = wants_columns.iter().find(|(_, wanted)| *wanted && format == OutputFormat::Text) {
            return Err(format!(
                "text output is one URI a line, without columns; leave {flag} out, or use -o FILE or --output-format"
            ));
        }
        if format.is_binary() && *destination == Destination::Stdout && std::io::stdout().is_terminal() {
            return Err(format!("{} is not for a terminal; use -o FILE, or pipe it", format.name()));
        }
        Ok(())
    }

    fn columns(&self, format: OutputFormat, keys: &[ColumnId]) -> Result<ColumnSet, String> {
        if format == OutputFormat::Text {
            return ColumnSet::named(["uri"]).map_err(|unknown| unknown.to_string());
        }
        if format.is_index() {
            return ColumnSet::named(index_columns()).map_err(|unknown| unknown.to_string());
        }
        let names = self.columns.iter().map(|name| name.trim());
        let added: Option<Vec<_>> = names.clone().map(|name| name.strip_prefix('+')).collect();
        let mut columns = match added {
            Some(added) => ColumnSet::default_and(added),
            None => ColumnSet::named(names),
        }
        .map_err(|unknown| format!("--columns: {unknown}; put + before all names or none"))?;
        columns.add_keys(keys);
        if self.skeleton {
            columns.add(ColumnId::HostSkeleton);
        }
        Ok(columns)
    }
}

impl FormatName {
    fn format(self) -> OutputFormat {
        match self {
            FormatName::Parquet => OutputFormat::Parquet,
            FormatName::Arrow => OutputFormat::Arrow,
            FormatName::ArrowStream => OutputFormat::ArrowStream,
            FormatName::Csv => OutputFormat::Csv,
            FormatName::Tsv => OutputFormat::Tsv,
            FormatName::Jsonl => OutputFormat::JsonLines,
            FormatName::Cdxj => OutputFormat::Cdxj,
            FormatName::Zipnum => OutputFormat::Zipnum,
            FormatName::Text => OutputFormat::Text,
        }
    }
}
