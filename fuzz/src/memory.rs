//! Counts the bytes that are allocated, so that an input cannot make the library hold memory out of proportion.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that an execution may hold whatever its input is: buffers of threads, and windows of decompressors.
const FIXED: usize = 192 << 20;

/// Bytes per byte of input that an execution may hold.
const PER_BYTE: usize = 4096;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Bytes that the current execution may hold in addition.
static ALLOWED: AtomicUsize = AtomicUsize::new(0);

fn add(len: usize) {
    let live = LIVE.fetch_add(len, Relaxed) + len;
    PEAK.fetch_max(live, Relaxed);
    assert!(len < 1 << 30, "an allocation of {len} bytes");
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: as for the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_len: usize) -> *mut u8 {
        add(new_len);
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.realloc(at, layout, new_len) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as for the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Lets the current execution hold the rows that it collects for a comparison: compressed input can have very many.
pub fn allow(len: usize) {
    ALLOWED.fetch_add(len, Relaxed);
}

/// Runs `work` on an input of `len` bytes. Panics if it held too much memory.
pub fn check<R>(len: usize, work: impl FnOnce() -> R) -> R {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    ALLOWED.store(0, Relaxed);
    let result = work();
    let held = PEAK.load(Relaxed).saturating_sub(before);
    let limit = FIXED + len * PER_BYTE + ALLOWED.load(Relaxed);
    assert!(held <= limit, "{held} bytes of memory for {len} bytes of input; the limit is {limit}");
    result
}
