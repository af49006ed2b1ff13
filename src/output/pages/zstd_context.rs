//! A zstd context that also compresses sequences which the caller found: the crate `zstd` has no safe function for these.

use std::ptr::NonNull;

use parquet::errors::ParquetError;
use zstd::zstd_safe::zstd_sys::{self, ZSTD_CCtx, ZSTD_cParameter};
use zstd::zstd_safe::{compress_bound, get_error_name};

use super::matches::{MAX_LEN_LOG, MatchLimits, PADDING, Sequences};

/// The hash table of zstd level 1 has 2^13 entries, which leaves room for text in the first-level cache, and its matches have
/// at least 7 bytes. For pages of URLs this took 10 % less time than zstd's own values, at 3 % more length. Now it applies to
/// pages that [`super::matches`] does not suit.
const LEVEL_1_HASH_LOG: i32 = 13;
const LEVEL_1_MIN_MATCH: i32 = 7;
/// A page may refer to its first bytes. Level 1 would look back 512 KiB.
const LEVEL_1_WINDOW_LOG: i32 = MAX_LEN_LOG as i32;
/// The matches of pages, which are those of zstd level 1. Shorter matches make pages 2 % shorter, and take 6 % more time.
pub(super) const LIMITS: MatchLimits = MatchLimits { min_len: 6, max_distance: 1 << MAX_LEN_LOG };
/// The value of a parameter that selects the default of the level.
const OF_LEVEL: i32 = 0;
/// `ZSTD_c_blockDelimiters`: sequences state where blocks end.
const BLOCK_DELIMITERS: (ZSTD_cParameter, i32) = (ZSTD_cParameter::ZSTD_c_experimentalParam11, 1);
/// `ZSTD_c_searchForExternalRepcodes`, disabled: repeated offsets are rare in URLs.
const NO_REPEATED_OFFSETS: (ZSTD_cParameter, i32) = (ZSTD_cParameter::ZSTD_c_experimentalParam19, 2);

/// A context with the parameters of one level.
pub(super) struct ZstdContext {
    context: NonNull<ZSTD_CCtx>,
    /// The shortest match of zstd's own search.
    min_match: i32,
}

// SAFETY: a context is memory without ties to a thread; zstd only requires that one thread at a time uses it.
unsafe impl Send for ZstdContext {}

impl ZstdContext {
    pub(super) fn new(level: u8) -> Result<ZstdContext, ParquetError> {
        // SAFETY: the function has no conditions. It returns null if there is no memory.
        let context = NonNull::new(unsafe { zstd_sys::ZSTD_createCCtx() });
        let context = context.ok_or_else(|| ParquetError::General("no memory for zstd".into()))?;
        let (hash_log, window_log, min_match) = match level {
            1 => (LEVEL_1_HASH_LOG, LEVEL_1_WINDOW_LOG, LEVEL_1_MIN_MATCH),
            _ => (OF_LEVEL, OF_LEVEL, OF_LEVEL),
        };
        let mut context = ZstdContext { context, min_match };
        context.set((ZSTD_cParameter::ZSTD_c_compressionLevel, i32::from(level)))?;
        context.set(BLOCK_DELIMITERS)?;
        context.set(NO_REPEATED_OFFSETS)?;
        context.set((ZSTD_cParameter::ZSTD_c_hashLog, hash_log))?;
        context.set((ZSTD_cParameter::ZSTD_c_windowLog, window_log))?;
        Ok(context)
    }

    fn set(&mut self, (parameter, value): (ZSTD_cParameter, i32)) -> Result<(), ParquetError> {
        // SAFETY: the context is valid until it is dropped. Invalid parameters are returned as an error.
        length(unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.context.as_ptr(), parameter, value) }).map(|_| ())
    }

    /// Replaces `compressed` by a frame that contains `bytes`.
    pub(super) fn compress(&mut self, bytes: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
        self.set((ZSTD_cParameter::ZSTD_c_minMatch, self.min_match))?;
        compressed.clear();
        compressed.reserve(compress_bound(bytes.len()));
        // SAFETY: the context is valid. zstd writes to the vector at most as many bytes as its capacity, and returns how
        // many it initialized.
        unsafe {
            let (into, capacity) = (compressed.as_mut_ptr().cast(), compressed.capacity());
            let result =
                zstd_sys::ZSTD_compress2(self.context.as_ptr(), into, capacity, bytes.as_ptr().cast(), bytes.len());
            compressed.set_len(length(result)?);
        }
        Ok(())
    }

    /// Replaces `compressed` by a frame that contains the `len` bytes that `found` describes.
    ///
    /// # Errors
    /// If a block of the greatest length does not become shorter: zstd cannot store it without its bytes.
    pub(super) fn compress_sequences(
        &mut self,
        found: &Sequences,
        len: usize,
        compressed: &mut Vec<u8>,
    ) -> Result<(), ParquetError> {
        let Sequences { literals, sequences } = found;
        assert!(literals.capacity() >= literals.len() + PADDING);
        // No match may be shorter than this.
        self.set((ZSTD_cParameter::ZSTD_c_minMatch, i32::from(LIMITS.min_len)))?;
        compressed.clear();
        compressed.reserve(compress_bound(len));
        // SAFETY: the context is valid. The literals have the padding that the assertion checked. zstd trusts that no block is
        // too long and no match too short or too far away; `MatchFinder::find` is the only source of sequences, and its tests
        // rebuild the page. zstd checks that the sequences use exactly the literals, and that all lengths add up to `len`.
        // It writes to `compressed` at most as many bytes as its capacity, and returns how many it initialized.
        unsafe {
            let (into, capacity) = (compressed.as_mut_ptr().cast(), compressed.capacity());
            let result = zstd_sys::ZSTD_compressSequencesAndLiterals(
                self.context.as_ptr(),
                into,
                capacity,
                sequences.as_ptr(),
                sequences.len(),
                literals.as_ptr().cast(),
                literals.len(),
                literals.capacity(),
                len,
            );
            compressed.set_len(length(result)?);
        }
        Ok(())
    }
}

impl Drop for ZstdContext {
    fn drop(&mut self) {
        // SAFETY: the context is valid, and nothing uses it afterwards.
        unsafe { zstd_sys::ZSTD_freeCCtx(self.context.as_ptr()) };
    }
}

/// Returns the length that a function of zstd returned, or its error.
fn length(result: usize) -> Result<usize, ParquetError> {
    // SAFETY: the function has no conditions.
    match unsafe { zstd_sys::ZSTD_isError(result) } {
        0 => Ok(result),
        _ => Err(ParquetError::General(format!("zstd: {}", get_error_name(result)))),
    }
}
