//! Parts of hosts by the Public Suffix List: the `url_host_*` columns of the Common Crawl columnar index.
//!
//! Names, meanings and nulls are those of that table. *Registry* columns use only the ICANN section of the list, *private*
//! columns both sections. An address has no parts, a host without a known suffix has no suffix and no domain, and a host
//! that is a suffix has no domain. The list is the one that the psl crate embeds, or another one in the same format.

use std::sync::Arc;

use psl::{Psl, Type};

use super::write_joined;
use crate::kernel::parse_bytes;

/// The release of the psl crate, whose Public Suffix List is embedded.
const PSL_VERSION: &str = "psl 2.1.247";

/// A Public Suffix List. The default is the embedded one.
#[derive(Clone, Debug, Default)]
pub struct SuffixList(SuffixRules);

/// Where the rules of a list are from.
#[derive(Clone, Debug, Default)]
enum SuffixRules {
    #[default]
    Embedded,
    /// Parsed rules, and their version.
    Parsed(Arc<publicsuffix::List>, String),
}

/// An error of [`SuffixList::parse`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a Public Suffix List: {0}; expected the format of public_suffix_list.dat of publicsuffix.org")]
pub struct SuffixListError(String);

impl SuffixList {
    /// The embedded list.
    pub const EMBEDDED: SuffixList = SuffixList(SuffixRules::Embedded);

    /// Parses a list in the format of publicsuffix.org.
    ///
    /// ```
    /// use irikey::key::psl::{HostParts, SuffixList};
    /// let list = SuffixList::parse("// ===BEGIN ICANN DOMAINS===\nexample\nb.example\n").unwrap();
    /// let parts = HostParts::by(b"x.a.b.example", &list);
    /// assert_eq!(parts.registered_domain, Some(&b"a.b.example"[..]));
    /// ```
    ///
    /// # Errors
    /// The text cannot be parsed, has no rules, or has a rule before its first section.
    pub fn parse(text: &str) -> Result<SuffixList, SuffixListError> {
        check_sections(text)?;
        let list: publicsuffix::List = text.parse().map_err(|error| match error {
            publicsuffix::Error::InvalidList => SuffixListError("it has no rules".to_string()),
            error => SuffixListError(error.to_string()),
        })?;
        let named = text.lines().take(40).find_map(|line| line.strip_prefix("// VERSION:")).map(str::trim);
        let hash = blake3::hash(text.as_bytes());
        let version = format!("{} blake3:{}", named.unwrap_or("own"), &hash.to_hex()[..16]);
        Ok(SuffixList(SuffixRules::Parsed(Arc::new(list), version)))
    }

    /// Returns the version of the list for the metadata of files.
    pub fn version(&self) -> &str {
        match &self.0 {
            SuffixRules::Embedded => PSL_VERSION,
            SuffixRules::Parsed(_, version) => version,
        }
    }

    fn suffix<'a>(&self, name: &'a [u8]) -> Option<psl::Suffix<'a>> {
        match &self.0 {
            SuffixRules::Embedded => psl::List.suffix(name),
            SuffixRules::Parsed(list, _) => list.suffix(name),
        }
    }
}

/// Checks that no rule precedes the sections: the parser would ignore it.
fn check_sections(text: &str) -> Result<(), SuffixListError> {
    let begins_section = |line: &str| line.contains("BEGIN ICANN DOMAINS") || line.contains("BEGIN PRIVATE DOMAINS");
    let before_sections = text.trim_start_matches('\u{FEFF}').lines().take_while(|line| !begins_section(line));
    let is_rule = |line: &&str| !line.trim().is_empty() && !line.starts_with("//");
    let Some((at, rule)) = before_sections.enumerate().find(|(_, line)| is_rule(line)) else { return Ok(()) };
    let line = at + 1;
    Err(SuffixListError(format!(
        "line {line}, {rule:?}, is in no section; write // ===BEGIN ICANN DOMAINS=== or // ===BEGIN PRIVATE DOMAINS=== before it"
    )))
}

