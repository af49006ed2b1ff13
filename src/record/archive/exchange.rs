//! Requests and their responses: two neighboring records of the same URL, of which one names the other in
//! `WARC-Concurrent-To`.

use super::heads::WarcHead;
use super::request::RequestQuery;

/// The identifiers by which records refer to each other.
#[derive(Debug, Default)]
pub(super) struct RecordIds {
    id: Vec<u8>,
    /// With spaces between them.
    concurrent_to: Vec<u8>,
}

impl RecordIds {
    pub(super) fn of(head: &WarcHead<'_>) -> RecordIds {
        RecordIds { id: head.id.to_vec(), concurrent_to: head.concurrent_to.to_vec() }
    }

    /// Whether the next record has the identifiers of a record of the same exchange: one of them names the other, or
    /// neither has any identifiers.
    pub(super) fn match_next(&self, next: &RecordIds) -> bool {
        let names = |words: &[u8], id: &[u8]| words.split(|&byte| byte == b' ').any(|word| word == id);
        let is_named = !self.concurrent_to.is_empty() && names(&self.concurrent_to, &next.id);
        names(&next.concurrent_to, &self.id) || is_named
    }
}

/// A request whose response, if there is one, is the next record.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) url: Vec<u8>,
    pub(super) ids: RecordIds,
    pub(super) query: RequestQuery,
}

impl PendingRequest {
    /// The query, if the next record is the response.
    pub(super) fn answered_by(self, url: &[u8], ids: &RecordIds) -> Option<RequestQuery> {
        (self.url == url && self.ids.match_next(ids)).then_some(self.query)
    }
}
