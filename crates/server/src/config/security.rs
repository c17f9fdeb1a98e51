//! Reads the files that flags name for TLS, authentication, authorization, admission, encryption and spans.

use std::net::IpAddr;

use futures::future::join_all;
use ringwatch::clock::Clock;
use ringwatch_authentication::oidc::Anonymous;
use ringwatch_authentication::service_accounts::ServiceAccountConfig;
use ringwatch_authentication::{TokenFile, TokenWebhookConfig};
use ringwatch_controllers::aggregation::ProxyTls;
use ringwatch_endpoints::Kubelets;
use ringwatch_endpoints::current_credentials::CurrentCredentials;
use ringwatch_tls::certificates::subjects;
use ringwatch_tls::client_identity::IdentityFiles;
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;

use super::admission_file::AdmissionConfig;
use super::authentication_file::TokenIssuers;
use super::authorization_file::Authorizers;
use super::credentials::CredentialFiles;
use super::encryption_file::EncryptionFile;
use super::flags::{AggregationFlags, ServeFlags, ServingFlags, TokenWebhookFlags};
use super::tracing_file::SpansConfig;
use super::{kubelets, service_account_keys, webhook_kubeconfig};

/// The configuration of TLS, authentication, authorization, admission, encryption and spans.
#[derive(Debug)]
pub(crate) struct Security {
    /// The server's side of TLS, and the authorities of client certificates.
    pub(crate) credentials: CurrentCredentials,
    /// The files of these, and of the client certificates that this server uses.
    pub(crate) files: TrustFiles,
    /// The files that decide about stored objects.
    pub(crate) objects: ObjectFiles,
    /// The files that decide about requests.
    pub(crate) requests: RequestFiles,
    /// The settings by which kubelets are reached, and the TLS client for that.
    pub(crate) kubelets: Kubelets,
    /// The TLS client of connections to the servers of aggregated APIs.
    pub(crate) proxy: ProxyTls,
}

/// The files that decide about stored objects.
#[derive(Debug)]
pub(crate) struct ObjectFiles {
    /// The authorizers, not built yet.
    pub(crate) authorizers: Authorizers,
    /// The configurations of admission plugins.
    pub(crate) admission: AdmissionConfig,
    /// The resources that are encrypted in the store.
    pub(crate) encryption: EncryptionFile,
}

/// The files that decide about requests.
#[derive(Debug)]
pub(crate) struct RequestFiles {
    /// The token file, the token webhook, and the requests that are served without credentials.
    pub(crate) authentication: AuthenticationFiles,
    /// The settings by which tokens of service accounts are issued and verified.
    pub(crate) service_accounts: ServiceAccountConfig,
    /// The trusted issuers of tokens beside this server.
    pub(crate) issuers: TokenIssuers,
    /// The export of spans; `None` if there is none.
    pub(crate) spans: Option<SpansConfig>,
}

/// The parts of an authenticator that files and flags make, but for issuers that may change.
#[derive(Debug)]
pub(crate) struct AuthenticationFiles {
    /// The tokens of `--token-auth-file`.
    pub(crate) tokens: TokenFile,
    /// The webhook that is asked about tokens; `None` if there is none.
    pub(crate) webhook: Option<TokenWebhookConfig>,
    /// The requests that are served without credentials.
    pub(crate) anonymous: Anonymous,
}

/// Files with certificates, keys and authorities, which may change.
#[derive(Debug)]
pub(crate) struct TrustFiles {
    credentials: CredentialFiles,
    identities: Vec<IdentityFiles>,
}

impl TrustFiles {
    /// Follows the files until it is dropped, and updates the credentials made of them.
    pub(crate) async fn follow(self, clock: Clock) {
        let identities = self.identities.into_iter();
        let identities = join_all(identities.map(|it| it.follow(clock.clone())));
        tokio::join!(self.credentials.follow(clock.clone()), identities);
    }
}

