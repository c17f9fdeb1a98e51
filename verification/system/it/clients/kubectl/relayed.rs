//! kubectl at a relay, while the server behind it is killed.

use ringwatch_testing::eventually::eventually;

use super::*;

#[tokio::test]
async fn a_watch_at_a_relay_outlives_the_server_behind() {
    let (mut upstream, _) = Server::ready(&[]).await;
    let mut relay = Server::relay(&upstream.kubeconfig(), &[]);
    relay.client().await;
    for kubectl in kubectls("kubectl at a relay", &relay) {
        fs::create_dir_all(&kubectl.folder).expect("a folder");
        kubectl.ok(&["create", "configmap", "before"]);
        let mut watching = kubectl
            .command(&["get", "configmaps", "--watch", "-o", "name"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("kubectl");
        let lines = BufReader::new(watching.stdout.take().expect("its output"));
        let mut lines = lines.lines().map(|line| line.expect("a line"));
        assert_eq!(lines.next().as_deref(), Some("configmap/before"));

        let any = "/api/v1/namespaces/default/configmaps?resourceVersion=0";
        let cached = async || kubectl.ok(&["get", "--raw", any]).contains("before");
        eventually(DEADLINE, "the relay's cache has it", cached).await;
        upstream.kill();
        assert!(cached().await);
        let refused = kubectl.fails(&["create", "configmap", "meanwhile"]);
        let unable = "the server is currently unable to handle the request";
        assert!(refused.contains(unable), "{refused}");

        upstream.start_again();
        upstream.client().await;
        kubectl.ok_soon(&["get", "configmaps"]);
        kubectl.ok(&["create", "configmap", "after"]);
        assert_eq!(lines.next().as_deref(), Some("configmap/after"));
        watching.kill().expect("a running kubectl");
        watching.wait().expect("a killed kubectl");
        kubectl.ok(&["delete", "configmap", "before", "after"]);
    }
}
