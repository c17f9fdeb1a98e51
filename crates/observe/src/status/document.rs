//! The fields of the status document.

use serde::{Deserialize, Serialize};

use super::finding::Finding;
use super::thresholds::{Severity, Thresholds};

/// The path of the document.
pub const STATE_PATH: &str = "/debug/ui/state";
/// The path of the stream, whose events named [`STREAM_EVENT`] are documents.
pub const STREAM_PATH: &str = "/debug/ui/stream";
/// The path of the watchers of a type, and with a slash and its number of one watcher.
pub const WATCHERS_PATH: &str = "/debug/ui/watchers";
/// The name of the events of the stream.
pub const STREAM_EVENT: &str = "state";
/// Maximum number of watchers in a [`WatcherList`].
pub const WATCHERS_MAX: usize = 1_000;

/// The state of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerState {
    /// The time of the document, as in RFC 3339.
    pub time: String,
    /// The name of the program.
    pub name: String,
    /// The version of Kubernetes that it serves.
    pub version: String,
    /// The time since the server was built.
    pub uptime_seconds: f64,
    /// The store behind the caches.
    pub store: StoreKind,
    /// The progress of the caches.
    pub feed: FeedState,
    /// The memory in use.
    pub memory: MemoryState,
    /// The types that are cached or watched, by their names.
    pub types: Vec<TypeState>,
    /// The priority levels, by their names; empty if requests do not wait by them.
    pub fairness: Vec<LevelState>,
    /// The slowest requests: first those that run, then those that ended within the last minute, the slowest of each
    /// first.
    pub requests: Vec<RequestRecord>,
    /// The clients that make the most work, by verb and resource, the busiest first.
    #[serde(default)]
    pub clients: Vec<ClientState>,
    /// The webhooks that are called or were within the last minute, those first whose calls have run longest.
    #[serde(default)]
    pub webhooks: Vec<WebhookState>,
    /// The certificates whose expiry the server knows, the most urgent first.
    #[serde(default)]
    pub certificates: Vec<CertificateState>,
    /// The watchers that are furthest behind, of all types.
    pub slowest: Vec<Watcher>,
    /// The values from which on figures are not as they should be.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// The findings: what an operator should look at first, the worst first.
    #[serde(default)]
    pub findings: Vec<Finding>,
}

/// The store behind the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoreKind {
    /// An etcd.
    Etcd,
    /// The store in the server itself.
    Embedded,
    /// Another API server.
    Upstream,
}

/// The progress of the caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedState {
    /// The revision that all types have reached; unknown for a relay, which follows each type for itself.
    pub revision: Option<u64>,
    /// The newest revision of the store; unknown if it does not answer.
    pub store_revision: Option<u64>,
    /// The time for which the caches have been behind a revision of the store; of a relay, for which the first of them
    /// has been without its upstream.
    pub lag_seconds: Option<f64>,
    /// The time that the store took to tell its newest revision. If it did not in time, the time until then if changes
    /// came meanwhile, else unknown.
    pub store_seconds: Option<f64>,
    /// The time for which the store has neither answered nor told changes; 0 if it does. Unknown for a relay.
    pub silent_seconds: Option<f64>,
}

/// The memory in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemoryState {
    /// The budget; unknown if there is none.
    pub budget_bytes: Option<u64>,
    /// The resident memory of the process.
    pub resident_bytes: Option<u64>,
    /// The accounts of the budget.
    pub accounts: Vec<AccountState>,
}

/// An account of the memory budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountState {
    /// The name of the account.
    pub name: String,
    /// The bytes that are counted for it.
    pub bytes: u64,
}

/// A type that is cached or watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeState {
    /// The name, such as `pods` or `deployments.apps`.
    #[serde(rename = "type")]
    pub name: String,
    /// The number of objects.
    pub objects: Option<u64>,
    /// The bytes of the objects.
    pub bytes: Option<u64>,
    /// The window of the newest events; `null` for a type without a cache.
    pub window: Option<WindowState>,
    /// The changes so far.
    pub changes: Option<u64>,
    /// The watchers.
    pub watchers: WatcherCounts,
    /// The reads that wait for a revision.
    pub reads: WaitingReads,
    /// The revision of the last change.
    pub revision: Option<u64>,
    /// True if the cache answers reads.
    pub ready: bool,
}