/// The parts of one host; `None` is null.
///
/// ```
/// use irikey::key::psl::HostParts;
/// let parts = HostParts::of(b"a.b.blogspot.com");
/// assert_eq!(parts.last_parts[..3], [Some(&b"com"[..]), Some(b"blogspot"), Some(b"b")]);
/// assert_eq!(parts.registry_suffix, Some(&b"com"[..]));
/// assert_eq!(parts.registered_domain, Some(&b"blogspot.com"[..]));
/// assert_eq!(parts.private_suffix, Some(&b"blogspot.com"[..]));
/// assert_eq!(parts.private_domain, Some(&b"b.blogspot.com"[..]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostParts<'a> {
    /// `url_host_name`: the host without a final dot.
    pub name: &'a [u8],
    /// `url_host_tld`, `url_host_2nd_last_part` and so on to `url_host_5th_last_part`.
    pub last_parts: [Option<&'a [u8]>; 5],
    /// `url_host_registry_suffix`: `co.uk`.
    pub registry_suffix: Option<&'a [u8]>,
    /// `url_host_registered_domain`: `example.co.uk`.
    pub registered_domain: Option<&'a [u8]>,
    /// `url_host_private_suffix`: `github.io`.
    pub private_suffix: Option<&'a [u8]>,
    /// `url_host_private_domain`: `example.github.io`.
    pub private_domain: Option<&'a [u8]>,
}

