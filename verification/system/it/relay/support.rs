//! A relay and its upstream, and clients of both.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, DATE, LAST_MODIFIED, TRANSFER_ENCODING};
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::config::{AuthInfo, Kubeconfig};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};
pub(super) use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::certificates::Authority;
use crate::support::server::Server;

pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// The tokens of the upstream.
const TOKENS: &str = "ann-token,ann,1,makers\njoe-token,joe,2\nrelay-token,relay,3\n";

/// A server and a relay in front of it, with the clients of their administrators.
pub(super) struct Pair {
    pub(super) upstream: Server,
    pub(super) relay: Server,
    /// The client of the upstream.
    pub(super) direct: Client,
    /// The client of the relay.
    pub(super) relayed: Client,
    _tokens: tempfile::NamedTempFile,
}

impl Pair {
    /// Starts both, each with these flags. The upstream knows the tokens of `ann`, `joe` and `relay`.
    pub(super) async fn start(upstream_flags: &[&str], relay_flags: &[&str]) -> Self {
        Self::start_as(upstream_flags, relay_flags, None).await
    }

    /// The same with a relay that is the user of this token at the upstream.
    pub(super) async fn start_as(
        upstream_flags: &[&str],
        relay_flags: &[&str],
        token: Option<&str>,
    ) -> Self {
        let tokens = tempfile::NamedTempFile::new().unwrap();
        fs::write(tokens.path(), TOKENS).unwrap();
        let known = format!("--token-auth-file={}", tokens.path().display());
        let (upstream, _) = Server::ready(&[&[known.as_str()], upstream_flags].concat()).await;
        let kubeconfig = match token {
            Some(token) => kubeconfig_with(&upstream, &json!({"token": token})),
            None => upstream.kubeconfig(),
        };
        let mut relay = Server::relay(&kubeconfig, relay_flags);
        relay.client().await;
        Self {
            direct: admin(&upstream).await,
            relayed: admin(&relay).await,
            upstream,
            relay,
            _tokens: tokens,
        }
    }

    /// Creates an object at the upstream.
    pub(super) async fn create(&self, path: &str, object: &Value) -> Value {
        create(&self.direct, path, object).await
    }

    /// Gives a user of the upstream a role in a namespace, or everywhere.
    pub(super) async fn grant(&self, user: &str, namespace: Option<&str>, rules: &Value) {
        let subject =
            json!({"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"});
        let (scope, kind) = match namespace {
            Some(namespace) => (format!("{RBAC}/namespaces/{namespace}/"), "Role"),
            None => (format!("{RBAC}/"), "ClusterRole"),
        };
        let plural = kind.to_lowercase();
        let role = json!({"metadata": {"name": user}, "rules": rules});
        self.create(&format!("{scope}{plural}s"), &role).await;
        let binding = json!({"metadata": {"name": user}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": user}});
        self.create(&format!("{scope}{plural}bindings"), &binding)
            .await;
    }

    /// Takes the role of a user in the namespace `default` away.
    pub(super) async fn withdraw(&self, user: &str) {
        let path = format!("{RBAC}/namespaces/default/rolebindings/{user}");
        let answer = send(&self.direct, "DELETE", &path, &[], &Value::Null).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Reads a path through the relay until the upstream is no longer asked for it: until the relay's cache is filled.
    pub(super) async fn until_cached(&self, client: &Client, path: &str, resource: &str) {
        eventually(DEADLINE, format!("{path} is cached"), async || {
            let before = self.upstream_requests("LIST", resource).await;
            assert_eq!(get(client, path).await.status, 200, "{path}");
            self.upstream_requests("LIST", resource).await - before < 0.5
        })
        .await;
    }

    /// Returns how many requests of a verb for a resource the upstream has answered.
    pub(super) async fn upstream_requests(&self, verb: &str, resource: &str) -> f64 {
        metric(
            &self.direct,
            "apiserver_request_total",
            &[("verb", verb), ("resource", resource)],
        )
        .await
    }
}

/// Rules that let ConfigMaps be read.
pub(super) fn may_read() -> Value {
    json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}])
}

