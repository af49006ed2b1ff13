//! Hosts: IP literals (RFC 3986 section 3.2.2, RFC 5952) and internationalised names (UTS 46). In: the bytes of one
//! host. Out: a verdict or the host's one form, remembered from host to host. Asks no resolver.

mod cache;
mod plain;

use std::borrow::Cow;
use std::net::Ipv6Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

pub use cache::HostCache;

use super::class::{HEXDIG, UNRESERVED, UPPER, USERINFO};
use super::percent::{decode_escapes, escape_value, map_component};
use super::{Changes, Component, Flags};

/// `IP-literal = "[" ( IPv6address / IPvFuture ) "]"`. Zone identifiers (RFC 6874) are not in RFC 3987's grammar.
pub fn is_ip_literal(host: &[u8]) -> bool {
    let Some(inner) = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else { return false };
    ipv6_address(inner).is_some() || is_ip_future(inner)
}

/// `IPv6address`; std's parser takes exactly the nine alternatives of the ABNF.
fn ipv6_address(inner: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(inner).ok()?.parse().ok()
}

/// `IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`.
fn is_ip_future(inner: &[u8]) -> bool {
    let Some(rest) = inner.strip_prefix(b"v").or_else(|| inner.strip_prefix(b"V")) else { return false };
    let Some(dot) = memchr::memchr(b'.', rest) else { return false };
    let (version, address) = (&rest[..dot], &rest[dot + 1..]);
    let all = |bytes: &[u8], set: &crate::kernel::ByteSet| !bytes.is_empty() && bytes.iter().all(|&b| set.contains(b));
    all(version, &HEXDIG) && all(address, &USERINFO)
}

/// The text that RFC 5952 gives an IPv6 literal, brackets included; `None` for an IPvFuture and for other hosts.
///
/// ```
/// assert_eq!(irikey::iri::ipv6_text(b"[2001:DB8:0:0::1]").as_deref(), Some("[2001:db8::1]"));
/// ```
pub fn ipv6_text(host: &[u8]) -> Option<String> {
    let inner = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some(format!("[{}]", ipv6_address(inner)?))
}

/// A host, in lower case and free of raw characters beyond ASCII, that may have another ASCII form: it has an escape or
/// a label that begins with `xn--`. An IP-literal has no labels, whatever an IPvFuture looks like.
pub fn may_be_idn(host: &[u8]) -> bool {
    !host.starts_with(b"[") && (memchr::memchr(b'%', host).is_some() || has_a_label(host))
}

fn has_a_label(host: &[u8]) -> bool {
    memchr::memmem::find_iter(host, b"xn--").any(|at| at == 0 || host[at - 1] == b'.')
}

/// The ASCII form of a DNS host as syntax-based normalisation left it, by UTS 46 (non-transitional, hyphens and lengths
/// not judged), and what was noticed. `None` leaves the host as it is: its bytes are no UTF-8, UTS 46 refuses them, or
/// they map to nothing or to a character outside `unreserved`, which a DNS name could not be told from syntax by.
///
/// ```
/// use irikey::iri::{Flags, idn_to_ascii};
/// assert_eq!(idn_to_ascii(b"r%C3%A9sum%C3%A9.example").0.as_deref(), Some("xn--rsum-bpad.example"));
/// assert_eq!(idn_to_ascii(b"xn--a.example"), (None, Flags::BAD_A_LABEL));
/// ```
pub fn idn_to_ascii(host: &[u8]) -> (Option<String>, Flags) {
    decoded_to_ascii(&decode_escapes(host), memchr::memchr(b'%', host).is_some())
}

