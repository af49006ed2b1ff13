//! Reads sorted captures and redirects, those of one host after the other: [`HostReader`]. Captures become [`HostUnit`]s, and
//! redirects go to a [`RedirectObserver`], which sorts in memory up to a limit and beyond it on disk: [`DiskSorters`].

use super::super::memory;
use super::capture_record::CaptureRecord;
use super::capture_sort::{HAS_CONTENT, IS_PERMANENT, IS_SERVED, IS_TEMPORARY, ObserveError, StoredUrl, authority_of};
use super::held_out::{HeldOutHost, HoldOut, day_of};
use crate::learn::content::{DocumentEvidence, HostCaptures};
use crate::learn::{ReadRecords, RedirectCode, RedirectObserver, SortRecords, SorterFactory};
use crate::sort::{BytesMerger, BytesRuns, BytesSorter};
use crate::spill::SpillError;
use std::path::PathBuf;

/// About the most URLs that a thread learns from at a time, and their length in bytes; a single host may have more.
const UNIT_URLS: usize = 4096;
const UNIT_LEN: usize = 4 << 20;

/// A host counts as this many URLs besides its own, because hosts with few URLs take time as well.
const HOST_URLS: usize = 8;

/// The captures of a host.
pub(super) struct HostUnit {
    pub(super) host: Vec<u8>,
    pub(super) captures: HostCaptures,
    pub(super) held_out: HostCaptures,
    pub(super) documents: DocumentEvidence,
    /// Contents that became equal to others because their texts are near.
    pub(super) near_contents: u64,
    /// URLs of the host redirect, or others redirect to them.
    pub(super) has_redirects: bool,
    is_site_held_out: bool,
}

impl HostUnit {
    /// Returns the unit of a host, which is given as it is stored, without captures.
    fn new(host: &[u8], hold_out: Option<HoldOut>) -> HostUnit {
        let host = authority_of(host);
        let is_site_held_out = hold_out.is_some_and(|hold_out| hold_out.contains_site(&host));
        HostUnit {
            host,
            captures: HostCaptures::default(),
            held_out: HostCaptures::default(),
            documents: DocumentEvidence::default(),
            near_contents: 0,
            has_redirects: false,
            is_site_held_out,
        }
    }

    /// Makes contents equal whose texts differ in at most `bits` bits of their hashes.
    pub(super) fn unite_near(&mut self, bits: u32) {
        self.near_contents = self.documents.unite_near(bits, &mut self.captures);
        self.documents.unite_near(bits, &mut self.held_out);
    }

    /// Returns the length of all URLs, in bytes.
    fn text_len(&self) -> usize {
        self.captures.text_len() + self.held_out.text_len() + self.documents.canonical_len()
    }

    pub(super) fn held_out(&self) -> HeldOutHost<'_> {
        let noise = if self.held_out.len() > 0 { self.captures.noise() } else { 0.0 };
        HeldOutHost { host: &self.host, captures: &self.held_out, noise, is_site: self.is_site_held_out }
    }
}

/// Reads captures of one host after the other, and gives what records state about redirects and responses to an observer.
pub(super) struct HostReader<'a> {
    merger: BytesMerger,
    /// Bytes of temporary files.
    pub(super) spilled: u64,
    hold_out: Option<HoldOut>,
    observer: &'a mut RedirectObserver<DiskSorters>,
    /// Responses matter only if there are redirects.
    has_redirects: bool,
    limit: UrlLimit,
    /// The URL of the current record, and its length as it is stored.
    uri: Vec<u8>,
    stored_len: usize,
    host: Vec<u8>,
    /// The success of the current URL was counted.
    is_served: bool,
    /// The current record belongs to the next host.
    is_held: bool,
}

/// How many URLs of redirects may be held.
#[derive(Clone, Copy, Debug)]
pub(super) struct UrlLimit {
    pub(super) urls: usize,
    /// The bytes that the number was computed from.
    pub(super) bytes: usize,
}

