//! A URL as components in buffers of their own, which rules change. The buffers are reused from URL to URL.

use crate::iri::{Component, Fault, FaultKind, Parts};
use crate::kernel::parse_bytes;
use crate::key::write_joined;

/// A component that may be absent, which differs from an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OptionalText {
    text: Vec<u8>,
    is_present: bool,
}

impl OptionalText {
    /// Returns the text if the component is present.
    pub(super) fn get(&self) -> Option<&[u8]> {
        self.is_present.then_some(&self.text)
    }

    /// Returns the text for changes if the component is present.
    pub(super) fn get_mut(&mut self) -> Option<&mut Vec<u8>> {
        self.is_present.then_some(&mut self.text)
    }

    /// Sets or removes the component.
    pub(super) fn set(&mut self, text: Option<&[u8]>) {
        self.text.clear();
        self.text.extend_from_slice(text.unwrap_or_default());
        self.is_present = text.is_some();
    }

    /// Removes the component and returns whether it was present.
    pub(super) fn remove(&mut self) -> bool {
        std::mem::take(&mut self.is_present)
    }
}

/// The components of one URL, the buffers of [`Recipe::write_key`](super::Recipe::write_key). It has no public fields: keep one
/// draft per thread and pass it to every call.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// The scheme without its `:`, empty if there is none.
    pub(super) scheme: Vec<u8>,
    /// The userinfo without its `@`.
    pub(super) userinfo: OptionalText,
    /// The host, absent if there is no authority.
    pub(super) host: OptionalText,
    /// The port without its `:`.
    pub(super) port: OptionalText,
    /// The path with its first `/`, if it has one.
    pub(super) path: Vec<u8>,
    /// The query without its `?`.
    pub(super) query: OptionalText,
    /// The fragment without its `#`.
    pub(super) fragment: OptionalText,
    /// The key of a URL that the software does not split into components.
    pub(super) literal_key: OptionalText,
    /// Buffer for the new text of a component.
    pub(super) spare: Vec<u8>,
    /// The fields of a query while it is sorted.
    pub(super) fields: Vec<QueryField>,
}

/// Where a field of a query is: offsets of its start, of the end of its name, and of its end. Searching for the end of a name
/// in every comparison would take quadratic time for one long field among many.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryField {
    start: u32,
    name_end: u32,
    end: u32,
}

impl QueryField {
    /// The fields of `query`, in its order.
    pub(super) fn split(query: &[u8]) -> impl Iterator<Item = QueryField> {
        let mut next = 0;
        query.split(|&byte| byte == b'&').map(move |field| {
            let start = next;
            next += field.len() + 1;
            let name_len = memchr::memchr(b'=', field).unwrap_or(field.len());
            QueryField { start: start as u32, name_end: (start + name_len) as u32, end: (start + field.len()) as u32 }
        })
    }

    /// The field without the `=` of an empty value.
    pub(super) fn without_empty_value(self) -> QueryField {
        QueryField { end: if self.end == self.name_end + 1 { self.name_end } else { self.end }, ..self }
    }

    pub(super) fn text(self, query: &[u8]) -> &[u8] {
        &query[self.start as usize..self.end as usize]
    }

    pub(super) fn name(self, query: &[u8]) -> &[u8] {
        &query[self.start as usize..self.name_end as usize]
    }

    /// The value with its `=`; empty if there is none.
    pub(super) fn value(self, query: &[u8]) -> &[u8] {
        &query[self.name_end as usize..self.end as usize]
    }
}

impl Draft {
    /// Removes all components and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.scheme.clear();
        self.path.clear();
        let Draft { userinfo, host, port, query, fragment, literal_key, .. } = self;
        for component in [userinfo, host, port, query, fragment, literal_key] {
            component.remove();
        }
    }

    /// Splits `path?query#fragment` and appends the path to the one that exists.
    pub(super) fn read_tail(&mut self, tail: &[u8]) {
        let fragment_at = memchr::memchr(b'#', tail);
        let (head, fragment) = tail.split_at(fragment_at.unwrap_or(tail.len()));
        let query_at = memchr::memchr(b'?', head);
        let (path, query) = head.split_at(query_at.unwrap_or(head.len()));
        self.path.extend_from_slice(path);
        self.query.set(query.get(1..));
        self.fragment.set(fragment.get(1..));
    }

    /// Splits the text after `//`: returns the authority, and reads the path, the query and the fragment after it.
    pub(super) fn read_after_authority<'a>(&mut self, text: &'a [u8]) -> &'a [u8] {
        let end = memchr::memchr3(b'/', b'?', b'#', text).unwrap_or(text.len());
        self.read_tail(&text[end..]);
        &text[..end]
    }

    /// Sets the port to the number that Java's `Integer.parseInt` reads from `digits`. An empty port is absent, and so is
    /// -1, which the programs use for an absent port.
    ///
    /// # Errors
    /// The digits are not a number that fits into 32 bits.
    pub(super) fn read_java_port(&mut self, digits: Option<&[u8]>) -> Result<(), Fault> {
        let Some(digits) = digits.filter(|digits| !digits.is_empty()) else { return Ok(()) };
        match parse_bytes::<i32>(digits).ok_or(Fault::new(FaultKind::Port, Component::Port, 0))? {
            -1 => {}
            number => self.port.set(Some(number.to_string().as_bytes())),
        }
        Ok(())
    }

    /// Appends the scheme with its `:`, if there is one.
    pub(super) fn write_scheme(&self, out: &mut Vec<u8>) {
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
    }

    /// Appends `//userinfo@host:port`, if there is a host.
    pub(super) fn write_authority(&self, out: &mut Vec<u8>) {
        if let Some(host) = self.host.get() {
            out.extend_from_slice(b"//");
            self.write_userinfo(out);
            out.extend_from_slice(host);
            self.write_port(out);
        }
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
    pub(super) fn write_tail(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.path);
        for (delimiter, component) in [(b'?', &self.query), (b'#', &self.fragment)] {
            if let Some(text) = component.get() {
                out.push(delimiter);
                out.extend_from_slice(text);
            }
        }
    }
}

