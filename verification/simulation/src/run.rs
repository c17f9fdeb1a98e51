//! Runs a plan: the hosts, the faults when they are due, and the verdict.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch_http::Protocol;
use ringwatch_load::{HistoryVerdict, HttpVersion, SimulatedClients};
use ringwatch_simulated_system as system;
use ringwatch_testing::disk::{Disk, Fault as DiskFault, FaultKind};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use turmoil::{Builder, Sim};

use crate::damage;
use crate::etcd::Etcd;
use crate::network::{Network, host};
use crate::plan::{Fault, Plan, Store};
use crate::server::{Machine, SlowingDisk, Storage, TOKEN, serve};

/// The step in which time passes.
const TICK: Duration = Duration::from_millis(1);
/// The longest way of a message.
const LATENCY_MAX: Duration = Duration::from_millis(8);
/// The time beyond that of the plan after which a run that does not end has failed.
const OVERTIME_MAX: Duration = Duration::from_secs(240);
/// Number of messages and connections that may wait at a host, which is more than come while a link is held up.
const MESSAGES_MAX: usize = 1 << 16;
/// The host of the clients.
const CLIENTS: &str = "clients";
/// The instant at which simulated time begins, as the time since the Unix epoch: 2027-01-15.
const EPOCH: Duration = Duration::from_secs(1_800_000_000);
/// The stack of the simulating thread, in bytes, as that of a main thread.
const STACK_BYTES: usize = 8 << 20;

/// The result of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Outcome {
    /// The promises that were broken, each with the history that shows it; empty if all were kept.
    pub faults: Vec<String>,
    /// Number of times that a server or its machine was stopped at once.
    pub crashes: usize,
    /// Number of acknowledged writes.
    pub acknowledged: usize,
    /// Number of events that watchers were told.
    pub events: usize,
    /// A digest of all that clients were told: the same for each run of a plan.
    pub digest: u64,
}

impl Outcome {
    /// Returns the outcome of a run that failed as a whole.
    pub(crate) fn failed(why: String) -> Self {
        Self {
            faults: vec![why],
            ..Self::default()
        }
    }

    /// Returns the outcome in JSON, on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads what [`to_json`](Self::to_json) has written; `None` if it is something else.
    pub(crate) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            faults,
            crashes,
            acknowledged,
            events,
            digest,
        } = self;
        let verdict = if faults.is_empty() { "ok" } else { "FAILED" };
        write!(
            f,
            "{verdict}, {crashes} crashes, {acknowledged} acknowledged writes, {events} events, digest {digest:016x}"
        )
    }
}

/// Runs a plan in a thread of its own.
#[must_use]
pub fn run(plan: &Plan) -> Outcome {
    let plan = plan.clone();
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    let names = rand::random();
    let running = thread.spawn(move || {
        system::simulate(plan.seed, EPOCH);
        // Names of temporary folders differ from those of other processes, as tempfile takes random numbers of the
        // system after it has met one that is taken.
        fastrand::seed(names);
        let simulated = Simulation::new(&plan).and_then(Simulation::run);
        simulated.unwrap_or_else(|error| Outcome::failed(format!("the simulation ended: {error}")))
    });
    match running.map(thread::JoinHandle::join) {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Outcome::failed("a panic, which is shown above".to_owned()),
        Err(error) => Outcome::failed(format!("no thread: {error}")),
    }
}

/// A run while it goes on.
struct Simulation<'a> {
    plan: &'a Plan,
    sim: Sim<'a>,
    clock: Clock,
    storage: Storage,
    network: Network,
    verdict: Arc<Mutex<Option<HistoryVerdict>>>,
    /// The stopped servers, each as the time at which it starts again and its number.
    down: Vec<(Duration, usize)>,
    /// The ends of the faults that have to be ended, each with its time.
    ends: Vec<(Duration, End)>,
    /// The time for which the machine is down after the loss of power that is planned.
    power_back_after: Duration,
    outcome: Outcome,
    _folder: TempDir,
}

