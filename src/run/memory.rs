//! Measures the memory of the process, on Linux from `/proc/self/status` (proc(5)). Resident memory includes the pages of
//! mapped inputs, which the kernel may reclaim at any time; anonymous memory is what the process itself allocated.

use std::sync::atomic::{AtomicU64, Ordering};

/// Peaks of the process so far, in bytes; `None` if the system does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryPeaks {
    /// Peak of resident memory, mapped files included.
    pub(crate) peak_resident: Option<u64>,
    /// Peak of anonymous memory, sampled once per part.
    pub(crate) peak_anonymous: Option<u64>,
}

/// Highest sample of anonymous memory; 0 if there is none.
static PEAK_ANONYMOUS: AtomicU64 = AtomicU64::new(0);

/// Takes a sample of anonymous memory. It takes about 20 microseconds, so call it once per part and not per record.
pub(super) fn sample() {
    if let Some(anonymous) = anonymous() {
        PEAK_ANONYMOUS.fetch_max(anonymous, Ordering::Relaxed);
    }
}

/// The current anonymous memory, in bytes.
pub(crate) fn anonymous() -> Option<u64> {
    status().and_then(|status| field(&status, "RssAnon:"))
}

/// The peaks so far, which include the current memory.
pub(crate) fn peaks() -> MemoryPeaks {
    sample();
    let peak_resident = status().and_then(|status| field(&status, "VmHWM:"));
    let peak_anonymous = Some(PEAK_ANONYMOUS.load(Ordering::Relaxed)).filter(|&peak| peak > 0);
    MemoryPeaks { peak_resident, peak_anonymous }
}

/// Bytes of memory that are available to the process: of the machine, or of its control group (cgroup version 2). 4 GiB
/// if the system does not report them.
pub(super) fn available() -> usize {
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

/// The value of a line such as `VmHWM:     1234 kB`, in bytes.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_status_are_parsed() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nRssAnon:\t 0 kB\n";
        assert_eq!((field(text, "VmHWM:"), field(text, "RssAnon:")), (Some(1234 * 1024), Some(0)));
        assert_eq!((field(text, "VmRSS:"), field("VmHWM: x kB", "VmHWM:")), (None, None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peaks_of_this_process_are_positive() {
        let memory = peaks();
        assert!(memory.peak_resident > Some(0) && memory.peak_anonymous > Some(0));
    }
}
