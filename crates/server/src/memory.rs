//! The default memory budget, the task that frees memory when it is short, and the metrics of the budget.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicI64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use ringwatch::budget::{Account, Ledger};
use ringwatch_apiserver::endpoints::EncodingCache;

/// The share of the machine's memory, or of the control group's, that is the default budget. The
/// rest is for what the ledger does not count: the store, code, the allocator's slack, buffers of
/// requests, and the kernel's sockets and page cache.
const DEFAULT_PERCENT: u64 = 50;

/// The default if the system does not report its memory.
const DEFAULT_BYTES: u64 = 1 << 30;

/// Returns the default budget in bytes: a share of the memory that this process can have.
#[must_use]
pub(super) fn default_budget() -> u64 {
    available(Path::new("/")).map_or(DEFAULT_BYTES, |bytes| bytes / 100 * DEFAULT_PERCENT)
}

/// Returns the memory that this process can have at most, in bytes: the machine's, or its control group's if that is less;
/// `None` if the system does not say.
fn available(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo").and_then(|text| total_of(&text));
    let groups = read("proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(limit_files).filter_map(|path| {
        let text = read(&path)?;
        text.trim().parse::<u64>().ok()
    });
    limits.chain(machine).min()
}

/// Returns `MemTotal` of the text of `/proc/meminfo`, in bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kilobytes.checked_mul(1024)
}

/// Returns the files in which the limits of a line of `/proc/self/cgroup` may stand: those of the group itself, and those of
/// the root, which in a container is the group.
fn limit_files(line: &str) -> Vec<String> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next(), parts.next(), parts.next());
    let (folder, file) = match controllers {
        Some("") => ("sys/fs/cgroup", "memory.max"),
        Some(names) if names.split(',').any(|name| name == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let path = path.unwrap_or_default().trim_matches('/');
    vec![
        format!("{folder}/{path}/{file}"),
        format!("{folder}/{file}"),
    ]
}

/// Shrinks the cache of encodings and then the windows of the watch caches whenever memory becomes short. Never completes.
pub(super) async fn shrink_caches(
    ledger: Ledger,
    encodings: EncodingCache,
    shrink_windows: impl Fn(),
) {
    loop {
        ledger.pressed().await;
        encodings.evict_surplus();
        shrink_windows();
    }
}

/// The ledger's figures, as `/metrics` shows them.
#[derive(Debug)]
pub(super) struct MemoryMetrics {
    ledger: Ledger,
    /// The bytes in use, by account.
    spent: Family<AccountLabels, Gauge<i64, AtomicI64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccountLabels {
    account: &'static str,
}

impl MemoryMetrics {
    /// Registers the metrics, with the limit of the budget.
    #[must_use]
    pub(super) fn register(registry: &mut Registry, ledger: Ledger) -> Self {
        let spent = Family::default();
        registry.register(
            "ringwatch_memory_bytes",
            "Memory in use by account, as the memory budget counts it.",
            spent.clone(),
        );
        let limit: Gauge<i64, AtomicI64> = Gauge::default();
        limit.set(shown(ledger.limit()));
        registry.register(
            "ringwatch_memory_limit_bytes",
            "The memory budget: before it is spent, new lists and watches are refused.",
            limit,
        );
        let metrics = Self { ledger, spent };
        metrics.refresh();
        metrics
    }

    /// Sets the metrics to what the ledger says now, before a scrape.
    pub(super) fn refresh(&self) {
        for account in Account::ALL {
            let labels = AccountLabels {
                account: account.name(),
            };
            let bytes = shown(self.ledger.spent(account));
            self.spent.get_or_create(&labels).set(bytes);
        }
    }
}

fn shown(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        available(root.path())
    }

    #[test]
    fn the_least_of_all_limits_counts() {
        let memory = ("proc/meminfo", "MemTotal:  2048 kB\nMemFree: 1 kB\n");
        let second = ("proc/self/cgroup", "0::/a/b\n");
        let first = ("proc/self/cgroup", "3:cpu:/a\n4:memory:/a\n");
        assert_eq!(machine(&[]), None);
        assert_eq!(machine(&[memory]), Some(2 << 20));
        assert_eq!(
            machine(&[memory, second, ("sys/fs/cgroup/a/b/memory.max", "4096\n")]),
            Some(4096)
        );
        assert_eq!(
            machine(&[memory, second, ("sys/fs/cgroup/memory.max", "max\n")]),
            Some(2 << 20)
        );
        let limit = ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "8192\n");
        assert_eq!(machine(&[memory, first, limit]), Some(8192));
        let none = (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        assert_eq!(machine(&[memory, first, none]), Some(2 << 20));
    }

    #[test]
    fn this_machine_has_some_memory() {
        assert!(default_budget() > 0);
    }

    #[test]
    fn accounts_are_shown_from_the_start_and_follow() {
        let ledger = Ledger::new(1000);
        let mut registry = Registry::default();
        let metrics = MemoryMetrics::register(&mut registry, ledger.clone());
        let mut share = ledger.share(Account::Windows);
        share.set(7);
        metrics.refresh();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
        for line in [
            "ringwatch_memory_bytes{account=\"windows\"} 7",
            "ringwatch_memory_bytes{account=\"objects\"} 0",
            "ringwatch_memory_limit_bytes 1000",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
