//! The plan of a run, which follows from its seed.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use ringwatch_load::HttpVersion;
use ringwatch_testing::disk::FaultKind;

/// The range of the time for which clients write, in seconds.
const SECONDS: std::ops::RangeInclusive<u64> = 10..=40;
/// Number of faults in a run.
const FAULTS: std::ops::RangeInclusive<usize> = 0..=12;
/// The longest time for which a fault lasts, such as that of a server that is down.
const FAULT_MAX: Duration = Duration::from_secs(5);
/// A fault that comes at the nth change of the disk comes within so many.
const DISK_CHANGES_MAX: u32 = 300;
/// The longest time by which a member of etcd lags.
const LAG_MAX: Duration = Duration::from_secs(3);

/// The faults of a run and when they come, and the parts of the simulated system. It follows from a seed.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) seed: u64,
    pub(crate) store: Store,
    pub(crate) http: HttpVersion,
    pub(crate) duration: Duration,
    pub(crate) clients: Clients,
    faults: Vec<Timed>,
    /// True if faults or time were left out, so that the seed alone does not give the plan.
    is_reduced: bool,
}

/// The store in which the server keeps its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// The embedded store, on a disk.
    Embedded,
    /// A cluster of etcd, and the number of servers that share it.
    Etcd { servers: usize, trusted: bool },
}

impl Store {
    /// Returns the number of servers.
    pub(crate) fn servers(self) -> usize {
        match self {
            Self::Embedded => 1,
            Self::Etcd { servers, .. } => servers,
        }
    }
}

/// The numbers of clients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients {
    pub(crate) watchers: u32,
    pub(crate) writers: u32,
    pub(crate) readers: u32,
    pub(crate) objects: u32,
    pub(crate) rate: f64,
}

/// A fault and when it comes.
#[derive(Clone, Debug)]
pub struct Timed {
    /// Its number in the plan, by which it is kept or left out.
    number: usize,
    pub(crate) at: Duration,
    pub(crate) fault: Fault,
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// A server's process ends at once, and starts again after a time.
    Kill { server: usize, down: Duration },
    /// The machine of the embedded store loses power after so many changes of its disk, and has it back after a time.
    PowerLoss { after: u32, down: Duration },
    /// The disk fails after so many changes, and is mended after a time.
    Disk {
        after: u32,
        kind: FaultKind,
        mended: Duration,
    },
    /// Commits take so much longer for a time.
    SlowDisk { each: Duration, lasts: Duration },
    /// Messages between clients and servers are held up for a time.
    Hold { lasts: Duration },
    /// A part of all connections, in percent, is reset.
    Reset { percent: u8 },
    /// etcd has no leader for a time. Of the writes in flight some happen.
    NoLeader { lasts: Duration },
    /// Watches lag so far behind for a time.
    Lag { by: Duration, lasts: Duration },
    /// etcd ends all its watches.
    CancelWatches,
    /// All revisions but so many newest are compacted away.
    Compact { kept: u64 },
    /// etcd accepts only deletions for a time.
    NoSpace { lasts: Duration },
}