/// The end of a fault.
#[derive(Clone, Copy, Debug)]
enum End {
    Release,
    MendDisk,
    SpeedUpDisk,
}

impl<'a> Simulation<'a> {
    fn new(plan: &'a Plan) -> turmoil::Result<Self> {
        let start = Timestamp::UNIX_EPOCH.checked_add(EPOCH)?;
        let clock = Clock::manual(start);
        let servers = plan.store.servers();
        let storage = match plan.store {
            Store::Embedded => {
                let disk = SlowingDisk {
                    disk: Disk::new(plan.seed),
                    slowed: Arc::default(),
                };
                Storage::Disk(disk)
            }
            Store::Etcd { trusted, .. } => {
                Storage::Etcd(Arc::new(Etcd::new(clock.clone(), trusted)))
            }
        };
        let folder = TempDir::new()?;
        let protocol = match plan.http {
            HttpVersion::One => Protocol::Http1,
            HttpVersion::Two => Protocol::Http2,
        };
        let mut sim = Builder::new()
            .tick_duration(TICK)
            .simulation_duration(plan.duration + OVERTIME_MAX)
            .max_message_latency(LATENCY_MAX)
            .tcp_capacity(MESSAGES_MAX)
            .rng_seed(plan.seed)
            .enable_random_order()
            .enable_tokio_io()
            .build();
        for server in 0..servers {
            let machine = Machine {
                clock: clock.clone(),
                protocol,
                folder: folder.path().join(host(server)),
                storage: storage.clone(),
            };
            sim.host(host(server), move || serve(machine.clone()));
        }
        if let Storage::Etcd(etcd) = &storage {
            let etcd = Arc::clone(etcd);
            sim.host("etcd", move || {
                let etcd = Arc::clone(&etcd);
                async move {
                    etcd.run_leases().await;
                    Ok(())
                }
            });
        }
        let network = Network::new(servers);
        let verdict: Arc<Mutex<Option<HistoryVerdict>>> = Arc::default();
        let clients = clients(plan, &network);
        let judged = Arc::clone(&verdict);
        sim.client(CLIENTS, async move {
            let verdict = clients.run().await?;
            *judged.lock().unwrap_or_else(PoisonError::into_inner) = Some(verdict);
            Ok(())
        });
        Ok(Self {
            plan,
            sim,
            clock,
            storage,
            network,
            verdict,
            down: Vec::new(),
            ends: Vec::new(),
            power_back_after: Duration::ZERO,
            outcome: Outcome::default(),
            _folder: folder,
        })
    }

    fn run(mut self) -> turmoil::Result<Outcome> {
        let plan = self.plan;
        let mut faults = plan.faults().iter().peekable();
        loop {
            self.clock.advance(TICK);
            system::advance(TICK);
            let now = self.sim.elapsed();
            while let Some(timed) = faults.next_if(|timed| timed.at <= now) {
                self.inject(timed.fault, now);
            }
            self.end_faults(now);
            if self.sim.step()? {
                break;
            }
            self.lose_power_if_due(now);
        }
        let verdict = self
            .verdict
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let verdict = verdict.ok_or("the clients have not come to a verdict")?;
        self.outcome.faults.extend(verdict.faults);
        if verdict.acknowledged == 0 {
            self.outcome
                .faults
                .push("no write was acknowledged".to_owned());
        }
        Ok(Outcome {
            acknowledged: verdict.acknowledged,
            events: verdict.events,
            digest: verdict.digest,
            ..self.outcome
        })
    }

