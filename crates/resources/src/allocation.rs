//! Addresses of the cluster and ports of its nodes, each of which belongs to one service at a time.
//!
//! An allocation is recorded in the store, by one atomic write, before the service that gets it is written; the record
//! is deleted after the service has given it up. So nothing is allocated twice, however many servers share a store and
//! whenever one of them dies. Writes that were abandoned, or whose outcome is unknown, leave records behind, which
//! [`Repair`] releases.

mod addresses;
mod needs;
mod node_ports;
mod port_set;
mod repair;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};

use self::addresses::{AddressRefusal, Addresses};
use self::needs::Needs;
pub use self::node_ports::NODE_PORT_RANGES;
use self::node_ports::{NodePorts, PortRefusal};
pub use self::port_set::PortRange;
pub use self::repair::Repair;
use ringwatch::clock::Clock;
use ringwatch::storage::Interface;
use ringwatch_apimachinery::path::{list, text};
use ringwatch_apimachinery::{Error, FieldError};
use ringwatch_registry::{Store, WriteResult};

use super::core::service::{self, Owner};
use super::service_ranges::Families;

/// Hands out addresses and ports of the nodes to services.
#[derive(Debug)]
pub struct ServiceAllocator {
    addresses: Addresses,
    node_ports: NodePorts,
    /// The families of the addresses that services get.
    families: Families,
    /// True once the addresses and ports of all stored services are known to be recorded.
    ready: AtomicBool,
}

/// The addresses and ports that a write of a service takes and gives up.
#[derive(Debug)]
struct Allocation {
    allocator: Arc<ServiceAllocator>,
    owner: Owner,
    gained: Numbers,
    given_up: Numbers,
}

#[derive(Debug, Default)]
struct Numbers {
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

impl ServiceAllocator {
    /// Addresses are noted as objects in the first store, out of the ranges in the second. Ports of a range are noted
    /// in a storage of their own.
    #[must_use]
    pub fn new(
        addresses: Store,
        ranges: Store,
        (node_ports, port_range): (Arc<dyn Interface>, PortRange),
        families: Families,
        clock: Clock,
    ) -> Self {
        Self {
            addresses: Addresses::new(addresses, ranges, clock),
            node_ports: NodePorts::new(node_ports, port_range),
            families,
            ready: AtomicBool::new(false),
        }
    }

    async fn take(
        &self,
        needs: &Needs,
        service: &mut Value,
        allocation: &mut Allocation,
        dry_run: bool,
    ) -> Result<(), Error> {
        if let Err(error) = self
            .take_addresses(needs, service, allocation, dry_run)
            .await
        {
            if !dry_run {
                self.give_back(&allocation.owner, &allocation.gained).await;
            }
            return Err(error);
        }
        match self.node_ports.take(&needs.asked_ports(), dry_run).await {
            Ok(ports) => {
                needs.set_ports(service, &ports);
                allocation.gained.ports = ports;
                Ok(())
            }
            Err(refusal) => {
                if !dry_run {
                    self.give_back(&allocation.owner, &allocation.gained).await;
                }
                Err(refused_port(refusal, needs, service))
            }
        }
    }

    /// Takes the addresses; on an error those that it has taken are in the allocation.
    async fn take_addresses(
        &self,
        needs: &Needs,
        service: &mut Value,
        allocation: &mut Allocation,
        dry_run: bool,
    ) -> Result<(), Error> {
        for needed in &needs.addresses {
            let (requested, family) = (&needed.requested, needed.family);
            let taken = self
                .addresses
                .take(requested, family, &allocation.owner, dry_run)
                .await;
            let address = taken.map_err(|refusal| refused_address(refusal, requested, service))?;
            needs::set_address(service, needed, address);
            allocation.gained.addresses.push(address);
        }
        Ok(())
    }

