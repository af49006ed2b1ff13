//! State of the process as a whole: exit statuses, temporary files that must not outlive it, files that get their name when
//! they are on disk, locks of directories, a thread that syncs a file in the background, and text for its terminal.
//!
//! ```text
//! output file --register--> table of temporary paths --unlink--> SIGINT, SIGTERM, SIGHUP: then die by the signal
//!                                                    --unlink--> SIGBUS in a mapped input: then exit status 4
//! ```
//!
//! Every file that must survive a crash is a `PendingFile`: written under a temporary name, synced, renamed, and its
//! directory synced. The library never installs handlers of termination signals by itself: the command calls
//! `remove_temporary_files_on_signals` once when it starts.

mod allocator;
#[cfg(feature = "pipeline")]
mod background_sync;
#[cfg(feature = "pipeline")]
mod directory_lock;
pub(crate) mod exit;
#[cfg(feature = "pipeline")]
mod pending_file;
mod temporary;
mod visible;

#[doc(hidden)]
pub use allocator::CheckedAllocator;
#[cfg(feature = "pipeline")]
pub(crate) use background_sync::BackgroundSync;
#[cfg(feature = "pipeline")]
pub(crate) use directory_lock::DirectoryLock;
#[cfg(feature = "pipeline")]
pub(crate) use pending_file::{
    CommitError, Existing, PendingFile, commit_all, create_directory, parent, sync_directory,
};
#[cfg(feature = "remote")]
pub(crate) use temporary::before_termination;
#[cfg(unix)]
pub(crate) use temporary::terminate;
pub(crate) use temporary::{TemporaryFileGuard, remove_temporary_files_on_signals};
pub(crate) use visible::{is_hidden, plain_error, visible, visible_lines};
