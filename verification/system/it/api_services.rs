//! The APIs that there are: APIServices of built-in groups from the start, and of custom resources while they are
//! served.

use kube::Client;
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use crate::support::requests;
use crate::support::server::Server;

const SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CUSTOM: &str = "v1.example.com";

#[tokio::test]
async fn apis_are_told_of_while_they_are_served() {
    let (mut server, client) = Server::ready(&[]).await;
    let apps = get(&client, "v1.apps").await.expect("from the start");
    let expected = json!({"group": "apps", "version": "v1",
        "groupPriorityMinimum": 17_800, "versionPriority": 15});
    assert_eq!(apps["spec"], expected);
    assert!(is_available(&apps), "{apps}");
    assert_eq!(get(&client, "v1.apiregistration.k8s.io").await, None);

    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition", "metadata": {"name": "gears.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "gears", "kind": "Gear"}, "versions": [
                {"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    send(&client, "POST", DEFINITIONS, &definition).await;
    let custom = eventually(DEADLINE, "the API of custom resources", async || {
        get(&client, CUSTOM).await.filter(is_available)
    })
    .await;
    assert_eq!(custom["spec"]["versionPriority"], 100);

    send(
        &client,
        "DELETE",
        &format!("{SERVICES}/v1.batch"),
        &json!({}),
    )
    .await;
    let client = server.restart().await;
    let again = get(&client, "v1.apps").await.expect("still there");
    assert_eq!(again, apps, "nothing changed, and nothing was written");
    let back = get(&client, "v1.batch").await.expect("made again");
    assert!(is_available(&back), "{back}");

    let path = format!("{DEFINITIONS}/gears.example.com");
    send(&client, "DELETE", &path, &json!({})).await;
    let is_gone = async || get(&client, CUSTOM).await.is_none();
    eventually(DEADLINE, "the end of the API of custom resources", is_gone).await;
}

fn is_available(service: &Value) -> bool {
    let condition = &service["status"]["conditions"][0];
    condition["type"] == "Available"
        && condition["status"] == "True"
        && condition["reason"] == "Local"
}

async fn get(client: &Client, name: &str) -> Option<Value> {
    let path = format!("{SERVICES}/{name}");
    match client.request(requests::get(&path)).await {
        Ok(object) => Some(object),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => panic!("{name}: {error}"),
    }
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) {
    let request = requests::request(method, path, body);
    let answer: Result<Value, _> = client.request(request).await;
    answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
}
