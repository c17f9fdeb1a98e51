//! Brings what is noted in line with what services have.
//!
//! Whatever a stored service has must be noted, at once. What is noted and no service has may be on its way to one, so
//! it is given back only after longer than a request may take. Meanwhile it must not have been given back and taken
//! anew, which would look the same: an address is identified by the uid of its object, and a port by the revision in
//! which it was taken. For that the object of the ports is watched.
//!
//! Only a server that is alone and starts knows that nothing is on its way, and gives it back at once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringwatch::clock::{Clock, Instant};
use ringwatch::codec;
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{Informer, ListWatch, Store};

use super::ServiceAllocator;
use super::addresses::AllocatedAddress;
use super::node_ports::PortRefusal;
use super::port_set::PortSet;
use crate::core::service::{self, Owner};

/// Number of services that are read at a time.
const PAGE: u64 = 500;
/// Time after an error until the repair begins anew.
const RETRY_PERIOD: Duration = Duration::from_secs(1);

/// Frees addresses and ports that failed writes have left allocated.
#[derive(Debug)]
pub struct Repair {
    /// The allocator whose records are repaired.
    pub allocator: Arc<ServiceAllocator>,
    /// The store of Services, whose addresses and ports count.
    pub services: Arc<Store>,
    /// The time limit of requests. An allocation that is older belongs to no request any more.
    pub request_timeout: Duration,
    /// True if no other server writes to the store. Then no request is under way when a server starts.
    pub is_alone: bool,
    /// The clock of the pauses between repairs.
    pub clock: Clock,
}

/// The reason why the records of allocations cannot be repaired.
#[derive(Debug, thiserror::Error)]
pub enum RepairError {
    /// The addresses or services could not be read or written.
    #[error(transparent)]
    Objects(#[from] Error),
    /// The object of allocated ports could not be read or written.
    #[error("node ports: {0}")]
    Ports(String),
}

impl From<PortRefusal> for RepairError {
    fn from(refusal: PortRefusal) -> Self {
        Self::Ports(refusal.to_string())
    }
}

impl RepairError {
    fn of_ports(error: Error) -> Self {
        Self::Ports(error.to_string())
    }
}

/// A recorded address or port that no service has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Leak {
    Address(AllocatedAddress),
    /// A node port, with the revision of the object in which it was taken.
    Port(u16, u64),
}

/// The addresses and ports of services.
#[derive(Debug, Default)]
struct InUse {
    addresses: BTreeMap<IpAddr, Owner>,
    ports: BTreeSet<u16>,
}

/// The ports that are recorded as taken, as of the last change of their object.
#[derive(Debug, Default)]
struct RecordedPorts {
    /// The revision of the object; 0 if there is none.
    revision: u64,
    /// The revision since which a port has been taken, or the first at which that was seen.
    since: BTreeMap<u16, u64>,
}

impl Repair {
    /// Notes what stored services have. Then more may be handed out. A server that is alone releases what no service
    /// has, which was left by one that ended during a write.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn begin(&self) -> Result<(), RepairError> {
        let noted = self.allocator.addresses.all().await?;
        let had = self.had().await?;
        self.note_addresses(&had, &noted).await?;
        // Later, requests of this server may be under way.
        let are_all = self.is_alone && !self.allocator.ready.load(Ordering::Acquire);
        if are_all {
            for unused in unused_addresses(&had, noted) {
                self.release(&unused).await?;
            }
        }
        let ports: Vec<u16> = had.ports.iter().copied().collect();
        let node_ports = &self.allocator.node_ports;
        node_ports.rebuild(&ports, are_all).await?;
        self.allocator.ready.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the time for which what no service has stays allocated: a request may have it that is under way.
    #[must_use]
    pub fn released_after(&self) -> Duration {
        self.request_timeout * 2
    }

    /// Repairs until it is dropped.
    pub async fn run(&self) {
        loop {
            if let Err(error) = self.follow().await {
                tracing::warn!(%error, "cannot repair the allocations of services");
            }
            self.clock.sleep(RETRY_PERIOD).await;
        }
    }

    /// Repairs until the ports cannot be followed any more.
    async fn follow(&self) -> Result<(), RepairError> {
        self.allocator.node_ports.hold(&[]).await?;
        let sources = [((), &self.allocator.node_ports as &dyn ListWatch)];
        let informer = Informer::new("node ports", sources, self.clock.clone());
        let mut listed = informer.list().await.map_err(RepairError::of_ports)?;
        let mut ports = RecordedPorts::default();
        for ((), object) in &listed.objects {
            ports.apply(object.revision(), self.allocator.node_ports.decode(object)?);
        }
        let mut suspects = BTreeMap::new();
        loop {
            let (taken, revision) = (ports.since.clone(), ports.revision);
            self.pass(&taken, revision, &mut suspects).await?;
            let next = self.clock.now() + self.request_timeout;
            loop {
                tokio::select! {
                    () = self.clock.sleep_until(next) => break,
                    changes = listed.changes.next() => {
                        let changes = changes.map_err(RepairError::of_ports)?;
                        let Some(changes) = changes else { return Ok(()) };
                        for ((), change) in changes {
                            match change {
                                InformerChange::Upserted(object) => {
                                    let taken = self.allocator.node_ports.decode(&object)?;
                                    ports.apply(object.revision(), taken);
                                }
                                InformerChange::Deleted(_) => return Ok(()),
                            }
                        }
                    }
                }
            }
        }
    }

