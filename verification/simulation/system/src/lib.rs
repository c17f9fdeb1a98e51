//! The system's random numbers and clocks, which follow from the seed in a thread that simulates.
//!
//! The standard library's hash maps, tokio's `select!` and the crate rand take their first random numbers from the C
//! library's `getrandom`; hyper stamps answers and h2 forgets streams by `clock_gettime`. The functions of these names
//! here are linked in their place. In other threads they are the system's.
//!
//! Nothing else belongs here: this is the one crate with unsafe code.

use std::cell::RefCell;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngCore, SeedableRng};

thread_local! {
    static SIMULATED: RefCell<Option<System>> = const { RefCell::new(None) };
}

/// The system as a simulating thread sees it.
struct System {
    random: SmallRng,
    /// The wall time, since 1970. Monotonic time is the same.
    time: Duration,
}

/// Makes all further random numbers of this thread follow from a seed, and its clocks stand still at a time since 1970.
/// Call it first in a new thread: what has been drawn before is kept, such as the keys of hash maps.
pub fn simulate(seed: u64, time: Duration) {
    let random = SmallRng::seed_from_u64(seed);
    SIMULATED.set(Some(System { random, time }));
}

/// Moves the clocks of this thread, if they are simulated.
pub fn advance(by: Duration) {
    SIMULATED.with_borrow_mut(|simulated| {
        if let Some(system) = simulated {
            system.time += by;
        }
    });
}

/// Does something with the simulated system. Returns `None` in a thread that has none, or none any more.
fn simulated<T>(doing: impl FnOnce(&mut System) -> T) -> Option<T> {
    let done = SIMULATED.try_with(|it| it.borrow_mut().as_mut().map(doing));
    done.ok().flatten()
}

/// Fills memory with random bytes, as the C library's function of the same name does.
///
/// # Safety
/// `buffer` must be writable for `length` bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, flags: u32) -> isize {
    let filled = simulated(|system| {
        // SAFETY: the caller vouches for these bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer, length) };
        system.random.fill_bytes(bytes);
    });
    if filled.is_some() {
        return length.cast_signed();
    }
    // SAFETY: the caller vouches for the bytes, and the system call has the same contract.
    let filled = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
    isize::try_from(filled).unwrap_or(-1)
}

/// Reads a clock, as the C library's function of the same name does.
///
/// # Safety
/// `out` must be writable.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(
    clock: libc::clockid_t,
    out: *mut libc::timespec,
) -> libc::c_int {
    let time = match clock {
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => None,
        _ => simulated(|system| system.time),
    };
    if let Some(time) = time {
        let read = libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // SAFETY: the caller vouches for the place.
        unsafe { out.write(read) };
        return 0;
    }
    // SAFETY: the caller vouches for the place, and the system call has the same contract.
    let read = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, out) };
    libc::c_int::try_from(read).unwrap_or(-1)
}

#[cfg(test)]
#[allow(
    clippy::disallowed_methods,
    reason = "threads and the system's clocks are what is tested"
)]
mod tests {
    use std::collections::HashSet;
    use std::thread;
    use std::time::{Duration, Instant, SystemTime};

    const TIME: Duration = Duration::from_secs(1_000);

    fn drawn(seed: u64) -> (u64, Vec<u32>) {
        let thread = thread::spawn(move || {
            super::simulate(seed, TIME);
            let set: HashSet<u32> = (0..100).collect();
            (rand::random(), set.into_iter().collect())
        });
        thread.join().expect("no panic")
    }

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_orders_of_hash_maps() {
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }

    #[test]
    fn time_stands_still_until_it_is_advanced() {
        let thread = thread::spawn(|| {
            super::simulate(1, TIME);
            let before = Instant::now();
            assert_eq!(before.elapsed(), Duration::ZERO);
            super::advance(TIME);
            assert_eq!(before.elapsed(), TIME);
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)
        });
        let time = thread.join().expect("no panic");
        assert_eq!(time.expect("after 1970"), TIME * 2);
        assert!(SystemTime::now().elapsed().expect("now") < TIME);
    }
}
