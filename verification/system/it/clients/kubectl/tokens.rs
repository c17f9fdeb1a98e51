//! Tokens of service accounts, asked for and used.

use super::*;

#[tokio::test]
async fn a_token_is_made_and_speaks_for_its_account() {
    let (server, _) = Server::ready(&[]).await;
    for kubectl in kubectls("tokens", &server) {
        fs::create_dir_all(&kubectl.folder).expect("a folder");
        let missing = kubectl.fails(&["create", "token", "default"]);
        assert!(
            missing.contains(r#"serviceaccounts "default" not found"#),
            "{missing}"
        );
        kubectl.ok(&["create", "serviceaccount", "default"]);
        let short = kubectl.fails(&["create", "token", "default", "--duration=1m"]);
        let why = "may not specify a duration less than 10 minutes";
        assert!(short.contains(why), "{short}");

        let token = kubectl.quietly("create token default --duration=1h");
        let user = kubectl.whoami(&server, token.trim()).expect("a user");
        assert_eq!(
            user["status"]["userInfo"]["username"],
            "system:serviceaccount:default:default"
        );
        kubectl.ok(&["create", "secret", "generic", "bound"]);
        let bound = "create token default --bound-object-kind=Secret --bound-object-name=bound";
        let bound = kubectl.quietly(bound);
        kubectl.whoami(&server, bound.trim()).expect("a user");
        let others = kubectl.quietly("create token default --audience=others");
        let refused = kubectl.whoami(&server, others.trim()).expect_err("refused");
        assert!(refused.contains("(Unauthorized)"), "{refused}");
        kubectl.ok(&["delete", "serviceaccount", "default"]);
        kubectl.ok(&["delete", "secret", "bound"]);
    }
}

impl Kubectl {
    /// Returns the user of a token, for a kubectl that has nothing else; or kubectl's error.
    fn whoami(&self, server: &Server, token: &str) -> Result<serde_json::Value, String> {
        let url = self.quietly("config view -o jsonpath={.clusters[0].cluster.server}");
        let authority = server.folder().join("data/pki/ca.crt");
        let output = run(&mut self.command(&[
            "--kubeconfig=/dev/null",
            &format!("--server={url}"),
            &format!("--certificate-authority={}", authority.display()),
            &format!("--token={token}"),
            "auth",
            "whoami",
            "-o",
            "json",
        ]));
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(serde_json::from_slice(&output.stdout).expect("JSON"))
    }
}
