//! Authenticates tokens by a webhook, which is asked with TokenReviews.
//!
//! Follows plugin/pkg/authenticator/token/webhook/webhook.go of k8s.io/apiserver of Kubernetes 1.36.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::User;
use ringwatch_webhook::answer_cache::{AnswerCache, CacheableAnswer, QuestionDigest, texts_bytes};
use ringwatch_webhook::shares::Shares;
use ringwatch_webhook::single_flight::SingleFlight;
use ringwatch_webhook::{ClientConfig, ReviewVersion, ReviewWebhook, WebhookClient};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{TokenError, TokenSource, TokenUser};

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenReview";
/// The bound of a call, attempts and pauses included.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of calls at a time for tokens of one network, or of one user's reviews: half of those that a webhook
/// gets.
const OF_A_SOURCE_MAX: usize = 50;
/// The bytes of an extra attribute besides those of its texts: its list, and its share of a map's node.
const EXTRA_BYTES: usize = 100;

/// The configuration of a token webhook.
#[derive(Clone, Debug)]
pub struct TokenWebhookConfig {
    /// The address of the webhook and the TLS for it.
    pub to: ClientConfig,
    /// The version of the TokenReviews that it is sent.
    pub version: ReviewVersion,
    /// The time for which an answer is cached, be it yes or no; 0 for none.
    pub ttl: Duration,
}

/// Authenticates tokens by a webhook.
#[derive(Debug)]
pub struct TokenWebhook {
    shared: Arc<ReviewParts>,
    /// The calls in progress: requests with the same token share one.
    calls: SingleFlight<QuestionDigest, Result<TokenVerdict, String>>,
}

/// The parts of a [`TokenWebhook`] that calls use.
#[derive(Debug)]
struct ReviewParts {
    webhook: ReviewWebhook,
    version: ReviewVersion,
    ttl: Duration,
    cache: AnswerCache<TokenVerdict>,
    /// The calls by those from whom the tokens come: tokens that somebody makes up keep nobody else waiting.
    shares: Shares<TokenSource>,
    clock: Clock,
}

/// The answer of the webhook about a token; `None` if the token is nobody's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TokenVerdict(Option<TokenUser>);

impl CacheableAnswer for TokenVerdict {
    fn grants(&self) -> bool {
        self.0.is_some()
    }

    fn heap_bytes(&self) -> usize {
        let Some(TokenUser { user, audiences }) = &self.0 else {
            return 0;
        };
        let extra = user.extra.iter();
        let extra = extra.map(|(key, values)| {
            EXTRA_BYTES + texts_bytes(std::iter::once(key)) + texts_bytes(values)
        });
        let texts = user.groups.iter().chain(audiences);
        texts_bytes(texts.chain([&user.name, &user.uid])) + extra.sum::<usize>()
    }
}

/// The status of a TokenReview.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ReviewStatus {
    authenticated: bool,
    user: UserInfo,
    audiences: Vec<String>,
    error: String,
}

/// A user in a TokenReview.
#[derive(Default, Deserialize)]
#[serde(default)]
struct UserInfo {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: std::collections::BTreeMap<String, Vec<String>>,
}

impl TokenWebhook {
    /// Creates an authenticator that calls the webhook by `client`.
    #[must_use]
    pub fn new(config: TokenWebhookConfig, client: Arc<dyn WebhookClient>, clock: Clock) -> Self {
        Self {
            shared: Arc::new(ReviewParts {
                webhook: ReviewWebhook::new(config.to, client, TIMEOUT, clock.clone()),
                version: config.version,
                ttl: config.ttl,
                cache: AnswerCache::default(),
                shares: Shares::new(OF_A_SOURCE_MAX),
                clock,
            }),
            calls: SingleFlight::default(),
        }
    }