impl<'a> HostReader<'a> {
    /// Reads sorted runs. Captures that `hold_out` contains are kept apart.
    pub(super) fn new(
        mut runs: BytesRuns,
        hold_out: Option<HoldOut>,
        observer: &'a mut RedirectObserver<DiskSorters>,
        has_redirects: bool,
        limit: UrlLimit,
    ) -> Result<HostReader<'a>, SpillError> {
        runs.reduce()?;
        Ok(HostReader {
            spilled: runs.written_len(),
            merger: runs.merger()?,
            hold_out,
            observer,
            has_redirects,
            limit,
            uri: Vec::new(),
            stored_len: 0,
            host: Vec::new(),
            is_served: false,
            is_held: false,
        })
    }

    /// Returns hosts with about [`UNIT_URLS`] URLs or [`UNIT_LEN`] bytes of them together; `None` after the last.
    pub(super) fn next_unit(&mut self) -> Result<Option<Vec<HostUnit>>, ObserveError> {
        let (mut unit, mut urls, mut len) = (Vec::new(), 0, 0);
        while urls < UNIT_URLS && len < UNIT_LEN {
            let Some(host) = self.next_host()? else { break };
            urls += host.captures.len() + host.held_out.len() + HOST_URLS;
            len += host.text_len();
            unit.push(host);
        }
        Ok((!unit.is_empty()).then_some(unit))
    }

    /// Reads the remaining hosts only for the observer.
    pub(super) fn observe_rest(&mut self) -> Result<(), ObserveError> {
        while self.next_unit()?.is_some() {
            memory::sample();
        }
        Ok(())
    }

    fn next_host(&mut self) -> Result<Option<HostUnit>, ObserveError> {
        let mut found = None;
        loop {
            let shared = match std::mem::take(&mut self.is_held) {
                true => 0,
                false => match self.merger.advance()? {
                    Some(shared) => shared,
                    None => return Ok(found),
                },
            };
            let record = self.merger.record();
            // Records that share more than the URL are of the same URL.
            if shared <= self.stored_len {
                let url = StoredUrl::read(record).ok_or_else(|| self.merger.damaged())?;
                if url.host != self.host && found.is_some() {
                    self.is_held = true;
                    return Ok(found);
                }
                self.host.clear();
                self.host.extend_from_slice(url.host);
                let unit = found.get_or_insert_with(|| HostUnit::new(url.host, self.hold_out));
                url.write(&unit.host, &mut self.uri);
                (self.stored_len, self.is_served) = (url.len, false);
            }
            let is_repeated = shared == self.merger.record().len();
            if let Some(unit) = found.as_mut().filter(|_| !is_repeated || !self.counts_once()) {
                self.add(unit)?;
                self.check_limit()?;
            }
        }
    }

    fn check_limit(&self) -> Result<(), ObserveError> {
        match self.observer.numbered_urls() {
            urls if urls > self.limit.urls => Err(ObserveError::TooLarge { limit: self.limit.bytes, urls }),
            _ => Ok(()),
        }
    }

    /// Returns whether a record that is equal to the current one adds nothing: it is the same capture, or the same link.
    fn counts_once(&self) -> bool {
        let record = CaptureRecord::read(&self.merger.record()[self.stored_len..]);
        matches!(record, CaptureRecord::Capture { .. } | CaptureRecord::Canonical(_))
    }

    /// Adds the current record.
    fn add(&mut self, unit: &mut HostUnit) -> Result<(), SpillError> {
        let HostReader { merger, observer, uri, hold_out, .. } = self;
        let record = CaptureRecord::read(&merger.record()[self.stored_len..]);
        unit.has_redirects |= matches!(record, CaptureRecord::Redirect { .. } | CaptureRecord::Target(_));
        match record {
            CaptureRecord::Redirect { to, code, place } => observer.redirect(uri, to, code, place),
            CaptureRecord::Target(source) => observer.target(uri, source),
            CaptureRecord::Text { content, hash } => {
                unit.documents.add_text(content, hash);
                Ok(())
            }
            CaptureRecord::Canonical(canonical) => {
                unit.documents.add_canonical(uri, canonical);
                Ok(())
            }
            CaptureRecord::Capture { content, response, time } => {
                if response & HAS_CONTENT != 0 {
                    let is_held_out =
                        unit.is_site_held_out || hold_out.is_some_and(|hold_out| hold_out.contains(uri, day_of(time)));
                    let captures = if is_held_out { &mut unit.held_out } else { &mut unit.captures };
                    captures.push_at(uri, content, time);
                    if self.has_redirects && !is_held_out {
                        observer.content(uri, content)?;
                    }
                }
                self.add_response(response)
            }
        }
    }

    /// Adds the response of the current URL; a URL that succeeded several times counts once.
    fn add_response(&mut self, response: u8) -> Result<(), SpillError> {
        if response & IS_SERVED != 0 && !std::mem::replace(&mut self.is_served, true) {
            match self.has_redirects {
                true => self.observer.served(&self.uri)?,
                false => self.observer.count_served(),
            }
        }
        let code = match response & (IS_PERMANENT | IS_TEMPORARY) {
            IS_PERMANENT => RedirectCode::Permanent,
            IS_TEMPORARY => RedirectCode::Temporary,
            _ => return Ok(()),
        };
        self.observer.status(&self.uri, code)
    }
}

