//! Calls of webhooks that are asked by reviews: those of authorization and of tokens.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringwatch::clock::Clock;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::client::{CallError, ClientConfig, WebhookClient};
use super::review_document::{AnswerScheme, read_review};

/// The most calls to one webhook that are in progress; further ones wait within their timeout.
const UNDER_WAY_MAX: usize = 100;

/// The most attempts that a call has within its timeout, if the webhook fails in a way that may pass.
const ATTEMPTS_MAX: usize = 5;

/// The pause before the second attempt; each further one is half as long again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The version of the reviews that are sent to a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `v1`.
    V1,
    /// `v1beta1`, the default, as in kube-apiserver.
    #[default]
    V1Beta1,
}

impl ReviewVersion {
    /// Returns the version of a group, as objects have it.
    #[must_use]
    pub fn of_group(self, group: &str) -> String {
        match self {
            Self::V1 => format!("{group}/v1"),
            Self::V1Beta1 => format!("{group}/v1beta1"),
        }
    }
}

/// A webhook that answers reviews.
#[derive(Debug)]
pub struct ReviewWebhook {
    to: ClientConfig,
    client: Arc<dyn WebhookClient>,
    timeout: Duration,
    under_way: Semaphore,
    clock: Clock,
}

impl ReviewWebhook {
    /// Creates a webhook that is called by `client`. A call ends after `timeout`, attempts and pauses included.
    #[must_use]
    pub fn new(
        to: ClientConfig,
        client: Arc<dyn WebhookClient>,
        timeout: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            to,
            client,
            timeout,
            under_way: Semaphore::new(UNDER_WAY_MAX),
            clock,
        }
    }

    /// Sends a review, and returns the one that comes back, whose values have the types of its kind.
    ///
    /// # Errors
    /// The reason why there is no answer, or none that is a review of this version and kind.
    pub async fn ask(&self, review: &Value) -> Result<Value, String> {
        let text = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
        let wanted = (text("apiVersion"), text("kind"));
        let review = Bytes::from(review.to_string());
        let call = async {
            let mut pause = RETRY_PAUSE;
            for _ in 1..ATTEMPTS_MAX {
                match self.post(&review).await {
                    Err(error) if error.is_passing => self.clock.sleep(pause).await,
                    answer => return answer.map_err(|error| error.to_string()),
                }
                pause = pause * 3 / 2;
            }
            let answer = self.post(&review).await;
            answer.map_err(|error| error.to_string())
        };
        let answer = self.clock.timeout(self.timeout, call).await;
        let answer = answer.map_err(|_| "context deadline exceeded".to_owned())??;
        read_review(&answer, AnswerScheme::Whole, wanted)
    }

    /// Makes one attempt. Pauses between attempts do not count as calls in progress.
    async fn post(&self, review: &Bytes) -> Result<Bytes, CallError> {
        let permit = self.under_way.acquire().await;
        let _permit = permit.map_err(|error| CallError {
            why: error.to_string(),
            is_passing: false,
            status: None,
        })?;
        let answer = self.client.post(&self.to, review.clone(), self.timeout);
        answer.await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use futures::{FutureExt, poll};
    use serde_json::json;

    use super::super::client::WebhookTarget;
    use super::*;

    fn asked(token: &str) -> Value {
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}})
    }

    /// A webhook that is overloaded by reviews with `again`, and returns all others.
    #[derive(Debug, Default)]
    struct Overloaded {
        attempts: Mutex<usize>,
    }

    #[async_trait]
    impl WebhookClient for Overloaded {
        async fn post(
            &self,
            _: &ClientConfig,
            review: Bytes,
            _: Duration,
        ) -> Result<Bytes, CallError> {
            *self.attempts.lock().expect("sound") += 1;
            if review != asked("again").to_string() {
                return Ok(review);
            }
            Err(CallError {
                why: "overloaded".to_owned(),
                is_passing: true,
                status: None,
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_that_pause_before_a_retry_leave_room_for_others() {
        let client = Arc::new(Overloaded::default());
        let to = ClientConfig {
            name: "webhook".to_owned(),
            target: WebhookTarget::Url("https://webhook".to_owned()),
            ca_bundle: None,
            token: None,
            pair: None,
        };
        let timeout = Duration::from_secs(30);
        let webhook = ReviewWebhook::new(to, Arc::clone(&client) as _, timeout, Clock::real());
        let again = asked("again");
        let mut retrying: Vec<_> = (0..UNDER_WAY_MAX)
            .map(|_| webhook.ask(&again).boxed())
            .collect();
        for call in &mut retrying {
            assert!(poll!(call).is_pending());
        }
        let review = asked("once");
        let other = webhook.ask(&review).now_or_never();
        assert_eq!(other, Some(Ok(review.clone())));
        for answer in futures::future::join_all(retrying).await {
            assert_eq!(answer, Err("overloaded".to_owned()));
        }
        let attempts = *client.attempts.lock().expect("sound");
        assert_eq!(attempts, UNDER_WAY_MAX * ATTEMPTS_MAX + 1);
    }
}
