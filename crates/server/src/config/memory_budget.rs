//! The default memory budget: a share of the memory that this process can have.

use std::fs;
use std::path::Path;

/// The share of the machine's memory, or of the control group's, that is the default budget. The
/// rest is for what the ledger does not count: the store, code, the allocator's slack, buffers of
/// requests, and the kernel's sockets and page cache.
const DEFAULT_PERCENT: u64 = 50;

/// The default if the system does not report its memory.
const DEFAULT_BYTES: u64 = 1 << 30;

/// Returns the default budget in bytes: a share of the memory that this process can have.
#[must_use]
pub(crate) fn default_budget() -> u64 {
    available(Path::new("/")).map_or(DEFAULT_BYTES, |bytes| bytes / 100 * DEFAULT_PERCENT)
}

/// Returns the memory that this process can have at most, in bytes: the machine's, or its control group's if that is
/// less; `None` if the system does not say.
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

/// Returns the files in which the limits of a line of `/proc/self/cgroup` may stand: those of the group itself, and
/// those of the root, which in a container is the group.
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
}
