//! The memory that a parser takes: counted for the whole process, so one target runs at a time.

use std::sync::LazyLock;

use peak_alloc::PeakAlloc;
use ringwatch::codec;
use ringwatch_testing::made;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Bytes that any input may take.
const BYTES_MIN: usize = 16 * 1024;

/// The tables that are made at their first use, which is not that of an input.
static TABLES: LazyLock<()> = LazyLock::new(|| {
    for mut object in made::objects() {
        let written = codec::encode_value(&object).expect("a built-in kind");
        codec::decode(&written, ("", "")).expect("an object");
        let text = |name: &str| object[name].as_str().unwrap_or_default();
        let kind = codec::kind(text("apiVersion"), text("kind")).expect("a built-in kind");
        let members = object.as_object_mut().expect("an object");
        codec::check_types(kind, members).expect("an object of its kind");
    }
});

/// Does something that may take so many bytes at once, and fails if it takes more.
pub(crate) fn within<T>(bytes: usize, what: &str, act: impl FnOnce() -> T) -> T {
    LazyLock::force(&TABLES);
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