impl<'a> HostParts<'a> {
    /// Returns the parts of `host` by the embedded list. The host must be in lower case and, if it is a name, ASCII.
    pub fn of(host: &'a [u8]) -> HostParts<'a> {
        HostParts::by(host, &SuffixList::EMBEDDED)
    }

    /// Returns the parts of `host` by `list`.
    pub fn by(host: &'a [u8], list: &SuffixList) -> HostParts<'a> {
        let labels = HostParts::without_suffixes(host);
        if labels.last_parts[0].is_none() {
            return labels;
        }
        let name = labels.name;
        let KnownSuffixes { registry, private } = KnownSuffixes::of(name, list);
        HostParts {
            registry_suffix: registry,
            registered_domain: domain(name, registry),
            private_suffix: private,
            private_domain: domain(name, private),
            ..labels
        }
    }

    /// Returns only those parts of `host` that need no list.
    pub(crate) fn without_suffixes(host: &'a [u8]) -> HostParts<'a> {
        let name = host.strip_suffix(b".").unwrap_or(host);
        let mut last_parts = [None; 5];
        if !name.is_empty() && !is_address(name) {
            last_parts.iter_mut().zip(name.rsplit(|&byte| byte == b'.')).for_each(|(last, part)| *last = Some(part));
        }
        HostParts { name, last_parts, ..HostParts::default() }
    }

    /// Appends `url_host_name_reversed`, such as `com.example.www`; returns false if it is null.
    pub(crate) fn write_reversed(&self, out: &mut Vec<u8>) -> bool {
        // Addresses and empty hosts have no parts.
        if self.last_parts[0].is_none() {
            return false;
        }
        write_joined(self.name.rsplit(|&byte| byte == b'.'), b'.', out);
        true
    }
}

/// The longest suffixes of a name that match a rule. The default rule `*` of the list is ignored.
#[derive(Default)]
struct KnownSuffixes<'a> {
    /// By the rules of the ICANN section.
    registry: Option<&'a [u8]>,
    /// By all rules.
    private: Option<&'a [u8]>,
}

impl<'a> KnownSuffixes<'a> {
    /// A rule of the private section hides shorter rules, so the search for one of the ICANN section continues with the text
    /// after its first label.
    fn of(name: &'a [u8], list: &SuffixList) -> KnownSuffixes<'a> {
        let (mut rest, mut private) = (name, None);
        while let Some(suffix) = list.suffix(rest) {
            let known = tail(name, suffix.as_bytes().len());
            match (suffix.typ(), known) {
                (Some(Type::Icann), _) => return KnownSuffixes { registry: known, private: private.or(known) },
                (Some(Type::Private), Some(known)) => {
                    private = private.or(Some(known));
                    let Some(dot) = memchr::memchr(b'.', known) else { break };
                    rest = &known[dot + 1..];
                }
                _ => break,
            }
        }
        KnownSuffixes { registry: None, private }
    }
}

/// Returns the suffix with the label before it.
fn domain<'a>(name: &'a [u8], suffix: Option<&[u8]>) -> Option<&'a [u8]> {
    let before = name.get(..name.len().checked_sub(suffix?.len() + 1)?)?;
    let label_len = before.rsplit(|&byte| byte == b'.').next()?.len();
    (label_len > 0).then(|| tail(name, label_len + 1 + suffix?.len()))?
}

fn tail(text: &[u8], len: usize) -> Option<&[u8]> {
    text.get(text.len().checked_sub(len)?..)
}

/// Returns whether the host is `[...]` or four decimal numbers up to 255.
fn is_address(host: &[u8]) -> bool {
    host.starts_with(b"[")
        || (host.first().is_some_and(u8::is_ascii_digit) && parse_bytes::<std::net::Ipv4Addr>(host).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: Option<&[u8]>) -> &str {
        text.map_or("-", |text| std::str::from_utf8(text).unwrap())
    }

    #[test]
    fn suffixes_and_domains() {
        // host, registry suffix and domain, private suffix and domain
        let cases = [
            ("www.example.com", ["com", "example.com", "com", "example.com"]),
            ("com", ["com", "-", "com", "-"]),
            ("www.example.co.uk.", ["co.uk", "example.co.uk", "co.uk", "example.co.uk"]),
            ("co.uk", ["co.uk", "-", "co.uk", "-"]),
            ("a.b.github.io", ["io", "github.io", "github.io", "b.github.io"]),
            ("github.io", ["io", "github.io", "github.io", "-"]),
            ("www.ck", ["ck", "www.ck", "ck", "www.ck"]),
            ("a.b.c.ck", ["c.ck", "b.c.ck", "c.ck", "b.c.ck"]),
            ("x.compute.amazonaws.com.cn", ["com.cn", "amazonaws.com.cn", "x.compute.amazonaws.com.cn", "-"]),
            ("xn--e1afmkfd.xn--p1ai", ["xn--p1ai", "xn--e1afmkfd.xn--p1ai", "xn--p1ai", "xn--e1afmkfd.xn--p1ai"]),
            ("a.example.unknown-tld", ["-", "-", "-", "-"]),
            ("localhost", ["-", "-", "-", "-"]),
            (".com", ["com", "-", "com", "-"]),
            ("a..com", ["com", "-", "com", "-"]),
            ("192.0.2.1", ["-", "-", "-", "-"]),
            ("[2001:db8::1]", ["-", "-", "-", "-"]),
            ("", ["-", "-", "-", "-"]),
            (".", ["-", "-", "-", "-"]),
        ];
        for (host, expected) in cases {
            let p = HostParts::of(host.as_bytes());
            let actual = [p.registry_suffix, p.registered_domain, p.private_suffix, p.private_domain].map(show);
            assert_eq!(actual, expected, "{host}");
        }
    }

    #[test]
    fn labels_and_reversed_names() {
        let p = HostParts::of(b"f.e.d.c.b.a.");
        assert_eq!(p.last_parts.map(show), ["a", "b", "c", "d", "e"]);
        let mut out = Vec::new();
        assert!(p.write_reversed(&mut out));
        assert_eq!(out, b"a.b.c.d.e.f");
        assert!(!HostParts::of(b"192.0.2.1").write_reversed(&mut out));
        for address in [&b"192.0.2.1"[..], b"192.0.2.1.", b"[::1]"] {
            assert_eq!(HostParts::of(address).last_parts, [None; 5]);
        }
        assert_eq!(HostParts::of(b"a.b").last_parts.map(show), ["b", "a", "-", "-", "-"]);
    }

    #[test]
    fn lists_without_rules_and_rules_without_a_section_are_refused() {
        let message = |text: &str| SuffixList::parse(text).map(|_| ()).map_err(|error| error.0);
        for text in ["", "// a comment\n", "// ===BEGIN ICANN DOMAINS===\n// com\n"] {
            assert_eq!(message(text), Err("it has no rules".to_string()), "{text:?}");
        }
        let before = "line 3, \"b.example\", is in no section; write // ===BEGIN ICANN DOMAINS===";
        for rest in ["", "// ===BEGIN ICANN DOMAINS===\ncom\n"] {
            let error = message(&format!("// VERSION: 1\n\nb.example\n{rest}")).unwrap_err();
            assert!(error.starts_with(before), "{error}");
        }
        assert_eq!(message("\u{FEFF}// VERSION: 1\r\n\r\n// ===BEGIN PRIVATE DOMAINS===\r\nb.example\r\n"), Ok(()));
    }

    #[test]
    fn version_is_that_of_the_locked_crate() {
        let lock = include_str!("../../Cargo.lock");
        let (name, version) = PSL_VERSION.split_once(' ').unwrap();
        assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")));
    }
}
