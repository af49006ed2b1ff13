//! Captures in the order of their hosts, URLs and contents: [`CaptureSort`] sorts them, [`HostReader`] reads those of one host
//! after the other.
//!
//! A capture is stored as bytes that compare in this order: the labels of its host reversed, so that the hosts of a site follow
//! each other; its scheme and the rest of its URL; the hash of its content; what the record states about the answer; its day.

use super::RowGroup;
use super::held_out::{DAYS, DayCounts, HeldOutHost, HoldOut};
use crate::canon::Rows;
use crate::learn::content::{HostCaptures, UrlParts};
use crate::learn::{Observations, RedirectCode};
use crate::sort::{EncodedBlock, MergeLimits, Merger, SortBy, SortSchema, SortedRuns};
use crate::spill::SpillError;
use arrow::array::{Array, AsArray, BinaryArray, BinaryBuilder, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use data_encoding::{BASE32, HEXLOWER_PERMISSIVE};
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Most bytes of a stored capture that has no content worth comparing.
const MAX_TINY_LEN: i64 = 128;

/// Digests of empty content: MD5, SHA-1 and SHA-256, as hexadecimal and as Base32 texts.
const EMPTY_DIGESTS: [&str; 5] = [
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "4OYMIQUY7QOBJGX36TEJS35ZEQT24QPEMSNZGTFESWMRW6CSXBKQ====",
];

/// About the most URLs that a thread learns from at a time; a single host may have more.
const UNIT_URLS: usize = 4096;

/// One `ALLOCATOR_SHARE`-th of the memory for runs is left to the allocator, see the sort job.
const ALLOCATOR_SHARE: usize = 4;

/// Limits of the rows that are merged at a time.
const MERGE_LIMITS: MergeLimits = MergeLimits { rows: 16 << 10, len: 4 << 20, part_rows: None };

/// Sorts captures by host, URL and content.
#[derive(Debug)]
pub(crate) struct CaptureSort {
    table: SchemaRef,
    schema: SortSchema,
    /// Captures by day, if some are held out.
    days: Option<DayCounts>,
}

impl CaptureSort {
    /// `held_out` is the share of captures that rules are not learned from.
    pub(super) fn new(held_out: f64) -> Result<CaptureSort, SpillError> {
        let table = Arc::new(Schema::new(vec![Field::new("capture", DataType::Binary, false)]));
        let schema = SortSchema::new(&table, vec![None], &SortBy::parse(["capture"]), None)?;
        Ok(CaptureSort { table, schema, days: (held_out > 0.0).then(DayCounts::default) })
    }

    /// An empty collection of runs that takes about `memory` bytes.
    pub(super) fn new_runs(memory: usize, directory: &Path) -> SortedRuns {
        SortedRuns::new(memory - memory / ALLOCATOR_SHARE, directory)
    }

    /// Returns the answers of a row group as a sorted run; with their contents if these are evidence for rules.
    pub(super) fn sort(&self, group: &RowGroup<'_>, has_contents: bool) -> Result<Vec<EncodedBlock>, SpillError> {
        let (mut captures, mut days, mut capture) = (BinaryBuilder::new(), Vec::new(), Vec::new());
        for row in 0..group.rows.len() {
            let Some(url) = UrlParts::of(group.rows.uri.get(row)) else { continue };
            let content = if has_contents { content_of(group.rows, row) } else { None };
            let answer = answer_of(group.rows, row) | if content.is_some() { HAS_CONTENT } else { 0 };
            if answer == 0 {
                continue;
            }
            let day = day_of(group.rows, row);
            capture.clear();
            write_capture(&url, &CaptureEnd { content: content.unwrap_or(0), answer, day }, &mut capture);
            captures.append_value(&capture);
            if content.is_some() && self.days.is_some() {
                days.push(i32::from(day));
            }
        }
        if let Some(counts) = &self.days {
            counts.add(&days);
        }
        let batch = RecordBatch::try_new(self.table.clone(), vec![Arc::new(captures.finish())])?;
        Ok(self.schema.sort(&batch, group.ticket.first_row())?)
    }

    /// Reads the captures of runs that were reduced.
    pub(super) fn reader<'a>(
        &'a self,
        runs: &mut SortedRuns,
        held_out: f64,
        observed: &'a mut Observations,
    ) -> Result<HostReader<'a>, SpillError> {
        Ok(HostReader {
            merger: runs.merger(&self.schema, MERGE_LIMITS)?,
            schema: &self.schema,
            hold_out: self.days.as_ref().map(|days| HoldOut::new(held_out, days)),
            observed,
            uri: Vec::new(),
            last_served: Vec::new(),
            batch: None,
            row: 0,
        })
    }

    /// Merges runs until all that remain can be merged at a time.
    pub(super) fn reduce(&self, runs: SortedRuns) -> Result<SortedRuns, SpillError> {
        runs.reduce(&self.schema)
    }
}

