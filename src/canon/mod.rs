//! Policy and records in, rows out. Owns the scratch that a worker reuses; opens nothing, starts nothing.
//!
//! ```text
//! Records --(bitmaps of the chunk)--> each record: prepare? -> resolve? -> iri::normalize -> key --> Rows
//! ```

mod browser;
mod canonicalizer;
mod carry;
mod policy;
mod prepare;
mod recipes;
mod retain;
mod rows;
mod take;

pub use canonicalizer::Canonicalizer;
pub use carry::{CarriedColumns, RowField};
pub use policy::{Policy, Rung};
pub use recipes::{RecipeColumn, RecipeTally};
pub use rows::{Rows, Tally, TextColumn};
