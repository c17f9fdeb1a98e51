//! The embedded store of the simulated server, on a disk that survives it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch::storage::backend::embedded::{CommitLoop, Disk, Embedded, OpenError};

/// The name of the disk in messages.
pub(crate) const NAME: &str = "the simulated disk";

/// The disk, as the store takes it.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedDisk(pub(crate) ringwatch_testing::disk::Disk);

impl Disk for SimulatedDisk {
    fn size_bytes(&self) -> io::Result<u64> {
        self.0.size_bytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.0.forget_cached()
    }
}

/// Opens the store on a disk.
pub(crate) fn open(
    disk: &ringwatch_testing::disk::Disk,
    clock: Clock,
) -> Result<(Embedded, CommitLoop), OpenError> {
    Embedded::open_on(Path::new(NAME), SimulatedDisk(disk.clone()), clock)
}

/// Writes batches, with the pause after each that the disk takes at the time.
pub(crate) async fn commit(mut commits: CommitLoop, pause: impl Fn() -> Duration, clock: Clock) {
    while commits.write_batch().await {
        clock.sleep(pause()).await;
    }
}

/// Runs the tasks of a store, until they are aborted.
pub(crate) async fn keep(store: Arc<Embedded>) {
    let never = std::future::pending;
    tokio::join!(store.run_leases(never()), store.run_recovery(never()));
}
