//! Reference resolution. In: a base and a reference. Out: the target. RFC 3986 section 5.2 (RFC 3987 section 6.5 has
//! the same algorithm for IRIs), strict: a reference's scheme is never ignored. Text is neither mapped nor decoded.
//!
//! Refused: a base without a scheme, and text before a first `:` that is no scheme (`1a:b`, `:b`), in either of them.

use super::components::{self, Components};
use super::dots::remove_dot_segments;
use super::grammar;

/// How the base's own dot segments are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// Section 5.2.1: "Normalization of the base URI [...] is optional". A base path that begins with `/` has its
    /// dot segments removed before anything else, as browsers do: `/a/b/..` is the directory `/a/`.
    Normalised,
    /// Section 5.2 to the letter: the base path is taken as it stands.
    Literal,
}

/// The target of `reference` against `base`, or nothing where one of them cannot be taken apart.
pub fn resolve(base: &str, reference: &str, reading: Base) -> Option<String> {
    let mut base = split_checked(base)?;
    base.scheme.as_ref()?;
    if reading == Base::Normalised && base.path.starts_with('/') {
        base.path = remove_dot_segments(&base.path);
    }
    let mut target = transform(&base, split_checked(reference)?);
    components::guard_path(&mut target);
    Some(components::recompose(&target))
}

/// Appendix B, and the two things it takes that the grammar does not: a scheme of other characters, and a first
/// segment with a `:` where no scheme is (`path-noscheme`, section 4.2).
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
