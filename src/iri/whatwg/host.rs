//! Hosts by the current URL Standard: *domain to ASCII* does not validate the A-labels of a domain that is ASCII.
//!
//! The url crate validates them. Labels that it rejects are masked, so that it sees names without A-labels.

use url::{Host, ParseError};

use crate::iri::class::UNRESERVED;
use crate::iri::host::idn::has_nested_a_label;
use crate::iri::percent::decode_escapes;
use crate::kernel::escape;

/// *Host parser* for a special scheme. Returns the serialized host.
///
/// # Errors
/// The host is empty, a malformed IP address, or not a domain.
pub(super) fn parse_host(host: &str) -> Result<String, ParseError> {
    match Host::parse(host).map(|host| host.to_string()) {
        Ok(domain) if !has_nested_a_label(&domain) => Ok(domain),
        Ok(_) | Err(ParseError::IdnaError) => {
            let masked = mask_a_labels(host).ok_or(ParseError::IdnaError)?;
            Ok(unmask_a_labels(&Host::parse(&masked)?.to_string()))
        }
        error => error,
    }
}

/// Prepends a `z` to all A-labels of a domain, and to labels that look like masked ones. Returns `None` for a domain
/// that is not ASCII. Characters that may be forbidden are escaped, for the crate to judge.
fn mask_a_labels(host: &str) -> Option<String> {
    let domain = decode_escapes(host.as_bytes());
    let domain = std::str::from_utf8(&domain).ok().filter(|domain| domain.is_ascii())?.to_ascii_lowercase();
    let mut masked = Vec::with_capacity(domain.len());
    for (at, byte) in domain.bytes().enumerate() {
        let begins_label = at == 0 || domain.as_bytes()[at - 1] == b'.';
        if begins_label && domain[at..].trim_start_matches('z').starts_with("xn--") {
            masked.push(b'z');
        }
        if UNRESERVED.contains(byte) { masked.push(byte) } else { masked.extend_from_slice(&escape(byte)) }
    }
    String::from_utf8(masked).ok()
}

/// Restores a masked domain.
fn unmask_a_labels(domain: &str) -> String {
    let is_masked = |label: &str| label.trim_start_matches('z').starts_with("xn--");
    let labels = domain.split('.').map(|label| label.strip_prefix('z').filter(|_| is_masked(label)).unwrap_or(label));
    labels.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ascii_domain_is_not_validated() {
        for (host, domain) in [
            ("xn--xn--bss-7z6ccid", "xn--xn--bss-7z6ccid"),
            ("zxn--a.XN--a.zzXn--", "zxn--a.xn--a.zzxn--"),
            ("%78n--A.xn%2D-%61", "xn--a.xn--a"),
            ("a-xn--b.xn--", "a-xn--b.xn--"),
            ("xn--a!$&'()*+,;=_~`{}\"", "xn--a!$&'()*+,;=_~`{}\""),
            ("1.2.3.xn--a", "1.2.3.xn--a"),
        ] {
            assert_eq!(parse_host(host).as_deref(), Ok(domain), "{host}");
        }
        for host in ["xn--a%2541", "xn--a%20", "xn--a%2F", "xn--a%5B", "xn--a%7F", "xn--a.1", "[xn--a]", "xn--a%FF"] {
            assert!(parse_host(host).is_err(), "{host}");
        }
    }

    #[test]
    fn a_label_of_another_domain_is_validated() {
        for host in ["xn--a%C2%AD", "xn--a.Ａ", "é.xn--xn---epa", "%C3%A9.xn--a", "ｘn--a", "xn--a\u{ad}", "xn--a。b"]
        {
            assert_eq!(parse_host(host), Err(ParseError::IdnaError), "{host}");
        }
        assert_eq!(parse_host("é.zxn--a.ｚxn--b").as_deref(), Ok("xn--9ca.zxn--a.zxn--b"));
    }
}
