//! Requests that fail, and when they are repeated: [`FetchError`], [`Repetition`], [`requested_pause`].

use std::time::{Duration, Instant};

use object_store::client::HttpResponse;

use super::error::RemoteError;
use super::failure::{Failure, SHORT_RESPONSE};
use super::options::{retry_pause, retry_timeout};
use super::store::RemoteStore;

/// The longest pause between repetitions of a request.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The longest pause that a server may request.
const MAX_REQUESTED_PAUSE: Duration = Duration::from_secs(60);

/// A server that sends fewer bytes per second is treated like one that sends nothing.
const MIN_RATE: f64 = 1024.0;

/// Why a request returned less than what was requested.
#[derive(Debug)]
pub(super) enum FetchError {
    /// A repetition would fail as well.
    Final(RemoteError),
    /// A repetition may succeed.
    Transient(Failure),
}

impl FetchError {
    pub(super) fn of(error: &object_store::Error, store: &RemoteStore) -> FetchError {
        let failure = Failure::of(error);
        if failure.is_transient() { FetchError::Transient(failure) } else { FetchError::Final(failure.error(store)) }
    }
}

impl From<RemoteError> for FetchError {
    fn from(error: RemoteError) -> FetchError {
        FetchError::Final(error)
    }
}

/// The failure of a task that ended without a result.
pub(super) fn lost_task() -> Failure {
    Failure::of(&object_store::Error::Generic { store: "remote", source: SHORT_RESPONSE.into() })
}

/// Repetitions of a request, until [`retry_timeout`].
pub(super) struct Repetition {
    started: Instant,
    /// Bytes that arrived since then.
    received: usize,
    pause: Duration,
}

impl Repetition {
    pub(super) fn new() -> Repetition {
        Repetition { started: Instant::now(), received: 0, pause: retry_pause() }
    }

    /// Counts bytes that arrived before a request failed. The time for repetitions begins again, unless they are too few.
    pub(super) fn advance(&mut self, count: usize) {
        self.received += count;
        if count > 0 && self.received as f64 >= self.started.elapsed().as_secs_f64() * MIN_RATE {
            *self = Repetition::new();
        }
    }

    /// Waits before the next request.
    ///
    /// # Errors
    /// The time for repetitions is over: the result of `error`.
    pub(super) async fn pause(&mut self, error: impl FnOnce() -> RemoteError) -> Result<(), RemoteError> {
        if self.started.elapsed() + self.pause > retry_timeout() {
            return Err(error());
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Ok(())
    }
}

/// How long a server that is busy asks to wait before the next request: `Retry-After` in seconds (RFC 9110 section 10.2.3). Dates
/// are ignored. The pause is at most [`MAX_REQUESTED_PAUSE`], and at most [`retry_timeout`].
pub(super) fn requested_pause(response: &HttpResponse) -> Duration {
    let seconds = || response.headers().get("retry-after")?.to_str().ok()?.trim().parse().ok();
    Duration::from_secs(seconds().unwrap_or(0)).min(MAX_REQUESTED_PAUSE).min(retry_timeout())
}
