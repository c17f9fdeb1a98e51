//! Authorization by a webhook, which is asked with SubjectAccessReviews.

mod conditions;
mod review;

use std::sync::Arc;
use std::time::Duration;

pub use self::conditions::Conditions;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::Requester;
pub use ringwatch_webhook::ReviewVersion;
use ringwatch_webhook::answer_cache::{self, AnswerCache, QuestionDigest};
use ringwatch_webhook::shares::Shares;
use ringwatch_webhook::{ClientConfig, ReviewWebhook, WebhookClient};

use super::Attributes;

/// Maximum number of calls at a time for one user: half of those that a webhook gets.
const OF_A_USER_MAX: usize = 50;

/// The decision if a call to the webhook fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The next authorizer decides.
    #[default]
    NoOpinion,
    /// The request is denied.
    Deny,
}

/// The configuration of an authorization webhook.
#[derive(Debug)]
pub struct WebhookConfig {
    /// The webhook's name, for metrics and messages.
    pub name: String,
    /// The address of the webhook and the TLS for it.
    pub to: ClientConfig,
    /// The version of the SubjectAccessReviews that it is sent.
    pub version: ReviewVersion,
    /// The bound of a call, attempts and pauses included.
    pub timeout: Duration,
    /// The time for which an allowing answer is cached; 0 for none.
    pub authorized_ttl: Duration,
    /// The time for which any other answer is cached; 0 for none.
    pub unauthorized_ttl: Duration,
    /// The decision if a call fails.
    pub failure_policy: FailurePolicy,
    /// The conditions under which the webhook is called.
    pub conditions: Conditions,
}

/// The answer of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AccessAnswer {
    Allowed(String),
    Denied(String),
    /// The webhook neither allows nor denies; the next authorizer decides.
    NoOpinion(String),
    /// The webhook both allows and denies, which denies with an error.
    Contradictory(String),
    /// The webhook has not answered, for this reason. The next authorizer decides unless this denies.
    Failed {
        why: String,
        denies: bool,
    },
}

impl answer_cache::CacheableAnswer for AccessAnswer {
    fn grants(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Self::Allowed(text)
            | Self::Denied(text)
            | Self::NoOpinion(text)
            | Self::Contradictory(text) => text.len(),
            Self::Failed { why, .. } => why.len(),
        }
    }
}

/// An authorizer that calls a webhook.
#[derive(Debug)]
pub struct WebhookAuthorizer {
    config: WebhookConfig,
    webhook: ReviewWebhook,
    cache: AnswerCache<AccessAnswer>,
    /// The calls by the users who ask: one with many questions keeps nobody else waiting.
    shares: Shares<Requester>,
    clock: Clock,
}

impl WebhookAuthorizer {
    /// Returns an authorizer that asks the webhook of `config` by `client`.
    #[must_use]
    pub fn new(config: WebhookConfig, client: Arc<dyn WebhookClient>, clock: Clock) -> Self {
        let webhook = ReviewWebhook::new(config.to.clone(), client, config.timeout, clock.clone());
        Self {
            config,
            webhook,
            cache: AnswerCache::default(),
            shares: Shares::new(OF_A_USER_MAX),
            clock,
        }
    }

    /// Returns the webhook's answer, which may be a remembered one.
    pub(super) async fn decide(&self, attributes: &Attributes<'_>) -> AccessAnswer {
        let question = self.question(attributes);
        if let Some(answer) = self.known(attributes, &question) {
            return answer;
        }
        match self.ask(attributes).await {
            Ok(answer) => {
                let ttl = match answer {
                    AccessAnswer::Allowed(_) | AccessAnswer::Contradictory(_) => {
                        self.config.authorized_ttl
                    }
                    _ => self.config.unauthorized_ttl,
                };
                self.cache.put(question, &answer, ttl, self.clock.now());
                answer
            }
            Err(why) => self.failed(&why),
        }
    }

    /// Decides without waiting: what is not cached is as if the webhook could not be called.
    pub(super) fn decide_now(&self, attributes: &Attributes<'_>) -> AccessAnswer {
        self.known(attributes, &self.question(attributes))
            .unwrap_or_else(|| self.failed("an expression cannot wait for it"))
    }

