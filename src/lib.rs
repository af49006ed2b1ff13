//! Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987.
//!
//! Data flows one way, and each room uses rooms below it only:
//!
//! ```text
//! bytes ──> record ──> row ──> batch ──> file
//!
//! input     files, pipes, archives -> blocks of bytes                   (opens files; maps; unpacks)
//! record    chunk -> borrowed records, of every crawl format            (pure)
//! canon     policy + records -> rows                                    (pure)
//! batch     rows -> Arrow, by the one list of columns
//! dedup     keys -> which rows to keep
//! sort      batches in any order -> the same rows in order
//! output    batches -> Parquet, Arrow IPC, CSV, JSON lines, text        (writes files)
//! run       cut -> work -> order -> append: wires the rooms together    (the only threads)
//! extract   documents, HTML and XML -> the IRIs in them, with their bases (pure)
//! cli       flags, progress, report, exit statuses                      (the only terminal and clock)
//!
//! kernel    byte loops that know nothing of IRIs                        (pure)
//! encoding  bytes -> text                                               (pure)
//! learn     observed redirects -> equivalences -> keys of the rung protocol (pure)
//! iri       RFC 3987: grammar, ladder, resolution, mapping              (pure)
//! key       a rung's text -> 128 bits; recipes: the keys of archives     (pure)
//! ```
//!
//! The pure rooms need no feature of the crate and are a library of their own:
//!
//! ```
//! use irikey::iri::{ParseMode, Rung, normalize_to_rung};
//! use irikey::key::KeyAlgorithm;
//! let (a, _) = normalize_to_rung("HTTP://Example.com:80/%7Euser".as_bytes(), Rung::Scheme, ParseMode::Strict).unwrap();
//! let (b, _) = normalize_to_rung("http://example.com/~user".as_bytes(), Rung::Scheme, ParseMode::Strict).unwrap();
//! assert_eq!(a, b);
//! assert_eq!(KeyAlgorithm::Xxh3.key(&a), KeyAlgorithm::Xxh3.key(&b));
//! ```

pub mod canon;
pub mod encoding;
#[cfg(feature = "extract")]
pub mod extract;
pub mod iri;
pub mod kernel;
pub mod key;
pub mod learn;
pub mod record;

#[cfg(feature = "batch")]
pub mod batch;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "pipeline")]
pub mod dedup;
#[cfg(feature = "pipeline")]
pub mod input;
#[cfg(feature = "pipeline")]
pub mod output;
#[cfg(feature = "pipeline")]
pub mod run;
#[cfg(feature = "pipeline")]
pub mod sort;
