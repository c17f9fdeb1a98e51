//! A KMS plugin, version 2, on a Unix socket.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream;
use prost::Message;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, Message)]
struct StatusResponse {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    healthz: String,
    #[prost(string, tag = "3")]
    key_id: String,
}

#[derive(Clone, PartialEq, Message)]
struct DecryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
    #[prost(string, tag = "3")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "4")]
    annotations: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct EncryptRequest {
    #[prost(bytes = "vec", tag = "1")]
    plaintext: Vec<u8>,
    #[prost(string, tag = "2")]
    uid: String,
}

#[derive(Clone, PartialEq, Message)]
struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    ciphertext: Vec<u8>,
    #[prost(string, tag = "2")]
    key_id: String,
    #[prost(btree_map = "string, bytes", tag = "3")]
    annotations: BTreeMap<String, Vec<u8>>,
}

/// The calls that a plugin got, by name.
type Calls = Arc<Mutex<BTreeMap<&'static str, usize>>>;

/// A plugin that runs until it is dropped. It "encrypts" by turning the bits of its key, which is one byte.
pub(super) struct Plugin {
    path: PathBuf,
    calls: Calls,
    /// True while calls of Decrypt are not answered.
    hanging: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Plugin {
    /// Starts a plugin at the path of a socket.
    pub(super) fn start(path: &Path) -> Self {
        let _ = std::fs::remove_file(path);
        let listener = UnixListener::bind(path).expect("a socket");
        let accepted = stream::unfold(listener, |listener| async move {
            let accepted = listener.accept().await.map(|(socket, _)| socket);
            Some((accepted, listener))
        });
        let calls = Calls::default();
        let hanging = watch::Sender::new(false);
        let service = KeyManagement {
            calls: Arc::clone(&calls),
            hanging: hanging.subscribe(),
        };
        let running = tokio::task::spawn(async move {
            let served = Server::builder().serve_with_incoming(service, accepted);
            served.await.expect("served");
        });
        Self {
            path: path.to_owned(),
            calls,
            hanging,
            running,
        }
    }

    /// Leaves calls of Decrypt without an answer, or answers them again.
    pub(super) fn hang(&self, hanging: bool) {
        self.hanging.send_replace(hanging);
    }

    /// Returns how often the plugin was called by this name.
    pub(super) fn calls(&self, name: &str) -> usize {
        let calls = self.calls.lock().expect("sound");
        calls.get(name).copied().unwrap_or_default()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        self.running.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

const KEY_ID: &str = "key-1";

fn crypt(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte ^ 0x55).collect()
}

/// The service `v2.KeyManagementService`.
#[derive(Clone)]
struct KeyManagement {
    calls: Calls,
    hanging: watch::Receiver<bool>,
}

impl Service<http::Request<Body>> for KeyManagement {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let calls = Arc::clone(&self.calls);
        let mut hanging = self.hanging.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let name = path.rsplit('/').next().unwrap_or_default();
            let note = |name| *calls.lock().expect("sound").entry(name).or_default() += 1;
            Ok(match name {
                "Status" => {
                    note("Status");
                    let codec = ProstCodec::default();
                    Grpc::new(codec).unary(GetStatus, request).await
                }
                "Encrypt" => {
                    note("Encrypt");
                    let codec = ProstCodec::default();
                    Grpc::new(codec).unary(Encrypt, request).await
                }
                "Decrypt" => {
                    note("Decrypt");
                    // It fails when the plugin is dropped, which ends this call as well.
                    let _ = hanging.wait_for(|hanging| !hanging).await;
                    let codec = ProstCodec::default();
                    Grpc::new(codec).unary(Decrypt, request).await
                }
                _ => Status::unimplemented(path).into_http(),
            })
        })
    }
}

struct GetStatus;

impl UnaryService<StatusRequest> for GetStatus {
    type Response = StatusResponse;
    type Future = Ready<Result<Response<StatusResponse>, Status>>;

    fn call(&mut self, _: Request<StatusRequest>) -> Self::Future {
        ready(Ok(Response::new(StatusResponse {
            version: "v2".to_owned(),
            healthz: "ok".to_owned(),
            key_id: KEY_ID.to_owned(),
        })))
    }
}

struct Encrypt;

impl UnaryService<EncryptRequest> for Encrypt {
    type Response = EncryptResponse;
    type Future = Ready<Result<Response<EncryptResponse>, Status>>;

    fn call(&mut self, request: Request<EncryptRequest>) -> Self::Future {
        ready(Ok(Response::new(EncryptResponse {
            ciphertext: crypt(&request.get_ref().plaintext),
            key_id: KEY_ID.to_owned(),
            annotations: [("version.example.com".to_owned(), b"1".to_vec())].into(),
        })))
    }
}

struct Decrypt;

impl UnaryService<DecryptRequest> for Decrypt {
    type Response = DecryptResponse;
    type Future = Ready<Result<Response<DecryptResponse>, Status>>;

    fn call(&mut self, request: Request<DecryptRequest>) -> Self::Future {
        let request = request.get_ref();
        let known = request.key_id == KEY_ID
            && request
                .annotations
                .get("version.example.com")
                .is_some_and(|it| it == b"1");
        ready(if known {
            Ok(Response::new(DecryptResponse {
                plaintext: crypt(&request.ciphertext),
            }))
        } else {
            Err(Status::invalid_argument("it was not encrypted here"))
        })
    }
}
