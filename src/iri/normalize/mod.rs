//! The fused pass: what `ladder.rs` does in named steps, done in one walk over a reference whose chunk has bitmaps.
//!
//! ```text
//! proof      canonical as it stands? then it is copied; every other reference is walked from mark to mark,
//! authority  through scheme, userinfo, host and port,
//! tail       then path, query and fragment; what lies between two marks is copied as it is
//! ```

mod authority;
mod proof;
mod tail;

use std::ops::Range;

pub use proof::{CanonicalHead, HttpHead, ReferenceHead};

use super::host::HostCache;
use super::scheme::Scheme;
use super::{Changes, Fault, Flags};
use crate::kernel::Span;
use crate::kernel::{AsciiCase, Bitmaps, append_range, append_range_in_case, append_some};

/// One reference of a text that bitmaps describe.
#[derive(Clone, Copy, Debug)]
pub struct MarkedReference<'a> {
    /// The text that it stands in: a chunk, or itself alone.
    pub text: &'a [u8],
    /// Marks of the text, made with [`super::CLASSIFIER`].
    pub bitmaps: &'a Bitmaps,
    /// Where it stands in the text.
    pub span: Span,
}

impl<'a> MarkedReference<'a> {
    /// The reference's bytes.
    #[inline(always)]
    pub fn line(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// Where the reference begins in the text.
    #[inline(always)]
    fn at(&self) -> usize {
        self.span.at as usize
    }

    #[inline(always)]
    fn next_attention_near(&self, from: usize) -> usize {
        self.bitmaps.next_attention_near(self.at() + from) - self.at()
    }

    #[inline(always)]
    fn next_stop(&self, from: usize) -> usize {
        self.bitmaps.next_stop(self.at() + from) - self.at()
    }

    /// Appends bytes `range` of the reference to `out`.
    #[inline(always)]
    fn append(&self, range: Range<usize>, out: &mut Vec<u8>) {
        append_range(out, self.text, self.at() + range.start, range.len());
    }

    /// Likewise, ASCII letters in `case`.
    #[inline(always)]
    fn append_in_case(&self, range: Range<usize>, case: AsciiCase, out: &mut Vec<u8>) {
        append_range_in_case(out, self.text, self.at() + range.start, range.len(), case);
    }
}

/// What the pass keeps from one reference to the next; its answers do not depend on it.
#[derive(Debug, Default)]
pub struct Normalizer {
    hosts: HostCache,
}

impl Normalizer {
    /// Appends the URI of an absolute IRI to `out`: the text of the scheme rung if `SCHEME`, else of the syntax rung,
    /// by lenient intake; strict intake is the caller's check beforehand. `drop_fragment` leaves the fragment out.
    ///
    /// # Errors
    /// What lenient intake refuses; `out` may then have grown.
    pub fn normalize<const SCHEME: bool>(
        &mut self,
        reference: MarkedReference<'_>,
        drop_fragment: bool,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        self.pass::<SCHEME>(reference, drop_fragment, out).run()
    }

    /// As [`Normalizer::normalize`] on the scheme rung, of a reference whose start is known; meant to be compiled into
    /// the loop over many of them.
    ///
    /// # Errors
    /// Likewise.
    #[inline(always)]
    pub fn normalize_http(
        &mut self,
        reference: MarkedReference<'_>,
        start: ReferenceHead,
        drop_fragment: bool,
        out: &mut Vec<u8>,
    ) -> Result<(Flags, Changes), Fault> {
        self.pass::<true>(reference, drop_fragment, out).run_web(start)
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
            line: reference.line(),
            out,
            hosts: &mut self.hosts,
            drop_fragment,
            flags: Flags::NONE,
            changes: Changes::NONE,
            may_have_dots: false,
        }
    }
}

struct Pass<'a, const SCHEME: bool> {
    reference: MarkedReference<'a>,
    line: &'a [u8],
    out: &'a mut Vec<u8>,
    hosts: &'a mut HostCache,
    drop_fragment: bool,
    flags: Flags,
    changes: Changes,
    may_have_dots: bool,
}

impl<const SCHEME: bool> Pass<'_, SCHEME> {
    fn run(mut self) -> Result<(Flags, Changes), Fault> {
        let (scheme, mut at) = self.scheme()?;
        let mut has_authority = self.line[at..].starts_with(b"//");
        if has_authority {
            self.out.extend_from_slice(b"//");
            at = self.authority(scheme, at + 2)?;
        } else if SCHEME && scheme == Scheme::File && self.line.get(at) == Some(&b'/') {
            self.out.extend_from_slice(b"//");
            self.changes |= Changes::FILE_HOST;
            has_authority = true;
        }
        self.rest(scheme, at, has_authority)
    }

    /// [`Pass::run`] for `http://` and `https://`, which are most of what is crawled.
    #[inline(always)]
    fn run_web(mut self, start: ReferenceHead) -> Result<(Flags, Changes), Fault> {
        match start {
            // A plain head is written with what stays as it is behind it.
            ReferenceHead::Canonical(head) => {
                let path_at = self.out.len() + head.host_end;
                self.tail(0, head.host_end);
                self.clean_path(path_at, true);
                Ok((self.flags, self.changes))
            }
            ReferenceHead::Http(start) => {
                append_some(self.out, start.lower_case, start.len);
                self.changes |= if start.is_lower_case { Changes::NONE } else { Changes::CASE };
                let at = self.authority(start.scheme, start.len)?;
                if at == self.line.len() {
                    // A host by itself, as lists of seeds have it: on the way through `rest` it would take a fifth longer.
                    self.empty_path();
                    return Ok((self.flags, self.changes));
                }
                self.rest(start.scheme, at, true)
            }
        }
    }

    /// Writes what follows the authority, or the scheme if there is none.
    fn rest(mut self, scheme: Scheme, at: usize, has_authority: bool) -> Result<(Flags, Changes), Fault> {
        let path_at = self.out.len();
        if SCHEME && has_authority && scheme.is_network() && matches!(self.line.get(at), None | Some(b'?' | b'#')) {
            self.empty_path();
        }
        self.tail(at, at);
        self.clean_path(path_at, has_authority);
        if SCHEME && scheme == Scheme::Urn && !has_authority {
            self.urn_namespace(path_at);
        }
        Ok((self.flags, self.changes))
    }

    /// Section 5.3.3: an empty path behind an authority is `/`.
    #[inline(always)]
    fn empty_path(&mut self) {
        self.out.push(b'/');
        self.changes |= Changes::EMPTY_PATH;
    }

    /// Removes the dot segments of the path that was written at `path_at`, if it may have any.
    #[inline(always)]
    fn clean_path(&mut self, path_at: usize, has_authority: bool) {
        if self.may_have_dots {
            self.dot_segments(path_at, has_authority);
        }
    }
}
