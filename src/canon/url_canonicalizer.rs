//! Canonicalizes URLs in memory: [`UrlCanonicalizer`].

use std::fmt;

use super::canonicalizer::Canonicalizer;
use super::policy::Policy;
use super::rows::{MAX_TEXT_LEN, Rows};
use crate::iri::{Fault, FaultKind, Flags};
use crate::kernel::Bitmaps;
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::record::RecordBuffer;

/// Length of the text that is processed at a time, in bytes, so that it stays in the cache of a core.
const CHUNK_LEN: usize = 256 << 10;

/// Canonicalizes URLs in memory, and keeps its buffers from call to call.
///
/// ```
/// use irikey::canon::{Policy, UrlCanonicalizer};
/// let mut urls = UrlCanonicalizer::new(&Policy::default());
/// let rows = urls.canonicalize([(&b"HTTP://Example.org:80"[..], None), (b"mailto:A@Example.org", None)])?;
/// assert_eq!(rows.uri.get(0), b"http://example.org/");
/// assert_eq!(rows.uri.get(1), b"mailto:A@Example.org");
///
/// let base = Some(&b"http://example.org/a/b"[..]);
/// let rows = urls.canonicalize(["../c", "http://["].map(|url| (url.as_bytes(), base)))?;
/// assert_eq!(rows.uri.get(0), b"http://example.org/c");
/// assert!(rows.fault(1).is_some());
/// # Ok::<(), irikey::canon::TextTooLong>(())
/// ```
#[derive(Debug)]
pub struct UrlCanonicalizer {
    canonicalizer: Canonicalizer,
    buffer: RecordBuffer,
    bitmaps: Bitmaps,
    rows: Rows,
    algorithm: KeyAlgorithm,
}

/// The row of one URL.
#[derive(Clone, Copy, Debug)]
pub struct UrlRow<'a> {
    /// The canonical URI; empty if there is a fault.
    pub uri: &'a [u8],
    /// The key of the policy's rung. If there is a fault, it is [`KeyAlgorithm::fault_key`] of the URL.
    pub key: KeyBytes,
    /// What was noticed or repaired.
    pub flags: Flags,
    /// Why there is no canonical URI.
    pub fault: Option<Fault>,
}

/// The texts of a call exceed 2000 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextTooLong;

impl fmt::Display for TextTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the URLs of a batch have more than {} MiB; use smaller batches", MAX_TEXT_LEN >> 20)
    }
}

impl std::error::Error for TextTooLong {}

impl UrlCanonicalizer {
    /// Returns a canonicalizer for `policy`.
    ///
    /// # Panics
    /// If [`Policy::check`] fails.
    pub fn new(policy: &Policy) -> UrlCanonicalizer {
        UrlCanonicalizer {
            canonicalizer: Canonicalizer::new(policy),
            buffer: RecordBuffer::default(),
            bitmaps: Bitmaps::default(),
            rows: Rows::default(),
            algorithm: policy.algorithm,
        }
    }

