//! The permissions of service accounts with RBAC; and certificates that no known authority has signed.

use base64::engine::general_purpose::STANDARD;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair,
};

use super::*;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

#[tokio::test]
async fn an_account_may_do_what_roles_give_it_and_watches_are_asked_about_as_watches() {
    let fixture = Fixture::start(&["--authorization-mode=RBAC"]).await;
    let robot = fixture.token(json!({})).await;
    let robot = fixture.server.client_with_token(&robot).await;
    let pods = format!("{CORE}/pods");
    let watch = format!("{pods}?watch=1&timeoutSeconds=1");
    let message = r#"403 pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" in the namespace "default""#;
    let refused = ask(&robot, Method::GET, &pods, &Value::Null).await;
    assert_eq!(refused, Err(message.to_owned()));

    give(
        &fixture,
        "lister",
        "list",
        json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"}),
    )
    .await;
    until_allowed(&robot, &pods).await;
    let refused = ask(&robot, Method::GET, &watch, &Value::Null).await;
    assert!(refused.expect_err("no watch").starts_with("403 "));
    let group = json!({"kind": "Group", "name": "system:serviceaccounts:default"});
    give(&fixture, "watcher", "watch", group).await;
    until_allowed(&robot, &watch).await;
    // Every account may learn how tokens are judged.
    until_allowed(&robot, "/openid/v1/jwks").await;
}

async fn give(fixture: &Fixture, name: &str, verb: &str, mut subject: Value) {
    if subject["kind"] == "Group" {
        subject["apiGroup"] = json!("rbac.authorization.k8s.io");
    }
    let role = json!({"metadata": {"name": name},
        "rules": [{"verbs": [verb], "apiGroups": [""], "resources": ["pods"]}]});
    let binding = json!({"metadata": {"name": name}, "subjects": [subject],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
    for (plural, object) in [("roles", role), ("rolebindings", binding)] {
        let path = format!("{RBAC}/namespaces/default/{plural}");
        let created = ask(&fixture.admin, Method::POST, &path, &object).await;
        created.expect("created");
    }
}

async fn until_allowed(client: &kube::Client, path: &str) {
    eventually(DEADLINE, format!("{path} is allowed"), async || {
        ask(client, Method::GET, path, &Value::Null).await
    })
    .await;
}

/// A certificate of the admin's names, signed by an authority of the same name as the server's own.
fn forged() -> (String, String) {
    let named = |name: &str, group: Option<&str>| {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        let mut subject = DistinguishedName::new();
        if let Some(group) = group {
            subject.push(DnType::OrganizationName, group);
        }
        subject.push(DnType::CommonName, name);
        params.distinguished_name = subject;
        params
    };
    let mut authority = named("ringwatch-ca", None);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = Issuer::new(authority, KeyPair::generate().expect("a key"));
    let mut leaf = named("kubernetes-admin", Some("system:masters"));
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let certificate = leaf.signed_by(&key, &issuer).expect("a certificate");
    (certificate.pem(), key.serialize_pem())
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_nobodys() {
    let fixture = Fixture::start(&[]).await;
    let (certificate, key) = forged();
    let token = fixture.token(json!({})).await;
    for (token, user) in [
        (None, Err("401 Unauthorized".to_owned())),
        (
            Some(token),
            Ok(json!("system:serviceaccount:default:robot")),
        ),
    ] {
        let kubeconfig = Kubeconfig::read_from(fixture.server.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options);
        let mut config = config.await.expect("a configuration");
        config.auth_info = AuthInfo {
            client_certificate_data: Some(STANDARD.encode(&certificate)),
            client_key_data: Some(STANDARD.encode(&key).into()),
            token: token.map(Into::into),
            ..AuthInfo::default()
        };
        let client = kube::Client::try_from(config).expect("a client");
        let answer = ask(&client, Method::POST, WHO, &json!({})).await;
        let name = answer.map(|answer| {
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            answer["status"]["userInfo"]["username"].clone()
        });
        assert_eq!(name, user);
    }
}
