//! An allocator for the command that ends the process cleanly when there is no memory: [`CheckedAllocator`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::TryReserveError;

/// The allocator of the system. If it has no memory, for example because of `ulimit -v`, the temporary files are removed
/// and the process ends with an error message and exit code 5. Rust would abort the process and leave them.
///
/// Only what `try_reserve_exact` requests may fail.
#[derive(Debug)]
pub struct CheckedAllocator;

thread_local! {
    /// This thread can handle a failed allocation.
    static MAY_FAIL: Cell<bool> = const { Cell::new(false) };
}

/// Reserves memory for `additional` elements. `Vec::try_reserve_exact` alone would end the process.
pub(crate) fn try_reserve_exact<T>(items: &mut Vec<T>, additional: usize) -> Result<(), TryReserveError> {
    MAY_FAIL.set(true);
    let reserved = items.try_reserve_exact(additional);
    MAY_FAIL.set(false);
    reserved
}

// SAFETY: every method passes its arguments to the allocator of the system and returns what that returns.
unsafe impl GlobalAlloc for CheckedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller has checked the layout.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        // SAFETY: the pointer comes from this allocator, which is that of the system, with this layout.
        checked(unsafe { System.realloc(pointer, layout, new_len) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Gives free memory back to the system. The allocator of glibc keeps what several threads have freed, and new threads do
/// not use it, so that a job whose phases use different threads would take the memory of both.
pub(crate) fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes no pointers and locks what it changes.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Length of the shortest free memory for which the system is asked for huge pages, in bytes.
#[cfg(target_os = "linux")]
const MIN_HUGE_LEN: usize = 4 << 20;

/// Lets the system use huge pages for the capacity of `items` that is free, if it is long. To use 4 kB for the first time takes a
/// page fault of about a microsecond, and huge pages take few of them. Without huge pages, the memory is the same.
#[doc(hidden)]
pub fn use_huge_pages<T>(items: &mut Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        let free = items.spare_capacity_mut().as_mut_ptr_range();
        let (start, end) = ((free.start as usize).next_multiple_of(page_len()), free.end as usize);
        if end.saturating_sub(start) >= MIN_HUGE_LEN {
            // SAFETY: the advice does not change the content of the memory. The range is within that of the vector.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}

/// Returns the length of a page of memory, in bytes.
pub(crate) fn page_len() -> usize {
    #[cfg(unix)]
    // SAFETY: the call has no conditions.
    let len = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    #[cfg(not(unix))]
    let len = 4 << 10;
    usize::try_from(len).expect("a system has pages")
}

fn checked(pointer: *mut u8) -> *mut u8 {
    #[cfg(unix)]
    if pointer.is_null() && !MAY_FAIL.get() {
        end_without_memory();
    }
    pointer
}

/// Removes the temporary files and ends the process with an error message about missing memory.
#[cfg(unix)]
pub(crate) fn end_without_memory() -> ! {
    super::terminate(
        b"irikey: the system has no memory left for this process (see ulimit -v); temporary files were removed, and \
          outputs were not written; use fewer threads (-j) or less --memory, or allow more memory\n",
        super::exit::OUTPUT,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_vectors_keep_their_items() {
        let mut items = vec![7_u64];
        for len in [1, 1 << 10, 1 << 20] {
            items.reserve(len);
            use_huge_pages(&mut items);
            items.resize(len, 8);
            assert!(items[0] == 7 && items[1..].iter().all(|item| *item == 8));
        }
    }

    #[test]
    fn memory_that_does_not_exist_is_an_error_where_it_is_expected() {
        let mut bytes: Vec<u8> = Vec::new();
        assert!(try_reserve_exact(&mut bytes, isize::MAX as usize).is_err() && !MAY_FAIL.get());
        MAY_FAIL.set(true);
        // SAFETY: the layout is not empty.
        let pointer = unsafe { CheckedAllocator.alloc(Layout::array::<u8>(isize::MAX as usize).unwrap()) };
        MAY_FAIL.set(false);
        // Without the black box, the compiler may remove an allocation that nothing uses.
        assert!(std::hint::black_box(pointer).is_null());
    }
}