    /// Returns the answer if it is known without a call.
    fn known(
        &self,
        attributes: &Attributes<'_>,
        question: &QuestionDigest,
    ) -> Option<AccessAnswer> {
        match self.config.conditions.hold(attributes) {
            Ok(true) => self.cache.get(question, self.clock.now()),
            Ok(false) => Some(AccessAnswer::NoOpinion(String::new())),
            Err(why) => Some(self.failed(&why)),
        }
    }

    fn failed(&self, why: &str) -> AccessAnswer {
        let name = &self.config.name;
        tracing::warn!(%name, why, "cannot call the authorization webhook");
        AccessAnswer::Failed {
            why: why.to_owned(),
            denies: self.config.failure_policy == FailurePolicy::Deny,
        }
    }

    async fn ask(&self, attributes: &Attributes<'_>) -> Result<AccessAnswer, String> {
        let version = self.config.version;
        let review = review::subject_access_review(review::spec(attributes, version), version);
        let asked = self.webhook.ask(&review);
        let asked = self.shares.within(Requester::from(attributes.asker), asked);
        let answer = self.clock.timeout(self.config.timeout, asked).await;
        let answer = answer.map_err(|_| "context deadline exceeded".to_owned())??;
        Ok(review::answer(&answer))
    }

    /// Returns the key under which the answer to a request is remembered.
    fn question(&self, attributes: &Attributes<'_>) -> QuestionDigest {
        let spec = review::spec(attributes, ReviewVersion::V1).to_string();
        self.cache.question([&*spec])
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use bytes::Bytes;
    use futures::FutureExt;
    use futures::future::join_all;
    use ringwatch_apimachinery::User;
    use ringwatch_webhook::{CallError, WebhookTarget};

    use super::*;

    /// A webhook that never answers about mallory.
    #[derive(Debug)]
    struct Slow;

    #[async_trait]
    impl WebhookClient for Slow {
        async fn post(
            &self,
            _: &ClientConfig,
            review: Bytes,
            _: Duration,
        ) -> Result<Bytes, CallError> {
            let mut review: serde_json::Value = serde_json::from_slice(&review).expect("JSON");
            if review["spec"]["user"] == "mallory" {
                std::future::pending::<()>().await;
            }
            review["status"]["allowed"] = true.into();
            Ok(review.to_string().into())
        }
    }

    fn authorizer() -> WebhookAuthorizer {
        let to = ClientConfig {
            name: "webhook".to_owned(),
            target: WebhookTarget::Url("https://webhook".to_owned()),
            ca_bundle: None,
            token: None,
            pair: None,
        };
        let config = WebhookConfig {
            name: "webhook".to_owned(),
            to,
            version: ReviewVersion::V1,
            timeout: Duration::from_secs(10),
            authorized_ttl: Duration::ZERO,
            unauthorized_ttl: Duration::ZERO,
            failure_policy: FailurePolicy::Deny,
            conditions: Conditions::default(),
        };
        WebhookAuthorizer::new(config, Arc::new(Slow), Clock::real())
    }

    fn user(name: &str) -> User {
        User {
            name: name.to_owned(),
            ..User::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_with_many_questions_keeps_nobody_else_waiting() {
        let (webhook, mallory, ann) = (authorizer(), user("mallory"), user("ann"));
        let paths: Vec<_> = (0..200).map(|path| format!("/{path}")).collect();
        let questions: Vec<_> = paths
            .iter()
            .map(|path| Attributes::of_path(&mallory, "get", path))
            .collect();
        let mut asked = Box::pin(join_all(questions.iter().map(|it| webhook.decide(it))));
        assert!(futures::poll!(&mut asked).is_pending());
        let attributes = Attributes::of_path(&ann, "get", "/");
        let answer = webhook.decide(&attributes).now_or_never();
        assert_eq!(answer, Some(AccessAnswer::Allowed(String::new())));
        // Whose request it is counts, and not whom it is about.
        let of_another = Attributes {
            asker: &mallory,
            ..attributes
        };
        let waits = webhook.decide(&of_another).now_or_never();
        assert_eq!(waits, None);
        let failed = AccessAnswer::Failed {
            why: "context deadline exceeded".to_owned(),
            denies: true,
        };
        for answer in asked.await {
            assert_eq!(answer, failed);
        }
    }
}
