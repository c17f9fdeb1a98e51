//! One writer that counts up in config maps, so that a follower can tell what it missed.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::PostParams;
use kube::{Api, Client};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use crate::support::named;

/// The number of changes that the followers must see.
pub(crate) const CHANGES: u64 = 4_000;
/// The number of objects over which the changes go round.
const OBJECTS: u64 = 50;

/// The writer of the changes.
pub(crate) struct Writer {
    api: Api<ConfigMap>,
    /// The objects as the server answered them last, by name.
    written: HashMap<String, ConfigMap>,
}

impl Writer {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            api: Api::default_namespaced(client.clone()),
            written: HashMap::new(),
        }
    }

    /// Writes change number `number`, once, however often the server goes away meanwhile: an attempt
    /// whose answer was lost is looked up before it is repeated.
    pub(crate) async fn write(&mut self, number: u64) {
        let name = format!("counter-{:02}", number % OBJECTS);
        let attempted = async || self.attempt(&name, number).await;
        eventually(DEADLINE, format!("change {number} is written"), attempted).await;
    }

    async fn attempt(&mut self, name: &str, number: u64) -> Result<(), kube::Error> {
        let params = PostParams::default();
        let data = Some(BTreeMap::from([("n".to_owned(), number.to_string())]));
        // After an error the object is not here any more.
        let found = match self.written.remove(name) {
            Some(written) => Some(written),
            None => self.api.get_opt(name).await?,
        };
        let written = match found {
            None => {
                let metadata = named(name);
                let object = ConfigMap {
                    metadata,
                    data,
                    ..ConfigMap::default()
                };
                self.api.create(&params, &object).await?
            }
            Some(found) if found.data == data => found,
            Some(found) => {
                let object = ConfigMap { data, ..found };
                self.api.replace(name, &params, &object).await?
            }
        };
        self.written.insert(name.to_owned(), written);
        Ok(())
    }
}

/// The number that a change wrote; `None` for an object that is not the writer's.
pub(crate) fn number(object: &ConfigMap) -> Option<u64> {
    object.data.as_ref()?.get("n")?.parse().ok()
}
