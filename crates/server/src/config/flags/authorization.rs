//! The flags of authorization.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ringwatch_apimachinery::duration;
use ringwatch_authorization::{AuthorizationMode, ReviewVersion};

/// Flags of authorization.
#[derive(Args, Clone, Debug)]
pub struct AuthorizationFlags {
    /// Authorization modes, comma-separated: Node (kubelets), RBAC (stored roles and bindings), Webhook (an external
    /// service), AlwaysAllow or AlwaysDeny. One of them has to allow a request. With Node, the admission plugin
    /// NodeRestriction is enabled unless it is disabled explicitly. With AlwaysAllow, requests without credentials are
    /// not served. The default is RBAC, and Node,RBAC if --client-ca-file is given.
    #[arg(long, value_name = "MODES", value_delimiter = ',', value_parser = parse_mode)]
    pub authorization_mode: Vec<ModeFlag>,

    /// Kubeconfig of the webhook of the mode Webhook.
    #[arg(long, value_name = "FILE")]
    pub authorization_webhook_config_file: Option<PathBuf>,

    /// Version of the SubjectAccessReviews that it gets: v1 or v1beta1.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = parse_version)]
    pub authorization_webhook_version: ReviewVersion,

    /// Time for which its answers that allow a request are cached.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub authorization_webhook_cache_authorized_ttl: Duration,

    /// Time for which its other answers are cached.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,

    /// An AuthorizationConfiguration with the authorizers. Instead of the other flags of authorization.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["authorization_mode", "authorization_webhook_config_file",
          "authorization_webhook_version", "authorization_webhook_cache_authorized_ttl",
          "authorization_webhook_cache_unauthorized_ttl"])]
    pub authorization_config: Option<PathBuf>,
}

/// A mode by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeFlag {
    /// A built-in authorizer.
    Mode(AuthorizationMode),
    /// A webhook.
    Webhook,
}

impl AuthorizationFlags {
    /// Checks combinations of flags.
    ///
    /// # Errors
    /// A line for the user.
    pub fn check(&self) -> Result<(), String> {
        let modes = &self.authorization_mode;
        let mut twice = modes.iter().enumerate();
        if let Some((_, mode)) = twice.find(|(place, mode)| modes[..*place].contains(mode)) {
            return Err(format!(
                "authorization-mode {:?} has mode specified more than once",
                mode.name()
            ));
        }
        let asks = self.authorization_mode.contains(&ModeFlag::Webhook);
        match (asks, self.authorization_webhook_config_file.is_some()) {
            (true, false) => Err(
                "--authorization-mode=Webhook needs --authorization-webhook-config-file".to_owned(),
            ),
            (false, true) => Err(
                "--authorization-webhook-config-file needs --authorization-mode=Webhook".to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

impl ModeFlag {
    fn name(self) -> &'static str {
        match self {
            Self::Mode(AuthorizationMode::AlwaysAllow) => "AlwaysAllow",
            Self::Mode(AuthorizationMode::AlwaysDeny) => "AlwaysDeny",
            Self::Mode(AuthorizationMode::Rbac) => "RBAC",
            Self::Mode(AuthorizationMode::Node) => "Node",
            Self::Webhook => "Webhook",
        }
    }
}

fn parse_mode(text: &str) -> Result<ModeFlag, String> {
    match text {
        "AlwaysAllow" => Ok(ModeFlag::Mode(AuthorizationMode::AlwaysAllow)),
        "AlwaysDeny" => Ok(ModeFlag::Mode(AuthorizationMode::AlwaysDeny)),
        "RBAC" => Ok(ModeFlag::Mode(AuthorizationMode::Rbac)),
        "Node" => Ok(ModeFlag::Mode(AuthorizationMode::Node)),
        "Webhook" => Ok(ModeFlag::Webhook),
        _ => Err(
            "no such authorization mode here; use Node, RBAC, Webhook, AlwaysAllow or AlwaysDeny"
                .to_owned(),
        ),
    }
}

fn parse_version(text: &str) -> Result<ReviewVersion, String> {
    match text {
        "v1" => Ok(ReviewVersion::V1),
        "v1beta1" => Ok(ReviewVersion::V1Beta1),
        _ => Err("no such version; use v1 or v1beta1".to_owned()),
    }
}
