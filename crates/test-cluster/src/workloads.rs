//! The controllers that make pods: those of Deployments, ReplicaSets and ReplicationControllers.

mod conditions;
mod deployments;
mod replica_sets;

use futures::FutureExt;
use futures::future::{self, BoxFuture};
use ringwatch::clock::Clock;
use serde_json::{Map, Value};

use self::deployments::Deployments;
use self::replica_sets::{REPLICA_SETS, REPLICATION_CONTROLLERS, ReplicaSets};
use crate::ServedStores;

/// Runs the controllers until it is dropped.
pub(crate) async fn run(stores: &ServedStores, clock: &Clock) {
    let running: Vec<BoxFuture<'_, ()>> = vec![
        Deployments::run(stores, clock).boxed(),
        ReplicaSets::run(&REPLICA_SETS, stores, clock).boxed(),
        ReplicaSets::run(&REPLICATION_CONTROLLERS, stores, clock).boxed(),
    ];
    future::join_all(running).await;
}

/// Returns the status of an object, for changing.
fn status_of(object: &Value) -> Map<String, Value> {
    object["status"].as_object().cloned().unwrap_or_default()
}

/// Sets a count of a status, in the form in which it is stored: without those that are zero.
fn set_count(status: &mut Map<String, Value>, member: &str, count: i64) {
    if count == 0 {
        status.remove(member);
    } else {
        status.insert(member.to_owned(), count.into());
    }
}
