//! The registry of temporary files, and the handlers that remove them when a signal terminates the process.
//!
//! A handler may interrupt any code, so it reads only statics and calls only functions that POSIX lists as
//! async-signal-safe (unlink, write, raise, _exit).

use std::path::Path;

#[cfg(unix)]
use unix as platform;
#[cfg(not(unix))]
use without_signals as platform;

/// Removes the registered temporary files when SIGINT, SIGTERM or SIGHUP terminates the process, which then dies by that
/// signal as if it had not been handled. Ignores SIGXFSZ, so that a limit on the length of files is an error of the write.
///
/// A signal that was ignored when the process started (`nohup`, background jobs) stays ignored, and a handler that the
/// embedding program installed stays in place. Does nothing on systems without these signals.
pub(crate) fn remove_temporary_files_on_signals() {
    platform::install();
}

/// Runs `work` on a thread of its own when one of these signals arrives, before the process dies by it. A second signal ends
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

/// Keeps a path registered: a signal that terminates the process removes the file first. Dropping the guard takes the
/// path out of the registry and leaves the file alone.
#[derive(Debug)]
#[must_use = "the path is registered only while the guard lives"]
pub(crate) struct TemporaryFileGuard {
    /// The slot of the path, unless the registry was full.
    slot: Option<usize>,
}

impl TemporaryFileGuard {
    /// Registers `path`. If the registry is full, the file is left behind when a signal arrives.
    pub(crate) fn register(path: &Path) -> TemporaryFileGuard {
        TemporaryFileGuard { slot: platform::insert(path) }
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
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicI32, AtomicPtr};

    /// Number of files that can be registered at a time: one for each worker of a job, and the tables that the job writes.
    const SLOTS: usize = 256;

    /// The registered paths as C strings; null in free slots.
    static PATHS: [AtomicPtr<libc::c_char>; SLOTS] = [const { AtomicPtr::new(null_mut()) }; SLOTS];

    pub(super) fn insert(path: &Path) -> Option<usize> {
        // The string is never freed, because a handler on another thread may still read it: some bytes per output file.
        let path = CString::new(path.as_os_str().as_bytes()).ok()?.into_raw();
        PATHS.iter().position(|slot| slot.compare_exchange(null_mut(), path, Release, Relaxed).is_ok())
    }

    pub(super) fn remove(slot: usize) {
        PATHS[slot].store(null_mut(), Release);
    }

    /// Removes all registered files. Async-signal-safe.
    pub(super) fn remove_files() {
        for slot in &PATHS {
            let path = slot.load(Acquire);
            if !path.is_null() {
                // SAFETY: non-null values of PATHS are C strings that are never freed.
                unsafe { libc::unlink(path) };
            }
        }
    }

    pub(super) fn install() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            let terminate = on_termination as *const () as libc::sighandler_t;
            [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(|signal| handle(signal, terminate));
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
            action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
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
                    // SAFETY: raise has no memory effects. SA_RESETHAND has restored the default action.
                    unsafe { libc::raise(signal[0].into()) };
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
        remove_files();
        let (wake, byte) = (WAKE.load(Acquire), signal as u8);
        // SAFETY: write is async-signal-safe, and the byte lives until it returns. The descriptor stays open.
        if wake >= 0 && unsafe { libc::write(wake, (&raw const byte).cast(), 1) } == 1 {
            return errno::set_errno(errno);
        }
        // SAFETY: raise is async-signal-safe. SA_RESETHAND has restored the default action, which the raised signal
        // triggers as soon as this handler returns and unblocks it.
        unsafe { libc::raise(signal) };
    }
}

#[cfg(not(unix))]
mod without_signals {
    use std::path::Path;

    pub(super) fn insert(_path: &Path) -> Option<usize> {
        None
    }

    pub(super) fn remove(_slot: usize) {}

    pub(super) fn install() {}

    #[cfg(feature = "remote")]
    pub(super) fn before_termination(_work: fn()) {}
}
