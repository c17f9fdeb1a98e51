//! The processor time and memory of a process, from `/proc`.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Linux counts a process' time in hundredths of a second for everybody who asks, whatever its own
/// timer does.
const TICK: Duration = Duration::from_millis(10);
/// A thread of the client that is busy for more of the time than this is what is measured.
const BUSY_MAX: f64 = 0.8;
/// Ticks over less time than this do not tell how busy a thread was.
const BUSY_TIME_MIN: Duration = Duration::from_millis(500);
/// The places of `utime` and `stime` among the fields of a `stat` file that follow the process' name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

/// Processor time and memory of a process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) cpu: Duration,
    /// Resident memory in bytes.
    pub(crate) rss: u64,
    /// The most resident memory that it ever had in bytes, if that is known.
    pub(crate) rss_peak: Option<u64>,
}

impl Usage {
    /// Returns the usage of a process so far; `None` if there is no such process.
    pub(crate) fn read(pid: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Some(Self {
            cpu: cpu(&format!("{pid}"))?,
            rss: memory(&status, "VmRSS:")?,
            rss_peak: memory(&status, "VmHWM:"),
        })
    }
}

/// Returns the processor time of this process so far.
pub(crate) fn own_cpu() -> Duration {
    cpu("self").unwrap_or_default()
}

/// Returns the processor time of the process or thread that has this name under `/proc`, in steps of ten
/// milliseconds.
pub(crate) fn cpu(name: &str) -> Option<Duration> {
    read_cpu(&fs::read_to_string(format!("/proc/{name}/stat")).ok()?)
}

/// Returns the name of the calling thread under `/proc`.
pub(crate) fn thread() -> Option<String> {
    let link = fs::read_link("/proc/thread-self").ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Returns the processor time of the calling thread so far, to the nanosecond.
pub(crate) fn thread_cpu() -> Duration {
    // No clock of a thread is below zero.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Returns the part of the time for which a thread of the client was busy, if that is so much that the client is what
/// is measured.
pub(crate) fn too_busy(cpu: Duration, elapsed: Duration) -> Option<f64> {
    let busy = cpu.div_duration_f64(elapsed);
    (elapsed >= BUSY_TIME_MIN && busy > BUSY_MAX).then_some(busy)
}

/// Reads the processor time in a `stat` file. A process' name in it, in parentheses, may hold spaces and parentheses.
fn read_cpu(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok();
    Some(TICK * ticks(USER_TICKS)?.checked_add(ticks(SYSTEM_TICKS)?)?)
}

fn memory(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kibibytes = line?.trim().strip_suffix(" kB")?.trim();
    Some(kibibytes.parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_confuses_nobody() {
        let stat = "7 (a) b) (c) S 1 7 7 0 -1 4194304 0 0 0 0 250 50 0 0 20 0";
        assert_eq!(read_cpu(stat), Some(Duration::from_secs(3)));
        assert_eq!(read_cpu("7 (a) S"), None);
    }

    #[test]
    fn only_time_that_is_long_enough_tells_of_a_busy_client() {
        let busy = |cpu, elapsed| {
            too_busy(Duration::from_millis(cpu), Duration::from_millis(elapsed)).is_some()
        };
        assert!(busy(900, 1_000));
        assert!(!busy(700, 1_000));
        // One tick.
        assert!(!busy(10, 9));
        assert!(!busy(0, 0));
    }

    #[test]
    fn this_process_is_known() {
        let usage = Usage::read(std::process::id()).expect("this process");
        assert!(usage.rss > 0);
        assert!(usage.rss_peak >= Some(usage.rss));
        let thread = thread().expect("this thread");
        assert!(cpu(&thread).is_some());
        assert_eq!(Usage::read(u32::MAX), None);
    }
}
