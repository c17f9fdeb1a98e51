//! Two API servers in this process, as the tests of an operator have them: `cargo run --package ringwatch-server --example in_process_server`.

use std::error::Error;

use ringwatch_server::InProcessServer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let one = InProcessServer::start().await?;
    let other = InProcessServer::builder()
        .flag("--authorization-mode=RBAC")
        .start()
        .await?;
    println!(
        "one server serves at {}, another at {}",
        one.url(),
        other.url()
    );
    // kube-rs: Kubeconfig::from_yaml(&one.kubeconfig()), then Client::try_from(Config::from_custom_kubeconfig(..)).
    println!("{}", one.kubeconfig());
    Ok(())
}