/// Splits a URL by the generic syntax of RFC 3986, which applies to every input.
pub(super) fn read_url(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let parts = Parts::split(url);
    draft.scheme.extend_from_slice(parts.scheme(url).unwrap_or_default());
    draft.userinfo.set(parts.userinfo(url));
    draft.host.set(parts.host(url));
    draft.port.set(parts.port(url));
    draft.path.extend_from_slice(parts.path(url));
    draft.query.set(parts.query(url));
    draft.fragment.set(parts.fragment(url));
    Ok(())
}

/// Appends the URL: `scheme://userinfo@host:port/path?query#fragment`.
pub(super) fn write_url(draft: &Draft, out: &mut Vec<u8>) -> Result<(), Fault> {
    draft.write_scheme(out);
    draft.write_authority(out);
    draft.write_tail(out);
    Ok(())
}

/// Appends the sort-friendly form without a scheme, `com,example:8080)/path?query`: the labels of the host in reverse
/// order with commas between them, and the port before the `)`.
pub(super) fn write_surt(draft: &Draft, out: &mut Vec<u8>) -> Result<(), Fault> {
    draft.write_userinfo(out);
    write_reversed(draft.host.get().unwrap_or_default(), out);
    draft.write_port(out);
    out.push(b')');
    if draft.path.is_empty() && (draft.query.get().is_some() || draft.fragment.get().is_some()) {
        out.push(b'/');
    }
    draft.write_tail(out);
    Ok(())
}

/// Appends the labels of `host` in reverse order with commas between them.
pub(super) fn write_reversed(host: &[u8], out: &mut Vec<u8>) {
    write_joined(host.rsplit(|&byte| byte == b'.'), b',', out);
}

/// Swaps `text` and `new`; returns whether they differ.
pub(super) fn replace_text(text: &mut Vec<u8>, new: &mut Vec<u8>) -> bool {
    let is_changed = text != new;
    std::mem::swap(text, new);
    is_changed
}

/// Returns whether URLs of `scheme` name an account, whose `@` does not end the userinfo of a host.
pub(super) fn is_account_scheme(scheme: &[u8]) -> bool {
    [&b"mailto"[..], b"sip", b"sips", b"xmpp"].iter().any(|name| scheme.eq_ignore_ascii_case(name))
}

/// Returns the part of `text` between the first and the last byte that is `inner`.
pub(super) fn trim_to(text: &[u8], inner: impl Fn(&u8) -> bool) -> &[u8] {
    let Some(first) = text.iter().position(&inner) else { return b"" };
    let last = text.iter().rposition(inner).unwrap_or(first);
    &text[first..=last]
}

/// Splits `host:port` at the first `:`.
pub(super) fn split_at_colon(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b':', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Returns whether `byte` is TAB, LF or CR. Without branches, it can be vectorized.
pub(super) fn is_line_break_or_tab(byte: u8) -> bool {
    (byte == b'\t') | (byte == b'\n') | (byte == b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_present_components() {
        let mut draft = Draft::default();
        draft.scheme.extend_from_slice(b"http");
        draft.host.set(Some(b"a.b.c"));
        draft.port.set(Some(b"81"));
        draft.query.set(Some(b""));
        let (mut url, mut surt) = (Vec::new(), Vec::new());
        write_url(&draft, &mut url).unwrap();
        write_surt(&draft, &mut surt).unwrap();
        assert_eq!((&url[..], &surt[..]), (&b"http://a.b.c:81?"[..], &b"c,b,a:81)/?"[..]));
    }
}
