//! What a process has used, out of `/proc`.

use std::fs;
use std::time::Duration;

/// Linux counts a process' time in hundredths of a second for everybody who asks, whatever its own
/// timer does.
const TICKS_PER_SECOND: u64 = 100;

/// The processor time of a process, in user and in kernel mode.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a running process");
    // The name, in parentheses, may hold spaces.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<u64>().expect("ticks");
    Duration::from_millis((ticks(11) + ticks(12)) * 1_000 / TICKS_PER_SECOND)
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes.expect("VmRSS").parse::<u64>().expect("a number") * 1_024
}
