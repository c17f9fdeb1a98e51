//! The controller that keeps an APIService for each group version of custom resources, and the conditions of local
//! APIs.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_endpoints::health::Done;
use ringwatch_registry::{Informer, ListWatch, Store};
use ringwatch_resources::publish_custom_apis;
use tokio::sync::watch;

/// The versions of groups of custom resources; `None` before they are known.
pub type CustomApis = Option<BTreeSet<GroupVersion>>;

/// The controller of the APIServices of custom resources.
#[derive(Debug)]
pub struct ApiServices {
    /// The store of APIServices.
    pub store: Arc<Store>,
    /// The custom resources that are served.
    pub custom: watch::Receiver<CustomApis>,
    /// Set when all APIServices of custom resources are there.
    pub synced: Done,
    /// The time.
    pub clock: Clock,
}

impl ApiServices {
    /// Runs the controller until it is dropped.
    pub async fn run(mut self) {
        let store = Arc::clone(&self.store);
        let sources = [((), store.as_ref() as &dyn ListWatch)];
        let informer = Informer::new("API services", sources, self.clock.clone());
        // The sender is dropped when the server ends before they are known.
        while self.custom.wait_for(Option::is_some).await.is_ok() {
            let ended = self.follow(&informer).await;
            informer.pause_after(ended).await;
        }
    }

    /// Updates the APIServices at every change of either side, until a watch ends.
    async fn follow(&mut self, informer: &Informer<'_, ()>) -> Result<(), Error> {
        let mut changes = informer.list().await?.changes;
        loop {
            let custom = self.custom.borrow_and_update().clone().unwrap_or_default();
            publish_custom_apis(&self.store, &custom, &self.clock).await?;
            self.synced.set();
            tokio::select! {
                next = changes.next() => if next?.is_none() { return Ok(()) },
                changed = self.custom.changed() => if changed.is_err() { return Ok(()) },
            }
        }
    }
}
