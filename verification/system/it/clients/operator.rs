//! The example's operators work through churn, and through the end of the server without a warning.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::etcd::Etcd;
use crate::support::server::Server;

/// The time for which sites are written. The server is killed in the middle, and the leader after 12 s and after 24 s
/// if the server answers then: at least once it does.
const DURATION: &str = "28s";

#[tokio::test]
async fn operators_rely_on_an_embedded_store() {
    churn(Server::start(&[])).await;
}

#[tokio::test]
async fn operators_rely_on_etcd() {
    let Some(etcd) = Etcd::start("operators on etcd") else {
        return;
    };
    churn(Server::start(&["--etcd-servers", &etcd.endpoint()])).await;
}

async fn churn(mut server: Server) {
    server.client().await;
    let program = Path::new(env!("CARGO_BIN_EXE_ringwatch")).with_file_name("examples/operator");
    let mut churn = Command::new(&program)
        .args(["churn", "--duration", DURATION])
        .env("KUBECONFIG", server.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let lines = BufReader::new(churn.stdout.take().expect("its output"));
    let mut said = String::new();
    for line in lines.lines() {
        let line = line.expect("a line");
        if line == "halfway" {
            server.kill();
            server.start_again();
        }
        said += &line;
        said.push('\n');
    }
    let ended = churn.wait().expect("its end");
    assert!(ended.success(), "{said}");
    // It tried what it must try.
    for tried in [
        "leaders killed",
        "races",
        "refused by a rule",
        "conflicts",
        "orphans collected",
        "broken watches",
        "every invariant held",
    ] {
        assert!(said.contains(tried), "{tried} in:\n{said}");
    }
}
