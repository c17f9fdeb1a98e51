//! The controller of the ConfigMap `extension-apiserver-authentication`, by which the servers of aggregated APIs
//! authenticate the requests that this server proxies.

pub(crate) mod entries;

use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_registry::Store;

use crate::publish_extension_authentication;

/// Interval of checks of the ConfigMap, as in kube-apiserver.
const PERIOD: Duration = Duration::from_secs(60);

/// Writes the ConfigMap again when credentials have changed, or somebody has changed it; never completes.
pub async fn run(config_maps: Arc<Store>, mut credentials: CurrentCredentials, clock: Clock) {
    loop {
        let change = async {
            if credentials.changed().await.is_err() {
                // The sender, which follows the files, has ended.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = change => {}
            () = clock.sleep(PERIOD) => {}
        }
        let credentials = Arc::clone(&credentials.borrow_and_update());
        let published =
            publish_extension_authentication(&credentials.extension, &config_maps, &clock);
        let published = published.await;
        if let Err(error) = published {
            tracing::warn!(%error, "cannot write the ConfigMap extension-apiserver-authentication");
        }
    }
}
