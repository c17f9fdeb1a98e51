//! Flow schemas tell whether their priority level is there; and what no table is made of is not sent as one.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Admin;

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";

fn condition(schema: &Value) -> (&str, &str, &str) {
    let conditions = schema["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    let found = conditions.find(|it| it["type"] == "Dangling");
    let text = |name: &str| found.map_or("", |it| it[name].as_str().unwrap_or_default());
    (text("status"), text("reason"), text("message"))
}

#[tokio::test]
async fn flow_schemas_tell_whether_their_level_is_there() {
    let admin = Admin::start().await;
    let list = admin.get(SCHEMAS).await;
    for schema in list["items"].as_array().expect("schemas") {
        let level = &schema["spec"]["priorityLevelConfiguration"]["name"];
        let message = format!(
            "This FlowSchema references the PriorityLevelConfiguration object named {level} and it exists"
        );
        assert_eq!(condition(schema), ("False", "Found", &*message));
    }
    let schema = json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
        "metadata": {"name": "mine"},
        "spec": {"matchingPrecedence": 1000, "priorityLevelConfiguration": {"name": "mine"},
            "rules": [{"subjects": [{"kind": "User", "user": {"name": "noxu"}}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}});
    admin.create(SCHEMAS, &schema).await;
    let path = format!("{SCHEMAS}/mine");
    let found = admin.until(&path, |it| condition(it).0 == "True").await;
    let message = "This FlowSchema references the PriorityLevelConfiguration object named \"mine\" but there is no such object";
    assert_eq!(condition(&found), ("True", "NotFound", message));
    let level = json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "PriorityLevelConfiguration",
        "metadata": {"name": "mine"},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1,
            "limitResponse": {"type": "Reject"}}}});
    admin.create(LEVELS, &level).await;
    admin.until(&path, |it| condition(it).0 == "False").await;
    no_table_of_a_review(&admin).await;
}

async fn no_table_of_a_review(admin: &Admin) {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let ask = async |accepted: &str| {
        let types = ("application/json", accepted);
        admin.ask((Method::POST, path), types, &review).await
    };
    let refused = ask(table).await;
    let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    assert_eq!(refused.failure(), (406, "NotAcceptable", message));
    let either = ask(&format!("{table},application/json")).await;
    assert_eq!(either.status, StatusCode::CREATED, "{}", either.body);
    assert_eq!(either.body["status"]["allowed"], true);
}