    /// Compares once, and gives back what has belonged to nobody for long enough.
    async fn pass(
        &self,
        taken: &BTreeMap<u16, u64>,
        revision: u64,
        suspects: &mut BTreeMap<Leak, Instant>,
    ) -> Result<(), RepairError> {
        let noted = self.allocator.addresses.all().await?;
        // Services are read after the notes, so what is noted and written already is seen.
        let had = self.had().await?;
        self.note(&had, &noted, taken).await?;
        let addresses = unused_addresses(&had, noted).map(Leak::Address);
        let ports = taken
            .iter()
            .filter(|(port, _)| !had.ports.contains(port))
            .map(|(port, since)| Leak::Port(*port, *since));
        let leaks: BTreeSet<Leak> = addresses.chain(ports).collect();
        let now = self.clock.now();
        suspects.retain(|leak, _| leaks.contains(leak));
        for leak in leaks {
            suspects.entry(leak).or_insert(now);
        }
        let long = self.released_after();
        let expired = suspects.iter().filter(|(_, first)| now - **first >= long);
        let expired: Vec<Leak> = expired.map(|(leak, _)| leak.clone()).collect();
        self.give_back(&expired, revision).await
    }

    async fn give_back(&self, leaks: &[Leak], revision: u64) -> Result<(), RepairError> {
        let mut ports = Vec::new();
        for leak in leaks {
            match leak {
                Leak::Address(taken) => self.release(taken).await?,
                Leak::Port(port, _) => ports.push(*port),
            }
        }
        if !ports.is_empty() {
            // Somebody may have changed them since they were looked at; then they wait for the next time.
            let given = self
                .allocator
                .node_ports
                .give_back_at(&ports, revision)
                .await?;
            tracing::info!(
                ?ports,
                given,
                "allocated node ports belong to no service and are released"
            );
        }
        Ok(())
    }

    async fn release(&self, unused: &AllocatedAddress) -> Result<(), Error> {
        tracing::info!(address = %unused.address, "an allocated address belongs to no service and is released");
        self.allocator.addresses.forget(unused).await
    }

    /// Notes what services have and is not noted.
    async fn note(
        &self,
        had: &InUse,
        noted: &[AllocatedAddress],
        ports: &BTreeMap<u16, u64>,
    ) -> Result<(), RepairError> {
        self.note_addresses(had, noted).await?;
        let node_ports = &self.allocator.node_ports;
        let mut missing: Vec<u16> = had.ports.iter().copied().collect();
        missing.retain(|port| !ports.contains_key(port) && node_ports.may_have(*port));
        if !missing.is_empty() {
            node_ports.hold(&missing).await?;
        }
        Ok(())
    }

    async fn note_addresses(
        &self,
        had: &InUse,
        noted: &[AllocatedAddress],
    ) -> Result<(), RepairError> {
        let noted: BTreeSet<IpAddr> = noted.iter().map(|taken| taken.address).collect();
        for (address, owner) in &had.addresses {
            if !noted.contains(address) {
                self.allocator.addresses.note(*address, owner).await?;
            }
        }
        Ok(())
    }

    async fn had(&self) -> Result<InUse, Error> {
        let mut had = InUse::default();
        let mut options = ListOptions::default();
        options.predicate.limit = PAGE;
        loop {
            let list = self.services.list("", options.clone()).await?;
            for object in &list.items {
                let service = codec::tree(object)?;
                had.ports.extend(service::node_ports_of(&service));
                let addresses = service::addresses_of(&service).into_iter();
                had.addresses
                    .extend(addresses.map(|it| (it, Owner::new(&service))));
            }
            match list.continue_token {
                Some(token) => options.predicate.continue_token = token,
                None => return Ok(had),
            }
        }
    }
}

/// Returns the noted addresses that their owners do not have.
fn unused_addresses(
    had: &InUse,
    noted: Vec<AllocatedAddress>,
) -> impl Iterator<Item = AllocatedAddress> {
    let is_unused = |it: &AllocatedAddress| had.addresses.get(&it.address) != Some(&it.owner);
    noted.into_iter().filter(is_unused)
}

impl RecordedPorts {
    /// Takes over the ports that the object has at a revision.
    fn apply(&mut self, revision: u64, taken: PortSet) {
        self.revision = revision;
        self.since.retain(|port, _| taken.0.contains(port));
        for port in taken.0 {
            self.since.entry(port).or_insert(revision);
        }
    }
}
