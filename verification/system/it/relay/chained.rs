//! A relay behind a relay, and relays that lead back to themselves.

use serde_json::json;

use super::support::*;
use crate::support::server::Server;

#[tokio::test]
async fn a_relay_serves_another_relay() {
    let mut pair = Pair::start(&[], &[]).await;
    let mut second = Server::relay(&pair.relay.kubeconfig(), &[]);
    second.client().await;
    let far = admin(&second).await;
    let first = create(&far, CONFIG_MAPS, &config_map("a")).await;
    let any = format!("{CONFIG_MAPS}?resourceVersion=0");
    until_listed(&far, &any, &["a"]).await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={}", version(&first));
    let mut events = Watch::open(&far, &path).await;
    for number in 0..20 {
        let name = format!("b{number}");
        let made = pair.create(CONFIG_MAPS, &config_map(&name)).await;
        let one = format!("{CONFIG_MAPS}/{name}");
        for path in [
            one.clone(),
            format!("{one}?resourceVersion={}", version(&made)),
        ] {
            assert_eq!(get(&far, &path).await.status, 200, "{path}");
        }
        assert!(get(&far, CONFIG_MAPS).await.names().contains(&name));
        assert_eq!(events.next_name().await, ("ADDED".to_owned(), name));
    }
    // Tokens are shown on, through both.
    let ann = second.client_with_token("ann-token").await;
    let me = send(&ann, "POST", WHO, &[], &json!({})).await;
    assert_eq!(me.json()["status"]["userInfo"]["username"], "ann", "{me:?}");
    assert_eq!(get(&ann, &any).await.status, 403);
    pair.upstream.kill();
    assert_eq!(get(&far, &any).await.names().len(), 21);
    assert_eq!(get(&far, CONFIG_MAPS).await.status, 500);
    let refused = send(&far, "POST", CONFIG_MAPS, &[], &config_map("d")).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    pair.upstream.start_again();
    pair.upstream.client().await;
    pair.create(CONFIG_MAPS, &config_map("c")).await;
    assert_eq!(
        events.next_name().await,
        ("ADDED".to_owned(), "c".to_owned())
    );
}

#[tokio::test]
async fn a_relay_that_leads_back_to_itself_answers_with_an_error() {
    let mut pair = Pair::start(&[], &[]).await;
    // It keeps its certificates, so its own kubeconfig is good for the next run.
    pair.relay.stop().await;
    let own = pair.relay.kubeconfig().display().to_string();
    pair.relay
        .start_again_with(&["--kubeconfig".to_owned(), own]);
    pair.relay.client().await;
    for (method, path) in [
        ("GET", "/apis"),
        ("GET", "/version"),
        ("GET", CONFIG_MAPS),
        ("GET", "/api/v1/configmaps?resourceVersion=0"),
        ("POST", CONFIG_MAPS),
    ] {
        let answer = send(&pair.relayed, method, path, &[], &config_map("a")).await;
        assert_eq!(answer.status, 503, "{method} {path}: {answer:?}");
        let words = "the request came from this relay: its upstream leads back to it";
        assert!(answer.text().contains(words), "{method} {path}: {answer:?}");
    }
    let token = pair.relay.client_with_token("ann-token").await;
    let answer = get(&token, CONFIG_MAPS).await;
    assert!([401, 503].contains(&answer.status), "{answer:?}");
}

#[tokio::test]
async fn two_relays_that_lead_to_each_other_answer_with_an_error() {
    let mut pair = Pair::start(&[], &[]).await;
    let mut second = Server::relay(&pair.relay.kubeconfig(), &[]);
    second.client().await;
    pair.relay.stop().await;
    let other = second.kubeconfig().display().to_string();
    pair.relay
        .start_again_with(&["--kubeconfig".to_owned(), other]);
    pair.relay.client().await;
    let far = admin(&second).await;
    for client in [&pair.relayed, &far] {
        for path in ["/apis", CONFIG_MAPS] {
            let answer = get(client, path).await;
            assert_eq!(answer.status, 503, "{path}: {answer:?}");
            assert!(
                answer.text().contains("leads back to it"),
                "{path}: {answer:?}"
            );
        }
    }
}
