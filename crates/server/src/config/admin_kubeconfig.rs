//! The admin's kubeconfig: all that kubectl needs to reach this server, in one file.
//!
//! A file that is not exactly as this program writes it is never written over. One that has the admin's key, as after
//! `kubectl config`, is left with a warning once it is outdated; one of others keeps the server from starting.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringwatch_endpoints::current_credentials::{Credentials, CurrentCredentials};
use ringwatch_tls::error::StartError;
use ringwatch_tls::private_file::{Access, create, replace};

/// Returns the URL at which this machine reaches a server that listens on an address.
#[must_use]
pub(crate) fn local_url(listening: SocketAddr) -> String {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("https://{}", SocketAddr::new(ip, listening.port()))
}

/// Returns the content of a kubeconfig. The authority, certificate and key are in PEM and become part of it.
pub(crate) fn render(url: &str, authority: &str, certificate: &str, key: &str) -> String {
    template(
        url,
        &STANDARD.encode(authority),
        &STANDARD.encode(certificate),
        &STANDARD.encode(key),
    )
}

fn template(url: &str, authority: &str, certificate: &str, key: &str) -> String {
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

/// Returns true if a text is a kubeconfig as [`render`] makes them.
fn is_rendered(text: &str) -> bool {
    let value = |field: &str| {
        let lines = text.lines();
        let mut values = lines.filter_map(|it| it.trim_start().strip_prefix(field));
        values.next().unwrap_or_default()
    };
    let rendered = template(
        value("server: "),
        value("certificate-authority-data: "),
        value("client-certificate-data: "),
        value("client-key-data: "),
    );
    rendered == text
}

/// The failure to write a kubeconfig.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The operating system refuses it; make the folder writable.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A file of others has the name; move it away.
    #[error("there is one that ringwatch did not write")]
    Foreign,
}

/// Writes the admin's kubeconfig, and returns the task that writes it again when credentials change.
pub(crate) fn keep_kubeconfig(
    path: &Path,
    url: &str,
    credentials: &CurrentCredentials,
) -> Result<impl Future<Output = ()> + Send + 'static, StartError> {
    write(path, url, &credentials.borrow()).map_err(|error| {
        StartError::new(
            format!("write {}", path.display()),
            error,
            "choose another --data-dir, or make this one writable and move away what others have put there",
        )
    })?;
    let credentials = credentials.clone();
    Ok(keep(path.to_owned(), url.to_owned(), credentials))
}

/// Writes a kubeconfig for its owner alone, unless it is there already with this content.
///
/// # Errors
/// [`WriteError`]
pub(crate) fn write(path: &Path, url: &str, credentials: &Credentials) -> Result<(), WriteError> {
    let admin = &credentials.admin;
    let content = render(url, &credentials.authority, &admin.certificate, &admin.key);
    let there = match fs::read_to_string(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(create(path, content.as_bytes(), Access::Owner)?);
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(WriteError::Foreign);
        }
        Err(error) => return Err(error.into()),
    };
    if there == content {
        return Ok(());
    }
    if is_rendered(&there) {
        return Ok(replace(path, content.as_bytes(), Access::Owner)?);
    }
    let has = |text: &str| there.contains(&STANDARD.encode(text));
    if !has(&admin.key) {
        return Err(WriteError::Foreign);
    }
    if !(there.contains(url) && has(&credentials.authority) && has(&admin.certificate)) {
        let path = path.display();
        tracing::warn!(%path, "the kubeconfig is outdated and has been edited; move it away for a new one at the next start");
    }
    Ok(())
}

/// Writes a kubeconfig again whenever the credentials have changed.
pub(crate) async fn keep(path: PathBuf, url: String, mut credentials: CurrentCredentials) {
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

    use ringwatch_filters::testing::{certificates, credentials};

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

    #[test]
    fn only_what_was_written_here_is_written_over() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kubeconfig");
        let [old, new] = [(); 2].map(|()| credentials(&certificates()));
        let read = || fs::read_to_string(&path).expect("a file");
        write(&path, "https://127.0.0.1:1", &old.borrow()).expect("written");
        write(&path, "https://127.0.0.1:2", &new.borrow()).expect("written over");
        let own = read();
        assert!(own.contains("127.0.0.1:2"));
        let edited = format!("preferences: {{}}\n{own}");
        fs::write(&path, &edited).expect("edited");
        for url in ["https://127.0.0.1:2", "https://127.0.0.1:3"] {
            write(&path, url, &new.borrow()).expect("left");
            assert_eq!(read(), edited);
        }
        for foreign in ["", "apiVersion: v1\nkind: Config\n", &edited] {
            fs::write(&path, foreign).expect("written");
            let error = write(&path, "https://127.0.0.1:2", &old.borrow()).expect_err(foreign);
            assert!(matches!(error, WriteError::Foreign), "{error}");
            assert_eq!(read(), foreign);
        }
        fs::write(&path, [0xff]).expect("written");
        write(&path, "https://127.0.0.1:2", &old.borrow()).expect_err("no text");
        assert_eq!(fs::read(&path).expect("a file"), [0xff]);
    }
}
