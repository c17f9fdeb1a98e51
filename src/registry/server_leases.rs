//! Who serves a store: a short-lived object for each server, named by its address, in the form and the place
//! that kube-apiserver gives it.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::codec;
use crate::meta::Object;
use crate::storage::{
    DeleteOptions, Interface, ListOptions, NoCheck, Rejection, StorageError, TryUpdate,
    UpdateOptions, Updated,
};

/// Where they are stored.
pub const SERVER_LEASES: &str = "masterleases";

/// For how long a server's word holds, as in kube-apiserver.
const LEASE_SECONDS: u64 = 15;

/// The leases of the servers of a store.
#[derive(Clone, Debug)]
pub struct ServerLeases {
    storage: Arc<dyn Interface>,
}

impl ServerLeases {
    /// The leases in a storage of their own.
    #[must_use]
    pub fn new(storage: Arc<dyn Interface>) -> Self {
        Self { storage }
    }

    /// Tells once more that there is a server at an address.
    ///
    /// # Errors
    /// When the store cannot be written.
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

    /// Takes back that there is a server at an address.
    ///
    /// # Errors
    /// When the store cannot be written.
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

    /// The addresses of all servers.
    ///
    /// # Errors
    /// When the store cannot be read.
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

/// The next content of the lease of an address.
struct Renewal(IpAddr);

#[async_trait]
impl TryUpdate for Renewal {
    /// A number in it grows, lest an update that changes nothing renews nothing.
    async fn try_update(&mut self, existing: Option<&Object>) -> Result<Updated, Rejection> {
        let existing = existing.map(codec::tree).transpose()?;
        let renewals = existing.as_ref().and_then(|it| {
            let generation = it.pointer("/metadata/generation");
            generation.and_then(Value::as_i64)
        });
        let generation = renewals.unwrap_or(0).saturating_add(1);
        let object = json!({"apiVersion": "v1", "kind": "Endpoints",
            "metadata": {"generation": generation},
            "subsets": [{"addresses": [{"ip": self.0.to_string()}]}]});
        Ok(Updated {
            object,
            ttl: Some(LEASE_SECONDS),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::testing::MemoryStorage;

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
