//! The comparison ladder of RFC 3987 section 5.3, as named steps that read like the RFC.
//!
//! This is the definition of each rung's text. It is slow: every step rewrites owned buffers. The single pass in
//! [`super::normalize`] must produce the same text for every input; tests compare the two.

use std::fmt;

use super::check::ParseMode;
use super::fault::Fault;
use super::flags::{Changes, Flags};
use super::host::idn::{idn_to_ascii, may_be_idn};
use super::host::ip::ipv6_text;
use super::host::lower_case_outside_escapes;
use super::percent::{component_flags, decode_unreserved, percent_encode, upper_case_escapes};
use super::resolve::{path_guard, remove_dot_segments};
use super::scheme::{Scheme, urn_nid_len};
use crate::kernel::parse_bytes;

/// A rung of the comparison ladder, RFC 3987 section 5.3. IRIs that are equal on a rung are equal on every higher rung.
///
/// ```
/// use irikey::iri::{ParseMode, Rung, normalize_to_rung};
/// let text = |rung| normalize_to_rung(b"HTTP://h:80/%7ea", rung, ParseMode::Lenient).unwrap().0;
/// assert_eq!(text(Rung::Simple), b"HTTP://h:80/%7ea");
/// assert_eq!(text(Rung::Syntax), b"http://h:80/~a");
/// assert_eq!(text(Rung::Scheme), b"http://h/~a");
/// assert_eq!(Rung::named("syntax"), Some(Rung::Syntax));
/// assert_eq!(Rung::Syntax.to_string(), "syntax");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// Section 5.3.1, simple string comparison: the text as it is.
    Simple,
    /// Section 5.3.2, syntax-based normalization: case, percent-encoding, mapping to a URI, dot segments.
    Syntax,
    /// Section 5.3.3, scheme-based normalization: ports, empty paths, hosts, rules of individual schemes.
    #[default]
    Scheme,
}

/// Writes the name.
impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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

    /// The rung with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<Rung> {
        Rung::ALL.into_iter().find(|rung| rung.name() == name)
    }

    /// The rungs up to this one, lowest first.
    #[cfg(feature = "cli")]
    pub(crate) fn up_to(self) -> impl Iterator<Item = Rung> {
        Rung::ALL.into_iter().filter(move |rung| *rung <= self)
    }
}

/// Returns the text of `rung` for an absolute IRI, and flags, by the named steps of the ladder. The text of
/// [`Rung::Simple`] is the input.
///
/// This function defines the result for one IRI. Use [`crate::canon::UrlCanonicalizer`] for many.
///
/// # Errors
/// The fault that `mode` finds.
///
/// ```
/// use irikey::iri::{ParseMode, Rung, normalize_to_rung};
/// let (uri, _) = normalize_to_rung(b"HTTP://Example.com:80", Rung::Scheme, ParseMode::Lenient).unwrap();
/// assert_eq!(uri, b"http://example.com/");
/// ```
pub fn normalize_to_rung(text: &[u8], rung: Rung, mode: ParseMode) -> Result<(Vec<u8>, Flags), Fault> {
    let mut components = OwnedComponents::new(text, mode)?;
    let steps = match rung {
        Rung::Simple => return Ok((text.to_vec(), components.flags)),
        Rung::Syntax => &[][..],
        Rung::Scheme => &OwnedComponents::SCHEME_STEPS,
    };
    OwnedComponents::SYNTAX_STEPS.iter().chain(steps).for_each(|(_, step)| step(&mut components));
    Ok((components.text(), components.flags))
}

