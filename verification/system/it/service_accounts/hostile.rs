//! Tokens that somebody has tampered with or made up: all are refused.

use http::StatusCode;
use jsonwebtoken::{Algorithm, EncodingKey, Header};

use super::*;

/// The head of a client that is not authenticated may have so many bytes.
const FIRST_HEAD_BYTES_MAX: usize = 64 << 10;

/// The key, header and claims of a token.
#[derive(Clone)]
struct Forger {
    key: EncodingKey,
    header: Header,
    claims: Value,
}

impl Forger {
    /// With the server's own key and the claims of a good token.
    async fn new(fixture: &Fixture) -> Self {
        let (header, claims) = parts(&fixture.token(json!({})).await);
        let pem = std::fs::read(fixture.server.folder().join("data/pki/sa.key"));
        Self {
            key: EncodingKey::from_rsa_pem(&pem.expect("the key")).expect("a key"),
            header: serde_json::from_value(header).expect("a header"),
            claims,
        }
    }

    fn sign(&self) -> String {
        jsonwebtoken::encode(&self.header, &self.claims, &self.key).expect("a token")
    }

    /// Returns the time at which the good token was made, in seconds since the Unix epoch.
    fn now(&self) -> i64 {
        self.claims["iat"].as_i64().expect("a time")
    }

    fn with_header(&self, change: impl FnOnce(&mut Header)) -> Self {
        let mut other = self.clone();
        change(&mut other.header);
        other
    }

    /// A token with other claims.
    fn with(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims.clone();
        change(&mut claims);
        jsonwebtoken::encode(&self.header, &claims, &self.key).expect("a token")
    }
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn a_forged_token_is_refused() {
    let fixture = Fixture::start(&[]).await;
    let forger = Forger::new(&fixture).await;
    let good = forger.sign();
    assert!(fixture.who(&good).await.is_ok(), "the forger can sign");
    let now = forger.now();
    let slow = forger.with(|claims| claims["exp"] = json!(now - 30));
    assert!(
        fixture.who(&slow).await.is_ok(),
        "clocks may differ a little"
    );
    let forged = [
        wrong_claims(&forger),
        wrong_signatures(&forger, &public_pem(&fixture)),
        wrong_forms(&good),
    ];
    for (what, token) in forged.concat() {
        // A stranger's head has a smaller limit than a token.
        let refused = if token.len() > FIRST_HEAD_BYTES_MAX {
            "431 431 Request Header Fields Too Large"
        } else {
            "401 Unauthorized"
        };
        let answer = tokio::time::timeout(DEADLINE, fixture.who(&token)).await;
        assert_eq!(answer, Ok(Err(refused.to_owned())), "{what}");
    }
    assert!(
        fixture.who(&good).await.is_ok(),
        "the good one still counts"
    );
}

/// Signed by the server's own key.
fn wrong_claims(forger: &Forger) -> Vec<(&'static str, String)> {
    let now = forger.now();
    let its = |member: &str, value: Value| {
        forger.with(|claims| claims["kubernetes.io"]["serviceaccount"][member] = value)
    };
    let claim = |name: &str, value: Value| forger.with(|claims| claims[name] = value);
    vec![
        ("another audience", claim("aud", json!(["others"]))),
        (
            "another issuer",
            claim("iss", json!("https://other.example")),
        ),
        ("expired", claim("exp", json!(now - 120))),
        ("not yet valid", claim("nbf", json!(now + 600))),
        ("of the future", claim("iat", json!(now + 600))),
        ("no account", its("name", json!("none"))),
        ("another account's uid", its("uid", json!("u"))),
        ("a path for a name", its("name", json!("../robot"))),
        ("no account at all", claim("kubernetes.io", json!({}))),
        (
            "claims of other types",
            claim("kubernetes.io", json!(["x"])),
        ),
        ("long", claim("pad", json!("x".repeat(700_000)))),
    ]
}

/// With the claims of a good token.
fn wrong_signatures(forger: &Forger, public: &str) -> Vec<(&'static str, String)> {
    let good = forger.sign();
    let (message, signature) = good.rsplit_once('.').expect("a signature");
    let (_, payload) = message.split_once('.').expect("a payload");
    let flipped = if signature.starts_with('A') { "B" } else { "A" };
    let header = |algorithm: &str| encoded(&json!({"alg": algorithm}));
    let hmac = Forger {
        key: EncodingKey::from_secret(public.as_bytes()),
        ..forger.with_header(|header| header.alg = Algorithm::HS256)
    };
    let strange =
        rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
    let strange = strange.expect("a key").serialize_pem();
    let stranger = Forger {
        key: EncodingKey::from_rsa_pem(strange.as_bytes()).expect("a key"),
        ..forger.clone()
    };
    let unknown = forger.with_header(|header| header.kid = Some("unknown".to_owned()));
    let critical = forger.with_header(|header| header.crit = Some(vec!["exp".to_owned()]));
    let longer = forger.with_header(|header| header.alg = Algorithm::RS512);
    vec![
        ("another", format!("{message}.{flipped}{}", &signature[1..])),
        ("none", format!("{message}.")),
        ("alg none", format!("{}.{payload}.", header("none"))),
        (
            "alg None",
            format!("{}.{payload}.{signature}", header("None")),
        ),
        ("the public key as a secret", hmac.sign()),
        ("another algorithm of the key", longer.sign()),
        ("another key", stranger.sign()),
        ("an unknown key", unknown.sign()),
        ("a critical extension", critical.sign()),
    ]
}

fn wrong_forms(good: &str) -> Vec<(&'static str, String)> {
    let (_, signature) = good.rsplit_once('.').expect("a signature");
    let of = |header: &str, payload: &str| {
        let (header, payload) = (
            URL_SAFE_NO_PAD.encode(header),
            URL_SAFE_NO_PAD.encode(payload),
        );
        format!("{header}.{payload}.{signature}")
    };
    vec![
        ("no JSON", of("{", "[")),
        ("no token", "a.b.c".to_owned()),
        ("many parts", ".".repeat(10_000)),
        ("deep", of(r#"{"alg":"RS256"}"#, &"[".repeat(60_000))),
    ]
}

/// A token that does not even fit into a request's head is refused there, as in kube-apiserver.
#[tokio::test]
async fn a_token_of_a_megabyte_is_refused() {
    let fixture = Fixture::start(&[]).await;
    let token = "x".repeat(1 << 20);
    let answer = tokio::time::timeout(DEADLINE, fixture.who(&token)).await;
    let refused = answer.expect("an answer in time").expect_err("refused");
    let too_large = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.as_str();
    assert!(
        refused.starts_with("401") || refused.starts_with(too_large),
        "{refused}"
    );
}

/// The public key as the key set shows it, in PEM.
fn public_pem(fixture: &Fixture) -> String {
    let pem = std::fs::read_to_string(fixture.server.folder().join("data/pki/sa.key"));
    let key = rcgen::KeyPair::from_pem(&pem.expect("the key")).expect("a key");
    key.public_key_pem()
}
