//! SIGBUS inside a mapped input, because the file has shrunk or its device has failed: prints a message, removes temporary
//! outputs and ends the process with exit code 4.
//!
//! The handler may interrupt any code, so it calls only functions that POSIX lists as async-signal-safe (write, unlink,
//! raise, signal, sigaction, _exit) and reads only statics.

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use crate::process::{exit, path_name, terminate, visible};

/// Number of files that can be mapped at a time; further files are read instead.
const SLOTS: usize = 1024;

/// A mapping that the handler knows. `start` is 0 while the slot is free and 1 while it is being filled.
struct MappingSlot {
    start: AtomicUsize,
    len: AtomicUsize,
    message: AtomicPtr<Vec<u8>>,
}

static MAPPINGS: [MappingSlot; SLOTS] = [const {
    MappingSlot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), message: AtomicPtr::new(std::ptr::null_mut()) }
}; SLOTS];

/// The previous handler of SIGBUS: Rust's own, or the embedding program's.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Registers a mapping with the handler. Returns its slot, or `None` if no slot is free.
pub(super) fn watch(map: &[u8], path: &Path) -> Option<usize> {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(install);
    let slot = MAPPINGS.iter().position(|slot| slot.start.compare_exchange(0, 1, Acquire, Relaxed).is_ok())?;
    let message = format!(
        "irikey: {}: the file was {} bytes long and was truncated while it was mapped, or its device failed; \
         run again when no other process writes to it, or use --no-mmap\n",
        visible(&path_name(path)),
        map.len()
    );
    MAPPINGS[slot].message.store(Box::into_raw(Box::new(message.into_bytes())), Relaxed);
    MAPPINGS[slot].len.store(map.len(), Relaxed);
    MAPPINGS[slot].start.store(map.as_ptr() as usize, Release);
    Some(slot)
}

/// Ends the process because the file of a slot is shorter than its mapping, or cannot be read.
pub(super) fn end_unreadable(slot: usize) -> ! {
    // SAFETY: the caller has the mapping, so its slot keeps the message.
    let message = unsafe { MAPPINGS[slot].message.load(Relaxed).as_ref() };
    terminate(message.map_or(&[], Vec::as_slice), exit::INPUT)
}

/// Frees a slot that [`watch`] returned. No thread may read the mapping any more.
pub(super) fn unwatch(slot: usize) {
    MAPPINGS[slot].start.store(1, Release);
    MAPPINGS[slot].len.store(0, Relaxed);
    let message = MAPPINGS[slot].message.swap(std::ptr::null_mut(), Relaxed);
    if !message.is_null() {
        // SAFETY: the pointer came from Box::into_raw in `watch`, and the swap makes us its only owner. The handler
        // reads it only for an address within this mapping, and a thread that reads there keeps the mapping alive.
        drop(unsafe { Box::from_raw(message) });
    }
    MAPPINGS[slot].start.store(0, Release);
}

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler installed with SA_SIGINFO; `si_addr` is meaningful
    // if the kernel itself raised the signal (`si_code > 0`), and is only compared otherwise.
    let (code, at) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    for (number, slot) in MAPPINGS.iter().enumerate() {
        let start = slot.start.load(Acquire);
        let is_within = start > 1 && at.wrapping_sub(start) < slot.len.load(Relaxed);
        if code > 0 && is_within {
            // The faulting thread reads this mapping, so the mapping is alive. Its message was stored before `start`.
            end_unreadable(number);
        }
    }
    if code > 0 {
        // The faulting instruction runs again and triggers the previous handler.
        return restore_previous();
    }
    // Another process sent the signal, so it does not repeat by itself.
    // SAFETY: async-signal-safe calls without memory arguments; the signal is delivered when this handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Restores the previous handler of SIGBUS. Async-signal-safe: `OnceLock::get` is an atomic load.
fn restore_previous() {
    // SAFETY: `PREVIOUS` holds a value that sigaction returned; without one the default action is restored.
    unsafe {
        match PREVIOUS.get() {
            Some(previous) => libc::sigaction(libc::SIGBUS, previous, std::ptr::null_mut()),
            None => libc::signal(libc::SIGBUS, libc::SIG_DFL) as libc::c_int,
        };
    }
}

fn install() {
    // SAFETY: a zeroed sigaction is a valid value of this plain C struct, and all pointers are to live locals.
    // SA_ONSTACK: Rust gives its threads an alternate stack.
    unsafe {
        let mut previous: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut previous) == 0 {
            let _ = PREVIOUS.set(previous);
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus as *const () as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}
