//! Follows the file of `--authentication-config`: a change takes effect without a restart.

use std::sync::Arc;

use futures::StreamExt;
use futures::future::{join_all, pending};
use futures::stream::FuturesUnordered;
use ringwatch::clock::Clock;
use ringwatch_authentication::Authenticator;
use ringwatch_authentication::oidc::{Anonymous, AuthenticationConfig, OidcConfigError};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use ringwatch_tls::watched_file::WatchedFiles;

use super::flags::ServeFlags;
use super::oidc::Provider;

/// The trusted token issuers besides this server, and the requests that are served without credentials.
#[derive(Debug)]
pub(crate) struct TokenIssuers {
    issuers: Issuers,
    anonymous: Anonymous,
}

/// The trusted token issuers besides this server.
#[derive(Debug)]
enum Issuers {
    /// No other issuers.
    None,
    /// The provider that flags configure.
    Provider(Provider),
    /// The issuers of the file of `--authentication-config`.
    File(AuthenticationFile),
}

impl TokenIssuers {
    /// Returns the issuers of the flags, which are of one kind.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub(crate) fn load(flags: &ServeFlags, clock: &Clock) -> Result<Self, StartError> {
        let by_flag = match flags.identity.anonymous_auth {
            Some(false) => Anonymous::Refused,
            Some(true) | None => Anonymous::Served,
        };
        if let Some(file) = AuthenticationFile::load(flags, clock)? {
            return Ok(Self {
                anonymous: file.anonymous.clone().unwrap_or(by_flag),
                issuers: Issuers::File(file),
            });
        }
        let provider = Provider::load(&flags.oidc, clock)?;
        Ok(Self {
            issuers: provider.map_or(Issuers::None, Issuers::Provider),
            anonymous: by_flag,
        })
    }

    /// Returns the requests that are served without credentials. Cannot change while the server runs.
    #[must_use]
    pub(crate) fn anonymous(&self) -> &Anonymous {
        &self.anonymous
    }

    /// Returns true if the file says which requests are served without credentials.
    #[must_use]
    pub(crate) fn file_decides_anonymous(&self) -> bool {
        matches!(&self.issuers, Issuers::File(file) if file.anonymous.is_some())
    }

    /// Serves no requests without credentials.
    pub(crate) fn refuse_anonymous(&mut self) {
        self.anonymous = Anonymous::Refused;
    }

    /// Configures an authenticator with these issuers, and refreshes their keys, until it is dropped.
    pub(crate) async fn follow(self, authenticator: Arc<Authenticator>, clock: Clock) {
        match self.issuers {
            Issuers::None => {}
            Issuers::Provider(provider) => {
                let tokens = vec![Arc::clone(&provider.tokens)];
                authenticator.set_issuers(tokens);
                provider.follow(clock).await;
            }
            Issuers::File(file) => file.follow(authenticator, clock).await,
        }
    }
}

/// The file, and its last valid content.
#[derive(Debug)]
pub(crate) struct AuthenticationFile {
    file: WatchedFiles<1>,
    /// The issuers of service account tokens, which the file must not name.
    taken: Vec<String>,
    /// The requests that it had served without credentials at the start; `None` if it said nothing.
    anonymous: Option<Anonymous>,
    read: Option<ReadResult>,
}

/// The result of reading the file.
#[derive(Debug)]
struct ReadResult {
    providers: Vec<Provider>,
    anonymous: Option<Anonymous>,
}

/// The reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("{0}")]
    Config(#[from] OidcConfigError),
    #[error("issuer.certificateAuthority: {0}")]
    Authority(String),
    #[error(
        "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication \
         configuration file"
    )]
    AnonymousTwice,
    #[error("anonymous: Forbidden: changed from initial configuration file")]
    AnonymousChanged,
}

impl AuthenticationFile {
    /// Reads the file if the flags name one.
    ///
    /// # Errors
    /// It cannot be read or understood.
    fn load(flags: &ServeFlags, clock: &Clock) -> Result<Option<Self>, StartError> {
        let flag = "--authentication-config";
        let Some(path) = flags.identity.authentication_config.clone() else {
            return Ok(None);
        };
        let text = pem::read(&path, flag)?;
        let taken = flags.service_accounts.service_account_issuer.clone();
        let by_flag = flags.identity.anonymous_auth.is_some();
        let read = read(&text, &taken, clock);
        let read = read.and_then(|it| match it.anonymous {
            Some(_) if by_flag => Err(FileError::AnonymousTwice),
            _ => Ok(it),
        });
        let read = read.map_err(|why| {
            StartError::new(
                format!("use the authentication configuration {}", path.display()),
                why,
                "see AuthenticationConfiguration in Kubernetes' documentation",
            )
        })?;
        Ok(Some(Self {
            file: WatchedFiles::new([path], [text]),
            taken,
            anonymous: read.anonymous.clone(),
            read: Some(read),
        }))
    }

    /// Configures the authenticator by the file, now and at each change. The last valid content stays in effect while
    /// the file is invalid or the keys of its issuers have not been fetched.
    async fn follow(mut self, authenticator: Arc<Authenticator>, clock: Clock) {
        let mut next = self.read.take();
        loop {
            let mut following = FuturesUnordered::new();
            if let Some(ReadResult { providers, .. }) = next {
                let tokens = providers.iter().map(|it| Arc::clone(&it.tokens)).collect();
                authenticator.set_issuers(tokens);
                following.extend(providers.into_iter().map(|it| it.follow(clock.clone())));
            }
            let follow = async {
                while following.next().await.is_some() {}
                pending::<()>().await;
            };
            next = tokio::select! {
                () = follow => None,
                changed = self.changed(&clock) => Some(changed),
            };
        }
    }

    /// Waits until the file has different, valid content.
    async fn changed(&mut self, clock: &Clock) -> ReadResult {
        loop {
            let [text] = self.file.changed(clock).await;
            let read = read(&text, &self.taken, clock).and_then(|it| {
                let is_as_before = it.anonymous == self.anonymous;
                is_as_before
                    .then_some(it)
                    .ok_or(FileError::AnonymousChanged)
            });
            let issuers = match read {
                Ok(issuers) => issuers,
                Err(error) => {
                    tracing::warn!(%error, "the authentication configuration is invalid; the previous one is used");
                    self.file.used([text]);
                    continue;
                }
            };
            let prepared = issuers.providers.iter().map(|it| it.prepare(clock));
            let prepared = join_all(prepared).await;
            if prepared.into_iter().all(|known| known) {
                tracing::info!("the authentication configuration has changed");
                self.file.used([text]);
                return issuers;
            }
        }
    }
}

fn read(text: &str, taken: &[String], clock: &Clock) -> Result<ReadResult, FileError> {
    let config = AuthenticationConfig::parse(text, taken)?;
    let providers = config
        .issuers
        .into_iter()
        .map(|it| Provider::new(it, clock));
    let providers: Result<_, _> = providers.collect();
    Ok(ReadResult {
        providers: providers.map_err(FileError::Authority)?,
        anonymous: config.anonymous,
    })
}
