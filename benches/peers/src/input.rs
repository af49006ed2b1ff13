//! The input file in memory, as bytes and as lines.
//!
//! Lines are cut and checked for UTF-8 here, before the clock starts, which favors the peers: irikey receives only the
//! bytes and does both while the clock runs.

use std::path::Path;

/// Default size of the batches of an engine that returns columns, in bytes of output.
pub const BATCH_LEN: usize = 1 << 20;

/// One line without its `LF` or `CR LF`.
pub struct Line<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The same as text, if they are UTF-8.
    pub text: Option<&'a str>,
}

/// The bytes of the input and its lines.
pub struct Input<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// All lines; a last line without `LF` counts.
    pub lines: Vec<Line<'a>>,
    /// Size of the batches of an engine that returns columns, in bytes of output.
    pub batch_len: usize,
}

impl<'a> Input<'a> {
    /// Divides `bytes` into lines.
    pub fn new(bytes: &'a [u8], batch_len: usize) -> Input<'a> {
        let lines = bytes.split_inclusive(|&b| b == b'\n').map(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let bytes = line.strip_suffix(b"\r").unwrap_or(line);
            Line { bytes, text: std::str::from_utf8(bytes).ok() }
        });
        Input { bytes, lines: lines.collect(), batch_len }
    }
}

/// Reads the file at `path`.
pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if bytes.is_empty() {
        return Err(format!("{} is empty; generate a corpus with scripts/corpus", path.display()));
    }
    Ok(bytes)
}
