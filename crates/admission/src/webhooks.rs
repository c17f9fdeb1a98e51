//! Webhooks: programs of others that are called for writes, as stored configurations say.
//!
//! ```text
//!   configurations --followed--> hooks --match--> AdmissionReview --client--> webhook
//!                                                                                |
//!                            object, refusal, warnings <--verified-- AdmissionReview
//! ```
//!
//! A webhook may hang, lie or send whatever it likes: its answer comes in a bounded time and size, and counts
//! only if it answers this call.

mod answer;
mod call;
mod call_error;
mod configuration;
mod metrics;
mod mutating;
mod validating;

pub use configuration::Configuration;
pub use metrics::WebhookMetrics;
pub use mutating::MutatingWebhooks;
pub use validating::ValidatingWebhooks;

use std::sync::Arc;

use ringwatch_webhook::WebhookClient;

use super::match_context::MatchContext;
use super::parsed_objects::ParsedObjects;

/// The plugin that calls webhooks of one sort, mutating or validating.
#[derive(Clone, Debug)]
pub struct Webhooks {
    /// All configurations, in the order of their names.
    pub configurations: Arc<ParsedObjects<Configuration>>,
    /// The stores and caches in which matching looks things up.
    pub match_context: MatchContext,
    /// The client that makes the calls.
    pub client: Arc<dyn WebhookClient>,
    /// The metrics of the calls.
    pub metrics: WebhookMetrics,
}
