//! The digest of a payload: [`PayloadHasher`] hashes it while its bytes pass, so that its length costs no memory.

use super::window::ArchiveWindow;
use data_encoding::BASE32;
use sha1::{Digest, Sha1};

/// Hashes the payload of the current record.
#[derive(Debug, Default)]
pub(super) struct PayloadHasher {
    hash: Sha1,
    /// The first byte that was not hashed; `None` if the payload is not hashed.
    next_at: Option<u64>,
    /// Bytes that were hashed of all payloads.
    #[cfg(test)]
    pub(super) hashed_len: u64,
}

impl PayloadHasher {
    /// Begins a payload at byte `at` of the archive.
    pub(super) fn begin(&mut self, at: u64) {
        self.hash = Sha1::new();
        self.next_at = Some(at);
    }

    /// Gives up the payload: it is damaged.
    pub(super) fn abandon(&mut self) {
        self.next_at = None;
    }

    /// Hashes the payload up to byte `to`.
    pub(super) fn advance(&mut self, window: ArchiveWindow<'_>, to: u64) {
        if let Some(at) = &mut self.next_at
            && *at < to
        {
            self.hash.update(window.slice(*at..to));
            #[cfg(test)]
            {
                self.hashed_len += to - *at;
            }
            *at = to;
        }
    }

    /// The digest of the whole payload, in base32 after the name of the algorithm; `None` if it was not hashed.
    pub(super) fn finish(&mut self) -> Option<String> {
        self.next_at.take()?;
        Some(format!("sha1:{}", BASE32.encode(&std::mem::take(&mut self.hash).finalize())))
    }
}