    /// Releases addresses and ports. The repair finds those that cannot be released now.
    async fn give_back(&self, owner: &Owner, numbers: &Numbers) {
        for address in &numbers.addresses {
            if let Err(error) = self.addresses.give_back(*address, owner).await {
                tracing::warn!(%error, "cannot release the address {address} yet");
            }
        }
        if let Err(error) = self.node_ports.give_back(&numbers.ports).await {
            tracing::warn!(%error, "cannot release node ports yet");
        }
    }
}

#[async_trait]
impl ringwatch_registry::Allocator for ServiceAllocator {
    async fn allocate(
        self: Arc<Self>,
        service: &mut Value,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<Box<dyn ringwatch_registry::Allocation>, Error> {
        let owner = Owner::new(service);
        if !owner.can_be_noted() {
            // Validation refuses the service for its name.
            return Ok(Box::new(Allocation::none(self, owner)));
        }
        service::complete(service, old, self.families)
            .map_err(|errors| invalid(service, errors))?;
        if let Some((place, number)) = needs::no_port(service, old) {
            let why = self.node_ports.not_in_range(number).to_string();
            return Err(refused_number(number, place, why, service));
        }
        let needs = Needs::new(service, old);
        let mut allocation = Allocation::none(Arc::clone(&self), owner);
        if !needs.is_empty() {
            if !self.ready.load(Ordering::Acquire) {
                return Err(Error::Internal("allocator not ready".to_owned()));
            }
            self.take(&needs, service, &mut allocation, dry_run).await?;
        }
        if dry_run {
            allocation.gained = Numbers::default();
        } else if let Some(old) = old {
            allocation.given_up = needs::given_up(service, old);
        }
        Ok(Box::new(allocation))
    }

    async fn release(&self, service: &Value) {
        let numbers = Numbers {
            addresses: service::addresses_of(service),
            ports: service::node_ports_of(service),
        };
        self.give_back(&Owner::new(service), &numbers).await;
    }
}

impl Allocation {
    fn none(allocator: Arc<ServiceAllocator>, owner: Owner) -> Self {
        Self {
            allocator,
            owner,
            gained: Numbers::default(),
            given_up: Numbers::default(),
        }
    }
}

#[async_trait]
impl ringwatch_registry::Allocation for Allocation {
    async fn finish(self: Box<Self>, outcome: WriteResult) {
        let unused = match outcome {
            WriteResult::Written => &self.given_up,
            WriteResult::NotWritten => &self.gained,
            WriteResult::Unknown => return,
        };
        self.allocator.give_back(&self.owner, unused).await;
    }
}

fn refused_address(refusal: AddressRefusal, requested: &str, service: &Value) -> Error {
    match refusal {
        AddressRefusal::Store(error) => error,
        AddressRefusal::Full => {
            let name = text(service, "metadata.name");
            Error::Internal(format!(
                "failed to allocate a serviceIP for Service {name:?}: {refusal}"
            ))
        }
        AddressRefusal::Taken
        | AddressRefusal::OtherNetwork
        | AddressRefusal::NotInRange { .. } => {
            let why = format!("failed to allocate IP {requested}: {refusal}");
            let all = json!(list(service, "spec.clusterIPs"));
            let error = FieldError::invalid("spec.clusterIPs", &all, why);
            invalid(service, vec![error])
        }
    }
}

fn refused_port(refusal: PortRefusal, needs: &Needs, service: &Value) -> Error {
    let why = refusal.to_string();
    match refusal {
        PortRefusal::Store(error) => Error::Storage(error),
        PortRefusal::OtherRange { .. } => Error::Internal(why),
        PortRefusal::Full => Error::Internal(format!("failed to allocate a nodePort: {why}")),
        PortRefusal::Taken { port, request } => {
            refused_number(port.into(), needs.place_of_request(request), why, service)
        }
        PortRefusal::NotInRange { port: number, .. } => {
            let place = u16::try_from(number).ok().and_then(|it| needs.place_of(it));
            refused_number(number, place, why, service)
        }
    }
}

fn refused_number(number: i64, place: Option<usize>, why: String, service: &Value) -> Error {
    match place {
        Some(place) => {
            let field = format!("spec.ports[{place}].nodePort");
            let error = FieldError::invalid(field, &json!(number), why);
            invalid(service, vec![error])
        }
        None => Error::Internal(format!(
            "failed to allocate requested HealthCheck NodePort {number}: {why}"
        )),
    }
}

fn invalid(service: &Value, errors: Vec<FieldError>) -> Error {
    Error::Invalid {
        kind: "Service".to_owned(),
        name: ringwatch_apimachinery::accessor::text(service, "name").to_owned(),
        errors,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests bound what they wait for")]
mod tests;
