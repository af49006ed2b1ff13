//! What is wrong with a reference: kind, component, byte offset. In: nothing. Out: [`Fault`], a few bytes, `Copy`.
//!
//! A fault is about data and becomes columns of a row; it never stops a run.

use std::fmt;

/// What was found where the grammar of RFC 3987 section 2.2 (or a rule of this library) wanted something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum FaultKind {
    /// The record has no bytes, and there is no base to resolve an empty reference against.
    Empty,
    /// A relative reference without a base URI (RFC 3987 section 5.1: references are not compared).
    Relative,
    /// The text before the first `:` of the first segment is no scheme (RFC 3986 sections 3.1 and 4.2).
    Scheme,
    /// A byte or character that the component's ABNF rule does not derive.
    Character,
    /// A `%` that two hexadecimal digits do not follow (RFC 3986 section 2.1).
    PctEncoded,
    /// A port with something else than digits (RFC 3986 section 3.2.3).
    Port,
    /// What stands between `[` and `]` is no IPv6address and no IPvFuture (RFC 3986 section 3.2.2).
    IpLiteral,
    /// A bidirectional formatting character (RFC 3987 section 4.1), strict intake only.
    BidiControl,
    /// Bytes that are not UTF-8, strict intake only.
    NotUtf8,
    /// The base of this record is no absolute IRI, and the reference needs one (RFC 3986 section 5.1).
    Base,
    /// More bytes than an offset can count.
    TooLong,
    /// The record has no such field.
    MissingColumn,
    /// The label names no charset that is known (RFC 3987 section 3.1, step 1b).
    UnknownCharset,
    /// Bytes that are not text in the record's charset (RFC 3987 section 3.1, step 1b).
    Undecodable,
    /// A query's character that the document's charset lacks (draft-weber-iri-guidelines-00 section 6.1).
    Unencodable,
    /// The record is not written as the records of its source's format are.
    NotOfFormat,
    /// The record is of its format and names no URL: a WARC file's own description, for one.
    NoUrl,
}

impl FaultKind {
    /// All kinds, in the order of their discriminants.
    pub const ALL: [FaultKind; 17] = [
        FaultKind::Empty,
        FaultKind::Relative,
        FaultKind::Scheme,
        FaultKind::Character,
        FaultKind::PctEncoded,
        FaultKind::Port,
        FaultKind::IpLiteral,
        FaultKind::BidiControl,
        FaultKind::NotUtf8,
        FaultKind::Base,
        FaultKind::TooLong,
        FaultKind::MissingColumn,
        FaultKind::UnknownCharset,
        FaultKind::Undecodable,
        FaultKind::Unencodable,
        FaultKind::NotOfFormat,
        FaultKind::NoUrl,
    ];

    /// The name that stands in the `fault` column.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Empty => "empty",
            FaultKind::Relative => "relative",
            FaultKind::Scheme => "scheme",
            FaultKind::Character => "character",
            FaultKind::PctEncoded => "pct-encoded",
            FaultKind::Port => "port",
            FaultKind::IpLiteral => "ip-literal",
            FaultKind::BidiControl => "bidi-control",
            FaultKind::NotUtf8 => "not-utf8",
            FaultKind::Base => "base",
            FaultKind::TooLong => "too-long",
            FaultKind::MissingColumn => "missing-column",
            FaultKind::UnknownCharset => "unknown-charset",
            FaultKind::Undecodable => "undecodable",
            FaultKind::Unencodable => "unencodable",
            FaultKind::NotOfFormat => "not-of-format",
            FaultKind::NoUrl => "no-url",
        }
    }

    /// One sentence for a person: what was expected.
    pub const fn meaning(self) -> &'static str {
        match self {
            FaultKind::Empty => "nothing here, and no base to resolve it against",
            FaultKind::Relative => "a relative reference needs a base (--base or --base-column)",
            FaultKind::Scheme => "a scheme is a letter, then letters, digits, '+', '-' or '.'",
            FaultKind::Character => "this character is not allowed in this component",
            FaultKind::PctEncoded => "'%' must be followed by two hexadecimal digits",
            FaultKind::Port => "a port is digits only",
            FaultKind::IpLiteral => "between '[' and ']' stands an IPv6 address or an IPvFuture",
            FaultKind::BidiControl => "IRIs must not contain bidirectional formatting characters",
            FaultKind::NotUtf8 => "these bytes are not UTF-8",
            FaultKind::Base => "the base must be an absolute IRI",
            FaultKind::TooLong => "longer than the longest record that is taken",
            FaultKind::MissingColumn => "the record has fewer fields than the chosen column's number",
            FaultKind::UnknownCharset => "a charset is named by a label of the Encoding Standard",
            FaultKind::Undecodable => "these bytes are not text in the record's charset",
            FaultKind::Unencodable => "the document's charset lacks this character of the query",
            FaultKind::NotOfFormat => "the record is not written as its source's format (--format) has it",
            FaultKind::NoUrl => "a record of the format, but one that names no URL",
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The part of a reference in which a fault stands, named as RFC 3986 section 3 names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Component {
    /// The reference as a whole.
    Reference,
    /// Before the first `:`.
    Scheme,
    /// Before the `@` of the authority.
    Userinfo,
    /// The authority less userinfo and port.
    Host,
    /// After the last `:` of the authority.
    Port,
    /// Up to the first `?` or `#`.
    Path,
    /// Between `?` and `#`.
    Query,
    /// After `#`.
    Fragment,
}

impl Component {
    /// The name shown to people and in the `fault_component` column.
    pub const fn name(self) -> &'static str {
        match self {
            Component::Reference => "reference",
            Component::Scheme => "scheme",
            Component::Userinfo => "userinfo",
            Component::Host => "host",
            Component::Port => "port",
            Component::Path => "path",
            Component::Query => "query",
            Component::Fragment => "fragment",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a record has no URI: `at` is the offset in bytes of the first offending byte of the record's URL.
///
/// ```
/// use irikey::iri::{Component, FaultKind, check_iri_reference};
/// let fault = check_iri_reference("http://h:8a/").unwrap_err();
/// assert_eq!((fault.kind, fault.component, fault.at), (FaultKind::Port, Component::Port, 10));
/// assert_eq!(fault.to_string(), "port in port at byte 10: a port is digits only");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What was found.
    pub kind: FaultKind,
    /// In which component.
    pub component: Component,
    /// Byte offset into the reference.
    pub at: u32,
}

impl Fault {
    /// A fault of `kind` in `component` at byte `at`.
    pub const fn new(kind: FaultKind, component: Component, at: usize) -> Fault {
        Fault { kind, component, at: at as u32 }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} at byte {}: {}", self.kind, self.component, self.at, self.kind.meaning())
    }
}

impl std::error::Error for Fault {}
