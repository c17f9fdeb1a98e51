//! Requests to a relay that are made as somebody else, and those of front proxies.

use kube::Client;
use serde_json::{Value, json};

use super::support::*;
use crate::certificates::Authority;

type Headers<'a> = &'a [(&'a str, &'a str)];

/// The server's answer to the question who asks.
async fn who(client: &Client, headers: Headers<'_>) -> Answer {
    send(client, "POST", WHO, headers, &json!({})).await
}

#[tokio::test]
async fn who_may_impersonate_acts_as_the_other_through_a_relay_too() {
    let pair = Pair::start(&[], &[]).await;
    pair.grant("joe", Some("default"), &may_read()).await;
    let rules = json!([{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"],
        "resourceNames": ["joe"]}]);
    pair.grant("ann", None, &rules).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    // The administrators have certificates, and ann has a token.
    let ann = pair.upstream.client_with_token("ann-token").await;
    let ann_relayed = pair.relay.client_with_token("ann-token").await;
    let joe = [("Impersonate-User", "joe")];
    eventually(DEADLINE, "ann may act as joe", async || {
        who(&ann, &joe).await.status == 201
    })
    .await;
    eventually(DEADLINE, "joe may read", async || {
        send(&ann, "GET", CONFIG_MAPS, &joe, &Value::Null)
            .await
            .status
            == 200
    })
    .await;
    let identities: [Headers<'_>; 7] = [
        &joe,
        &[("Impersonate-User", "eve")],
        &[("Impersonate-User", "system:anonymous")],
        &[("Impersonate-User", "system:serviceaccount:default:robot")],
        &[
            ("Impersonate-User", "joe"),
            ("Impersonate-Group", "ops"),
            ("Impersonate-Group", "menders"),
        ],
        &[
            ("Impersonate-User", "joe"),
            ("Impersonate-Uid", "7"),
            ("Impersonate-Extra-Project", "blue"),
        ],
        &[("Impersonate-Group", "ops")],
    ];
    for (direct, relayed, name) in [
        (&pair.direct, &pair.relayed, "admin"),
        (&ann, &ann_relayed, "ann"),
    ] {
        for headers in identities {
            let what = format!("{name} as {headers:?}");
            let (expected, through) = (who(direct, headers).await, who(relayed, headers).await);
            assert_eq!(
                through.status, expected.status,
                "{what}: {through:?}, not {expected:?}"
            );
            let user = |answer: &Answer| answer.json()["status"]["userInfo"].clone();
            assert_eq!(user(&through), user(&expected), "{what}");
            for path in [
                CONFIG_MAPS,
                "/api/v1/namespaces/default/configmaps/a?resourceVersion=0",
                "/api/v1/configmaps?resourceVersion=0",
                "/api/v1/namespaces/default/secrets",
            ] {
                let doors = (direct, relayed);
                are_alike(doors, path, headers, &format!("{path} of {what}")).await;
            }
        }
    }
}

#[tokio::test]
async fn front_proxies_name_their_users_and_nobody_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let (proxies, clients) = (Authority::new("proxies"), Authority::new("clients"));
    let file = |name, authority: &Authority| write(folder.path(), name, &authority.pem);
    let flags = [
        format!(
            "--requestheader-client-ca-file={}",
            file("proxies", &proxies).display()
        ),
        "--requestheader-allowed-names=front".to_owned(),
        format!("--client-ca-file={}", file("clients", &clients).display()),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let pair = Pair::start(&[], &flags).await;
    pair.create(CONFIG_MAPS, &config_map("a")).await;
    pair.grant("cat", Some("default"), &may_read()).await;
    let cat = [
        ("X-Remote-User", "cat"),
        ("X-Remote-Group", "menders"),
        ("X-Remote-Group", "makers"),
        ("X-Remote-Extra-Scopes", "all"),
    ];
    let front = with(&pair.relay, certified(&proxies, "front", "x")).await;
    let user = |answer: Answer| answer.json()["status"]["userInfo"].clone();
    let groups = json!(["menders", "makers", "system:authenticated"]);
    assert_eq!(
        user(who(&front, &cat).await),
        json!({"username": "cat", "groups": groups, "extra": {"scopes": ["all"]}})
    );
    let any = "/api/v1/namespaces/default/configmaps?resourceVersion=0";
    eventually(DEADLINE, "cat may read", async || {
        send(&front, "GET", any, &cat, &Value::Null).await.status == 200
    })
    .await;
    let other = [("X-Remote-User", "eve")];
    let refused = send(&front, "GET", any, &other, &Value::Null).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    let refused = send(&front, "POST", CONFIG_MAPS, &cat, &config_map("b")).await;
    assert!(
        refused.message().contains(r#"User "cat" cannot create"#),
        "{refused:?}"
    );

    let masters = [
        ("X-Remote-User", "root"),
        ("X-Remote-Group", "system:masters"),
    ];
    let stranger = with(&pair.relay, certified(&clients, "dan", "menders")).await;
    assert_eq!(user(who(&stranger, &masters).await)["username"], "dan");
    assert_eq!(
        send(&stranger, "GET", any, &masters, &Value::Null)
            .await
            .status,
        403
    );
    let token = pair.relay.client_with_token("ann-token").await;
    assert_eq!(user(who(&token, &masters).await)["username"], "ann");
    let nobody = pair.relay.client_without_credentials().await;
    assert_eq!(
        send(&nobody, "GET", any, &masters, &Value::Null)
            .await
            .status,
        403
    );
    let unnamed = with(&pair.relay, certified(&proxies, "other", "x")).await;
    let refused = try_send(&unnamed, "POST", WHO, &masters, &json!({})).await;
    let is_root = refused.is_ok_and(|answer| answer.text().contains("root"));
    assert!(!is_root, "a proxy that is not among the allowed names");
}
