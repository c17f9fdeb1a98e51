//! Tells the servers of aggregated APIs whose requests to believe.

use std::sync::Arc;
use std::time::Duration;

use super::error::StartError;
use super::flags::AggregationFlags;
use super::tls;
use crate::clock::Clock;
use crate::registry::{ExtensionAuthentication, Store};

/// How often it is looked whether what was told is still there, as in kube-apiserver.
const PERIOD: Duration = Duration::from_secs(60);

/// What the flags say, beside the authorities of clients.
///
/// # Errors
/// A file cannot be read.
pub fn load(
    flags: &AggregationFlags,
    client_authorities: String,
) -> Result<ExtensionAuthentication, StartError> {
    let mut said = ExtensionAuthentication {
        authorities: vec![("client-ca-file", client_authorities)],
        ..ExtensionAuthentication::default()
    };
    let Some(path) = &flags.requestheader_client_ca_file else {
        return Ok(said);
    };
    let proxies = tls::read(path, "--requestheader-client-ca-file")?;
    said.authorities
        .push(("requestheader-client-ca-file", proxies));
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
    Ok(said)
}

/// Tells it again when somebody has taken it away.
pub async fn run((config_maps, said): (Arc<Store>, ExtensionAuthentication), clock: Clock) {
    loop {
        clock.sleep(PERIOD).await;
        if let Err(error) = said.publish(&config_maps, &clock).await {
            tracing::warn!(%error, "servers of aggregated APIs may not know whom to believe");
        }
    }
}
