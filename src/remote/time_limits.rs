//! How long a request may wait for its server: [`TimeLimits`].
//!
//! The HTTP client has no limits of its own: they would also count the time in which the body is not read because the output is
//! slow.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody};
use object_store::client::{HttpError, HttpErrorKind, HttpResponseBody};
use tokio::time::timeout;

use super::options::duration;

/// Time without a byte after which a request is repeated.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which a request is repeated, also if bytes arrive.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How much longer a request may wait for its server. Only the time in [`TimeLimits::wait`] counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeLimits {
    /// Without a byte.
    read: Duration,
    /// Until the last byte.
    total: Duration,
}

impl TimeLimits {
    /// The limits of one request, by the options of the user.
    pub(super) fn of_options() -> TimeLimits {
        TimeLimits {
            read: duration("read_timeout").unwrap_or(READ_TIMEOUT),
            total: duration("timeout").unwrap_or(TIMEOUT),
        }
    }

    /// Waits for `next`.
    ///
    /// # Errors
    /// A limit is over.
    pub(super) async fn wait<T>(&mut self, next: impl Future<Output = T>) -> Result<T, HttpError> {
        let started = Instant::now();
        let waited = timeout(self.read.min(self.total), next).await;
        self.total = self.total.saturating_sub(started.elapsed());
        waited.map_err(|_| HttpError::new(HttpErrorKind::Timeout, io::Error::from(io::ErrorKind::TimedOut)))
    }

    /// The body, within the limits.
    pub(super) fn limit(self, body: HttpResponseBody) -> HttpResponseBody {
        let frames = stream::unfold((self, body), |(mut limits, mut body)| async move {
            let frame = limits.wait(body.frame()).await.unwrap_or_else(|error| Some(Err(error)));
            frame.map(|frame| (frame, (limits, body)))
        });
        // The end of a body may be asked for again.
        HttpResponseBody::new(StreamBody::new(frames.fuse()))
    }
}