impl Plan {
    /// Returns the plan of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let store = if random.random_bool(0.5) {
            Store::Embedded
        } else {
            Store::Etcd {
                servers: random.random_range(1..=2),
                trusted: random.random_bool(0.7),
            }
        };
        let http = if random.random_bool(0.5) {
            HttpVersion::One
        } else {
            HttpVersion::Two
        };
        let duration = Duration::from_secs(random.random_range(SECONDS));
        let clients = Clients {
            watchers: random.random_range(4..=40),
            writers: random.random_range(1..=6),
            readers: random.random_range(0..=3),
            objects: random.random_range(20..=40),
            rate: random.random_range(5.0..80.0),
        };
        let mut faults: Vec<(Duration, Fault)> = (0..random.random_range(FAULTS))
            .map(|_| {
                let at = random.random_range(Duration::ZERO..duration);
                (at, Fault::draw(store, &mut random))
            })
            .collect();
        faults.sort_by_key(|(at, _)| *at);
        let faults = faults.into_iter().enumerate();
        let timed = |(number, (at, fault))| Timed { number, at, fault };
        Self {
            seed,
            store,
            http,
            duration,
            clients,
            faults: faults.map(timed).collect(),
            is_reduced: false,
        }
    }

    /// Returns how long clients write.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the faults, in the order in which they come.
    #[must_use]
    pub fn faults(&self) -> &[Timed] {
        &self.faults
    }

    /// Leaves out all faults but those with these numbers.
    pub fn keep(&mut self, numbers: &BTreeSet<usize>) {
        self.faults.retain(|fault| numbers.contains(&fault.number));
        self.is_reduced = true;
    }

    /// Returns the plan without one of its faults.
    pub(crate) fn without(&self, place: usize) -> Self {
        let mut plan = self.clone();
        plan.faults.remove(place);
        plan.is_reduced = true;
        plan
    }

    /// Has clients write for a shorter time.
    pub fn shorten(&mut self, duration: Duration) {
        self.duration = duration;
        self.is_reduced = true;
    }

    /// Returns the command that runs this plan.
    #[must_use]
    pub fn command(&self) -> String {
        format!("verification/simulation/run {}", self.arguments().join(" "))
    }

    /// Returns the arguments of `simulate` for this plan.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = vec![self.seed.to_string()];
        if self.is_reduced {
            let numbers: Vec<_> = self.faults.iter().map(|it| it.number.to_string()).collect();
            arguments.push(format!("--keep={}", numbers.join(",")));
            arguments.push(format!("--seconds={}", self.duration.as_secs()));
        }
        arguments
    }
}

impl Fault {
    fn draw(store: Store, random: &mut SmallRng) -> Self {
        let lasts = random.random_range(Duration::from_millis(10)..FAULT_MAX);
        let after = random.random_range(0..DISK_CHANGES_MAX);
        let percent = random.random_range(1..=100);
        match (random.random_range(0..7), store) {
            (0, _) => Self::Hold { lasts },
            (1, _) => Self::Reset { percent },
            (2, Store::Embedded) => Self::Kill {
                server: 0,
                down: lasts,
            },
            (3 | 4, Store::Embedded) => Self::PowerLoss { after, down: lasts },
            (5, Store::Embedded) => Self::Disk {
                after,
                kind: match random.random_range(0..3) {
                    0 => FaultKind::Once,
                    1 => FaultKind::UntilMended,
                    _ => FaultKind::Broken,
                },
                mended: lasts,
            },
            (_, Store::Embedded) => Self::SlowDisk {
                each: random.random_range(Duration::from_millis(1)..Duration::from_millis(500)),
                lasts,
            },
            (2, Store::Etcd { servers, .. }) => Self::Kill {
                server: random.random_range(0..servers),
                down: lasts,
            },
            (3, Store::Etcd { .. }) => Self::NoLeader { lasts },
            (4, Store::Etcd { .. }) => Self::Lag {
                by: random.random_range(Duration::from_millis(1)..LAG_MAX),
                lasts,
            },
            (5, Store::Etcd { .. }) => Self::CancelWatches,
            (_, Store::Etcd { .. }) if random.random_bool(0.3) => Self::NoSpace { lasts },
            (_, Store::Etcd { .. }) => Self::Compact {
                kept: random.random_range(0..200),
            },
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = match self.store {
            Store::Embedded => "embedded store".to_owned(),
            Store::Etcd { servers, trusted } => {
                let trust = if trusted { "trusted" } else { "distrusted" };
                format!("etcd with {servers} servers and {trust} progress")
            }
        };
        let http = match self.http {
            HttpVersion::One => "HTTP/1.1",
            HttpVersion::Two => "HTTP/2",
        };
        let (seconds, faults) = (self.duration.as_secs(), self.faults.len());
        write!(
            f,
            "seed {}: {store}, {http}, {seconds} s, {faults} faults",
            self.seed
        )
    }
}

impl fmt::Display for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "fault {} at {:.3?}: {:?}",
            self.number, self.at, self.fault
        )
    }
}
