//! Clients of servers in this process.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use ringwatch_server::InProcessServer;

/// Returns a client of the admin.
pub(crate) async fn client(server: &InProcessServer) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}
