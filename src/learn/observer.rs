//! Takes events sorted by host and URL, and makes those decisions about redirects that need no other URL:
//! [`RedirectObserver`]. The rest is left to [`super::resolution`].
//!
//! ```text
//! events of URLs, those of a host and of a URL together
//!     --end_edge--> refused as self, weak, other site or ambiguous --------------------> counts, votes against patterns
//!     |             the only candidate of its URL: an accepted edge, unless it loops --> edges
//!     --end_url---> numbers of URLs, their keys, whether they responded, are sinks -----> keys, targets, contents, flags
//!     --end_host--> votes and responses of a host -----------------------------------> groups
//! ```
//!
//! Memory: one byte per URL that redirects or is the target of a redirect, and five more in [`super::resolution`].

use super::learned::LearnCounts;
use super::patterns::{HostVotes, OriginResponses, count_against, write_responses, write_votes};
use super::redirect::{LearnLimits, RecordPlace, RedirectCode, RedirectEvidence, RedirectVerdict, TargetSource};
use super::redirect_rows::{ContentRow, EdgeRow, KeyOf, KeyRow, NumberedUrl};
use super::sorter::{RecordFields, SortRecords, SorterFactory};
use super::spelling::{PathEnding, Spelling};
use crate::iri::Parts;
use crate::key::psl::HostParts;
use crate::key::{KeyAlgorithm, KeyBytes};

/// Bytes of memory per numbered URL: its flags, and in [`RedirectObserver::finish`] the next URL and a state while loops are
/// searched.
#[cfg(feature = "pipeline")]
pub(crate) const NUMBERED_URL_LEN: usize = 6;

/// Maximum number of different contents of a URL that are compared with those of other URLs.
const MAX_CONTENTS: usize = 8;

/// What is known of a numbered URL.
pub(super) mod flag {
    /// It responded with a success status.
    pub(crate) const SERVED: u8 = 1;
    /// Too many URLs redirect to it.
    pub(crate) const SINK: u8 = 2;
    /// An accepted edge or a pattern leads to it.
    pub(crate) const TARGET: u8 = 4;
    /// A pattern leads from it to another URL.
    pub(crate) const PATTERN: u8 = 8;
    /// Its redirect leads to another spelling of it.
    pub(crate) const SPELLING: u8 = 16;
    /// Rules about content make it of captured URLs.
    pub(crate) const FORM: u8 = 32;
    /// One of their contents is one of the URL where the redirects end.
    pub(crate) const AGREES: u8 = 64;
    /// None is, and this is the first redirect that is not a change of spelling.
    pub(crate) const CONTRADICTED: u8 = 128;
}

/// Sorters for what is known of redirects.
pub(super) struct RedirectRecords<S: SorterFactory> {
    /// Accepted edges: [`EdgeRow`].
    pub(super) edges: S::Sorter,
    /// Targets: [`NumberedUrl`].
    pub(super) targets: S::Sorter,
    /// Keys of URLs, of targets, and of forms: [`KeyRow`].
    pub(super) keys: S::Sorter,
    /// Contents of URLs: [`ContentRow`].
    pub(super) contents: S::Sorter,
    /// By group of hosts: votes and responses, then ends.
    pub(super) groups: S::Sorter,
}

/// Decides about redirects URL by URL.
///
/// Events come in an order in which those of one host, and of one URL, follow each other; of a URL, responses come first,
/// then its redirects by target, then the redirects to it by source.
pub(crate) struct RedirectObserver<S: SorterFactory> {
    pub(super) limits: LearnLimits,
    pub(super) algorithm: KeyAlgorithm,
    pub(super) records: RedirectRecords<S>,
    /// Flags of each numbered URL.
    pub(super) flags: Vec<u8>,
    pub(super) counts: LearnCounts,
    host: HostState,
    url: UrlState,
    record: Vec<u8>,
}

/// What is known of the current host.
#[derive(Debug, Default)]
struct HostState {
    authority: Vec<u8>,
    /// Those of http and those of https.
    responses: [OriginResponses; 2],
    votes: HostVotes,
    has_redirects: bool,
}

/// What is known of the current URL.
#[derive(Debug, Default)]
struct UrlState {
    uri: Vec<u8>,
    /// Whether the scheme is https, and the ending of the path.
    spelling: Option<(bool, PathEnding)>,
    is_served: bool,
    /// Hashes of contents.
    contents: Vec<u64>,
    /// The weakest status that the URL responded with where the record states no target.
    status: Option<RedirectCode>,
    edge: Option<Edge>,
    /// The first edge with the strongest code that no check has refused, and the number of those.
    candidate: Option<(Edge, u64)>,
    is_source: bool,
    last_source: Option<TargetSource>,
    /// Different URLs that redirect here and count for the limit of sinks.
    sources: u64,
}

/// A distinct redirect.
#[derive(Debug)]
struct Edge {
    to: Vec<u8>,
    evidence: RedirectEvidence,
}

