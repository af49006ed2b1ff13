//! The comparison ladder of RFC 3987 section 5.3, as named steps that read like the RFC: slow, and what the fused pass
//! in `normalize.rs` must equal. In: an IRI's bytes. Out: its canonical text on a rung, step by step where asked.

use super::check::{check_authority_lenient, check_bidi_controls, check_iri, check_path_noscheme};
use super::dots::remove_dot_segments;
use super::host::{idn_to_ascii, ipv6_text, lower_case_outside_escapes, may_be_idn};
use super::parts::Parts;
use super::percent::{component_flags, decode_unreserved, encode, upper_case_escapes};
use super::resolve::path_guard;
use super::scheme::Scheme;
use super::{Changes, Component, Fault, FaultKind, Flags};

/// A step of the comparison ladder, RFC 3987 section 5.3. Equal on a rung implies equal on every higher one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// Section 5.3.1: the characters as they are.
    Simple,
    /// Section 5.3.2: case, percent-encoding, mapping to a URI, dot segments.
    Syntax,
    /// Section 5.3.3: ports, empty paths, hosts, per-scheme rules.
    #[default]
    Scheme,
}

impl Rung {
    /// All rungs, lowest first.
    pub const ALL: [Rung; 3] = [Rung::Simple, Rung::Syntax, Rung::Scheme];

    /// The name in `--rung`, `--key` and column names.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::Simple => "simple",
            Rung::Syntax => "syntax",
            Rung::Scheme => "scheme",
        }
    }

    /// The rung of that name.
    pub fn from_name(name: &str) -> Option<Rung> {
        Rung::ALL.into_iter().find(|rung| rung.name() == name)
    }
}

/// What becomes of text that the grammar of RFC 3987 section 2.2 refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ParseMode {
    /// Characters that may not stand in an IRI are percent-encoded or kept, and flagged; only what cannot be
    /// taken apart is a fault. For crawl data.
    #[default]
    Lenient,
    /// Whatever the grammar or section 4.1 refuses is a fault.
    Strict,
}

impl ParseMode {
    /// The name in files' metadata.
    pub const fn name(self) -> &'static str {
        match self {
            ParseMode::Lenient => "lenient",
            ParseMode::Strict => "strict",
        }
    }

    /// Takes in one absolute IRI, or says why not.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(self, text: &[u8]) -> Result<Parts, Fault> {
        match self {
            ParseMode::Lenient => check_lenient(text),
            ParseMode::Strict => check_strict(text),
        }
    }
}

/// Section 2.2, and section 4.1's ban.
pub(super) fn check_strict(text: &[u8]) -> Result<Parts, Fault> {
    if text.is_empty() {
        return Err(Fault::new(FaultKind::Empty, Component::Reference, 0));
    }
    let text = std::str::from_utf8(text)
        .map_err(|error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to()))?;
    let parts = check_iri(text)?;
    check_bidi_controls(text)?;
    Ok(parts)
}

fn check_lenient(text: &[u8]) -> Result<Parts, Fault> {
    if text.is_empty() {
        return Err(Fault::new(FaultKind::Empty, Component::Reference, 0));
    }
    let parts = Parts::split(text);
    if parts.scheme_len.is_none() {
        check_path_noscheme(text)?;
        return Err(Fault::new(FaultKind::Relative, Component::Reference, 0));
    }
    if let Some(authority) = parts.authority {
        check_authority_lenient(text, authority)?;
    }
    Ok(parts)
}

/// An absolute IRI on its way up the ladder: each component with text of its own.
///
/// ```
/// use irikey::iri::{OwnedComponents, ParseMode};
/// let mut climb = OwnedComponents::new(b"eXAMPLE://a/./b/../b/%63/%7bfoo%7d/ros\xC3\xA9", ParseMode::Strict).unwrap();
/// climb.syntax();
/// assert_eq!(climb.text(), b"example://a/b/c/%7Bfoo%7D/ros%C3%A9");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedComponents {
    scheme: Vec<u8>,
    userinfo: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    fragment: Option<Vec<u8>>,
    /// What was noticed so far.
    pub flags: Flags,
}

/// A step's name is the bit that it sets in [`Changes`]; the steps are run in the order listed.
type Step = (Changes, fn(&mut OwnedComponents));

impl OwnedComponents {
    /// Section 5.3.2, syntax-based normalisation.
    pub const SYNTAX_STEPS: [Step; 5] = [
        (Changes::PCT_DECODED, OwnedComponents::percent_encoding_normalization),
        (Changes::PCT_CASE, OwnedComponents::escape_case),
        (Changes::CASE, OwnedComponents::case_normalization),
        (Changes::PCT_ENCODED, OwnedComponents::map_to_uri),
        (Changes::DOT_SEGMENTS, OwnedComponents::path_segment_normalization),
    ];

