//! Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987.

pub mod canon;
pub mod encoding;
pub mod iri;
pub mod kernel;
pub mod key;
pub mod record;

#[cfg(feature = "pipeline")]
pub mod batch;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "pipeline")]
pub mod input;
#[cfg(feature = "pipeline")]
pub mod output;
#[cfg(feature = "pipeline")]
pub mod run;
