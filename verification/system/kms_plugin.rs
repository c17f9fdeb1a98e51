//! The KMS plugin of the tests as a program, for scripts: `kms_plugin SOCKET` answers on a Unix socket until it is
//! killed.

use std::future::pending;
use std::path::Path;

#[allow(
    dead_code,
    clippy::disallowed_methods,
    reason = "tests ask it more, and abort its task"
)]
#[path = "it/encryption/kms_plugin.rs"]
mod kms_plugin;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let path = std::env::args().nth(1).expect("the path of a socket");
    let _plugin = kms_plugin::Plugin::start(Path::new(&path));
    pending().await
}