/// The window of the newest events of a type.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WindowState {
    /// The number of events.
    pub events: u64,
    /// The number of those that are dropped first when memory is short.
    pub spare: u64,
    /// The most events that may be kept.
    pub capacity: u64,
    /// The bytes that they keep in memory beside the newest objects.
    pub bytes: Option<u64>,
    /// The most bytes that they may keep.
    pub bytes_max: u64,
    /// The age of the oldest event.
    pub oldest_seconds: Option<f64>,
}

/// The numbers of watchers of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatcherCounts {
    /// All watchers of clients: the sum of the kinds that follow.
    pub total: u64,
    /// The number of watchers of all objects.
    pub everything: u64,
    /// The number of watchers of a namespace.
    pub namespace: u64,
    /// The number of watchers of one object.
    pub name: u64,
    /// The number of watchers that select by labels.
    pub labels: u64,
    /// The number of watchers that select by fields.
    pub fields: u64,
    /// The number of watchers of a shard.
    pub shards: u64,
    /// Watchers of clients whose channel has overflowed.
    pub parked: u64,
    /// The most events that one of them has not looked at.
    pub behind_max: u64,
    /// The watchers of the server itself, which the total does not count.
    pub internal: u64,
}

/// The reads of a type that wait for a revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingReads {
    /// The number of reads.
    pub waiting: u64,
    /// The time for which the first of them has waited; 0 if none waits.
    pub longest_seconds: f64,
}

/// A priority level of API Priority and Fairness.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelState {
    /// The name of the level.
    pub level: String,
    /// The nominal number of seats; `null` for an exempt level.
    pub seats: Option<u64>,
    /// The requests that are served.
    pub executing: u64,
    /// The seats that they take.
    pub taken: u64,
    /// The requests that wait.
    pub waiting: u64,
    /// The requests that were refused so far.
    pub rejected: u64,
}

/// A request that runs or has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestRecord {
    /// The verb, such as `list`.
    pub verb: String,
    /// The path without parameters.
    pub path: String,
    /// The name of the user.
    pub user: String,
    /// The header `User-Agent`.
    pub user_agent: String,
    /// The address of the client; `null` where it is not known.
    #[serde(default)]
    pub address: Option<String>,
    /// The number of such requests of this client among those that run or took at least a tenth of a second, of which
    /// this is the slowest.
    #[serde(default)]
    pub times: u64,
    /// The number of those that are slow: that took, or have run for, [`super::thresholds::SLOW_SECONDS`] or longer.
    #[serde(default)]
    pub slow: u64,
    /// The time that it took, or has taken so far.
    pub seconds: f64,
    /// True if it runs.
    pub running: bool,
    /// The status of its response; `null` if there is none yet.
    pub code: Option<u16>,
}

/// The requests of one kind that a client made within the last minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientState {
    /// True for all clients together that make little work and are too many to be told apart; then the names are empty.
    pub others: bool,
    /// The name of the user.
    pub user: String,
    /// The header `User-Agent`.
    pub user_agent: String,
    /// The address; `null` where it is not known.
    pub address: Option<String>,
    /// The verb, such as `list`; of watches their beginning counts.
    pub verb: String,
    /// The type and the subresource, such as `pods` or `pods/eviction`, or the first two segments of the path if the
    /// requests are not about one.
    pub resource: String,
    /// True if all objects of the type were asked for: in all namespaces, without a selector, and not the next page of
    /// them.
    pub everything: bool,
    /// The number of requests.
    pub requests: u64,
    /// The number of those that were refused (401, 403, 429), failed in the server (from 500 on), or had no response.
    pub failed: u64,
    /// The bytes of their responses.
    pub bytes: u64,
    /// The time that they took together.
    pub seconds: f64,
}

/// A webhook that is called or was within the last minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookState {
    /// The name in its configuration.
    pub name: String,
    /// The address.
    pub target: String,
    /// The number of calls that run.
    pub running: u64,
    /// The time for which the first of them has run; 0 if none runs.
    pub running_seconds: f64,
    /// The number of calls that ended within the last minute.
    pub calls: u64,
    /// The number of those that failed.
    pub failed: u64,
    /// The time that they took together.
    pub seconds: f64,
    /// The time that the longest of them took.
    pub longest_seconds: f64,
}

