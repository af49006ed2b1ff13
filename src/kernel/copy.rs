//! Short copies: most texts are 10 to 200 bytes, where a call of the C library's memcpy costs as much as the copy.

/// Appends `bytes` to `out`. Equals `out.extend_from_slice(bytes)` and is faster for texts of up to a few hundred bytes.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len();
    out.reserve(len);
    // SAFETY: `reserve` made room for `len` bytes after the vector's end; source and target are different allocations;
    // `copy_short` reads and writes exactly `len` bytes, after which they are initialised.
    unsafe {
        copy_short(bytes.as_ptr(), out.as_mut_ptr().add(out.len()), len);
        out.set_len(out.len() + len);
    }
}

/// Appends bytes `at..at + len` of `text` to `out`. Short ones without a branch on their length: more is copied than
/// asked for, and not kept.
///
/// # Panics
/// When the range is not within `text`.
#[inline(always)]
pub fn append_range(out: &mut Vec<u8>, text: &[u8], at: usize, len: usize) {
    const STEP: usize = 128;
    match text.get(at..).and_then(<[u8]>::first_chunk::<STEP>) {
        Some(bytes) if len <= STEP => {
            out.reserve(STEP);
            // SAFETY: `reserve` made room for `STEP` bytes after the vector's end, which are initialised then; `len`
            // is not more. Source and target are different allocations.
            unsafe {
                out.as_mut_ptr().add(out.len()).cast::<[u8; STEP]>().write_unaligned(*bytes);
                out.set_len(out.len() + len);
            }
        }
        _ => append(out, &text[at..at + len]),
    }
}

/// A case of ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `a` to `z`.
    Lower,
    /// `A` to `Z`.
    Upper,
}

/// As [`append_range`], ASCII letters in `case`.
///
/// # Panics
/// When the range is not within `text`.
#[inline(always)]
pub fn append_range_in_case(out: &mut Vec<u8>, text: &[u8], at: usize, len: usize, case: Case) {
    const STEP: usize = 64;
    let others = if case == Case::Lower { b'A' } else { b'a' };
    let turned = |byte: u8| byte ^ (u8::from(byte.wrapping_sub(others) < 26) << 5);
    match text.get(at..).and_then(<[u8]>::first_chunk::<STEP>) {
        // As many as vectors do at once, whatever `len` is.
        Some(bytes) if len <= STEP => append_some(out, bytes.map(turned), len),
        _ => out.extend(text[at..at + len].iter().map(|&byte| turned(byte))),
    }
}

/// Asks for what stands as far behind `text` as byte `at` is into it, 128 bytes: where `text` is a chunk, the next one is
/// in the cache when its turn comes. Changes nothing, whatever stands there.
#[inline(always)]
pub fn prefetch_behind(text: &[u8], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let behind = text.as_ptr().wrapping_add(text.len() + at);
        // SAFETY: a prefetch reads nothing: an address that nothing stands at is as good as any.
        unsafe {
            _mm_prefetch::<_MM_HINT_T1>(behind.cast());
            _mm_prefetch::<_MM_HINT_T1>(behind.wrapping_add(64).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (text, at);
}

/// Asks for item `at`, so that it is in the cache when it is looked at. Changes nothing, whether it is there or not.
#[inline(always)]
pub fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing: an address that nothing stands at is as good as any.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// Appends the first `count` of `items` to `out`, without a branch on `count`.
///
/// # Panics
/// When `count` is more than there are.
#[inline(always)]
pub fn append_some<T: Copy, const N: usize>(out: &mut Vec<T>, items: [T; N], count: usize) {
    assert!(count <= N);
    out.reserve(N);
    // SAFETY: `reserve` made room for `N` items after the vector's end, which are initialised then; `count` is not more.
    unsafe {
        out.as_mut_ptr().add(out.len()).cast::<[T; N]>().write(items);
        out.set_len(out.len() + count);
    }
}

/// Copies `len` bytes in blocks, the last one overlapping the one before it.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
#[inline(always)]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: each block lies within the first or the last `len` bytes; blocks are at most `len` long.
    unsafe {
        if len >= 32 {
            let mut at = 0;
            while at + 32 <= len {
                block::<32>(from.add(at), to.add(at));
                at += 32;
            }
            block::<32>(from.add(len - 32), to.add(len - 32));
        } else if len >= 16 {
            block::<16>(from, to);
            block::<16>(from.add(len - 16), to.add(len - 16));
        } else if len >= 8 {
            block::<8>(from, to);
            block::<8>(from.add(len - 8), to.add(len - 8));
        } else {
            for at in 0..len {
                *to.add(at) = *from.add(at);
            }
        }
    }
}

/// # Safety
/// As [`copy_short`], for `N` bytes.
#[inline(always)]
unsafe fn block<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's; `[u8; N]` has no alignment.
    unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
}
