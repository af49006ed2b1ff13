//! A zstd context that also compresses sequences which the caller found: the crate `zstd` has no safe function for these.

use std::ptr::NonNull;

use parquet::errors::ParquetError;
use zstd::zstd_safe::zstd_sys::{self, ZSTD_CCtx, ZSTD_cParameter};
use zstd::zstd_safe::{compress_bound, get_error_name};

use super::matches::Sequences;

/// Parameters of zstd level 1 for pages of URLs: matches of at least 7 bytes, and a hash table of 2^13 entries, which leaves
/// room for text in the first-level cache. Whole runs take 10 % less time than with the default parameters, and files are
/// 3 % larger. They apply to pages that [`super::matches`] does not suit.
const LEVEL_1: [(ZSTD_cParameter, i32); 2] =
    [(ZSTD_cParameter::ZSTD_c_hashLog, 13), (ZSTD_cParameter::ZSTD_c_minMatch, 7)];
/// `ZSTD_c_blockDelimiters`: sequences say where blocks end.
const BLOCK_DELIMITERS: (ZSTD_cParameter, i32) = (ZSTD_cParameter::ZSTD_c_experimentalParam11, 1);
/// `ZSTD_c_searchForExternalRepcodes`, disabled: repeated offsets are rare in URLs.
const NO_REPEATED_OFFSETS: (ZSTD_cParameter, i32) = (ZSTD_cParameter::ZSTD_c_experimentalParam19, 2);

/// A context with the parameters of one level.
pub(super) struct ZstdContext(NonNull<ZSTD_CCtx>);

// SAFETY: a context is memory without ties to a thread; zstd only requires that one thread at a time uses it.
unsafe impl Send for ZstdContext {}

impl ZstdContext {
    pub(super) fn new(level: u8) -> Result<ZstdContext, ParquetError> {
        // SAFETY: the function has no conditions. It returns null if there is no memory.
        let context = NonNull::new(unsafe { zstd_sys::ZSTD_createCCtx() });
        let mut context = ZstdContext(context.ok_or_else(|| ParquetError::General("no memory for zstd".into()))?);
        context.set((ZSTD_cParameter::ZSTD_c_compressionLevel, i32::from(level)))?;
        context.set(BLOCK_DELIMITERS)?;
        context.set(NO_REPEATED_OFFSETS)?;
        if level == 1 {
            LEVEL_1.into_iter().try_for_each(|parameter| context.set(parameter))?;
        }
        Ok(context)
    }

    fn set(&mut self, (parameter, value): (ZSTD_cParameter, i32)) -> Result<(), ParquetError> {
        // SAFETY: the context is valid until it is dropped. Invalid parameters are returned as an error.
        length(unsafe { zstd_sys::ZSTD_CCtx_setParameter(self.0.as_ptr(), parameter, value) }).map(|_| ())
    }

    /// Replaces `compressed` by a frame that contains `bytes`.
    pub(super) fn compress(&mut self, bytes: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
        compressed.clear();
        compressed.reserve(compress_bound(bytes.len()));
        // SAFETY: the context is valid. zstd writes to the vector at most as many bytes as its capacity, and returns how
        // many it initialized.
        unsafe {
            let (into, capacity) = (compressed.as_mut_ptr().cast(), compressed.capacity());
            let result = zstd_sys::ZSTD_compress2(self.0.as_ptr(), into, capacity, bytes.as_ptr().cast(), bytes.len());
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
        found: &mut Sequences,
        len: usize,
        compressed: &mut Vec<u8>,
    ) -> Result<(), ParquetError> {
        let Sequences { literals, sequences } = found;
        /// zstd may read so many bytes after the literals.
        const PADDING: usize = 8;
        literals.reserve(PADDING);
        compressed.clear();
        compressed.reserve(compress_bound(len));
        // SAFETY: the context is valid. The vector of literals has the capacity that is stated, and zstd checks that the
        // sequences use exactly its length, that blocks are not longer than allowed, and that all lengths add up to `len`.
        // It writes to `compressed` at most as many bytes as its capacity, and returns how many it initialized.
        unsafe {
            let (into, capacity) = (compressed.as_mut_ptr().cast(), compressed.capacity());
            let result = zstd_sys::ZSTD_compressSequencesAndLiterals(
                self.0.as_ptr(),
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
        unsafe { zstd_sys::ZSTD_freeCCtx(self.0.as_ptr()) };
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
