//! RFC 3987: Internationalized Resource Identifiers. Everything here is pure: no I/O, no clock, no threads.
//!
//! # Where to start
//! | task | functions |
//! |---|---|
//! | Is this an IRI, a URI? | [`check_iri`], [`check_iri_reference`], [`check_uri`], [`check_uri_reference`] |
//! | Split a reference | [`Parts::split`] |
//! | Resolve a reference | [`Base`] |
//! | Normalize one IRI | [`normalize_to_rung`]; for many IRIs use [`crate::canon::UrlCanonicalizer`] |
//! | Are two IRIs equivalent? | [`compare`] |
//! | IRI to URI and back | [`to_uri`], [`to_iri`] |
//! | Domain names | [`domain_to_ascii`], [`domain_to_unicode`] |
//! | Right-to-left IRIs | [`check_bidi`], [`bidi_visual`], [`bidi_display`] |
//! | Misleading references | [`find_spoofing`], [`skeleton`] |
//! | References in documents | [`preprocess()`] |
//! | Other specifications | [`Profile`] |
//!
//! Everything that the grammar rejects is a [`Fault`] with kind, component and byte offset. Everything that lenient
//! mode repairs or keeps is a bit in [`Flags`].
//!
//! # The ladder
//! RFC 3987 section 5.3 defines a ladder of comparison methods. Each rung has a text; two IRIs are equivalent on a rung
//! if their texts are equal, and then they are equivalent on all higher rungs:
//! ```text
//! simple   section 5.3.1   the text as it is                                          [`Rung::Simple`]
//! syntax   section 5.3.2   escapes decoded, case, mapping to a URI, dot segments      [`Rung::Syntax`]
//! scheme   section 5.3.3   port, empty path, ToASCII, IPv6 text, file, urn            [`Rung::Scheme`]
//! protocol section 5.3.4   equivalences observed in a crawl, see `crate::learn`
//! ```
//! `ladder` defines the text of each rung by named steps. `normalize` computes the same text in a single pass over a
//! chunk with bitmaps; tests compare the two on every input.
//!
//! # Data flow
//! ```text
//!            field of a document ──preprocess──┐              ┌──> whatwg (a browser's result, for comparison)
//!                                              v              │
//! reference (bytes) ──────────────────> profile::prepare ─────┤
//!                                                             v
//!                   check / ParseMode ──Parts──> resolve against a Base ──> ladder = normalize ──> URI, Flags, Changes
//!                         │                                                    │
//!                         v                                                    v
//!                       Fault                                     spoof, bidi, map::to_iri (for people)
//! ```
//! Files import in one direction only; a file uses the files above it:
//! ```text
//! class       character classes of the ABNF           fault, flags   why there is no URI; what was noticed and changed
//! scheme      rules of individual schemes             parts          a reference split into components
//! percent     escapes: decode, upper case, encode     host           IP literals, IDNA, canonical hosts, their cache
//! check       the grammar; strict and lenient mode    resolve        base + reference, remove_dot_segments
//! map         IRI <-> URI (section 3)                 preprocess     fields of documents
//! ladder      the rungs, step by step                 normalize      the rungs in a single pass
//! bidi        right-to-left IRIs (section 4)          spoof          misleading references (sections 6.1, 7.5, 8)
//! profile     choices of other specifications         whatwg         the URL Standard's parser
//! ```
//!
//! # Decisions
//! The RFC leaves these questions open. The functions named on the right implement the decisions of profile `rfc3987`:
//! ```text
//! %XX of reserved characters    stay, in upper case; nothing is decoded twice          percent::decode_unreserved
//! a % that is not an escape     kept and flagged (strict: a fault); never %25          percent::component_flags
//! characters no URI can contain percent-encoded and flagged (strict: a fault)          percent::percent_encode
//! %2E                           decoded before dot segments are removed                ladder: SYNTAX_STEPS
//! dot segments of a base        removed before resolution                              Base::new, Base::literal
//! path without a leading slash  its dots stay (mailto:a/../b)                          ladder: remove_dot_segments
//! path that would begin with // written as /.//                                        resolve::path_guard
//! ports                         empty: removed; default, leading zeros: by the scheme  ladder: normalize_port
//! userinfo                      kept, also if it is empty                              ladder: OwnedComponents::text
//! hosts of DNS schemes          UTS 46, non-transitional; on failure unchanged         host::idn::idn_to_ascii
//! invalid A-label               lower case, flagged                                    host::idn::idn_to_ascii
//! IPv6 address, IPv4 in hex     RFC 5952; a registered name                            host::ip
//! file, urn                     file:/x is file:///x; NID in lower case                ladder: normalize_file_authority
//! NFC                           only from legacy charsets and inside IDNA              encoding, host::idn
//! relative without a base       a fault, not a key                                     check::missing_scheme
//! ```

mod bidi;
mod check;
pub(crate) mod class;
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
#[cfg(feature = "whatwg")]
mod whatwg;

pub use bidi::{BidiPart, BidiProblem, BidiRules, BidiViolation, bidi_display, bidi_visual, check_bidi, is_bidi};
pub use check::{ParseMode, check_bidi_controls, check_iri, check_iri_reference, check_uri, check_uri_reference};
pub(crate) use class::CLASSIFIER;
pub use fault::{Component, Fault, FaultKind};
pub use flags::{Changes, Flags, SpoofingFlags};
pub use host::idn::{domain_to_ascii, domain_to_unicode};
pub use ladder::{Rung, compare, normalize_to_rung};
pub use map::{HostMapping, QueryCharset, to_iri, to_uri};
pub(crate) use map::{encode_query, uses_query_charset};
pub(crate) use parts::is_scheme;
pub use parts::{Authority, Parts, find_scheme};
pub(crate) use preprocess::references_in;
pub use preprocess::{Backslashes, CharacterReferences, PreprocessOptions, Spaces, preprocess, repair, split_field};
pub use profile::{MappingOptions, Profile};
pub use resolve::{Base, remove_dot_segments};
pub(crate) use scheme::Scheme;
pub use spoof::{SpoofingFinding, SpoofingReport, find_spoofing, skeleton, spoofing_flags};
#[cfg(feature = "whatwg")]
pub use whatwg::whatwg_href;

pub(crate) use check::{check_authority, check_utf8};
pub(crate) use host::idn::unicode_version;
pub(crate) use host::ip::ipv6_text;
pub(crate) use normalize::{
    CanonicalHead, HttpHead, MAX_GROWTH, MarkedReference, Normalizer, ReferenceHead, WEB_PREFIXES,
};
pub(crate) use percent::{
    decode_escapes, escape_invalid_utf8, escape_value, octets, write_encoded, write_form_encoded,
};
pub(crate) use preprocess::trimmed_range;
pub(crate) use resolve::{BasePart, may_be_html_base};

/// Items that only the commands `explain` and `eval` show.
#[cfg(feature = "cli")]
mod details {
    pub(crate) use super::host::idn::{idn_to_ascii, idn_to_unicode};
    pub(crate) use super::ladder::OwnedComponents;
    pub(crate) use super::percent::percent_encode;
    pub(crate) use super::profile::ReferenceParser;
}
#[cfg(feature = "cli")]
pub(crate) use details::*;