/// Returns the day of a capture since 1970; 0 if it is unknown, or if days make no difference.
fn day_of(rows: &Rows, row: usize) -> u16 {
    const MS: i64 = 24 * 60 * 60 * 1000;
    let time = rows.carried.times.get(row).copied().flatten();
    time.map_or(0, |time| (time / MS).clamp(0, DAYS as i64 - 1) as u16)
}

/// The answer of a URL, as bits: its content is evidence.
const HAS_CONTENT: u8 = 1;

/// It answered with a success status.
const IS_SERVED: u8 = 2;

/// It answered with the status of a permanent redirect without a target.
const IS_PERMANENT: u8 = 4;

/// It answered with the status of a temporary redirect without a target.
const IS_TEMPORARY: u8 = 8;

/// Returns what the record of a row without a target states about the answer of its URL.
fn answer_of(rows: &Rows, row: usize) -> u8 {
    let carried = &rows.carried;
    let Some(status) = carried.statuses[row].filter(|_| carried.redirects.get(row).is_empty()) else { return 0 };
    match RedirectCode::of(status) {
        Some(RedirectCode::Permanent) => IS_PERMANENT,
        Some(_) => IS_TEMPORARY,
        None if (200..300).contains(&status) => IS_SERVED,
        None => 0,
    }
}

/// Returns the hash of the digest of a capture, if that is evidence: a complete answer with success and with content.
fn content_of(rows: &Rows, row: usize) -> Option<u64> {
    let carried = &rows.carried;
    let is_revisit = carried.mimes.get(row) == b"warc/revisit";
    let is_success = match carried.statuses[row] {
        Some(200) => true,
        Some(304) | None => is_revisit,
        _ => false,
    };
    let is_tiny = !is_revisit && carried.capture_lengths[row].is_some_and(|len| len < MAX_TINY_LEN);
    let is_cut = !carried.truncated.get(row).is_empty();
    let digest = match carried.digests.get(row) {
        // Computed for a record of an archive that states none.
        b"" => carried.payload_digests.get(row).strip_prefix(b"sha1:").unwrap_or_default(),
        digest => digest,
    };
    let name_len = memchr::memchr(b':', digest).map_or(0, |at| at + 1);
    let is_empty = digest.len() < 8 || EMPTY_DIGESTS.iter().any(|empty| empty.as_bytes() == &digest[name_len..]);
    (is_success && !is_tiny && !is_cut && !is_empty).then(|| hash_of_digest(digest))
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

/// What follows the URL of a stored capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CaptureEnd {
    content: u64,
    answer: u8,
    day: u16,
}

/// Separates the labels of a host. No URI contains it, and it is less than all characters of hosts.
const LABEL_END: u8 = 1;

/// Separates host and URL, and URL and content.
const TEXT_END: u8 = 0;

/// Bytes after the URL of a stored capture.
const END_LEN: usize = 1 + 8 + 1 + 2;

