//! `check-sorted`: checks that the rows of files are in order, and reports the first one that is not.

use std::path::{Path, PathBuf};

use clap::Args;

use super::args::{COLUMN_NAMES, ThreadArgs, sort_order};
use super::error::CommandError;
use super::terminal::{count_of, print_error, print_lines, visible};
use crate::output::OutputFormat;
use crate::process::exit;
use crate::run::{CheckSortedError, CheckSortedReason, check_sorted};
use crate::sort::{OrderCheck, OrderError};

const EXAMPLES: &str = "\
Examples:
  irikey check-sorted index/part-*.parquet
  irikey check-sorted --by url_surtkey,-fetch_time captures.parquet";

/// Check that the rows of files are sorted
///
/// Each row is compared with the row before it. The order of Parquet and Arrow IPC files is that of --by, or the one that the
/// first of them declares. Lines of CDX and CDXJ, compressed or not, are compared by key and time, other lines as bytes.
/// Several files are checked as one sequence, in the order in which they are named: the first row of a file is compared with
/// the last row of the file before it. With --each, files are not compared with each other, and each has the order that it
/// declares.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckSortedArgs {
    /// Files to check, on local disks; - is standard input, whose lines are checked
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Columns to check instead of the declared ones, separated by commas; a - before a name means descending order
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = COLUMN_NAMES, hide_possible_values = true,
          allow_hyphen_values = true)]
    by: Vec<String>,
    /// Check each file by itself
    #[arg(long)]
    each: bool,
    /// Print nothing if all files are sorted
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub(crate) fn run(args: &CheckSortedArgs) -> Result<u8, CommandError> {
    let by = Some(sort_order("--by", &args.by)?).filter(|by| !by.is_empty());
    let mut check = OrderCheck::new(by.clone());
    let mut status = exit::SUCCESS;
    for path in &args.files {
        check_path(path)?;
        if args.each {
            check = OrderCheck::new(by.clone());
        }
        match check_sorted(path, &mut check, args.threads.count()) {
            Ok(_) if args.quiet => (),
            Ok(rows) => {
                let name = path.display().to_string();
                let printed = print_lines(&format!("{}: {} in order\n", visible(&name), count_of(rows, "row")));
                if printed != exit::SUCCESS {
                    return Ok(printed);
                }
            }
            Err(error) => {
                report_unsorted(path, error)?;
                status = exit::DIFFERENT;
                // What comes after a file that is out of order cannot be compared with it.
                if !args.each {
                    break;
                }
            }
        }
    }
    Ok(status)
}

/// Checks that a path is not that of an object or a directory.
fn check_path(path: &Path) -> Result<(), CommandError> {
    CommandError::refuse_remote(path)?;
    if path.is_dir() {
        let parts = match parts_pattern(path) {
            (pattern, false) => pattern.display().to_string(),
            (pattern, true) => format!("{} with --each", pattern.display()),
        };
        let message = format!("{}: is a directory; name its files, such as {parts}", path.display());
        return Err(CommandError::Usage(message));
    }
    Ok(())
}

/// A pattern for the parts in `directory`, or in the directories of its partitions, and whether there are such directories.
fn parts_pattern(directory: &Path) -> (PathBuf, bool) {
    let (mut pattern, mut found) = (directory.to_path_buf(), directory.to_path_buf());
    while let Some(partition) = partition_in(&found) {
        pattern.push("*");
        found = partition;
    }
    (pattern.join("part-*"), found != directory)
}

/// A directory `NAME=VALUE` in `directory`.
fn partition_in(directory: &Path) -> Option<PathBuf> {
    let paths = std::fs::read_dir(directory).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let is_partition =
        |path: &PathBuf| path.is_dir() && path.file_name().is_some_and(|name| name.as_encoded_bytes().contains(&b'='));
    paths.filter(is_partition).min()
}

/// Prints that a file is out of order.
///
/// # Errors
/// The file cannot be checked.
fn report_unsorted(path: &Path, error: CheckSortedError) -> Result<(), CommandError> {
    use CheckSortedReason::{Archive, NoColumn, NoColumns, NoFile, NoOrder, Order};
    match error.reason {
        Order(OrderError::OutOfOrder { .. }) => print_error(&error.to_string()),
        Archive | NoOrder | NoColumn { .. } | NoColumns | NoFile => return Err(CommandError::Usage(error.to_string())),
        _ => return Err(CommandError::Input(error.to_string())),
    }
    let has_order = |format: OutputFormat| format.has_order() || format == OutputFormat::Text;
    if !OutputFormat::of_path(path).is_none_or(has_order) {
        print_error("whole lines were compared as bytes; columns are compared only in Parquet and Arrow IPC files");
    }
    Ok(())
}