impl Security {
    /// Reads the files that the flags name, and generates the missing ones.
    ///
    /// # Errors
    /// A file cannot be read, written or understood.
    pub(crate) fn load(flags: &ServeFlags, clock: &Clock) -> Result<Self, StartError> {
        let api_address = flags.services.service_cluster_ip_range.api_address();
        let addresses = addresses(&flags.serving).into_iter().chain([api_address]);
        let subjects = subjects(&addresses.collect::<Vec<_>>(), host_name());
        let mut issuers = TokenIssuers::load(flags, clock)?;
        let authorizers = Authorizers::load(flags, &mut issuers)?;
        let (kubelets, kubelet_identity) = kubelets::load(&flags.kubelets)?;
        let (proxy, proxy_identity) = proxy(&flags.aggregation)?;
        let credentials = CredentialFiles::load(flags, subjects, clock)?;
        Ok(Self {
            credentials: credentials.current(),
            files: TrustFiles {
                credentials,
                identities: kubelet_identity.into_iter().chain(proxy_identity).collect(),
            },
            objects: ObjectFiles {
                authorizers,
                admission: AdmissionConfig::load(&flags.admission)?,
                encryption: EncryptionFile::load(flags, clock)?,
            },
            requests: RequestFiles {
                authentication: AuthenticationFiles {
                    tokens: tokens(flags)?,
                    webhook: token_webhook(&flags.identity.token_webhook)?,
                    anonymous: issuers.anonymous().clone(),
                },
                service_accounts: service_account_keys::load(flags)?,
                issuers,
                spans: SpansConfig::load(flags.tracing_config_file.as_deref())?,
            },
            kubelets,
            proxy,
        })
    }
}

/// Returns the addresses at which a server is reached.
pub(crate) fn addresses(serving: &ServingFlags) -> Vec<IpAddr> {
    let advertised = serving.advertised_address();
    [serving.bind_address]
        .into_iter()
        .chain(advertised)
        .collect()
}

/// Returns the TLS client of connections to other API servers, and the files of the identity that it shows, if flags
/// name one.
pub(crate) fn proxy(
    flags: &AggregationFlags,
) -> Result<(ProxyTls, Option<IdentityFiles>), StartError> {
    let certificate = flags.proxy_client_cert_file.as_deref();
    let key = flags.proxy_client_key_file.as_deref();
    let files = IdentityFiles::load_named(
        (certificate, "--proxy-client-cert-file"),
        (key, "--proxy-client-key-file"),
    )?;
    let tls = ProxyTls::new(files.as_ref().map(IdentityFiles::identity))
        .map_err(|error| StartError::new("speak TLS with API servers", error, "report this"))?;
    Ok((tls, files))
}

/// Returns the configuration of the webhook that is asked about tokens, if flags name one.
pub(crate) fn token_webhook(
    flags: &TokenWebhookFlags,
) -> Result<Option<TokenWebhookConfig>, StartError> {
    let Some(path) = &flags.authentication_token_webhook_config_file else {
        return Ok(None);
    };
    let to = webhook_kubeconfig::read("token webhook", path).map_err(|why| {
        StartError::new(
            format!("use the webhook of {}", path.display()),
            why,
            "give --authentication-token-webhook-config-file the kubeconfig of a webhook",
        )
    })?;
    let ttl = flags.authentication_token_webhook_cache_ttl;
    Ok(Some(TokenWebhookConfig {
        to,
        version: flags.authentication_token_webhook_version,
        ttl,
    }))
}

/// Reads the file of static tokens, if flags name one.
pub(crate) fn tokens(flags: &ServeFlags) -> Result<TokenFile, StartError> {
    let Some(path) = &flags.identity.token_auth_file else {
        return Ok(TokenFile::default());
    };
    let text = pem::read(path, "--token-auth-file")?;
    TokenFile::parse(&text).map_err(|why| {
        StartError::new(
            format!("use the tokens in {}", path.display()),
            why,
            "write lines of token,user,uid[,\"group1,group2\"]",
        )
    })
}

/// Returns the machine's name, if it can be a name in a certificate.
pub(crate) fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim().to_ascii_lowercase();
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-.".contains(character);
    let usable = !name.is_empty() && name.chars().all(is_plain) && name.parse::<IpAddr>().is_err();
    usable.then_some(name)
}
