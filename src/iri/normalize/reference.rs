//! A reference in its chunk, and what its first bytes and its marks show before the pass starts.
//!
//! [`CanonicalHead`] and [`CanonicalHead::is_canonical`] prove from the bitmaps alone that a reference is canonical on
//! every rung, so that it can be copied without a pass.

use std::hint::select_unpredictable;
use std::ops::Range;

use crate::iri::percent::kept_escapes;
use crate::iri::scheme::Scheme;
use crate::kernel::{AsciiCase, Bitmaps, Span, append_range, append_range_in_case};

/// One reference in a text that is described by bitmaps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkedReference<'a> {
    /// The text that contains the reference: a chunk, or the reference alone.
    pub(crate) text: &'a [u8],
    /// Bitmaps of the text, made with [`crate::iri::CLASSIFIER`].
    pub(crate) bitmaps: &'a Bitmaps,
    /// Position of the reference in the text.
    pub(crate) span: Span,
}

impl<'a> MarkedReference<'a> {
    /// A reference that is the whole text of `bitmaps`.
    pub(crate) fn whole(text: &'a [u8], bitmaps: &'a Bitmaps) -> MarkedReference<'a> {
        MarkedReference { text, bitmaps, span: Span::new(0, text.len()) }
    }

    /// The bytes of the reference.
    #[inline(always)]
    pub(crate) fn line(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// Offset of the reference in the text.
    #[inline(always)]
    fn at(&self) -> usize {
        self.span.at as usize
    }

    #[inline(always)]
    pub(super) fn next_attention_near(&self, from: usize) -> usize {
        self.bitmaps.next_attention_near(self.at() + from) - self.at()
    }

    #[inline(always)]
    pub(super) fn next_stop(&self, from: usize) -> usize {
        self.bitmaps.next_stop(self.at() + from) - self.at()
    }

    /// The 64 bytes of the text from byte `from` of the reference on, and a mask of the stop bytes among them; `None` if the
    /// text ends before.
    #[inline(always)]
    pub(super) fn window(&self, from: usize) -> Option<(&'a [u8; 64], u64)> {
        let bytes = self.text.get(self.at() + from..)?.first_chunk()?;
        Some((bytes, self.bitmaps.stops(self.at() + from)))
    }

    /// Appends bytes `range` of the reference to `out`.
    #[inline(always)]
    pub(super) fn append(&self, range: Range<usize>, out: &mut Vec<u8>) {
        append_range(out, self.text, self.at() + range.start, range.len());
    }

    /// Appends bytes `range` of the reference to `out`, with ASCII letters converted to `case`.
    #[inline(always)]
    pub(super) fn append_in_case(&self, range: Range<usize>, case: AsciiCase, out: &mut Vec<u8>) {
        append_range_in_case(out, self.text, self.at() + range.start..self.at() + range.end, case);
    }
}

/// A head that no rung changes: `http://` or `https://` in lower case, a host of lower-case letters, digits, `.` and
/// `-` without `--`, and the `/` of the path after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CanonicalHead {
    /// End of the host and start of the path.
    pub(super) host_end: usize,
    host_at: usize,
}

impl CanonicalHead {
    /// The head of `reference`, if it is canonical.
    #[inline(always)]
    pub(crate) fn of(reference: &MarkedReference<'_>) -> Option<CanonicalHead> {
        let line = reference.line();
        let head = u64::from_le_bytes(*line.first_chunk::<8>()?);
        let is_http = head & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
        let is_https = head == u64::from_le_bytes(*b"https://");
        // One branch at the end, when everything is known: branches that differ from line to line are expensive.
        let host_at = 7 + usize::from(is_https);
        let host_end = reference.next_stop(host_at);
        ((is_http | is_https) && line.get(host_end) == Some(&b'/')).then_some(CanonicalHead { host_end, host_at })
    }

    /// Returns true if `reference`, which has this head, is a URI that no rung changes: after the head it has no dot
    /// segment, no character that a URI cannot contain, and only canonical escapes.
    ///
    /// Never returns true for a reference that a rung changes; returns false for some that no rung changes. With
    /// `keep_fragment` the reference may have a fragment, otherwise it has none.
    #[inline(always)]
    pub(crate) fn is_canonical(self, reference: &MarkedReference<'_>, keep_fragment: bool) -> bool {
        let line = reference.line();
        // No byte of a canonical host needs attention. A search from its start on can begin before its end is known.
        let first = reference.next_attention_near(self.host_at);
        first >= line.len()
            || (matches!(line[first], b'%' | b'#') && are_marks_canonical(reference, first, keep_fragment))
    }
}

/// Returns true if every mark from byte `at` on is an escape that stays, or the `#` of the fragment if that is kept.
#[inline(always)]
fn are_marks_canonical(reference: &MarkedReference<'_>, mut at: usize, keep_fragment: bool) -> bool {
    let line = reference.line();
    let mut may_begin_fragment = keep_fragment;
    while at < line.len() {
        match line[at] {
            b'%' => match kept_escapes(&line[at..]) {
                (0, _) | (_, true) => return false,
                (len, false) => at += len,
            },
            b'#' if may_begin_fragment => {
                may_begin_fragment = false;
                at += 1;
            }
            _ => return false,
        }
        at = reference.next_attention_near(at);
    }
    true
}

/// `http://` or `https://`, in any case, at the start of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpHead {
    /// [`Scheme::Http`] or [`Scheme::Https`].
    pub(crate) scheme: Scheme,
    /// Length in bytes, including `//`.
    pub(crate) len: usize,
    /// The scheme is written in lower case.
    pub(crate) is_lower_case: bool,
    /// The head in lower case; after `http://` follows one byte of the host.
    pub(super) lower_case: [u8; 8],
}

impl HttpHead {
    /// The head of `line`, if it is `http://` or `https://`. There is no branch on which of the two it is.
    #[inline(always)]
    pub(crate) fn of(line: &[u8]) -> Option<HttpHead> {
        let head = u64::from_le_bytes(*line.first_chunk::<8>()?);
        // Bit 5 is set in the positions of letters only. Only the two cases of a letter become that letter.
        let (as_http, as_https) = (head | 0x2020_2020, head | 0x20_2020_2020);
        let is_http = as_http & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
        let is_https = as_https == u64::from_le_bytes(*b"https://");
        let lower_case = select_unpredictable(is_https, as_https, as_http);
        (is_http | is_https).then_some(HttpHead {
            scheme: select_unpredictable(is_https, Scheme::Https, Scheme::Http),
            len: 7 + usize::from(is_https),
            is_lower_case: head == lower_case,
            lower_case: lower_case.to_le_bytes(),
        })
    }
}

/// The head of an `http` or `https` reference, as far as it is known before the pass.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReferenceHead {
    /// Scheme and host stay as they are.
    Canonical(CanonicalHead),
    /// The scheme is known.
    Http(HttpHead),
}

impl ReferenceHead {
    /// The head of `reference`, which is `canonical` if that is present; `None` for other schemes.
    #[inline(always)]
    pub(crate) fn of(reference: &MarkedReference<'_>, canonical: Option<CanonicalHead>) -> Option<ReferenceHead> {
        match canonical {
            Some(head) => Some(ReferenceHead::Canonical(head)),
            None => HttpHead::of(reference.line()).map(ReferenceHead::Http),
        }
    }
}
