//! Captures and redirects as records that are sorted by host and URL: [`CaptureSort`]. [`super::host_reader`] reads them.
//!
//! A record is stored as bytes that compare in this order: the labels of its host reversed, so that the hosts of a site follow
//! each other; its scheme and the rest of its URL; and a [`CaptureRecord`].

use super::super::RowGroup;
use super::capture_record::{CAPTURE, CaptureRecord, OTHER, REDIRECT};
use super::held_out::{DayCounts, SiteCount, day_of};
use super::parts_error::PartsError;
use crate::canon::{Rows, strip_sha1_prefix};
use crate::learn::content::{UrlParts, can_be_scope, origin_start};
use crate::learn::{RecordPlace, RedirectCode, TargetSource};
use crate::sort::{BytesBuffer, BytesRun};
use crate::spill::SpillError;
use data_encoding::{BASE32, HEXLOWER_PERMISSIVE};
use xxhash_rust::xxh3::xxh3_64;

/// Captures stored in fewer bytes are not evidence: they have hardly any content.
const MIN_CAPTURE_LEN: i64 = 128;

/// Shorter digests, in bytes, are not evidence.
const MIN_DIGEST_LEN: usize = 8;

/// Digests of empty content: MD5, SHA-1 and SHA-256, as hexadecimal and as Base32 texts without padding.
const EMPTY_DIGESTS: [&str; 5] = [
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ",
];

/// Why observations could not be collected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObserveError {
    /// The memory for the URLs of redirects exceeds the limit.
    #[error(
        "{urls} different URLs that redirect or are targets of redirects need more than {limit} bytes, half of the memory for data"
    )]
    TooLarge {
        limit: usize,
        /// Different URLs so far.
        urls: usize,
    },
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// What was learned of parts of the captures cannot be merged.
    #[error(transparent)]
    Parts(#[from] PartsError),
}

/// Sorts captures by host, URL and content.
#[derive(Debug)]
pub(crate) struct CaptureSort<'a> {
    /// Rank of the name of each source.
    ranks: &'a [u32],
    /// Contents are evidence for rules.
    has_contents: bool,
    /// Captures by day, if some are held out.
    pub(super) days: Option<DayCounts>,
}

/// What the records of a row group state.
#[derive(Debug, Default)]
pub(super) struct SortedCaptures {
    pub(super) run: BytesRun,
    /// Records that state a redirect.
    pub(super) redirects: u64,
    /// Records whose status is not that of the redirect that they state.
    pub(super) other_status: u64,
    /// Records that state a redirect whose URL or target has a fault.
    pub(super) unparsable: u64,
}

/// The days and sites of captures that are evidence.
#[derive(Debug, Default)]
struct EvidenceDays {
    days: Vec<u16>,
    sites: SiteCount,
}

impl CaptureSort<'_> {
    /// `held_out` is the share of captures that rules are not learned from; `None` if contents are not evidence.
    pub(super) fn new(ranks: &[u32], held_out: Option<f64>) -> CaptureSort<'_> {
        let days = held_out.is_some_and(|share| share > 0.0).then(DayCounts::default);
        CaptureSort { ranks, has_contents: held_out.is_some(), days }
    }

    /// Sorts what the records of a row group state.
    pub(super) fn sort(&self, group: &RowGroup<'_>) -> SortedCaptures {
        let (mut records, mut days, mut row) = (BytesBuffer::default(), EvidenceDays::default(), 0);
        let mut found =
            SortedCaptures { unparsable: group.rows.tally.unreadable_redirects, ..SortedCaptures::default() };
        for run in group.runs {
            for i in 0..run.rows {
                let source = self.ranks[run.source as usize];
                let place = RecordPlace { source, record: run.first_record + u64::from(i) };
                add_redirects(group.rows, row, place, &mut records, &mut found);
                self.add_capture(group.rows, row, &mut records, &mut days);
                row += 1;
            }
        }
        if let Some(counts) = &self.days {
            counts.add(&days.days, days.sites);
        }
        SortedCaptures { run: records.take_run(), ..found }
    }

    fn add_capture(&self, rows: &Rows, row: usize, records: &mut BytesBuffer, days: &mut EvidenceDays) {
        let Some(url) = UrlParts::of(rows.uri.get(row)) else { return };
        let has_content = self.has_contents && can_be_scope(url.authority());
        let content = if has_content { content_of(rows, row) } else { None };
        let response = response_of(rows, row) | if content.is_some() { HAS_CONTENT } else { 0 };
        if response == 0 {
            return;
        }
        let time = rows.carried.times.get(row).copied().flatten().map(whole_seconds);
        records.push_with(|record| {
            write_url(&url, record);
            CaptureRecord::Capture { content: content.unwrap_or(0), response, time }.write(record);
        });
        if content.is_some() && self.days.is_some() {
            days.days.push(day_of(time));
            days.sites.add_host(url.authority());
        }
    }
}

