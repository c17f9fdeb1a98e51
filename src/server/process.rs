//! What `/metrics` says about the process and the build.

use std::fs;
use std::sync::atomic::AtomicI64;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::endpoints::VersionInfo;

/// The process's own numbers, under the names that all Prometheus clients use.
#[derive(Clone, Debug, Default)]
pub struct Process {
    resident_bytes: Gauge<i64, AtomicI64>,
    open_files: Gauge<i64, AtomicI64>,
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
    /// Makes the numbers part of what `/metrics` shows.
    #[must_use]
    pub fn register(registry: &mut Registry, version: &VersionInfo, started: Timestamp) -> Self {
        let process = Self::default();
        process.started_seconds.set(started.as_second());
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory size in bytes.",
            process.resident_bytes.clone(),
        );
        registry.register(
            "process_open_fds",
            "Number of open file descriptors.",
            process.open_files.clone(),
        );
        registry.register(
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            process.started_seconds.clone(),
        );
        let build: Family<Build, Gauge<i64, AtomicI64>> = Family::default();
        let version = version.clone();
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
            "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git \
             commit, git tree state, build date, Go version, and compiler from which Kubernetes was \
             built, and platform on which it is running.",
            build,
        );
        process
    }

    /// Reads the numbers from the operating system. Where it does not tell, they stay.
    pub fn refresh(&self) {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let resident = status.lines().find_map(|line| {
            let kilobytes = line.strip_prefix("VmRSS:")?.trim().strip_suffix("kB")?;
            kilobytes.trim().parse::<i64>().ok()
        });
        if let Some(kilobytes) = resident {
            self.resident_bytes.set(kilobytes * 1024);
        }
        if let Ok(entries) = fs::read_dir("/proc/self/fd") {
            self.open_files
                .set(i64::try_from(entries.count()).unwrap_or(i64::MAX));
        }
    }
}
