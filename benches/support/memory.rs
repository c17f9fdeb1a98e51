//! The memory of this process, as Linux tells it.

/// The bytes of a page of memory, on the machines that the benches run on.
const PAGE_BYTES: usize = 4096;

/// Returns how many bytes are resident.
pub fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * PAGE_BYTES
}
