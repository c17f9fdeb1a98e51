//! The flags of authentication.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch_apimachinery::duration;
use ringwatch_webhook::ReviewVersion;

use super::go_values::parse_bool;

/// Flags of authentication.
#[derive(Args, Clone, Debug)]
pub struct IdentityFlags {
    /// Certificate authorities of client certificates, besides the generated one. The common name is the user, the
    /// organisations are the groups.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,

    /// Bearer tokens, one a line: token,user,uid[,"group1,group2"].
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,

    /// Accept the tokens of Secrets of type bootstrap.kubernetes.io/token in kube-system, by which nodes join a
    /// cluster.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub enable_bootstrap_token_auth: bool,

    /// An AuthenticationConfiguration with the issuers whose tokens authenticate users; it is read again when it
    /// changes. Instead of --oidc-*.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["oidc_issuer_url", "oidc_client_id", "oidc_username_claim",
          "oidc_username_prefix", "oidc_groups_claim", "oidc_groups_prefix", "oidc_required_claim", "oidc_signing_algs",
          "oidc_ca_file"])]
    pub authentication_config: Option<PathBuf>,

    /// Serve requests without credentials as user system:anonymous, who may read /livez, /readyz, /healthz and /version
    /// and no more unless roles allow it. The default is true, and false with the authorization mode AlwaysAllow.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub anonymous_auth: Option<bool>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub token_webhook: TokenWebhookFlags,
}

/// Flags of the webhook that authenticates tokens.
#[derive(Args, Clone, Debug)]
pub struct TokenWebhookFlags {
    /// Kubeconfig of a webhook that is asked about tokens that nobody else knows.
    #[arg(long, value_name = "FILE")]
    pub authentication_token_webhook_config_file: Option<PathBuf>,

    /// Version of the TokenReviews that it gets: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = parse_version)]
    pub authentication_token_webhook_version: ReviewVersion,

    /// Time for which its answers are cached.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub authentication_token_webhook_cache_ttl: Duration,
}

fn parse_version(text: &str) -> Result<ReviewVersion, String> {
    match text {
        "v1" => Ok(ReviewVersion::V1),
        "v1beta1" => Ok(ReviewVersion::V1Beta1),
        _ => Err(format!(
            "unsupported authentication webhook version {text:?}, supported versions are \"v1\", \"v1beta1\""
        )),
    }
}
