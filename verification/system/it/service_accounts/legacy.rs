//! Tokens of accounts in Secrets, as kube-controller-manager issues them.

use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};

use super::*;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Makes the Secret of a token of the account, with these labels, and returns the token.
async fn secret(fixture: &Fixture, name: &str, labels: Value) -> String {
    let pem = std::fs::read(fixture.server.folder().join("data/pki/sa.key"));
    let key = EncodingKey::from_rsa_pem(&pem.expect("the key")).expect("a key");
    let prefix = "kubernetes.io/serviceaccount";
    let claims = json!({"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:robot",
        format!("{prefix}/namespace"): "default", format!("{prefix}/secret.name"): name,
        format!("{prefix}/service-account.name"): "robot",
        format!("{prefix}/service-account.uid"): fixture.uid});
    let token = jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &key);
    let token = token.expect("a token");
    let secret = json!({"type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "labels": labels,
            "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "data": {"token": STANDARD.encode(&token)}});
    create(&fixture.admin, "secrets", secret).await;
    token
}

async fn labels(fixture: &Fixture, name: &str) -> Value {
    let path = format!("{SECRETS}/{name}");
    let found = ask(&fixture.admin, Method::GET, &path, &Value::Null).await;
    let found: Value = serde_json::from_str(&found.expect("there")).expect("JSON");
    found["metadata"]["labels"].clone()
}

async fn delete(fixture: &Fixture, name: &str) {
    let path = format!("{SECRETS}/{name}");
    let deleted = ask(&fixture.admin, Method::DELETE, &path, &Value::Null).await;
    deleted.expect("deleted");
}

#[tokio::test]
async fn a_token_in_a_secret_is_valid_as_long_as_the_secret() {
    let fixture = Fixture::start(&[]).await;
    let token = secret(&fixture, "legacy", json!({})).await;
    let user = fixture.who(&token).await.expect("a user");
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(user["uid"], json!(fixture.uid));
    assert_eq!(user.get("extra"), None);
    let used = &labels(&fixture, "legacy").await["kubernetes.io/legacy-token-last-used"];
    assert_eq!(
        used.as_str().map(str::len),
        Some("2026-01-01".len()),
        "{used}"
    );
    delete(&fixture, "legacy").await;
    fixture.until_refused(&token).await;
    // A Secret of the same name with another token does not make it valid.
    let other = json!({"type": "kubernetes.io/service-account-token", "metadata": {"name": "legacy",
        "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "data": {"token": STANDARD.encode("other")}});
    create(&fixture.admin, "secrets", other).await;
    assert!(fixture.who(&token).await.is_err());
    let invalid = json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"});
    let token = secret(&fixture, "unused", invalid).await;
    assert!(
        fixture.who(&token).await.is_err(),
        "it is marked as invalid"
    );
}

#[tokio::test]
async fn without_a_lookup_the_signature_suffices() {
    let fixture = Fixture::start(&["--service-account-lookup=false"]).await;
    let token = secret(&fixture, "legacy", json!({})).await;
    delete(&fixture, "legacy").await;
    let user = fixture.who(&token).await.expect("a user");
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert!(fixture.who(&format!("{token}x")).await.is_err());
}
