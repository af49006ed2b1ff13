//! The job file. In: a path. Out: its bytes, once in memory, and its lines as every engine gets them.
//!
//! Lines are cut and checked for UTF-8 here, outside the clock and in the peers' favour: irikey gets the bytes alone
//! and cuts and checks them itself, on the clock.

use std::path::Path;

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
}

impl<'a> Input<'a> {
    /// Cuts `bytes` into lines.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        let lines = bytes.split_inclusive(|&b| b == b'\n').map(|line| {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let bytes = line.strip_suffix(b"\r").unwrap_or(line);
            Line { bytes, text: std::str::from_utf8(bytes).ok() }
        });
        Input { bytes, lines: lines.collect() }
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
