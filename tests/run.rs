//! The run room from sources to parts: the same rows however the work is done, whatever is wrong with the input.

#![cfg(feature = "pipeline")]

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
#[path = "run/lists.rs"]
mod lists;
#[path = "run/samples.rs"]
mod samples;
#[path = "run/signals.rs"]
mod signals;
#[path = "run/sort.rs"]
mod sort;
#[path = "run/tables.rs"]
mod tables;
