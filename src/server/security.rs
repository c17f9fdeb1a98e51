//! What the flags say about trust, read from files: certificates, authorities, tokens.

use std::net::IpAddr;
use std::sync::Arc;

use super::aggregation::ProxyTls;
use super::authentication_file::TokenIssuers;
use super::authorization_config::Authorizers;
use super::certificates::{Certificates, Identity, subjects};
use super::error::StartError;
use super::flags::{AggregationFlags, ServeFlags};
use super::tls_client::{self, ClientIdentity};
use super::{extension_authentication, kubelets, service_account_keys, tls};
use crate::authentication::service_accounts::ServiceAccountConfig;
use crate::authentication::{ClientCertificates, TokenFile};
use crate::clock::Clock;
use crate::endpoints::Kubelets;
use crate::registry::ExtensionAuthentication;
use crate::storage::encryption::EncryptionConfig;

/// Who may come in and how the server proves itself.
#[derive(Debug)]
pub struct Security {
    /// The server's side of TLS.
    pub tls: Arc<rustls::ServerConfig>,
    /// Judges client certificates.
    pub clients: ClientCertificates,
    /// Who has which bearer token.
    pub tokens: TokenFile,
    /// How tokens of service accounts are made and judged.
    pub service_accounts: ServiceAccountConfig,
    /// Whose tokens name users besides.
    pub issuers: TokenIssuers,
    /// Who decides what users may do.
    pub authorizers: Authorizers,
    /// What clients check the server against, in PEM.
    pub authority: String,
    /// The admin's identity.
    pub admin: Identity,
    /// What is encrypted in the store.
    pub encryption: EncryptionConfig,
    /// How kubelets are reached.
    pub kubelets: Kubelets,
    /// How the servers of aggregated APIs are spoken with.
    pub proxy: ProxyTls,
    /// What those servers are told.
    pub extension: ExtensionAuthentication,
}

impl Security {
    /// Reads what the flags name, and makes what they do not.
    ///
    /// # Errors
    /// A file cannot be read, written or understood.
    pub fn load(flags: &ServeFlags, clock: &Clock) -> Result<Self, StartError> {
        let pki = flags.pki_dir();
        let subjects = subjects(flags.serving.bind_address, host_name());
        let own = Certificates::load_or_generate(&pki, &subjects, clock.wall())?;
        let client_ca = flags.identity.client_ca_file.as_deref();
        let authorities = tls::authorities(&own.authority, client_ca)?;
        let named = client_ca.map(|path| tls::read(path, "--client-ca-file"));
        let named = named.transpose()?.unwrap_or_default();
        let extension = format!("{}\n{named}", own.authority);
        let extension = extension_authentication::load(&flags.aggregation, extension)?;
        let clients = ClientCertificates::new(authorities).map_err(|error| {
            StartError::new(
                "use the authorities of clients",
                error,
                "check --client-ca-file",
            )
        })?;
        let clients = with_proxies(clients, &flags.aggregation)?;
        let serving = &flags.serving;
        let (server, source, authority) =
            match (&serving.tls_cert_file, &serving.tls_private_key_file) {
                (Some(certificate), Some(key)) => {
                    let identity = Identity {
                        certificate: tls::read(certificate, "--tls-cert-file")?,
                        key: tls::read(key, "--tls-private-key-file")?,
                    };
                    // Whoever signed it, a client that trusts the certificate itself can check it.
                    let authority = identity.certificate.clone();
                    (identity, certificate.clone(), authority)
                }
                _ => (own.server, pki.join("apiserver.crt"), own.authority),
            };
        Ok(Self {
            tls: Arc::new(tls::server_config(
                &server,
                &source.display().to_string(),
                &clients,
            )?),
            clients,
            tokens: tokens(flags)?,
            service_accounts: service_account_keys::load(flags)?,
            issuers: TokenIssuers::load(flags)?,
            authorizers: Authorizers::load(&flags.authorization)?,
            authority,
            admin: own.admin,
            encryption: encryption(flags)?,
            kubelets: kubelets::load(&flags.kubelets)?,
            proxy: proxy(&flags.aggregation)?,
            extension,
        })
    }
}

fn encryption(flags: &ServeFlags) -> Result<EncryptionConfig, StartError> {
    let Some(path) = &flags.encryption_provider_config else {
        return Ok(EncryptionConfig::default());
    };
    let text = tls::read(path, "--encryption-provider-config")?;
    EncryptionConfig::parse(&text).map_err(|why| {
        StartError::new(
            format!("use the encryption configuration {}", path.display()),
            why,
            "see EncryptionConfiguration in Kubernetes' documentation",
        )
    })
}

/// Lets other API servers say who asks, if a flag says which.
fn with_proxies(
    clients: ClientCertificates,
    flags: &AggregationFlags,
) -> Result<ClientCertificates, StartError> {
    let Some(path) = &flags.requestheader_client_ca_file else {
        return Ok(clients);
    };
    let flag = "--requestheader-client-ca-file";
    let authorities = tls_client::authorities(path, flag)?;
    let names = flags.allowed_names();
    clients
        .with_proxies(authorities, names)
        .map_err(|error| StartError::new("use the authorities of proxies", error, flag))
}

fn proxy(flags: &AggregationFlags) -> Result<ProxyTls, StartError> {
    let certificate = flags.proxy_client_cert_file.as_deref();
    let pair = certificate.zip(flags.proxy_client_key_file.as_deref());
    let load = |(certificate, key)| {
        ClientIdentity::load(
            (certificate, "--proxy-client-cert-file"),
            (key, "--proxy-client-key-file"),
        )
    };
    ProxyTls::new(pair.map(load).transpose()?)
        .map_err(|error| StartError::new("speak TLS with API servers", error, "report this"))
}

fn tokens(flags: &ServeFlags) -> Result<TokenFile, StartError> {
    let Some(path) = &flags.identity.token_auth_file else {
        return Ok(TokenFile::default());
    };
    let text = tls::read(path, "--token-auth-file")?;
    TokenFile::parse(&text).map_err(|why| {
        StartError::new(
            format!("use the tokens in {}", path.display()),
            why,
            "write lines of token,user,uid[,\"group1,group2\"]",
        )
    })
}

/// The machine's name, if it can be a name in a certificate.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().to_ascii_lowercase();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
    let usable = !name.is_empty() && name.chars().all(is_plain) && name.parse::<IpAddr>().is_err();
    usable.then_some(name)
}
