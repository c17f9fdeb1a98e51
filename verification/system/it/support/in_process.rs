//! Clients of servers in this process.

use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use ringwatch_server::InProcessServer;

/// Returns a client of the admin.
pub(crate) async fn client(server: &InProcessServer) -> Client {
    client_with(server, |_| {}).await
}

/// Returns a client with other credentials than the admin's.
pub(crate) async fn client_with(
    server: &InProcessServer,
    change: impl FnOnce(&mut AuthInfo),
) -> Client {
    let mut kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
    change(kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user"));
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}
