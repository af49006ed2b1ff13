//! A URL taken apart into buffers of its own, which rules then change. In: text of components. Out: a key's text. Knows
//! no rule; the memory is kept from URL to URL.

use crate::iri::Parts;

/// A component that may be absent; an empty one is not an absent one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    text: Vec<u8>,
    is_present: bool,
}

impl Part {
    /// The text, if the component is there.
    pub fn get(&self) -> Option<&[u8]> {
        self.is_present.then_some(&self.text)
    }

    /// The text to change, if the component is there.
    pub fn get_mut(&mut self) -> Option<&mut Vec<u8>> {
        self.is_present.then_some(&mut self.text)
    }

    /// Sets the component, or takes it away.
    pub fn set(&mut self, text: Option<&[u8]>) {
        self.text.clear();
        self.text.extend_from_slice(text.unwrap_or_default());
        self.is_present = text.is_some();
    }

    /// Takes the component away; true if it was there.
    pub fn remove(&mut self) -> bool {
        std::mem::take(&mut self.is_present)
    }
}

/// The components of one URL, each changeable on its own.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// Without its `:`; empty if there is none.
    pub scheme: Vec<u8>,
    /// Without its `@`.
    pub userinfo: Part,
    /// Absent where there is no authority.
    pub host: Part,
    /// Without its `:`.
    pub port: Part,
    /// With its first `/`, if it has one.
    pub path: Vec<u8>,
    /// Without its `?`.
    pub query: Part,
    /// Without its `#`.
    pub fragment: Part,
    /// What rules write into before they swap.
    pub(super) spare: Vec<u8>,
    /// Fields of a query, while it is sorted.
    pub(super) fields: Vec<(u32, u32)>,
}

impl Draft {
    /// Forgets the URL, keeps the memory.
    pub fn clear(&mut self) {
        self.scheme.clear();
        self.path.clear();
        for part in [&mut self.userinfo, &mut self.host, &mut self.port, &mut self.query, &mut self.fragment] {
            part.remove();
        }
    }

    /// Takes a URL apart by RFC 3986's generic syntax; every input has parts.
    pub fn read_generic(&mut self, url: &[u8]) {
        let parts = Parts::split(url);
        self.clear();
        self.scheme.extend_from_slice(parts.scheme(url).unwrap_or_default());
        self.userinfo.set(parts.userinfo(url));
        self.host.set(parts.host(url));
        self.port.set(parts.port(url));
        self.path.extend_from_slice(parts.path(url));
        self.query.set(parts.query(url));
        self.fragment.set(parts.fragment(url));
    }

    /// Takes `path?query#fragment` apart; the path is added to what there is.
    pub fn read_tail(&mut self, tail: &[u8]) {
        let fragment_at = memchr::memchr(b'#', tail);
        let (head, fragment) = tail.split_at(fragment_at.unwrap_or(tail.len()));
        let query_at = memchr::memchr(b'?', head);
        let (path, query) = head.split_at(query_at.unwrap_or(head.len()));
        self.path.extend_from_slice(path);
        self.query.set(query.get(1..));
        self.fragment.set(fragment.get(1..));
    }

    /// Appends the URL: `scheme://userinfo@host:port/path?query#fragment`.
    pub fn write_url(&self, out: &mut Vec<u8>) {
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        self.write_authority(out);
        self.write_rest(out);
    }

    /// Appends `//userinfo@host:port`, if there is a host.
    pub fn write_authority(&self, out: &mut Vec<u8>) {
        if let Some(host) = self.host.get() {
            out.extend_from_slice(b"//");
            self.write_userinfo(out);
            out.extend_from_slice(host);
            self.write_port(out);
        }
    }

    /// Appends the sort-friendly form without a scheme, `com,example:8080)/path?query`: the labels of the host
    /// backwards between commas, the port before the `)`.
    pub fn write_surt(&self, out: &mut Vec<u8>) {
        self.write_userinfo(out);
        write_reversed(self.host.get().unwrap_or_default(), out);
        self.write_port(out);
        out.push(b')');
        if self.path.is_empty() && (self.query.get().is_some() || self.fragment.get().is_some()) {
            out.push(b'/');
        }
        self.write_rest(out);
    }

    fn write_userinfo(&self, out: &mut Vec<u8>) {
        if let Some(userinfo) = self.userinfo.get() {
            out.extend_from_slice(userinfo);
            out.push(b'@');
        }
    }

    fn write_port(&self, out: &mut Vec<u8>) {
        if let Some(port) = self.port.get() {
            out.push(b':');
            out.extend_from_slice(port);
        }
    }

    /// Appends path, query and fragment.
    pub fn write_rest(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.path);
        for (mark, part) in [(b'?', &self.query), (b'#', &self.fragment)] {
            if let Some(text) = part.get() {
                out.push(mark);
                out.extend_from_slice(text);
            }
        }
    }
}

/// Appends the labels of `host` last to first, with commas between them.
pub fn write_reversed(host: &[u8], out: &mut Vec<u8>) {
    for (i, label) in host.rsplit(|&byte| byte == b'.').enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(label);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_is_there() {
        let mut draft = Draft::default();
        draft.scheme.extend_from_slice(b"http");
        draft.host.set(Some(b"a.b.c"));
        draft.port.set(Some(b"81"));
        draft.query.set(Some(b""));
        let (mut url, mut surt) = (Vec::new(), Vec::new());
        draft.write_url(&mut url);
        draft.write_surt(&mut surt);
        assert_eq!((&url[..], &surt[..]), (&b"http://a.b.c:81?"[..], &b"c,b,a:81)/?"[..]));
    }
}
