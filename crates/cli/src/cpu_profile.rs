//! CPU profiles: the stacks of the threads that use a processor, sampled by a timer that counts the process's CPU time.
//!
//! The crate `pprof` handles the signal SIGPROF on the thread that it interrupts, and walks its stack there. It follows
//! tables of the compiler, and the release build has no frame pointers, which would cost time always. With glibc since
//! 2.35 nothing in the walk takes a lock. docs/compatibility.md tells users of 2.34 to take no profiles: only unsafe
//! code, which the workspace forbids, can ask for the version. Samples within the walker itself and in the kernel's
//! `vdso`, whose tables are wrong on some systems, are left out. The first profile takes memory that is kept: 64 MiB
//! for the crate's table of stacks, which the memory budget does not count, and the symbols of the binary, which are
//! mapped.

use std::time::{Duration, SystemTime};

use pprof::ProfilerGuardBuilder;
use ringwatch_server::ProfileError;

use super::pprof_format::{Profile, Stack};

/// The number of samples that are taken in a second of a processor's time, as in Go.
const SAMPLES_A_SECOND: i32 = 100;
/// The libraries in which no stack is walked.
const NOT_SAMPLED: [&str; 2] = ["libgcc", "vdso"];

/// Samples until `wait` returns, and returns a profile in pprof's format, gzipped.
pub(crate) fn take(wait: &mut dyn FnMut()) -> Result<Vec<u8>, ProfileError> {
    let failed = |error: pprof::Error| ProfileError::Failed(error.to_string());
    let guard = ProfilerGuardBuilder::default()
        .frequency(SAMPLES_A_SECOND)
        .blocklist(&NOT_SAMPLED)
        .build()
        .map_err(failed)?;
    wait();
    let report = guard.report().build().map_err(failed)?;
    drop(guard);
    let began = report
        .timing
        .start_time
        .duration_since(SystemTime::UNIX_EPOCH);
    let mut profile = Profile::of_cpu(
        began.unwrap_or_default(),
        report.timing.duration,
        Duration::from_secs(1) / SAMPLES_A_SECOND.unsigned_abs(),
    );
    for (frames, count) in &report.data {
        let functions = frames.frames.iter().flatten();
        profile.add(&Stack {
            functions: functions.map(pprof::Symbol::name).collect(),
            thread: frames.thread_name_or_id(),
            count: i64::try_from(*count).unwrap_or(i64::MAX),
        });
    }
    let gzipped = profile.gzipped();
    gzipped.map_err(|error| ProfileError::Failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::super::pprof_format::DecodedProfile;
    use super::*;

    /// The rounds of about a second of a processor's time in an unoptimised build, of which each hundredth is sampled.
    const ROUNDS: u64 = 50_000_000;

    #[inline(never)]
    fn the_function_that_takes_all_the_time() -> u64 {
        (0..ROUNDS).fold(0, |sum, number| black_box(sum ^ number))
    }

    #[test]
    fn a_profile_has_the_functions_that_took_time() {
        let mut wait = || {
            black_box(the_function_that_takes_all_the_time());
        };
        let profile = take(&mut wait).expect("a profile");
        let profile = DecodedProfile::read(&profile);
        let (count, nanoseconds) = profile.samples_of("the_function_that_takes_all_the_time");
        assert!(count > 0, "{profile:?}");
        assert_eq!(nanoseconds, count * 10_000_000);
        // One that ends leaves the next to be taken.
        assert!(take(&mut || {}).is_ok());
    }
}