    /// Returns the user of a token that is for one of these audiences; `None` if the webhook knows none. `own` are the
    /// audiences of a token for which the webhook names none.
    ///
    /// # Errors
    /// [`TokenError::Webhook`] if there is no answer, or one that is an error.
    pub(super) async fn identify(
        &self,
        token: &str,
        from: TokenSource,
        own: &[String],
        wanted: &[String],
    ) -> Result<Option<TokenUser>, TokenError> {
        let ReviewParts { cache, clock, .. } = &*self.shared;
        let texts = std::iter::once(token).chain(wanted.iter().map(String::as_str));
        let question = cache.question(texts);
        if let Some(TokenVerdict(known)) = cache.get(&question, clock.now()) {
            return Ok(known);
        }
        let call = || {
            let shared = Arc::clone(&self.shared);
            let (token, own, wanted) = (token.to_owned(), own.to_vec(), wanted.to_vec());
            async move {
                let asked = shared.ask(question, &token, &own, &wanted);
                let asked = shared.shares.within(from, asked);
                let asked = shared.clock.timeout(TIMEOUT, asked).await;
                asked.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
            }
            .boxed()
        };
        let verdict = self.calls.run(question, call).await;
        verdict.map(|it| it.0).map_err(TokenError::Webhook)
    }
}

impl ReviewParts {
    /// Asks the webhook, and remembers the answer.
    async fn ask(
        &self,
        question: QuestionDigest,
        token: &str,
        own: &[String],
        wanted: &[String],
    ) -> Result<TokenVerdict, String> {
        // Another call may have ended since the caller looked.
        if let Some(known) = self.cache.get(&question, self.clock.now()) {
            return Ok(known);
        }
        let api_version = self.version.of_group(GROUP);
        let review = json!({"kind": KIND, "apiVersion": api_version, "metadata": {},
            "spec": {"token": token, "audiences": wanted}, "status": {"user": {}}});
        let answer = self.webhook.ask(&review).await;
        let answer = answer.and_then(|it| status(&it));
        let status = answer.inspect_err(|why| {
            tracing::error!("Failed to make webhook authenticator request: {why}")
        })?;
        let verdict = TokenVerdict(status.identified(own, wanted)?);
        let now = self.clock.now();
        self.cache.put(question, &verdict, self.ttl, now);
        Ok(verdict)
    }
}

impl ReviewStatus {
    fn identified(self, own: &[String], wanted: &[String]) -> Result<Option<TokenUser>, String> {
        let named = if self.audiences.is_empty() {
            own
        } else {
            &self.audiences
        };
        let common = wanted.iter().filter(|it| named.contains(it));
        let audiences: Vec<String> = common.cloned().collect();
        if audiences.is_empty() && !wanted.is_empty() {
            return Ok(None);
        }
        if !self.authenticated {
            return if self.error.is_empty() {
                Ok(None)
            } else {
                Err(self.error)
            };
        }
        let user = self.user;
        Ok(Some(TokenUser {
            user: User {
                name: user.username,
                uid: user.uid,
                groups: user.groups,
                extra: user.extra,
            },
            audiences,
        }))
    }
}

/// Reads the status of a TokenReview that came back, whose values have the right types.
fn status(review: &Value) -> Result<ReviewStatus, String> {
    let status = review["status"].clone();
    if status.is_null() {
        return Ok(ReviewStatus::default());
    }
    serde_json::from_value(without_nulls(status)).map_err(|error| format!("status: {error}"))
}

