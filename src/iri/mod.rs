//! RFC 3987, pure: references in, verdicts and texts out.
//!
//! ```text
//! class    the ABNF's character classes            parts      a reference taken apart, offsets only
//! check    is it an IRI? the first fault           percent    escapes: decode, upper-case, encode
//! dots     remove_dot_segments                     host       IP literals, UTS 46
//! scheme   what schemes add                        resolve    base + reference -> target
//! ladder   the rungs, step by step, slow           normalize  the same in one walk, fast
//! map      IRI -> URI and back (section 3)         fault, flags   what was found
//! bidi     right-to-left IRIs (section 4)          spoof      look-alikes (sections 6.1, 7.5, 8)
//! profile  other specifications' choices           preprocess     a document's field -> references
//! weber    a split that never fails                whatwg         the browser's parser, for comparison
//! ```
//!
//! The ladder is the definition; the fused pass in `normalize` equals it on every input.

mod bidi;
mod check;
mod class;
mod domain;
mod dots;
mod fault;
mod flags;
mod host;
mod ladder;
mod map;
mod normalize;
mod parts;
mod percent;
mod preprocess;
mod profile;
mod resolve;
mod scheme;
mod spoof;
mod weber;
#[cfg(feature = "whatwg")]
mod whatwg;

pub use bidi::{BidiPart, BidiProblem, BidiRules, BidiViolation, bidi_display, bidi_visual, check_bidi, is_bidi};
pub use check::{check_authority, check_bidi_controls, check_iri, check_iri_reference, check_uri, check_uri_reference};
pub use class::CLASSIFIER;
pub use domain::{domain_to_ascii, domain_to_unicode};
pub use dots::remove_dot_segments;
pub use fault::{Component, Fault, FaultKind};
pub use flags::{Changes, Flags, SpoofingFlags};
pub use host::{idn_to_ascii, ipv6_text, is_ip_literal};
pub use ladder::{OwnedComponents, ParseMode, Rung, normalize_to_rung};
pub use map::{HostMapping, QueryCharset, encode_query, idn_to_unicode, to_iri, to_uri, uses_query_charset};
pub use normalize::{CanonicalHead, HttpHead, MarkedReference, Normalizer, ReferenceHead};
pub use parts::{Authority, Parts, find_scheme};
pub use percent::encode as percent_encode;
pub use preprocess::{Backslashes, CharacterReferences, PreprocessOptions, Spaces, preprocess, repair, split_field};
pub use profile::{
    AcceptedInput, DecodedEscapes, ExcludedAscii, HostRepertoire, MappingOptions, NormalForm, Profile, ReferenceParser,
    Repertoire,
};
pub use resolve::Base;
pub use scheme::Scheme;
pub use spoof::{SpoofingFinding, SpoofingReport, find_spoofing, skeleton, spoofing_flags};
pub use weber::{Split as WeberSplit, split as weber_split};
#[cfg(feature = "whatwg")]
pub use whatwg::{WhatwgParts, whatwg_href, whatwg_parts};

/// Version of Unicode that hosts are mapped by: that of the data behind the idna crate.
pub const UNICODE_VERSION: &str = "17.0";
