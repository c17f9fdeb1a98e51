//! One member of the cluster: its connections, and what its version implies.

use std::mem;
use std::sync::PoisonError;

use etcd_client::{
    Channel, Client, ConnectOptions, Error, KvClient, LeaseClient, MaintenanceClient, WatchClient,
};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::metadata::MetadataMap;
use tonic::transport;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

use super::version;
use crate::storage::backend::BackendError;
use crate::sync::{Mutex, MutexGuard};

/// The largest message in bytes. A list without a limit is one message.
const MESSAGE_BYTES_MAX: usize = i32::MAX as usize;

/// A function that adds metadata to a request to etcd. It runs in the task that makes the request.
pub type AddMetadata = fn(&mut MetadataMap);

/// A channel to which something is added.
type CustomChannel = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// One member of the cluster. Connections are established on first use and again when they break.
pub(super) struct Endpoint {
    name: String,
    /// The client for calls.
    calls: Client,
    /// The client for watches.
    watches: Client,
    /// True if progress notices of its version can be trusted; `None` until it has responded.
    progress_is_trusted: Mutex<Option<bool>>,
}

impl Endpoint {
    pub(super) async fn new(
        name: String,
        transport: &transport::Endpoint,
        add_metadata: Option<AddMetadata>,
    ) -> Result<Self, BackendError> {
        Ok(Self {
            calls: client(transport, add_metadata).await?,
            watches: client(transport, add_metadata).await?,
            name,
            progress_is_trusted: Mutex::new(None),
        })
    }

    /// Returns the URL of the endpoint.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn kv(&self) -> KvClient {
        self.calls
            .kv_client()
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX)
    }

    pub(super) fn lease(&self) -> LeaseClient {
        self.calls.lease_client()
    }

    pub(super) fn watch(&self) -> WatchClient {
        self.watches
            .watch_client()
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
    }

    pub(super) fn maintenance(&self) -> MaintenanceClient {
        self.calls.maintenance_client()
    }

    /// Requests its version and its database size, and returns the size in bytes.
    pub(super) async fn probe(&self) -> Result<u64, Error> {
        let status = self.maintenance().status().await?;
        let trusted = version::progress_is_trusted(status.version());
        *self.trust() = Some(trusted);
        Ok(u64::try_from(status.db_size()).unwrap_or_default())
    }

    /// Returns true if its progress notices never overtake events; false until it has reported its version.
    pub(super) fn progress_is_trusted(&self) -> bool {
        self.trust().unwrap_or_default()
    }

    fn trust(&self) -> MutexGuard<'_, Option<bool>> {
        self.progress_is_trusted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn client(
    transport: &transport::Endpoint,
    add_metadata: Option<AddMetadata>,
) -> Result<Client, BackendError> {
    let channel = transport.connect_lazy();
    let channel = match add_metadata {
        None => Channel::Tonic(channel),
        Some(add) => Channel::Custom(with_metadata(channel, add)),
    };
    let options = ConnectOptions::new().with_require_leader(true);
    let client = Client::from_channel(channel, Some(options)).await;
    client.map_err(super::error::explain)
}

/// Returns a channel that adds metadata to the requests before they are queued for the connection.
fn with_metadata(channel: transport::Channel, add: AddMetadata) -> CustomChannel {
    let channel = channel.map_request(move |mut request: Request<Body>| {
        let mut metadata = MetadataMap::from_headers(mem::take(request.headers_mut()));
        add(&mut metadata);
        *request.headers_mut() = metadata.into_headers();
        request
    });
    BoxCloneSyncService::new(channel.map_err(Into::into))
}
