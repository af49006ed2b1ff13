//! The runtime on which requests run, and the stores that are open: [`RemoteClient`].

use parking_lot::Mutex;
use std::collections::HashMap;
use std::future::Future;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;
use std::{fs, io, thread};

use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use super::Transfer;
use super::credentials;
use super::error::RemoteError;
use super::service::Connector;
use super::store::{RemoteStore, StorePurpose};
use super::url::{RemoteScheme, RemoteUrl};

/// Threads of the runtime: they decrypt and copy bytes.
const RUNTIME_THREADS: usize = 2;

/// The stores of this process.
pub(super) struct RemoteClient {
    runtime: Runtime,
    connector: Connector,
    stores: Mutex<HashMap<(RemoteScheme, String, StorePurpose), RemoteStore>>,
}

/// The client of a process, or why it has none.
type ClientOfProcess = &'static Result<RemoteClient, RemoteError>;

/// The number of the process and its client. A process that was forked begins with the client of its parent, whose threads it does
/// not have.
static CLIENT: Mutex<Option<(u32, ClientOfProcess)>> = Mutex::new(None);

/// What was requested and transferred; `None` if nothing was.
pub(crate) fn transfer() -> Option<Transfer> {
    let (_, client) = (*CLIENT.lock())?;
    client.as_ref().ok().map(|client| client.connector.transfer())
}

/// The client of this process. The first use starts its threads.
pub(super) fn client() -> Result<&'static RemoteClient, RemoteError> {
    let (mut client, process) = (CLIENT.lock(), std::process::id());
    let (_, client) = match *client {
        Some(known) if known.0 == process => known,
        // It is never removed, and so needs no owner.
        _ => *client.insert((process, Box::leak(Box::new(RemoteClient::new())))),
    };
    client.as_ref().map_err(Clone::clone)
}

/// Starts as many threads as the runtime has, and ends them: tokio panics if it cannot start one, or waits forever for those that
/// it has started.
///
/// # Errors
/// A thread cannot be started.
fn check_threads() -> io::Result<()> {
    const MAX_WAITS: usize = 100;
    // Other systems than Linux have no such directory, and there is nothing to wait for.
    let count = || fs::read_dir("/proc/self/task").ok().map(Iterator::count);
    let before = count();
    let is_checked = Mutex::new(());
    thread::scope(|scope| {
        // All threads exist at the same time.
        let _checking = is_checked.lock();
        let start = |_| thread::Builder::new().spawn_scoped(scope, || drop(is_checked.lock())).map(drop);
        (0..RUNTIME_THREADS).try_for_each(start)
    })?;
    // The kernel counts a thread for a moment after its end.
    for _ in (0..MAX_WAITS).take_while(|_| count() > before) {
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

impl RemoteClient {
    fn new() -> Result<RemoteClient, RemoteError> {
        // An error means that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(RUNTIME_THREADS).thread_name("remote").enable_all();
        let runtime = check_threads().and_then(|()| builder.build()).map_err(|error| {
            RemoteError::new(format!("cannot start the threads of the network: {error}"), "use fewer with --threads")
        })?;
        Ok(RemoteClient { runtime, connector: Connector::default(), stores: Mutex::default() })
    }

    pub(super) fn store(&self, url: &RemoteUrl, purpose: StorePurpose) -> Result<RemoteStore, RemoteError> {
        if url.scheme == RemoteScheme::Http {
            return self.open(url, purpose);
        }
        let place = (url.scheme, url.bucket.clone(), purpose);
        let mut stores = self.stores.lock();
        if let Some(store) = stores.get(&place) {
            return Ok(store.clone());
        }
        let store = self.open(url, purpose)?;
        stores.insert(place, store.clone());
        Ok(store)
    }

    fn open(&self, url: &RemoteUrl, purpose: StorePurpose) -> Result<RemoteStore, RemoteError> {
        // Building a store may start timers of the runtime.
        let _entered = self.runtime.enter();
        credentials::open(url, purpose, &self.connector)
    }

    /// Starts `future` and waits for its result.
    pub(super) fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        self.start(future).wait()
    }

    /// Starts `future`.
    pub(super) fn start<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Running<T> {
        let (sender, result) = sync_channel(1);
        let task = self.spawn(async move {
            // The receiver may be gone.
            let _ = sender.send(future.await);
        });
        Running { result, task }
    }

    /// Starts `future`, which has no result.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.runtime.spawn(future).abort_handle()
    }
}

/// Work of the runtime that has a result. Dropping it stops the work.
#[derive(Debug)]
pub(super) struct Running<T> {
    result: Receiver<T>,
    task: AbortHandle,
}

impl<T> Running<T> {
    /// Waits for the result; `None` if the work panicked.
    pub(super) fn wait(self) -> Option<T> {
        self.result.recv().ok()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