/// Removes members that are null, which Go reads as absent.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(
                members
                    .map(|(name, it)| (name, without_nulls(it)))
                    .collect(),
            )
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::Mutex;

    use bytes::Bytes;
    use ringwatch_apimachinery::Requester;
    use ringwatch_webhook::{CallError, WebhookTarget};
    use tokio::sync::Semaphore;

    use super::*;

    /// A webhook that answers with one status, and the reviews that it got.
    #[derive(Debug)]
    struct Answering {
        answer: Result<Value, CallError>,
        asked: Mutex<Vec<Value>>,
        /// The calls that may be answered.
        may: Semaphore,
    }

    #[async_trait::async_trait]
    impl WebhookClient for Answering {
        async fn post(
            &self,
            _: &ClientConfig,
            review: Bytes,
            _: Duration,
        ) -> Result<Bytes, CallError> {
            let review: Value = serde_json::from_slice(&review).expect("JSON");
            let mut answer = review.clone();
            self.asked.lock().expect("sound").push(review);
            self.may.acquire().await.expect("open").forget();
            answer["status"] = self.answer.clone()?;
            Ok(answer.to_string().into())
        }
    }

    fn webhook(answer: Result<Value, CallError>) -> (TokenWebhook, Arc<Answering>) {
        let client = Arc::new(Answering {
            answer,
            asked: Mutex::default(),
            may: Semaphore::new(100),
        });
        let to = ClientConfig {
            name: "webhook".to_owned(),
            target: WebhookTarget::Url("https://webhook".to_owned()),
            ca_bundle: None,
            token: None,
            pair: None,
        };
        let config = TokenWebhookConfig {
            to,
            version: ReviewVersion::V1Beta1,
            ttl: Duration::from_secs(120),
        };
        let webhook = TokenWebhook::new(config, Arc::clone(&client) as _, Clock::real());
        (webhook, client)
    }

    fn unknown() -> TokenSource {
        TokenSource::from(None)
    }

    fn own() -> Vec<String> {
        vec!["api".to_owned()]
    }

    #[tokio::test]
    async fn the_webhook_names_the_user_and_is_asked_once() {
        let user = json!({"username": "ann", "uid": "1", "groups": ["a"], "extra": {"k": ["v"]}});
        let (webhook, client) = webhook(Ok(json!({"authenticated": true, "user": user})));
        for _ in 0..2 {
            let found = webhook
                .identify("t", unknown(), &own(), &own())
                .await
                .expect("asked");
            let found = found.expect("a user");
            assert_eq!(
                (found.user.name.as_str(), found.user.uid.as_str()),
                ("ann", "1")
            );
            assert_eq!(found.user.groups, ["a"]);
            assert_eq!(found.user.extra["k"], ["v"]);
            assert_eq!(found.audiences, own());
        }
        let other = ["other".to_owned()];
        let found = webhook
            .identify("t", unknown(), &own(), &other)
            .await
            .expect("asked");
        assert_eq!(found, None, "it is not said to be for that audience");
        let asked = client.asked.lock().expect("sound").clone();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0]["apiVersion"], "authentication.k8s.io/v1beta1");
        assert_eq!(
            asked[0]["spec"],
            json!({"token": "t", "audiences": ["api"]})
        );
    }

    #[tokio::test]
    async fn a_no_is_remembered_and_an_error_is_not() {
        let (nobody, client) = webhook(Ok(json!({"authenticated": false, "user": null})));
        for _ in 0..2 {
            assert_eq!(
                nobody
                    .identify("t", unknown(), &own(), &own())
                    .await
                    .expect("asked"),
                None
            );
        }
        assert_eq!(client.asked.lock().expect("sound").len(), 1);
        let failing = CallError {
            why: "broken".to_owned(),
            is_passing: false,
            status: None,
        };
        for (answer, words) in [
            (Ok(json!({"authenticated": false, "error": "no"})), "no"),
            (
                Ok(json!({"authenticated": "yes"})),
                "json: cannot unmarshal string into Go struct field TokenReviewStatus.status.authenticated of type bool",
            ),
            (
                Ok(json!({"authenticated": true, "user": {"groups": "admins"}})),
                "json: cannot unmarshal string into Go struct field UserInfo.status.user.groups of type []string",
            ),
            (Err(failing), "broken"),
        ] {
            let (wrong, client) = webhook(answer);
            for _ in 0..2 {
                let error = wrong
                    .identify("t", unknown(), &own(), &own())
                    .await
                    .expect_err(words);
                assert!(error.to_string().starts_with(words), "{error}");
            }
            assert_eq!(client.asked.lock().expect("sound").len(), 2, "{words}");
        }
    }

    #[tokio::test]
    async fn requests_with_one_token_share_a_call() {
        let (webhook, client) = webhook(Ok(
            json!({"authenticated": true, "user": {"username": "ann"}}),
        ));
        client.may.forget_permits(100);
        let own = own();
        let mut together = [(); 3].map(|()| Box::pin(webhook.identify("t", unknown(), &own, &own)));
        for one in &mut together {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(client.asked.lock().expect("sound").len(), 1);
        client.may.add_permits(1);
        for found in futures::future::join_all(together).await {
            let found = found.expect("asked").expect("a user");
            assert_eq!(found.user.name, "ann");
        }
        assert_eq!(client.asked.lock().expect("sound").len(), 1);
    }

    #[tokio::test]
    async fn tokens_that_one_network_makes_up_keep_no_other_waiting() {
        let of = |address: &str| TokenSource::from(address.parse::<IpAddr>().ok());
        keeps_nobody_waiting(of("10.0.0.1"), of("10.0.0.2")).await;
    }

    #[tokio::test]
    async fn tokens_that_one_user_has_reviewed_keep_no_other_waiting() {
        let of = |name: &str| {
            TokenSource::Reviewer(Requester {
                name: name.into(),
                ..Requester::default()
            })
        };
        keeps_nobody_waiting(of("mallory"), of("ann")).await;
    }

    async fn keeps_nobody_waiting(stranger: TokenSource, known: TokenSource) {
        let user = json!({"authenticated": true, "user": {"username": "ann"}});
        let (webhook, client) = webhook(Ok(user));
        client.may.forget_permits(100);
        let own = own();
        let tokens: Vec<_> = (0..150).map(|number| number.to_string()).collect();
        let mut flood: Vec<_> = tokens
            .iter()
            .map(|token| Box::pin(webhook.identify(token, stranger.clone(), &own, &own)))
            .collect();
        for one in &mut flood {
            assert!(futures::poll!(one).is_pending());
        }
        let asked = || client.asked.lock().expect("sound").len();
        assert_eq!(asked(), OF_A_SOURCE_MAX);
        let mut good = Box::pin(webhook.identify("t", known, &own, &own));
        assert!(futures::poll!(&mut good).is_pending());
        assert_eq!(asked(), OF_A_SOURCE_MAX + 1, "it is asked at once");
        drop(flood.split_off(100));
        client.may.add_permits(101);
        good.await.expect("asked").expect("a user");
        for one in flood {
            one.await.expect("asked").expect("a user");
        }
    }

    #[tokio::test]
    async fn tokens_that_are_made_up_push_no_good_one_out() {
        let user = json!({"authenticated": true, "user": {"username": "ann"}});
        let (webhook, client) = webhook(Ok(user));
        webhook
            .identify("t", unknown(), &own(), &own())
            .await
            .expect("asked");
        let refused = TokenVerdict(None);
        let ReviewParts { cache, clock, .. } = &*webhook.shared;
        for number in 0..20_000 {
            let question = cache.question([&*number.to_string()]);
            cache.put(question, &refused, Duration::from_secs(120), clock.now());
        }
        webhook
            .identify("t", unknown(), &own(), &own())
            .await
            .expect("asked");
        assert_eq!(client.asked.lock().expect("sound").len(), 1);
    }

    #[test]
    fn all_parts_of_a_user_are_counted() {
        let of = |user: User| {
            let audiences = Vec::new();
            TokenVerdict(Some(TokenUser { user, audiences })).heap_bytes()
        };
        let empty = of(User::default());
        let groups = of(User {
            groups: vec![String::new(); 1000],
            ..User::default()
        });
        assert!(groups - empty >= 1000 * size_of::<String>());
        let extra = (0..1000).map(|number| (number.to_string(), vec![String::new()]));
        let extra = of(User {
            extra: extra.collect(),
            ..User::default()
        });
        assert!(extra - empty >= 1000 * (EXTRA_BYTES + 2 * size_of::<String>()));
    }

    #[tokio::test]
    async fn audiences_of_the_answer_count() {
        let status = json!({"authenticated": true, "user": {"username": "ann"},
            "audiences": ["b", "c"]});
        let (webhook, _) = webhook(Ok(status));
        let wanted = ["a".to_owned(), "b".to_owned()];
        let found = webhook
            .identify("t", unknown(), &own(), &wanted)
            .await
            .expect("asked");
        assert_eq!(found.expect("a user").audiences, ["b"]);
        let found = webhook
            .identify("t", unknown(), &own(), &own())
            .await
            .expect("asked");
        assert_eq!(found, None);
    }
}
