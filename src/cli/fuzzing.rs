//! Private parts of the crate for the fuzz targets in `fuzz/`. Only built with the feature `fuzzing`.

use clap::{Args, FromArgMatches};
use parquet::errors::ParquetError;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

use super::{eval, explain};
use crate::dedup::KeyTable;
use crate::dedup::seen::{SeenError, SeenStore};
use crate::output::Compression;

/// Keeps panics of the crates that decode tables quiet, as the command does.
pub fn set_panic_hook() {
    crate::input::set_panic_hook();
}

/// The answer of `eval` to a line.
pub fn eval(line: &[u8]) -> Value {
    eval::answer_line(line)
}

/// What `explain` prints of `iri` with these flags.
///
/// # Panics
/// If a flag is unknown.
#[cfg(unix)]
pub fn explain(iri: &[u8], flags: &[&str]) -> String {
    use std::os::unix::ffi::OsStringExt;
    let flags = ["explain"].iter().chain(flags).chain(&["--"]).map(OsString::from);
    let command = explain::ExplainArgs::augment_args(clap::Command::new("explain"));
    let matches = command.try_get_matches_from(flags.chain([OsString::from_vec(iri.to_vec())])).expect("known flags");
    let args = explain::ExplainArgs::from_arg_matches(&matches).expect("known flags");
    explain::text(&args).expect("a valid base")
}

/// A key table that counts how often each key was inserted.
#[derive(Debug)]
pub struct KeyCounts(KeyTable<u32>);

impl Default for KeyCounts {
    fn default() -> KeyCounts {
        KeyCounts(KeyTable::new(0))
    }
}

impl KeyCounts {
    /// Inserts each of `keys`, and returns which were new.
    pub fn insert(&mut self, keys: &[u128]) -> Vec<bool> {
        let mut new = vec![false; keys.len()];
        self.0.upsert_all(keys, |i, count, is_new| {
            *count += 1;
            new[i] = is_new;
        });
        new
    }

    /// How often each of `keys` was inserted, and the number of keys.
    pub fn get(&mut self, keys: &[u128]) -> (Vec<Option<u32>>, usize) {
        let mut counts = vec![None; keys.len()];
        self.0.get_all(keys, |i, count| counts[i] = count.copied());
        (counts, self.0.len())
    }
}

/// Adds `keys`, which ascend and are new, to the store in `directory`.
///
/// # Errors
/// The store cannot be used.
pub fn add_seen_keys(directory: &Path, keys: &[u128]) -> Result<(), SeenError> {
    let mut store = SeenStore::open_to_add(directory, &[("key", "fuzz".to_string())])?;
    let mut writer = store.writer()?;
    writer.extend(keys.iter().copied())?;
    let merge = store.due_merge()?;
    let merged = merge.map(|merge| merge.run(&Default::default())).transpose()?.flatten();
    store.add(writer, merged, None)?;
    store.verify()
}

/// Whether the store in `directory` has each of `keys`, which ascend.
///
/// # Errors
/// The store cannot be used.
pub fn find_seen_keys(directory: &Path, keys: &[u128]) -> Result<Vec<bool>, SeenError> {
    let store = SeenStore::open(directory)?;
    let mut cursor = store.cursor(0)?;
    keys.iter().map(|key| cursor.seek(*key)).collect()
}

/// Compresses pages of Parquet, one after the other with the same codec.
///
/// # Errors
/// The codec fails, or is not one for pages.
pub fn compress_pages(compression: Compression, pages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ParquetError> {
    crate::output::compress_pages(compression, pages)
}
