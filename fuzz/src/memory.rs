//! The memory that a parser takes: counted for the whole process, so one target runs at a time.

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that any input may take.
const BYTES_MIN: usize = 16 * 1024;

/// Does something that may take so many bytes at once, and fails if it takes more.
pub(crate) fn within<T>(bytes: usize, what: &str, act: impl FnOnce() -> T) -> T {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let done = act();
    let taken = MEMORY.peak_usage().saturating_sub(before);
    let allowed = bytes + BYTES_MIN;
    assert!(
        taken <= allowed,
        "{what}: {taken} bytes, of {allowed} that it may take"
    );
    done
}
