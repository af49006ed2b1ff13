//! Requests and their responses: two neighboring records of the same URL, of which one names the other in
//! `WARC-Concurrent-To`.

use super::headers::WarcHeader;
use super::request::RequestQuery;

/// The identifiers by which records refer to each other.
#[derive(Debug, Default)]
pub(super) struct RecordIds {
    id: Vec<u8>,
    /// With spaces between them.
    concurrent_to: Vec<u8>,
}

impl RecordIds {
    pub(super) fn of(header: &WarcHeader<'_>) -> RecordIds {
        RecordIds { id: header.id.to_vec(), concurrent_to: header.concurrent_to.to_vec() }
    }

    /// Whether the next record has the identifiers of a record of the same exchange: one of them names the other, or
    /// neither has any identifiers.
    pub(super) fn match_next(&self, next: &RecordIds) -> bool {
        let name = |words: &[u8], id: &[u8]| !id.is_empty() && words.split(|&byte| byte == b' ').any(|word| word == id);
        let is_named = name(&self.concurrent_to, &next.id) || name(&next.concurrent_to, &self.id);
        is_named || [self, next].iter().all(|ids| ids.id.is_empty() && ids.concurrent_to.is_empty())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(id: &str, concurrent_to: &str) -> RecordIds {
        RecordIds { id: id.into(), concurrent_to: concurrent_to.into() }
    }

    #[test]
    fn records_of_one_exchange_name_each_other() {
        for (first, next) in [
            (ids("a", ""), ids("b", "a")),
            (ids("a", ""), ids("b", "x a y")),
            (ids("a", "b"), ids("b", "")),
            (ids("a", "x b"), ids("b", "x")),
            (ids("", ""), ids("", "")),
        ] {
            assert!(first.match_next(&next), "{first:?} {next:?}");
        }
        for (first, next) in [
            (ids("a", ""), ids("b", "")),
            (ids("a", ""), ids("b", "aa")),
            (ids("a", "bb"), ids("b", "c")),
            (ids("a", ""), ids("", "x")),
            (ids("", ""), ids("b", "")),
            (ids("a", ""), ids("", "")),
        ] {
            assert!(!first.match_next(&next), "{first:?} {next:?}");
        }
    }

    #[test]
    fn a_response_has_the_url_of_its_request() {
        let query = || RequestQuery { method: b"POST".to_vec(), body: b"a=1".to_vec() };
        let answered = |url: &str, ids_of: RecordIds| {
            PendingRequest { url: b"http://a/".to_vec(), ids: ids("a", ""), query: query() }
                .answered_by(url.as_bytes(), &ids_of)
                .map(|query| (query.method, query.body))
        };
        assert_eq!(answered("http://a/", ids("b", "a")), Some((b"POST".to_vec(), b"a=1".to_vec())));
        assert_eq!(answered("http://b/", ids("b", "a")), None);
        assert_eq!(answered("http://a/", ids("b", "c")), None);
    }
}
