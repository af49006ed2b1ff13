//! The flags that say what is written: destination, format and columns.

use std::path::{Path, PathBuf};

use clap::Args;

use super::destination::{
    check_has_index, ends_with_slash, is_name_of_file, is_written_in_place, output_path, refuse_directory,
    refuse_terminal, unknown_suffix,
};
use super::layout::{FileLayout, LayoutArgs};
use super::values::{COLUMN_NAMES, Choices, Named, format_choice, listed_columns, parse_size_up_to};
use crate::batch::{ColumnId, ColumnSet};
use crate::canon::Policy;
use crate::cli::error::CommandError;
use crate::output::{Compression, CompressionError, Destination, OutputFormat, OutputOptions, index_columns};
use crate::process::Existing;
use crate::run::MAX_ROW_GROUP_LEN;

const FORMATS: Choices<OutputFormat> = Choices(&[
    format_choice(OutputFormat::Parquet, "Apache Parquet"),
    format_choice(OutputFormat::Arrow, "Arrow IPC file"),
    format_choice(OutputFormat::ArrowStream, "Arrow IPC stream"),
    format_choice(OutputFormat::Csv, "Comma-separated values with a header; keys in hexadecimal, nulls empty"),
    format_choice(OutputFormat::Tsv, "Tab-separated values, otherwise like csv"),
    format_choice(OutputFormat::JsonLines, "One JSON object per line; keys in hexadecimal, flags by name"),
    format_choice(OutputFormat::Cdxj, "CDXJ: SURT key, time and JSON per line, sorted by these; only canon writes it"),
    format_choice(
        OutputFormat::Zipnum,
        "CDXJ in gzip members of at most 3000 lines, with an index of the members beside it (.idx); only canon writes it",
    ),
    format_choice(
        OutputFormat::Text,
        "One canonical URI per line; empty if the record has a fault, so that canon writes a line for each record",
    ),
]);

pub(crate) const COMPRESSIONS: Named<Compression> = Named {
    parse: |text| text.parse().map_err(|error: CompressionError| error.to_string()),
    names: || vec!["zstd", "lz4", "snappy", "none"],
};

/// Flags of every command that writes rows.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Output file, written under a temporary name and renamed when it is complete; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    /// Format of the output [default: by the suffix of -o: parquet, pq, arrow, feather, arrows, csv, tsv, jsonl, ndjson,
    /// cdxj, cdx.gz, cdxj.gz, txt; on standard output (also /dev/stdout), devices and pipes text, or csv with --columns, --key or
    /// --skeleton; Parquet in directories]. After csv, tsv, jsonl, ndjson and txt, .gz and .zst compress the file
    #[arg(long, value_name = "FORMAT", value_parser = FORMATS, help_heading = "Output")]
    output_format: Option<OutputFormat>,
    /// Columns in order, separated by commas; or columns to add to the default ones, each with a + before it, such as
    /// +iri,+spoofing_flags. `irikey schema` lists all columns. NAME= is a column with the values of directories NAME=VALUE
    /// in the paths of inputs, such as +crawl=. Not with text output
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = COLUMN_NAMES, hide_possible_values = true,
          help_heading = "Output")]
    columns: Vec<String>,
    /// Add the column host_skeleton: hosts that look alike have the same skeleton. Not with text output
    #[arg(long, help_heading = "Output")]
    skeleton: bool,
    // Not a comment for documentation, which would take `[:LEVEL]` for a link.
    #[arg(long, value_name = "CODEC", value_parser = COMPRESSIONS, hide_possible_values = true, help_heading = "Output",
          help = "Compression of Parquet's text columns: zstd[:LEVEL], lz4, snappy or none [default: zstd:1]. Only with Parquet")]
    compression: Option<Compression>,
    /// Bytes of input whose rows make one row group or record batch, from 1K to 128M. Small row groups make larger files and
    /// need more memory: with Parquet, about 7 KB for each until the file is complete
    #[arg(long, value_name = "BYTES", value_parser = parse_row_group_size, default_value = "8M", help_heading = "Output")]
    pub(crate) row_group_size: usize,
}

