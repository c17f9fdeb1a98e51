//! The metrics of the process and the build.

use std::fs;
use std::sync::atomic::AtomicI64;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch_endpoints::VersionInfo;

use crate::debug::memory_bytes;

#[allow(
    clippy::disallowed_types,
    reason = "a metric that no kernel structure knows of"
)]
type CounterBits = std::sync::atomic::AtomicU64;

/// The number of ticks in a second in which Linux reports processor time to programs.
const TICKS_PER_SECOND: f64 = 100.0;

/// The metrics of this process, under the names that all Prometheus clients use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    resident_bytes: Gauge<i64, AtomicI64>,
    virtual_bytes: Gauge<i64, AtomicI64>,
    open_files: Gauge<i64, AtomicI64>,
    open_files_max: Gauge<i64, AtomicI64>,
    cpu_seconds: Counter<f64, CounterBits>,
    started_seconds: Gauge<i64, AtomicI64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    major: String,
    minor: String,
    git_version: String,
    git_commit: String,
    git_tree_state: String,
    build_date: String,
    go_version: String,
    compiler: String,
    platform: String,
}

impl Process {
    /// Registers the metrics of the process and of the build.
    #[must_use]
    pub(crate) fn register(
        registry: &mut Registry,
        version: VersionInfo,
        started: Timestamp,
    ) -> Self {
        let process = Self::default();
        process.started_seconds.set(started.as_second());
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            process.resident_bytes.clone(),
        );
        registry.register(
            "process_virtual_memory_bytes",
            "Virtual memory size in bytes.",
            process.virtual_bytes.clone(),
        );
        registry.register(
            "process_cpu_seconds",
            "Total user and system CPU time spent in seconds.",
            process.cpu_seconds.clone(),
        );
        registry.register(
            "process_open_fds",
            "Number of open file descriptors.",
            process.open_files.clone(),
        );
        registry.register(
            "process_max_fds",
            "Maximum number of open file descriptors.",
            process.open_files_max.clone(),
        );
        registry.register(
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            process.started_seconds.clone(),
        );
        let build: Family<Build, Gauge<i64, AtomicI64>> = Family::default();
        build
            .get_or_create(&Build {
                major: version.major,
                minor: version.minor,
                git_version: version.git_version,
                git_commit: version.git_commit,
                git_tree_state: version.git_tree_state,
                build_date: version.build_date,
                go_version: version.go_version,
                compiler: version.compiler,
                platform: version.platform,
            })
            .set(1);
        registry.register(
            "kubernetes_build_info",
            "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git \
             commit, git tree state, build date, Go version, and compiler from which Kubernetes was \
             built, and platform on which it is running.",
            build,
        );
        process
    }

    /// Reads the metrics from the operating system, before a scrape. A metric that cannot be read keeps its value.
    pub(crate) fn refresh(&self) {
        for (name, gauge) in [
            ("VmRSS:", &self.resident_bytes),
            ("VmSize:", &self.virtual_bytes),
        ] {
            if let Some(bytes) = memory_bytes(name) {
                gauge.set(i64::try_from(bytes).unwrap_or(i64::MAX));
            }
        }
        if let Some(limit) = open_files_limit() {
            self.open_files_max.set(limit);
        }
        if let Some(seconds) = cpu_seconds() {
            let more = seconds - self.cpu_seconds.get();
            if more > 0.0 {
                self.cpu_seconds.inc_by(more);
            }
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            self.open_files
                .set(i64::try_from(entries.count()).unwrap_or(i64::MAX));
        }
    }
}

/// Returns the number of files that this process may have open; `None` if the system does not tell.
fn open_files_limit() -> Option<i64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the processor time of this process, user and system, in seconds; `None` if the system does not tell.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the process, in parentheses, may hold spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}