    /// Section 5.3.3, scheme-based normalisation.
    pub const SCHEME_STEPS: [Step; 6] = [
        (Changes::PORT, OwnedComponents::port_normalization),
        (Changes::EMPTY_PATH, OwnedComponents::empty_path),
        (Changes::IDNA, OwnedComponents::host_to_ascii),
        (Changes::IP_LITERAL, OwnedComponents::ip_literal_text),
        (Changes::FILE_HOST, OwnedComponents::file_authority),
        (Changes::URN_NID, OwnedComponents::urn_namespace),
    ];

    /// Takes an absolute IRI apart.
    ///
    /// # Errors
    /// What `intake` refuses.
    pub fn new(text: &[u8], intake: ParseMode) -> Result<OwnedComponents, Fault> {
        let parts = intake.check(text)?;
        let own = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
        let mut climb = OwnedComponents {
            scheme: parts.scheme(text).unwrap_or_default().to_vec(),
            userinfo: own(parts.userinfo(text)),
            host: own(parts.host(text)),
            port: own(parts.port(text)),
            path: parts.path(text).to_vec(),
            query: own(parts.query(text)),
            fragment: own(parts.fragment(text)),
            flags: Flags::NONE,
        };
        climb.flags = climb.encoded_flags();
        Ok(climb)
    }

    /// All steps of section 5.3.2.
    pub fn syntax(&mut self) {
        OwnedComponents::SYNTAX_STEPS.iter().for_each(|(_, step)| step(self));
    }

    /// All steps of section 5.3.3; those of 5.3.2 come first.
    pub fn scheme(&mut self) {
        OwnedComponents::SCHEME_STEPS.iter().for_each(|(_, step)| step(self));
    }

    /// The components put together, RFC 3986 section 5.3; a path that would be read as an authority is guarded by `/.`.
    pub fn text(&self) -> Vec<u8> {
        let mut out = [&self.scheme[..], b":"].concat();
        if let Some(host) = &self.host {
            out.extend_from_slice(b"//");
            if let Some(userinfo) = &self.userinfo {
                out.extend_from_slice(&[&userinfo[..], b"@"].concat());
            }
            out.extend_from_slice(host);
            if let Some(port) = &self.port {
                out.extend_from_slice(&[b":", &port[..]].concat());
            }
        }
        out.extend_from_slice(path_guard(self.host.is_some(), &self.path));
        out.extend_from_slice(&self.path);
        for (mark, part) in [(b'?', &self.query), (b'#', &self.fragment)] {
            if let Some(part) = part {
                out.push(mark);
                out.extend_from_slice(part);
            }
        }
        out
    }

    /// What is to be noticed in the components that may hold escapes and characters beyond ASCII.
    fn encoded_flags(&self) -> Flags {
        let parts = [
            (Component::Userinfo, self.userinfo.as_deref()),
            (Component::Host, self.host.as_deref()),
            (Component::Path, Some(&self.path[..])),
            (Component::Query, self.query.as_deref()),
            (Component::Fragment, self.fragment.as_deref()),
        ];
        parts.iter().fold(Flags::NONE, |flags, &(component, part)| {
            flags | part.map_or(Flags::NONE, |part| component_flags(part, component))
        })
    }

    fn map_encoded_parts(&mut self, map: fn(&[u8]) -> Vec<u8>) {
        let parts = [
            self.userinfo.as_mut(),
            self.host.as_mut(),
            Some(&mut self.path),
            self.query.as_mut(),
            self.fragment.as_mut(),
        ];
        parts.into_iter().flatten().for_each(|part| *part = map(part));
    }

    fn scheme_kind(&self) -> Scheme {
        Scheme::from_name(&self.scheme)
    }

    /// Section 5.3.2.3: unreserved characters are not escaped.
    fn percent_encoding_normalization(&mut self) {
        self.map_encoded_parts(decode_unreserved);
    }

    /// Section 5.3.2.1: escapes have upper-case digits.
    fn escape_case(&mut self) {
        self.map_encoded_parts(upper_case_escapes);
    }

    /// Section 5.3.2.1: scheme and the ASCII letters of the host in lower case, but not the digits of its escapes.
    fn case_normalization(&mut self) {
        self.scheme.make_ascii_lowercase();
        if let Some(host) = &mut self.host {
            lower_case_outside_escapes(host);
        }
    }

