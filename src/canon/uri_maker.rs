//! Makes the canonical URI of one reference at a time: [`UriMaker`].

use super::canonicalizer::Canonicalizer;
use super::policy::Policy;
use super::rows::Rows;
use crate::kernel::Bitmaps;
use crate::key::KeyBytes;
use crate::record::RecordBuffer;

/// Makes canonical URIs and keeps its buffers between them.
pub(crate) struct UriMaker {
    canonicalizer: Canonicalizer,
    record: RecordBuffer,
    bitmaps: Bitmaps,
    rows: Rows,
}

/// The canonical URI of a reference.
pub(crate) struct MadeUri<'a> {
    /// Empty if there is a fault.
    pub(crate) uri: &'a [u8],
    pub(crate) key: KeyBytes,
    pub(crate) fault: Option<&'static str>,
}

impl Default for UriMaker {
    fn default() -> UriMaker {
        UriMaker::new(&Policy::default())
    }
}

impl UriMaker {
    pub(crate) fn new(policy: &Policy) -> UriMaker {
        UriMaker {
            canonicalizer: Canonicalizer::new(policy),
            record: RecordBuffer::default(),
            bitmaps: Bitmaps::default(),
            rows: Rows::default(),
        }
    }

    /// Makes the canonical URI of `url`, resolved against `base`.
    pub(crate) fn make(&mut self, url: &[u8], base: &[u8]) -> MadeUri<'_> {
        self.record.clear();
        self.rows.clear();
        self.record.push_url(url);
        self.record.push_base(base);
        let records = self.record.classified_records(&mut self.bitmaps);
        self.canonicalizer.append(&records, &self.bitmaps, &mut self.rows);
        let fault = self.rows.faults.first().map(|(_, fault)| fault.kind.name());
        MadeUri { uri: self.rows.uri.get(0), key: self.rows.key[0], fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_feeds_are_percent_encoded_as_in_tables() {
        let mut uris = UriMaker::default();
        let mut made = |url: &[u8]| String::from_utf8(uris.make(url, b"http://h/").uri.to_vec()).unwrap();
        assert_eq!(made(b"a\nb"), "http://h/a%0Ab");
        assert_eq!(made(b"a b"), "http://h/a%20b");
        assert_eq!(made(b"\n"), "http://h/%0A");
    }
}