/// Returns a ConfigMap.
pub(super) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}})
}

/// Returns the client of a server's administrator, who never repeats a request.
pub(super) async fn admin(server: &Server) -> Client {
    let mut config = server.config().await;
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Returns the client of a server with these credentials.
pub(super) async fn with(server: &Server, auth_info: AuthInfo) -> Client {
    let mut config = server.config().await;
    config.default_retry = false;
    config.auth_info = auth_info;
    Client::try_from(config).unwrap()
}

/// Returns the credentials of a user in a group whom an authority certifies.
pub(super) fn certified(authority: &Authority, user: &str, group: &str) -> AuthInfo {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name.push(DnType::CommonName, user);
    params
        .distinguished_name
        .push(DnType::OrganizationName, group);
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &authority.issuer).unwrap();
    AuthInfo {
        client_certificate_data: Some(BASE64_STANDARD.encode(signed.pem())),
        client_key_data: Some(BASE64_STANDARD.encode(key.serialize_pem()).into()),
        ..AuthInfo::default()
    }
}

/// Writes a file of a test into the folder of a temporary directory and returns its path.
pub(super) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// Writes a kubeconfig of a server, in its folder, with other credentials.
pub(super) fn kubeconfig_with(server: &Server, user: &Value) -> PathBuf {
    let mut kubeconfig =
        serde_json::to_value(Kubeconfig::read_from(server.kubeconfig()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = user.clone();
    write(server.folder(), "other-kubeconfig", &kubeconfig.to_string())
}

/// A whole answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the message of a Status.
    pub(super) fn message(&self) -> String {
        self.json()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns the names of the items of a list.
    pub(super) fn names(&self) -> Vec<String> {
        let list = self.json();
        let items = list["items"]
            .as_array()
            .unwrap_or_else(|| panic!("{self:?}"));
        let names = items
            .iter()
            .map(|it| it["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// Returns the version of an object or a list.
    pub(super) fn version(&self) -> String {
        version(&self.json())
    }

    /// Returns the headers that are about the answer itself and not about its way.
    fn own_headers(&self) -> Vec<(String, String)> {
        let is_of_the_way = |name: &str| {
            name == "audit-id"
                || name.starts_with("x-kubernetes-pf-")
                || [DATE, CONTENT_LENGTH, LAST_MODIFIED, TRANSFER_ENCODING]
                    .iter()
                    .any(|it| it.as_str() == name)
        };
        let headers = self.headers.iter();
        let headers = headers.filter(|(name, _)| !is_of_the_way(name.as_str()));
        let headers = headers.map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        });
        let mut headers: Vec<_> = headers.collect();
        headers.sort();
        headers
    }

    /// Asserts that another answer says the same: status, headers and body.
    #[track_caller]
    pub(super) fn is_like(&self, other: &Self, what: &str) {
        assert_eq!(self.status, other.status, "{what}: {self:?} and {other:?}");
        assert_eq!(self.own_headers(), other.own_headers(), "{what}");
        assert_eq!(
            without_ages(&self.text()),
            without_ages(&other.text()),
            "{what}"
        );
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, headers, text) = (self.status, &self.headers, self.text());
        write!(formatter, "{status} {headers:?} {text}")
    }
}

/// Returns an answer without the ages of tables, of objects that are some seconds old.
fn without_ages(text: &str) -> String {
    let mut rest = text.chars().peekable();
    let mut kept = String::with_capacity(text.len());
    while let Some(next) = rest.next() {
        kept.push(next);
        let is_age = next == '"' && kept.ends_with(",\"");
        while is_age && rest.peek().is_some_and(char::is_ascii_digit) {
            rest.next();
        }
    }
    kept
}

/// Returns the version of an object or a list.
pub(super) fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_else(|| panic!("{object}")).to_owned()
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let has_type = headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if !has_type && !body.is_null() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    let body = match body {
        Value::Null => Vec::new(),
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    };
    request.body(Body::from(body)).unwrap()
}

/// Sends a request and reads its answer, whatever its status is. A body that is a text is sent as it is.
pub(super) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Answer {
    let asked = try_send(client, method, path, headers, body);
    asked
        .await
        .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
}

/// The same for a server that may be away.
pub(super) async fn try_send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Result<Answer, String> {
    let asked = async {
        let answer = client.send(request(method, path, headers, body)).await;
        let (head, body) = answer.map_err(|error| error.to_string())?.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?;
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.to_bytes(),
        })
    };
    tokio::time::timeout(DEADLINE, asked)
        .await
        .map_err(|_| "no answer".to_owned())?
}

