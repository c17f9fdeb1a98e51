//! The plugin, asked over gRPC on its Unix socket.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::messages::{
    DecryptRequest, DecryptResponse, EncryptRequest, EncryptResponse, StatusRequest, StatusResponse,
};
use crate::clock::Clock;
use crate::sync::OnceLock;

/// A plugin.
#[async_trait]
pub(super) trait Plugin: fmt::Debug + Send + Sync {
    /// Returns the longest time of a call.
    fn call_time_max(&self) -> Duration;

    /// Asks how the plugin is, and with which key it encrypts.
    async fn status(&self) -> Result<StatusResponse, PluginError>;

    /// Has a seed encrypted.
    async fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, PluginError>;

    /// Has a seed decrypted.
    async fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, PluginError>;
}

/// A call of the plugin that failed. It may be repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rpc error: code = {code} desc = {message}")]
pub(super) struct PluginError {
    code: String,
    message: String,
}

impl PluginError {
    pub(super) fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }

    /// Returns true if the plugin did not answer in time.
    pub(super) fn is_silence(&self) -> bool {
        self.code == "DeadlineExceeded"
    }
}

impl From<Status> for PluginError {
    fn from(status: Status) -> Self {
        Self::new(format!("{:?}", status.code()), status.message())
    }
}

/// A plugin at the path of a Unix socket. It is connected to when it is first called, and again after a failure.
pub(super) struct GrpcPlugin {
    path: String,
    /// Maximum time of a call.
    timeout: Duration,
    clock: Clock,
    /// Made in the first call, since it belongs to the runtime that makes it.
    channel: OnceLock<Channel>,
}

impl fmt::Debug for GrpcPlugin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plugin = formatter.debug_struct("GrpcPlugin");
        plugin.field("path", &self.path).finish_non_exhaustive()
    }
}

/// Returns the path of the socket that a URL of the form `unix:///PATH` names.
///
/// # Errors
/// An explanation of what is wrong with the URL.
pub(super) fn socket_path(endpoint: &str) -> Result<String, String> {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        return Err("it is no URL of the form unix:///PATH".to_owned());
    };
    if scheme != "unix" {
        return Err(format!(
            "unsupported scheme {scheme:?} for KMS provider, only unix is supported"
        ));
    }
    if !rest.starts_with('/') {
        return Err("it is no URL of the form unix:///PATH".to_owned());
    }
    if rest.starts_with("/@") {
        return Err("sockets without a file are not supported".to_owned());
    }
    Ok(rest.to_owned())
}

impl GrpcPlugin {
    /// Makes the client of a plugin, without connecting.
    pub(super) fn new(path: String, timeout: Duration, clock: Clock) -> Self {
        Self {
            path,
            timeout,
            clock,
            channel: OnceLock::new(),
        }
    }

    fn channel(&self) -> Result<Channel, PluginError> {
        if let Some(channel) = self.channel.get() {
            return Ok(channel.clone());
        }
        let internal = |error: String| PluginError::new("Internal", error);
        let endpoint = Endpoint::from_shared(format!("unix://{}", self.path))
            .map_err(|error| internal(error.to_string()))?
            .origin(Uri::from_static("http://localhost"));
        Ok(self.channel.get_or_init(|| endpoint.connect_lazy()).clone())
    }

    async fn call<Q, A>(&self, method: &'static str, question: Q) -> Result<A, PluginError>
    where
        Q: Message + Default + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let channel = self.channel()?;
        let call = async move {
            let mut client = Grpc::new(channel);
            client
                .ready()
                .await
                .map_err(|error| PluginError::new("Unavailable", error.to_string()))?;
            let path = PathAndQuery::from_static(method);
            let codec = ProstCodec::<Q, A>::default();
            let answer = client.unary(Request::new(question), path, codec).await?;
            Ok(answer.into_inner())
        };
        let late = |_| PluginError::new("DeadlineExceeded", "context deadline exceeded");
        self.clock.timeout(self.timeout, call).await.map_err(late)?
    }
}

#[async_trait]
impl Plugin for GrpcPlugin {
    fn call_time_max(&self) -> Duration {
        self.timeout
    }

    async fn status(&self) -> Result<StatusResponse, PluginError> {
        self.call("/v2.KeyManagementService/Status", StatusRequest {})
            .await
    }

    async fn encrypt(&self, request: EncryptRequest) -> Result<EncryptResponse, PluginError> {
        self.call("/v2.KeyManagementService/Encrypt", request).await
    }

    async fn decrypt(&self, request: DecryptRequest) -> Result<DecryptResponse, PluginError> {
        self.call("/v2.KeyManagementService/Decrypt", request).await
    }
}
