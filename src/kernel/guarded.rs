//! Memory between two pages that cannot be accessed, so that a kernel that reads past its text ends the test.

use std::ops::{Deref, DerefMut};

/// Returns the length of a page of memory, in bytes: 4 KiB on x86-64, up to 64 KiB on other systems.
fn page_len() -> usize {
    // SAFETY: the call has no conditions.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(len).expect("a system has pages")
}

/// A text that begins or ends at the end of accessible memory.
pub(super) struct GuardedText {
    map: *mut libc::c_void,
    at: usize,
    len: usize,
}

impl GuardedText {
    /// A copy of `text` whose last byte is the last one of its page.
    pub(super) fn before_guard(text: &[u8]) -> GuardedText {
        GuardedText::new(text, 2 * page_len() - text.len())
    }

    /// A copy of `text` whose first byte is the first one of its page.
    pub(super) fn after_guard(text: &[u8]) -> GuardedText {
        GuardedText::new(text, page_len())
    }

    fn new(text: &[u8], at: usize) -> GuardedText {
        let page_len = page_len();
        assert!(text.len() <= page_len);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: the system chooses the address of a new mapping.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), 3 * page_len, libc::PROT_NONE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        // SAFETY: the page is the second one of the mapping, which has three.
        let status = unsafe { libc::mprotect(map.byte_add(page_len), page_len, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(status, 0);
        // SAFETY: the text fits into the writable page, from `at` on, and nothing else refers to the new mapping.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), map.byte_add(at).cast(), text.len()) };
        GuardedText { map, at, len: text.len() }
    }
}

impl Deref for GuardedText {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `new` wrote these bytes, and only `deref_mut` gives access to change them.
        unsafe { std::slice::from_raw_parts(self.map.byte_add(self.at).cast(), self.len) }
    }
}

impl DerefMut for GuardedText {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: `new` wrote these bytes into a writable page, and no other reference to them exists.
        unsafe { std::slice::from_raw_parts_mut(self.map.byte_add(self.at).cast(), self.len) }
    }
}

impl Drop for GuardedText {
    fn drop(&mut self) {
        // SAFETY: the mapping has this length, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.map, 3 * page_len()) };
    }
}
