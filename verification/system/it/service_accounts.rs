//! Tokens of service accounts: what they say, how long they count, and for whom.

mod hostile;
mod keys;
mod legacy;
mod mounts;
mod reviews;
mod rights;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::authorization::{WHO, ask, user_of};
use crate::support::requests;
use crate::support::server::Server;

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const CORE: &str = "/api/v1/namespaces/default";

/// A server with the account `robot`.
struct Fixture {
    server: Server,
    admin: kube::Client,
    /// The uid of the account.
    uid: String,
}

impl Fixture {
    async fn start(flags: &[&str]) -> Self {
        let (server, admin) = Server::ready(flags).await;
        let account = create(
            &admin,
            "serviceaccounts",
            json!({"metadata": {"name": "robot"}}),
        );
        Self {
            uid: uid_of(&account.await),
            server,
            admin,
        }
    }

    /// Asks for a token of the account.
    async fn request(&self, spec: Value) -> Result<Value, String> {
        let path = format!("{CORE}/serviceaccounts/robot/token");
        let request = json!({"spec": spec});
        let answer = ask(&self.admin, Method::POST, &path, &request).await?;
        Ok(serde_json::from_str(&answer).expect("JSON"))
    }

    async fn token(&self, spec: Value) -> String {
        let answer = self.request(spec).await.expect("a token");
        answer["status"]["token"]
            .as_str()
            .expect("a token")
            .to_owned()
    }

    async fn create_secret(&self, name: &str) {
        create(&self.admin, "secrets", json!({"metadata": {"name": name}})).await;
    }

    /// Returns the user of a token, or the refusal.
    async fn who(&self, token: &str) -> Result<Value, String> {
        user_of(&self.server, token).await
    }

    /// Waits until a token does not count any more.
    async fn until_refused(&self, token: &str) {
        eventually(DEADLINE, "the token is refused", async || {
            let who = self.who(token).await;
            match who {
                Err(refusal) if refusal == "401 Unauthorized" => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }

    async fn delete(&self, path: &str) {
        let now = json!({"gracePeriodSeconds": 0});
        let deleted = ask(&self.admin, Method::DELETE, path, &now).await;
        deleted.expect("deleted");
    }
}

async fn create(client: &kube::Client, plural: &str, object: Value) -> Value {
    let path = match plural {
        "nodes" => "/api/v1/nodes".to_owned(),
        plural => format!("{CORE}/{plural}"),
    };
    let created = ask(client, Method::POST, &path, &object).await;
    serde_json::from_str(&created.expect("created")).expect("JSON")
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"]
        .as_str()
        .expect("a uid")
        .to_owned()
}

/// Returns the header and the claims of a token.
fn parts(token: &str) -> (Value, Value) {
    let part = |index| {
        let text = token.split('.').nth(index).expect("a part");
        let json = URL_SAFE_NO_PAD.decode(text).expect("base64");
        serde_json::from_slice(&json).expect("JSON")
    };
    (part(0), part(1))
}

fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"serviceAccountName": "robot",
        "containers": [{"name": "c", "image": "i"}]}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
    }
    pod
}

fn bound(kind: &str, name: &str) -> Value {
    json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}})
}

