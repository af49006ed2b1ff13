//! The kernel with 64-byte vectors, one record per 64-bit lane. It equals `Bitmaps::prefix_marks`.

use std::arch::x86_64::*;

use super::marks::{PrefixMarks, Prefixes, SHORT_LEN};
use crate::kernel::span::Span;

/// A text, its bitmaps as bytes, and the prefixes of its records.
pub(super) struct MarkedText<'a> {
    pub(super) text: &'a [u8],
    pub(super) stops: &'a [u8],
    pub(super) attentions: &'a [u8],
    pub(super) prefixes: &'a Prefixes,
}

/// Appends the marks of the records `spans`. Calls `far` for records whose marks are further than a few words, or that begin at
/// the end of the text.
///
/// # Panics
/// If the bitmaps are those of a shorter text.
#[target_feature(enable = "avx512f,avx512cd,avx512dq")]
pub(super) fn push(
    marked: &MarkedText<'_>,
    spans: &[Span],
    marks: &mut Vec<PrefixMarks>,
    far: impl Fn(&Span) -> PrefixMarks,
) {
    let MarkedText { text, stops, attentions, prefixes } = *marked;
    assert!(text.len() / 8 + 16 <= stops.len().min(attentions.len()), "the bitmaps are those of a shorter text");
    marks.reserve(spans.len());
    let (groups, rest) = spans.as_chunks::<8>();
    for spans in groups {
        if spans.iter().any(|span| span.at as usize + 8 > text.len()) {
            marks.extend(spans.iter().map(&far));
            continue;
        }
        // SAFETY: each record begins 8 bytes or more before the end of the text, and the bitmaps have 16 bytes or more from the
        // byte on to which the end of the text belongs.
        let starts = unsafe { RecordStarts::of(text.as_ptr(), stops.as_ptr(), attentions.as_ptr(), spans) };
        let first = marks.len();
        let (found, mut unknown) = starts.marks(prefixes);
        marks.extend_from_slice(&found);
        while unknown != 0 {
            let lane = unknown.trailing_zeros() as usize;
            marks[first + lane] = far(&spans[lane]);
            unknown &= unknown - 1;
        }
    }
    marks.extend(rest.iter().map(&far));
}

/// What eight records begin with, one record per 64-bit lane.
struct RecordStarts {
    ats: __m512i,
    lens: __m512i,
    /// The first 8 bytes.
    heads: __m512i,
    /// Words of the bitmaps that begin at most 7 bits before byte [`SHORT_LEN`] of the record.
    stops: __m512i,
    attentions: [__m512i; 2],
}

impl RecordStarts {
    /// The starts of `spans` of a text with these bitmaps.
    ///
    /// # Safety
    /// For each span, 8 bytes of the text from `at` on, and 16 bytes of the bitmaps from byte `(at + 7) / 8` on must be readable.
    #[inline]
    #[target_feature(enable = "avx512f,avx512cd,avx512dq")]
    unsafe fn of(text: *const u8, stops: *const u8, attentions: *const u8, spans: &[Span; 8]) -> RecordStarts {
        let ats = spans.map(|span| span.at as usize);
        let bytes = ats.map(|at| (at + SHORT_LEN) / 8);
        // SAFETY: the first load reads 64 bytes, the length of the array. The caller guarantees the others.
        unsafe {
            let both = _mm512_loadu_si512(spans.as_ptr().cast());
            RecordStarts {
                ats: _mm512_and_si512(both, splat(u64::from(u32::MAX))),
                lens: _mm512_srli_epi64(both, 32),
                heads: words_at(text, ats),
                stops: words_at(stops, bytes),
                attentions: [words_at(attentions, bytes), words_at(attentions.add(8), bytes)],
            }
        }
    }

    /// The marks of the records, and a mask of those whose marks are not known: they are further than the words reach.
    #[inline]
    #[target_feature(enable = "avx512f,avx512cd,avx512dq")]
    fn marks(&self, prefixes: &Prefixes) -> ([PrefixMarks; 8], u8) {
        let RecordStarts { ats, lens, heads, stops, attentions } = *self;
        let [a, b, c, d, e, f, g] = prefixes.short;
        let is_short =
            _mm512_cmpeq_epi64_mask(_mm512_slli_epi64(heads, 8), splat(u64::from_le_bytes([0, a, b, c, d, e, f, g])));
        let is_long = _mm512_cmpeq_epi64_mask(heads, splat(u64::from_le_bytes(prefixes.long)));
        let has_prefix = (is_short | is_long) & _mm512_cmpge_epu64_mask(lens, splat(8));
        // Bit 0 of the shifted words belongs to byte `SHORT_LEN`, the last one of the long prefix.
        let shift = _mm512_and_si512(_mm512_add_epi64(ats, splat(SHORT_LEN as u64)), splat(7));
        let stops = _mm512_srlv_epi64(stops, shift);
        let stops = _mm512_mask_andnot_epi64(stops, is_long, splat(1), stops);
        let near = _mm512_or_si512(
            _mm512_srlv_epi64(attentions[0], shift),
            _mm512_sllv_epi64(attentions[1], _mm512_sub_epi64(splat(64), shift)),
        );
        let far = _mm512_srlv_epi64(attentions[1], shift);
        let has_near = _mm512_test_epi64_mask(near, near);
        let known = _mm512_test_epi64_mask(stops, stops) & (has_near | _mm512_test_epi64_mask(far, far));
        let offset = |words: __m512i, at: u64| {
            let offset = _mm512_add_epi64(trailing_zeros(words), splat(SHORT_LEN as u64 + at));
            _mm512_min_epu64(offset, lens)
        };
        let attention = _mm512_mask_blend_epi64(has_near, offset(far, 64), offset(near, 0));
        let both = _mm512_or_si512(offset(stops, 0), _mm512_slli_epi64(attention, 32));
        let mut found = [PrefixMarks::default(); 8];
        // SAFETY: the store writes 64 bytes, the length of the array, whose items are two `u32` each.
        unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), _mm512_maskz_mov_epi64(has_prefix, both)) };
        (found, has_prefix & !known)
    }
}

/// The words that begin at these bytes after `first`.
///
/// # Safety
/// Each word must be readable.
#[inline]
#[target_feature(enable = "avx512f,avx512cd,avx512dq")]
unsafe fn words_at(first: *const u8, bytes: [usize; 8]) -> __m512i {
    // SAFETY: the caller guarantees that the words are readable.
    let [a, b, c, d, e, f, g, h] = bytes.map(|at| unsafe { first.add(at).cast::<i64>().read_unaligned() });
    _mm512_set_epi64(h, g, f, e, d, c, b, a)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(number: u64) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// The number of trailing zeros of each word that is not 0.
#[inline]
#[target_feature(enable = "avx512f,avx512cd")]
fn trailing_zeros(words: __m512i) -> __m512i {
    let lowest = _mm512_and_si512(words, _mm512_sub_epi64(_mm512_setzero_si512(), words));
    _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_lzcnt_epi64(lowest))
}
