//! `check-sorted`: do the rows of files stand in order? In: files, one after the other. Out: how many rows there are, or
//! the first place that is out of order.

use std::path::PathBuf;

use clap::Args;

use super::canon::fail;
use super::summary::thousands;
use super::{print, say};
use crate::process::exit;
use crate::run::{CheckSortedError, check_sorted};
use crate::sort::{OrderCheck, OrderError, SortBy};

/// Check that the rows of files stand in order
///
/// Parquet and Arrow IPC say themselves what they are sorted by, or --by says it. Lines of CDX and CDXJ, packed or not,
/// are compared by key and time, other lines as bytes. Several files are one order, in the order in which they are named.
#[derive(Debug, Args)]
pub(super) struct CheckSortedArgs {
    /// Files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Columns, a list with commas, instead of what tables say; a - before a name means from high to low
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_hyphen_values = true)]
    by: Vec<String>,
    /// Each file is an order of its own
    #[arg(long)]
    each: bool,
    /// Say nothing if all is in order
    #[arg(short, long)]
    quiet: bool,
}

pub(super) fn run(args: &CheckSortedArgs) -> u8 {
    let by = (!args.by.is_empty()).then(|| SortBy::parse(args.by.iter().map(|name| name.trim())));
    let mut check = OrderCheck::new(by.clone());
    let mut text = String::new();
    for path in &args.files {
        if args.each {
            check = OrderCheck::new(by.clone());
        }
        match check_sorted(path, &mut check) {
            Ok(rows) => text.push_str(&format!("{}: {} rows in order\n", path.display(), thousands(rows))),
            Err(error @ CheckSortedError::Order { error: OrderError::OutOfOrder { .. }, .. }) => {
                say(&error.to_string());
                return exit::DIFFERENT;
            }
            Err(error @ CheckSortedError::NoOrder(_)) => return fail(&error.to_string(), exit::USAGE),
            Err(error) => return fail(&error.to_string(), exit::INPUT),
        }
    }
    if args.quiet { exit::SUCCESS } else { print(&text) }
}
