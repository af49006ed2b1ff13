//! Short copies and prefetches. Most texts are 10 to 200 bytes long, and for these a call of the C library's `memcpy`
//! costs as much as the copy itself.

use std::ops::Range;

/// Appends `bytes` to `out`. Equals `out.extend_from_slice(bytes)` and is faster for up to a few hundred bytes.
#[inline(always)]
pub(crate) fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len();
    out.reserve(len);
    // SAFETY: `reserve` made the `len` bytes after the vector's length writable. Source and destination are in
    // different allocations. `copy_short` reads and initializes exactly `len` bytes.
    unsafe {
        copy_short(bytes.as_ptr(), out.as_mut_ptr().add(out.len()), len);
        out.set_len(out.len() + len);
    }
}

/// Bytes that [`append_range`] copies at once.
pub(crate) const COPY_LEN: usize = 128;

/// Appends bytes `at..at + len` of `text` to `out`. Up to [`COPY_LEN`] bytes are copied without a branch on their length: the
/// function always copies [`COPY_LEN`] bytes, and keeps `len` of them.
///
/// # Panics
/// If the range is not within `text`.
#[inline(always)]
pub(crate) fn append_range(out: &mut Vec<u8>, text: &[u8], at: usize, len: usize) {
    let mut appender = Appender::new(out, len.max(COPY_LEN));
    appender.append_range(text, at, len);
    appender.finish();
}

/// Appends the first `len` bytes of `text` and an `LF` to `out`, like [`append_range`].
///
/// # Panics
/// If `text` is shorter.
#[inline(always)]
pub(crate) fn append_line(out: &mut Vec<u8>, text: &[u8], len: usize) {
    let mut appender = Appender::new(out, len.max(COPY_LEN) + 1);
    appender.append_range(text, 0, len);
    appender.push(b'\n');
    appender.finish();
}

/// The case of ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AsciiCase {
    /// `a` to `z`.
    Lower,
    /// `A` to `Z`.
    Upper,
}

/// Appends the bytes `range` of `text` to `out` like [`append_range`], and converts ASCII letters to `case`.
///
/// # Panics
/// If the range is not within `text`.
#[inline(always)]
pub(crate) fn append_range_in_case(out: &mut Vec<u8>, text: &[u8], range: Range<usize>, case: AsciiCase) {
    let len = range.len();
    const STEP: usize = 64;
    let first_converted = if case == AsciiCase::Lower { b'A' } else { b'a' };
    let convert = |byte: u8| byte ^ (u8::from(byte.wrapping_sub(first_converted) < 26) << 5);
    match text.get(range.start..).and_then(<[u8]>::first_chunk::<STEP>) {
        // Vector instructions convert all 64 bytes in a few steps.
        Some(bytes) if len <= STEP => append_some(out, bytes.map(convert), len),
        _ => out.extend(text[range].iter().map(|&byte| convert(byte))),
    }
}

/// Appends several short texts, or other groups of few items, to a vector. The length of the vector is only written at the
/// end, so that no copy depends on a length that the copy before it stored.
pub(crate) struct Appender<'a, T = u8> {
    out: &'a mut Vec<T>,
    len: usize,
}

impl<'a, T: Copy> Appender<'a, T> {
    /// Returns an appender to `out` with room for `room` items, which include those that each call writes.
    #[inline(always)]
    pub(crate) fn new(out: &'a mut Vec<T>, room: usize) -> Appender<'a, T> {
        out.reserve(room);
        let len = out.len();
        Appender { out, len }
    }

    /// Returns how many more items there is room for.
    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        self.out.capacity() - self.len
    }

    /// Makes room for `room` more items. If the vector has to grow, it keeps all items that were appended before.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, room: usize) {
        if self.room() < room {
            // SAFETY: the appending functions initialized all items up to `len`, which they checked to be within the capacity.
            unsafe { self.out.set_len(self.len) };
            self.out.reserve(room);
        }
    }

    /// Appends `item`.
    ///
    /// # Panics
    /// If there is no room.
    #[inline(always)]
    pub(crate) fn push(&mut self, item: T) {
        self.append([item], 1);
    }

    /// Appends the first `len` of `items`, and overwrites the room after them with the others.
    ///
    /// # Panics
    /// If there is no room for all items, or `len` is larger than their number.
    #[inline(always)]
    pub(crate) fn append<const N: usize>(&mut self, items: [T; N], len: usize) {
        assert!(len <= N && N <= self.room(), "no room");
        // SAFETY: `len` never exceeds the capacity, and the assertion checked that the `N` items after it are within the
        // capacity. The write initializes all of them.
        unsafe { self.out.as_mut_ptr().add(self.len).cast::<[T; N]>().write_unaligned(items) };
        self.len += len;
    }

    /// Returns the length that the vector will have.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the length that the vector has without [`Appender::finish`]: that before the first text, unless
    /// [`Appender::reserve`] made the vector grow.
    pub(crate) fn start(&self) -> usize {
        self.out.len()
    }

    /// Completes the appended texts, and returns the vector.
    #[inline(always)]
    pub(crate) fn finish(self) -> &'a mut Vec<T> {
        // SAFETY: the appending functions initialized all items up to `len`, which they checked to be within the capacity.
        unsafe { self.out.set_len(self.len) };
        self.out
    }
}

