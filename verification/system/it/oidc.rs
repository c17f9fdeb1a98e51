//! Users of an OpenID Connect provider.

mod configuration;
mod provider;

use std::time::Instant;

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ringwatch_testing::eventually::DEADLINE;
use serde_json::{Value, json};

use self::provider::{Key, Provider};
use crate::authorization::user_of;
use crate::support::server::Server;

/// A server that takes a provider's tokens, and a key of the provider.
struct Fixture {
    provider: Provider,
    key: Key,
    server: Server,
    _folder: tempfile::TempDir,
}

impl Fixture {
    async fn start(flags: &[&str]) -> Self {
        let provider = Provider::start().await;
        let key = Key::new("first");
        provider.shows(&[&key]);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.crt");
        std::fs::write(&path, &provider.certificate).expect("written");
        let own = [
            format!("--oidc-issuer-url={}", provider.issuer()),
            format!("--oidc-ca-file={}", path.display()),
            "--oidc-client-id=kubernetes".to_owned(),
            "--oidc-signing-algs=ES256".to_owned(),
        ];
        let own = own.iter().map(String::as_str);
        let flags: Vec<&str> = own.chain(flags.iter().copied()).collect();
        let (server, _) = Server::ready(&flags).await;
        Self {
            provider,
            key,
            server,
            _folder: folder,
        }
    }

    fn now() -> i64 {
        jiff::Timestamp::now().as_second()
    }

    /// The claims of a good token.
    fn claims(&self) -> Value {
        json!({"iss": self.provider.issuer(), "aud": ["others", "kubernetes"], "sub": "ann",
            "exp": Self::now() + 600, "groups": ["devs"], "team": "blue"})
    }

    fn with(&self, claim: &str, value: Value) -> String {
        let mut claims = self.claims();
        claims[claim] = value;
        self.key.sign(&claims)
    }

    async fn who(&self, token: &str) -> Result<Value, String> {
        user_of(&self.server, token).await
    }

    /// Returns the user of a token, or the refusal, which must come though the token may wait for keys.
    async fn who_in_time(&self, token: &str) -> Result<Value, String> {
        let answer = tokio::time::timeout(DEADLINE, self.who(token)).await;
        answer.expect("an answer in time")
    }
}

#[tokio::test]
async fn a_providers_tokens_name_users_and_groups() {
    let fixture = Fixture::start(&[]).await;
    let issuer = fixture.provider.issuer();
    assert_eq!(
        fixture.who(&fixture.key.sign(&fixture.claims())).await,
        Ok(json!({"username": format!("{issuer}#ann"), "groups": ["system:authenticated"]}))
    );
    let fixture = Fixture::start(&[
        "--oidc-username-claim=mail",
        "--oidc-username-prefix=-",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=oidc:",
        "--oidc-required-claim=team=blue",
    ])
    .await;
    assert_eq!(
        fixture
            .who(&fixture.with("mail", json!("ann@example.com")))
            .await,
        Ok(json!({"username": "ann@example.com", "groups": ["oidc:devs", "system:authenticated"]}))
    );
    let mut other = fixture.claims();
    other["mail"] = json!("ann@example.com");
    other["team"] = json!("red");
    assert!(fixture.who(&fixture.key.sign(&other)).await.is_err());
}

#[tokio::test]
async fn forged_tokens_of_a_provider_are_refused() {
    let fixture = Fixture::start(&[]).await;
    let good = fixture.key.sign(&fixture.claims());
    assert!(fixture.who(&good).await.is_ok());
    let now = Fixture::now();
    let header = |algorithm, id: &str| Header {
        kid: Some(id.to_owned()),
        ..Header::new(algorithm)
    };
    let claims = fixture.claims();
    let secret = EncodingKey::from_secret(b"secret");
    let shared = jsonwebtoken::encode(&header(Algorithm::HS256, "secret"), &claims, &secret);
    let (message, _) = good.rsplit_once('.').expect("a signature");
    for (what, token) in [
        ("another audience", fixture.with("aud", json!("others"))),
        ("no audience", fixture.with("aud", json!([]))),
        (
            "another issuer",
            fixture.with("iss", json!("https://other.example")),
        ),
        ("expired", fixture.with("exp", json!(now - 5))),
        ("without an end", fixture.with("exp", Value::Null)),
        ("not yet valid", fixture.with("nbf", json!(now + 900))),
        ("no user", fixture.with("sub", json!(""))),
        (
            "a user who is no text",
            fixture.with("sub", json!({"a": 1})),
        ),
        ("another key of that name", Key::new("first").sign(&claims)),
        ("an unknown key", Key::new("unknown").sign(&claims)),
        ("a shared secret", shared.expect("a token")),
        ("no signature", format!("{message}.")),
    ] {
        let refused = Err("401 Unauthorized".to_owned());
        assert_eq!(fixture.who_in_time(&token).await, refused, "{what}");
    }
    assert!(
        fixture.who(&good).await.is_ok(),
        "the good one still counts"
    );
}

#[tokio::test]
async fn new_keys_count_at_once_and_old_ones_while_they_are_shown() {
    let fixture = Fixture::start(&[]).await;
    let old = fixture.key.sign(&fixture.claims());
    assert!(fixture.who(&old).await.is_ok());
    let second = Key::new("second");
    fixture.provider.shows(&[&fixture.key, &second]);
    let new = second.sign(&fixture.claims());
    assert!(fixture.who(&new).await.is_ok(), "{}", fixture.server.log());
    assert!(fixture.who(&old).await.is_ok());

    // What is known is not fetched again.
    let fetched = fixture.provider.fetched();
    for _ in 0..20 {
        assert!(fixture.who(&new).await.is_ok());
    }
    assert_eq!(fixture.provider.fetched(), fetched);
    fixture.provider.shows(&[&second]);
    let stranger = Key::new("stranger").sign(&fixture.claims());
    assert!(fixture.who(&stranger).await.is_err());
    assert!(fixture.who(&old).await.is_err(), "its key was withdrawn");
    assert!(fixture.who(&new).await.is_ok());
}

#[tokio::test]
async fn a_flood_of_unknown_keys_does_not_reach_the_provider() {
    let fixture = Fixture::start(&[]).await;
    let started = Instant::now();
    let tokens = (0..200).map(|number| Key::new(&format!("k{number}")).sign(&fixture.claims()));
    let answers = futures::future::join_all(tokens.map(|token| {
        let fixture = &fixture;
        async move { fixture.who(&token).await }
    }));
    assert!(answers.await.iter().all(Result::is_err));
    let seconds = usize::try_from(started.elapsed().as_secs()).expect("a few");
    let fetched = fixture.provider.fetched();
    assert!(fetched <= 2 + seconds, "{fetched} times in {seconds} s");
}

#[tokio::test]
async fn a_provider_that_lies_or_is_silent_lets_nobody_in_and_lets_nobody_else_wait() {
    let fixture = Fixture::start(&[]).await;
    let token = Key::new("second").sign(&fixture.claims());
    for (path, document) in [
        ("/keys", "x".repeat(2 << 20)),
        ("/keys", "[".repeat(100_000)),
        ("/keys", r#"{"keys": [1, {}]}"#.to_owned()),
        (
            "/.well-known/openid-configuration",
            r#"{"issuer": "https://other.example", "jwks_uri": "https://other.example/keys"}"#
                .to_owned(),
        ),
    ] {
        fixture.provider.says(path, &document);
        assert!(fixture.who_in_time(&token).await.is_err(), "{path}");
    }
    assert!(fixture.who_in_time("nobodys").await.is_err());
}
