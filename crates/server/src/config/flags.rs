//! The flags of `ringwatch serve`: those of kube-apiserver with its names and defaults, and a few more.
//!
//! Parsing checks each flag by itself; [`ServeFlags::check`] checks combinations. Nothing here accesses files or the
//! network.

mod admission;
mod aggregation;
mod audit;
mod authentication;
mod authorization;
mod cluster;
mod configuration;
mod etcd;
mod etcd_overrides;
mod go_values;
mod inert;
mod inventory;
mod kubelets;
mod log_format;
mod oidc;
mod refused;
mod relay;
mod runtime_config;
mod service_accounts;
mod services;
mod serving;
mod tls;
mod values;
mod version;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use ringwatch::storage::StorageMediaType;
use ringwatch_apimachinery::duration;
use ringwatch_authorization::AuthorizationMode;
use ringwatch_endpoints::ApiFeatures;
use ringwatch_registry::watch_cache_sizes::{WatchCacheSize, WatchCacheSizes};
use ringwatch_resources::ClusterOptions;
use ringwatch_resources::service_ranges::Family;
use ringwatch_tls::certificates::has_generated_authority;

use super::feature_gates::{Feature, FeatureGate};
use super::memory_budget::default_budget;

pub(crate) use self::go_values::parse_bool;
pub(crate) use self::values::is_list;

pub use admission::AdmissionFlags;
pub use aggregation::{AggregationFlags, RequestHeaderFlags};
pub use audit::{AuditFlags, AuditQueueFlags};
pub use authentication::{IdentityFlags, TokenWebhookFlags};
pub use authorization::{AuthorizationFlags, ModeFlag};
pub use cluster::{ClusterFlags, ReconcilerType, TestClusterFlag};
pub use configuration::ConfigFlags;
pub use etcd::EtcdFlags;
pub use etcd_overrides::EtcdOverride;
pub use go_values::with_dashes;
pub use inventory::InventoryFlags;
pub use kubelets::KubeletFlags;
pub use log_format::LogFormat;
pub use oidc::OidcFlags;
pub use relay::{CachedResource, RelayFlags};
pub use runtime_config::RuntimeConfigFlags;
pub use service_accounts::ServiceAccountFlags;
pub use services::ServiceFlags;
pub use serving::ServingFlags;
pub use tls::{SniFlag, TlsFlags};
pub use values::FlagValues;
pub use version::VersionFlag;

/// The least memory with which anything can be served.
const MEMORY_BUDGET_MIB_MIN: u64 = 16;
/// The quota that etcd uses for 0.
const QUOTA_BACKEND_BYTES_OF_ZERO: u64 = 2 << 30;
/// The largest memory budget, in MiB: more than any machine has.
const MEMORY_BUDGET_MIB_MAX: u64 = 1 << 30;

/// Serve the Kubernetes API on an embedded store, in memory, or over etcd.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = true, args_override_self = true)]
pub struct ServeFlags {
    // It comes first, since each of the others takes its own values away when it is read.
    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub values: FlagValues,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub configuration: ConfigFlags,

    /// Directory of the database, the generated certificates and the admin's kubeconfig. Created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "ringwatch-data")]
    pub data_dir: PathBuf,

    /// Store of objects: embedded (a database in the data directory), memory (nothing survives the process) or etcd3.
    /// The default is embedded, or etcd3 if --etcd-servers is given.
    #[arg(long, value_name = "BACKEND", value_parser = parse_backend)]
    pub storage_backend: Option<StorageBackend>,