/// Creates sorters that use about `sorter_memory` bytes of memory each, and temporary files beyond.
#[derive(Clone, Debug)]
pub(crate) struct DiskSorters {
    pub(super) sorter_memory: usize,
    pub(super) directory: PathBuf,
}

impl SorterFactory for DiskSorters {
    type Error = SpillError;
    type Sorter = BytesSorter;

    fn sorter(&self) -> BytesSorter {
        BytesSorter::new(self.sorter_memory, &self.directory)
    }
}

impl SortRecords for BytesSorter {
    type Error = SpillError;
    type Reader = BytesMerger;

    fn push(&mut self, record: &[u8]) -> Result<(), SpillError> {
        BytesSorter::push(self, record)
    }

    fn sorted(self) -> Result<BytesMerger, SpillError> {
        BytesSorter::sorted(self)
    }
}

impl ReadRecords for BytesMerger {
    type Error = SpillError;

    fn next_record(&mut self) -> Result<Option<&[u8]>, SpillError> {
        BytesMerger::next_record(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture_sort::{add_redirect, write_canonical};
    use super::*;
    use crate::key::KeyAlgorithm;
    use crate::learn::{LearnLimits, RecordPlace};
    use crate::sort::BytesBuffer;

    #[test]
    fn hosts_with_long_urls_are_in_units_of_their_own() {
        let (directory, mut records) = (tempfile::tempdir().unwrap(), BytesBuffer::default());
        let long = "x".repeat(1 << 20);
        for host in 10..40 {
            let page = format!("http://h{host}.example/{long}");
            write_canonical(page.as_bytes(), b"http://a.example/", &mut records);
        }
        let mut runs = BytesRuns::new(1 << 20, directory.path());
        runs.add(records.take_run()).unwrap();
        let sorters = DiskSorters { sorter_memory: 1 << 16, directory: directory.path().to_path_buf() };
        let mut observer = RedirectObserver::new(&sorters, &LearnLimits::default(), KeyAlgorithm::Xxh3);
        let mut hosts = HostReader::new(runs, None, &mut observer, false, UrlLimit { urls: 0, bytes: 0 }).unwrap();
        let mut counts = Vec::new();
        while let Some(unit) = hosts.next_unit().unwrap() {
            counts.push(unit.len());
        }
        assert_eq!(counts, [4, 4, 4, 4, 4, 4, 4, 2]);
    }

    #[test]
    fn redirects_of_one_host_do_not_exceed_the_limit() {
        let (directory, mut records) = (tempfile::tempdir().unwrap(), BytesBuffer::default());
        for i in 0..1_000 {
            let place = RecordPlace { source: 0, record: i };
            add_redirect(
                format!("http://a/{i}").as_bytes(),
                b"http://a/",
                RedirectCode::Permanent,
                place,
                &mut records,
            );
        }
        let mut runs = BytesRuns::new(1 << 20, directory.path());
        runs.add(records.take_run()).unwrap();
        let sorters = DiskSorters { sorter_memory: 1 << 16, directory: directory.path().to_path_buf() };
        let mut observer = RedirectObserver::new(&sorters, &LearnLimits::default(), KeyAlgorithm::Xxh3);
        let limit = UrlLimit { urls: 100, bytes: 600 };
        let mut hosts = HostReader::new(runs, None, &mut observer, true, limit).unwrap();
        assert!(matches!(hosts.next_unit(), Err(ObserveError::TooLarge { limit: 600, urls: 101 })));
    }
}
