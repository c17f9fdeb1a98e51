//! The admin's kubeconfig: all that kubectl needs to reach this server, in one file.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringwatch_apiserver::transport::current_credentials::{Credentials, CurrentCredentials};
use ringwatch_tls::private_file::{Access, replace};

/// Returns the URL at which this machine reaches a server that listens on an address.
#[must_use]
pub(super) fn local_url(listening: SocketAddr) -> String {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, listening.port()))
}

/// Returns the content of a kubeconfig. The authority, certificate and key are in PEM and become part of it.
pub(super) fn render(url: &str, authority: &str, certificate: &str, key: &str) -> String {
    let authority = STANDARD.encode(authority);
    let certificate = STANDARD.encode(certificate);
    let key = STANDARD.encode(key);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: ringwatch
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: ringwatch
  context:
    cluster: ringwatch
    user: kubernetes-admin
current-context: ringwatch
"
    )
}

/// Writes a kubeconfig for its owner alone, unless it is there already with this content.
///
/// # Errors
/// The error of the operating system.
pub(super) fn write(path: &Path, url: &str, credentials: &Credentials) -> io::Result<()> {
    let admin = &credentials.admin;
    let content = render(url, &credentials.authority, &admin.certificate, &admin.key);
    if fs::read_to_string(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    replace(path, content.as_bytes(), Access::Owner)
}

/// Writes a kubeconfig again whenever the credentials have changed.
pub(super) async fn keep(path: PathBuf, url: String, mut credentials: CurrentCredentials) {
    while credentials.changed().await.is_ok() {
        let credentials = Arc::clone(&credentials.borrow_and_update());
        if let Err(error) = write(&path, &url, &credentials) {
            let path = path.display();
            tracing::warn!(%error, %path, "the kubeconfig cannot be written, and may be outdated");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use ringwatch_apiserver::transport::testing::{certificates, credentials};

    use super::*;

    #[test]
    fn any_address_is_reached_by_loopback() {
        for (listening, url) in [
            ("0.0.0.0:6443", "https://127.0.0.1:6443"),
            ("[::]:1", "https://[::1]:1"),
            ("10.0.0.1:2", "https://10.0.0.1:2"),
        ] {
            assert_eq!(local_url(listening.parse().expect("an address")), url);
        }
    }

    #[test]
    fn the_file_is_yaml_and_private() {
        let content = render("https://127.0.0.1:1", "authority", "certificate", "key");
        let parsed: serde_json::Value = serde_saphyr::from_str(&content).expect("YAML");
        assert_eq!(
            parsed.pointer("/clusters/0/cluster/certificate-authority-data"),
            Some(&STANDARD.encode("authority").into())
        );
        assert_eq!(
            parsed.pointer("/users/0/user/client-key-data"),
            Some(&STANDARD.encode("key").into())
        );
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kubeconfig");
        let credentials = credentials(&certificates());
        write(&path, "https://127.0.0.1:1", &credentials.borrow()).expect("written");
        let metadata = fs::metadata(&path).expect("a file");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
}