    /// Media type of objects in the store: application/vnd.kubernetes.protobuf or application/json. Both are read.
    /// Custom resources are always JSON.
    #[arg(long, value_name = "TYPE", default_value = "application/vnd.kubernetes.protobuf",
          value_parser = parse_media_type)]
    pub storage_media_type: StorageMediaType,

    /// An EncryptionConfiguration with the resources that are encrypted in the store, and their keys. Supported
    /// providers are aesgcm, aescbc, secretbox, kms (version 2) and identity.
    #[arg(long, value_name = "FILE")]
    pub encryption_provider_config: Option<PathBuf>,

    /// Read the file of --encryption-provider-config again when it changes. A file that cannot be used changes nothing.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub encryption_provider_config_automatic_reload: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub etcd: EtcdFlags,

    /// Serve reads and watches from memory.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub watch_cache: bool,

    /// Exceptions to --watch-cache, as resource[.group]#size, comma-separated. 0 disables the cache of a resource, as
    /// in secrets#0; any other size enables it, since sizes adapt themselves. Events have no cache unless enabled here.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = WatchCacheSize::parse)]
    pub watch_cache_sizes: Vec<WatchCacheSize>,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub serving: ServingFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub cluster: ClusterFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub tls: TlsFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub identity: IdentityFlags,

    #[command(flatten)]
    #[allow(
        missing_docs,
        reason = "a doc comment would become the text above --help's flags"
    )]
    pub authorization: AuthorizationFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub admission: AdmissionFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub service_accounts: ServiceAccountFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub oidc: OidcFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub limits: LimitFlags,

    /// Queue requests by the stored FlowSchemas and PriorityLevelConfigurations. Reads and writes together have as many
    /// seats as the limits above allow, and no user gets all of them. If false, requests beyond the limits are refused.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub enable_priority_and_fairness: bool,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub kubelets: KubeletFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub aggregation: AggregationFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub audit: AuditFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub services: ServiceFlags,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub runtime_config: RuntimeConfigFlags,

    /// Allow privileged containers in pods. If false, they are refused, as by kube-apiserver.
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1,
          require_equals = true, default_missing_value = "true", value_name = "BOOL", value_parser = parse_bool)]
    pub allow_privileged: bool,

    /// Feature gates, as NAME=true, comma-separated. There are two: AllowUnsafeMalformedObjectDeletion, which allows
    /// the deletion of objects that cannot be read, and ShardedListAndWatch, which lets lists and watches select a
    /// shard.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = FeatureGate::parse)]
    pub feature_gates: Vec<FeatureGate>,

    /// Print the version of Kubernetes that is served, and end; raw prints all parts of it. A version such as
    /// v1.36.2-mine is reported to clients instead.
    #[arg(long, value_name = "VERSION", default_value = "false", num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_parser = VersionFlag::parse)]
    pub version: VersionFlag,

    #[command(flatten)]
    #[allow(missing_docs, reason = "it would replace the command's help")]
    pub inventory: InventoryFlags,

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

/// Flags of limits and timeouts.
#[derive(Args, Clone, Debug)]
pub struct LimitFlags {
    /// Maximum number of reads in flight; 0 for no limit. Watches do not count.
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub max_requests_inflight: u32,

    /// Maximum number of writes in flight; 0 for no limit.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max_mutating_requests_inflight: u32,

    /// Timeout of requests, except watches.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration::parse)]
    pub request_timeout: Duration,

    /// Memory budget in MiB of objects, history, encodings, connections and requests. New lists and watches get 429
    /// before it is spent. The default is half of the machine's or of the control group's memory.
    #[arg(long, value_name = "MIB",
          value_parser = clap::value_parser!(u64).range(MEMORY_BUDGET_MIB_MIN..=MEMORY_BUDGET_MIB_MAX))]
    pub memory_budget_mib: Option<u64>,

    /// Minimum time in seconds after which a watch without a timeout of its own is ended.
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub min_request_timeout: u32,

    /// Maximum number of concurrent watches of a user; 0 for no limit. Members of system:masters have none.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub max_watches_per_user: u32,
}

/// A store of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageBackend {
    /// A database in the data directory.
    Embedded,
    /// Memory; nothing survives the process.
    Memory,
    /// etcd, version 3.
    Etcd3,
}