    /// Has a fault begin. One that makes no sense at the time, such as the end of a server that is down, does nothing.
    fn inject(&mut self, fault: Fault, now: Duration) {
        tracing::info!(?fault, ?now, "a fault");
        match (fault, &self.storage) {
            (Fault::Kill { server, down }, _) => self.stop(server, now + down),
            (Fault::PowerLoss { after, down }, Storage::Disk(disk)) => {
                let kind = FaultKind::PowerLoss;
                disk.disk.fail(DiskFault { after, kind });
                self.power_back_after = down;
            }
            (
                Fault::Disk {
                    after,
                    kind,
                    mended,
                },
                Storage::Disk(disk),
            ) => {
                disk.disk.fail(DiskFault { after, kind });
                self.ends.push((now + mended, End::MendDisk));
            }
            (Fault::SlowDisk { each, lasts }, Storage::Disk(disk)) => {
                *disk.slowed.lock().unwrap_or_else(PoisonError::into_inner) = each;
                self.ends.push((now + lasts, End::SpeedUpDisk));
            }
            (Fault::Hold { lasts }, _) => {
                for server in 0..self.plan.store.servers() {
                    self.sim.hold(CLIENTS, host(server));
                }
                self.ends.push((now + lasts, End::Release));
            }
            (Fault::Reset { percent }, _) => self.network.reset_some(percent),
            (Fault::NoLeader { lasts }, Storage::Etcd(etcd)) => etcd.lose_leader(lasts),
            (Fault::Lag { by, lasts }, Storage::Etcd(etcd)) => etcd.lag(by, lasts),
            (Fault::CancelWatches, Storage::Etcd(etcd)) => etcd.cancel_watches(),
            (Fault::Compact { kept }, Storage::Etcd(etcd)) => etcd.compact_but(kept),
            (Fault::NoSpace { lasts }, Storage::Etcd(etcd)) => etcd.run_out_of_space(lasts),
            (_, Storage::Disk(_) | Storage::Etcd(_)) => {}
        }
    }

    /// Ends what is due, and starts servers again.
    fn end_faults(&mut self, now: Duration) {
        for (_, end) in self.ends.extract_if(.., |(at, _)| *at <= now) {
            match (end, &self.storage) {
                (End::MendDisk, Storage::Disk(disk)) => disk.disk.mend(),
                (End::SpeedUpDisk, Storage::Disk(disk)) => {
                    *disk.slowed.lock().unwrap_or_else(PoisonError::into_inner) = Duration::ZERO;
                }
                (End::Release, _) => {
                    for server in 0..self.plan.store.servers() {
                        self.sim.release(CLIENTS, host(server));
                    }
                }
                (End::MendDisk | End::SpeedUpDisk, Storage::Etcd(_)) => {}
            }
        }
        for (_, server) in self.down.extract_if(.., |(at, _)| *at <= now) {
            if let Storage::Disk(disk) = &self.storage
                && disk.disk.is_off()
            {
                disk.disk.power_on();
            }
            self.network.reset_all(server);
            self.sim.bounce(host(server));
        }
    }

    /// Stops a server at once, until a time.
    fn stop(&mut self, server: usize, until: Duration) {
        if self.down.iter().any(|(_, down)| *down == server) {
            return;
        }
        self.outcome.crashes += 1;
        self.sim.crash(host(server));
        self.network.reset_all(server);
        self.down.push((until, server));
    }

    /// Stops the machine whose disk has lost power in this step.
    fn lose_power_if_due(&mut self, now: Duration) {
        let Storage::Disk(SlowingDisk { disk, .. }) = &self.storage else {
            return;
        };
        if !disk.is_off() || !self.down.is_empty() {
            return;
        }
        let check = damage::check(disk, &self.clock);
        let wrong = futures::executor::block_on(check);
        self.outcome.faults.extend(wrong);
        self.stop(0, now + self.power_back_after);
    }
}

fn clients(plan: &Plan, network: &Network) -> SimulatedClients {
    let crate::plan::Clients {
        watchers,
        writers,
        readers,
        objects,
        rate,
    } = plan.clients;
    SimulatedClients {
        connect: Arc::new(network.clone()),
        token: TOKEN.to_owned(),
        http: plan.http,
        duration: plan.duration,
        watchers,
        writers,
        readers,
        objects,
        rate,
    }
}
