//! Syncs a file to disk in the background while it is written, so that the end of a run does not wait for all of it at
//! once. For 5 million rows that wait was a fifth of the run.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// A thread that syncs a file on request.
#[derive(Debug)]
pub(crate) struct BackgroundSync {
    requests: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl BackgroundSync {
    /// Starts a thread for `file`.
    ///
    /// # Errors
    /// The file handle cannot be duplicated, or the thread cannot be started.
    pub(crate) fn start(file: &File) -> io::Result<BackgroundSync> {
        let file = file.try_clone()?;
        let (requests, received) = sync_channel(1);
        let work = move || received.iter().try_for_each(|()| file.sync_data());
        let thread = thread::Builder::new().name("irikey-sync".to_string()).spawn(work)?;
        Ok(BackgroundSync { requests, thread })
    }

    /// Requests a sync of all bytes written so far. Never waits: a pending request covers this one.
    pub(crate) fn request(&self) {
        let _ = self.requests.try_send(());
    }

    /// Stops the thread.
    ///
    /// # Errors
    /// The first error of a sync. The system reports an error once, so the next sync would succeed.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.requests);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that syncs the file panicked")))
    }
}
