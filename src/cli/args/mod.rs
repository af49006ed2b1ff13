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

pub(crate) mod input;
pub(crate) mod layout;
pub(crate) mod output;
pub(crate) mod policy;
pub(crate) mod reporting;
pub(crate) mod spill;
pub(crate) mod store;
pub(crate) mod values;