/// A certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateState {
    /// The sort of certificate, such as `serving certificate`.
    pub name: String,
    /// The end of its validity, as in RFC 3339.
    pub expires: String,
    /// The time until then; negative afterwards.
    pub seconds_left: f64,
    /// The severity of a replacement that is overdue: `null` while there is time for it.
    #[serde(default)]
    pub level: Option<Severity>,
}

/// A watch that a client has open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Watcher {
    /// The number by which it is found.
    pub id: String,
    /// The name of the type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The name of the user.
    pub user: String,
    /// The header `User-Agent`.
    pub user_agent: String,
    /// The address of the client; `null` where it is not known.
    pub address: Option<String>,
    /// The namespace; `null` for all.
    pub namespace: Option<String>,
    /// The selectors; empty for none.
    pub selector: String,
    /// The kind of the selection: the name of a field of [`WatcherCounts`].
    pub kind: String,
    /// The time since the request.
    pub age_seconds: f64,
    /// The events and bookmarks that were written to the client.
    pub sent: u64,
    /// The revision of the last of them; `null` if there was none.
    pub revision: Option<u64>,
    /// The events of the type that it has not looked at; `null` if no cache serves it.
    pub behind: Option<u64>,
    /// True if its channel has overflowed.
    pub parked: bool,
}

/// The watchers of a type, those that are furthest behind first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatcherList {
    /// The number of all that there are.
    pub total: u64,
    /// At most [`WATCHERS_MAX`] of them.
    pub items: Vec<Watcher>,
}

/// Returns the name of a type of a group and a plural resource, such as `pods` or `deployments.apps`.
#[must_use]
pub fn type_name((group, resource): (&str, &str)) -> String {
    match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    }
}

impl ServerState {
    /// Returns the state of a server of this name of which nothing else is known at this time.
    #[must_use]
    pub fn unknown(name: &str, time: String) -> Self {
        Self {
            time,
            name: name.to_owned(),
            version: String::new(),
            uptime_seconds: 0.0,
            store: StoreKind::Etcd,
            feed: FeedState::default(),
            memory: MemoryState::default(),
            types: Vec::new(),
            fairness: Vec::new(),
            requests: Vec::new(),
            clients: Vec::new(),
            webhooks: Vec::new(),
            certificates: Vec::new(),
            slowest: Vec::new(),
            thresholds: Thresholds::default(),
            findings: Vec::new(),
        }
    }
}

impl TypeState {
    /// Returns true if there are objects, watchers or waiting reads of the type, or its cache is not ready: others are
    /// not worth a row.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let users = self.watchers.total + self.reads.waiting;
        self.objects.unwrap_or_default() + users > 0 || self.is_unready()
    }

    /// Returns true if there is a cache that is not ready.
    #[must_use]
    pub fn is_unready(&self) -> bool {
        self.window.is_some() && !self.ready
    }
}

impl WatcherCounts {
    /// Returns the count of a kind of selection by its name; `None` if there is no such kind.
    pub fn of_kind(&mut self, kind: &str) -> Option<&mut u64> {
        Some(match kind {
            "everything" => &mut self.everything,
            "namespace" => &mut self.namespace,
            "name" => &mut self.name,
            "labels" => &mut self.labels,
            "fields" => &mut self.fields,
            "shards" => &mut self.shards,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_as_readers_expect_them() {
        let watchers = WatcherCounts {
            behind_max: 2,
            ..WatcherCounts::default()
        };
        let of_type = TypeState {
            name: "pods".to_owned(),
            objects: Some(1),
            bytes: None,
            window: None,
            changes: Some(3),
            watchers,
            reads: WaitingReads::default(),
            revision: Some(4),
            ready: true,
        };
        let json = serde_json::to_value(&of_type).expect("JSON");
        assert_eq!(json["type"], "pods");
        assert_eq!(json["watchers"]["behindMax"], 2);
        assert_eq!(json["reads"]["longestSeconds"], 0.0);
        assert!(json["window"].is_null());
        let again: TypeState = serde_json::from_value(json).expect("the same");
        assert_eq!(again, of_type);
    }
}