impl<S: SorterFactory> RedirectObserver<S> {
    pub(crate) fn new(sorters: &S, limits: &LearnLimits, algorithm: KeyAlgorithm) -> RedirectObserver<S> {
        let [edges, targets, keys, contents, groups] = std::array::from_fn(|_| sorters.sorter());
        RedirectObserver {
            limits: limits.clone(),
            algorithm,
            records: RedirectRecords { edges, targets, keys, contents, groups },
            flags: Vec::new(),
            counts: LearnCounts::default(),
            host: HostState::default(),
            url: UrlState::default(),
            record: Vec::new(),
        }
    }

    /// Counts records that state a redirect and cannot be used: those of another status, and those with a fault.
    pub(crate) fn add_unused(&mut self, other_status: u64, unparsable: u64) {
        self.counts.records[RedirectVerdict::OtherStatus as usize] += other_status;
        self.counts.records[RedirectVerdict::Unparsable as usize] += unparsable;
    }

    /// Returns the number of URLs that redirect or are targets, so far.
    #[cfg(feature = "pipeline")]
    pub(crate) fn numbered_urls(&self) -> usize {
        self.flags.len()
    }

    /// Counts a URL that responded with a success status, if there are no redirects.
    #[cfg(feature = "pipeline")]
    pub(crate) fn count_served(&mut self) {
        self.counts.served += 1;
    }

    /// A record states that the URL responded with a success status.
    pub(crate) fn served(&mut self, uri: &[u8]) -> Result<(), S::Error> {
        self.begin(uri)?;
        if let (false, Some((is_https, ending))) = (self.url.is_served, self.url.spelling) {
            self.counts.served += 1;
            self.host.responses[usize::from(is_https)].add(ending, uri);
        }
        self.url.is_served = true;
        Ok(())
    }

    /// A capture of the URL has this content. The contents of a URL come in order.
    pub(crate) fn content(&mut self, uri: &[u8], content: u64) -> Result<(), S::Error> {
        self.begin(uri)?;
        let contents = &mut self.url.contents;
        if contents.len() < MAX_CONTENTS && contents.last() != Some(&content) {
            contents.push(content);
        }
        Ok(())
    }

    /// Rules about content make the URL with this key of a captured URL that has this content. May be called at any time.
    pub(crate) fn form(&mut self, key: KeyBytes, content: u64) -> Result<(), S::Error> {
        self.record.clear();
        KeyRow { key, of: KeyOf::Form, number: 0 }.write(&mut self.record);
        self.record.put_u64(content);
        self.records.keys.push(&self.record)
    }

    /// A record states the status of a redirect of the URL and no target.
    pub(crate) fn status(&mut self, uri: &[u8], code: RedirectCode) -> Result<(), S::Error> {
        self.begin(uri)?;
        self.url.status = self.url.status.max(Some(code));
        Ok(())
    }

    /// A record states that the URL redirected.
    pub(crate) fn redirect(
        &mut self,
        uri: &[u8],
        to: &[u8],
        code: RedirectCode,
        place: RecordPlace,
    ) -> Result<(), S::Error> {
        self.begin(uri)?;
        self.url.is_source = true;
        if self.url.edge.as_ref().is_none_or(|edge| edge.to != to) {
            self.end_edge();
            let evidence = RedirectEvidence { records: 0, code, first: place };
            self.url.edge = Some(Edge { to: to.to_vec(), evidence });
        }
        if let Some(Edge { evidence, .. }) = &mut self.url.edge {
            evidence.records += 1;
            evidence.code = evidence.code.min(code);
            evidence.first = evidence.first.min(place);
        }
        Ok(())
    }

    /// A record states that another URL redirected here.
    pub(crate) fn target(&mut self, uri: &[u8], source: TargetSource) -> Result<(), S::Error> {
        self.begin(uri)?;
        if self.url.last_source.replace(source) != Some(source) {
            self.url.sources += u64::from(source.is_counted);
        }
        Ok(())
    }

    /// Ends the current URL if it is not `uri`.
    fn begin(&mut self, uri: &[u8]) -> Result<(), S::Error> {
        if self.url.uri == uri {
            return Ok(());
        }
        self.end_url()?;
        let spelling = Spelling::of(uri);
        let authority = spelling.map_or(&b""[..], |spelling| spelling.authority);
        if authority != self.host.authority {
            self.end_host()?;
            self.host.authority.extend_from_slice(authority);
        }
        let mut text = std::mem::take(&mut self.url.uri);
        text.clear();
        text.extend_from_slice(uri);
        let spelling = spelling.map(|spelling| (spelling.is_https, spelling.ending()));
        self.url = UrlState { uri: text, spelling, ..UrlState::default() };
        Ok(())
    }

    /// Ends the last URL and host.
    pub(super) fn end(&mut self) -> Result<(), S::Error> {
        self.end_url()?;
        self.end_host()
    }

