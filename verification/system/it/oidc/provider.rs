//! Just enough of an OpenID Connect provider, on loopback: what it says of itself, and its keys.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use crate::support::tls_server;

/// A provider, until it is dropped.
pub(super) struct Provider {
    pub(super) address: SocketAddr,
    /// Its certificate, in PEM.
    pub(super) certificate: String,
    pub(super) shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// The state of the provider.
#[derive(Default)]
pub(super) struct Shared {
    /// The answer at each path.
    pub(super) documents: Mutex<Vec<(String, String)>>,
    /// The number of times that the provider's keys were fetched.
    pub(super) fetched: AtomicUsize,
}

/// A key of the provider.
pub(super) struct Key {
    id: String,
    key: EncodingKey,
}

impl Provider {
    pub(super) async fn start() -> Self {
        let names = vec![Ipv4Addr::LOCALHOST.to_string()];
        let (certificate, pem, key) = tls_server::self_signed(names);
        let shared = Arc::new(Shared::default());
        let answers = Arc::clone(&shared);
        let answer = move |stream| Arc::clone(&answers).answer(stream);
        let (address, tasks) = tls_server::listen(certificate, key, answer).await;
        let provider = Self {
            address,
            certificate: pem,
            shared,
            _tasks: tasks,
        };
        let issuer = provider.issuer();
        provider.says(
            "/.well-known/openid-configuration",
            &json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string(),
        );
        provider
    }

    pub(super) fn issuer(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(super) fn says(&self, path: &str, document: &str) {
        let mut documents = self.shared.documents.lock().expect("documents");
        documents.retain(|(known, _)| known != path);
        documents.push((path.to_owned(), document.to_owned()));
    }

    /// Shows these keys from now on, and what else there is in such sets.
    pub(super) fn shows(&self, keys: &[&Key]) {
        let keys = keys.iter().map(|key| {
            let mut jwk = Jwk::from_encoding_key(&key.key, Algorithm::ES256).expect("a key");
            jwk.common.key_id = Some(key.id.clone());
            jwk
        });
        let set = JwkSet {
            keys: keys.collect(),
        };
        let mut set = serde_json::to_value(set).expect("JSON");
        let odd = json!({"kty": "odd", "kid": "odd", "x": 1});
        let secret = json!({"kty": "oct", "kid": "secret", "k": "c2VjcmV0"});
        let keys = set["keys"].as_array_mut().expect("keys");
        keys.extend([odd, secret]);
        self.says("/keys", &set.to_string());
    }

    pub(super) fn fetched(&self) -> usize {
        self.shared.fetched.load(Ordering::SeqCst)
    }
}

impl Shared {
    async fn answer(
        self: Arc<Self>,
        mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    ) -> std::io::Result<()> {
        let head = tls_server::head(&mut stream).await?;
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path == "/keys" {
            self.fetched.fetch_add(1, Ordering::SeqCst);
        }
        let found = {
            let documents = self.documents.lock().expect("documents");
            documents.iter().find(|(known, _)| known == path).cloned()
        };
        let answer = match found {
            Some((_, document)) => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{document}",
                document.len()
            ),
            None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
        };
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    }
}

impl Key {
    pub(super) fn new(id: &str) -> Self {
        let pair = rcgen::KeyPair::generate().expect("a key");
        Self {
            id: id.to_owned(),
            key: EncodingKey::from_ec_der(&pair.serialize_der()),
        }
    }

    pub(super) fn sign(&self, claims: &Value) -> String {
        let header = Header {
            kid: Some(self.id.clone()),
            ..Header::new(Algorithm::ES256)
        };
        jsonwebtoken::encode(&header, claims, &self.key).expect("a token")
    }
}
