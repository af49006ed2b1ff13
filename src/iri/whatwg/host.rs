//! Hosts by the current URL Standard: *domain to ASCII* does not validate the A-labels of a domain that is ASCII.
//!
//! The crate validates them. Labels that it rejects are masked, so that it sees names without A-labels.

use std::ops::Range;

use url::{Host, ParseError};

use crate::iri::parts::{Parts, find_scheme};

/// Replaces `xn--` while a URL is parsed. The host of no URL begins a label with it by chance.
const MASK: &str = "xn0irikey0";

/// The range of the host in a reference to a special URL: behind slashes and userinfo. Empty without a host.
fn host_range(reference: &str) -> Range<usize> {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let text = reference.as_bytes();
    let scheme_len = find_scheme(text);
    let slashes_at = scheme_len.map_or(0, |len| len + 1);
    let from = slashes_at + text[slashes_at..].iter().take_while(|byte| is_slash(byte)).count();
    if scheme_len.is_none() && from < 2 {
        return 0..0;
    }
    let ends = |byte: &u8| is_slash(byte) || matches!(byte, b'?' | b'#');
    let end = text[from..].iter().position(ends).map_or(text.len(), |len| from + len);
    let userinfo = memchr::memrchr(b'@', &text[from..end]);
    from + userinfo.map_or(0, |at| at + 1)..end
}

/// Returns whether the host of a reference is mapped by UTS 46: it has other characters than ASCII, or escapes of them.
pub(super) fn is_mapped(reference: &str) -> bool {
    let host = &reference[host_range(reference)];
    !host.is_ascii() || host.contains('%')
}

/// Replaces the prefix of all A-labels in the host of a reference. Other text that contains the mask stays, so that the
/// crate still rejects the host.
pub(super) fn mask_a_labels(reference: &str) -> String {
    let host = host_range(reference);
    if reference.contains(MASK) {
        return reference.to_string();
    }
    let labels = reference[host.clone()].split('.').map(|label| match label.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("xn--") => format!("{MASK}{}", &label[4..]),
        _ => label.to_string(),
    });
    let labels = labels.collect::<Vec<_>>().join(".");
    [&reference[..host.start], &labels, &reference[host.end..]].concat()
}

/// Restores the A-labels of an `href`.
///
/// # Errors
/// The host has A-labels that were not masked, so not all of it was ASCII.
pub(super) fn unmask_a_labels(href: &str) -> Result<String, ParseError> {
    let host = Parts::split(href.as_bytes()).host(href.as_bytes()).unwrap_or_default();
    match memchr::memmem::find(host, b"xn--") {
        Some(_) => Err(ParseError::IdnaError),
        None => Ok(href.replace(MASK, "xn--")),
    }
}

/// *Host parser* for a special scheme.
pub(super) fn parse_host(host: &str) -> Result<String, ParseError> {
    match Host::parse(host) {
        Err(ParseError::IdnaError) => {
            let masked = mask_a_labels(&format!("//{host}"));
            let reference = unmask_a_labels(&format!("//{}", Host::parse(&masked[2..])?))?;
            Ok(reference[2..].to_string())
        }
        host => Ok(host?.to_string()),
    }
}
