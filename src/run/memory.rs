//! How much memory the process took, where the system tells (Linux: `/proc/self/status`, proc(5)). Mapped inputs count
//! as resident while they are read, though the kernel may take their pages back at any time; anonymous memory is what
//! the process itself asked for.

use std::sync::atomic::{AtomicU64, Ordering};

/// Peaks of the process so far, bytes; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Peak of resident memory, mapped files included.
    pub peak_resident: Option<u64>,
    /// Peak of anonymous memory, as seen by sampling at every part.
    pub peak_anonymous: Option<u64>,
}

/// Highest anonymous memory sampled; 0 if never.
static PEAK_ANONYMOUS: AtomicU64 = AtomicU64::new(0);

/// Takes a sample of anonymous memory. Costs some 20 microseconds: once a part, not once a record.
pub fn sample() {
    if let Some(anonymous) = status().and_then(|status| field(&status, "RssAnon:")) {
        PEAK_ANONYMOUS.fetch_max(anonymous, Ordering::Relaxed);
    }
}

/// Anonymous memory now, bytes.
pub fn anonymous() -> Option<u64> {
    status().and_then(|status| field(&status, "RssAnon:"))
}

/// The peaks so far.
pub fn peaks() -> Memory {
    sample();
    let peak_resident = status().and_then(|status| field(&status, "VmHWM:"));
    let peak_anonymous = Some(PEAK_ANONYMOUS.load(Ordering::Relaxed)).filter(|&peak| peak > 0);
    Memory { peak_resident, peak_anonymous }
}

/// Bytes of memory that a process takes which does nothing yet.
pub const BASE: usize = 16 << 20;

/// Bytes of memory that a thread takes for spans of so much input on their way to an output: rows, the batch that they
/// become, what is left of it, and what that is encoded to, twice, for one may wait for its turn. Measured on lines of 30
/// bytes with the default columns; longer ones take less.
pub const fn of_rows(row_group_len: usize) -> usize {
    row_group_len.saturating_mul(14)
}

/// The same where rows only give their keys.
pub const fn of_keys(span_len: usize) -> usize {
    span_len.saturating_mul(8)
}

/// Bytes of memory that this process may have: of the machine, or of its control group (cgroup version 2). 4 GiB where
/// the system does not tell.
pub fn available() -> usize {
    let machine = read("/proc/meminfo").and_then(|text| field(&text, "MemTotal:"));
    let group = read("/sys/fs/cgroup/memory.max").and_then(|text| text.trim().parse().ok());
    let least = machine.into_iter().chain(group).min().unwrap_or(4 << 30);
    usize::try_from(least).unwrap_or(usize::MAX)
}

#[cfg(target_os = "linux")]
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn read(_: &str) -> Option<String> {
    None
}

fn status() -> Option<String> {
    read("/proc/self/status")
}

/// A line such as `VmHWM:     1234 kB`, in bytes.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nRssAnon:\t 0 kB\n";
        assert_eq!((field(text, "VmHWM:"), field(text, "RssAnon:")), (Some(1234 * 1024), Some(0)));
        assert_eq!((field(text, "VmRSS:"), field("VmHWM: x kB", "VmHWM:")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        let memory = peaks();
        assert!(memory.peak_resident > Some(0) && memory.peak_anonymous > Some(0));
    }
}