#[tokio::test]
async fn a_token_says_and_means_its_account() {
    let fixture = Fixture::start(&[]).await;
    let answer = fixture.request(json!({"expirationSeconds": 1200})).await;
    let answer = answer.expect("a token");
    assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
    assert_eq!(answer["metadata"]["uid"], json!(fixture.uid));
    let token = answer["status"]["token"].as_str().expect("a token");
    let (header, mut claims) = parts(token);
    assert_eq!(header["alg"], "RS256");
    let issued = claims["iat"].as_i64().expect("a time");
    let expires: jiff::Timestamp = answer["status"]["expirationTimestamp"]
        .as_str()
        .expect("a time")
        .parse()
        .expect("a time");
    assert_eq!(expires.as_second(), issued + 1200);
    let id = claims["jti"].take();
    assert_eq!(
        claims,
        json!({"aud": [ISSUER], "exp": issued + 1200, "iat": issued, "iss": ISSUER, "jti": null, "nbf": issued,
            "kubernetes.io": {"namespace": "default", "serviceaccount": {"name": "robot", "uid": fixture.uid}},
            "sub": "system:serviceaccount:default:robot"})
    );
    let id = id.as_str().expect("an id");
    assert_eq!(
        fixture.who(token).await,
        Ok(
            json!({"username": "system:serviceaccount:default:robot", "uid": fixture.uid,
            "groups": ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={id}")]}})
        )
    );
}

#[tokio::test]
async fn a_pods_token_tells_the_pod_and_its_node() {
    let fixture = Fixture::start(&[]).await;
    let node = create(&fixture.admin, "nodes", json!({"metadata": {"name": "n"}})).await;
    let pod = create(&fixture.admin, "pods", pod("p", Some("n"))).await;
    let mut spec = bound("Pod", "p");
    spec["expirationSeconds"] = json!(3607);
    let answer = fixture.request(spec).await.expect("a token");
    let token = answer["status"]["token"].as_str().expect("a token");
    let (_, claims) = parts(token);
    let its = &claims["kubernetes.io"];
    assert_eq!(its["pod"], json!({"name": "p", "uid": uid_of(&pod)}));
    assert_eq!(its["node"], json!({"name": "n", "uid": uid_of(&node)}));
    let issued = claims["iat"].as_i64().expect("a time");
    assert_eq!(its["warnafter"], issued + 3607, "as kubelets ask");
    assert_eq!(claims["exp"], issued + 365 * 24 * 3600);
    let user = fixture.who(token).await.expect("a user");
    for (key, value) in [
        ("pod-name", "p".to_owned()),
        ("pod-uid", uid_of(&pod)),
        ("node-name", "n".to_owned()),
        ("node-uid", uid_of(&node)),
    ] {
        let key = format!("authentication.kubernetes.io/{key}");
        assert_eq!(user["extra"][&key], json!([value]), "{key}");
    }
    fixture.delete("/api/v1/nodes/n").await;
    assert!(fixture.who(token).await.is_ok(), "it is the pod's");
    fixture.delete(&format!("{CORE}/pods/p")).await;
    fixture.until_refused(token).await;
}

#[tokio::test]
async fn tokens_are_no_longer_than_the_operator_wants() {
    let longest = "--service-account-max-token-expiration=1h";
    let fixture = Fixture::start(&[longest]).await;
    create(&fixture.admin, "pods", pod("p", None)).await;
    let path = format!("{CORE}/serviceaccounts/robot/token");
    let body = json!({"spec": {"expirationSeconds": 7200}});
    let request = requests::request("POST", &path, &body);
    let answer = fixture.admin.send(request).await.expect("an answer");
    assert_eq!(
        answer.headers()["warning"],
        r#"299 - "requested expiration of 7200 seconds shortened to 3600 seconds""#
    );
    let mounted = async |fixture: &Fixture| {
        let mut spec = bound("Pod", "p");
        spec["expirationSeconds"] = json!(3607);
        let answer = fixture.request(spec).await.expect("a token");
        let (_, claims) = parts(answer["status"]["token"].as_str().expect("a token"));
        let seconds =
            claims["exp"].as_i64().expect("a time") - claims["iat"].as_i64().expect("a time");
        (answer["spec"]["expirationSeconds"].clone(), seconds)
    };
    assert_eq!(mounted(&fixture).await, (json!(3600), 3600));

    let fixture = Fixture::start(&["--service-account-extend-token-expiration=false"]).await;
    create(&fixture.admin, "pods", pod("p", None)).await;
    assert_eq!(mounted(&fixture).await, (json!(3607), 3607));
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let fixture = Fixture::start(&[]).await;
    create(&fixture.admin, "nodes", json!({"metadata": {"name": "n"}})).await;
    fixture.create_secret("s").await;
    create(&fixture.admin, "pods", pod("p", None)).await;
    let unbound = fixture.token(json!({})).await;
    for (kind, name, path) in [
        ("Node", "n", "/api/v1/nodes/n".to_owned()),
        ("Secret", "s", format!("{CORE}/secrets/s")),
        ("Pod", "p", format!("{CORE}/pods/p")),
    ] {
        let token = fixture.token(bound(kind, name)).await;
        assert!(fixture.who(&token).await.is_ok(), "{kind}");
        fixture.delete(&path).await;
        fixture.until_refused(&token).await;
    }
    fixture.create_secret("s").await;
    let token = fixture.token(bound("Secret", "s")).await;
    fixture.delete(&format!("{CORE}/secrets/s")).await;
    fixture.create_secret("s").await;
    fixture.until_refused(&token).await;

    assert!(fixture.who(&unbound).await.is_ok());
    fixture
        .delete(&format!("{CORE}/serviceaccounts/robot"))
        .await;
    fixture.until_refused(&unbound).await;
    let again = json!({"metadata": {"name": "robot"}});
    create(&fixture.admin, "serviceaccounts", again).await;
    assert!(fixture.who(&unbound).await.is_err(), "it is another robot");
}

#[tokio::test]
async fn requests_that_make_no_sense_are_refused() {
    let fixture = Fixture::start(&[]).await;
    fixture.create_secret("s").await;
    let mut other = pod("p", None);
    other["spec"]["serviceAccountName"] = json!("other");
    create(&fixture.admin, "pods", other).await;
    let mut stale = bound("Secret", "s");
    stale["boundObjectRef"]["uid"] = json!("u");
    for (spec, refusal) in [
        (
            json!({"expirationSeconds": 599}),
            r#"422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#,
        ),
        (
            json!({"expirationSeconds": 4_294_967_297_i64}),
            r#"422 TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#,
        ),
        (bound("Pod", "none"), r#"404 pods "none" not found"#),
        (
            bound("Pod", "p"),
            r#"400 cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name."#,
        ),
        (
            bound("ConfigMap", "c"),
            "400 cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        (
            stale,
            r#"409 Operation cannot be fulfilled on Secret "s": the UID in the bound object reference (u) does not match the UID in record. The object might have been deleted and then recreated"#,
        ),
    ] {
        let refused = fixture.request(spec).await.expect_err(refusal);
        assert_eq!(refused, refusal);
    }
    let path = format!("{CORE}/serviceaccounts/robot/token");
    for (metadata, words) in [
        (
            json!({"name": "x"}),
            "must match the service account name if specified",
        ),
        (
            json!({"uid": "u"}),
            "the UID in the token request (u) does not match the UID of the service account",
        ),
    ] {
        let request = json!({"metadata": metadata, "spec": {}});
        let refused = ask(&fixture.admin, Method::POST, &path, &request).await;
        let refused = refused.expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
}