/// Lower limit of `--row-group-size`. The descriptions of row groups of a Parquet file are held in memory until the file is
/// complete, and are not part of `--memory`. Measured with the default columns, a row group takes 7.5 KB. A higher limit would
/// refuse the row groups by which small files are cut in tests.
const MIN_ROW_GROUP_LEN: usize = 1 << 10;

fn parse_row_group_size(text: &str) -> Result<usize, String> {
    match parse_size_up_to::<MAX_ROW_GROUP_LEN>(text)? {
        len if len < MIN_ROW_GROUP_LEN => Err(format!(
            "at least {}K is supported, because each row group has a description that is held in memory",
            MIN_ROW_GROUP_LEN >> 10
        )),
        len => Ok(len),
    }
}

/// Flag of every command that writes files.
#[derive(Debug, Args)]
pub(crate) struct ReplaceArgs {
    /// Do not replace files: if an output or the report exists, exit with code 2 before anything is read; if one appears
    /// while the job runs, exit with code 5
    #[arg(long, help_heading = "Output")]
    pub(crate) no_clobber: bool,
}

impl ReplaceArgs {
    /// A file with this path, which the flag forbids to replace.
    pub(crate) fn file(&self, path: &Path) -> Destination {
        Destination::new(path.to_path_buf(), if self.no_clobber { Existing::Keep } else { Existing::Replace })
    }

    /// The same destination, with the rule of the flag.
    pub(crate) fn apply(&self, destination: Destination) -> Destination {
        destination.path().map_or(Destination::Stdout, |path| self.file(path))
    }
}

impl OutputArgs {
    /// The destination of the output, its options (without the policy and what depends on the sources), and its order and
    /// files, which other flags describe. `keys` are key columns that a flag of another group adds.
    pub(crate) fn options(
        &self,
        keys: &[ColumnId],
        files: LayoutArgs<'_>,
    ) -> Result<(Destination, OutputOptions, FileLayout), CommandError> {
        let (destination, format) = self.destination(keys, files)?;
        self.check(&destination, format, keys)?;
        if !files.can_sort() && format.is_index() {
            let message = format!("{} is sorted, and only 'irikey canon' sorts; use that command", format.name());
            return Err(CommandError::Usage(message));
        }
        let mut layout = files.layout(format)?;
        layout.is_directory |= self.output.as_deref().is_some_and(ends_with_slash);
        let mut columns = self.columns(format, keys)?;
        if format != OutputFormat::Text {
            columns.add_all(&files.columns()?);
            columns.add_named(layout.arrangement.by.names());
        }
        if layout.arrangement.bloom && !columns.contains(ColumnId::Key) {
            return Err(CommandError::usage(
                "--bloom-filter is for the column key, which is not written; add key to --columns, or remove --bloom-filter",
            ));
        }
        // Readers such as DuckDB compare the names without case.
        let is_column = |name: &str| columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        let mut names = layout.hive.iter().filter_map(|part| part.split('=').next());
        if let Some(name) = names.find(|name| format != OutputFormat::Text && is_column(name)) {
            let message = format!(
                "--hive: `{name}` is a column of the rows, and readers would find it twice; choose another name"
            );
            return Err(CommandError::Usage(message));
        }
        let (compression, policy) = (self.compression.unwrap_or_default(), Policy::default());
        let options = OutputOptions { format, compression, columns, policy, sources: Vec::new() };
        Ok((destination, options, layout))
    }

    /// The columns were chosen by a flag, or follow from the format.
    pub(crate) fn are_columns_chosen(&self, format: OutputFormat) -> bool {
        !self.columns.is_empty() || format == OutputFormat::Text
    }

