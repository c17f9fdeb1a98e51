//! Tells the servers of aggregated APIs whose requests to believe.

use std::sync::Arc;
use std::time::Duration;

use super::credentials::CurrentCredentials;
use super::flags::AggregationFlags;
use crate::clock::Clock;
use crate::registry::{ExtensionAuthentication, Store};

/// How often it is looked whether what was told is still there, as in kube-apiserver.
const PERIOD: Duration = Duration::from_secs(60);

/// The flags' part of it, with the authorities of clients and of proxies in PEM.
#[must_use]
pub fn said(
    flags: &AggregationFlags,
    client_authorities: String,
    proxies: Option<&str>,
) -> ExtensionAuthentication {
    let mut said = ExtensionAuthentication {
        authorities: vec![("client-ca-file", client_authorities)],
        ..ExtensionAuthentication::default()
    };
    let Some(proxies) = proxies else {
        return said;
    };
    said.authorities
        .push(("requestheader-client-ca-file", proxies.to_owned()));
    said.lists = [
        ("requestheader-allowed-names", &flags.allowed_names()),
        (
            "requestheader-username-headers",
            &flags.requestheader_username_headers,
        ),
        (
            "requestheader-uid-headers",
            &flags.requestheader_uid_headers,
        ),
        (
            "requestheader-group-headers",
            &flags.requestheader_group_headers,
        ),
        (
            "requestheader-extra-headers-prefix",
            &flags.requestheader_extra_headers_prefix,
        ),
    ]
    .map(|(key, list)| (key, list.clone()))
    .to_vec();
    said
}

/// Tells it again when it has changed, or somebody has taken it away.
pub async fn run(config_maps: Arc<Store>, mut credentials: CurrentCredentials, clock: Clock) {
    loop {
        let change = async {
            if credentials.changed().await.is_err() {
                // Nobody follows the files any more.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = change => {}
            () = clock.sleep(PERIOD) => {}
        }
        let credentials = Arc::clone(&credentials.borrow_and_update());
        let published = credentials.extension.publish(&config_maps, &clock).await;
        if let Err(error) = published {
            tracing::warn!(%error, "cannot write the ConfigMap extension-apiserver-authentication");
        }
    }
}
