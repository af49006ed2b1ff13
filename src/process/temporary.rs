//! The registry of temporary files, and the handlers that remove them when a signal terminates the process.
//!
//! A handler may interrupt any code, so it reads only statics and calls only functions that POSIX lists as
//! async-signal-safe (poll, unlink, rmdir, write, raise, _exit).
//!
//! A file that exists but is not registered yet would be left behind. While a thread creates a file, it blocks these
//! signals, and a handler on another thread waits for it. Once a handler runs, no thread creates a file.

use std::io;
use std::path::Path;

#[cfg(unix)]
use unix as platform;
#[cfg(not(unix))]
use without_signals as platform;

/// Removes the registered temporary files when SIGINT, SIGTERM or SIGHUP terminates the process, or when it aborts, as the C
/// library does if it has no memory for itself. The process then dies by that signal as if it had not been handled. Ignores
/// SIGXFSZ, so that a limit on the length of files is an error of the write.
///
/// A signal that was ignored when the process started (`nohup`, background jobs) stays ignored, and a handler that the
/// embedding program installed stays in place. Does nothing on systems without these signals.
pub(crate) fn remove_temporary_files_on_signals() {
    platform::install();
}

/// Runs `work` on a thread of its own when one of these signals arrives, before the process dies by it. A later signal ends
/// the process at once. Only the first call of the process counts; nothing happens on systems without these signals.
#[cfg(feature = "remote")]
pub(crate) fn before_termination(work: fn()) {
    platform::before_termination(work);
}

/// Removes the registered temporary files, writes `message` to stderr and ends the process with `status`.
/// Async-signal-safe.
#[cfg(unix)]
pub(crate) fn terminate(message: &[u8], status: u8) -> ! {
    platform::remove_files();
    // SAFETY: write and _exit are async-signal-safe, and the message is a live slice of this length.
    unsafe {
        libc::write(libc::STDERR_FILENO, message.as_ptr().cast(), message.len());
        libc::_exit(i32::from(status));
    }
}

/// Calls `work`, which creates a temporary file and either registers or removes its name. A signal terminates the process
/// before or after, but not in between. `work` must not wait for another thread.
pub(crate) fn without_termination<T>(work: impl FnOnce() -> T) -> T {
    platform::without_termination(work)
}

/// Waits for the end of the process if a signal is terminating it. An operation that fails from then on may fail because
/// temporary files were removed, so its error is not reported.
pub(crate) fn wait_if_terminating() {
    platform::wait_if_terminating();
}

/// Keeps a path registered: a signal that terminates the process removes the file first. Dropping the guard takes the
/// path out of the registry and leaves the file alone.
#[derive(Debug)]
#[must_use = "the path is registered only while the guard lives"]
pub(crate) struct TemporaryFileGuard {
    /// The slot of the path, unless the registry was full.
    slot: Option<usize>,
}

impl TemporaryFileGuard {
    /// Creates the file at `path` with `create` and registers it. A signal finds both done, or neither. If the registry is
    /// full, the file is left behind when a signal arrives.
    ///
    /// # Errors
    /// Those of `create`.
    pub(crate) fn create<T>(
        path: &Path,
        create: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<(T, TemporaryFileGuard)> {
        let entry = platform::entry(path);
        without_termination(|| Ok((create()?, TemporaryFileGuard { slot: platform::insert(entry) })))
    }

    /// Registers a path that exists: a file, or a directory that is empty when the other registered files are removed.
    pub(super) fn register(path: &Path) -> TemporaryFileGuard {
        TemporaryFileGuard { slot: platform::insert(platform::entry(path)) }
    }
}

impl Drop for TemporaryFileGuard {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            platform::remove(slot);
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::ptr::null_mut;
    use std::sync::Once;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
    use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize};

    /// Number of files that can be registered at a time: one for each worker of a job, the parts that get their names
    /// together, and the tables that the job writes.
    const SLOTS: usize = 1024;

    /// How many milliseconds a handler waits for threads that create a file. The file system may not answer.
    const MAX_WAIT_MS: usize = 2000;

    /// The signals that terminate the process when its temporary files are removed.
    const SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

