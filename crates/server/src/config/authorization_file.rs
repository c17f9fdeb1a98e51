//! Builds the authorizers that flags or the file of `--authorization-config` configure, and follows that file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ringwatch::clock::Clock;
use ringwatch_apimachinery::duration;
use ringwatch_authentication::oidc::Anonymous;
use ringwatch_authorization::{
    AuthorizationMode, Authorizer, AuthorizerStep, Conditions, FailurePolicy, ReviewVersion,
    WebhookAuthorizer, WebhookConfig,
};
use ringwatch_tls::error::StartError;
use ringwatch_tls::pem;
use ringwatch_tls::watched_file::WatchedFiles;
use ringwatch_webhook::WebhookClient;
use serde::Deserialize;

use super::authentication_file::TokenIssuers;
use super::flags::{AuthorizationFlags, ModeFlag, ServeFlags};
use super::webhook_kubeconfig;

const GROUP: &str = "apiserver.config.k8s.io";
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const KIND: &str = "AuthorizationConfiguration";
const ANONYMOUS: &str = "anonymous users are not allowed with the AlwaysAllow authorizer";

/// Default timeout of a webhook call, and default times for which answers are cached.
const TIMEOUT: Duration = Duration::from_secs(30);
const AUTHORIZED_TTL: Duration = Duration::from_secs(300);
const UNAUTHORIZED_TTL: Duration = Duration::from_secs(30);

/// The configured authorizers in the order in which they are asked, and the file that configures them, if one does.
#[derive(Debug)]
pub(crate) struct Authorizers {
    described: Vec<StepConfig>,
    file: Option<WatchedFiles<1>>,
    serves_anonymous: bool,
}

#[derive(Debug)]
enum StepConfig {
    Mode(AuthorizationMode),
    Webhook(Box<WebhookConfig>),
}