/// Returns the lowest rung on which two absolute IRIs are equivalent; `None` if there is none.
///
/// # Errors
/// The fault that `mode` finds in `a`, otherwise in `b`.
///
/// ```
/// use irikey::iri::{ParseMode, Rung, compare};
/// let compare = |a: &str, b: &str| compare(a.as_bytes(), b.as_bytes(), ParseMode::Lenient);
/// assert_eq!(compare("http://h:80/%7ea", "HTTP://h/~a"), Ok(Some(Rung::Scheme)));
/// assert_eq!(compare("http://h/%7ea", "HTTP://h/~a"), Ok(Some(Rung::Syntax)));
/// assert_eq!(compare("http://h/a", "http://h/b"), Ok(None));
/// assert!(compare("http://h/a", "a").is_err());
/// ```
pub fn compare(a: &[u8], b: &[u8], mode: ParseMode) -> Result<Option<Rung>, Fault> {
    let mut both = [OwnedComponents::new(a, mode)?, OwnedComponents::new(b, mode)?];
    if a == b {
        return Ok(Some(Rung::Simple));
    }
    let rungs = [(Rung::Syntax, &OwnedComponents::SYNTAX_STEPS[..]), (Rung::Scheme, &OwnedComponents::SCHEME_STEPS)];
    for (rung, steps) in rungs {
        steps.iter().for_each(|(_, step)| both.iter_mut().for_each(step));
        if both[0].text() == both[1].text() {
            return Ok(Some(rung));
        }
    }
    Ok(None)
}

/// A normalization step and the bit that it sets in [`Changes`].
type LadderStep = (Changes, fn(&mut OwnedComponents));

/// The components of an absolute IRI in buffers of their own, for normalization step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnedComponents {
    scheme: Vec<u8>,
    userinfo: Option<Vec<u8>>,
    host: Option<Vec<u8>>,
    port: Option<Vec<u8>>,
    path: Vec<u8>,
    query: Option<Vec<u8>>,
    fragment: Option<Vec<u8>>,
    /// What was noticed so far.
    pub(crate) flags: Flags,
}

impl OwnedComponents {
    /// The steps of section 5.3.2, syntax-based normalization, in the order in which they are applied.
    pub(crate) const SYNTAX_STEPS: [LadderStep; 5] = [
        (Changes::PCT_DECODED, OwnedComponents::decode_unreserved_escapes),
        (Changes::PCT_CASE, OwnedComponents::normalize_escape_case),
        (Changes::CASE, OwnedComponents::normalize_case),
        (Changes::PCT_ENCODED, OwnedComponents::map_to_uri),
        (Changes::DOT_SEGMENTS, OwnedComponents::remove_dot_segments),
    ];

    /// The steps of section 5.3.3, scheme-based normalization, which follow those of section 5.3.2.
    pub(crate) const SCHEME_STEPS: [LadderStep; 6] = [
        (Changes::PORT, OwnedComponents::normalize_port),
        (Changes::EMPTY_PATH, OwnedComponents::normalize_empty_path),
        (Changes::IDNA, OwnedComponents::convert_host_to_ascii),
        (Changes::IP_LITERAL, OwnedComponents::normalize_ip_literal),
        (Changes::FILE_HOST, OwnedComponents::normalize_file_authority),
        (Changes::URN_NID, OwnedComponents::normalize_urn_namespace),
    ];

    /// Splits an absolute IRI.
    ///
    /// # Errors
    /// The fault that `mode` finds.
    pub(crate) fn new(text: &[u8], mode: ParseMode) -> Result<OwnedComponents, Fault> {
        let parts = mode.check(text)?;
        let owned = |part: Option<&[u8]>| part.map(<[u8]>::to_vec);
        let flags = parts.encoded_components(text).map(|(component, part)| component_flags(part, component));
        Ok(OwnedComponents {
            scheme: parts.scheme(text).unwrap_or_default().to_vec(),
            userinfo: owned(parts.userinfo(text)),
            host: owned(parts.host(text)),
            port: owned(parts.port(text)),
            path: parts.path(text).to_vec(),
            query: owned(parts.query(text)),
            fragment: owned(parts.fragment(text)),
            flags: flags.fold(Flags::NONE, |all, flags| all | flags),
        })
    }

    /// Removes the fragment, section 5.1.
    #[cfg(feature = "cli")]
    pub(crate) fn remove_fragment(&mut self) {
        self.fragment = None;
    }

