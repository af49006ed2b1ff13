//! Normalization in a single pass: the same result as the named steps of [`super::ladder`], for chunks of crawl data.
//!
//! The pass reads the bitmaps of the reference's chunk instead of its bytes: it jumps from one marked byte to the next
//! and copies everything between them.
//!
//! ```text
//!              ┌─ head is canonical and no mark needs work ──> the reference is copied (decided in reference.rs)
//! reference ───┤
//!              └─ otherwise: scheme, authority (authority.rs) ──> path, query, fragment (tail.rs) ──> dot segments
//! ```
//!
//! The shape of these functions and their `inline` attributes follow measurements (benches/instructions.txt): branches
//! that depend on the next byte of crawl data cannot be predicted, so tables and selections replace them.

mod authority;
mod reference;
mod tail;

pub(crate) use reference::{CanonicalHead, HttpHead, MarkedReference, ReferenceHead, WEB_PREFIXES};

use std::ops::Range;

use super::fault::Fault;
use super::flags::{Changes, Flags};
use super::host::{HostCache, MAX_HOST_GROWTH};
use super::ladder::Rung;
use super::scheme::Scheme;
use crate::kernel::append_some;

/// [`Normalizer::normalize`] appends at most this many bytes per byte of the reference. Hosts grow most; all other components grow
/// only by escapes, which take three bytes for one.
pub(crate) const MAX_GROWTH: usize = MAX_HOST_GROWTH;

/// The single-pass normalizer. It keeps a cache of hosts between references; results do not depend on the cache.
#[derive(Debug, Default)]
pub(crate) struct Normalizer {
    hosts: HostCache,
}

impl Normalizer {
    /// Appends the URI of an absolute IRI to `out`: its text on `rung`, for [`Rung::Simple`] that on the rung `syntax`.
    /// With `drop_fragment` the fragment is left out.
    ///
    /// The pass is lenient; for strict mode the caller checks the reference first.
    ///
    /// # Errors
    /// The fault that lenient mode finds. Bytes may have been appended to `out` by then.
    pub(crate) fn normalize(
        &mut self,
        reference: MarkedReference<'_>,
        rung: Rung,
        drop_fragment: bool,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        match rung {
            Rung::Scheme => self.pass::<true>(reference, drop_fragment, out).run(),
            Rung::Simple | Rung::Syntax => self.pass::<false>(reference, drop_fragment, out).run(),
        }
    }

    /// [`Normalizer::normalize`] on the rung `scheme`, for an `http` or `https` reference whose head is already known.
    /// It is meant to be inlined into the loop over the references of a chunk.
    ///
    /// # Errors
    /// As [`Normalizer::normalize`].
    #[inline(always)]
    pub(crate) fn normalize_http(
        &mut self,
        reference: MarkedReference<'_>,
        head: ReferenceHead,
        drop_fragment: bool,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        self.pass::<true>(reference, drop_fragment, out).run_http(head)
    }

    #[inline(always)]
    fn pass<'a, const SCHEME: bool>(
        &'a mut self,
        reference: MarkedReference<'a>,
        drop_fragment: bool,
        out: &'a mut Vec<u8>,
    ) -> Pass<'a, SCHEME> {
        Pass {
            reference,
            bytes: reference.bytes(),
            out,
            hosts: &mut self.hosts,
            drop_fragment,
            flags: Flags::NONE,
            changes: Changes::NONE,
            dots: NO_DOTS,
        }
    }
}

/// The state of one pass, which gives the text on the rung `scheme` if `SCHEME`, otherwise on the rung `syntax`. Further
/// methods are in `authority.rs` and `tail.rs`.
struct Pass<'a, const SCHEME: bool> {
    reference: MarkedReference<'a>,
    bytes: &'a [u8],
    out: &'a mut Vec<u8>,
    hosts: &'a mut HostCache,
    drop_fragment: bool,
    flags: Flags,
    changes: Changes,
    /// Where the first and the last dot that may belong to a dot segment are in `out`; empty if there are none.
    dots: Range<usize>,
}

