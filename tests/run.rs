//! Tests of the module `run`, from sources to parts: the rows do not depend on threads, chunks or the way of reading, and
//! damaged input is reported.

#![cfg(feature = "pipeline")]

#[path = "run/archive_bounds.rs"]
mod archive_bounds;
#[path = "run/changing.rs"]
mod changing;
#[path = "run/collect.rs"]
mod collect;
#[path = "run/csv.rs"]
mod csv;
#[path = "run/damage.rs"]
mod damage;
#[path = "run/dedup.rs"]
mod dedup;
#[path = "run/formats.rs"]
mod formats;
#[path = "run/invariance.rs"]
mod invariance;
#[path = "run/json.rs"]
mod json;
#[path = "run/key_diff.rs"]
mod key_diff;
#[path = "run/lists.rs"]
mod lists;
#[path = "run/parquet_features.rs"]
mod parquet_features;
#[path = "run/pieces.rs"]
mod pieces;
#[path = "run/samples.rs"]
mod samples;
#[path = "run/sort.rs"]
mod sort;
#[path = "run/tables.rs"]
mod tables;
#[path = "run/zip.rs"]
mod zip;
#[path = "run/zstd.rs"]
mod zstd;