    /// The registered paths as C strings; null in free slots.
    static PATHS: [AtomicPtr<libc::c_char>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

    /// How far the termination of the process has come. The process ends when its files are removed and the work of
    /// [`before_termination`] is done.
    static PHASE: AtomicU8 = AtomicU8::new(RUNNING);
    const RUNNING: u8 = 0;
    const REMOVING: u8 = 1;
    const REMOVED: u8 = 2;

    /// In this time after the files were removed, another signal does not end the process: `timeout` sends its signal twice.
    const REPEAT_MS: u64 = 200;

    /// When the files were removed, in milliseconds of [`now_ms`].
    static REMOVED_AT: AtomicU64 = AtomicU64::new(0);

    /// Number of threads in [`without_termination`].
    static CREATING: AtomicUsize = AtomicUsize::new(0);

    /// The C string of a path that will be registered; null if the path contains a NUL byte.
    pub(super) fn entry(path: &Path) -> *mut libc::c_char {
        CString::new(path.as_os_str().as_bytes()).map_or(null_mut(), CString::into_raw)
    }

    pub(super) fn insert(path: *mut libc::c_char) -> Option<usize> {
        if path.is_null() {
            return None;
        }
        let slot = PATHS.iter().position(|slot| slot.compare_exchange(null_mut(), path, Release, Relaxed).is_ok());
        if slot.is_none() {
            free(path);
        }
        slot
    }

    pub(super) fn remove(slot: usize) {
        let path = PATHS[slot].swap(null_mut(), SeqCst);
        // A handler that has set the phase may have read the path from the slot before. A handler that sets it later finds no
        // path there.
        if PHASE.load(SeqCst) == RUNNING {
            free(path);
        }
    }

    /// Frees the C string of a path, which no slot contains.
    fn free(path: *mut libc::c_char) {
        if !path.is_null() {
            // SAFETY: only `entry` makes paths, by `into_raw`. A path is freed once: it was not inserted, or `remove` took it
            // out of its slot, which one guard has. No handler reads it: it loads the slots after it has set the phase.
            drop(unsafe { CString::from_raw(path) });
        }
    }

    /// Blocks the signals for the current thread until it is dropped.
    struct BlockedSignals {
        before: libc::sigset_t,
    }

    impl BlockedSignals {
        fn new() -> BlockedSignals {
            // SAFETY: a zeroed sigset_t is a valid value of this plain C type, and all pointers are to live locals.
            unsafe {
                let mut blocked: libc::sigset_t = std::mem::zeroed();
                libc::sigemptyset(&mut blocked);
                // The C library aborts a thread also if it blocks the signal.
                SIGNALS.iter().chain(&[libc::SIGABRT]).for_each(|signal| _ = libc::sigaddset(&mut blocked, *signal));
                let mut before: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
                BlockedSignals { before }
            }
        }
    }

    impl Drop for BlockedSignals {
        fn drop(&mut self) {
            // SAFETY: `before` is the mask that pthread_sigmask returned.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, null_mut()) };
        }
    }

    /// Counts the current thread in [`CREATING`] until it is dropped.
    struct Creating;

    impl Drop for Creating {
        fn drop(&mut self) {
            CREATING.fetch_sub(1, SeqCst);
        }
    }

    pub(super) fn without_termination<T>(work: impl FnOnce() -> T) -> T {
        loop {
            // Dropped after the thread is no longer counted, so that a handler never waits for its own thread. Only if `work` itself
            // aborts, the handler waits in vain until `MAX_WAIT_MS` have passed.
            let _blocked = BlockedSignals::new();
            CREATING.fetch_add(1, SeqCst);
            let _creating = Creating;
            // Either this thread sees the phase, or the handler that sets it sees the number.
            if PHASE.load(SeqCst) == RUNNING {
                return work();
            }
            drop((_creating, _blocked));
            wait_if_terminating();
        }
    }

    pub(super) fn wait_if_terminating() {
        while PHASE.load(SeqCst) != RUNNING {
            std::thread::park();
        }
    }

    /// Waits until no other thread creates a file, and removes all registered files. Async-signal-safe.
    pub(super) fn remove_files() {
        PHASE.store(REMOVING, SeqCst);
        for _ in 0..MAX_WAIT_MS {
            if CREATING.load(SeqCst) == 0 {
                break;
            }
            // SAFETY: poll is async-signal-safe, and reads no descriptors if their number is 0.
            unsafe { libc::poll(null_mut(), 0, 1) };
        }
        // Files first: a directory is removed when it is empty.
        for remove in [libc::unlink, libc::rmdir] {
            for path in PATHS.iter().map(|slot| slot.load(SeqCst)).filter(|path| !path.is_null()) {
                // SAFETY: non-null values of PATHS are C strings, which are not freed once the phase is set.
                unsafe { remove(path) };
            }
        }
        REMOVED_AT.store(now_ms(), SeqCst);
        PHASE.store(REMOVED, SeqCst);
    }

    pub(super) fn install() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let terminate = on_termination as *const () as libc::sighandler_t;
            SIGNALS.into_iter().for_each(|signal| handle(signal, terminate));
            handle(libc::SIGABRT, on_abort as *const () as libc::sighandler_t);
            handle(libc::SIGXFSZ, libc::SIG_IGN);
        });
    }

    /// Installs a handler, unless another one is installed or the signal is ignored.
    fn handle(signal: libc::c_int, handler: libc::sighandler_t) {
        // SAFETY: a zeroed sigaction is a valid value of this plain C struct (SIG_DFL, no flags, empty mask), and both
        // pointers are to live locals.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) != 0 || action.sa_sigaction != libc::SIG_DFL {
                return;
            }
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(signal, &action, null_mut());
        }
    }

    /// The end of the pipe that wakes the thread of [`before_termination`]; negative without one.
    static WAKE: AtomicI32 = AtomicI32::new(-1);

    #[cfg(feature = "remote")]
    pub(super) fn before_termination(work: fn()) {
        use std::io::Read;
        use std::os::fd::IntoRawFd;

        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            let Ok((mut signals, wake)) = std::io::pipe() else { return };
            let wait = move || {
                let mut signal = [0];
                if signals.read_exact(&mut signal).is_ok() {
                    work();
                    die_by(signal[0].into());
                }
            };
            if std::thread::Builder::new().name("signals".to_string()).spawn(wait).is_ok() {
                WAKE.store(wake.into_raw_fd(), Release);
            }
        });
    }

    extern "C" fn on_termination(signal: libc::c_int) {
        // The interrupted code may be about to read it.
        let errno = errno::errno();
        match PHASE.compare_exchange(RUNNING, REMOVING, SeqCst, SeqCst) {
            Ok(_) => {
                remove_files();
                if !wake(signal) {
                    die_by(signal);
                }
            }
            // The process ends when its files are removed.
            Err(REMOVING) => {}
            Err(_) if now_ms().saturating_sub(REMOVED_AT.load(SeqCst)) < REPEAT_MS => {}
            Err(_) => die_by(signal),
        }
        errno::set_errno(errno);
    }

    extern "C" fn on_abort(signal: libc::c_int) {
        // Another thread may be removing them, but this one ends the process.
        remove_files();
        die_by(signal);
    }

    /// Milliseconds of a clock that only goes forward. Async-signal-safe.
    fn now_ms() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: clock_gettime is async-signal-safe, and the pointer is to a live local.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
        now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
    }

    /// Wakes the thread of [`before_termination`], if there is one. Async-signal-safe.
    fn wake(signal: libc::c_int) -> bool {
        let (wake, byte) = (WAKE.load(Acquire), signal as u8);
        // SAFETY: write is async-signal-safe, and the byte lives until it returns. The descriptor stays open.
        wake >= 0 && unsafe { libc::write(wake, (&raw const byte).cast(), 1) } == 1
    }

    /// Ends the process by the default action of a signal; within its handler, when the handler returns. Async-signal-safe.
    fn die_by(signal: libc::c_int) {
        // SAFETY: signal and raise are async-signal-safe and take no pointers.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
}

#[cfg(not(unix))]
mod without_signals {
    use std::path::Path;

    /// A path that no signal handler removes.
    pub(super) struct Entry;

    pub(super) fn entry(_path: &Path) -> Entry {
        Entry
    }

    pub(super) fn insert(_entry: Entry) -> Option<usize> {
        None
    }

    pub(super) fn without_termination<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(super) fn wait_if_terminating() {}

    pub(super) fn remove(_slot: usize) {}

    pub(super) fn install() {}

    #[cfg(feature = "remote")]
    pub(super) fn before_termination(_work: fn()) {}
}
