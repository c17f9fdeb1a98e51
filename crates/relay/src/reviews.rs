//! Reviews by the upstream: whose a token is, and what a user may do.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ringwatch_authentication::{TokenWebhook, TokenWebhookConfig};
use ringwatch_authorization::{
    Authorizer, AuthorizerStep, Conditions, FailurePolicy, WebhookAuthorizer, WebhookConfig,
};
use ringwatch_webhook::{CallError, ClientConfig, ReviewVersion, WebhookClient, WebhookTarget};

use super::refusal::Refusal;
use super::upstream::Upstream;

/// The path of TokenReviews.
const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
/// The path of SubjectAccessReviews.
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// Maximum time of a review, repeated attempts included.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// The times for which answers of the upstream are kept. A right that is withdrawn there lasts here for as long.
#[derive(Clone, Copy, Debug)]
pub struct ReviewTtls {
    /// That of the user of a token.
    pub token: Duration,
    /// That of an action which is allowed.
    pub allowed: Duration,
    /// That of any other.
    pub refused: Duration,
}

/// Sends reviews to the upstream, with the relay's own credentials.
#[derive(Debug)]
struct Reviews(Arc<Upstream>);

/// Returns the authenticator that asks the upstream whose a token is.
#[must_use]
pub fn token_reviews(upstream: &Arc<Upstream>, ttls: ReviewTtls) -> TokenWebhook {
    let config = TokenWebhookConfig {
        to: at(TOKENS),
        version: ReviewVersion::V1,
        ttl: ttls.token,
    };
    let reviews = Arc::new(Reviews(Arc::clone(upstream)));
    TokenWebhook::new(config, reviews, upstream.clock().clone())
}

/// Returns the authorizer that asks the upstream what a user may do.
#[must_use]
pub fn access_reviews(upstream: &Arc<Upstream>, ttls: ReviewTtls) -> Authorizer {
    let config = WebhookConfig {
        name: "upstream".to_owned(),
        to: at(ACCESS),
        version: ReviewVersion::V1,
        timeout: REVIEW_TIMEOUT,
        authorized_ttl: ttls.allowed,
        unauthorized_ttl: ttls.refused,
        failure_policy: FailurePolicy::Deny,
        conditions: Conditions::default(),
    };
    let reviews = Arc::new(Reviews(Arc::clone(upstream)));
    let webhook = WebhookAuthorizer::new(config, reviews, upstream.clock().clone());
    Authorizer::new(vec![AuthorizerStep::Webhook(Arc::new(webhook))])
}

/// Returns the address of reviews: a path, since the upstream is known.
fn at(path: &str) -> ClientConfig {
    ClientConfig {
        name: path.to_owned(),
        target: WebhookTarget::Url(path.to_owned()),
        ca_bundle: None,
        token: None,
        pair: None,
    }
}

#[async_trait]
impl WebhookClient for Reviews {
    async fn post(
        &self,
        to: &ClientConfig,
        review: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let path = to.target.to_string();
        let asked = self.0.review(&path, review);
        let asked = self.0.clock().timeout(timeout, asked).await;
        let unanswered = |why: String| CallError {
            why,
            is_passing: false,
            status: None,
        };
        let answer = asked
            .map_err(|_| unanswered("the upstream did not answer in time".to_owned()))?
            .map_err(|error| unanswered(error.to_string()))?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        Err(CallError {
            why: Refusal::answer(&answer).message,
            is_passing: answer.is_overload(),
            status: Some(answer.status.as_u16()),
        })
    }
}
