//! One writer that counts up in config maps, so that a follower can tell what it missed.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

/// How many changes the followers must see.
pub(crate) const CHANGES: u64 = 10_000;
/// Over how many objects the changes go round.
const OBJECTS: u64 = 50;
/// Between tries while the server or its store is away, and how many tries at most.
const RETRY_EVERY: Duration = Duration::from_millis(50);
const RETRIES_MAX: u32 = 1200;

/// Writes change number `number`, once, however often the server goes away meanwhile: an attempt
/// whose answer was lost is looked up before it is repeated.
pub(crate) async fn write(client: &Client, number: u64) {
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let name = format!("counter-{:02}", number % OBJECTS);
    for _ in 0..RETRIES_MAX {
        match attempt(&api, &name, number).await {
            Ok(()) => return,
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(_away) => tokio::time::sleep(RETRY_EVERY).await,
        }
    }
    panic!("change {number} could not be written");
}

async fn attempt(api: &Api<ConfigMap>, name: &str, number: u64) -> Result<(), kube::Error> {
    let data = Some(BTreeMap::from([("n".to_owned(), number.to_string())]));
    match api.get_opt(name).await? {
        None => {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            };
            let object = ConfigMap {
                metadata,
                data,
                ..ConfigMap::default()
            };
            api.create(&PostParams::default(), &object).await?;
        }
        Some(found) if found.data == data => {}
        Some(found) => {
            let object = ConfigMap { data, ..found };
            api.replace(name, &PostParams::default(), &object).await?;
        }
    }
    Ok(())
}

/// The number that a change wrote; `None` for an object that is not the writer's.
pub(crate) fn number(object: &ConfigMap) -> Option<u64> {
    object.data.as_ref()?.get("n")?.parse().ok()
}
