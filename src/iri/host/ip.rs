//! IP literals: `IP-literal = "[" ( IPv6address / IPvFuture ) "]"`, RFC 3986 section 3.2.2.

use std::net::Ipv6Addr;

use crate::iri::class::{HEXDIG, USERINFO};
use crate::kernel::{ByteSet, parse_bytes};

/// Returns true if `host` is an `IP-literal`. Zone identifiers (RFC 6874) are not in the grammar of RFC 3987.
pub(crate) fn is_ip_literal(host: &[u8]) -> bool {
    let Some(inner) = host.strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) else { return false };
    ipv6_address(inner).is_some() || is_ip_future(inner)
}

/// Parses `IPv6address`. The parser of the standard library accepts exactly the nine alternatives of the ABNF.
fn ipv6_address(inner: &[u8]) -> Option<Ipv6Addr> {
    parse_bytes(inner)
}

/// `IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`.
fn is_ip_future(inner: &[u8]) -> bool {
    let Some(rest) = inner.strip_prefix(b"v").or_else(|| inner.strip_prefix(b"V")) else { return false };
    let Some(dot) = memchr::memchr(b'.', rest) else { return false };
    let (version, address) = (&rest[..dot], &rest[dot + 1..]);
    let all = |bytes: &[u8], set: &ByteSet| !bytes.is_empty() && bytes.iter().all(|&b| set.contains(b));
    all(version, &HEXDIG) && all(address, &USERINFO)
}

/// The text of an IPv6 literal as RFC 5952 requires, with brackets; `None` for an `IPvFuture` and for other hosts.
pub(crate) fn ipv6_text(host: &[u8]) -> Option<String> {
    let inner = host.strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some(format!("[{}]", ipv6_address(inner)?))
}

#[cfg(test)]
mod tests {
    use super::{ipv6_text, is_ip_literal};

    #[test]
    fn ipv6_addresses_are_compressed_and_in_lower_case() {
        assert_eq!(ipv6_text(b"[2001:DB8:0:0::1]").as_deref(), Some("[2001:db8::1]"));
        assert_eq!(ipv6_text(b"[v1.a]"), None);
    }

    /// RFC 3986 section 3.2.2.
    #[test]
    fn literals_are_addresses_or_of_a_future_version() {
        for literal in ["[::1]", "[v1.a]", "[VfF.a:b!~-]", "[v1.:]"] {
            assert!(is_ip_literal(literal.as_bytes()), "{literal}");
        }
        for other in ["[]", "[v]", "[v1]", "[v1.]", "[v.a]", "[vg.a]", "[v1.a/]", "[1.a]", "::1", "[::1", "[::1%251]"] {
            assert!(!is_ip_literal(other.as_bytes()), "{other}");
        }
    }
}
