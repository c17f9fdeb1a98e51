//! The parts of the API, which the server provides and the handlers use.

use std::sync::Arc;
use std::time::Duration;

use ringwatch::budget::Ledger;
use ringwatch::clock::Clock;
use ringwatch_authentication::Authenticator;
use ringwatch_authentication::service_accounts::TokenIssuer;
use ringwatch_authorization::Authorizer;
use ringwatch_observe::open_watches::OpenWatches;
use ringwatch_registry::{Resource, Store};

use super::encoding::EncodingCache;
use super::forward::Kubelets;
use super::metrics::Metrics;
use super::version::VersionInfo;

/// The parts of an [`super::Api`].
#[derive(Debug)]
pub struct ApiConfig {
    /// The resources that are served from the start, in the order of discovery.
    pub stores: Vec<Arc<Store>>,
    /// Resources that discovery lists and that have no store, such as reviews.
    pub storeless: Vec<Arc<Resource>>,
    /// Decides whether a user may do something, for requests as well as for access reviews.
    pub authorizer: Arc<Authorizer>,
    /// The clock of deadlines and timestamps.
    pub clock: Clock,
    /// The answer of `/version`.
    pub version: VersionInfo,
    /// The address at which clients reach the server, as `host:port`; `/api` shows it.
    pub server_address: String,
    /// Paths that the server itself serves, for the list at `/`.
    pub extra_root_paths: Vec<String>,
    /// The metrics of requests and watches.
    pub metrics: Metrics,
    /// The watches that clients have open.
    pub open_watches: OpenWatches,
    /// The memory budget of lists and watches.
    pub ledger: Ledger,
    /// The cache of encoded objects.
    pub encodings: EncodingCache,
    /// Minimum duration of a watch without `timeoutSeconds`; each gets a random duration of one to two times this.
    pub min_request_timeout: Duration,
    /// The feature gates that decide what requests may ask for.
    pub features: ApiFeatures,
    /// The addresses and TLS of kubelets.
    pub kubelets: Kubelets,
    /// Authenticates the tokens of TokenReviews.
    pub authenticator: Arc<Authenticator>,
    /// Issues the tokens of TokenRequests; `None` if this server does not serve them.
    pub token_issuer: Option<TokenIssuer>,
}

/// The feature gates that decide what requests may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApiFeatures {
    /// True if objects that cannot be read may be deleted: AllowUnsafeMalformedObjectDeletion.
    pub unsafe_deletion: bool,
    /// True if lists and watches may select a shard: ShardedListAndWatch. Otherwise the parameter is ignored.
    pub sharded_lists: bool,
}