    /// Returns one row per URL, which comes with its base if it has one. The caller may take columns out of the rows.
    ///
    /// # Errors
    /// A URL and its base, the canonical URIs, or another column of texts exceed 2000 MiB.
    pub fn canonicalize<'a>(
        &mut self,
        urls: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) -> Result<&mut Rows, TextTooLong> {
        self.buffer.clear();
        self.rows.clear();
        for (url, base) in urls {
            if url.len().saturating_add(base.map_or(0, <[u8]>::len)) > MAX_TEXT_LEN {
                return Err(TextTooLong);
            }
            self.push(url, base);
            if self.buffer.text_len() >= CHUNK_LEN {
                self.append_rows();
                self.rows.check_text_len().map_err(|_| TextTooLong)?;
            }
        }
        self.append_rows();
        self.rows.check_text_len().map_err(|_| TextTooLong)?;
        Ok(&mut self.rows)
    }

    /// Returns the row of `url`, resolved against `base` if there is one. If the URI or another text of the row would exceed
    /// 2000 MiB, the URL has the fault [`FaultKind::TooLong`].
    ///
    /// ```
    /// use irikey::canon::{Policy, UrlCanonicalizer};
    /// use irikey::iri::Flags;
    /// use irikey::key::KeyAlgorithm;
    /// let mut urls = UrlCanonicalizer::new(&Policy::default());
    /// let row = urls.canonicalize_one(b"../a b", Some(b"http://h/a/b"));
    /// assert_eq!((row.uri, row.flags), (&b"http://h/a%20b"[..], Flags::EXCLUDED));
    /// let row = urls.canonicalize_one(b"../c", None);
    /// assert_eq!(row.fault.unwrap().kind.name(), "relative");
    /// assert_eq!(row.key, KeyAlgorithm::Xxh3.fault_key(b"../c"));
    /// ```
    ///
    /// # Panics
    /// If `url` and `base` have 4 GiB or more.
    pub fn canonicalize_one(&mut self, url: &[u8], base: Option<&[u8]>) -> UrlRow<'_> {
        self.buffer.clear();
        self.rows.clear();
        self.push(url, base);
        self.append_rows();
        let rows = &self.rows;
        if rows.is_overfull {
            let (key, fault) = (self.algorithm.fault_key(url), Some(Fault::of_reference(FaultKind::TooLong)));
            return UrlRow { uri: b"", key, flags: Flags::NONE, fault };
        }
        UrlRow { uri: rows.uri.get(0), key: rows.key[0], flags: rows.flags(0), fault: rows.fault(0) }
    }

    fn push(&mut self, url: &[u8], base: Option<&[u8]>) {
        self.buffer.push_url(url);
        self.buffer.push_base(base.unwrap_or_default());
    }

    /// Appends the rows of the buffered records.
    fn append_rows(&mut self) {
        let records = self.buffer.classified_records(&mut self.bitmaps);
        self.canonicalizer.append(&records, &self.bitmaps, &mut self.rows);
        self.buffer.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(canonicalizer: &mut UrlCanonicalizer, urls: &[&[u8]], base: Option<&[u8]>) -> Vec<String> {
        let rows = canonicalizer.canonicalize(urls.iter().map(|url| (*url, base))).unwrap();
        (0..rows.len()).map(|row| String::from_utf8(rows.uri.get(row).to_vec()).unwrap()).collect()
    }

    #[test]
    fn line_feeds_are_percent_encoded_as_in_tables() {
        let mut urls = UrlCanonicalizer::new(&Policy::default());
        let made = uris(&mut urls, &[b"a\nb", b"a b", b"\n"], Some(b"http://h/"));
        assert_eq!(made, ["http://h/a%0Ab", "http://h/a%20b", "http://h/%0A"]);
    }

    /// Several chunks, and after them a call without bases.
    #[test]
    fn rows_do_not_depend_on_chunks_and_earlier_calls() {
        let mut canonicalizer = UrlCanonicalizer::new(&Policy::default());
        let urls: Vec<_> = (0..2000).map(|i| format!("{i}{}", "%7e".repeat(i % 200)).into_bytes()).collect();
        let urls: Vec<_> = urls.iter().map(Vec::as_slice).collect();
        assert!(urls.iter().map(|url| url.len()).sum::<usize>() > 2 * CHUNK_LEN);
        let expected: Vec<_> = (0..2000).map(|i| format!("http://h/{i}{}", "~".repeat(i % 200))).collect();
        assert_eq!(uris(&mut canonicalizer, &urls, Some(b"http://h/")), expected);
        assert_eq!(uris(&mut canonicalizer, &[b"HTTP://h", b"a"], None), ["http://h/", ""]);
        assert_eq!(uris(&mut canonicalizer, &[], None), [""; 0]);
    }

    /// Percent-encoding makes the URIs three times as long as the URLs, of which there are many in one slice.
    #[test]
    fn texts_that_are_too_long_are_an_error() {
        let policy = Policy { max_url_len: crate::canon::MaxUrlLen::MAX, ..Policy::default() };
        let mut canonicalizer = UrlCanonicalizer::new(&policy);
        canonicalizer.canonicalizer.writer.max_text_len = 1 << 20;
        let url = [&b"http://h/"[..], &b" ".repeat(100_000)].concat();
        let mut fits = |count| canonicalizer.canonicalize((0..count).map(|_| (&url[..], None))).map(|rows| rows.len());
        assert_eq!(fits(3), Ok(3));
        assert_eq!(fits(4), Err(TextTooLong));
        assert_eq!(fits(3), Ok(3));
        canonicalizer.canonicalizer.writer.max_text_len = 100_000;
        let row = canonicalizer.canonicalize_one(&url, None);
        assert_eq!((row.uri, row.key), (&b""[..], policy.algorithm.fault_key(&url)));
        assert_eq!(row.fault.unwrap().kind, FaultKind::TooLong);
    }
}
