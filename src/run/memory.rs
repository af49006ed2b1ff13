//! The memory of the process, on Linux from `/proc` (proc(5)): how much it uses ([`peaks`]) and how much it may use
//! ([`limit`]). Resident memory includes the pages of mapped inputs, which the kernel may reclaim at any time; anonymous
//! memory is what the process itself allocated.

use crate::process::page_len;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Peaks of the process so far, in bytes; `None` if the system does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryPeaks {
    /// Peak of resident memory, mapped files included.
    pub(crate) peak_resident: Option<u64>,
    /// Peak of anonymous memory, sampled once per row group.
    pub(crate) peak_anonymous: Option<u64>,
}

/// Highest sample of anonymous memory; 0 if there is none.
static PEAK_ANONYMOUS: AtomicU64 = AtomicU64::new(0);

/// Takes a sample of anonymous memory. It takes about 6 microseconds, so call it once per row group and not per record.
pub(super) fn sample() {
    if let Some(anonymous) = anonymous() {
        PEAK_ANONYMOUS.fetch_max(anonymous, Ordering::Relaxed);
    }
}

/// The current anonymous memory, in bytes.
pub(crate) fn anonymous() -> Option<u64> {
    // The system makes this text in a quarter of the time of `status`.
    read("/proc/self/statm").and_then(|pages| anonymous_pages(&pages)).map(|pages| pages * page_len() as u64)
}

/// The resident pages that are not shared, by a text in the form of `/proc/self/statm`: pages in all, resident, shared.
fn anonymous_pages(statm: &str) -> Option<u64> {
    let mut counts = statm.split_whitespace().skip(1).map(|count| count.parse().ok());
    let (resident, shared): (u64, u64) = (counts.next()??, counts.next()??);
    Some(resident.saturating_sub(shared))
}

/// The peaks so far, which include the current memory.
pub(crate) fn peaks() -> MemoryPeaks {
    sample();
    let peak_resident = read("/proc/self/status").and_then(|status| field(&status, "VmHWM:"));
    let peak_anonymous = Some(PEAK_ANONYMOUS.load(Ordering::Relaxed)).filter(|&peak| peak > 0);
    MemoryPeaks { peak_resident, peak_anonymous }
}

/// Bytes of memory that the process may have: of the machine, of its control groups (cgroups, versions 1 and 2), and of its
/// address space (`ulimit -v`). 4 GiB if the system does not report them.
pub(super) fn limit() -> usize {
    let machine = read("/proc/meminfo").and_then(|text| field(&text, "MemTotal:"));
    let groups = read("/proc/self/cgroup").map(|text| group_limits(&text, "/sys/fs/cgroup", read)).unwrap_or_default();
    let address_space = read("/proc/self/limits").and_then(|text| soft_limit(&text, "Max address space"));
    let least = machine.into_iter().chain(groups).chain(address_space).min().unwrap_or(4 << 30);
    usize::try_from(least).unwrap_or(usize::MAX)
}

/// A limit of the process in the form of `/proc/self/limits`: the name, then the soft limit.
fn soft_limit(limits: &str, name: &str) -> Option<u64> {
    limits.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// The limits of all control groups that contain the process. `groups` is `/proc/self/cgroup`: lines of a number, controllers
/// and a path, separated by colons (cgroups(7)). Version 2 has one line without controllers. In a container, the path may be
/// outside of what is mounted, and the group of the container is the root.
fn group_limits(groups: &str, root: &str, read: impl Fn(&str) -> Option<String>) -> Vec<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, file) = match controllers {
            "" => (root.to_string(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (format!("{root}/memory"), "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let own_and_above = Path::new(path).ancestors().filter_map(Path::to_str);
        let texts = own_and_above.filter_map(|group| read(&format!("{root}{}/{file}", group.trim_end_matches('/'))));
        // Without a limit, the text is a word, or a number that is larger than any memory.
        limits.extend(texts.filter_map(|text| text.trim().parse::<u64>().ok()));
    }
    limits
}

#[cfg(target_os = "linux")]
fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn read(_: &str) -> Option<String> {
    None
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
    fn texts_of_proc_are_parsed() {
        let text = "Name:\tx\nVmHWM:\t    1234 kB\nRssFile:\t 0 kB\n";
        assert_eq!((field(text, "VmHWM:"), field(text, "RssFile:")), (Some(1234 * 1024), Some(0)));
        assert_eq!([anonymous_pages("900 70 20 8 0 9 0\n"), anonymous_pages("900 70")], [Some(50), None]);
        assert_eq!((field(text, "VmRSS:"), field("VmHWM: x kB", "VmHWM:")), (None, None));
    }

    #[test]
    fn limits_of_all_control_groups_apply() {
        let files = [
            ("/g/memory.max", "max"),
            ("/g/a.slice/memory.max", "3000\n"),
            ("/g/a.slice/b/memory.max", "2000\n"),
            ("/g/memory/memory.limit_in_bytes", "9223372036854771712"),
            ("/g/memory/c/memory.limit_in_bytes", "1000"),
        ];
        let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.to_string());
        let limits = |groups| group_limits(groups, "/g", read);
        assert_eq!(limits("0::/a.slice/b\n"), [2000, 3000]);
        assert_eq!(limits("5:cpu,memory:/c/d\n4:pids:/c\n"), [1000, 9223372036854771712]);
        assert!(limits("0::/\n1:x\n\n").is_empty());
    }

    #[test]
    fn soft_limits_are_parsed() {
        let text = "Limit   Soft Limit  Hard Limit  Units\nMax address space  700000  unlimited  bytes\nMax cpu time  unlimited\n";
        assert_eq!((soft_limit(text, "Max address space"), soft_limit(text, "Max cpu time")), (Some(700_000), None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peaks_of_this_process_are_positive() {
        let memory = peaks();
        assert!(memory.peak_resident > Some(0) && memory.peak_anonymous > Some(0));
    }
}
