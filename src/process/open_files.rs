//! The limit on open files.

/// The highest limit that macOS accepts (`OPEN_MAX`), although it reports none.
#[cfg(unix)]
const MAX_ON_MACOS: libc::rlim_t = 10_240;

/// Raises the limit on open files of this process as far as its user may. Systems set it low for old programs, and a job opens as
/// many files at once as it has threads and parts. If this fails, the limit stays.
pub(crate) fn raise_open_file_limit() {
    // SAFETY: both calls read or write the struct that they are given, which lives until they return.
    #[cfg(unix)]
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            let is_macos = cfg!(target_vendor = "apple");
            limit.rlim_cur = if is_macos { limit.rlim_max.min(MAX_ON_MACOS) } else { limit.rlim_max };
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
