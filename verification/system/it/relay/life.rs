//! A relay starts with caches that are filled, ends in order, and starts again.

use super::support::*;
use crate::support::server::Server;

const ANY: &str = "/api/v1/namespaces/default/configmaps?resourceVersion=0";

#[tokio::test]
async fn caches_that_are_named_are_filled_before_anybody_asks() {
    let flag =
        "--cache=configmaps.v1,leases.v1.coordination.k8s.io,secrets.v1,things.v1.example.com";
    let (mut upstream, _) = Server::ready(&[]).await;
    let direct = admin(&upstream).await;
    create(&direct, CONFIG_MAPS, &config_map("a")).await;
    let mut relay = Server::relay(&upstream.kubeconfig(), &[flag]);
    relay.client().await;
    relay.logged("relays a Kubernetes API at").await;
    eventually(
        DEADLINE,
        "the upstream knows the relay's watch by its name",
        async || {
            let state = get(&direct, "/debug/ui/state").await.json();
            let mut clients = state["clients"].as_array().expect("clients").iter();
            clients.any(|it| {
                let agent = it["userAgent"].as_str().expect("an agent");
                agent.starts_with("ringwatch-relay/")
                    && it["verb"] == "watch"
                    && it["resource"] == "configmaps"
            })
        },
    )
    .await;
    // A cache is filled before it is watched for.
    eventually(DEADLINE, "leases are watched too", async || {
        let watches = [("verb", "WATCH"), ("resource", "leases")];
        metric(&direct, "apiserver_longrunning_requests", &watches).await > 0.5
    })
    .await;
    eventually(
        DEADLINE,
        "it says that things cannot be cached",
        async || {
            let log = relay.log();
            let mut lines = log.lines();
            lines.any(|it| it.contains("cannot be cached") && it.contains("things"))
        },
    )
    .await;
    upstream.kill();
    let relayed = admin(&relay).await;
    // Nobody has asked before, so what the API has is not known, and what is known is enough.
    let list = get(&relayed, ANY).await;
    assert_eq!((list.status, list.names()), (200, vec!["a".to_owned()]));
    let leases = get(
        &relayed,
        "/apis/coordination.k8s.io/v1/leases?resourceVersion=0",
    )
    .await;
    assert_eq!(leases.status, 200, "{leases:?}");
}

#[tokio::test]
async fn a_relay_ends_its_watches_in_order_and_starts_again() {
    let mut pair = Pair::start(&[], &[]).await;
    let first = pair.create(CONFIG_MAPS, &config_map("a")).await;
    let path = format!(
        "{CONFIG_MAPS}?watch=1&allowWatchBookmarks=true&resourceVersion={}",
        version(&first)
    );
    let mut events = Watch::open(&pair.relayed, &path).await;
    let last = pair.create(CONFIG_MAPS, &config_map("b")).await;
    assert_eq!(
        events.next_name().await,
        ("ADDED".to_owned(), "b".to_owned())
    );
    pair.relay.stop().await;
    let mut known = version(&last);
    while let Some(event) = events.next().await {
        assert_eq!(event["type"], "BOOKMARK", "{event}");
        known = version(&event["object"]);
    }
    pair.create(CONFIG_MAPS, &config_map("c")).await;
    pair.relay.start_again();
    pair.relay.client().await;
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={known}");
    // A relay starts with no history: it goes on only from what it has, or says that the version is gone.
    let mut events = Watch::open(&pair.relayed, &path).await;
    let event = events.next().await.expect("an event");
    let is_next = event["object"]["metadata"]["name"] == "c";
    assert!(is_next || event["object"]["code"] == 410, "{event}");
}
