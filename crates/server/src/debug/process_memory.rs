//! The memory of this process, as the system tells it.

use std::fs;

/// Returns the resident memory of this process, in bytes; `None` if the system does not tell.
pub(crate) fn resident_bytes() -> Option<u64> {
    memory_bytes("VmRSS:")
}

/// Returns a size of this process by its name in `/proc`, in bytes; `None` if the system does not tell.
pub(crate) fn memory_bytes(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let size = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.trim().strip_suffix("kB"));
    let kilobytes: u64 = size?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}