/// An error in the file.
#[derive(Debug, thiserror::Error)]
enum ConfigError {
    #[error("{0}")]
    Read(String),
    #[error("authorizers[{place}].{what}")]
    Authorizer { place: usize, what: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    #[serde(default)]
    authorizers: Vec<AuthorizerFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorizerFile {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    name: String,
    webhook: Option<WebhookFile>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WebhookFile {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: Option<String>,
    cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: Option<String>,
    cache_unauthorized_requests: Option<bool>,
    #[serde(default)]
    timeout: String,
    #[serde(default)]
    subject_access_review_version: String,
    #[serde(default)]
    match_condition_subject_access_review_version: String,
    #[serde(default)]
    failure_policy: String,
    connection_info: ConnectionInfo,
    #[serde(default)]
    match_conditions: Vec<MatchCondition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConnectionInfo {
    #[serde(rename = "type", default)]
    kind: String,
    kube_config_file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatchCondition {
    expression: String,
}

impl Authorizers {
    /// Reads what flags or the file say. With AlwaysAllow it makes the server refuse requests without credentials.
    ///
    /// # Errors
    /// A file cannot be read or understood, or files contradict each other: anybody could do everything.
    pub(crate) fn load(flags: &ServeFlags, issuers: &mut TokenIssuers) -> Result<Self, StartError> {
        let mut authorizers = Self::read(flags)?;
        if allows_everything(&authorizers.described) {
            if *issuers.anonymous() != Anonymous::Refused {
                if issuers.file_decides_anonymous() {
                    return Err(StartError::new(
                        "serve requests without credentials",
                        ANONYMOUS,
                        "use the authorization mode RBAC, or leave `anonymous` out of --authentication-config",
                    ));
                }
                tracing::warn!(
                    "AnonymousAuth is not allowed with the AlwaysAllow authorizer. Resetting AnonymousAuth to false. You \
                     should use a different authorizer"
                );
                issuers.refuse_anonymous();
            }
            tracing::warn!(
                "everybody who has a certificate or token may do everything, since the authorization mode is AlwaysAllow; \
                 RBAC is the default"
            );
        }
        authorizers.serves_anonymous = *issuers.anonymous() != Anonymous::Refused;
        Ok(authorizers)
    }

    fn read(all: &ServeFlags) -> Result<Self, StartError> {
        let flags = &all.authorization;
        let (described, file) = if let Some(path) = &flags.authorization_config {
            let text = pem::read(path, "--authorization-config")?;
            let described = parse(&text).map_err(|why| {
                StartError::new(
                    format!("use the authorization configuration {}", path.display()),
                    why,
                    "see AuthorizationConfiguration in Kubernetes' documentation",
                )
            })?;
            (described, Some(WatchedFiles::new([path.clone()], [text])))
        } else {
            let mut described = Vec::new();
            for mode in all.authorization_modes() {
                described.push(match mode {
                    ModeFlag::Mode(mode) => StepConfig::Mode(mode),
                    ModeFlag::Webhook => StepConfig::Webhook(Box::new(by_flags(flags)?)),
                });
            }
            (described, None)
        };
        Ok(Self {
            described,
            file,
            serves_anonymous: false,
        })
    }

    /// Builds the authorizer, which calls webhooks by `client`, and the controller that follows the file, if there is
    /// one.
    pub(crate) fn build(
        self,
        client: &Arc<dyn WebhookClient>,
        clock: &Clock,
    ) -> (Arc<Authorizer>, Option<AuthorizationFile>) {
        let authorizer = Arc::new(Authorizer::new(steps(self.described, client, clock)));
        let file = self.file.map(|file| AuthorizationFile {
            file,
            serves_anonymous: self.serves_anonymous,
            authorizer: Arc::clone(&authorizer),
            client: Arc::clone(client),
            clock: clock.clone(),
        });
        (authorizer, file)
    }
}

/// A controller that configures the authorizer by the file, without a restart.
#[derive(Debug)]
pub(crate) struct AuthorizationFile {
    file: WatchedFiles<1>,
    serves_anonymous: bool,
    authorizer: Arc<Authorizer>,
    client: Arc<dyn WebhookClient>,
    clock: Clock,
}

impl AuthorizationFile {
    /// Configures the authorizer at each change of the file, until it is dropped. The last valid content stays in
    /// effect while the file is invalid.
    pub(crate) async fn follow(mut self) {
        loop {
            let [text] = self.file.changed(&self.clock).await;
            let described = parse(&text).map_err(|error| error.to_string());
            let used = described.and_then(|it| {
                check_anonymous(&it, self.serves_anonymous)?;
                let steps = steps(it, &self.client, &self.clock);
                self.authorizer.set_steps(steps)
            });
            match used {
                Ok(()) => tracing::info!("the authorization configuration has changed"),
                Err(error) => {
                    tracing::warn!(
                        error,
                        "the authorization configuration is invalid; the previous one is used"
                    );
                }
            }
            self.file.used([text]);
        }
    }
}

/// Refuses AlwaysAllow together with anonymous requests: everybody could do everything.
fn check_anonymous(described: &[StepConfig], serves_anonymous: bool) -> Result<(), String> {
    if serves_anonymous && allows_everything(described) {
        return Err(ANONYMOUS.to_owned());
    }
    Ok(())
}

fn allows_everything(described: &[StepConfig]) -> bool {
    let mut described = described.iter();
    described.any(|it| matches!(it, StepConfig::Mode(AuthorizationMode::AlwaysAllow)))
}

fn steps(
    described: Vec<StepConfig>,
    client: &Arc<dyn WebhookClient>,
    clock: &Clock,
) -> Vec<AuthorizerStep> {
    let step = |described| match described {
        StepConfig::Mode(mode) => AuthorizerStep::Mode(mode),
        StepConfig::Webhook(config) => {
            let client = Arc::clone(client);
            let webhook = WebhookAuthorizer::new(*config, client, clock.clone());
            AuthorizerStep::Webhook(Arc::new(webhook))
        }
    };
    described.into_iter().map(step).collect()
}

fn parse(text: &str) -> Result<Vec<StepConfig>, ConfigError> {
    let file: File =
        serde_saphyr::from_str(text).map_err(|error| ConfigError::Read(error.to_string()))?;
    let version = file
        .api_version
        .strip_prefix(GROUP)
        .and_then(|it| it.strip_prefix('/'));
    if file.kind != KIND || !version.is_some_and(|it| VERSIONS.contains(&it)) {
        let found = format!("{}, Kind={}", file.api_version, file.kind);
        return Err(ConfigError::Read(format!(
            "it is no {KIND} of {GROUP}, but {found}"
        )));
    }
    if file.authorizers.is_empty() {
        let why = "authorizers: Required value: at least one authorization mode must be defined";
        return Err(ConfigError::Read(why.to_owned()));
    }
    let mut seen: Vec<(String, String)> = Vec::new();
    let mut described = Vec::new();
    for (place, authorizer) in file.authorizers.into_iter().enumerate() {
        let wrong = |what: String| ConfigError::Authorizer { place, what };
        let (kind, name) = (authorizer.kind.clone(), authorizer.name.clone());
        if name.is_empty() {
            return Err(wrong("name: Required value".to_owned()));
        }
        let twice = |(other, named): &(String, String)| {
            *named == name || (*other == kind && kind != "Webhook")
        };
        if seen.iter().any(twice) {
            return Err(wrong(format!("name: Duplicate value: {kind} {name:?}")));
        }
        seen.push((kind, name));
        described.push(authorizer.read().map_err(wrong)?);
    }
    Ok(described)
}

impl AuthorizerFile {
    fn read(self) -> Result<StepConfig, String> {
        let mode = match self.kind.as_str() {
            "Webhook" => {
                let webhook = self.webhook.ok_or("webhook: Required value")?;
                let config = webhook
                    .read(self.name)
                    .map_err(|why| format!("webhook.{why}"))?;
                return Ok(StepConfig::Webhook(Box::new(config)));
            }
            "Node" => AuthorizationMode::Node,
            "RBAC" => AuthorizationMode::Rbac,
            "AlwaysAllow" => AuthorizationMode::AlwaysAllow,
            "AlwaysDeny" => AuthorizationMode::AlwaysDeny,
            other => return Err(format!("type: Unsupported value: {other:?}")),
        };
        match self.webhook {
            None => Ok(StepConfig::Mode(mode)),
            Some(_) => {
                Err("webhook: Invalid value: may only be specified when type=Webhook".to_owned())
            }
        }
    }
}

impl WebhookFile {
    fn read(self, name: String) -> Result<WebhookConfig, String> {
        let time = |field: &str, text: &str| {
            duration::parse(text)
                .map_err(|error| format!("{field}: Invalid value: {text:?}: {error}"))
        };
        // As in Kubernetes, a zero time means the default; caching is disabled by another field.
        let ttl = |field,
                   text: Option<String>,
                   cached: Option<bool>,
                   default|
         -> Result<Duration, String> {
            if cached == Some(false) {
                return Ok(Duration::ZERO);
            }
            let written = text.map_or(Ok(default), |text| time(field, &text))?;
            Ok(if written.is_zero() { default } else { written })
        };
        if self.timeout.is_empty() {
            return Err("timeout: Required value".to_owned());
        }
        let timeout = time("timeout", &self.timeout)?;
        if timeout.is_zero() || timeout > TIMEOUT {
            return Err(format!(
                "timeout: Invalid value: {:?}: must be more than 0s and <= 30s",
                self.timeout
            ));
        }
        let version = |field, text: &str| match text {
            "v1" => Ok(ReviewVersion::V1),
            "v1beta1" => Ok(ReviewVersion::V1Beta1),
            other => Err(format!(
                "{field}: Unsupported value: {other:?}: supported values: \"v1\", \"v1beta1\""
            )),
        };
        if !self.match_conditions.is_empty()
            && self.match_condition_subject_access_review_version != "v1"
        {
            return Err("matchConditionSubjectAccessReviewVersion: must be \"v1\" if match conditions are specified".to_owned());
        }
        let failure_policy = match self.failure_policy.as_str() {
            "NoOpinion" => FailurePolicy::NoOpinion,
            "Deny" => FailurePolicy::Deny,
            other => {
                return Err(format!(
                    "failurePolicy: Unsupported value: {other:?}: supported values: \"Deny\", \"NoOpinion\""
                ));
            }
        };
        Ok(WebhookConfig {
            name,
            to: self.connection_info.read()?,
            version: version(
                "subjectAccessReviewVersion",
                &self.subject_access_review_version,
            )?,
            timeout,
            authorized_ttl: ttl(
                "authorizedTTL",
                self.authorized_ttl,
                self.cache_authorized_requests,
                AUTHORIZED_TTL,
            )?,
            unauthorized_ttl: ttl(
                "unauthorizedTTL",
                self.unauthorized_ttl,
                self.cache_unauthorized_requests,
                UNAUTHORIZED_TTL,
            )?,
            failure_policy,
            conditions: conditions(&self.match_conditions)?,
        })
    }
}

fn conditions(written: &[MatchCondition]) -> Result<Conditions, String> {
    let texts = written.iter().map(|it| it.expression.clone());
    Conditions::read(texts).map_err(|(place, why)| {
        format!("matchConditions[{place}].expression: Invalid value: {why}")
    })
}

impl ConnectionInfo {
    fn read(self) -> Result<ringwatch_webhook::ClientConfig, String> {
        let path = match (self.kind.as_str(), self.kube_config_file) {
            ("KubeConfigFile", Some(path)) => path,
            ("KubeConfigFile", None) => {
                return Err("connectionInfo.kubeConfigFile: Required value".to_owned());
            }
            (other, _) => {
                return Err(format!(
                    "connectionInfo.type: Unsupported value: {other:?}: supported values: \"KubeConfigFile\""
                ));
            }
        };
        webhook_kubeconfig::read("authorization webhook", &path).map_err(|why| {
            let path = path.display();
            format!("connectionInfo.kubeConfigFile: Invalid value: {path}: {why}")
        })
    }
}

/// Returns the configuration of the webhook that the flags name.
fn by_flags(flags: &AuthorizationFlags) -> Result<WebhookConfig, StartError> {
    let path = flags.authorization_webhook_config_file.as_deref();
    let path = path.unwrap_or_else(|| Path::new(""));
    let to = webhook_kubeconfig::read("authorization webhook", path).map_err(|why| {
        StartError::new(
            format!("use the kubeconfig of the authorization webhook {}", path.display()),
            why,
            "give --authorization-webhook-config-file one with a server, its authorities and perhaps a token",
        )
    })?;
    Ok(WebhookConfig {
        name: "default".to_owned(),
        to,
        version: flags.authorization_webhook_version,
        timeout: TIMEOUT,
        authorized_ttl: flags.authorization_webhook_cache_authorized_ttl,
        unauthorized_ttl: flags.authorization_webhook_cache_unauthorized_ttl,
        failure_policy: FailurePolicy::NoOpinion,
        conditions: Conditions::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(authorizers: &str) -> Result<Vec<StepConfig>, String> {
        let text = format!("apiVersion: {GROUP}/v1\nkind: {KIND}\nauthorizers:\n{authorizers}");
        super::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn authorizers_are_described_in_their_order() {
        let read = parse("- {type: Node, name: node}\n- {type: RBAC, name: rbac}");
        let modes = read.expect("a configuration");
        assert!(matches!(
            modes[..],
            [
                StepConfig::Mode(AuthorizationMode::Node),
                StepConfig::Mode(AuthorizationMode::Rbac)
            ]
        ));
    }

    #[test]
    fn nobody_without_credentials_may_do_everything() {
        let described =
            |kind: &str| parse(&format!("- {{type: {kind}, name: a}}")).expect("a mode");
        assert!(check_anonymous(&described("AlwaysAllow"), true).is_err());
        assert!(check_anonymous(&described("AlwaysAllow"), false).is_ok());
        assert!(check_anonymous(&described("RBAC"), true).is_ok());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let webhook =
            |members: &str| format!("- {{type: Webhook, name: w, webhook: {{{members}}}}}");
        let usual = "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /none}, timeout: 3s, \
                     subjectAccessReviewVersion: v1, failurePolicy: Deny";
        for (text, words) in [
            (" []".to_owned(), "at least one"),
            ("- {type: RBAC}".to_owned(), "authorizers[0].name: Required"),
            (
                "- {type: Other, name: a}".to_owned(),
                "type: Unsupported value",
            ),
            (
                "- {type: RBAC, name: a}\n- {type: RBAC, name: b}".to_owned(),
                "Duplicate",
            ),
            ("- {type: Webhook, name: w}".to_owned(), "webhook: Required"),
            (webhook(usual), "kubeConfigFile: Invalid value: /none"),
            (
                webhook(&usual.replace("3s", "31s")),
                "timeout: Invalid value",
            ),
            (
                webhook(&usual.replace("Deny", "Fail")),
                "failurePolicy: Unsupported value",
            ),
            (
                webhook(&format!(
                    "{usual}, matchConditions: [{{expression: 'true'}}]"
                )),
                "matchConditionSubjectAccessReviewVersion",
            ),
        ] {
            let error = parse(&text).expect_err(&text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
