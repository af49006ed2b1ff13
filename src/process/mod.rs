//! State of the process as a whole: exit statuses, temporary files that must not outlive it, and a thread that syncs a
//! file in the background.
//!
//! ```text
//! output file --register--> table of temporary paths --unlink--> SIGINT, SIGTERM, SIGHUP: then die by the signal
//!                                                    --unlink--> SIGBUS in a mapped input: then exit status 4
//! ```
//!
//! Writers of files register their temporary paths here. The library never installs handlers of termination signals by
//! itself: the command calls [`remove_temporary_files_on_signals`] once when it starts.

#[cfg(feature = "pipeline")]
mod background_sync;
pub mod exit;
mod temporary;

#[cfg(feature = "pipeline")]
pub(crate) use background_sync::BackgroundSync;
#[cfg(unix)]
pub(crate) use temporary::terminate;
pub use temporary::{TemporaryFileGuard, remove_temporary_files_on_signals};
