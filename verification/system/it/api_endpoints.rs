//! The endpoints at which members of a cluster find the API: behind the service `kubernetes`.

use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::etcd::Etcd;
use crate::support::requests;
use crate::support::server::Server;

const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints/kubernetes";
const SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes";

#[tokio::test]
async fn the_advertised_address_is_behind_the_service() {
    let (mut server, client) = Server::ready(&["--advertise-address", "192.0.2.7"]).await;
    wait_for(&client, &["192.0.2.7"]).await;
    let endpoints = get(&client, ENDPOINTS).await.expect("there");
    let port = &endpoints["subsets"][0]["ports"];
    assert_eq!(
        *port,
        json!([{"name": "https", "port": port[0]["port"], "protocol": "TCP"}])
    );
    let label = "endpointslice.kubernetes.io/skip-mirror";
    assert_eq!(endpoints["metadata"]["labels"], json!({label: "true"}));
    let slice = get(&client, SLICE).await.expect("there");
    assert_eq!(slice["addressType"], "IPv4");
    assert_eq!(
        slice["endpoints"],
        json!([{"addresses": ["192.0.2.7"], "conditions": {"ready": true}}])
    );
    assert_eq!(slice["ports"], *port);
    assert_eq!(
        slice["metadata"]["labels"],
        json!({"kubernetes.io/service-name": "kubernetes"})
    );
    let service = get(&client, "/api/v1/namespaces/default/services/kubernetes").await;
    let service = service.expect("there");
    assert_eq!(service["spec"]["ports"][0]["targetPort"], port[0]["port"]);

    // Whoever deletes all services of the namespace gets this one back.
    let path = "/api/v1/namespaces/default/services/kubernetes";
    let deletion = requests::request("DELETE", path, &Value::Null);
    let deleted = client.request_text(deletion).await;
    deleted.expect("deleted");
    // The server looks after it every ten seconds.
    let again = async || get(&client, path).await;
    let back = eventually(DEADLINE, "it is created again", again).await;
    assert_ne!(back["metadata"]["uid"], service["metadata"]["uid"]);
    assert_eq!(back["spec"]["clusterIP"], service["spec"]["clusterIP"]);

    let client = server.restart().await;
    wait_for(&client, &["192.0.2.7"]).await;
    let again = get(&client, ENDPOINTS).await.expect("there");
    assert_eq!(again, endpoints, "nothing changed, and nothing was written");
}

#[tokio::test]
async fn servers_of_one_etcd_are_all_behind_the_service() {
    let Some(etcd) = Etcd::start("addresses of several servers") else {
        return;
    };
    let etcd_servers = etcd.endpoint();
    let start = |address: &str| {
        Server::start(&[
            "--etcd-servers",
            &etcd_servers,
            "--advertise-address",
            address,
        ])
    };
    let mut one = start("192.0.2.7");
    let first = one.client().await;
    wait_for(&first, &["192.0.2.7"]).await;
    let mut two = start("192.0.2.8");
    let second = two.client().await;
    wait_for(&second, &["192.0.2.7", "192.0.2.8"]).await;
    one.stop().await;
    wait_for(&second, &["192.0.2.8"]).await;
    eventually(
        DEADLINE,
        "the lease of the other is the only one",
        async || {
            let leases =
                etcd.etcdctl(&["get", "--prefix", "--keys-only", "/registry/masterleases/"]);
            let is_it = leases.trim() == "/registry/masterleases/192.0.2.8";
            if is_it { Ok(()) } else { Err(leases) }
        },
    )
    .await;
}

/// Waits until these addresses, and no others, are behind the service.
async fn wait_for(client: &kube::Client, expected: &[&str]) {
    eventually(DEADLINE, format!("{expected:?}"), async || {
        let endpoints = get(client, ENDPOINTS).await.unwrap_or_default();
        let slice = get(client, SLICE).await.unwrap_or_default();
        let of_slice = items(&slice["endpoints"], |it| &it["addresses"][0]);
        let found = items(&endpoints["subsets"][0]["addresses"], |it| &it["ip"]);
        if found == expected && of_slice == expected {
            Ok(())
        } else {
            Err((found, of_slice))
        }
    })
    .await;
}

fn items(list: &Value, address: fn(&Value) -> &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|it| address(it).as_str().map(str::to_owned))
        .collect()
}

async fn get(client: &kube::Client, path: &str) -> Option<Value> {
    client.request(requests::get(path)).await.ok()
}
