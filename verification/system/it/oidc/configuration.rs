//! An AuthenticationConfiguration: several issuers, expressions over claims, anonymous paths, and changes of the file.

use std::path::PathBuf;

use http::Method;
use ringwatch_testing::eventually::eventually;

use super::*;
use crate::authorization::ask;

/// A server with a configuration of two issuers.
struct Configured {
    one: (Provider, Key),
    two: (Provider, Key),
    server: Server,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

async fn provider() -> (Provider, Key) {
    let (provider, key) = (Provider::start().await, Key::new("key"));
    provider.shows(&[&key]);
    (provider, key)
}

/// One issuer of a configuration.
fn jwt(provider: &Provider, audiences: Value, rules: &Value) -> Value {
    let mut jwt = json!({"issuer": {"url": provider.issuer(), "audiences": audiences,
        "audienceMatchPolicy": "MatchAny", "certificateAuthority": provider.certificate}});
    for (name, value) in rules.as_object().expect("rules") {
        jwt[name] = value.clone();
    }
    jwt
}

/// The paths that are served without credentials, which does not change while a server runs.
fn anonymous() -> Value {
    json!({"enabled": true, "conditions": [{"path": "/livez"}]})
}

fn configuration(issuers: &[Value], anonymous: &Value) -> String {
    json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": issuers, "anonymous": anonymous})
    .to_string()
}

fn plain() -> Value {
    json!({"claimMappings": {"username": {"claim": "sub", "prefix": "two:"}}})
}

impl Configured {
    async fn start() -> Self {
        let (one, two) = (provider().await, provider().await);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("authentication.yaml");
        let rules = json!({
            "claimMappings": {
                "username": {"expression": "'one:' + claims.sub"},
                "groups": {"expression": "claims.roles.split(',')"},
                "uid": {"claim": "id"},
                "extra": [{"key": "example.org/team", "valueExpression": "claims.team"}]},
            "claimValidationRules": [
                {"expression": "claims.exp - claims.nbf <= 86400", "message": "too long"}],
            "userValidationRules": [
                {"expression": "!user.username.endsWith('root')", "message": "not root"}]});
        let issuers = [
            jwt(&one.0, json!(["kubernetes", "others"]), &rules),
            jwt(&two.0, json!(["kubernetes"]), &plain()),
        ];
        std::fs::write(&path, configuration(&issuers, &anonymous())).expect("written");
        let flag = format!("--authentication-config={}", path.display());
        let (server, _) = Server::ready(&[&flag]).await;
        Self {
            one,
            two,
            server,
            path,
            _folder: folder,
        }
    }

    fn token((provider, key): &(Provider, Key), claim: &str, value: Value) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut claims = json!({"iss": provider.issuer(), "aud": "kubernetes", "sub": "ann", "id": "7",
            "roles": "a,b", "team": "x", "nbf": now - 10, "exp": now + 600});
        claims[claim] = value;
        key.sign(&claims)
    }

    async fn who(&self, token: &str) -> Result<Value, String> {
        user_of(&self.server, token).await
    }

    /// Waits until a token counts, or does not.
    async fn until(&self, token: &str, counts: bool) {
        let what = format!("that a token counts becomes {counts}");
        eventually(DEADLINE, what, async || {
            let who = self.who(token).await;
            (who.is_ok() == counts).then_some(()).ok_or(who)
        })
        .await;
    }
}

#[tokio::test]
async fn several_issuers_name_users_by_their_own_rules() {
    let configured = Configured::start().await;
    let (one, two) = (&configured.one, &configured.two);
    assert_eq!(
        configured
            .who(&Configured::token(one, "more", json!(1)))
            .await,
        Ok(
            json!({"username": "one:ann", "uid": "7", "groups": ["a", "b", "system:authenticated"],
            "extra": {"example.org/team": ["x"]}})
        )
    );
    let other = Configured::token(one, "aud", json!(["others"]));
    assert!(configured.who(&other).await.is_ok(), "any of its audiences");
    assert_eq!(
        configured
            .who(&Configured::token(two, "more", json!(1)))
            .await,
        Ok(json!({"username": "two:ann", "groups": ["system:authenticated"]}))
    );
    for (what, token) in [
        ("an audience of the other", Configured::token(two, "aud", json!("others"))),
        ("no audience of it", Configured::token(one, "aud", json!("nobody"))),
        ("a rule about claims", Configured::token(one, "nbf", json!(0))),
        ("a rule about users", Configured::token(one, "sub", json!("root"))),
        ("a claim of another type", Configured::token(one, "roles", json!(1))),
        ("a key of the other", two.1.sign(&json!({"iss": one.0.issuer(), "aud": "kubernetes",
            "sub": "ann", "id": "7", "roles": "a", "team": "x", "nbf": 0, "exp": 9_999_999_999_i64}))),
    ] {
        let refused = Err("401 Unauthorized".to_owned());
        assert_eq!(configured.who(&token).await, refused, "{what}");
    }
}

#[tokio::test]
async fn a_changed_configuration_counts_and_a_broken_one_does_not() {
    let configured = Configured::start().await;
    let of_one = Configured::token(&configured.one, "more", json!(1));
    let of_two = Configured::token(&configured.two, "more", json!(1));
    configured.until(&of_one, true).await;
    // One issuer goes, and what is read in the middle of a change harms nobody.
    std::fs::write(&configured.path, "jwt: [").expect("written");
    let only_two = [jwt(&configured.two.0, json!(["kubernetes"]), &plain())];
    configured.server.logged("the previous one is used").await;
    assert!(configured.who(&of_one).await.is_ok());
    std::fs::write(&configured.path, configuration(&only_two, &anonymous())).expect("written");
    configured.until(&of_one, false).await;
    assert!(configured.who(&of_two).await.is_ok());
}

#[tokio::test]
async fn paths_are_served_without_credentials_as_the_configuration_says() {
    let configured = Configured::start().await;
    let anonymous = configured.server.client_without_credentials().await;
    let get = async |path: &str| ask(&anonymous, Method::GET, path, &Value::Null).await;
    assert_eq!(get("/livez").await.as_deref(), Ok("ok"));
    for path in ["/livez/ping", "/readyz", "/api/v1/namespaces"] {
        assert_eq!(
            get(path).await,
            Err("401 Unauthorized".to_owned()),
            "{path}"
        );
    }
    assert!(configured.who("forged").await.is_err());
}
