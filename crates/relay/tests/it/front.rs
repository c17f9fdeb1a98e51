//! A front of an upstream that goes by a manual clock.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch::storage::cacher::CacheMetrics;
use ringwatch_apimachinery::{GroupVersion, User};
use ringwatch_authentication::{Authenticator, TokenFile};
use ringwatch_authorization::Authorizer;
use ringwatch_endpoints::Handler;
use ringwatch_endpoints::{
    Api, ApiConfig, ApiFeatures, EncodingCache, KubeletTls, Kubelets, Metrics, RequestInfo,
    VersionInfo,
};
use ringwatch_http::{RequestBody, ResponseBody, full};
use ringwatch_observe::open_watches::OpenWatches;
use ringwatch_relay::{Caches, Front, FrontConfig, Upstream};
use ringwatch_tls::tls_client::{self, Trust};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::scripted::Scripted;
use crate::support::run;

/// Longer than the time for which what the upstream has said about a resource counts.
pub(crate) const LATER: Duration = Duration::from_secs(31);

/// A front with its caches, which are followed until this is dropped.
pub(crate) struct Fronted {
    pub(crate) front: Arc<Front>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) clock: Clock,
    _tasks: JoinSet<()>,
}

impl Fronted {
    /// Puts a front before an upstream, whose client goes by a manual clock.
    pub(crate) fn new(upstream: Arc<Upstream>, clock: Clock) -> Self {
        let caches = Caches::new(
            Arc::clone(&upstream),
            CacheMetrics::register(&mut Registry::default()),
            Ledger::unlimited(),
        );
        let caches = Arc::new(caches);
        let front = Front::new(FrontConfig {
            upstream,
            caches: Arc::clone(&caches),
            api: api(&clock),
            caches_secrets: false,
            own_paths: Vec::new(),
        });
        Self {
            front: Arc::new(front),
            _tasks: run(&caches),
            caches,
            clock,
        }
    }

    /// Returns true if the front caches a resource, and the error if it cannot tell.
    pub(crate) async fn caches(&self, version: &str, plural: &str) -> Result<bool, String> {
        let version = GroupVersion::new("example.com", version);
        let cached = self.front.cache(&version, plural).await;
        cached
            .map(|it| it.is_some())
            .map_err(|error| format!("{error:?}"))
    }

    /// Returns the answer to a read by an administrator.
    pub(crate) async fn answer(&self, path: &str, accept: &str) -> Response<ResponseBody> {
        let request = Request::builder().method(Method::GET).uri(path);
        let request = request.header("accept", accept).body(full(Bytes::new()));
        self.handle(request.unwrap()).await
    }

    /// Returns the answer to a request of an administrator.
    async fn handle(&self, request: Request<RequestBody>) -> Response<ResponseBody> {
        let uri = request.uri();
        let query = uri.query().unwrap_or_default();
        let info = RequestInfo::new(request.method(), uri.path(), query);
        self.front
            .handle(request, Arc::new(info), admin().into())
            .await
    }

    /// Returns the status and the body of such an answer.
    pub(crate) async fn get(&self, path: &str, accept: &str) -> (u16, Bytes) {
        let answer = self.answer(path, accept).await;
        let status = answer.status().as_u16();
        (
            status,
            answer.into_body().collect().await.unwrap().to_bytes(),
        )
    }

    /// Returns the same of an answer that is JSON.
    pub(crate) async fn get_json(&self, path: &str, accept: &str) -> (u16, Value) {
        let (status, body) = self.get(path, accept).await;
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

fn admin() -> User {
    User {
        name: "admin".to_owned(),
        groups: vec!["system:masters".to_owned()],
        ..User::default()
    }
}

fn api(clock: &Clock) -> Api {
    let tls = tls_client::config(Trust::Anyone, None).unwrap();
    let ledger = Ledger::unlimited();
    Api::new(ApiConfig {
        stores: Vec::new(),
        storeless: Vec::new(),
        authorizer: Authorizer::always_allow(),
        clock: clock.clone(),
        version: VersionInfo::kubernetes_1_36(),
        server_address: "127.0.0.1:1".to_owned(),
        extra_root_paths: Vec::new(),
        metrics: Metrics::new(),
        open_watches: OpenWatches::default(),
        encodings: EncodingCache::new(1 << 20, &ledger),
        ledger,
        min_request_timeout: Duration::from_secs(1800),
        features: ApiFeatures::default(),
        kubelets: Kubelets {
            tls: KubeletTls {
                trusted: Arc::clone(&tls),
                unverified: Arc::clone(&tls),
                proxied: tls,
            },
            address_types: Vec::new(),
            default_port: 10250,
            connect_timeout: Duration::from_secs(5),
            bytes_per_second: None,
        },
        authenticator: Arc::new(Authenticator::new(TokenFile::default())),
        token_issuer: None,
    })
}

#[tokio::test]
async fn a_user_without_a_token_is_named_by_the_relay_alone() {
    let upstream = Scripted::start(10, &[]).await;
    let path = "/api/v1/namespaces/default/pods/p/log";
    let answer = Some((200, "a line".to_owned()));
    upstream.script().answers.insert(path.to_owned(), answer);
    let clock = Clock::manual(Timestamp::UNIX_EPOCH);
    let fronted = Fronted::new(upstream.client_by(clock.clone()), clock);
    let request = Request::get(path)
        .header("impersonate-group", "other")
        .header("x-remote-user", "root")
        .header("x-remote-extra-a", "b");
    let request = request.body(full(Bytes::new())).unwrap();
    let answer = fronted.handle(request).await;
    assert_eq!(answer.status().as_u16(), 200);
    let heads = upstream.script().heads.clone();
    let has = |text: &str| heads[0].contains(text);
    assert!(
        has("impersonate-user: admin") && has("impersonate-group: system:masters"),
        "{heads:?}"
    );
    assert!(!has("other") && !has("x-remote-"), "{heads:?}");
    assert!(has("via: 1.1 ringwatch-relay-"), "{heads:?}");
}