const NO_DOTS: Range<usize> = Range { start: usize::MAX, end: 0 };

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    fn run(mut self) -> Result<(Flags, Changes), Fault> {
        let (scheme, mut at) = self.write_scheme()?;
        let mut has_authority = self.bytes[at..].starts_with(b"//");
        if has_authority {
            self.out.extend_from_slice(b"//");
            at = self.write_authority(scheme, at + 2)?;
        } else if SCHEME && scheme == Scheme::File && self.bytes.get(at) == Some(&b'/') {
            self.out.extend_from_slice(b"//");
            self.changes |= Changes::FILE_HOST;
            has_authority = true;
        }
        self.write_after_authority(scheme, at, has_authority)
    }

    /// [`Pass::run`] for `http://` and `https://`, the schemes of most crawl data.
    #[inline(always)]
    fn run_http(mut self, head: ReferenceHead) -> Result<(Flags, Changes), Fault> {
        let out_at = self.out.len();
        let (copied, at, path_at, first_mark) = match head {
            // A canonical head is copied together with the unchanged bytes that follow it. A dot is marked if the host begins
            // with it.
            ReferenceHead::Canonical(CanonicalHead { host_end, first_mark }) => {
                let is_in_host = first_mark < host_end;
                let first_mark = if is_in_host { self.reference.next_attention_near(host_end) } else { first_mark };
                (0, host_end, out_at + host_end, first_mark)
            }
            ReferenceHead::Http(head) => {
                append_some(self.out, head.lower_case, head.len);
                self.changes |= if head.is_lower_case { Changes::NONE } else { Changes::CASE };
                let at = self.write_authority(head.scheme, head.len)?;
                (at, at, self.out.len(), self.reference.next_attention_near(at))
            }
        };
        match self.bytes.get(at) {
            // A host alone, as in lists of hosts.
            None => {
                self.reference.append(copied..at, self.out);
                self.write_empty_path();
                return Ok((self.flags, self.changes));
            }
            Some(b'?' | b'#') => self.write_empty_path(),
            _ => {}
        }
        self.write_path_query_fragment(copied, at, first_mark);
        self.remove_dot_segments(path_at, true);
        Ok((self.flags, self.changes))
    }

    /// Writes what follows the authority, or what follows the scheme if there is no authority.
    fn write_after_authority(
        mut self,
        scheme: Scheme,
        at: usize,
        has_authority: bool,
    ) -> Result<(Flags, Changes), Fault> {
        let path_at = self.out.len();
        if SCHEME && has_authority && scheme.is_network() && matches!(self.bytes.get(at), None | Some(b'?' | b'#')) {
            self.write_empty_path();
        }
        self.write_path_query_fragment(at, at, self.reference.next_attention_near(at));
        self.remove_dot_segments(path_at, has_authority);
        if SCHEME && scheme == Scheme::Urn && !has_authority {
            self.lower_case_urn_namespace(path_at);
        }
        Ok((self.flags, self.changes))
    }

    /// Section 5.3.3: an empty path after an authority is `/`.
    #[inline(always)]
    fn write_empty_path(&mut self) {
        self.out.push(b'/');
        self.changes |= Changes::EMPTY_PATH;
    }

    /// Removes the dot segments of the path that was written at `path_at`, if it may contain any.
    #[inline(always)]
    fn remove_dot_segments(&mut self, path_at: usize, has_authority: bool) {
        if !self.dots.is_empty() {
            self.remove_noted_dot_segments(path_at, has_authority);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::CLASSIFIER;
    use crate::kernel::Bitmaps;

    /// A character grows most if it is alone in its label.
    #[test]
    fn no_character_grows_by_more_than_the_maximum() {
        let (mut normalizer, mut bitmaps, mut out) = (Normalizer::default(), Bitmaps::default(), Vec::new());
        let mut uri_len = |text: &str| {
            out.clear();
            bitmaps.classify(text.as_bytes(), &CLASSIFIER);
            let reference = MarkedReference::whole(text.as_bytes(), &bitmaps);
            normalizer.normalize(reference, Rung::Scheme, false, &mut out).map(|_| out.len())
        };
        let mut max_growth = [0.0; 3];
        for c in '\0'..=char::MAX {
            let texts = [format!("http://{c}"), format!("http://h/{c}"), format!("http://h/?{c}")];
            for ((text, without), max) in texts.iter().zip(["http:///", "http://h/", "http://h/?"]).zip(&mut max_growth)
            {
                // A bracket in a host is a fault.
                let Ok(uri_len) = uri_len(text) else { continue };
                let len = uri_len.saturating_sub(without.len());
                assert!(len <= MAX_GROWTH * c.len_utf8(), "{text:?}");
                *max = f64::max(*max, len as f64 / c.len_utf8() as f64);
            }
        }
        assert_eq!(max_growth, [17.0 / 3.0, 3.0, 3.0]);
    }
}
