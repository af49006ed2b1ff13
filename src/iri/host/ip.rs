//! IP literals: `IP-literal = "[" ( IPv6address / IPvFuture ) "]"`, RFC 3986 section 3.2.2.

use std::net::Ipv6Addr;

use crate::iri::class::{HEXDIG, USERINFO};
use crate::kernel::{ByteSet, parse_bytes};

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
    // Their IPv4 address is written with dots.
    if inner.starts_with(b"::ffff:") {
        return false;
    }
    let Some(double) = memchr::memmem::find(inner, b"::") else { return normal_groups(inner) == Some(8) };
    let (before, after) = (&inner[..double], &inner[double + 2..]);
    let groups = |text: &[u8]| if text.is_empty() { Some(0) } else { normal_groups(text) };
    // `::` stands for at least two groups of zeros, and has no group of zeros beside it.
    let count = groups(before).zip(groups(after)).map_or(8, |(before, after)| before + after);
    count <= 6 && !matches!(before, b"0" | [.., b':', b'0']) && !matches!(after, b"0" | [b'0', b':', ..])
}

/// Returns the number of groups of one to four digits in lower case, without leading zeros and without two zeros in
/// succession; `None` for other texts.
fn normal_groups(text: &[u8]) -> Option<usize> {
    let (mut count, mut was_zero) = (0, false);
    for group in text.split(|byte| *byte == b':') {
        let is_zero = *group == *b"0";
        let is_normal = is_zero || matches!(group, [b'1'..=b'9' | b'a'..=b'f', rest @ ..] if is_normal_end(rest));
        if !is_normal || (is_zero && was_zero) {
            return None;
        }
        (count, was_zero) = (count + 1, is_zero);
    }
    Some(count)
}

/// At most three digits in lower case.
fn is_normal_end(digits: &[u8]) -> bool {
    digits.len() <= 3 && digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
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
                prop_assert!(!is_normal || ipv6_text(literal.as_bytes()).as_ref() == Some(&literal), "{}", literal);
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
