//! The flags of `ringwatch relay`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser};
use ringwatch_apimachinery::{GroupVersion, duration};
use ringwatch_relay::ReviewTtls;

use super::go_values::parse_bool;
use super::{
    AggregationFlags, ConfigFlags, IdentityFlags, LimitFlags, LogFormat, RequestHeaderFlags,
    ServeFlags, ServingFlags, TlsFlags,
};

/// Serve a watch cache of another Kubernetes API server, and pass on to it whatever is not cached.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = true, args_override_self = true)]
pub struct RelayFlags {
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub configuration: ConfigFlags,

    /// Kubeconfig of the API server whose objects are served, with this relay's own credentials there: it needs to get,
    /// list and watch what it caches, to create TokenReviews and SubjectAccessReviews, and to impersonate users who
    /// show a certificate. Credentials follow the file and those that it names.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: PathBuf,

    /// Resources whose caches are filled at the start, as PLURAL.VERSION[.GROUP], comma-separated, such as
    /// pods.v1,deployments.v1.apps. All others are cached once somebody asks for them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = CachedResource::parse)]
    pub cache: Vec<CachedResource>,

    /// Cache Secrets too. Otherwise requests for them are passed on.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub cache_secrets: bool,

    /// Directory of the generated certificates and of a kubeconfig for this relay. Created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "ringwatch-relay-data")]
    pub data_dir: PathBuf,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub serving: ServingFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub tls: TlsFlags,

    /// Certificate authorities of client certificates, besides the generated one. The common name is the user, the
    /// organisations are the groups.
    #[arg(long, value_name = "FILE")]
    pub client_ca_file: Option<PathBuf>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub request_header: RequestHeaderFlags,

    /// Time for which the upstream's answer is kept whose a token is. A revoked token is accepted for as long.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration::parse)]
    pub authentication_token_webhook_cache_ttl: Duration,

    /// Time for which the upstream's answer is kept that a user may do something. A right that is taken away lasts for
    /// as long.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub authorization_webhook_cache_authorized_ttl: Duration,

    /// Time for which its answers are kept that refuse something.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub authorization_webhook_cache_unauthorized_ttl: Duration,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub limits: LimitFlags,

    /// A TracingConfiguration with the collector to which spans of requests are sent (OTLP over gRPC), and the rate at
    /// which requests are sampled. Without it there are no spans.
    #[arg(long, value_name = "FILE")]
    pub tracing_config_file: Option<PathBuf>,

    /// Form of log lines on standard error: text, or json with one object a line, as kube-apiserver writes them.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = LogFormat::parse)]
    pub logging_format: LogFormat,

    /// Log level on standard error: 0 warnings, 1 and 2 information, 4 every request, 6 everything.
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 0)]
    pub verbosity: u8,
}

/// A resource in one version of its API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedResource {
    /// The plural name.
    pub plural: String,
    /// The group and version.
    pub version: GroupVersion,
}

impl CachedResource {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(plural), Some(version), group) if !plural.is_empty() && is_version(version) => {
                Ok(Self {
                    plural: plural.to_owned(),
                    version: GroupVersion::new(group.unwrap_or_default(), version),
                })
            }
            _ => Err("write PLURAL.VERSION[.GROUP], such as pods.v1 or deployments.v1.apps".into()),
        }
    }
}

/// Returns true for a version such as `v1` or `v1beta1`.
fn is_version(text: &str) -> bool {
    let rest = text.strip_prefix('v').unwrap_or_default();
    rest.starts_with(|first: char| first.is_ascii_digit())
}

#[derive(Parser, Debug)]
struct Defaults {
    #[command(flatten)]
    flags: ServeFlags,
}

impl RelayFlags {
    /// Checks combinations of flags.
    ///
    /// # Errors
    /// A line for the user.
    pub fn check(&self) -> Result<(), String> {
        self.tls.check(self.serving.disable_http2_serving)?;
        if self.limits.request_timeout.is_zero() {
            return Err("--request-timeout must be longer than 0".to_owned());
        }
        Ok(())
    }

    /// Returns the times for which answers of the upstream are kept.
    #[must_use]
    pub fn review_ttls(&self) -> ReviewTtls {
        ReviewTtls {
            token: self.authentication_token_webhook_cache_ttl,
            allowed: self.authorization_webhook_cache_authorized_ttl,
            refused: self.authorization_webhook_cache_unauthorized_ttl,
        }
    }

    /// Returns the flags with which `serve` would listen, find users and limit requests as this relay does.
    #[must_use]
    pub(crate) fn as_served(&self) -> ServeFlags {
        let defaults = Defaults::parse_from(["ringwatch"]).flags;
        ServeFlags {
            data_dir: self.data_dir.clone(),
            serving: self.serving.clone(),
            tls: self.tls.clone(),
            identity: IdentityFlags {
                client_ca_file: self.client_ca_file.clone(),
                ..defaults.identity
            },
            aggregation: AggregationFlags {
                request_header: self.request_header.clone(),
                ..defaults.aggregation
            },
            limits: self.limits.clone(),
            ..defaults
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_named_with_their_versions() {
        let parsed = |text| CachedResource::parse(text).map(|it| (it.plural, it.version));
        assert_eq!(
            parsed("pods.v1"),
            Ok(("pods".to_owned(), GroupVersion::new("", "v1")))
        );
        assert_eq!(
            parsed("things.v1beta1.example.com"),
            Ok((
                "things".to_owned(),
                GroupVersion::new("example.com", "v1beta1")
            ))
        );
        for wrong in ["", "pods", ".v1", "deployments.apps", "pods.version"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
