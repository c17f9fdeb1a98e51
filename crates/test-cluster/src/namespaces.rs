//! The namespace controller: deletes what is in a namespace that is being deleted, then lets it go.
//!
//! As kube-controller-manager 1.36 (`pkg/controller/namespace`) it deletes pods first, says in the namespace's
//! conditions what is left and which finalizers hold it, and removes its own finalizer once nothing is left.

mod conditions;
mod contents;

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::accessor::is_terminating;
use ringwatch_apimachinery::path::{get_mut, list};
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::informer::InformerChange;
use ringwatch_registry::{FunctionUpdate, ListWatch, Store, UpdateOptions};
use serde_json::Value;

use crate::ServedStores;
use crate::account::context;
use crate::controller::{self, Controller, Next, found};

/// The service account of the controller.
const ACCOUNT: &str = "namespace-controller";

/// The finalizer that holds a namespace until this controller removes it.
const FINALIZER: &str = "kubernetes";

/// The namespace controller.
#[derive(Debug)]
pub(crate) struct Namespaces<'a> {
    namespaces: &'a Store,
    stores: &'a ServedStores,
    clock: &'a Clock,
}

impl Namespaces<'_> {
    /// Runs the controller until it is dropped.
    pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
        let Some(namespaces) = stores.built_in("", "namespaces") else {
            return;
        };
        let controller = Namespaces {
            namespaces,
            stores,
            clock,
        };
        let sources = vec![((), namespaces.as_ref() as &dyn ListWatch)];
        controller::run(&controller, "namespaces", sources, clock).await;
    }

    /// Changes a namespace that is still being deleted.
    async fn update(
        &self,
        (name, uid): (&str, &str),
        subresource: &str,
        change: impl Fn(&mut Value) + Send + Sync,
    ) -> Result<(), Error> {
        let mut change = FunctionUpdate::new(|namespace| {
            // Another one of the same name may have come, whose contents nobody has looked at.
            if is_terminating(namespace) && accessor::text(namespace, "uid") == uid {
                change(namespace);
            }
            Ok(())
        });
        let context = context(ACCOUNT, self.clock).on_subresource(subresource);
        let options = UpdateOptions::default();
        let updated = self
            .namespaces
            .update(&context, "", name, &mut change, &options);
        updated.await.map(drop)
    }
}

#[async_trait]
impl Controller for Namespaces<'_> {
    type Source = ();
    type Key = String;

    fn keys(&self, (): (), change: &InformerChange) -> Vec<String> {
        match change {
            InformerChange::Upserted(namespace) => vec![namespace.name().to_owned()],
            InformerChange::Deleted(_) => Vec::new(),
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Next, Error> {
        let namespace = self.namespaces.get("", name, GetOptions::default()).await;
        let Some(namespace) = found(namespace)? else {
            return Ok(Next::Done);
        };
        let namespace = self.namespaces.served_value(&namespace)?;
        if !is_terminating(&namespace) || list(&namespace, "spec.finalizers").is_empty() {
            return Ok(Next::Done);
        }
        let this = (&**name, accessor::text(&namespace, "uid"));
        let context = context(ACCOUNT, self.clock);
        let left = contents::delete(&context, self.stores, name).await;
        let now = accessor::format_time(self.clock.wall());
        let mut next = namespace.clone();
        if conditions::write(&mut next, &left, &now) {
            let told = |namespace: &mut Value| {
                conditions::write(namespace, &left, &now);
            };
            match self.update(this, "status", told).await {
                Err(Error::NotFound { .. }) => return Ok(Next::Done),
                told => told?,
            }
        }
        if !left.is_nothing() {
            return Ok(Next::Again);
        }
        let finalized = self.update(this, "finalize", |namespace| {
            let finalizers = get_mut(namespace, "spec.finalizers");
            if let Some(finalizers) = finalizers.and_then(Value::as_array_mut) {
                finalizers.retain(|it| it != FINALIZER);
            }
        });
        match finalized.await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(Next::Done),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringwatch_registry::testing::{
        MemoryStorage, TestStrategy, context as test_context, resource,
    };
    use ringwatch_registry::{CreateOptions, DeleteOptions};
    use ringwatch_testing::eventually::{DEADLINE, eventually};
    use serde_json::json;
    use tokio::sync::watch;

    use super::*;
    use crate::testing::UnservedDefinition;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_is_not_empty_while_a_definition_is_not_served_yet() {
        let strategy = Arc::new(TestStrategy {
            holds: true,
            ..TestStrategy::default()
        });
        let resource = resource("namespaces", "Namespace", false, strategy);
        let storage = MemoryStorage::new("/namespaces");
        let namespaces = Arc::new(Store::new(resource, storage as _));
        let definition = UnservedDefinition::new().await;
        let built_in = [Arc::clone(&namespaces), Arc::clone(&definition.store)];
        let (_, custom) = watch::channel(Vec::new());
        let stores = ServedStores::new(built_in.into_iter().collect(), custom);
        let test = async {
            let (context, options) = (test_context(), CreateOptions::default());
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "n"}, "spec": {"finalizers": [FINALIZER]}});
            let created = namespaces.create(&context, "", namespace, &options);
            created.await.expect("a namespace");
            let deleted = namespaces.delete(&context, "", "n", DeleteOptions::default());
            deleted.await.expect("it begins");
            let stored = async || {
                let found = namespaces.get("", "n", GetOptions::default()).await;
                let found = controller::found(found).expect("an answer");
                found.map(|it| namespaces.served_value(&it).expect("an object"))
            };
            eventually(DEADLINE, "its condition tells why it stays", async || {
                let namespace = stored().await.expect("it stays");
                let conditions = list(&namespace, "status.conditions");
                let is_told = conditions
                    .iter()
                    .any(|it| it["reason"] == "DiscoveryFailed");
                is_told.then_some(()).ok_or(namespace)
            })
            .await;
            definition.remove().await;
            eventually(DEADLINE, "it goes", async || stored().await.is_none()).await;
        };
        let clock = Clock::real();
        tokio::select! {
            () = Namespaces::run(&stores, &clock) => unreachable!("it runs until it is dropped"),
            () = test => {}
        }
    }
}