    /// The destination and its format.
    fn destination(
        &self,
        keys: &[ColumnId],
        files: LayoutArgs<'_>,
    ) -> Result<(Destination, OutputFormat), CommandError> {
        let (is_directory, flags) = (files.is_directory(), files.flags_of_directories());
        match output_path(self.output.as_ref()) {
            Some(path) if is_directory && is_name_of_file(path) => Err(CommandError::Usage(format!(
                "{path}: {flags} write a directory, but the suffix names a file; name a directory such as {}, or write \
                 {path}/ if this is its name",
                path.with_extension("").display(),
                path = path.display(),
            ))),
            Some(path) if is_directory || ends_with_slash(path) => {
                Ok((Destination::File(path.to_path_buf()), self.output_format.unwrap_or(OutputFormat::Parquet)))
            }
            None if is_directory => {
                Err(CommandError::Usage(format!("{flags} write files; name their directory with -o")))
            }
            Some(path) => Ok((Destination::File(path.to_path_buf()), self.file_format(path, keys)?)),
            None => Ok((Destination::Stdout, self.output_format.unwrap_or_else(|| self.default_text(keys)))),
        }
    }

    /// The format of a file: that of the flag, or the one that its suffix names.
    fn file_format(&self, path: &Path, keys: &[ColumnId]) -> Result<OutputFormat, CommandError> {
        refuse_directory(path, "uris.parquet", ", or add a / to write parts in the directory")?;
        let of_device = || is_written_in_place(path).then(|| self.default_text(keys));
        let format = self.output_format.or_else(|| OutputFormat::of_path(path)).or_else(of_device);
        let parts = || format!("for a directory of parts, write {}/; ", path.display());
        format.ok_or_else(|| unknown_suffix(path, &OutputFormat::ALL, &parts()))
    }

    /// The format of standard output, devices and open handles: text has only one column.
    fn default_text(&self, keys: &[ColumnId]) -> OutputFormat {
        match self.columns.is_empty() && keys.is_empty() && !self.skeleton {
            true => OutputFormat::Text,
            false => OutputFormat::Csv,
        }
    }

    fn check(&self, destination: &Destination, format: OutputFormat, keys: &[ColumnId]) -> Result<(), CommandError> {
        let name = format.name();
        if format == OutputFormat::Zipnum {
            check_has_index(destination)?;
        }
        if self.compression.is_some() && format != OutputFormat::Parquet {
            return Err(CommandError::Usage(format!("--compression is for Parquet, but the output is {name}")));
        }
        let column_flags =
            [("--key", !keys.is_empty()), ("--columns", !self.columns.is_empty()), ("--skeleton", self.skeleton)];
        if let Some((flag, _)) = column_flags.iter().find(|(_, is_given)| *is_given) {
            if format.is_index() {
                return Err(CommandError::Usage(format!("{name} has fixed columns; remove {flag}")));
            }
            if format == OutputFormat::Text {
                return Err(CommandError::Usage(format!(
                    "text output has no columns, only one URI per line; add --output-format csv (or tsv, jsonl, parquet), \
                     name a file such as -o uris.parquet, or remove {flag}"
                )));
            }
        }
        refuse_terminal(destination, format)
    }

    fn columns(&self, format: OutputFormat, keys: &[ColumnId]) -> Result<ColumnSet, CommandError> {
        let fixed = match format {
            OutputFormat::Text => Some(ColumnSet::named(["uri"])),
            format if format.is_index() => Some(ColumnSet::named(index_columns())),
            _ => None,
        };
        if let Some(columns) = fixed {
            return columns.map_err(|error| CommandError::Internal(error.to_string()));
        }
        let columns = match listed_columns(&self.columns)? {
            (names, true) => ColumnSet::default_and(names),
            (names, false) if names.iter().any(|name| name.starts_with('+')) => {
                return Err(CommandError::usage(
                    "--columns: put a + before every name to add columns to the default ones, or before none",
                ));
            }
            (names, false) => ColumnSet::named(names),
        };
        let mut columns = columns.map_err(|error| CommandError::Usage(format!("--columns: {error}")))?;
        columns.add_keys(keys);
        if self.skeleton {
            columns.add(ColumnId::HostSkeleton);
        }
        Ok(columns)
    }
}
