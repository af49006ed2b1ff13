//! What irikey knows of schemes: default ports, roots, whether hosts are DNS names (RFC 3987 section 5.3.3).

/// The schemes with rules of their own. Every other scheme has the generic rules only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
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
    /// Any other.
    Other,
}

impl Scheme {
    /// The scheme of that name, in any case.
    ///
    /// ```
    /// use irikey::iri::Scheme;
    /// assert_eq!(Scheme::from_name(b"HTTPS").default_port(), Some(443));
    /// assert_eq!(Scheme::from_name(b"gopher"), Scheme::Other);
    /// ```
    pub fn from_name(name: &[u8]) -> Scheme {
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

    /// The port that need not be written.
    #[inline(always)]
    pub const fn default_port(self) -> Option<u16> {
        /// In the order of the variants; 0 for none. A table, since which scheme comes next is what no branch foresees.
        const PORTS: [u16; 8] = [80, 443, 80, 443, 21, 0, 0, 0];
        match PORTS[self as usize] {
            0 => None,
            port => Some(port),
        }
    }

    /// Hosts are DNS names and an empty path after an authority means `/`.
    pub const fn is_network(self) -> bool {
        self.default_port().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Scheme;

    #[test]
    fn each_scheme_has_its_port() {
        let expected = [
            (Scheme::Http, Some(80)),
            (Scheme::Https, Some(443)),
            (Scheme::Ws, Some(80)),
            (Scheme::Wss, Some(443)),
            (Scheme::Ftp, Some(21)),
            (Scheme::File, None),
            (Scheme::Urn, None),
            (Scheme::Other, None),
        ];
        for (scheme, port) in expected {
            assert_eq!(scheme.default_port(), port, "{scheme:?}");
        }
    }
}
