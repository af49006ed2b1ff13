//! Resolves a reference against a base: RFC 3986 section 5.2 (RFC 3987 section 6.5 has the same algorithm for IRIs), in
//! the strict variant, which does not ignore the scheme of a reference. Text is neither mapped nor decoded.
//!
//! Rejects a base without a scheme, and a base or reference with text before the first `:` that is not a scheme (`1a:b`,
//! `:b`).

use super::components::{self, Components};
use super::dots::remove_dot_segments;
use super::grammar;

/// What happens to the dot segments of the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Section 5.2.1: "Normalization of the base URI [...] is optional". Escaped dots of dot segments are decoded first. Then the
    /// dot segments of a base path that begins with `/` are removed, as browsers do: `/a/b/..` and `/a/b/%2e%2e` are the
    /// directory `/a/`.
    Normalized,
    /// Section 5.2 literally: the base path does not change.
    Literal,
}

/// Returns the target of `reference` against `base`, or `None` if one of them is rejected.
pub fn resolve(base: &str, reference: &str, reading: Base) -> Option<String> {
    let mut base = split_checked(base)?;
    base.scheme.as_ref()?;
    if reading == Base::Normalized {
        base.path = decode_dots(&base.path);
        if base.path.starts_with('/') {
            base.path = remove_dot_segments(&base.path);
        }
    }
    let mut target = transform(&base, split_checked(reference)?);
    components::guard_path(&mut target);
    Some(components::recompose(&target))
}

/// Returns `reference` with the escaped dots of its dot segments decoded. [`resolve`] leaves them as they are.
pub fn decode_dots_of(reference: &str) -> String {
    let mut split = components::split(reference);
    split.path = decode_dots(&split.path);
    components::recompose(&split)
}

/// Section 6.2.2.2: `%2E` and `%2e` are equivalent to a dot, so they form dot segments too.
fn decode_dots(path: &str) -> String {
    let decode = |segment: &str| {
        let dots = segment.replace("%2e", ".").replace("%2E", ".");
        if dots == "." || dots == ".." { dots } else { segment.to_string() }
    };
    path.split('/').map(decode).collect::<Vec<_>>().join("/")
}

/// Appendix B without the two forms that it accepts and the grammar does not: a malformed scheme, and a `:` in the first
/// segment of a reference without a scheme (`path-noscheme`, section 4.2).
fn split_checked(reference: &str) -> Option<Components> {
    let split = components::split(reference);
    let is_scheme = split.scheme.as_deref().is_none_or(grammar::is_scheme);
    let begins_with_colon = reference.starts_with(':');
    (is_scheme && !begins_with_colon).then_some(split)
}

/// Section 5.2.2, "Transform References", line by line.
fn transform(base: &Components, r: Components) -> Components {
    let mut t = Components::default();
    // if defined(R.scheme) then
    if r.scheme.is_some() {
        t.scheme = r.scheme;
        t.authority = r.authority;
        t.path = remove_dot_segments(&r.path);
        t.query = r.query;
    } else {
        // if defined(R.authority) then
        if r.authority.is_some() {
            t.authority = r.authority;
            t.path = remove_dot_segments(&r.path);
            t.query = r.query;
        } else {
            // if (R.path == "") then
            if r.path.is_empty() {
                t.path = base.path.clone();
                // if defined(R.query) then T.query = R.query; else T.query = Base.query;
                t.query = if r.query.is_some() { r.query } else { base.query.clone() };
            } else {
                // if (R.path starts-with "/") then
                if r.path.starts_with('/') {
                    t.path = remove_dot_segments(&r.path);
                } else {
                    t.path = merge(base, &r.path);
                    t.path = remove_dot_segments(&t.path);
                }
                t.query = r.query;
            }
            t.authority = base.authority.clone();
        }
        t.scheme = base.scheme.clone();
    }
    t.fragment = r.fragment;
    t
}

/// Section 5.2.3, "Merge Paths".
fn merge(base: &Components, reference_path: &str) -> String {
    if base.authority.is_some() && base.path.is_empty() {
        // If the base URI has a defined authority component and an empty path, then return a string consisting of
        // "/" concatenated with the reference's path; otherwise,
        format!("/{reference_path}")
    } else {
        // return a string consisting of the reference's path component appended to all but the last segment of the
        // base URI's path (i.e., excluding any characters after the right-most "/" in the base URI path, or excluding
        // the entire base URI path if it does not contain any "/" characters).
        let kept = base.path.rfind('/').map_or(0, |at| at + 1);
        format!("{}{reference_path}", &base.path[..kept])
    }
}
