//! IP literals: `IP-literal = "[" ( IPv6address / IPvFuture ) "]"`, RFC 3986 section 3.2.2.

use std::net::Ipv6Addr;

use crate::iri::class::{HEXDIG, USERINFO};
use crate::kernel::{ByteSet, low_bits_of_64, mask_of, parse_bytes};

/// Longest text of an IPv6 address that contains no IPv4 address.
const MAX_IPV6_LEN: usize = 8 * 4 + 7;

/// Returns true if `host` is an `IP-literal`. Zone identifiers (RFC 6874) are not in the grammar of RFC 3987.
pub(crate) fn is_ip_literal(host: &[u8]) -> bool {
    in_brackets(host).is_some_and(|inner| is_normal_ipv6(inner) || ipv6_address(inner).is_some() || is_ip_future(inner))
}

/// Returns what the brackets of an IP literal contain.
fn in_brackets(host: &[u8]) -> Option<&[u8]> {
    host.strip_prefix(b"[")?.strip_suffix(b"]")
}

/// Returns true if `host` is the literal of an IPv6 address whose text RFC 5952 does not change. Returns false for some of
/// these: those that contain an IPv4 address, and those with several runs of zeros.
pub(crate) fn is_normal_ipv6_literal(host: &[u8]) -> bool {
    in_brackets(host).is_some_and(is_normal_ipv6)
}

/// [`is_normal_ipv6_literal`] without the brackets.
fn is_normal_ipv6(inner: &[u8]) -> bool {
    // The texts of IPv4-mapped addresses end in an IPv4 address with dots (RFC 5952 section 5).
    if inner.is_empty() || inner.len() > MAX_IPV6_LEN || inner.starts_with(b"::ffff:") {
        return false;
    }
    let digits = mask_of(inner, |byte| (byte.wrapping_sub(b'0') < 10) | (byte.wrapping_sub(b'a') < 6));
    let colons = mask_of(inner, |byte| byte == b':');
    let leading_zeros = mask_of(inner, |byte| byte == b'0') & !(digits << 1);
    let zero_groups = leading_zeros & !(digits >> 1);
    let groups = (digits & !(digits << 1)).count_ones();
    let doubles = colons & colons >> 1;
    let edges = 1 | 1 << (inner.len() - 1);
    let expected_groups = if doubles == 0 { 8..=8 } else { 0..=6 };
    let is_wrong = (digits | colons != low_bits_of_64(inner.len()))
        | (digits & digits >> 1 & digits >> 2 & digits >> 3 & digits >> 4 != 0)
        | (leading_zeros != zero_groups)
        // At most one `::`, and no other colon at either end.
        | (doubles & doubles.wrapping_sub(1) != 0)
        | (colons & edges & !(doubles | doubles << 1) != 0)
        // `::` stands for at least two groups of zeros, and has no group of zeros beside it.
        | (zero_groups & (zero_groups << 2 | doubles << 2 | doubles >> 1) != 0);
    !is_wrong && expected_groups.contains(&groups)
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
    Some(format!("[{}]", ipv6_address(in_brackets(host)?)?))
}

#[cfg(test)]
mod tests {
    use super::{ipv6_text, is_ip_literal, is_normal_ipv6_literal};
    use proptest::prelude::*;

    proptest! {
        /// Groups that repeat, in any form, and the text of the same address by RFC 5952.
        #[test]
        fn normal_literals_stay(
            groups in prop::collection::vec(prop_oneof![3 => Just("0".to_string()), 2 => "[0-9a-fA-F]{1,5}", 1 => Just("ffff".into())], 1..10),
            double in 0..10_usize,
        ) {
            let mut groups = groups;
            if double < groups.len() {
                groups[double] = String::new();
            }
            let literal = format!("[{}]", groups.join(":").replacen(":::", "::", 1));
            for literal in [literal.clone(), ipv6_text(literal.as_bytes()).unwrap_or_default(), literal.replacen("[:", "[::", 1)] {
                let is_normal = is_normal_ipv6_literal(literal.as_bytes());
                let stays = ipv6_text(literal.as_bytes()).as_ref() == Some(&literal);
                let may_be_missed = literal.starts_with("[::ffff:") || literal.contains("0:0");
                prop_assert!(if is_normal { stays } else { !stays || may_be_missed }, "{}", literal);
            }
        }
    }

    #[test]
    fn common_literals_are_normal() {
        for literal in
            ["[::]", "[::1]", "[1::]", "[2001:db8::1]", "[1:2:3:4:5:6:7:8]", "[1:0:3:0:5:6:7:8]", "[fe80::1:0:2]"]
        {
            assert!(
                is_normal_ipv6_literal(literal.as_bytes()) && ipv6_text(literal.as_bytes()).as_deref() == Some(literal)
            );
        }
        for other in [
            "[]",
            "[:1]",
            "[1:]",
            "[::1::]",
            "[1:2:3:4:5:6:7::]",
            "[::01]",
            "[::A]",
            "[1::0]",
            "[0::1]",
            "[::ffff:1:2]",
        ] {
            assert!(!is_normal_ipv6_literal(other.as_bytes()), "{other}");
        }
    }

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
