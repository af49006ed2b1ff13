//! Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987.
//!
//! The library has two parts. The *core* (layers 0 to 4, except `ordered` and `process`) normalizes references, compares them and
//! makes keys. It is pure: it opens no files, starts no threads, reads no clock, and does not need Arrow. The
//! *pipeline* (layers 5 to 8) reads and writes files with it, in parallel. A test holds both statements.
//!
//! # Example
//!
//! ```
//! use irikey::iri::{ParseMode, Rung, normalize_to_rung};
//! use irikey::key::KeyAlgorithm;
//! let (a, _) = normalize_to_rung("HTTP://Example.com:80/%7Euser".as_bytes(), Rung::Scheme, ParseMode::Strict).unwrap();
//! let (b, _) = normalize_to_rung("http://example.com/~user".as_bytes(), Rung::Scheme, ParseMode::Strict).unwrap();
//! assert_eq!(a, b);
//! assert_eq!(KeyAlgorithm::Xxh3.key(&a), KeyAlgorithm::Xxh3.key(&b));
//! ```
//!
//! # Where to start
//!
//! | task | item |
//! |---|---|
//! | Normalize, resolve, check or convert one IRI | [`iri`] has a table of functions |
//! | The key of a text; keys of crawl software such as SURT | [`key::KeyAlgorithm`], [`key::Recipe`] |
//! | Canonicalize many URLs in memory | [`canon::UrlCanonicalizer`] |
//! | The same for the records of a format | [`record::TextDecoder`], [`canon::Canonicalizer`] |
//! | The same as Arrow record batches | `batch::BatchBuilder` (feature `batch`) |
//! | References in documents | `extract::extract` (feature `extract`) |
//! | Files to files: canonicalize, sort, deduplicate, count | `run` has an example (feature `pipeline`) |
//!
//! # Layers
//!
//! Data flows from sources to parts: `source -> block -> chunk -> records -> rows -> batch -> row group -> part`. A
//! module imports only from lower layers; modules of one layer do not import each other.
//!
//! | layer | modules | contents |
//! |---:|---|---|
//! | 9 | `cli` | the command: flags, progress, reports, exit codes; nothing else prints |
//! | 8 | `run` | jobs: cut, normalize, order, write; dedup, sort, learn and extract; owns the threads and the memory budget |
//! | 7 | `input` `output` | opening, mapping and decompressing files, reading tables and stores; writing Parquet, Arrow, CSV, JSON lines, text, CDXJ and ZipNum |
//! | 6 | `dedup` `sort` | policies and data structures over keys and batches |
//! | 5 | `batch` `remote` `spill` | rows as Arrow batches and the one list of columns; objects in stores and on HTTP servers; temporary data on disk |
//! | 4 | `canon` | a policy applied to records gives rows |
//! | 3 | `extract` `learn` | references in HTML and XML documents; equivalences learned from redirects and contents |
//! | 2 | `key` `record` | hashes, recipes and public suffixes; decoders of every crawl format |
//! | 1 | `iri` | RFC 3987: grammar, comparison ladder, resolution, mapping, bidi, profiles |
//! | 0 | `encoding` `kernel` `ordered` `process` | charsets; byte loops, positions and SIMD; ordered work of several threads; signals, temporary files, exit code |
//!
//! # Features
//!
//! The core needs no feature.
//!
//! | feature | adds |
//! |---|---|
//! | `cli` (default) | the command, with all features below except `ffi` and `remote` |
//! | `batch` | Arrow record batches |
//! | `ffi` | the C data interface of Arrow |
//! | `pipeline` | files and threads |
//! | `remote` | objects in S3, Google Cloud Storage and Azure, and files on HTTP servers |
//! | `extract` | references in HTML and XML documents |
//! | `whatwg` | the parser of the URL Standard, as browsers have it |

// Without the feature `cli`, parts of what the modules offer each other are unused.
#![cfg_attr(not(feature = "cli"), allow(dead_code, unused_imports))]
#![warn(unreachable_pub)]

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
mod ordered;
#[cfg(feature = "pipeline")]
pub mod output;
#[cfg(feature = "pipeline")]
pub mod process;
#[cfg(feature = "pipeline")]
mod remote;
#[cfg(feature = "pipeline")]
pub mod run;
#[cfg(feature = "pipeline")]
pub mod sort;
#[cfg(feature = "pipeline")]
mod spill;

/// Compiles the examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

/// Compiles the examples of the guide.
#[cfg(all(doctest, feature = "remote"))]
#[doc = include_str!("../docs/guide/rust.md")]
struct GuideExamples;
