//! Two API servers in this process, as the tests of an operator have them: `cargo run --package ringwatch-server
//! --example in_process_server`.

use std::error::Error;
use std::time::Instant;

use ringwatch_server::InProcessServer;

#[allow(
    clippy::disallowed_methods,
    reason = "an example has no clock to be given"
)]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let before = Instant::now();
    let one = InProcessServer::start().await?;
    println!("the first server started in {:?}", before.elapsed());
    let before = Instant::now();
    let other = InProcessServer::builder()
        .flag("--authorization-mode=RBAC")
        .start()
        .await?;
    println!("the second server started in {:?}", before.elapsed());
    println!(
        "one server serves at {}, another at {}",
        one.url(),
        other.url()
    );
    // kube-rs: Kubeconfig::from_yaml(&one.kubeconfig()), then Client::try_from(Config::from_custom_kubeconfig(..)).
    println!("{}", one.kubeconfig());
    Ok(())
}