/// [`idn_to_ascii`] of a host whose escapes, if there were any, are decoded.
fn decoded_to_ascii(decoded: &[u8], had_escapes: bool) -> (Option<String>, Flags) {
    let ascii = Uts46::new()
        .to_ascii(decoded, AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .ok()
        .filter(|ascii| !ascii.is_empty() && ascii.bytes().all(|byte| UNRESERVED.contains(byte)))
        .filter(|ascii| !has_nested_a_label(ascii));
    match ascii {
        Some(ascii) => (Some(ascii.into_owned()), Flags::NONE),
        None if had_escapes => (None, Flags::HOST_NOT_IDNA),
        None => (None, Flags::BAD_A_LABEL),
    }
}

/// An A-label decodes to a label that begins with `xn--` itself: UTS 46 section 4.1, validity criterion 4 as of revision
/// 33, which the idna crate does not look at. Such an A-label begins with `xn--` twice.
pub(super) fn has_nested_a_label(ascii: &str) -> bool {
    ascii.contains("xn--xn--") && {
        let (unicode, _) = Uts46::new().to_unicode(ascii.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        begins_like_an_a_label(&unicode)
    }
}

/// A label of what ToUnicode gave begins with `xn--`.
pub(super) fn begins_like_an_a_label(unicode: &str) -> bool {
    unicode.split('.').any(|label| label.starts_with("xn--"))
}

/// A host on its way into a URI: its text, what was noticed, what changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostForm<'a> {
    /// The host's text.
    pub text: Cow<'a, [u8]>,
    /// What was noticed.
    pub flags: Flags,
    /// What changed it.
    pub changes: Changes,
}

impl HostForm<'static> {
    /// The form of a host that is no IP-literal: on the syntax rung, or with `is_network` on the scheme rung of a
    /// scheme whose hosts are DNS names.
    pub fn new(host: &[u8], is_network: bool) -> Self {
        let plain = if is_network { plain::plain_form(host) } else { None };
        plain.unwrap_or_else(|| HostForm::by_steps(host, is_network))
    }

    /// [`HostForm::new`] of any host: what its syntax asks for, then UTS 46.
    fn by_steps(host: &[u8], is_network: bool) -> Self {
        let (mut text, mut flags, mut changes) = map_component(host, Component::Host);
        if lower_case_outside_escapes(&mut text) {
            changes |= Changes::CASE;
        }
        if is_network && may_be_idn(&text) {
            // What stands in `host` as itself need not come back out of its escapes; UTS 46 maps its case.
            let had_escapes = memchr::memchr(b'%', &text).is_some();
            let decoded =
                if had_escapes && memchr::memchr(b'%', host).is_none() { host.into() } else { decode_escapes(&text) };
            let (ascii, noticed) = decoded_to_ascii(&decoded, had_escapes);
            flags |= noticed;
            if let Some(ascii) = ascii.filter(|ascii| ascii.as_bytes() != text) {
                text = ascii.into_bytes();
                changes |= Changes::IDNA;
            }
        }
        HostForm { text: text.into(), flags, changes }
    }
}

/// Puts ASCII letters into lower case, the digits of escapes excepted; true if any was not.
pub fn lower_case_outside_escapes(host: &mut [u8]) -> bool {
    let mut at = 0;
    let mut is_changed = false;
    while at < host.len() {
        if escape_value(&host[at..]).is_some() {
            at += 3;
            continue;
        }
        is_changed |= UPPER.contains(host[at]);
        host[at].make_ascii_lowercase();
        at += 1;
    }
    is_changed
}

#[cfg(test)]
mod tests {
    use super::{Flags, idn_to_ascii, may_be_idn};

    #[test]
    fn a_label_within_an_a_label_is_none() {
        assert_eq!(idn_to_ascii(b"xn--xn---epa"), (None, Flags::BAD_A_LABEL));
        assert_eq!(idn_to_ascii(b"a.xn--xn--a--gua.pt").0, None);
        assert_eq!(crate::iri::idn_to_unicode(b"xn--xn---epa"), None);
        // "xénn--", whose characters of ASCII are xnn--.
        assert_eq!(idn_to_ascii("xénn--".as_bytes()).0.as_deref(), Some("xn--xnn---bsa"));
    }

    #[test]
    fn labels_are_those_of_names() {
        assert!(may_be_idn(b"a.xn--a") && may_be_idn(b"a%c3") && !may_be_idn(b"axn--a"));
        assert!(!may_be_idn(b"[v1.xn--a]"));
    }

    /// When this fails, the locked data have moved on: keys of hosts may have changed, and `UNICODE_VERSION` must.
    #[test]
    fn the_data_are_of_the_unicode_version_that_files_name() {
        assert_eq!(crate::iri::UNICODE_VERSION, "17.0");
        let new_in_17 = "\u{11DB0}";
        assert_eq!(idn_to_ascii(new_in_17.as_bytes()).0.as_deref(), Some("xn--7u3d"));
        let unassigned = "\u{11DFF}";
        assert_eq!(idn_to_ascii(unassigned.as_bytes()).0, None);
    }
}
