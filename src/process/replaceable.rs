//! Files that no other file can replace: [`obstacle`]. A rename would fail only when an output is complete.

use std::fs::Metadata;
use std::path::Path;

/// Why the regular file at `path`, which `file` describes, cannot be replaced by a rename, and what to do. `None` if nothing is
/// known to be in the way.
#[cfg(target_os = "linux")]
pub(crate) fn obstacle(path: &Path, file: &Metadata) -> Option<(&'static str, &'static str)> {
    let attributes = attributes(path);
    if attributes & libc::STATX_ATTR_MOUNT_ROOT as u64 != 0 {
        return Some(("the file is a mount point", "mount its directory instead"));
    }
    if attributes & (libc::STATX_ATTR_IMMUTABLE | libc::STATX_ATTR_APPEND) as u64 != 0 {
        return Some(("the file is immutable or can only be appended to", "see chattr, or choose another output"));
    }
    let is_kept = is_of_another_user(path, file);
    is_kept
        .then_some(("the file belongs to another user, and its directory has the sticky bit", "choose another output"))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn obstacle(_path: &Path, _file: &Metadata) -> Option<(&'static str, &'static str)> {
    None
}

/// The attributes that `statx` returns, Linux 4.11 or later. 0 if they are not known.
#[cfg(target_os = "linux")]
fn attributes(path: &Path) -> u64 {
    use std::os::unix::ffi::OsStrExt;

    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return 0 };
    // SAFETY: a zeroed statx is a valid value of this plain C struct. The path is a C string and the result is written to a
    // live local. glibc 2.17 has no function for this system call.
    unsafe {
        let mut found: libc::statx = std::mem::zeroed();
        let status = libc::syscall(libc::SYS_statx, libc::AT_FDCWD, path.as_ptr(), 0, 0, &raw mut found);
        if status == 0 { found.stx_attributes } else { 0 }
    }
}

/// The directory lets only the owner of the file replace it, the owner of the directory, and processes with `CAP_FOWNER`.
#[cfg(target_os = "linux")]
fn is_of_another_user(path: &Path, file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    let Ok(directory) = super::parent(path).metadata() else { return false };
    // SAFETY: geteuid has no effects on memory.
    let user = unsafe { libc::geteuid() };
    let is_sticky = directory.mode() & libc::S_ISVTX != 0;
    is_sticky && ![file.uid(), directory.uid()].contains(&user) && !has_fowner().unwrap_or(user == 0)
}

/// The process may act as the owner of every file, see capabilities(7). `None` if this is not known.
#[cfg(target_os = "linux")]
fn has_fowner() -> Option<bool> {
    /// `CAP_FOWNER` of `linux/capability.h`.
    const FOWNER: u64 = 3;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    Some(u64::from_str_radix(effective.trim(), 16).ok()? >> FOWNER & 1 == 1)
}
