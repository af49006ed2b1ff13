//! A range of bytes in a text of less than 4 GiB.

/// A range of bytes in a text. It takes 8 bytes where a `Range<usize>` takes 16.
///
/// ```
/// use irikey::kernel::Span;
/// assert_eq!(Span { at: 2, len: 3 }.of(b"a bcd e"), b"bcd");
/// ```
// Kernels load spans as vectors of `u64`, so the order of the fields is fixed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Span {
    /// Offset of the first byte.
    pub at: u32,
    /// Length in bytes.
    pub len: u32,
}

impl Span {
    /// Maximum length of a text with spans, in bytes: less than 4 GiB.
    pub const MAX_TEXT_LEN: usize = u32::MAX as usize;

    /// Returns the span of `len` bytes from byte `at` on.
    #[inline(always)]
    pub(crate) const fn new(at: usize, len: usize) -> Span {
        debug_assert!(at + len <= Span::MAX_TEXT_LEN, "the text of a span has less than 4 GiB");
        Span { at: at as u32, len: len as u32 }
    }

    /// Returns the bytes of `text` that the span covers.
    ///
    /// # Panics
    /// If the span is not within `text`.
    #[inline(always)]
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.at as usize..self.at as usize + self.len as usize]
    }
}
