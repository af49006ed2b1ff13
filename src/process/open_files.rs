//! The limit on open files.

/// Raises the limit on open files of this process as far as its user may. Systems set it low for old programs, and a job opens as
/// many files at once as it has threads and parts. If this fails, the limit stays.
pub(crate) fn raise_open_file_limit() {
    // SAFETY: both calls read or write the struct that they are given, which lives until they return.
    #[cfg(unix)]
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // This system refuses more, although it reports no maximum.
            #[cfg(target_vendor = "apple")]
            {
                limit.rlim_cur = limit.rlim_max.min(libc::OPEN_MAX as libc::rlim_t);
            }
            let _ = libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
