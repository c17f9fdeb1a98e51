//! The ServiceAccount plugin's changes of pods, where it is enabled.

use super::*;

#[tokio::test]
async fn pods_run_as_accounts_if_the_plugin_is_enabled() {
    let fixture = Fixture::start(&["--enable-admission-plugins=ServiceAccount"]).await;
    let pods = format!("{CORE}/pods");
    let mut lost = pod("lost", None);
    lost["spec"]["serviceAccountName"] = json!("none");
    assert_eq!(
        ask(&fixture.admin, Method::POST, &pods, &lost).await,
        Err(r#"403 pods "lost" is forbidden: error looking up service account default/none: serviceaccount "none" not found"#.to_owned())
    );
    let created = create(&fixture.admin, "pods", pod("p", None)).await;
    let spec = &created["spec"];
    let volume = &spec["volumes"][0];
    assert_eq!(volume["projected"]["defaultMode"], 420);
    let mount = &spec["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["name"], volume["name"]);
    assert_eq!(
        mount["mountPath"],
        "/var/run/secrets/kubernetes.io/serviceaccount"
    );
    // As a kubelet asks for what it is to mount.
    let source = &volume["projected"]["sources"][0]["serviceAccountToken"];
    let mut asked = bound("Pod", "p");
    asked["expirationSeconds"] = source["expirationSeconds"].clone();
    asked["boundObjectRef"]["uid"] = json!(uid_of(&created));
    let user = fixture.who(&fixture.token(asked).await).await;
    let user = user.expect("a user");
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
}

#[tokio::test]
async fn the_log_says_why_pods_are_refused_where_nobody_makes_accounts() {
    let fixture = Fixture::start(&["--enable-admission-plugins=ServiceAccount"]).await;
    let pods = format!("{CORE}/pods");
    let mut plain = pod("p", None);
    plain["spec"]["serviceAccountName"].take();
    for _ in 0..2 {
        let refused = ask(&fixture.admin, Method::POST, &pods, &plain).await;
        let refused = refused.expect_err("no account");
        assert!(refused.ends_with("serviceaccount \"default\" not found"));
    }
    let why = "--disable-admission-plugins=ServiceAccount";
    fixture.server.logged(why).await;
    let log = fixture.server.log();
    let said = log.matches(why);
    assert_eq!(said.count(), 1, "{log}");
}

#[tokio::test]
async fn pods_need_no_account_without_the_plugin() {
    let fixture = Fixture::start(&["--disable-admission-plugins=ServiceAccount"]).await;
    let mut plain = pod("p", None);
    plain["spec"]["serviceAccountName"].take();
    let created = create(&fixture.admin, "pods", plain).await;
    assert_eq!(created["spec"].get("serviceAccountName"), None);
    assert_eq!(created["spec"].get("volumes"), None);
}
