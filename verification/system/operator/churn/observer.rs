//! Tells the ledger of every change.

use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::task::AbortHandle;

use super::ledger::{Change, Ledger};
use super::{NAMESPACE, Stage};
use crate::site::Site;

/// Begins to watch all types.
pub(super) fn observe(stage: &Stage) -> Vec<AbortHandle> {
    vec![
        start(stage, |ledger, change, site: &Site| {
            ledger.site(change, site)
        }),
        start(stage, |_, _, _: &ConfigMap| {}),
        start(stage, |_, _, _: &Deployment| {}),
        start(stage, |ledger, _, lease: &Lease| ledger.lease(lease)),
    ]
}

fn start<K>(stage: &Stage, note: fn(&mut Ledger, Change, &K)) -> AbortHandle
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned + Send + 'static,
{
    tokio::spawn(follow(stage.clone(), note)).abort_handle()
}

async fn follow<K>(stage: Stage, note: fn(&mut Ledger, Change, &K))
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    K: Clone + Debug + DeserializeOwned + Send + 'static,
{
    let all: Api<K> = Api::namespaced(stage.client.clone(), NAMESPACE);
    let events = watcher::watcher(all, watcher::Config::default()).default_backoff();
    let mut events = pin!(events);
    let mut lists = 0;
    while let Some(event) = events.next().await {
        let mut ledger = stage.ledger();
        let (change, object) = match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (Change::Put, object),
            Ok(Event::Delete(object)) => (Change::Gone, object),
            Ok(Event::Init) => {
                lists += 1;
                if lists > 1 {
                    ledger.lost_place(&K::kind(&()));
                }
                continue;
            }
            Ok(Event::InitDone) => continue,
            Err(_reconnecting) => {
                ledger.count("broken watches");
                continue;
            }
        };
        ledger.event(change, &object);
        note(&mut ledger, change, &object);
    }
}
