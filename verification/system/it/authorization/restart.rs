//! Stored roles and bindings count from the first answer on after a restart.

use std::time::Duration;

use ringwatch_testing::eventually::DEADLINE;
use serde_json::json;

use super::Fixture;
use crate::support::requests;

const RESTARTS: usize = 5;
/// The number of definitions: so many take a moment to be read.
const OTHERS: usize = 20;
const PATH: &str = "/apis/example.com/v1/namespaces/default/widgets0";

/// Pause between attempts to reach a server that starts: so short that the answer is one of its first.
const ASK_PERIOD: Duration = Duration::from_millis(1);

#[tokio::test]
async fn rights_and_custom_resources_are_there_from_the_first_answer_on() {
    let mut fixture = Fixture::start("Node,RBAC").await;
    for number in 0..OTHERS {
        let (plural, kind) = (format!("widgets{number}"), format!("Widget{number}"));
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        fixture.create(path, definition).await;
    }
    fixture.until_allowed(&fixture.admin, PATH).await;
    let rules = json!([{"verbs": ["list"], "apiGroups": ["example.com"], "resources": ["*"]}]);
    fixture.grant(None, "lists-widgets", rules, PATH).await;
    for _ in 0..RESTARTS {
        fixture.server.kill();
        fixture.server.start_again();
        first_answer(&fixture).await;
    }
}

/// Asks as jane until there is an answer, which must be the list.
async fn first_answer(fixture: &Fixture) {
    let answer = async {
        loop {
            match fixture.jane.request_text(requests::get(PATH)).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) => panic!("{status:?}"),
                Err(_) => tokio::time::sleep(ASK_PERIOD).await,
            }
        }
    };
    let answered = tokio::time::timeout(DEADLINE, answer).await;
    answered.expect("the server answers");
}
