//! Requests that are made as somebody else.

use http::Request;
use serde_json::{Value, json};

use super::{Fixture, WHO};
use crate::support::requests;

/// Returns the user that the server takes the request for, or its refusal.
async fn who(client: &kube::Client, headers: &[(&str, &str)]) -> Result<Value, String> {
    let mut request = Request::post(WHO);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let review = client
        .request::<Value>(requests::with_document(request, &json!({})))
        .await;
    let review = review.map_err(requests::refusal)?;
    Ok(review["status"]["userInfo"].clone())
}

#[tokio::test]
async fn who_may_impersonate_acts_as_the_other() {
    let fixture = Fixture::start("RBAC").await;
    let robot = [("Impersonate-User", "system:serviceaccount:a:robot")];
    let as_robot = who(&fixture.admin, &robot).await.expect("an answer");
    assert_eq!(
        as_robot,
        json!({"username": "system:serviceaccount:a:robot",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:a", "system:authenticated"]})
    );
    let other = [
        ("Impersonate-User", "joe"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-Project", "blue"),
    ];
    assert_eq!(
        who(&fixture.admin, &other).await.expect("an answer"),
        json!({"username": "joe", "uid": "7", "groups": ["ops", "system:authenticated"],
            "extra": {"project": ["blue"]}})
    );
    for (headers, identity) in [
        (
            &other[1..3],
            r#"UID:"7", Groups:[]string{"ops"}, Extra:map[string][]string(nil)"#,
        ),
        (
            &other[3..],
            r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"project":[]string{"blue"}}"#,
        ),
    ] {
        let nobody = who(&fixture.admin, headers).await;
        let expected = format!(
            "400 requested &user.DefaultInfo{{Name:\"\", {identity}}} without impersonating a user name"
        );
        assert_eq!(nobody.expect_err("nobody to be"), expected);
    }
}

#[tokio::test]
async fn an_action_may_be_allowed_as_another_and_others_not() {
    let fixture = Fixture::start("RBAC").await;
    let joe = ("Impersonate-User", "joe");
    let authentication = "authentication.k8s.io";
    let rules = json!([
        {"verbs": ["impersonate-on:user-info:create"], "apiGroups": [authentication],
            "resources": ["selfsubjectreviews"]},
        {"verbs": ["impersonate:user-info"], "apiGroups": [authentication],
            "resources": ["users"], "resourceNames": ["joe"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let readable = "/api/v1/configmaps";
    fixture.grant(None, "actor", rules, readable).await;
    let acting = who(&fixture.jane, &[joe]).await.expect("an answer");
    assert_eq!(acting["username"], "joe");
    for (headers, words) in [
        (
            [joe, ("Impersonate-Group", "ops")],
            "groups.authentication.k8s.io \"ops\" is forbidden: User \"jane\" cannot impersonate:user-info",
        ),
        (
            [joe, ("Impersonate-Group", "system:masters")],
            "impersonating the system:masters group is not allowed",
        ),
    ] {
        let refused = who(&fixture.jane, &headers).await.expect_err(words);
        assert!(refused.contains(words), "{refused}");
    }
    let request = Request::get(readable).header(joe.0, joe.1).body(Vec::new());
    let answer = fixture.jane.request_text(request.expect("a request")).await;
    let Err(kube::Error::Api(status)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        status.message,
        "configmaps is forbidden: User \"jane\" cannot impersonate-on:user-info:list resource \"configmaps\" in API \
         group \"\" at the cluster scope"
    );
}

#[tokio::test]
async fn each_part_of_an_identity_must_be_allowed() {
    let fixture = Fixture::start("RBAC").await;
    let refused = |resource: &str, group: &str, name: &str| {
        let plural = resource.split('/').next().expect("a resource");
        let of = if group.is_empty() {
            plural.to_owned()
        } else {
            format!("{plural}.{group}")
        };
        Err(format!(
            "403 {of} {name:?} is forbidden: User \"jane\" cannot impersonate resource {resource:?} \
             in API group {group:?} at the cluster scope"
        ))
    };
    let joe = ("Impersonate-User", "joe");
    let first = who(&fixture.jane, &[joe]).await.expect_err("no rights");
    assert_eq!(
        first,
        "403 selfsubjectreviews.authentication.k8s.io is forbidden: User \"jane\" cannot \
         impersonate-on:user-info:create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the \
         cluster scope"
    );

    let rules = json!([
        {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["joe"]},
        {"verbs": ["list"], "apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let readable = "/api/v1/configmaps";
    fixture.grant(None, "actor", rules, readable).await;
    let acting = who(&fixture.jane, &[joe]).await.expect("an answer");
    assert_eq!(acting["username"], "joe");
    for (header, value, refusal) in [
        ("Impersonate-User", "ann", refused("users", "", "ann")),
        (
            "Impersonate-Group",
            "system:masters",
            refused("groups", "", "system:masters"),
        ),
        (
            "Impersonate-Extra-Scopes",
            "all",
            refused("userextras/scopes", "authentication.k8s.io", "all"),
        ),
        (
            "Impersonate-Uid",
            "7",
            refused("uids", "authentication.k8s.io", "7"),
        ),
    ] {
        let mut headers = vec![(header, value)];
        if header != joe.0 {
            headers.push(joe);
        }
        assert_eq!(who(&fixture.jane, &headers).await, refusal, "{header}");
    }
    // What jane may do does not count for whom she acts as.
    let request = Request::get(readable).header(joe.0, joe.1).body(Vec::new());
    let answer = fixture.jane.request_text(request.expect("a request")).await;
    let Err(kube::Error::Api(status)) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(
        status.message,
        r#"configmaps is forbidden: User "joe" cannot list resource "configmaps" in API group "" at the cluster scope"#
    );
}
