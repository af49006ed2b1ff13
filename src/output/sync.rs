//! Makes a file durable while it is being written, so that the end of a run does not wait for all of it at once: for
//! 5 million rows that wait was a fifth of the run. In: the file, and a nudge now and then. Out: the first error.

use std::fs::File;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// A thread that waits for the disk in the writer's stead.
#[derive(Debug)]
pub(super) struct BackgroundSync {
    nudges: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl BackgroundSync {
    /// A syncer of `file`.
    pub(super) fn start(file: &File) -> io::Result<BackgroundSync> {
        let file = file.try_clone()?;
        let (nudges, nudged) = sync_channel(1);
        let work = move || nudged.iter().try_for_each(|()| file.sync_data());
        let thread = thread::Builder::new().name("irikey-sync".to_string()).spawn(work)?;
        Ok(BackgroundSync { nudges, thread })
    }

    /// What has been written by now is to be on the disk soon. Never waits: a nudge that is still unanswered does for
    /// this one too.
    pub(super) fn nudge(&self) {
        let _ = self.nudges.try_send(());
    }

    /// Ends the thread.
    ///
    /// # Errors
    /// The first that the disk gave. It is told here because the system tells it once, and the next sync would pass.
    pub(super) fn finish(self) -> io::Result<()> {
        drop(self.nudges);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that syncs the file panicked")))
    }
}
