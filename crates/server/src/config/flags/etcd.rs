//! The flags of the store.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch_apimachinery::duration;
use ringwatch_registry::DeletionSettings;

use super::etcd_overrides::{EtcdOverride, parse_etcd_server};
use super::go_values::parse_bool;

/// The default quota of the embedded store: the most that etcd recommends.
const QUOTA_BACKEND_BYTES_DEFAULT: i64 = 8 << 30;
/// The timeout of the check of readiness that kube-apiserver uses for 0.
const READYCHECK_TIMEOUT_OF_ZERO: Duration = Duration::from_secs(2);

/// Flags of the store.
#[derive(Args, Clone, Debug)]
pub struct EtcdFlags {
    /// The etcd servers to connect to (scheme://host:port), comma-separated.
    #[arg(long, value_name = "URLS", value_delimiter = ',', value_parser = parse_etcd_server)]
    pub etcd_servers: Vec<String>,

    /// Other etcd servers for some built-in resources, as GROUP/RESOURCE#URL;URL, comma-separated; the core group is
    /// empty, as in /events#http://HOST:2379. The other flags of etcd apply to them too. These resources have no watch
    /// cache.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = EtcdOverride::parse)]
    pub etcd_servers_overrides: Vec<EtcdOverride>,

    /// Prefix of all keys in the store.
    #[arg(long, value_name = "PREFIX", default_value = "/registry", value_parser = parse_prefix)]
    pub etcd_prefix: String,

    /// Certificate authorities that etcd's certificate is verified against.
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,

    /// Client certificate for etcd.
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub etcd_certfile: Option<PathBuf>,

    /// Private key of that certificate.
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub etcd_keyfile: Option<PathBuf>,

    /// Interval of compactions of the store's history; 0 disables them. Applies to the embedded store too, whose
    /// history is compacted earlier where it takes more than an eighth of the memory budget.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration::parse)]
    pub etcd_compaction_interval: Duration,

    /// Maximum size of the embedded store in bytes. Beyond it only deletions are accepted, until they and compaction
    /// have made room. As in etcd, 0 means 2 GiB and a negative number no limit.
    #[arg(long, value_name = "BYTES", default_value_t = QUOTA_BACKEND_BYTES_DEFAULT,
          allow_negative_numbers = true)]
    pub quota_backend_bytes: i64,

    /// Time for which events are kept; 0 for ever.
    #[arg(long, value_name = "DURATION", default_value = "1h0m0s", value_parser = duration::parse)]
    pub event_ttl: Duration,

    /// Time in seconds for which events that expire share a lease of etcd; 0 for a lease of its own for each. Events
    /// live longer by at most that. Has no effect on the embedded store.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        allow_negative_numbers = true
    )]
    pub lease_reuse_duration_seconds: i64,

    /// Timeout of the health check of the store.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub etcd_healthcheck_timeout: Duration,

    /// Timeout of the check of the store in /readyz; 0 means 2s.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    pub etcd_readycheck_timeout: Duration,

    /// Number of objects that the deletion of a collection deletes at a time.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true
    )]
    pub delete_collection_workers: i64,

    /// Let deletions set the finalizers by which the garbage collector of kube-controller-manager orphans dependents or
    /// deletes them first. It must have the same flag.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub enable_garbage_collector: bool,

    /// True if the embedded store may lose acknowledged writes when the machine fails, though not when the process
    /// does. No flag says so: it is what a stand-in for etcd was told by its flag of that name.
    #[arg(skip)]
    pub unsafe_no_fsync: bool,
}

impl EtcdFlags {
    /// Returns the time for which objects that expire share a lease; 0 for none.
    #[must_use]
    pub fn lease_reuse(&self) -> Duration {
        let seconds = u64::try_from(self.lease_reuse_duration_seconds);
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// Returns the settings of deletions. Fewer workers than one count as one, as in kube-apiserver.
    #[must_use]
    pub fn deletion_settings(&self) -> DeletionSettings {
        let workers = usize::try_from(self.delete_collection_workers);
        DeletionSettings {
            collection_workers: workers.unwrap_or_default().max(1),
            garbage_collection: self.enable_garbage_collector,
        }
    }

    /// Returns the timeout of the check of the store in `/readyz`.
    #[must_use]
    pub fn readycheck_timeout(&self) -> Duration {
        match self.etcd_readycheck_timeout {
            Duration::ZERO => READYCHECK_TIMEOUT_OF_ZERO,
            timeout => timeout,
        }
    }
}

/// Parses a prefix of keys, and normalizes it to begin with a slash and end without one, as kube-apiserver does.
fn parse_prefix(text: &str) -> Result<String, String> {
    let segments: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    if segments.is_empty() {
        return Err("the prefix must not be empty".to_owned());
    }
    if segments.iter().any(|part| matches!(*part, "." | "..")) {
        return Err("the prefix must not contain . or .. as a segment".to_owned());
    }
    Ok(format!("/{}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_joined_like_paths() {
        assert_eq!(parse_prefix("registry/"), Ok("/registry".to_owned()));
        assert_eq!(parse_prefix("/a//b"), Ok("/a/b".to_owned()));
        assert!(parse_prefix("/").is_err());
        assert!(parse_prefix("/a/../b").is_err());
    }
}
