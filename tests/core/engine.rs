//! What is tested: one trait, one implementation an engine. In: bytes. Out: text, or nothing where it is refused.
//!
//! [`engines`] lists all of them; every case and every property runs on each, and each is compared with the oracle.

use crate::oracle::{dots, grammar, ladder, mapping, resolve};

pub use crate::oracle::ladder::Rung;
pub use crate::oracle::resolve::Base;

/// All rungs, lowest first.
pub const RUNGS: [Rung; 3] = [Rung::Simple, Rung::Syntax, Rung::Scheme];

/// Which start symbol of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `IRI`, RFC 3987 section 2.2
    Iri,
    /// `IRI-reference`
    IriReference,
    /// `URI`, RFC 3986 appendix A
    Uri,
    /// `URI-reference`
    UriReference,
}

/// All start symbols.
pub const KINDS: [Kind; 4] = [Kind::Iri, Kind::IriReference, Kind::Uri, Kind::UriReference];

/// An implementation of the RFCs.
pub trait Engine: Sync {
    /// Shown in misses.
    fn name(&self) -> &'static str;
    /// The grammar alone; bytes that are not UTF-8 are derived by nothing.
    fn validate(&self, kind: Kind, input: &[u8]) -> bool;
    /// RFC 3986 section 5, without normalisation of what comes out.
    fn resolve(&self, base: &str, reference: &str, reading: Base) -> Option<String>;
    /// RFC 3987 section 5.3.
    fn normalize(&self, input: &[u8], rung: Rung, strict: bool) -> Option<String>;
    /// RFC 3986 section 5.2.4.
    fn remove_dot_segments(&self, path: &str) -> String;
    /// RFC 3987 section 3.1, host percent-encoded.
    fn to_uri(&self, input: &[u8], lenient: bool) -> Option<String>;
    /// RFC 3987 section 3.1, host by ToASCII.
    fn to_uri_ascii(&self, input: &[u8], lenient: bool) -> Option<String>;
}

/// Every engine under test. The oracle stands first: the others are compared with it.
pub fn engines() -> Vec<&'static dyn Engine> {
    vec![&Oracle]
}

/// The literal transcription of the RFCs.
pub struct Oracle;

impl Engine for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn validate(&self, kind: Kind, input: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        match kind {
            Kind::Iri => grammar::is_iri(text),
            Kind::IriReference => grammar::is_iri_reference(text),
            Kind::Uri => grammar::is_uri(text),
            Kind::UriReference => grammar::is_uri_reference(text),
        }
    }

    fn resolve(&self, base: &str, reference: &str, reading: Base) -> Option<String> {
        resolve::resolve(base, reference, reading)
    }

    fn normalize(&self, input: &[u8], rung: Rung, strict: bool) -> Option<String> {
        ladder::normalize(input, rung, strict).ok()
    }

    fn remove_dot_segments(&self, path: &str) -> String {
        dots::remove_dot_segments(path)
    }

    fn to_uri(&self, input: &[u8], lenient: bool) -> Option<String> {
        mapping::to_uri(input, lenient)
    }

    fn to_uri_ascii(&self, input: &[u8], lenient: bool) -> Option<String> {
        mapping::to_uri_ascii(input, lenient)
    }
}