    fn end_url(&mut self) -> Result<(), S::Error> {
        self.end_edge();
        let UrlState { uri, is_served, contents, candidate, is_source, last_source, sources, .. } =
            std::mem::take(&mut self.url);
        if !is_source && last_source.is_none() {
            self.url.uri = uri;
            return Ok(());
        }
        self.host.has_redirects = true;
        let edge = candidate.and_then(|(edge, count)| (count == 1).then_some(edge));
        let flags = [
            (is_served, flag::SERVED),
            (sources > self.limits.max_sources, flag::SINK),
            (edge.as_ref().is_some_and(|edge| is_spelling(&uri, &edge.to)), flag::SPELLING),
        ];
        let number = self.flags.len() as u32;
        self.flags.push(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        self.push_key(&uri, KeyOf::Url, number)?;
        let RedirectObserver { record, records, .. } = self;
        for content in contents {
            record.clear();
            ContentRow { number, content, sought_for: None }.write(record);
            records.contents.push(record)?;
        }
        if last_source.is_some() {
            record.clear();
            NumberedUrl { number, uri: &uri }.write(record);
            records.targets.push(record)?;
        }
        if let Some(Edge { to, evidence }) = edge {
            record.clear();
            EdgeRow { number, evidence, from: &uri, to: &to }.write(record);
            records.edges.push(record)?;
            self.push_key(&to, KeyOf::Target, number)?;
        }
        Ok(())
    }

    fn push_key(&mut self, uri: &[u8], of: KeyOf, number: u32) -> Result<(), S::Error> {
        self.record.clear();
        KeyRow { key: self.algorithm.key(uri), of, number }.write(&mut self.record);
        self.records.keys.push(&self.record)
    }

    /// Decides about the current edge.
    fn end_edge(&mut self) {
        let Some(mut edge) = self.url.edge.take() else { return };
        if edge.evidence.code == RedirectCode::Unknown {
            // One record states the target; another record of the same URL may state the status.
            edge.evidence.code = self.url.status.unwrap_or(RedirectCode::Unknown);
        }
        let (from, code) = (&self.url.uri, edge.evidence.code);
        match () {
            () if *from == edge.to => self.refuse(&edge, RedirectVerdict::SelfRedirect),
            () if code != RedirectCode::Permanent && !self.limits.weak => self.refuse(&edge, RedirectVerdict::Weak),
            () if self.limits.same_site && !is_spelling(from, &edge.to) && !is_one_site(from, &edge.to) => {
                self.refuse(&edge, RedirectVerdict::OtherSite);
            }
            () => self.add_candidate(edge),
        }
    }

    /// Adds an edge that no check has refused. Only the single edge with the strongest code of a URL is accepted.
    fn add_candidate(&mut self, edge: Edge) {
        match self.url.candidate.take() {
            Some((best, count)) if best.evidence.code <= edge.evidence.code => {
                self.refuse(&edge, RedirectVerdict::Ambiguous);
                let is_equal = best.evidence.code == edge.evidence.code;
                if is_equal && count == 1 {
                    self.refuse(&best, RedirectVerdict::Ambiguous);
                }
                self.url.candidate = Some((best, count + u64::from(is_equal)));
            }
            weaker => {
                if let Some((weaker, 1)) = weaker {
                    self.refuse(&weaker, RedirectVerdict::Ambiguous);
                }
                self.url.candidate = Some((edge, 1));
            }
        }
    }

    /// Counts an edge that is not accepted.
    fn refuse(&mut self, edge: &Edge, verdict: RedirectVerdict) {
        self.counts.records[verdict as usize] += edge.evidence.records;
        self.counts.redirects[verdict as usize] += 1;
        if matches!(verdict, RedirectVerdict::Ambiguous | RedirectVerdict::OtherSite) {
            count_against(&mut self.host.votes, &self.url.uri);
        }
    }

    fn end_host(&mut self) -> Result<(), S::Error> {
        let HostState { mut authority, responses, votes, has_redirects } = std::mem::take(&mut self.host);
        if has_redirects {
            let RedirectObserver { record, records, .. } = self;
            write_votes(&votes, record, &mut records.groups)?;
            write_responses(&authority, &responses, record, &mut records.groups)?;
        }
        authority.clear();
        self.host.authority = authority;
        Ok(())
    }
}

/// Returns whether two URLs differ only in scheme, `www.` or final slash.
fn is_spelling(from: &[u8], to: &[u8]) -> bool {
    Spelling::of(from).zip(Spelling::of(to)).is_some_and(|(from, to)| from.change_to(&to).is_some())
}

fn is_one_site(from: &[u8], to: &[u8]) -> bool {
    let [from, to] = [from, to].map(|uri| {
        let host = Parts::split(uri).host(uri).unwrap_or_default();
        HostParts::of(host).private_domain.unwrap_or(host)
    });
    from == to
}
