//! Keeps the APIServices of custom resources as these are served, and says which APIs are available.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use ringwatch::clock::Clock;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_registry::Store;
use ringwatch_resources::publish_custom_apis;
use tokio::sync::watch;

use super::following::pause_after;

/// How many changes are handled at a time.
const CHANGES_MAX: usize = 256;

/// The versions of groups of custom resources; `None` before they are known.
pub type CustomApis = Option<BTreeSet<GroupVersion>>;

/// Follows what is served, and the APIServices that tell of it.
#[derive(Debug)]
pub struct ApiServices {
    /// Where APIServices are.
    pub store: Arc<Store>,
    /// The custom resources that are served.
    pub custom: watch::Receiver<CustomApis>,
    /// The time.
    pub clock: Clock,
}

impl ApiServices {
    /// Follows until it is dropped.
    pub async fn run(mut self) {
        // Nobody tells them when the server ends before they are known.
        while self.custom.wait_for(Option::is_some).await.is_ok() {
            let pause = pause_after("API services", self.follow().await);
            self.clock.sleep(pause).await;
        }
    }

    /// Puts everything right at every change of either side, until a watch ends.
    async fn follow(&mut self) -> Result<(), Error> {
        let list = self.store.list("", ListOptions::default()).await?;
        let options = ListOptions {
            resource_version: Some(ResourceVersion(list.revision)),
            ..ListOptions::default()
        };
        let changes = self.store.watch("", options).await?;
        let mut changes = changes.ready_chunks(CHANGES_MAX);
        loop {
            let custom = self.custom.borrow_and_update().clone().unwrap_or_default();
            publish_custom_apis(&self.store, &custom, &self.clock).await?;
            tokio::select! {
                next = changes.next() => {
                    let Some(next) = next else { return Ok(()) };
                    for change in next {
                        change.map_err(Error::Storage)?;
                    }
                }
                told = self.custom.changed() => if told.is_err() { return Ok(()) },
            }
        }
    }
}
