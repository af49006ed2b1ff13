//! The job file. In: a path. Out: its bytes, once in memory, and its lines as every engine gets them.
//!
//! Lines are cut and checked for UTF-8 here, outside the clock and in the peers' favour: irikey gets the bytes alone
//! and cuts and checks them itself, on the clock.

use std::path::Path;

/// Bytes of answers after which an engine that answers in columns hands them on, unless told.
pub const BATCH_LEN: usize = 1 << 20;

/// One line without its `LF` or `CR LF`.
pub struct Line<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The same as text, where they are UTF-8.
    pub text: Option<&'a str>,
}

/// The bytes of the job and its lines.
pub struct Input<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// Its lines, none left out; a last line without `LF` counts.
    pub lines: Vec<Line<'a>>,
    /// Bytes of answers after which an engine that answers in columns hands them on.
    pub batch_len: usize,
}

impl<'a> Input<'a> {
    /// Cuts `bytes` into lines.
    pub fn new(bytes: &'a [u8], batch_len: usize) -> Input<'a> {
        let lines = bytes.split_inclusive(|&b| b == b'\n').map(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let bytes = line.strip_suffix(b"\r").unwrap_or(line);
            Line { bytes, text: std::str::from_utf8(bytes).ok() }
        });
        Input { bytes, lines: lines.collect(), batch_len }
    }
}

/// Reads the whole of `path`.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: cannot read: {error}", path.display()))?;
    if bytes.is_empty() {
        return Err(format!("{}: no lines in it / make one with scripts/corpus", path.display()));
    }
    Ok(bytes)
}
