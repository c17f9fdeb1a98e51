//! Thousands of changes, followed at once by kube-rs and by the Python client, through restarts of the server and of
//! etcd.

use kube::Client;

use super::writer::{CHANGES, Writer};
use super::{kube_rs, python};
use crate::support::etcd::Etcd;
use crate::support::server::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_follow_an_embedded_store() {
    let (mut server, client) = Server::ready(&[]).await;
    let followers = Followers::start("watches of an embedded store", &client, &server);
    let mut writer = Writer::new(&client);
    for number in 1..=CHANGES {
        writer.write(number).await;
        if number % (CHANGES / 3) == 0 {
            server.stop().await;
            server.start_again();
        }
    }
    followers.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_follow_etcd() {
    let Some(mut etcd) = Etcd::start("watches of etcd") else {
        return;
    };
    let (mut server, client) = Server::ready(&["--etcd-servers", &etcd.endpoint()]).await;
    let followers = Followers::start("watches of etcd", &client, &server);
    let mut writer = Writer::new(&client);
    for number in 1..=CHANGES {
        writer.write(number).await;
        if number == CHANGES / 3 {
            server.stop().await;
            server.start_again();
        }
        if number == 2 * CHANGES / 3 {
            etcd.restart();
        }
    }
    followers.check().await;
}

/// The clients that follow the changes of a server.
struct Followers {
    kube_rs: kube_rs::Follower,
    /// `None` where there is no Python client.
    python: Option<python::Follower>,
}

impl Followers {
    fn start(case: &str, client: &Client, server: &Server) -> Self {
        Self {
            kube_rs: kube_rs::Follower::start(client),
            python: python::Follower::start(case, &server.kubeconfig()),
        }
    }

    /// Waits until they have seen the last change, and checks that they missed none.
    async fn check(self) {
        self.kube_rs.check().await;
        if let Some(python) = self.python {
            python.check();
        }
    }
}
