//! Calls of webhooks, as far as all callers share them: the contract of the client, the addresses and credentials of
//! webhooks, calls by reviews, cached answers, one call for many callers, and limits of each caller.
//!
//! [`NetworkClient`] calls them over the network. The reviews themselves do not belong here:
//! those of authorization, of tokens, of admission, of conversion and of audit are in the crates of that name.

pub mod answer_cache;
mod client;
mod network_client;
mod review;
mod review_document;
pub mod shares;
pub mod single_flight;
mod url;

pub use self::client::{CallError, ClientConfig, ClientPair, WebhookClient, WebhookTarget};
pub use self::network_client::{NetworkClient, ServiceResolver};
pub use self::review::{ReviewVersion, ReviewWebhook};
pub use self::review_document::{AnswerScheme, read_review};
pub use self::url::CallUrl;
