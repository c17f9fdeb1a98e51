//! Leases of the API servers that share a store: a short-lived object for each, named by its address, in the form and
//! under the key that kube-apiserver uses.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{
    DeleteOptions, Interface, ListOptions, NextContent, NoCheck, Rejection, StorageError,
    TryUpdate, UpdateOptions,
};
use serde_json::{Value, json};

/// The storage prefix of the leases.
pub const SERVER_LEASES: &str = "masterleases";

/// Seconds after which a lease expires that is not renewed, as in kube-apiserver.
const LEASE_SECONDS: u64 = 15;

/// The leases of the servers of a store.
#[derive(Clone, Debug)]
pub struct ServerLeases {
    storage: Arc<dyn Interface>,
}

impl ServerLeases {
    /// Makes the leases over a storage, whose prefix must be [`SERVER_LEASES`].
    #[must_use]
    pub fn new(storage: Arc<dyn Interface>) -> Self {
        Self { storage }
    }

    /// Creates or renews the lease of the server at an address.
    ///
    /// # Errors
    /// An error of the storage if it cannot be written.
    pub async fn renew(&self, address: IpAddr) -> Result<(), StorageError> {
        let options = UpdateOptions {
            ignore_not_found: true,
            ..UpdateOptions::default()
        };
        let mut renewal = Renewal(address);
        self.storage
            .guaranteed_update(&key(address), options, &mut renewal)
            .await
            .map(|_| ())
    }

    /// Deletes the lease of the server at an address, if there is one.
    ///
    /// # Errors
    /// An error of the storage if it cannot be written.
    pub async fn give_back(&self, address: IpAddr) -> Result<(), StorageError> {
        let options = DeleteOptions::default();
        match self
            .storage
            .delete(&key(address), options, &mut NoCheck)
            .await
        {
            Ok(_) | Err(StorageError::KeyNotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the addresses of all servers whose leases have not expired.
    ///
    /// # Errors
    /// An error of the storage if it cannot be read.
    pub async fn addresses(&self) -> Result<BTreeSet<String>, StorageError> {
        let options = ListOptions {
            recursive: true,
            ..ListOptions::default()
        };
        let prefix = format!("/{SERVER_LEASES}/");
        let list = self.storage.get_list(&prefix, options).await?;
        let address = |lease: &Arc<Object>| {
            let lease = codec::tree(lease).ok()?;
            let address = lease.pointer("/subsets/0/addresses/0/ip")?.as_str()?;
            Some(address.to_owned())
        };
        Ok(list.items.iter().filter_map(address).collect())
    }
}

fn key(address: IpAddr) -> String {
    format!("/{SERVER_LEASES}/{address}")
}

/// The update that renews the lease of an address.
struct Renewal(IpAddr);

#[async_trait]
impl TryUpdate for Renewal {
    /// Increments the generation, since the storage skips an update that changes nothing and would not renew the lease.
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<NextContent, Rejection> {
        let existing = existing.map(codec::tree).transpose()?;
        let renewals = existing.as_ref().and_then(|it| {
            let generation = it.pointer("/metadata/generation");
            generation.and_then(Value::as_i64)
        });
        let generation = renewals.unwrap_or(0).saturating_add(1);
        let object = json!({"apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"generation": generation},
            "subsets": [{"addresses": [{"ip": self.0.to_string()}]}]});
        Ok(NextContent {
            object,
            ttl: Some(LEASE_SECONDS),
        })
    }
}

#[cfg(test)]
mod tests {
    use ringwatch_registry::testing::MemoryStorage;

    use super::*;

    #[tokio::test]
    async fn servers_come_and_go() {
        let leases = ServerLeases::new(MemoryStorage::new("/masterleases"));
        let [one, two] = ["192.0.2.7", "2001:db8::7"].map(|it| it.parse().expect("an address"));
        for address in [one, two, one] {
            leases.renew(address).await.expect("renewed");
        }
        let addresses = leases.addresses().await.expect("addresses");
        assert_eq!(
            addresses,
            ["192.0.2.7", "2001:db8::7"].map(str::to_owned).into()
        );
        leases.give_back(one).await.expect("given back");
        leases.give_back(one).await.expect("given back already");
        let addresses = leases.addresses().await.expect("addresses");
        assert_eq!(addresses, ["2001:db8::7".to_owned()].into());
    }
}
