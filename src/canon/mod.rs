//! Canonicalization of records: a policy and records become rows. The code is pure: it opens no files, starts no threads
//! and does not use Arrow.
//!
//! ```text
//! Records and their Bitmaps --Canonicalizer, by the Policy--> Rows
//!
//! record --canonical http(s) URL?------------------> copy ---------------+
//!    |---http(s) URL, only normalization?----------> iri::Normalizer ----+
//!    |---canonical, another scheme?----------------> copy ---------------+--> uri, keys, faults, flags --> Rows
//!    |---relative, only to be appended?------------> base ---------------+
//!    +---otherwise: decode, repair, resolve (reference)--> iri::Normalizer +
//! ```
//!
//! `row_writer` follows these paths, and `row_keys` makes the keys. `carry` appends the fields that a format has besides the URL,
//! and `recipe_evaluator` the keys of recipes.

mod base;
mod canonicalizer;
mod carry;
mod policy;
mod recipe_evaluator;
mod record_text;
mod reference;
mod row_keys;
mod row_writer;
mod rows;
mod tally;
mod text_column;
mod url_canonicalizer;

pub use canonicalizer::Canonicalizer;
pub(crate) use carry::strip_sha1_prefix;
pub use carry::{CarriedColumns, RowField};
#[cfg(feature = "cli")]
pub(crate) use policy::SCHEME_FORM;
#[cfg(feature = "pipeline")]
pub(crate) use policy::describe_differences;
pub use policy::{MaxUrlLen, Policy, PolicyError, RecipeColumn, Rung};
#[cfg(feature = "cli")]
pub(crate) use reference::assumed_delimiter;
pub use rows::Rows;
pub(crate) use rows::{MAX_FAULT_EXAMPLES, MAX_TEXT_LEN};
pub(crate) use tally::RecipeTally;
pub use tally::Tally;
pub use text_column::TextColumn;
pub use url_canonicalizer::{TextTooLong, UrlCanonicalizer, UrlRow};