    /// Recomposes the components, RFC 3986 section 5.3. A path that would be read as an authority gets the prefix `/.`.
    pub(crate) fn text(&self) -> Vec<u8> {
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

    /// Applies `map` to the components that may contain escapes and non-ASCII characters.
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

    fn known_scheme(&self) -> Scheme {
        Scheme::from_name(&self.scheme)
    }

    /// Section 5.3.2.3: unreserved characters are not escaped.
    fn decode_unreserved_escapes(&mut self) {
        self.map_encoded_parts(decode_unreserved);
    }

    /// Section 5.3.2.1: escapes have upper-case digits.
    fn normalize_escape_case(&mut self) {
        self.map_encoded_parts(upper_case_escapes);
    }

    /// Section 5.3.2.1: the scheme and the ASCII letters of the host are in lower case, except the digits of escapes.
    fn normalize_case(&mut self) {
        self.scheme.make_ascii_lowercase();
        if let Some(host) = &mut self.host {
            lower_case_outside_escapes(host);
        }
    }

    /// Section 3.1: characters that a URI cannot contain become escapes of their UTF-8.
    fn map_to_uri(&mut self) {
        self.map_encoded_parts(percent_encode);
    }

    /// Section 5.3.2.4, for paths that begin with a slash. For other paths (`mailto:a/../b`) only the scheme
    /// determines whether the segments form a hierarchy.
    fn remove_dot_segments(&mut self) {
        if self.path.starts_with(b"/") {
            remove_dot_segments(&mut self.path);
        }
    }

    /// Section 5.3.3: an empty port is removed. If the scheme has a default port, that port and leading zeros are
    /// removed too.
    fn normalize_port(&mut self) {
        let Some(port) = &self.port else { return };
        let default = self.known_scheme().default_port();
        match parse_bytes::<u16>(port) {
            _ if port.is_empty() => self.port = None,
            _ if default.is_none() => {}
            number if number == default => self.port = None,
            Some(number) => self.port = Some(number.to_string().into_bytes()),
            None => self.flags |= Flags::PORT_RANGE,
        }
    }

    /// Section 5.3.3: `http://example.com` and `http://example.com/` are equivalent.
    fn normalize_empty_path(&mut self) {
        if self.host.is_some() && self.path.is_empty() && self.known_scheme().is_network() {
            self.path.push(b'/');
        }
    }

    /// Section 5.3.3: internationalized domain names and their ASCII forms are equivalent.
    fn convert_host_to_ascii(&mut self) {
        let is_network = self.known_scheme().is_network();
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

    /// RFC 5952: an IPv6 address has one text.
    fn normalize_ip_literal(&mut self) {
        if let Some(text) = self.host.as_deref().and_then(ipv6_text) {
            self.host = Some(text.into_bytes());
        }
    }

    /// RFC 8089: `file:/x`, `file:///x` and `file://localhost/x` name the same file.
    fn normalize_file_authority(&mut self) {
        if self.known_scheme() != Scheme::File {
            return;
        }
        let is_host_only = self.userinfo.is_none() && self.port.is_none();
        match &mut self.host {
            Some(host) if is_host_only && host == b"localhost" => host.clear(),
            None if self.path.starts_with(b"/") => self.host = Some(Vec::new()),
            _ => {}
        }
    }

    /// RFC 8141 section 3.1: the namespace identifier is in lower case.
    fn normalize_urn_namespace(&mut self) {
        if self.known_scheme() == Scheme::Urn && self.host.is_none() {
            let len = urn_nid_len(&self.path);
            self.path[..len].make_ascii_lowercase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CLASSIFIER;
    use super::super::normalize::{MarkedReference, Normalizer};
    use super::*;
    use crate::iri::{Component, FaultKind};
    use crate::kernel::Bitmaps;

    #[test]
    fn the_example_of_rfc_3986_is_normalized() {
        let text = b"eXAMPLE://a/./b/../b/%63/%7bfoo%7d/ros\xC3\xA9";
        let (uri, flags) = normalize_to_rung(text, Rung::Syntax, ParseMode::Strict).unwrap();
        assert_eq!(uri, b"example://a/b/c/%7Bfoo%7D/ros%C3%A9");
        assert!(flags.is_empty());
    }

    #[test]
    fn iris_are_compared_by_the_texts_of_rungs() {
        let texts =
            ["http://h/~a", "http://h/%7ea", "http://h:80/%7Ea", "HTTP://h/~a", "http://h/b", "urn:A:b", "URN:a:b"];
        for (a, b) in texts.iter().flat_map(|a| texts.map(|b| (a.as_bytes(), b.as_bytes()))) {
            let text = |text, rung| normalize_to_rung(text, rung, ParseMode::Lenient).unwrap().0;
            let lowest = Rung::ALL.into_iter().find(|rung| text(a, *rung) == text(b, *rung));
            assert_eq!(compare(a, b, ParseMode::Lenient), Ok(lowest), "{a:?} {b:?}");
        }
        let fault = |at| Fault::new(FaultKind::Port, Component::Port, at);
        let compare = |a: &str, b: &str| compare(a.as_bytes(), b.as_bytes(), ParseMode::Lenient);
        assert_eq!(compare("http://h:a", "http://host:b"), Err(fault(9)));
        assert_eq!(compare("http://h", "http://host:b"), Err(fault(12)));
        assert_eq!(compare("http://h:a", "http://h:a"), Err(fault(9)));
    }

    /// The steps that change the components of `text`, and the guard of its path if there is one at the end.
    fn steps_that_change(text: &[u8]) -> Option<Changes> {
        let mut components = OwnedComponents::new(text, ParseMode::Lenient).ok()?;
        let mut changes = Changes::NONE;
        for (change, step) in OwnedComponents::SYNTAX_STEPS.into_iter().chain(OwnedComponents::SCHEME_STEPS) {
            let before = components.clone();
            step(&mut components);
            components.flags = before.flags;
            if components != before {
                changes |= change;
            }
        }
        if !path_guard(components.host.is_some(), &components.path).is_empty() {
            changes |= Changes::PATH_GUARD;
        }
        Some(changes)
    }

    /// The report counts the changes of the single pass.
    #[test]
    fn the_single_pass_reports_the_steps_that_change_the_text() {
        const PIECES: [&str; 24] = [
            "",
            "%7e",
            "%2f",
            "%2E",
            "%c3%a9",
            "%",
            "/../",
            "/.//",
            "//",
            "?",
            "#",
            "#a#",
            ":80",
            ":",
            ":080",
            "@",
            "A",
            "é",
            "\u{E000}",
            " ",
            "|",
            "xn--bcher-kva",
            "[1:0:3:0:5:6:7:8]",
            "%E6%97%A5%e6%9c%ac",
        ];
        let samples = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/urls.txt"));
        let mut normalizer = Normalizer::default();
        let (mut bitmaps, mut out, mut all) = (Bitmaps::default(), Vec::new(), Changes::NONE);
        let others: [&[u8]; 4] = [b"file://localhost/a", b"urn:ISBN:1", b"a:/.//b", b"http://b\xC3\xBCcher"];
        for sample in samples.split(|byte| *byte == b'\n').chain(others) {
            for (number, piece) in PIECES.iter().enumerate() {
                let (start, end) = sample.split_at(sample.len() * (number % 4) / 3);
                let text = [start, piece.as_bytes(), end].concat();
                let Some(expected) = steps_that_change(&text) else { continue };
                bitmaps.classify(&text, &CLASSIFIER);
                out.clear();
                let reference = MarkedReference::whole(&text, &bitmaps);
                let (_, changes) = normalizer.normalize(reference, Rung::Scheme, false, &mut out).unwrap();
                assert_eq!(changes, expected, "{}", String::from_utf8_lossy(&text));
                all |= changes;
            }
        }
        let steps = OwnedComponents::SYNTAX_STEPS.into_iter().chain(OwnedComponents::SCHEME_STEPS);
        let reportable = steps.fold(Changes::PATH_GUARD, |all, (change, _)| all | change);
        assert_eq!(all, reportable);
    }
}