/// Appends a capture as bytes.
fn write_capture(url: &UrlParts<'_>, end: &CaptureEnd, out: &mut Vec<u8>) {
    for (i, label) in url.authority().rsplit(|byte| *byte == b'.').enumerate() {
        out.extend_from_slice(if i > 0 { &[LABEL_END] } else { b"" });
        out.extend_from_slice(label);
    }
    out.extend_from_slice(&[TEXT_END, b'0' + u8::from(url.is_https())]);
    url.write_rest(out);
    out.push(TEXT_END);
    out.extend_from_slice(&end.content.to_be_bytes());
    out.push(end.answer);
    out.extend_from_slice(&end.day.to_be_bytes());
}

/// A stored capture.
struct StoredCapture<'a> {
    /// The labels of the host, reversed.
    host: &'a [u8],
    is_https: bool,
    /// The URL after its host.
    rest: &'a [u8],
    end: CaptureEnd,
}

impl<'a> StoredCapture<'a> {
    /// Reads what [`write_capture`] wrote.
    fn read(bytes: &'a [u8]) -> Option<StoredCapture<'a>> {
        let (texts, end) = bytes.split_at_checked(bytes.len().checked_sub(END_LEN)?)?;
        let host_len = memchr::memchr(TEXT_END, texts)?;
        let (scheme, rest) = texts[host_len + 1..].split_first()?;
        let (content, end) = end[1..].split_first_chunk()?;
        let &[answer, high, low] = end else { return None };
        let end = CaptureEnd { content: u64::from_be_bytes(*content), answer, day: u16::from_be_bytes([high, low]) };
        Some(StoredCapture { host: &texts[..host_len], is_https: *scheme == b'1', rest, end })
    }
}

/// Returns the labels of a stored host in their usual order.
fn authority_of(host: &[u8]) -> Vec<u8> {
    let labels: Vec<&[u8]> = host.rsplit(|byte| *byte == LABEL_END).collect();
    labels.join(&b'.')
}

/// The captures of a host.
pub(super) struct HostUnit {
    pub(super) host: Vec<u8>,
    pub(super) captures: HostCaptures,
    pub(super) held_out: HostCaptures,
    is_site_held_out: bool,
}

impl HostUnit {
    pub(super) fn held_out(&self) -> HeldOutHost<'_> {
        HeldOutHost { host: &self.host, captures: &self.held_out, is_site: self.is_site_held_out }
    }
}

/// Reads captures of one host after the other, and adds what they state about answers to observations.
pub(super) struct HostReader<'a> {
    merger: Merger<'a>,
    schema: &'a SortSchema,
    hold_out: Option<HoldOut>,
    observed: &'a mut Observations,
    /// The URL of the current capture.
    uri: Vec<u8>,
    /// The last URL whose success was counted.
    last_served: Vec<u8>,
    batch: Option<BinaryArray>,
    row: usize,
}

