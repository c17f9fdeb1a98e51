//! The controller of the Service `kubernetes`: keeps the Service, and its endpoints equal to the addresses of the
//! running servers.
//!
//! Servers that share a store each hold a lease in it, and each writes the addresses of all. A store of a single server
//! needs no leases.

mod addresses;
pub(crate) mod server_leases;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch::storage::StorageError;
use ringwatch_registry::Store;
use ringwatch_resources::ensure_kubernetes_service;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::ServerLeases;

/// Interval of checks of the addresses, as in kube-apiserver.
const RECONCILE_PERIOD: Duration = Duration::from_secs(10);

/// A documentation address (RFC 5737). Nothing is sent to it.
const ELSEWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);

/// The endpoints of the Service `kubernetes`: where this server is reached, and the others of the same store.
#[derive(Debug)]
pub struct ApiEndpoints {
    /// The address and port at which this server is reached.
    pub own: (IpAddr, u16),
    /// The cluster IP of the Service `kubernetes`.
    pub cluster_ip: IpAddr,
    /// The store of services.
    pub services: Arc<Store>,
    /// The store of Endpoints.
    pub endpoints: Arc<Store>,
    /// The store of EndpointSlices.
    pub slices: Arc<Store>,
    /// The leases by which the servers of the store publish their addresses; `None` if there is only this one.
    pub leases: Option<ServerLeases>,
    /// The time.
    pub clock: Clock,
}

/// The addresses cannot be kept up to date.
#[derive(Debug, thiserror::Error)]
enum ApiEndpointsError {
    /// The leases cannot be held or read.
    #[error("the leases of servers: {0}")]
    Leases(#[from] StorageError),
    /// The addresses cannot be written.
    #[error("the endpoints of the API: {0}")]
    Endpoints(#[from] ringwatch_apimachinery::Error),
    /// The service was deleted and cannot be created again.
    #[error("the service of the API: {0}")]
    Service(ringwatch_apimachinery::Error),
}

impl ApiEndpoints {
    /// Renews this server's lease, writes the addresses of all servers, and creates the Service if it is missing.
    async fn reconcile(&self) -> Result<(), ApiEndpointsError> {
        if let Some(leases) = &self.leases {
            leases.renew(self.own.0).await?;
        }
        self.publish().await?;
        ensure_kubernetes_service(&self.services, self.cluster_ip, self.own.1, &self.clock)
            .await
            .map_err(ApiEndpointsError::Service)
    }

    /// Keeps the addresses up to date until the end, then removes this server's address. Sends to `tried` once it has
    /// tried for the first time to write them.
    pub async fn run(self, tried: oneshot::Sender<()>, end: CancellationToken) {
        self.reconcile_or_warn().await;
        // Nobody may wait for it any more.
        let _ = tried.send(());
        while end
            .run_until_cancelled(self.clock.sleep(RECONCILE_PERIOD))
            .await
            .is_some()
        {
            self.reconcile_or_warn().await;
        }
        if let Err(error) = self.withdraw().await {
            tracing::warn!(%error, "cannot withdraw the address of the API");
        }
    }

    async fn reconcile_or_warn(&self) {
        if let Err(error) = self.reconcile().await {
            tracing::warn!(%error, "the addresses of the API may be outdated");
        }
    }

    async fn withdraw(&self) -> Result<(), ApiEndpointsError> {
        let Some(leases) = &self.leases else {
            return Ok(());
        };
        leases.give_back(self.own.0).await?;
        self.publish().await
    }

    async fn publish(&self) -> Result<(), ApiEndpointsError> {
        let addresses = match &self.leases {
            Some(leases) => leases.addresses().await?,
            None => [self.own.0.to_string()].into(),
        };
        // When nobody is left, nobody is reached anywhere else either.
        if addresses.is_empty() {
            return Ok(());
        }
        let (endpoints, slices) = (&self.endpoints, &self.slices);
        let port = self.own.1;
        addresses::publish_addresses(endpoints, slices, &addresses, port, &self.clock).await?;
        Ok(())
    }
}

/// Returns the address at which others reach a server that is bound to an address; `None` if the host has none that
/// could be told. `advertised` counts before all others.
#[must_use]
pub fn advertised_address(advertised: Option<IpAddr>, bound: IpAddr) -> Option<IpAddr> {
    if advertised.is_some() {
        return advertised;
    }
    let can_be_told = |it: &IpAddr| !it.is_unspecified() && !it.is_loopback();
    let bound = Some(bound).filter(can_be_told);
    bound.or_else(|| sending_address().filter(can_be_told))
}

/// Returns the address from which the host sends to the rest of the world.
fn sending_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::testing::{self, MemoryStorage};
    use serde_json::json;

    use super::addresses::tests::{store, tree};
    use super::*;

    #[tokio::test]
    async fn an_address_is_published_until_the_server_ends() {
        let leases = ServerLeases::new(MemoryStorage::new("/masterleases"));
        let [own, other] = ["192.0.2.7", "192.0.2.8"].map(|it| it.parse().expect("an address"));
        leases.renew(other).await.expect("renewed");
        let [services, endpoints, slices] =
            ["services", "endpoints", "endpointslices"].map(|plural| Arc::new(store(plural)));
        let api_endpoints = ApiEndpoints {
            own: (own, 6443),
            cluster_ip: "10.0.0.1".parse().expect("an address"),
            services,
            endpoints: Arc::clone(&endpoints),
            slices,
            leases: Some(leases.clone()),
            clock: testing::context().clock,
        };
        let (tried, first_try) = oneshot::channel();
        let end = CancellationToken::new();
        let run = api_endpoints.run(tried, end.clone());
        let ends_once_it_is_published = async {
            first_try.await.expect("a first try");
            let addresses = leases.addresses().await.expect("addresses");
            assert_eq!(
                addresses,
                ["192.0.2.7", "192.0.2.8"].map(str::to_owned).into()
            );
            end.cancel();
        };
        tokio::join!(run, ends_once_it_is_published);
        let addresses = leases.addresses().await.expect("addresses");
        assert_eq!(addresses, ["192.0.2.8".to_owned()].into());
        let published = tree(&endpoints).await;
        assert_eq!(
            published["subsets"][0]["addresses"],
            json!([{"ip": "192.0.2.8"}])
        );
    }
}
