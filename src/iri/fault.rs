//! Faults: why a record has no URI. A [`Fault`] holds kind, component and byte offset; it is small and `Copy`.
//!
//! A fault describes data. It becomes columns of a row and never stops a run.

use std::fmt;

/// Defines an enum whose variants have a name in output and a meaning for people.
macro_rules! described_enum {
    ($(#[$doc:meta])* $enum:ident { $($(#[$variant_doc:meta])* $variant:ident $name:literal $meaning:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $enum {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $enum {
            /// All variants, in the order of their discriminants.
            pub const ALL: [$enum; [$($name),*].len()] = [$($enum::$variant),*];

            /// The name in output and messages.
            pub const fn name(self) -> &'static str {
                match self {
                    $($enum::$variant => $name,)*
                }
            }

            /// One sentence for a person: what is required.
            pub(crate) const fn meaning(self) -> &'static str {
                match self {
                    $($enum::$variant => $meaning,)*
                }
            }
        }

        impl std::fmt::Display for $enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
pub(super) use described_enum;

described_enum! {
    /// What was found that the grammar of RFC 3987 section 2.2, or a rule of this library, does not allow. The names are
    /// the values of the `fault` column.
    FaultKind {
        /// The record is empty, and there is no base to resolve an empty reference against.
        Empty "empty" "the record is empty, and there is no base to resolve it against";
        /// A relative reference without a base (RFC 3987 section 5.1: relative references are not compared).
        Relative "relative"
            "a relative reference needs a base (--base); a host without a scheme needs --assume-scheme";
        /// The text before the first `:` of the first segment is not a scheme (RFC 3986 sections 3.1 and 4.2).
        Scheme "scheme" "a scheme is a letter, then letters, digits, '+', '-' or '.'";
        /// A byte or character that the ABNF rule of the component does not derive.
        Character "character" "this character is not allowed in this component";
        /// A `%` without two hexadecimal digits (RFC 3986 section 2.1).
        PctEncoded "pct-encoded" "'%' must be followed by two hexadecimal digits";
        /// A port with a byte that is not a digit (RFC 3986 section 3.2.3), or, in the profile whatwg, a port above 65535.
        Port "port" "a port consists of digits, and is at most 65535 in the profile whatwg";
        /// The text between `[` and `]` is neither an IPv6address nor an IPvFuture (RFC 3986 section 3.2.2).
        IpLiteral "ip-literal" "an IPv6 address or an IPvFuture is expected between '[' and ']'";
        /// A bidirectional formatting character (RFC 3987 section 4.1); strict mode only.
        BidiControl "bidi-control" "IRIs must not contain bidirectional formatting characters";
        /// Bytes that are not UTF-8; strict mode only.
        NotUtf8 "not-utf8" "these bytes are not UTF-8";
        /// The reference is relative, and its base is not an absolute IRI (RFC 3986 section 5.1).
        Base "base" "the base must be an absolute IRI";
        /// The URL or its record is longer than the maximum length, the base of a page's links is too long, or a field that is
        /// split has too many references.
        TooLong "too-long"
            "the base of a page's links is longer than 16 KiB, or the URL or its record is longer than the maximum \
             length (--max-url, --max-record)";
        /// The record has no field with the number of the chosen column.
        MissingColumn "missing-column" "the record has fewer fields than the number of the chosen column";
        /// The charset label is unknown (RFC 3987 section 3.1, step 1b).
        UnknownCharset "unknown-charset" "a charset must be named by a label of the Encoding Standard";
        /// Bytes that are not valid in the record's charset (RFC 3987 section 3.1, step 1b).
        Undecodable "undecodable" "these bytes are not text in the record's charset";
        /// A character of the query that the document's charset cannot encode (draft-weber-iri-guidelines-00 section 6.1).
        Unencodable "unencodable" "the document's charset cannot encode this character of the query";
        /// The record does not have the format of its source.
        NotOfFormat "not-of-format" "the record does not have the format of its source (--format)";
        /// The record is valid in its format and contains no URL, for example the description of a WARC file.
        NoUrl "no-url" "the record is valid in its format but contains no URL";
    }
}

/// The part of a reference that contains a fault, with the names of RFC 3986 section 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Component {
    /// The reference as a whole.
    Reference,
    /// Before the first `:`.
    Scheme,
    /// Before the `@` of the authority.
    Userinfo,
    /// The authority without userinfo and port.
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
    /// All components, in the order of their discriminants.
    pub(crate) const ALL: [Component; 8] = [
        Component::Reference,
        Component::Scheme,
        Component::Userinfo,
        Component::Host,
        Component::Port,
        Component::Path,
        Component::Query,
        Component::Fragment,
    ];

    /// The name in messages and in the `fault_component` column.
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

/// Why a record has no URI.
///
/// ```
/// use irikey::iri::{Component, FaultKind, check_iri_reference};
/// let fault = check_iri_reference("http://h:8a/").unwrap_err();
/// assert_eq!((fault.kind, fault.component, fault.at), (FaultKind::Port, Component::Port, 10));
/// assert_eq!(fault.to_string(), "port at byte 10: a port consists of digits, and is at most 65535 in the profile whatwg");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What was found.
    pub kind: FaultKind,
    /// The component that contains it.
    pub component: Component,
    /// Byte offset of the first offending byte in the record's URL.
    pub at: u32,
}

impl Fault {
    /// A fault of `kind` in `component` at byte `at`.
    pub const fn new(kind: FaultKind, component: Component, at: usize) -> Fault {
        Fault { kind, component, at: at as u32 }
    }

    /// A fault of a whole reference.
    pub(crate) const fn of_reference(kind: FaultKind) -> Fault {
        Fault::new(kind, Component::Reference, 0)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if self.kind.name() != self.component.name() {
            write!(f, "in {} ", self.component)?;
        }
        write!(f, "at byte {}: {}", self.at, self.kind.meaning())
    }
}

impl std::error::Error for Fault {}
