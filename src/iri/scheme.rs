//! Rules of individual schemes for scheme-based normalization (RFC 3987 section 5.3.3): default ports, whether hosts
//! are DNS names, the namespace identifier of a URN.

/// The schemes with rules of their own. All other schemes follow the generic rules only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// `http`, RFC 9110 section 4.2.1.
    Http,
    /// `https`, RFC 9110 section 4.2.2.
    Https,
    /// `ws`, RFC 6455 section 3.
    Ws,
    /// `wss`, RFC 6455 section 3.
    Wss,
    /// `ftp`, RFC 1738 section 3.2.
    Ftp,
    /// `file`, RFC 8089.
    File,
    /// `urn`, RFC 8141.
    Urn,
    /// Any other scheme.
    Other,
}

impl Scheme {
    /// The scheme with that name, in upper or lower case.
    pub(crate) fn from_name(name: &[u8]) -> Scheme {
        const LONGEST: usize = 5;
        let mut lower = [0; LONGEST];
        let Some(lower) = lower.get_mut(..name.len()) else { return Scheme::Other };
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        match &*lower {
            b"http" => Scheme::Http,
            b"https" => Scheme::Https,
            b"ws" => Scheme::Ws,
            b"wss" => Scheme::Wss,
            b"ftp" => Scheme::Ftp,
            b"file" => Scheme::File,
            b"urn" => Scheme::Urn,
            _ => Scheme::Other,
        }
    }

    /// The port that is used if none is written.
    #[inline(always)]
    pub(crate) const fn default_port(self) -> Option<u16> {
        /// In the order of the variants; 0 for no default. This is a table because a branch on the scheme of the next
        /// line cannot be predicted.
        const PORTS: [u16; 8] = [80, 443, 80, 443, 21, 0, 0, 0];
        match PORTS[self as usize] {
            0 => None,
            port => Some(port),
        }
    }

    /// Returns true if hosts are DNS names and an empty path after an authority means `/`.
    pub(crate) const fn is_network(self) -> bool {
        self.default_port().is_some()
    }

    /// Returns true for the *special schemes* of the URL Standard, section 4.2.
    pub(crate) const fn is_special(self) -> bool {
        self.is_network() || matches!(self, Scheme::File)
    }
}

/// Length of the namespace identifier at the start of a URN after `urn:`, RFC 8141 section 2:
/// `NID = (alphanum) 0*30(ldh) (alphanum)`, followed by `:`. Returns 0 if there is none.
pub(super) fn urn_nid_len(text: &[u8]) -> usize {
    let is_ldh = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let len = text.iter().take(33).take_while(|byte| is_ldh(byte)).count();
    let has_ends = matches!(&text[..len], [first, .., last] if *first != b'-' && *last != b'-');
    if has_ends && len <= 32 && text.get(len) == Some(&b':') { len } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::Scheme;

    #[test]
    fn each_scheme_has_its_default_port() {
        let expected = [
            ("HTTP", Scheme::Http, Some(80)),
            ("https", Scheme::Https, Some(443)),
            ("ws", Scheme::Ws, Some(80)),
            ("wss", Scheme::Wss, Some(443)),
            ("Ftp", Scheme::Ftp, Some(21)),
            ("file", Scheme::File, None),
            ("urn", Scheme::Urn, None),
            ("gopher", Scheme::Other, None),
        ];
        for (name, scheme, port) in expected {
            assert_eq!(Scheme::from_name(name.as_bytes()), scheme, "{name}");
            assert_eq!(scheme.default_port(), port, "{name}");
        }
    }
}
