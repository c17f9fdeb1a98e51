//! A file system that is really full: a small one in memory, which only root may mount.

use std::fs;
use std::path::Path;
use std::process::Command;

use ringwatch::storage::backend::{Backend, BackendError};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::opened::Opened;
use super::requests::{all, put, put_leased};

/// The size of the file system in bytes, and the size of the other file that lies in it at first.
const FILE_SYSTEM_BYTES: usize = 24 << 20;
const BALLAST_BYTES: usize = 8 << 20;
const VALUE_BYTES: usize = 400 << 10;
const VALUES_MAX: usize = 200;

/// A mounted file system, until it is dropped.
struct Mounted(TempDir);

impl Mounted {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={FILE_SYSTEM_BYTES}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        mounted
            .is_ok_and(|it| it.status.success())
            .then_some(Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
        assert!(unmounted.unwrap().success());
    }
}

/// Writes until a write is refused. Returns how many were acknowledged, and the error.
async fn fill(store: &dyn Backend) -> (usize, BackendError) {
    let value = "x".repeat(VALUE_BYTES);
    for number in 0..VALUES_MAX {
        let written = put_leased(store, &format!("/{number:03}"), &value, None).await;
        if let Err(error) = written {
            return (number, error);
        }
    }
    panic!("the file system is not full");
}

async fn count(store: &dyn Backend) -> usize {
    all(store).await.len()
}

#[tokio::test]
async fn a_full_file_system_loses_nothing_and_is_written_again() {
    let Some(mounted) = Mounted::new() else {
        eprintln!("SKIPPED a full file system: nothing can be mounted here");
        return;
    };
    let ballast = mounted.path().join("ballast");
    fs::write(&ballast, vec![1; BALLAST_BYTES]).unwrap();
    let path = mounted.path().join("db");
    let opened = Opened::at(&path);
    let store = opened.store.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { store.run_recovery(std::future::pending()).await });
    let (acknowledged, error) = fill(&*opened.store).await;
    assert!(matches!(error, BackendError::ReadOnly(_)), "{error}");
    assert!(error.to_string().contains("No space left"), "{error}");
    let folder = mounted.path().to_str().unwrap();
    assert!(!error.to_string().contains(folder), "no path: {error}");
    assert!(opened.store.refusal().is_some());
    assert_eq!(count(&*opened.store).await, acknowledged);

    // What a kill leaves at this moment.
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("db");
    fs::copy(&path, &copy).unwrap();
    let killed = Opened::at(&copy);
    let found = count(&*killed.store).await;
    assert!([acknowledged, acknowledged + 1].contains(&found), "{found}");
    killed.close().await;

    // A start on a disk that is full shows everything too.
    opened.close().await;
    let opened = Opened::at(&path);
    assert_eq!(count(&*opened.store).await, found);
    let store = opened.store.clone();
    tasks.spawn(async move { store.run_recovery(std::future::pending()).await });
    let acknowledged = found;

    fs::remove_file(&ballast).unwrap();
    eventually(DEADLINE, "the store takes writes again", async || {
        opened.store.refusal().map_or(Ok(()), Err)
    })
    .await;
    put(&*opened.store, "/again", "1").await;
    assert_eq!(count(&*opened.store).await, acknowledged + 1);
    opened.close().await;
    let opened = Opened::at(&path);
    assert_eq!(count(&*opened.store).await, acknowledged + 1);
    opened.close().await;
}