impl ServeFlags {
    /// Checks combinations of flags.
    ///
    /// # Errors
    /// A line for the user.
    pub fn check(&self) -> Result<(), String> {
        self.inventory.check()?;
        self.admission.check()?;
        self.authorization.check()?;
        self.audit.check()?;
        self.tls.check(self.serving.disable_http2_serving)?;
        self.check_families()?;
        self.runtime_config.check()?;
        self.check_fairness()?;
        let oidc = self.oidc.oidc_issuer_url.as_ref();
        if oidc.is_some_and(|it| self.service_accounts.service_account_issuer.contains(it)) {
            return Err("--oidc-issuer-url must not be a --service-account-issuer".to_owned());
        }
        match (self.backend(), self.etcd.etcd_servers.is_empty()) {
            (StorageBackend::Etcd3, true) => Err(
                "--storage-backend=etcd3 needs --etcd-servers=http://HOST:PORT[,...]".to_owned(),
            ),
            (StorageBackend::Embedded | StorageBackend::Memory, false) => Err(
                "--etcd-servers goes with --storage-backend=etcd3 alone; leave one of the two out"
                    .to_owned(),
            ),
            (StorageBackend::Embedded | StorageBackend::Memory, true)
                if !self.etcd.etcd_servers_overrides.is_empty() =>
            {
                Err("--etcd-servers-overrides needs --etcd-servers".to_owned())
            }
            _ if self.encryption_provider_config_automatic_reload
                && self.encryption_provider_config.is_none() =>
            {
                Err(
                    "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config"
                        .to_owned(),
                )
            }
            _ if self.limits.request_timeout.is_zero() => {
                Err("--request-timeout must be longer than 0".to_owned())
            }
            _ if self.etcd.etcd_healthcheck_timeout.is_zero() => {
                Err("--etcd-healthcheck-timeout must be longer than 0".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns a line for each flag, or part of one, that was given and has no effect.
    #[must_use]
    pub fn notices(&self) -> Vec<String> {
        let protocol = self.tls.protocol(self.serving.disable_http2_serving);
        let mut notices = self.inventory.notices();
        notices.extend(protocol.notices());
        notices
    }

    /// Returns the host and port of URLs that lead to a server that listens at an address.
    #[must_use]
    pub fn external_address(&self, listening: SocketAddr) -> String {
        self.cluster.external_address(&self.serving, listening)
    }

    /// Returns the store of objects.
    #[must_use]
    pub fn backend(&self) -> StorageBackend {
        self.storage_backend
            .unwrap_or(if self.etcd.etcd_servers.is_empty() {
                StorageBackend::Embedded
            } else {
                StorageBackend::Etcd3
            })
    }

    /// Returns the authorization modes: those that are named, or else RBAC, with Node before it for a server that is
    /// given the authority of a cluster.
    #[must_use]
    pub fn authorization_modes(&self) -> Vec<ModeFlag> {
        let named = &self.authorization.authorization_mode;
        if !named.is_empty() {
            return named.clone();
        }
        let node = ModeFlag::Mode(AuthorizationMode::Node);
        let node = self.identity.client_ca_file.as_ref().map(|_| node);
        let rbac = ModeFlag::Mode(AuthorizationMode::Rbac);
        node.into_iter().chain([rbac]).collect()
    }

    /// Returns the settings of the cluster on which the rules of kinds depend.
    #[must_use]
    pub fn cluster_options(&self) -> ClusterOptions {
        ClusterOptions {
            allow_privileged: self.allow_privileged,
        }
    }

    /// Refuses priority and fairness without the API by which it is configured.
    fn check_fairness(&self) -> Result<(), String> {
        let off = self.runtime_config.flow_control_off();
        match off.filter(|_| self.enable_priority_and_fairness) {
            Some(key) => Err(format!(
                "--runtime-config={key}=false conflicts with --enable-priority-and-fairness=true"
            )),
            None => Ok(()),
        }
    }

    /// Refuses an address of the server of another family than its Service `kubernetes` has.
    fn check_families(&self) -> Result<(), String> {
        let range = self.services.service_cluster_ip_range.first();
        match self.serving.advertise_address {
            Some(address) if Family::of(address) != range.family() => Err(format!(
                "service IP family \"{range}\" must match public address family \"{address}\""
            )),
            _ => Ok(()),
        }
    }

    /// Returns the feature gates that decide what requests may ask for.
    #[must_use]
    pub fn api_features(&self) -> ApiFeatures {
        let is_enabled = |feature| FeatureGate::is_enabled(&self.feature_gates, feature);
        ApiFeatures {
            unsafe_deletion: is_enabled(Feature::UnsafeDeletion),
            sharded_lists: is_enabled(Feature::ShardedLists),
        }
    }

    /// Returns true if spans of requests are exported.
    #[must_use]
    pub fn has_spans(&self) -> bool {
        self.tracing_config_file.is_some()
    }

    /// Returns the memory budget, in bytes.
    #[must_use]
    pub fn memory_budget(&self) -> u64 {
        let named = self.limits.memory_budget_mib;
        named.map_or_else(default_budget, |mib| mib << 20)
    }

    /// Returns the quota of the embedded store, in bytes; `None` for no limit.
    #[must_use]
    pub fn quota_bytes(&self) -> Option<u64> {
        match u64::try_from(self.etcd.quota_backend_bytes) {
            Ok(0) => Some(QUOTA_BACKEND_BYTES_OF_ZERO),
            Ok(bytes) => Some(bytes),
            Err(_) => None,
        }
    }

    /// Returns which resources have a watch cache.
    #[must_use]
    pub fn watch_cache_sizes(&self) -> WatchCacheSizes {
        WatchCacheSizes::new(self.watch_cache, self.watch_cache_sizes.clone())
    }

    /// Returns the directory of the server's certificate and key.
    #[must_use]
    pub fn cert_dir(&self) -> PathBuf {
        self.tls
            .cert_dir
            .clone()
            .unwrap_or_else(|| self.data_dir.join("pki"))
    }

    /// Returns the directory of the other generated certificates and keys: `pki` in the data directory, or that of
    /// `--cert-dir` if an earlier version has generated them there.
    #[must_use]
    pub fn pki_dir(&self) -> PathBuf {
        let earlier = self.tls.cert_dir.clone();
        earlier
            .filter(|it| has_generated_authority(it))
            .unwrap_or_else(|| self.data_dir.join("pki"))
    }
}

fn parse_backend(text: &str) -> Result<StorageBackend, String> {
    match text {
        "embedded" => Ok(StorageBackend::Embedded),
        "memory" => Ok(StorageBackend::Memory),
        "etcd3" => Ok(StorageBackend::Etcd3),
        "etcd2" => {
            Err("etcd2 is no longer a storage backend; use embedded, memory or etcd3".into())
        }
        _ => Err("no such storage backend; use embedded, memory or etcd3".into()),
    }
}

fn parse_media_type(text: &str) -> Result<StorageMediaType, String> {
    StorageMediaType::parse(text).ok_or_else(|| {
        "objects are not stored so; use application/vnd.kubernetes.protobuf or application/json"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        flags: ServeFlags,
    }

    fn parse(flags: &[&str]) -> Result<ServeFlags, String> {
        let line = Line::try_parse_from(std::iter::once(&"serve").chain(flags))
            .map_err(|error| error.to_string())?;
        line.flags.check()?;
        Ok(line.flags)
    }

    #[test]
    fn defaults_are_kube_apiservers() {
        let flags = parse(&[]).expect("no flags");
        assert_eq!(flags.backend(), StorageBackend::Embedded);
        assert_eq!(flags.storage_media_type, StorageMediaType::Protobuf);
        assert_eq!(flags.etcd.etcd_prefix, "/registry");
        assert_eq!(
            flags.etcd.etcd_compaction_interval,
            Duration::from_secs(300)
        );
        assert_eq!(flags.etcd.etcd_healthcheck_timeout, Duration::from_secs(2));
        assert_eq!(flags.etcd.event_ttl, Duration::from_secs(3600));
        assert_eq!(flags.serving.secure_port, 6443);
        assert_eq!(flags.limits.max_requests_inflight, 400);
        assert_eq!(flags.limits.max_mutating_requests_inflight, 200);
        assert_eq!(flags.limits.request_timeout, Duration::from_secs(60));
        assert_eq!(flags.limits.min_request_timeout, 1800);
        assert_eq!(flags.kubelets.kubelet_timeout, Duration::from_secs(5));
        assert_eq!(
            flags.kubelets.kubelet_preferred_address_types.join(","),
            "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP"
        );
        assert!(!flags.allow_privileged);
        assert!(flags.admission.plugins().has("ServiceAccount"));
        assert!(!flags.identity.enable_bootstrap_token_auth);
        assert!(flags.service_accounts.service_account_lookup);
        let webhook = &flags.identity.token_webhook;
        let ttl = webhook.authentication_token_webhook_cache_ttl;
        assert_eq!(ttl, Duration::from_secs(120));
        assert!(flags.watch_cache);
        assert_eq!(flags.pki_dir(), PathBuf::from("ringwatch-data/pki"));
    }

    #[test]
    fn the_last_of_several_counts_but_in_lists() {
        let flags = parse(&[
            "--secure-port=1",
            "--secure-port=2",
            "--disable-admission-plugins=Priority",
            "--disable-admission-plugins=LimitRanger",
        ]);
        let flags = flags.expect("flags");
        assert_eq!(flags.serving.secure_port, 2);
        let disabled = flags.admission.disable_admission_plugins;
        assert_eq!(disabled, ["Priority", "LimitRanger"]);
    }

    #[test]
    fn a_server_of_a_cluster_authorizes_its_nodes() {
        use ringwatch_authorization::AuthorizationMode::{AlwaysAllow, Node, Rbac};
        for (flags, expected) in [
            (&[][..], vec![Rbac]),
            (&["--client-ca-file=ca.crt"], vec![Node, Rbac]),
            (
                &[
                    "--client-ca-file=ca.crt",
                    "--authorization-mode=AlwaysAllow",
                ],
                vec![AlwaysAllow],
            ),
        ] {
            let modes = parse(flags).expect("flags").authorization_modes();
            let expected: Vec<_> = expected.into_iter().map(ModeFlag::Mode).collect();
            assert_eq!(modes, expected, "{flags:?}");
        }
        let error = parse(&["--authorization-mode=RBAC,Node,RBAC"]).expect_err("twice");
        assert_eq!(
            error,
            "authorization-mode \"RBAC\" has mode specified more than once"
        );
    }

    #[test]
    fn addresses_of_the_service_and_the_server_are_of_one_family() {
        let range = "--service-cluster-ip-range=fd00::/108,10.0.0.0/16";
        let error = parse(&[range, "--advertise-address=192.0.2.1"]).expect_err("another");
        assert_eq!(
            error,
            "service IP family \"fd00::/108\" must match public address family \"192.0.2.1\""
        );
        assert!(parse(&[range, "--advertise-address=2001:db8::1"]).is_ok());
    }

    #[test]
    fn etcd_servers_imply_etcd3() {
        let flags = parse(&["--etcd-servers=http://a:2379, https://b:2379"]).expect("servers");
        assert_eq!(flags.backend(), StorageBackend::Etcd3);
        assert_eq!(flags.etcd.etcd_servers, ["http://a:2379", "https://b:2379"]);
        let both = parse(&["--etcd-servers=http://a:2379", "--storage-backend=memory"]);
        assert!(both.expect_err("both").contains("--etcd-servers goes with"));
        let neither = parse(&["--storage-backend=etcd3"]);
        assert!(
            neither
                .expect_err("neither")
                .contains("needs --etcd-servers")
        );
    }

    #[test]
    fn unsupported_values_are_named() {
        for (flag, words) in [
            ("--storage-backend=etcd2", "use embedded, memory or etcd3"),
            ("--storage-backend=sqlite", "use embedded, memory or etcd3"),
            ("--storage-media-type=application/yaml", "not stored so"),
            ("--storage-media-type=application/x", "or application/json"),
            ("--authorization-mode=RBAC,ABAC", "use Node, RBAC"),
            ("--anonymous-auth=maybe", "invalid value"),
            (
                "--authentication-token-webhook-version=v2",
                "supported versions are \"v1\", \"v1beta1\"",
            ),
            ("--service-cluster-ip-range=10.0.0.0/30", "at least 8"),
            ("--service-node-port-range=2-1", "end port cannot be less"),
            ("--etcd-servers=localhost:2379", "not of the form"),
            ("--request-timeout=60", "not a duration"),
            ("--request-timeout=0s", "longer than 0"),
            ("--tls-cert-file=x", "--tls-private-key-file"),
            ("--kubelet-client-key=x", "--kubelet-client-certificate"),
            ("--proxy-client-key-file=x", "--proxy-client-cert-file"),
            (
                "--requestheader-allowed-names=x",
                "--requestheader-client-ca-file",
            ),
            ("--secure-port=70000", "70000"),
            ("--oidc-issuer-url=https://a", "--oidc-client-id"),
            ("--oidc-signing-algs=HS256", "use RS256"),
            ("--watch-cache-sizes=pods", "resource[.group]#size"),
            (
                "--enable-admission-plugins=Nope",
                "no such admission plugin",
            ),
            ("--disable-admission-plugins=Priority,x", "here are Namesp"),
            ("--enable-admission-plugins=AlwaysDeny", "does not have"),
            ("--admission-control=Nope", "no such admission plugin"),
            ("--admission-control=Priority,AlwaysAdmit", "does not have"),
        ] {
            let error = parse(&[flag]).expect_err(flag);
            assert!(error.contains(words), "{flag}: {error}");
        }
    }

    #[test]
    fn a_list_of_all_plugins_stands_alone() {
        let flags = parse(&["--admission-control=Priority,LimitRanger"]).expect("flags");
        let plugins = flags.admission.plugins();
        assert!(plugins.has("Priority") && !plugins.has("PodSecurity"));
        for other in [
            "--enable-admission-plugins=Priority",
            "--disable-admission-plugins=Priority",
        ] {
            let error = parse(&["--admission-control=Priority", other]).expect_err(other);
            assert!(error.contains("mutually exclusive"), "{error}");
        }
    }

    #[test]
    fn booleans_and_durations_are_written_as_in_go() {
        let flags = parse(&[
            "--watch-cache=false",
            "--enable-priority-and-fairness=false",
            "--shutdown-delay-duration",
            "1m30s",
            "-v=4",
        ])
        .expect("flags");
        assert!(!flags.watch_cache);
        assert_eq!(
            flags.serving.shutdown_delay_duration,
            Duration::from_secs(90)
        );
        assert_eq!(flags.verbosity, 4);
        assert!(
            parse(&["--watch-cache", "--v", "2"])
                .expect("flags")
                .watch_cache
        );
    }

    #[test]
    fn the_memory_budget_is_named_or_a_share_of_the_machine() {
        let flags = parse(&["--memory-budget-mib=64"]).expect("flags");
        assert_eq!(flags.memory_budget(), 64 << 20);
        let flags = parse(&[]).expect("no flags");
        assert_eq!(flags.memory_budget(), default_budget());
        for wrong in ["0", "15", "1073741825", "-1", "64MiB"] {
            assert!(parse(&[&format!("--memory-budget-mib={wrong}")]).is_err());
        }
    }

    #[test]
    fn quotas_of_the_store_are_those_of_etcd() {
        let quota = |flags: &[&str]| parse(flags).expect("flags").quota_bytes();
        assert_eq!(quota(&[]), Some(8 << 30));
        assert_eq!(quota(&["--quota-backend-bytes=0"]), Some(2 << 30));
        assert_eq!(quota(&["--quota-backend-bytes=1000"]), Some(1000));
        assert_eq!(quota(&["--quota-backend-bytes", "-1"]), None);
    }
}