/// Returns a time in milliseconds without the part of a second. Archives may state it, and their indexes do not.
fn whole_seconds(time: i64) -> i64 {
    time.div_euclid(1000) * 1000
}

/// Adds the redirects that a record states: to the target, and from the URL that redirected to its URL.
fn add_redirects(rows: &Rows, row: usize, place: RecordPlace, records: &mut BytesBuffer, found: &mut SortedCaptures) {
    let carried = &rows.carried;
    let (uri, to, from) = (rows.uri.get(row), carried.redirects.get(row), carried.redirected_from.get(row));
    if uri.is_empty() {
        found.unparsable += u64::from(!to.is_empty()) + u64::from(!from.is_empty());
        return;
    }
    // The status of the redirect from another URL is in the record of that URL.
    for (from, to, status) in [(from, uri, None), (uri, to, carried.statuses[row])] {
        if from.is_empty() || to.is_empty() {
            continue;
        }
        match RedirectCode::of_record(status) {
            Some(code) => {
                found.redirects += 1;
                add_redirect(from, to, code, place, records);
            }
            None => found.other_status += 1,
        }
    }
}

/// Adds a redirect to the records of its source and of its target.
pub(super) fn add_redirect(from: &[u8], to: &[u8], code: RedirectCode, place: RecordPlace, records: &mut BytesBuffer) {
    records.push_with(|record| {
        write_any_url(from, record);
        CaptureRecord::Redirect { to, code, place }.write(record);
    });
    records.push_with(|record| {
        write_any_url(to, record);
        CaptureRecord::Target(TargetSource::new(from, to)).write(record);
    });
}

/// Adds the hash of the text of a document. Returns false if its digest is not evidence.
pub(super) fn write_text_hash(uri: &[u8], digest: &[u8], hash: u64, records: &mut BytesBuffer) -> bool {
    let Some((content, url)) = hash_of_stated(digest).zip(UrlParts::of(uri)) else { return false };
    records.push_with(|record| {
        write_url(&url, record);
        CaptureRecord::Text { content, hash }.write(record);
    });
    true
}

/// Adds the URL that a document names as the canonical one.
pub(super) fn write_canonical(uri: &[u8], canonical: &[u8], records: &mut BytesBuffer) {
    if let Some(url) = UrlParts::of(uri) {
        records.push_with(|record| {
            write_url(&url, record);
            CaptureRecord::Canonical(canonical).write(record);
        });
    }
}

/// The response of a URL, as bits: its content is evidence.
pub(super) const HAS_CONTENT: u8 = 1;

/// It responded with a success status.
pub(super) const IS_SERVED: u8 = 2;

/// It responded with the status of a permanent redirect without a target.
pub(super) const IS_PERMANENT: u8 = 4;

/// It responded with the status of a temporary redirect without a target.
pub(super) const IS_TEMPORARY: u8 = 8;

/// Returns what the record of a row without a target states about the response of its URL.
fn response_of(rows: &Rows, row: usize) -> u8 {
    let carried = &rows.carried;
    let Some(status) = carried.statuses[row].filter(|_| carried.redirects.get(row).is_empty()) else { return 0 };
    match RedirectCode::of(status) {
        Some(RedirectCode::Permanent) => IS_PERMANENT,
        Some(_) => IS_TEMPORARY,
        None if (200..300).contains(&status) => IS_SERVED,
        None => 0,
    }
}

