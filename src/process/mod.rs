//! The process and its files: exit codes, signals, limits and memory of the process, its standard handles, its pipes and its
//! terminal; temporary and pending files, locks of directories, reads and writes at positions, and syncs in the background; and
//! how users write sizes.
//!
//! ```text
//! output file --register--> table of temporary paths --unlink--> SIGINT, SIGTERM, SIGHUP: then die by the signal
//!                                                    --unlink--> SIGBUS in a mapped input: then exit code 4
//! ```
//!
//! Every file that must survive a crash is a `PendingFile`: written under a temporary name, synced, renamed, and its
//! directory synced. The library never installs handlers of termination signals by itself: the command calls
//! `remove_temporary_files_on_signals` once when it starts.

mod allocator;
mod background_sync;
mod directory_lock;
pub(crate) mod exit;
mod handle;
#[cfg(feature = "cli")]
mod open_files;
pub(crate) mod part_names;
mod pending_file;
mod pipe;
mod positioned;
mod remedy;
mod replaceable;
mod size;
mod standard_handles;
mod temporary;
mod temporary_directory;
mod visible;

#[cfg(unix)]
pub(crate) use allocator::end_without_memory;
#[doc(hidden)]
pub use allocator::{CheckedAllocator, use_huge_pages};
pub(crate) use allocator::{page_len, release_free_memory, try_reserve_exact};
pub(crate) use background_sync::BackgroundSync;
pub(crate) use directory_lock::{DirectoryLock, lock_directory_of};
pub(crate) use handle::{HandleName, links};
#[cfg(feature = "cli")]
pub(crate) use open_files::raise_open_file_limit;
pub(crate) use pending_file::{
    CommitError, Existing, NewDirectories, PendingFile, commit_all, file_names, parent, sync_directory,
};
pub(crate) use pipe::enlarge_pipe;
pub(crate) use positioned::{read_at, read_exact_at, repeat_interrupted, write_all_at};
pub(crate) use remedy::{error_and_remedy, remedy};
pub(crate) use replaceable::obstacle;
pub(crate) use size::parse_size;
#[doc(hidden)]
pub use standard_handles::reserve_standard_handles;
pub(crate) use standard_handles::{check_stdin, check_stdout};
#[cfg(feature = "remote")]
pub(crate) use temporary::before_termination;
#[cfg(unix)]
pub(crate) use temporary::terminate;
pub(crate) use temporary::{
    TemporaryFileGuard, remove_temporary_files_on_signals, wait_if_terminating, without_termination,
};
pub(crate) use temporary_directory::TemporaryDirectory;
pub(crate) use visible::{is_hidden, path_name, plain_error, visible, visible_lines};
