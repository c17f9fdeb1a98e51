//! The status document: the state of a server, as `/debug/ui/state` answers and `/debug/ui/stream` repeats it.
//!
//! The server writes it; the live page and `ringwatch top` read it. Durations are in seconds, sizes in bytes. Counters
//! only rise, so that readers make rates of two documents. A figure that the server does not know is `null`.
//! [`findings`] says which of them an operator should look at first.

mod document;
mod finding;
pub mod findings;
pub mod thresholds;
pub mod values;

pub use self::document::{
    AccountState, CertificateState, ClientState, FeedState, LevelState, MemoryState, RequestRecord,
    STATE_PATH, STREAM_EVENT, STREAM_PATH, ServerState, StoreKind, TypeState, WATCHERS_MAX,
    WATCHERS_PATH, WaitingReads, Watcher, WatcherCounts, WatcherList, WebhookState, WindowState,
    type_name,
};