/// Returns the hash of the digest of a capture, if that is evidence: status 200 (for revisits also 304 or none), not truncated,
/// stored in at least [`MIN_CAPTURE_LEN`] bytes unless it is a revisit.
fn content_of(rows: &Rows, row: usize) -> Option<u64> {
    let carried = &rows.carried;
    let is_revisit = carried.mimes.get(row) == b"warc/revisit";
    let is_success = match carried.statuses[row] {
        Some(200) => true,
        Some(304) | None => is_revisit,
        _ => false,
    };
    let is_tiny = !is_revisit && carried.capture_lengths[row].is_some_and(|len| len < MIN_CAPTURE_LEN);
    let is_cut = !carried.truncated.get(row).is_empty();
    let digest = match carried.digests.get(row) {
        // The digest that was computed for a record of an archive that states none.
        b"" => carried.payload_digests.get(row).strip_prefix(b"sha1:").unwrap_or_default(),
        digest => digest,
    };
    if is_success && !is_tiny && !is_cut { hash_of_evidence(digest) } else { None }
}

/// Returns the hash of a digest as a record of an archive states it, which is that of the digest in the rows of records. Rows
/// store digests without the prefix `sha1:`.
fn hash_of_stated(digest: &[u8]) -> Option<u64> {
    hash_of_evidence(strip_sha1_prefix(digest))
}

/// Returns the hash of a digest, unless it is shorter than [`MIN_DIGEST_LEN`] or the digest of an empty content.
fn hash_of_evidence(digest: &[u8]) -> Option<u64> {
    let name_len = memchr::memchr(b':', digest).map_or(0, |at| at + 1);
    let text = &digest[name_len..];
    let text = text.split(|&byte| byte == b'=').next().unwrap_or_default();
    let is_empty =
        digest.len() < MIN_DIGEST_LEN || EMPTY_DIGESTS.iter().any(|empty| empty.as_bytes().eq_ignore_ascii_case(text));
    (!is_empty).then(|| hash_of_digest(digest))
}

/// Returns the hash of a digest. SHA-1 digests have the same hash as hexadecimal and as Base32 texts.
fn hash_of_digest(digest: &[u8]) -> u64 {
    const SHA1_HEX_LEN: usize = 40;
    if digest.len() != SHA1_HEX_LEN {
        return xxh3_64(digest);
    }
    HEXLOWER_PERMISSIVE
        .decode(digest)
        .map_or_else(|_| xxh3_64(digest), |bytes| xxh3_64(BASE32.encode(&bytes).as_bytes()))
}

/// Separates the labels of a host. No URI contains it, and it is less than all characters of hosts.
const LABEL_END: u8 = 1;

/// Separates host and URL.
const HOST_END: u8 = 0;

/// The host of URLs whose scheme is neither http nor https, and the mark of their schemes. No host contains it.
const NO_HOST: u8 = 0xff;

/// Appends an http or https URL as bytes that compare by host first.
fn write_url(url: &UrlParts<'_>, out: &mut Vec<u8>) {
    for (i, label) in url.authority().rsplit(|byte| *byte == b'.').enumerate() {
        out.extend_from_slice(if i > 0 { &[LABEL_END] } else { b"" });
        out.extend_from_slice(label);
    }
    out.extend_from_slice(&[HOST_END, b'0' + u8::from(url.is_https())]);
    url.write_rest(out);
}

fn write_any_url(uri: &[u8], out: &mut Vec<u8>) {
    match UrlParts::of(uri) {
        Some(url) => write_url(&url, out),
        None => {
            out.extend_from_slice(&[NO_HOST, HOST_END, NO_HOST]);
            out.extend_from_slice(uri);
        }
    }
}

/// The URL of a record.
pub(super) struct StoredUrl<'a> {
    /// The labels of the host, reversed.
    pub(super) host: &'a [u8],
    scheme: u8,
    /// The URL after its host; without a host, the URL.
    rest: &'a [u8],
    /// Bytes before the kind of the record.
    pub(super) len: usize,
}