impl Appender<'_> {
    /// Appends bytes `at..at + len` of `text`. Up to [`COPY_LEN`] bytes are copied without a branch on their length.
    ///
    /// # Panics
    /// If there is no room for `len` or [`COPY_LEN`] bytes, or the range is not within `text`.
    #[inline(always)]
    pub(crate) fn append_range(&mut self, text: &[u8], at: usize, len: usize) {
        match text.get(at..).and_then(<[u8]>::first_chunk::<COPY_LEN>) {
            Some(bytes) if len <= COPY_LEN => self.append(*bytes, len),
            _ => {
                let bytes = &text[at..at + len];
                assert!(len <= self.room(), "no room");
                // SAFETY: the assertion checked that there is room for `len` bytes after the length. Source and
                // destination are in different allocations. `copy_short` reads and initializes exactly `len` bytes.
                unsafe { copy_short(bytes.as_ptr(), self.out.as_mut_ptr().add(self.len), len) };
                self.len += len;
            }
        }
    }

    /// Appends bytes `at..at + len` of `text` like [`Appender::append_range`]. Appends nothing and returns false if there is no
    /// room.
    ///
    /// # Panics
    /// If the range is not within `text`.
    #[inline(always)]
    pub(crate) fn try_append_range(&mut self, text: &[u8], at: usize, len: usize) -> bool {
        match text.get(at..).and_then(<[u8]>::first_chunk::<COPY_LEN>) {
            Some(bytes) if len <= COPY_LEN && COPY_LEN <= self.room() => self.append(*bytes, len),
            _ if len.max(COPY_LEN) <= self.room() => self.append_range(text, at, len),
            _ => return false,
        }
        true
    }

    /// Appends `bytes[range]` with ASCII letters in lower case. Up to `N` bytes are copied without a branch on their length.
    ///
    /// # Panics
    /// If there is no room for the range and for `N` bytes, or the range is not within `bytes`.
    #[inline(always)]
    pub(crate) fn append_in_lower_case<const N: usize>(&mut self, bytes: &[u8], range: Range<usize>) {
        let len = range.len();
        match bytes.get(range.start..).and_then(<[u8]>::first_chunk::<N>) {
            Some(near) if len <= N => {
                // A loop is compiled for the caller's instruction set; `map` may become a call.
                let mut near = *near;
                near.iter_mut().for_each(|byte| *byte = byte.to_ascii_lowercase());
                self.append(near, len);
            }
            _ => bytes[range].iter().for_each(|byte| self.push(byte.to_ascii_lowercase())),
        }
    }

    /// Appends the escape `%xx` of `byte` with lower-case digits.
    ///
    /// # Panics
    /// If there is no room for four bytes.
    #[inline(always)]
    pub(crate) fn push_escape_in_lower_case(&mut self, byte: u8) {
        const DIGITS: [u8; 16] = *b"0123456789abcdef";
        self.append([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)], 0], 3);
    }
}

/// Prefetches item `at` of `items`, which need not exist.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that does not access memory, so any address is allowed.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().wrapping_add(at).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, at);
}

/// Appends the first `count` of `items` to `out` without a branch on `count`.
///
/// # Panics
/// If `count` is larger than `N`.
#[inline(always)]
pub(crate) fn append_some<T: Copy, const N: usize>(out: &mut Vec<T>, items: [T; N], count: usize) {
    let mut appender = Appender::new(out, N);
    appender.append(items, count);
    appender.finish();
}

/// Copies `len` bytes in pieces of a fixed size. The last piece overlaps the one before it.
///
/// # Safety
/// `from` must be readable and `to` writable for `len` bytes, and the two ranges must not overlap.
#[inline(always)]
unsafe fn copy_short(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: every piece is at most `len` bytes long and within the first or the last bytes of the caller's ranges.
    unsafe {
        if len >= 32 {
            let mut at = 0;
            while at + 32 <= len {
                copy_array::<32>(from.add(at), to.add(at));
                at += 32;
            }
            copy_array::<32>(from.add(len - 32), to.add(len - 32));
        } else if len >= 16 {
            copy_array::<16>(from, to);
            copy_array::<16>(from.add(len - 16), to.add(len - 16));
        } else if len >= 8 {
            copy_array::<8>(from, to);
            copy_array::<8>(from.add(len - 8), to.add(len - 8));
        } else {
            for at in 0..len {
                *to.add(at) = *from.add(at);
            }
        }
    }
}

/// # Safety
/// `from` must be readable and `to` writable for `N` bytes.
#[inline(always)]
unsafe fn copy_array<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller guarantees both ranges; the type `[u8; N]` needs no alignment.
    unsafe { to.cast::<[u8; N]>().write_unaligned(from.cast::<[u8; N]>().read_unaligned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_texts_equal_scalar_ones_at_all_lengths_and_positions() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in 0..=200 {
            for at in [0, 1, 55, 60, 256 - len] {
                if at + len > bytes.len() {
                    continue;
                }
                let mut out = b"x".to_vec();
                let mut appender = Appender::new(&mut out, 3 * len + 200);
                appender.append_in_lower_case::<16>(&bytes, at..at + len);
                appender.push(b',');
                appender.append_in_lower_case::<128>(&bytes, at..at + len);
                appender.push_escape_in_lower_case(0xAF);
                assert_eq!(appender.start(), 1);
                let lower = bytes[at..at + len].to_ascii_lowercase();
                assert_eq!(*appender.finish(), [b"x", &lower[..], b",", &lower, b"%af"].concat());
            }
        }
    }

    #[test]
    fn texts_without_an_end_are_not_appended() {
        let mut out = b"x".to_vec();
        Appender::new(&mut out, 1).push(b'y');
        assert_eq!(out, b"x");
    }

    #[test]
    #[should_panic(expected = "no room")]
    fn room_is_checked() {
        let mut out = Vec::new();
        let mut appender = Appender::new(&mut out, 1);
        (0..=1 << 20).for_each(|_| appender.push(b'y'));
    }
}
