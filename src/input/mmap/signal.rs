//! Signals that must not leave a mess. SIGBUS within a mapped input: a message, the temporary output removed, exit
//! status 4. SIGINT, SIGTERM and SIGHUP: the temporary output removed, then death by that signal as if unhandled.
//!
//! Handlers may interrupt anything, so they call only what POSIX lists as async-signal-safe (write, unlink, raise,
//! signal, sigaction, _exit) and read only statics.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// Exit status of a run that an input ended.
pub const EXIT_INPUT: i32 = 4;

/// As many files are mapped at a time at most; further ones are read.
const SLOTS: usize = 1024;

/// A mapping that the handler knows. `start` is 0 while the slot is free, 1 while it is being filled.
struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
    message: AtomicPtr<Vec<u8>>,
}

static MAPPINGS: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), message: AtomicPtr::new(std::ptr::null_mut()) }
}; SLOTS];

/// The paths to unlink, C strings, or null. As many as a job has outputs.
static TEMPORARY: [AtomicPtr<libc::c_char>; 4] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 4];

/// What handled SIGBUS before us: Rust's own handler, or the embedding program's.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// From now on, a signal that ends the process removes the file at `path` first. Four paths at a time at most; a fifth
/// one stays.
pub fn remove_on_signal(path: &Path) {
    static HANDLED: OnceLock<()> = OnceLock::new();
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
    // Leaked: a handler on another thread may be reading the path before this one. A few bytes an output file.
    let path = path.into_raw();
    let _ = TEMPORARY.iter().find(|slot| slot.compare_exchange(std::ptr::null_mut(), path, Release, Relaxed).is_ok());
    HANDLED.get_or_init(|| {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            handle_end(signal);
        }
    });
}

/// The files named to [`remove_on_signal`] are no longer to be removed: they have their final names, or are gone.
pub fn forget() {
    TEMPORARY.iter().for_each(|slot| slot.store(std::ptr::null_mut(), Release));
}

/// Tells the handler of a mapping; `None` if there is no free slot.
pub(super) fn watch(map: &[u8], path: &Path) -> Option<usize> {
    static HANDLED: OnceLock<()> = OnceLock::new();
    HANDLED.get_or_init(handle_bus);
    let slot = MAPPINGS.iter().position(|slot| slot.start.compare_exchange(0, 1, Acquire, Relaxed).is_ok())?;
    let message = format!(
        "irikey: {}: the file was {} bytes long and was cut short while it was mapped; \
         run again when nothing writes to it, or with --no-mmap\n",
        path.display(),
        map.len()
    );
    MAPPINGS[slot].message.store(Box::into_raw(Box::new(message.into_bytes())), Relaxed);
    MAPPINGS[slot].len.store(map.len(), Relaxed);
    MAPPINGS[slot].start.store(map.as_ptr() as usize, Release);
    Some(slot)
}

/// Frees a slot that [`watch`] gave, whose mapping nobody reads any more.
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

/// Removes the temporary files, if there are any. Async-signal-safe.
fn unlink_temporary() {
    for slot in &TEMPORARY {
        let path = slot.load(Acquire);
        if !path.is_null() {
            // SAFETY: non-null values of TEMPORARY are C strings that are never freed.
            unsafe { libc::unlink(path) };
        }
    }
}

extern "C" fn on_end(signal: libc::c_int) {
    unlink_temporary();
    // SAFETY: async-signal-safe calls without memory arguments. SA_RESETHAND restored the default action, which the
    // raised signal meets as soon as this handler returns and unblocks it.
    unsafe { libc::raise(signal) };
}

fn handle_end(signal: libc::c_int) {
    // SAFETY: a zeroed sigaction is a valid value of this plain C struct (SIG_DFL, no flags, empty mask); both
    // pointers are to live locals.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        // A signal that was ignored when we were started (nohup, background jobs) stays ignored, and one that the
        // embedding program handles is its own affair.
        if libc::sigaction(signal, std::ptr::null(), &mut now) != 0 || now.sa_sigaction != libc::SIG_DFL {
            return;
        }
        now.sa_sigaction = on_end as *const () as libc::sighandler_t;
        now.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
        libc::sigaction(signal, &now, std::ptr::null_mut());
    }
}

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to a handler installed with SA_SIGINFO; `si_addr` is meaningful
    // where the kernel itself raised the signal (`si_code > 0`), and is only compared otherwise.
    let (code, at) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    for slot in &MAPPINGS {
        let start = slot.start.load(Acquire);
        let is_within = start > 1 && at.wrapping_sub(start) < slot.len.load(Relaxed);
        if code > 0 && is_within {
            unlink_temporary();
            let message = slot.message.load(Relaxed);
            // SAFETY: the faulting thread reads this mapping, so it is alive and its slot keeps the message, which was
            // stored before `start`. write and _exit are async-signal-safe.
            unsafe {
                if let Some(message) = message.as_ref() {
                    libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
                }
                libc::_exit(EXIT_INPUT);
            }
        }
    }
    if code > 0 {
        // The faulting instruction runs again and meets the handler that was there before us.
        return restore_bus();
    }
    // Sent by a process: it does not come again by itself.
    // SAFETY: async-signal-safe calls without memory arguments; the signal is delivered when this handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// Puts back what handled SIGBUS before us. Async-signal-safe: `OnceLock::get` is an atomic load.
fn restore_bus() {
    // SAFETY: `BEFORE` holds what sigaction itself gave, or the default action is asked for.
    unsafe {
        match BEFORE.get() {
            Some(before) => libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()),
            None => libc::signal(libc::SIGBUS, libc::SIG_DFL) as libc::c_int,
        };
    }
}

fn handle_bus() {
    // SAFETY: as in `handle_end`. SA_ONSTACK: Rust gives its threads an alternate stack.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) == 0 {
            let _ = BEFORE.set(before);
        }
        let mut now: libc::sigaction = std::mem::zeroed();
        now.sa_sigaction = on_bus as *const () as libc::sighandler_t;
        now.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &now, std::ptr::null_mut());
    }
}
