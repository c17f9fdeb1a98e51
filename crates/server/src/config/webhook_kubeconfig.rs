//! Reads the kubeconfig of a webhook: a server, its authorities, and a token or client certificate.

use std::path::Path;

use ringwatch_tls::client_identity::ClientIdentity;
use ringwatch_tls::kubeconfig::{Kubeconfig, KubeconfigError, Selection, UnreadSignIn};
use ringwatch_webhook::{ClientConfig, ClientPair, WebhookTarget};

/// The reason why a kubeconfig cannot be used for a webhook.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebhookKubeconfigError {
    /// The kubeconfig cannot be read, or lacks something.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// The server's certificate would not be verified.
    #[error("the server must be an https URL, and prove who it is")]
    UnverifiedServer,
    /// The user has an exec plugin or auth-provider.
    #[error("a webhook is shown a token or a certificate: other credentials are not supported")]
    ExecPlugin,
    /// The user has a certificate without a key, or a key without a certificate.
    #[error("a client certificate and its key go together")]
    HalfOfPair,
    /// The certificate or the key is invalid, or they do not fit together.
    #[error("{0}")]
    Pair(String),
}

/// Reads the connection settings of the current context, for a webhook of this name.
///
/// # Errors
/// [`WebhookKubeconfigError`]
pub(crate) fn read(name: &str, path: &Path) -> Result<ClientConfig, WebhookKubeconfigError> {
    let config = Kubeconfig::read(path)?;
    let selection = config.select(None)?;
    let cluster = selection.cluster;
    if !cluster.server.starts_with("https://") || cluster.insecure_skip_tls_verify {
        return Err(WebhookKubeconfigError::UnverifiedServer);
    }
    let sign_in = selection.user.and_then(|user| user.unread_sign_in());
    if sign_in == Some(UnreadSignIn::Exec) {
        return Err(WebhookKubeconfigError::ExecPlugin);
    }
    Ok(ClientConfig {
        name: name.to_owned(),
        target: WebhookTarget::Server(cluster.server.clone()),
        ca_bundle: selection.certificate_authority()?,
        token: selection.user.and_then(|user| user.token.clone()),
        pair: pair(selection)?,
    })
}

/// Returns the client certificate and key of the user, which must fit together.
fn pair(selection: Selection<'_>) -> Result<Option<ClientPair>, WebhookKubeconfigError> {
    match (selection.client_certificate()?, selection.client_key()?) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let text = String::from_utf8_lossy(&certificate);
            ClientIdentity::read(&text, &key).map_err(WebhookKubeconfigError::Pair)?;
            Ok(Some(ClientPair { certificate, key }))
        }
        _ => Err(WebhookKubeconfigError::HalfOfPair),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn a_certificate_is_shown_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["client".to_owned()]).unwrap();
        std::fs::write(
            folder.path().join("client.key"),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
        let certificate = STANDARD.encode(made.cert.pem());
        let file = folder.path().join("config");
        let read_with = |user: &str| {
            let text = format!(
                "current-context: c\ncontexts: [{{name: c, context: {{cluster: w, user: u}}}}]\n\
                 clusters: [{{name: w, cluster: {{server: 'https://localhost'}}}}]\n\
                 users: [{{name: u, user: {{{user}}}}}]"
            );
            std::fs::write(&file, text).unwrap();
            read("webhook", &file).map_err(|error| error.to_string())
        };
        let both = format!("client-certificate-data: {certificate}, client-key: client.key");
        let pair = read_with(&both).unwrap().pair.expect("a certificate");
        assert_eq!(pair.certificate, made.cert.pem().as_bytes());
        assert_eq!(read_with("token: t").unwrap().pair, None);
        for wrong in [
            format!("client-certificate-data: {certificate}"),
            format!("client-certificate-data: {certificate}, client-key-data: eA=="),
            "exec: {}".to_owned(),
        ] {
            assert!(read_with(&wrong).is_err(), "{wrong}");
        }
    }
}
