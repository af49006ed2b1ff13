//! Reference resolution, RFC 3986 section 5.2 as RFC 3987 section 6.5 takes it over. A base and a reference in, the
//! target out; characters stay as they are, nothing is encoded or decoded.

use super::check::{check_authority_lenient, check_path_noscheme};
use super::dots::remove_dot_segments;
use super::parts::Parts;
use super::{Component, Fault, FaultKind};

/// A base that references are resolved against; made once, used for many.
///
/// ```
/// use irikey::iri::Base;
/// let base = Base::new(b"http://a/b/c/d;p?q").unwrap();
/// assert_eq!(base.resolve(b"../g").unwrap(), b"http://a/b/g");
/// assert_eq!(base.resolve(b"http:g").unwrap(), b"http:g");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Base {
    text: Vec<u8>,
    parts: Parts,
}

impl Base {
    /// A base; its fragment is dropped (section 5.1) and the dot segments of an absolute path are removed, as every
    /// browser does. [`Base::literal`] leaves them.
    ///
    /// # Errors
    /// [`FaultKind::Base`] if it has no scheme or its authority cannot be taken apart; `at` is an offset into `text`.
    pub fn new(text: &[u8]) -> Result<Base, Fault> {
        let mut base = Base::literal(text)?;
        let (from, to) = (base.parts.path_at as usize, base.parts.path_end as usize);
        if base.text.get(from) == Some(&b'/') {
            let len = remove_dot_segments(&mut base.text[from..to]);
            base.text.drain(from + len..to);
            let guard = path_guard(base.parts.authority.is_some(), &base.text[from..from + len]);
            base.text.splice(from..from, guard.iter().copied());
            base.parts = Parts::split(&base.text);
        }
        Ok(base)
    }

    /// A base taken exactly as section 5.2.2 takes it, less its fragment.
    ///
    /// # Errors
    /// As [`Base::new`].
    pub fn literal(text: &[u8]) -> Result<Base, Fault> {
        let parts = Parts::split(text);
        let no_base = |at: u32, component| Fault { kind: FaultKind::Base, component, at };
        if parts.scheme_len.is_none() {
            return Err(no_base(0, Component::Reference));
        }
        if let Some(authority) = parts.authority {
            check_authority_lenient(text, authority).map_err(|fault| no_base(fault.at, fault.component))?;
        }
        let text = text[..parts.query_end as usize].to_vec();
        Ok(Base { parts: Parts::split(&text), text })
    }

    /// The base as it is used: without fragment.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The target of `reference`: section 5.2.2, strict.
    ///
    /// # Errors
    /// A reference whose first segment holds a `:` that ends no scheme.
    pub fn resolve(&self, reference: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut target = Vec::new();
        self.write_target(reference, &mut target)?;
        Ok(target)
    }

    /// As [`Base::resolve`], appending to the caller's buffer.
    ///
    /// # Errors
    /// As [`Base::resolve`]; nothing is appended then.
    pub fn write_target(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let r = Parts::split(reference);
        if r.scheme_len.is_none() {
            check_path_noscheme(reference)?;
        }
        let base = &self.text[..];
        let scheme = r.scheme(reference).or(self.parts.scheme(base)).unwrap_or_default();
        let is_own = r.scheme_len.is_some() || r.authority.is_some();
        let authority = if is_own { r.authority(reference) } else { self.parts.authority(base) };
        let path = r.path(reference);
        out.extend_from_slice(scheme);
        out.push(b':');
        if let Some(authority) = authority {
            out.extend_from_slice(b"//");
            out.extend_from_slice(authority);
        }
        let path_at = out.len();
        let mut query = r.query(reference);
        if is_own || path.starts_with(b"/") {
            push_path(out, path_at, &[path], authority.is_some());
        } else if path.is_empty() {
            out.extend_from_slice(self.parts.path(base));
            query = query.or(self.parts.query(base));
        } else {
            push_path(out, path_at, &[self.merge_prefix(), path], authority.is_some());
        }
        for (mark, part) in [(b'?', query), (b'#', r.fragment(reference))] {
            if let Some(part) = part {
                out.push(mark);
                out.extend_from_slice(part);
            }
        }
        Ok(())
    }

    /// Section 5.2.3: what a relative path is appended to.
    fn merge_prefix(&self) -> &[u8] {
        let path = self.parts.path(&self.text);
        if path.is_empty() && self.parts.authority.is_some() {
            return b"/";
        }
        &path[..memchr::memrchr(b'/', path).map_or(0, |at| at + 1)]
    }
}

/// Appends a path without its dot segments, guarded where it would be read as an authority.
fn push_path(out: &mut Vec<u8>, path_at: usize, pieces: &[&[u8]], has_authority: bool) {
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    let len = remove_dot_segments(&mut out[path_at..]);
    out.truncate(path_at + len);
    let guard = path_guard(has_authority, &out[path_at..]);
    out.splice(path_at..path_at, guard.iter().copied());
}

/// What must stand before a path so that it is not read as an authority: `/.` before `//` where there is none.
pub(super) fn path_guard(has_authority: bool, path: &[u8]) -> &'static [u8] {
    if !has_authority && path.starts_with(b"//") { b"/." } else { b"" }
}
