//! From URLs and bases to rows.

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::CLASSIFIER;
use irikey::kernel::Bitmaps;
use irikey::record::RecordBuffer;

/// Most bytes of the arguments of one call: positions in them have 32 bits, and percent-encoding triples a text.
const MAX_TEXT_LEN: usize = 600 << 20;

/// Text that is processed at a time, in bytes, so that it stays in the cache of a core.
const CHUNK_LEN: usize = 256 << 10;

/// Most bytes of the arguments of a call whose buffers are kept: a hundred times those of usual URLs.
const MAX_KEPT_LEN: usize = 16 << 20;

/// The buffers of one call, which later calls use again.
pub(crate) struct Worker {
    canonicalizer: Canonicalizer,
    bitmaps: Bitmaps,
    buffer: RecordBuffer,
    rows: Rows,
    /// Bytes of the arguments of the last call.
    text_len: usize,
}

impl Worker {
    pub(crate) fn new(policy: &Policy) -> Worker {
        Worker {
            canonicalizer: Canonicalizer::new(policy),
            bitmaps: Bitmaps::default(),
            buffer: RecordBuffer::default(),
            rows: Rows::default(),
            text_len: 0,
        }
    }

    /// Returns whether the buffers are small enough to be kept as long as the database is open.
    pub(crate) fn is_small(&self) -> bool {
        self.text_len <= MAX_KEPT_LEN
    }

    /// Returns one row per URL, relative to its base if `bases` are given. A null URL is passed as an empty one, and its row
    /// has a fault.
    ///
    /// # Errors
    /// The texts are too long for one call.
    pub(crate) fn canonicalize(&mut self, urls: &[&[u8]], bases: Option<&[&[u8]]>) -> Result<&Rows, String> {
        let text_len: usize = urls.iter().chain(bases.unwrap_or_default()).map(|text| text.len()).sum();
        if text_len > MAX_TEXT_LEN {
            return Err(format!(
                "the arguments of a vector of rows have {text_len} bytes; at most {MAX_TEXT_LEN} are expected"
            ));
        }
        self.text_len = text_len;
        self.rows.clear();
        let mut len = 0;
        for (row, url) in urls.iter().enumerate() {
            self.buffer.push_url(url);
            if let Some(bases) = bases {
                self.buffer.push_base(bases[row]);
            }
            len += url.len();
            if len >= CHUNK_LEN {
                self.flush();
                len = 0;
            }
        }
        self.flush();
        if self.rows.is_overfull {
            return Err("the results of a vector of rows have more than 2000 MiB".to_string());
        }
        Ok(&self.rows)
    }

    fn flush(&mut self) {
        let records = self.buffer.records();
        self.bitmaps.classify(records.text, &CLASSIFIER);
        self.canonicalizer.append(&records, &self.bitmaps, &mut self.rows);
        self.buffer.clear();
    }
}
