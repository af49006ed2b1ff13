//! References, split as the parser of the URL Standard reads them, and written for the url crate: [`SplitReference`].
//!
//! The crate parses userinfo, opaque hosts, ports, dot segments, queries and fragments. It sees neither the host of a
//! special URL, which `host.rs` parses, nor drive letters, which `..` would not remove in any scheme.

use url::ParseError;

use crate::iri::class::ALPHA;
use crate::iri::parts::find_scheme;
use crate::iri::scheme::Scheme;

/// What the crate sees as the host of a special URL.
const HOST: &str = "h";

/// What the crate sees in the middle of a drive letter. Its path has no other `^`, because those are encoded.
pub(super) const DRIVE_MASK: char = '^';

/// A reference whose scheme, or that of its base, is not `file`. White space is stripped already.
pub(super) struct SplitReference<'a> {
    /// The scheme is special, so that `\` is a slash, and the host is a domain.
    is_special: bool,
    /// The result depends on the base.
    pub is_relative: bool,
    /// What the crate needs before authority and path. An opaque path is part of it.
    start: String,
    authority: Option<SplitAuthority<'a>>,
    path: &'a str,
    /// Query and fragment with `?` and `#`.
    tail: &'a str,
}

/// An authority. The userinfo includes its `@`, and the port its `:`.
#[derive(Clone, Copy)]
struct SplitAuthority<'a> {
    userinfo: &'a str,
    host: &'a str,
    port: &'a str,
}

impl<'a> SplitReference<'a> {
    /// `base` is an `href`.
    pub(super) fn new(reference: &'a str, base: Option<&str>) -> SplitReference<'a> {
        let base_scheme = base.and_then(|base| base.split(':').next()).unwrap_or_default();
        let scheme_len = find_scheme(reference.as_bytes());
        let scheme = scheme_len.map_or(base_scheme.to_string(), |len| reference[..len].to_ascii_lowercase());
        let is_special = Scheme::from_name(scheme.as_bytes()).is_special();
        let is_relative = scheme_len.is_none() || is_special && scheme == base_scheme;
        let (start, rest) = reference.split_at(scheme_len.map_or(0, |len| len + 1));
        let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let split = SplitReference { is_special, is_relative, start: start.to_string(), authority: None, path, tail };
        if is_special { split.split_special(&scheme) } else { split.split_other() }
    }

    /// *Special authority slashes state* and *relative slash state* of a special URL: any number of slashes precedes the
    /// authority. With an authority only the scheme of the base matters.
    fn split_special(self, scheme: &str) -> SplitReference<'a> {
        let rest = self.path.trim_start_matches(['/', '\\']);
        if self.is_relative && self.path.len() - rest.len() < 2 {
            return self;
        }
        let (authority, path) = rest.split_at(rest.find(['/', '\\']).unwrap_or(rest.len()));
        let authority = Some(SplitAuthority::new(authority));
        SplitReference { is_relative: false, start: format!("{scheme}://"), authority, path, ..self }
    }

    /// *Path or authority state* and *relative slash state* of other URLs. The crate would read `\` as a slash where a
    /// relative path begins.
    fn split_other(mut self) -> SplitReference<'a> {
        if let Some(rest) = self.path.strip_prefix("//") {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            self.start.push_str("//");
            return SplitReference { authority: Some(SplitAuthority::new(authority)), path, ..self };
        }
        match self.path {
            path if !self.is_relative && !path.starts_with('/') => {
                self.start.push_str(path);
                self.path = "";
            }
            path if self.is_relative && path.starts_with('\\') => self.start.push_str("./"),
            path if self.is_relative && path.starts_with("/\\") => self.start.push_str("/."),
            _ => {}
        }
        self
    }

    /// The host of a special URL.
    pub(super) fn domain(&self) -> Option<&'a str> {
        self.authority.filter(|_| self.is_special).map(|authority| authority.host)
    }

    /// *Authority state* and *port state* of a URL that is not special, as far as the crate omits them.
    ///
    /// # Errors
    /// Userinfo without a host, and `\` after a port. In a host the crate rejects `\`.
    pub(super) fn check_authority(&self) -> Result<(), ParseError> {
        match self.authority.filter(|_| !self.is_special) {
            Some(authority) if authority.host.is_empty() && !authority.userinfo.is_empty() => {
                Err(ParseError::EmptyHost)
            }
            Some(authority) if authority.port.contains('\\') => Err(ParseError::InvalidPort),
            _ => Ok(()),
        }
    }

    /// The reference for the crate. In the result [`HOST`] stands for [`SplitReference::domain`], and [`DRIVE_MASK`] is
    /// to be deleted from the path.
    pub(super) fn text(&self) -> String {
        let mut text = self.start.clone();
        if let Some(SplitAuthority { userinfo, host, port }) = self.authority {
            text.extend([userinfo, if self.is_special { HOST } else { host }, port]);
        }
        if self.path.contains(['\\', ':', '|', DRIVE_MASK]) {
            self.push_path(&mut text);
        } else {
            text.push_str(self.path);
        }
        text.push_str(self.tail);
        text
    }

    /// Appends the path with `/` for all slashes, with escapes for [`DRIVE_MASK`], and with a [`DRIVE_MASK`] in drive letters.
    fn push_path(&self, text: &mut String) {
        let is_slash = |c| c == '/' || self.is_special && c == '\\';
        for (i, segment) in self.path.split(is_slash).enumerate() {
            if i > 0 {
                text.push('/');
            }
            // For the crate, a drive letter ends at a `\` in all schemes.
            let letter_len = match segment.as_bytes() {
                [letter, b':' | b'|', ..] if ALPHA.contains(*letter) => 1,
                _ => 0,
            };
            text.push_str(&segment[..letter_len]);
            text.extend((letter_len > 0).then_some(DRIVE_MASK));
            text.push_str(&segment[letter_len..].replace(DRIVE_MASK, "%5E"));
        }
    }
}

impl<'a> SplitAuthority<'a> {
    fn new(authority: &'a str) -> SplitAuthority<'a> {
        let (userinfo, rest) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        let mut in_brackets = false;
        let begins_port = |c| {
            in_brackets = c == '[' || in_brackets && c != ']';
            c == ':' && !in_brackets
        };
        let (host, port) = rest.split_at(rest.find(begins_port).unwrap_or(rest.len()));
        SplitAuthority { userinfo, host, port }
    }
}
