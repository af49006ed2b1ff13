//! Proof, from marks alone, that a reference is canonical on every rung.

use std::hint::select_unpredictable;

use super::MarkedReference;
use super::tail::kept_escapes;
use crate::iri::scheme::Scheme;

/// `http://` or `https://` in lower case, a host of lower-case letters, digits, `.` and `-` without `--`, and behind it
/// the path's `/`: what every rung leaves as it is.
#[derive(Clone, Copy, Debug)]
pub struct CanonicalHead {
    /// Where the host ends and the path begins.
    pub(super) host_end: usize,
    host_at: usize,
}

impl CanonicalHead {
    /// The head of `reference`, if it is one of these.
    #[inline(always)]
    pub fn of(reference: &MarkedReference<'_>) -> Option<CanonicalHead> {
        let line = reference.line();
        let head = u64::from_le_bytes(*line.first_chunk::<8>()?);
        let is_http = head & 0x00FF_FFFF_FFFF_FFFF == u64::from_le_bytes(*b"http://\0");
        let is_https = head == u64::from_le_bytes(*b"https://");
        // What is left is no branch until all is known: where lines differ, branches are what costs.
        let host_at = 7 + usize::from(is_https);
        let host_end = reference.next_stop(host_at);
        ((is_http | is_https) && line.get(host_end) == Some(&b'/')).then_some(CanonicalHead { host_end, host_at })
    }

    /// `reference`, whose head this is, is a URI that every rung leaves as it is: behind the head it has no dot segment,
    /// nothing that a URI has no room for, and no escapes but canonical ones. Never true of one that some rung changes;
    /// false of some that none does. With `keep_fragment` there may be a fragment; without it there is none.
    #[inline(always)]
    pub fn is_canonical(self, reference: &MarkedReference<'_>, keep_fragment: bool) -> bool {
        let line = reference.line();
        // No byte that a host keeps as it is needs attention.
        let (from, to) = (reference.at() + self.host_at, reference.at() + line.len());
        if !reference.bitmaps.has_attention(from, to) {
            return true;
        }
        let first = reference.next_attention_near(self.host_end);
        matches!(line.get(first), None | Some(b'%' | b'#')) && are_marks_canonical(reference, first, keep_fragment)
    }
}

/// `http://` or `https://` in any case, at the start of a line.
#[derive(Clone, Copy, Debug)]
pub struct HttpHead {
    /// Which.
    pub scheme: Scheme,
    /// How many bytes it has.
    pub len: usize,
    /// It is in lower case.
    pub is_lower_case: bool,
    /// It, in lower case; behind `http://` one byte more.
    pub(super) lower_case: [u8; 8],
}

impl HttpHead {
    /// The start of `line`, if it is one of these. Without a branch on which.
    #[inline(always)]
    pub fn of(line: &[u8]) -> Option<HttpHead> {
        let head = u64::from_le_bytes(*line.first_chunk::<8>()?);
        // Bit 5 is set in letters only: of all bytes none but a letter's two cases become that letter.
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

/// The start of an `http` or `https` reference, as far as it is known before it is walked.
#[derive(Clone, Copy, Debug)]
pub enum ReferenceHead {
    /// Scheme and host stay as they are.
    Canonical(CanonicalHead),
    /// The scheme is known.
    Http(HttpHead),
}

impl ReferenceHead {
    /// The start of `reference`, whose head is `plain` if it is plain.
    #[inline(always)]
    pub fn of(reference: &MarkedReference<'_>, plain: Option<CanonicalHead>) -> Option<ReferenceHead> {
        match plain {
            Some(head) => Some(ReferenceHead::Canonical(head)),
            None => HttpHead::of(reference.line()).map(ReferenceHead::Http),
        }
    }
}

/// Every mark from the one at byte `at` on is the `#` of the fragment, if that is kept, or an escape that stays as it is.
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
