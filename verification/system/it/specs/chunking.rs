//! A list goes on after its version has been compacted, though what follows is of another one.

use http::{Method, StatusCode};
use ringwatch_testing::eventually::{DEADLINE, eventually};
use serde_json::{Value, json};

use super::Admin;

const TEMPLATES: &str = "/api/v1/namespaces/default/podtemplates";
const COUNT: usize = 7;

#[tokio::test]
async fn a_list_goes_on_when_its_version_is_compacted() {
    let admin = Admin::start_with(&["--etcd-compaction-interval", "1s"]).await;
    for number in 0..COUNT {
        let template = json!({"apiVersion": "v1", "kind": "PodTemplate",
            "metadata": {"name": format!("template-{number}")},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}});
        admin.create(TEMPLATES, &template).await;
    }
    let first = admin.get(&format!("{TEMPLATES}?limit=2")).await;
    assert_eq!(names(&first), ["template-0", "template-1"]);

    // Nothing is written meanwhile but what compaction itself notes.
    let token = expired(&admin, text(&first, "continue")).await;
    let second = format!("{TEMPLATES}?limit=2&continue={token}");
    let second = admin.get(&second).await;
    assert_eq!(names(&second), ["template-2", "template-3"]);
    assert_ne!(
        text(&second, "resourceVersion"),
        text(&first, "resourceVersion")
    );
    assert_eq!(second["metadata"]["remainingItemCount"], COUNT - 4);
}

/// Asks for the second page until its version is gone, and gives the token with which it goes on.
async fn expired(admin: &Admin, token: &str) -> String {
    let path = format!("{TEMPLATES}?limit=2&continue={token}");
    let answer = eventually(DEADLINE, "the version is compacted", async || {
        let answer = admin.send(Method::GET, &path, "application/json", "").await;
        (answer.status != StatusCode::OK).then_some(answer)
    });
    let answer = answer.await;
    let (code, reason, _) = answer.failure();
    assert_eq!((code, reason), (410, "Expired"));
    text(&answer.body, "continue").to_owned()
}

fn text<'a>(list: &'a Value, name: &str) -> &'a str {
    list["metadata"][name].as_str().unwrap_or_default()
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().expect("items").iter();
    items
        .map(|it| it["metadata"]["name"].as_str().expect("a name"))
        .collect()
}
