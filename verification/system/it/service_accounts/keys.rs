//! Keys: the server's own, those that flags name, and how others learn of them.

use std::os::unix::fs::PermissionsExt;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation};

use super::*;

async fn get(fixture: &Fixture, path: &str) -> Value {
    let answer = ask(&fixture.admin, Method::GET, path, &Value::Null).await;
    serde_json::from_str(&answer.expect(path)).expect("JSON")
}

#[tokio::test]
async fn the_servers_own_key_is_private_and_stays() {
    let mut fixture = Fixture::start(&[]).await;
    let path = fixture.server.folder().join("data/pki/sa.key");
    let mode = std::fs::metadata(path)
        .expect("the key")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = fixture.token(json!({})).await;
    fixture.server.restart().await;
    assert!(fixture.who(&token).await.is_ok(), "after a restart");
}

#[tokio::test]
async fn others_can_judge_tokens_by_what_the_server_tells() {
    let fixture = Fixture::start(&["--service-account-issuer=https://issuer.example"]).await;
    let configuration = get(&fixture, "/.well-known/openid-configuration").await;
    assert_eq!(configuration["issuer"], "https://issuer.example");
    assert_eq!(
        configuration["id_token_signing_alg_values_supported"],
        json!(["RS256"])
    );
    let uri = configuration["jwks_uri"].as_str().expect("a URI");
    assert!(uri.ends_with("/openid/v1/jwks"), "{uri}");
    let keys: JwkSet =
        serde_json::from_value(get(&fixture, "/openid/v1/jwks").await).expect("keys");

    let token = fixture.token(json!({"audiences": ["vault"]})).await;
    let header = jsonwebtoken::decode_header(&token).expect("a header");
    let key = keys
        .find(&header.kid.expect("a key's id"))
        .expect("the key");
    let mut validation = Validation::new(header.alg);
    validation.set_audience(&["vault"]);
    validation.set_issuer(&["https://issuer.example"]);
    let key = DecodingKey::from_jwk(key).expect("a key");
    let claims = jsonwebtoken::decode::<Value>(&token, &key, &validation).expect("a good token");
    assert_eq!(claims.claims["sub"], "system:serviceaccount:default:robot");
}

#[tokio::test]
async fn keys_may_be_told_elsewhere() {
    let uri = "https://keys.example/jwks";
    let flag = format!("--service-account-jwks-uri={uri}");
    let fixture = Fixture::start(&[&flag]).await;
    let configuration = get(&fixture, "/.well-known/openid-configuration").await;
    assert_eq!(configuration["jwks_uri"], uri);
}

#[tokio::test]
async fn a_new_key_and_issuer_do_not_end_the_tokens_of_the_old_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, algorithm) in [
        ("old", &rcgen::PKCS_ECDSA_P256_SHA256),
        ("new", &rcgen::PKCS_ECDSA_P384_SHA384),
    ] {
        let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
        std::fs::write(path(name), key.serialize_pem()).expect("written");
        std::fs::write(path(&format!("{name}.pub")), key.public_key_pem()).expect("written");
    }
    let signing = format!("--service-account-signing-key-file={}", path("old"));
    let mut fixture =
        Fixture::start(&[&signing, "--service-account-issuer=https://old.example"]).await;
    let old = fixture.token(json!({})).await;
    assert_eq!(parts(&old).0["alg"], "ES256");
    assert!(fixture.who(&old).await.is_ok());

    let changed = [
        format!("--service-account-signing-key-file={}", path("new")),
        format!("--service-account-key-file={}", path("old.pub")),
        format!("--service-account-key-file={}", path("new.pub")),
        "--service-account-issuer=https://new.example".to_owned(),
        "--service-account-issuer=https://old.example".to_owned(),
    ];
    fixture.server.stop().await;
    fixture.server.start_again_with(&changed);
    fixture.server.client().await;
    assert!(
        fixture.who(&old).await.is_ok(),
        "both issuers are audiences"
    );
    let new = fixture.token(json!({})).await;
    let (header, claims) = parts(&new);
    assert_eq!(
        (&header["alg"], &claims["iss"]),
        (&json!("ES384"), &json!("https://new.example"))
    );
    assert!(fixture.who(&new).await.is_ok());
    let keys = get(&fixture, "/openid/v1/jwks").await;
    let algorithms: Vec<_> = keys["keys"]
        .as_array()
        .expect("keys")
        .iter()
        .map(|key| &key["alg"])
        .collect();
    assert_eq!(algorithms, ["ES384", "ES256"], "each once: {keys}");

    fixture.server.stop().await;
    fixture.server.start_again_with(&changed[3..]);
    fixture.server.client().await;
    assert!(
        fixture.who(&old).await.is_err(),
        "its key does not count any more"
    );
}
