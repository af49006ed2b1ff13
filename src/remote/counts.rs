//! Counts of requests and bytes: [`Transfer`].

/// What was requested of stores and servers, and what they sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Requests, repetitions included.
    pub(crate) requests: u64,
    /// Requests that failed in a way after which they are repeated.
    pub(crate) failed_requests: u64,
    /// Bytes that were received, without headers.
    pub(crate) received: u64,
}
