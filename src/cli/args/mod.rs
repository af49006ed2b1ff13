//! Groups of flags that commands share. Each group is declared once, checks itself, and is turned directly into the
//! library types that it stands for. Contradictions are reported before any file is opened.
//!
//! ```text
//! SourceArgs -------------------------> Sources
//! InputArgs, WorkArgs ----------------> RunOptions, Sources, memory
//! PolicyArgs, KeyArgs, ColumnArgs ----> Policy
//! OutputArgs, LayoutArgs -------------> Destination, OutputOptions, FileLayout
//! StoreArgs --------------------------> options of remote stores
//! ReportingArgs                         used as they are
//! ```

mod destination;
mod input;
mod layout;
mod output;
mod policy;
mod reporting;
mod values;
mod work;

pub(crate) use self::destination::{
    is_written_in_place, output_path, refuse_directory, refuse_terminal, unknown_suffix,
};
pub(crate) use self::input::{InputArgs, SourceArgs, StoreArgs};
pub(crate) use self::layout::{FileLayout, LayoutArgs, PartArgs, SortArgs};
pub(crate) use self::output::{COMPRESSIONS, OutputArgs};
pub(crate) use self::policy::{
    ColumnArgs, KEYS, KeyArgs, PROTOCOL, PolicyArgs, describe_fault_of_base, name_of_key, parse_charset,
};
pub(crate) use self::reporting::{NO_CLOBBER_REPORT_HELP, ReportFormat, ReportingArgs, ShowProgress};
pub(crate) use self::values::{
    COLUMN_NAMES, Choices, Named, check_named, format_choice, listed_columns, named_path, parquet_path, parse_number,
    parse_number_from, parse_size, sort_order,
};
pub(crate) use self::work::{ThreadArgs, WorkArgs};
