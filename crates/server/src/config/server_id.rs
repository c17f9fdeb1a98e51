//! The identity of this server among those of a cluster, as metrics and traces show it.

use data_encoding::BASE32_NOPAD;
use sha2::{Digest, Sha256};

/// Returns the identity of the server on this machine.
pub(crate) fn server_id() -> String {
    let name = rustix::system::uname();
    of_machine(&name.nodename().to_string_lossy())
}

/// Returns the identity of a server on a machine; the name may be empty.
///
/// Ported from `NewConfig` in `staging/src/k8s.io/apiserver/pkg/server/config.go`, Kubernetes 1.36.
fn of_machine(host_name: &str) -> String {
    let mut digest = Sha256::new();
    for part in [host_name, "kube-apiserver"] {
        let bytes = u16::try_from(part.len()).unwrap_or(u16::MAX);
        digest.update(bytes.to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finalize();
    let text = BASE32_NOPAD.encode(&digest[..16]).to_ascii_lowercase();
    format!("apiserver-{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_kube_apiservers() {
        assert_eq!(of_machine("node-1"), "apiserver-lgabes5ywnaqeagh5dny4zlzs4");
    }
}
