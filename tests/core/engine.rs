//! The implementations under test, behind one trait. An operation returns `None` if the engine rejects the input.
//!
//! [`engines`] lists all of them. Every case and every property runs on each, and each is compared with the oracle.

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::{self, HostMapping, ParseMode};
use irikey::kernel::{Bitmaps, Span};
use irikey::record::{RecordOffsets, Records};

use crate::oracle::{dots, grammar, ladder, mapping, resolve};

pub use crate::oracle::ladder::Rung;
pub use crate::oracle::resolve::Base;

/// All rungs, from the lowest to the highest.
pub const RUNGS: [Rung; 3] = [Rung::Simple, Rung::Syntax, Rung::Scheme];

/// A start symbol of the grammar.
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
    /// The name that failure messages show.
    fn name(&self) -> &'static str;
    /// Reports whether the grammar derives the input. No rule derives bytes that are not UTF-8.
    fn validate(&self, kind: Kind, input: &[u8]) -> bool;
    /// RFC 3986 section 5; the target is not normalized.
    fn resolve(&self, base: &str, reference: &str, reading: Base) -> Option<String>;
    /// RFC 3987 section 5.3.
    fn normalize(&self, input: &[u8], rung: Rung, strict: bool) -> Option<String>;
    /// RFC 3986 section 5.2.4.
    fn remove_dot_segments(&self, path: &str) -> String;
    /// RFC 3987 section 3.1, with the host percent-encoded.
    fn to_uri(&self, input: &[u8], lenient: bool) -> Option<String>;
    /// RFC 3987 section 3.1, with the host converted by ToASCII.
    fn to_uri_ascii(&self, input: &[u8], lenient: bool) -> Option<String>;
    /// RFC 3987 section 3.2 of a reference in ASCII; the host is not converted.
    fn to_iri(&self, uri: &str) -> String;
}

/// Every engine under test. The oracle is first; the others are compared with it.
pub fn engines() -> Vec<&'static dyn Engine> {
    vec![&Oracle, &Ladder, &Fused]
}

/// The literal transcription of the RFCs in `tests/oracle`.
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

    fn to_iri(&self, uri: &str) -> String {
        mapping::to_iri(uri)
    }
}

/// The library, one step of the ladder after the other.
pub struct Ladder;

/// The library, in the single pass over a chunk; the record has neighbors in the chunk.
pub struct Fused;

fn library_rung(rung: Rung) -> iri::Rung {
    match rung {
        Rung::Simple => iri::Rung::Simple,
        Rung::Syntax => iri::Rung::Syntax,
        Rung::Scheme => iri::Rung::Scheme,
    }
}

pub fn parse_mode(strict: bool) -> ParseMode {
    if strict { ParseMode::Strict } else { ParseMode::Lenient }
}

/// Bytes before and after the record. They change the result if the library reads past the record.
const BEFORE: &[u8] = b"http://h/-/%\n-/";
const AFTER: &[u8] = b"41.-/.\xA9\nhttp://h/";

/// Canonicalizes `input` in the single pass. `at` shifts the record within the 64-byte words of the chunk.
pub fn fused_rows(input: &[u8], at: usize, policy: &Policy) -> Rows {
    let padding = vec![b'-'; at];
    let text = [&padding, BEFORE, input, AFTER].concat();
    let span = Span { at: (at + BEFORE.len()) as u32, len: input.len() as u32 };
    let mut bitmaps = Bitmaps::default();
    let mut rows = Rows::default();
    let records = Records { text: &text, urls: &[span], offsets: RecordOffsets::From(0), ..Records::default() };
    records.classify(&mut bitmaps);
    Canonicalizer::new(policy).append(&records, &bitmaps, &mut rows);
    rows
}

impl Engine for Ladder {
    fn name(&self) -> &'static str {
        "ladder"
    }

    fn validate(&self, kind: Kind, input: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(input) else { return false };
        match kind {
            Kind::Iri => iri::check_iri(text).is_ok(),
            Kind::IriReference => iri::check_iri_reference(text).is_ok(),
            Kind::Uri => iri::check_uri(text).is_ok(),
            Kind::UriReference => iri::check_uri_reference(text).is_ok(),
        }
    }

    fn resolve(&self, base: &str, reference: &str, reading: Base) -> Option<String> {
        let base = match reading {
            Base::Normalized => iri::Base::new(base.as_bytes()),
            Base::Literal => iri::Base::literal(base.as_bytes()),
        };
        String::from_utf8(base.ok()?.resolve_rfc3986(reference.as_bytes()).ok()?).ok()
    }

    fn normalize(&self, input: &[u8], rung: Rung, strict: bool) -> Option<String> {
        let (text, _) = iri::normalize_to_rung(input, library_rung(rung), parse_mode(strict)).ok()?;
        String::from_utf8(text).ok()
    }

    fn remove_dot_segments(&self, path: &str) -> String {
        let mut bytes = path.as_bytes().to_vec();
        iri::remove_dot_segments(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn to_uri(&self, input: &[u8], lenient: bool) -> Option<String> {
        iri::to_uri(input, parse_mode(!lenient), HostMapping::Percent).ok()
    }

    fn to_uri_ascii(&self, input: &[u8], lenient: bool) -> Option<String> {
        iri::to_uri(input, parse_mode(!lenient), HostMapping::Ascii).ok()
    }

    fn to_iri(&self, uri: &str) -> String {
        iri::to_iri(uri, HostMapping::Percent)
    }
}

impl Engine for Fused {
    fn name(&self) -> &'static str {
        "fused"
    }

    fn validate(&self, kind: Kind, input: &[u8]) -> bool {
        Ladder.validate(kind, input)
    }

    fn resolve(&self, base: &str, reference: &str, reading: Base) -> Option<String> {
        Ladder.resolve(base, reference, reading)
    }

    fn normalize(&self, input: &[u8], rung: Rung, strict: bool) -> Option<String> {
        if rung == Rung::Simple {
            return Ladder.normalize(input, rung, strict);
        }
        let policy = Policy { rung: library_rung(rung), mode: parse_mode(strict), ..Policy::default() };
        let rows = fused_rows(input, input.len() % 61, &policy);
        rows.faults.is_empty().then(|| String::from_utf8(rows.uri.get(0).to_vec()).expect("URIs are ASCII"))
    }

    fn remove_dot_segments(&self, path: &str) -> String {
        Ladder.remove_dot_segments(path)
    }

    fn to_uri(&self, input: &[u8], lenient: bool) -> Option<String> {
        Ladder.to_uri(input, lenient)
    }

    fn to_uri_ascii(&self, input: &[u8], lenient: bool) -> Option<String> {
        Ladder.to_uri_ascii(input, lenient)
    }

    fn to_iri(&self, uri: &str) -> String {
        Ladder.to_iri(uri)
    }
}