impl HostReader<'_> {
    /// Returns hosts with about [`UNIT_URLS`] URLs together; `None` after the last.
    pub(super) fn next_unit(&mut self) -> Result<Option<Vec<HostUnit>>, SpillError> {
        let (mut unit, mut urls) = (Vec::new(), 0);
        while urls < UNIT_URLS {
            let Some(host) = self.next_host()? else { break };
            urls += host.captures.len() + host.held_out.len() + 8;
            unit.push(host);
        }
        Ok((!unit.is_empty()).then_some(unit))
    }

    fn next_host(&mut self) -> Result<Option<HostUnit>, SpillError> {
        let mut found: Option<(Vec<u8>, HostUnit)> = None;
        while let Some(batch) = self.fill()? {
            while self.row < batch.len() {
                let capture = StoredCapture::read(batch.value(self.row)).ok_or_else(cut_capture)?;
                let (host, unit) = found.get_or_insert_with(|| (capture.host.to_vec(), self.new_unit(capture.host)));
                if host != capture.host {
                    return Ok(found.map(|(_, unit)| unit));
                }
                self.add(&capture, unit);
                self.row += 1;
            }
        }
        Ok(found.map(|(_, unit)| unit))
    }

    fn new_unit(&self, host: &[u8]) -> HostUnit {
        let host = authority_of(host);
        let (captures, held_out) = (HostCaptures::default(), HostCaptures::default());
        let is_site_held_out = self.hold_out.is_some_and(|hold_out| hold_out.contains_site(&host));
        HostUnit { host, captures, held_out, is_site_held_out }
    }

    fn add(&mut self, capture: &StoredCapture<'_>, unit: &mut HostUnit) {
        let StoredCapture { is_https, rest, end: CaptureEnd { content, answer, day }, .. } = *capture;
        self.uri.clear();
        self.uri.extend_from_slice(if is_https { b"https://" } else { b"http://" });
        self.uri.extend_from_slice(&unit.host);
        self.uri.extend_from_slice(rest);
        self.add_answer(answer);
        if answer & HAS_CONTENT != 0 {
            let is_held_out = unit.is_site_held_out
                || self.hold_out.is_some_and(|hold_out| hold_out.contains(&self.uri, i32::from(day)));
            let captures = if is_held_out { &mut unit.held_out } else { &mut unit.captures };
            captures.push(&self.uri, content);
        }
    }

    /// Adds the answer of the current URL to observations; a URL that succeeded several times counts once.
    fn add_answer(&mut self, answer: u8) {
        if answer & (IS_PERMANENT | IS_TEMPORARY) != 0 {
            let is_permanent = answer & IS_PERMANENT != 0;
            let code = if is_permanent { RedirectCode::Permanent } else { RedirectCode::Temporary };
            self.observed.add_status(&self.uri, code);
        }
        if answer & IS_SERVED != 0 && self.last_served != self.uri {
            self.last_served.clone_from(&self.uri);
            self.observed.add_served(&self.uri);
        }
    }

    /// Makes the next row available; `None` after the last.
    fn fill(&mut self) -> Result<Option<BinaryArray>, SpillError> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.len()) {
            let Some(picked) = self.merger.next_rows()? else { return Ok(None) };
            let batch = self.schema.gather(&picked)?;
            (self.batch, self.row) = (Some(batch.column(0).as_binary::<i32>().clone()), 0);
        }
        Ok(self.batch.clone())
    }
}

fn cut_capture() -> SpillError {
    SpillError::Arrow(ArrowError::SchemaError("a stored capture is cut short".to_string()))
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

    #[test]
    fn captures_are_stored_in_the_order_of_their_hosts() {
        let end = CaptureEnd { content: 7, answer: HAS_CONTENT | IS_SERVED, day: 20_000 };
        let stored = |uri: &str| {
            let mut bytes = Vec::new();
            write_capture(&UrlParts::of(uri.as_bytes()).unwrap(), &end, &mut bytes);
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
        ];
        for uri in uris {
            let bytes = stored(uri);
            let capture = StoredCapture::read(&bytes).unwrap();
            let scheme = if capture.is_https { "https" } else { "http" };
            let text = format!(
                "{scheme}://{}{}",
                String::from_utf8(authority_of(capture.host)).unwrap(),
                String::from_utf8_lossy(capture.rest)
            );
            assert_eq!((text.as_str(), capture.end), (uri, end));
        }
        assert!(stored("http://b.a/") < stored("https://b.a/") && stored("https://b.a/") < stored("http://a.b.a/"));
        assert!(stored("http://a.b.a/") < stored("http://c.a/") && stored("http://b.a/x") < stored("http://b.a/x?"));
        assert_ne!(
            StoredCapture::read(&stored("http://b.a/")).unwrap().host,
            StoredCapture::read(&stored("http://a!b/")).unwrap().host
        );
    }
}