/// Gets a path.
pub(super) async fn get(client: &Client, path: &str) -> Answer {
    send(client, "GET", path, &[], &Value::Null).await
}

/// Asserts that a path is answered alike at both doors. A list tells the version of the store, which the server's own
/// writes raise: so the upstream is asked before and after, until nothing was written in between.
pub(super) async fn are_alike(
    (direct, relayed): (&Client, &Client),
    path: &str,
    headers: &[(&str, &str)],
    what: &str,
) {
    let quiet = eventually(DEADLINE, "nothing is written for a moment", async || {
        let asked = async |client| send(client, "GET", path, headers, &Value::Null).await;
        let (expected, through) = (asked(direct).await, asked(relayed).await);
        let is_same = asked(direct).await.body == expected.body;
        is_same.then_some((expected, through))
    });
    let (expected, through) = quiet.await;
    through.is_like(&expected, what);
}

/// Creates an object.
pub(super) async fn create(client: &Client, path: &str, object: &Value) -> Value {
    let answer = send(client, "POST", path, &[], object).await;
    assert_eq!(answer.status, 201, "{path}: {answer:?}");
    answer.json()
}

/// Returns the sum of the samples of a metric that have these labels.
pub(super) async fn metric(client: &Client, name: &str, labels: &[(&str, &str)]) -> f64 {
    let text = get(client, "/metrics").await.text();
    let samples = text.lines().filter(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels
                .iter()
                .all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")))
    });
    let values = samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    values.sum()
}

/// Reads a list until it has exactly these names, and returns it. A list of any version may be older than a write, also
/// the upstream's, which answers while the relay's cache is filled.
pub(super) async fn until_listed(client: &Client, path: &str, names: &[&str]) -> Answer {
    let listed = eventually(DEADLINE, format!("{path} has {names:?}"), async || {
        let list = get(client, path).await;
        if list.status == 200 && list.names() == names {
            return Ok(list);
        }
        Err(list)
    });
    listed.await
}

/// A watch, whose events are read one after the other.
pub(super) struct Watch {
    body: Body,
    read: Vec<u8>,
}

impl Watch {
    /// Opens the watch of a path, whose query says that it is one.
    pub(super) async fn open(client: &Client, path: &str) -> Self {
        let answer = client.send(request("GET", path, &[], &Value::Null)).await;
        let (head, body) = answer.unwrap().into_parts();
        assert_eq!(head.status.as_u16(), 200, "{path}");
        let read = Vec::new();
        Self { body, read }
    }

    /// Returns the next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let next = tokio::time::timeout(DEADLINE, self.next_line()).await;
        let line = next.expect("an event in time")?;
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// Returns the type and the name of the next event.
    pub(super) async fn next_name(&mut self) -> (String, String) {
        let event = self.next().await.expect("an event");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (
            text(&event["type"]),
            text(&event["object"]["metadata"]["name"]),
        )
    }

    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                return Some(self.read.drain(..=end).collect());
            }
            let frame = self.body.frame().await?.ok()?;
            self.read.extend_from_slice(frame.data_ref()?);
        }
    }
}
