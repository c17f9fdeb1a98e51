//! The processor time and memory of a process, from `/proc`.

use std::fs;
use std::ops::Sub;
use std::time::Duration;

/// Linux counts a process' time in hundredths of a second for everybody who asks, whatever its own
/// timer does.
const TICKS_PER_SECOND: u64 = 100;

/// Processor time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) all: Duration,
    /// The part in kernel mode, which Linux only samples.
    pub(crate) kernel: Duration,
}

impl Cpu {
    /// The processor time of a process so far.
    pub(crate) fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
        // The name, in parentheses, may hold spaces.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let time = |at: usize| {
            let ticks = fields[at].parse::<u64>().expect("ticks");
            Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND)
        };
        let (user, kernel) = (time(11), time(12));
        Self {
            all: user + kernel,
            kernel,
        }
    }
}

/// The processor time between two times.
impl Sub for Cpu {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            kernel: self.kernel.saturating_sub(before.kernel),
        }
    }
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.expect("VmRSS").parse::<u64>().expect("a number") * 1_024
}