impl<'a> StoredUrl<'a> {
    /// Reads the URL at the beginning of a record.
    pub(super) fn read(record: &'a [u8]) -> Option<StoredUrl<'a>> {
        let host_len = memchr::memchr(HOST_END, record)?;
        let (scheme, rest) = record[host_len + 1..].split_first()?;
        let rest_len = memchr::memchr3(CAPTURE, REDIRECT, OTHER, rest)?;
        let (host, rest) = (&record[..host_len], &rest[..rest_len]);
        Some(StoredUrl { host, scheme: *scheme, rest, len: host_len + 2 + rest_len })
    }

    /// Replaces the contents of `out` with the URL; `authority` is the one of its host.
    pub(super) fn write(&self, authority: &[u8], out: &mut Vec<u8>) {
        out.clear();
        if self.scheme != NO_HOST {
            out.extend_from_slice(origin_start(self.scheme == b'1'));
            out.extend_from_slice(authority);
        }
        out.extend_from_slice(self.rest);
    }
}

/// Returns the labels of a stored host in their usual order.
pub(super) fn authority_of(host: &[u8]) -> Vec<u8> {
    let labels: Vec<&[u8]> = host.rsplit(|byte| *byte == LABEL_END).collect();
    labels.join(&b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sha1_digests_are_equal_in_both_texts() {
        let texts: [&[u8]; 3] = [
            b"A6X7MCT2JWAZW6XTPGXBKDSYDVKTB7ET",
            b"07aff60a7a4d819b7af379ae150e581d5530fc93",
            b"07AFF60A7A4D819B7AF379AE150E581D5530FC93",
        ];
        assert!(texts.iter().all(|text| hash_of_digest(text) == hash_of_digest(texts[0])));
        assert_ne!(hash_of_digest(b"07aff60a7a4d819b7af379ae150e581d5530fc9x"), hash_of_digest(texts[0]));
    }

    /// Texts of documents are found by the digests of rows.
    #[test]
    fn stated_digests_have_the_hash_of_those_in_rows() {
        let digest = b"A6X7MCT2JWAZW6XTPGXBKDSYDVKTB7ET";
        for prefix in ["", "sha1:", "SHA1:", "Sha1:"] {
            assert_eq!(hash_of_stated(&[prefix.as_bytes(), digest].concat()), hash_of_evidence(digest), "{prefix}");
        }
        assert_ne!(hash_of_stated(b"sha256:ABCDEFGH"), hash_of_evidence(b"ABCDEFGH"));
    }

    #[test]
    fn digests_of_empty_content_are_no_evidence() {
        let empty: [&[u8]; 6] = [
            b"3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
            b"sha1:3i42h3s6nnfq2msvx7xzkyayscx5qbyj",
            b"DA39A3EE5E6B4B0D3255BFEF95601890AFD80709",
            b"md5:D41D8CD98F00B204E9800998ECF8427E",
            b"sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
            b"sha256:4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ",
        ];
        assert!(empty.iter().all(|digest| hash_of_evidence(digest).is_none()));
        assert!(hash_of_evidence(b"A6X7MCT2JWAZW6XTPGXBKDSYDVKTB7ET").is_some());
    }

    #[test]
    fn urls_are_stored_in_the_order_of_their_hosts() {
        let stored = |uri: &str| {
            let mut bytes = Vec::new();
            write_any_url(uri.as_bytes(), &mut bytes);
            bytes.push(CAPTURE);
            bytes
        };
        let uris = [
            "http://b.a/",
            "https://b.a/x?y#z",
            "https://b.a/x?yz",
            "http://a.b.a:80/",
            "http://b.a:80/",
            "http://a!b/",
            "http://u@z/",
            "urn:a:b",
            "ftp://a.b/",
        ];
        for uri in uris {
            let bytes = stored(uri);
            let (url, mut text) = (StoredUrl::read(&bytes).unwrap(), Vec::new());
            url.write(&authority_of(url.host), &mut text);
            assert_eq!((text.as_slice(), url.len), (uri.as_bytes(), bytes.len() - 1));
        }
        assert!(stored("http://b.a/") < stored("https://b.a/") && stored("https://b.a/") < stored("http://a.b.a/"));
        assert!(stored("http://a.b.a/") < stored("http://c.a/") && stored("http://b.a/x") < stored("http://b.a/x?"));
        assert_ne!(
            StoredUrl::read(&stored("http://b.a/")).unwrap().host,
            StoredUrl::read(&stored("http://a!b/")).unwrap().host
        );
    }
}
