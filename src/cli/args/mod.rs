//! Groups of flags that commands share. Each group is declared once, checks itself, and is turned directly into the
//! library types that it stands for. Contradictions are reported before any file is opened.
//!
//! ```text
//! InputArgs, WorkArgs ---------> RunOptions, Sources
//! PolicyArgs, KeyArgs ---------> Policy
//! OutputArgs, SortArgs --------> Destination, OutputOptions, FileLayout
//! SpillArgs -------------------> shares of --memory
//! StoreArgs -------------------> options of remote stores
//! ReportingArgs                  used as they are
//! ```

mod input;
mod layout;
mod output;
mod policy;
mod reporting;
mod spill;
mod values;

pub(crate) use self::input::{InputArgs, StoreArgs, WorkArgs};
pub(crate) use self::layout::{FileLayout, Partitioning, SortArgs};
pub(crate) use self::output::{OutputArgs, ReplaceArgs, is_device_or_pipe};
pub(crate) use self::policy::{
    EquivalenceArgs, KeyArgs, PROTOCOL, PolicyArgs, RecipeArgs, name_of_key, parse_charset, parse_key, parse_profile,
};
pub(crate) use self::reporting::{ReportFormat, ReportingArgs, ShowProgress};
pub(crate) use self::spill::SpillArgs;
pub(crate) use self::values::{Choices, parse_size};