    /// Section 3.1: every character that a URI has no room for as escapes of its UTF-8.
    fn map_to_uri(&mut self) {
        self.map_encoded_parts(encode);
    }

    /// Section 5.3.2.4, for paths that begin with a slash. Of others (`mailto:a/../b`) only the scheme knows whether
    /// their segments are a hierarchy.
    fn path_segment_normalization(&mut self) {
        if self.path.starts_with(b"/") {
            let len = remove_dot_segments(&mut self.path);
            self.path.truncate(len);
        }
    }

    /// Section 5.3.3: an empty port is no port; with a known scheme neither is its default, and leading zeros are none.
    fn port_normalization(&mut self) {
        let Some(port) = &self.port else { return };
        let default = self.scheme_kind().default_port();
        match port_number(port) {
            _ if port.is_empty() => self.port = None,
            _ if default.is_none() => {}
            number if number == default => self.port = None,
            Some(number) => self.port = Some(number.to_string().into_bytes()),
            None => self.flags |= Flags::PORT_RANGE,
        }
    }

    /// Section 5.3.3: "http://example.com" and "http://example.com/" are equivalent.
    fn empty_path(&mut self) {
        if self.host.is_some() && self.path.is_empty() && self.scheme_kind().is_network() {
            self.path.push(b'/');
        }
    }

    /// Section 5.3.3: internationalised domain names and their ASCII forms are equivalent.
    fn host_to_ascii(&mut self) {
        let is_network = self.scheme_kind().is_network();
        let Some(host) = &mut self.host else { return };
        if !is_network || !may_be_idn(host) {
            return;
        }
        let (ascii, flags) = idn_to_ascii(host);
        self.flags |= flags;
        if let Some(ascii) = ascii {
            *host = ascii.into_bytes();
        }
    }

    /// One text an IPv6 address: RFC 5952.
    fn ip_literal_text(&mut self) {
        if let Some(text) = self.host.as_deref().and_then(ipv6_text) {
            self.host = Some(text.into_bytes());
        }
    }

    /// RFC 8089: `file:/x`, `file:///x` and `file://localhost/x` name the same file.
    fn file_authority(&mut self) {
        if self.scheme_kind() != Scheme::File {
            return;
        }
        let is_bare = self.userinfo.is_none() && self.port.is_none();
        match &mut self.host {
            Some(host) if is_bare && host == b"localhost" => host.clear(),
            None if self.path.starts_with(b"/") => self.host = Some(Vec::new()),
            _ => {}
        }
    }

    /// RFC 8141 section 3.1: the namespace identifier in lower case.
    fn urn_namespace(&mut self) {
        if self.scheme_kind() == Scheme::Urn && self.host.is_none() {
            let len = urn_nid_len(&self.path);
            self.path[..len].make_ascii_lowercase();
        }
    }
}

/// A port's number, if it is one.
pub(super) fn port_number(digits: &[u8]) -> Option<u16> {
    let significant = digits.iter().position(|&digit| digit != b'0').map_or(&digits[..0], |at| &digits[at..]);
    if digits.is_empty() || significant.len() > 5 {
        return None;
    }
    let number = significant.iter().fold(0u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    u16::try_from(number).ok()
}

/// Length of the `NID = (alphanum) 0*30(ldh) (alphanum)` that a `:` ends, RFC 8141 section 2; 0 if there is none.
pub(super) fn urn_nid_len(path: &[u8]) -> usize {
    let Some(len) = memchr::memchr(b':', path) else { return 0 };
    let nid = &path[..len];
    let is_ldh = nid.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let has_ends = matches!(nid, [first, .., last] if *first != b'-' && *last != b'-');
    if is_ldh && has_ends && len <= 32 { len } else { 0 }
}

/// The text of `rung` for an absolute IRI, by the named steps; [`Rung::Simple`] gives the text itself.
///
/// # Errors
/// What `intake` refuses.
///
/// ```
/// use irikey::iri::{ParseMode, Rung, normalize_to_rung};
/// let (uri, _) = normalize_to_rung(b"HTTP://Example.com:80", Rung::Scheme, ParseMode::Lenient).unwrap();
/// assert_eq!(uri, b"http://example.com/");
/// ```
pub fn normalize_to_rung(text: &[u8], rung: Rung, intake: ParseMode) -> Result<(Vec<u8>, Flags), Fault> {
    let mut climb = OwnedComponents::new(text, intake)?;
    if rung == Rung::Simple {
        return Ok((text.to_vec(), climb.flags));
    }
    climb.syntax();
    if rung == Rung::Scheme {
        climb.scheme();
    }
    Ok((climb.text(), climb.flags))
}
