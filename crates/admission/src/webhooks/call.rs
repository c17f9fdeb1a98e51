//! The call of one webhook for one request.

use std::sync::Arc;

use bytes::Bytes;
use ringwatch::meta::json_text;
use ringwatch_apimachinery::Error;
use ringwatch_offload::{Work, offload, offload_if_large};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use ringwatch_spans::{Attribute, start, text};
use serde_json::{Map, Value, json};

use super::Webhooks;
use super::answer::{self, WebhookVerdict};
use super::call_error::{CallError, CallOutcome, FailedCall, UNANSWERED, WRONG_CONFIGURATION};
use super::configuration::{Configuration, Hook};
use super::metrics::MeasuredCall;
use crate::expression::Variables;
use crate::match_context::RequestNamespace;
use crate::matching::is_exempt;
use crate::review::{ConvertedObjects, describe};
use crate::steps::AdmissionStep;

/// The names of the spans of calls, as in kube-apiserver.
const VALIDATING_SPAN: &str = "Call validating webhook";
const MUTATING_SPAN: &str = "Call mutating webhook";

/// Returns the attributes of a call's span, out of the review's request.
fn call_attributes(hook: &Hook, request: &Map<String, Value>, uid: &str) -> [Attribute; 6] {
    let field = |name| {
        request
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let resource = |name| &request.get("resource").unwrap_or(&Value::Null)[name];
    let resource =
        ["group", "version", "resource"].map(|name| resource(name).as_str().unwrap_or_default());
    let [group, version, plural] = resource;
    [
        text("configuration", &hook.id.0),
        text("webhook", &hook.name),
        text("resource", &format!("{group}/{version}, Resource={plural}")),
        text("subresource", field("subResource")),
        text("operation", field("operation")),
        text("UID", uid),
    ]
}

impl Webhooks {
    /// Returns the configurations that a request is compared with; none if it is exempt.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if they have not been read in time, at the start of the server.
    pub(super) async fn configurations(
        &self,
        request: &Request<'_>,
        object: &Value,
    ) -> Result<Arc<[Arc<Configuration>]>, Error> {
        if is_exempt(request) {
            return Ok(Arc::new([]));
        }
        let all = self.configurations.get().await;
        all.ok_or_else(|| request.forbid(object, "not yet ready to handle request"))
    }

    /// Returns the resource as which a request matches a webhook; `None` if the webhook is not to be called.
    ///
    /// # Errors
    /// An error of the store, or [`Error::Forbidden`] if a match condition fails and the webhook's `failurePolicy` is
    /// `Fail`.
    pub(super) async fn applies(
        &self,
        hook: &Hook,
        request: &Request<'_>,
        namespace: &mut RequestNamespace<'_>,
        object: &Value,
    ) -> Result<Option<Arc<Resource>>, Error> {
        let Some(resource) = namespace.matched(&hook.criteria, object).await? else {
            return Ok(None);
        };
        if hook.conditions.is_empty() {
            return Ok(Some(resource));
        }
        offload(Work::Expressions).await;
        let shown = ConvertedObjects::new(request, &resource, object);
        let mut variables = Variables::new();
        variables.add("object", &shown.object);
        variables.add("oldObject", &shown.old);
        let described = describe(request, &resource, "");
        variables.add("request", &Value::Object(described));
        variables.add_authorizer(&self.match_context, request, &resource);
        match hook.conditions.hold(&mut variables) {
            Ok(true) => Ok(Some(resource)),
            Err(why) if hook.fails => Err(request.forbid(object, why)),
            Ok(false) | Err(_) => Ok(None),
        }
    }

    /// Calls a webhook, and measures the call.
    ///
    /// # Errors
    /// [`Error::Denied`] with its refusal, [`Error::BadRequest`] for a dry run that it does not support,
    /// [`Error::Internal`] if the call fails and its `failurePolicy` is `Fail`.
    pub(super) async fn call(
        &self,
        hook: &Hook,
        request: &Request<'_>,
        resource: &Resource,
        object: &Value,
        mutating: bool,
    ) -> Result<CallOutcome, Error> {
        let clock = &request.context.clock;
        let since = clock.now();
        let called = self.call_once(hook, request, resource, object, mutating);
        let called = called.await;
        let call = MeasuredCall {
            name: &hook.name,
            step: if mutating {
                AdmissionStep::Admit
            } else {
                AdmissionStep::Validate
            },
            operation: request.operation,
            took: clock.now() - since,
        };
        self.metrics.called(&call, &called);
        if mutating {
            request.context.webhooks_took(call.took);
        }
        called.map_err(CallError::into_error)
    }

    async fn call_once(
        &self,
        hook: &Hook,
        request: &Request<'_>,
        resource: &Resource,
        object: &Value,
        mutating: bool,
    ) -> Result<CallOutcome, CallError> {
        if request.dry_run && !hook.knows_dry_runs {
            let name = &hook.name;
            return Err(CallError::Unsupported(Error::BadRequest(format!(
                "admission webhook {name:?} does not support dry run"
            ))));
        }
        let ConvertedObjects { object, old } = ConvertedObjects::new(request, resource, object);
        let uid = uuid::Uuid::new_v4().to_string();
        let mut review_request = describe(request, resource, &uid);
        review_request.insert("object".to_owned(), object);
        review_request.insert("oldObject".to_owned(), old);
        match self.ask(hook, &mut review_request, &uid, mutating).await {
            Ok(answer) => {
                answer
                    .warnings
                    .into_iter()
                    .for_each(|text| request.context.warn(text));
                for (key, value) in answer.annotations {
                    let key = format!("{}/{key}", hook.name);
                    request.context.annotate(key, || value);
                }
                match answer.verdict {
                    WebhookVerdict::Refused(status) => Err(CallError::Refused(status)),
                    WebhookVerdict::Allowed(patch) => {
                        let shown = review_request.remove("object").unwrap_or_default();
                        let patch = patch.map(|it| it.operations(!shown.is_null()));
                        match patch.transpose() {
                            Ok(patch) => {
                                let patch = patch.flatten().map(|patch| (patch, shown));
                                Ok(CallOutcome::Allowed(patch))
                            }
                            Err(error) => failed(hook, error.to_string(), UNANSWERED),
                        }
                    }
                }
            }
            Err(FailedCall { why, code }) => failed(hook, why, code),
        }
    }

    async fn ask(
        &self,
        hook: &Hook,
        review_request: &mut Map<String, Value>,
        uid: &str,
        mutating: bool,
    ) -> Result<answer::ReviewResponse, FailedCall> {
        let version = hook.review_version;
        let review = json!({"kind": "AdmissionReview", "apiVersion": version.api_version(),
            "request": std::mem::take(review_request)});
        let body = Bytes::from(json_text(&review));
        if let Value::Object(mut review) = review
            && let Some(Value::Object(request)) = review.remove("request")
        {
            *review_request = request;
        }
        let client = hook.client.as_ref();
        let client = client.map_err(|why| FailedCall {
            why: format!("could not get REST client: {why}"),
            code: WRONG_CONFIGURATION,
        })?;
        let span = start(
            if mutating {
                MUTATING_SPAN
            } else {
                VALIDATING_SPAN
            },
            || call_attributes(hook, review_request, uid),
        );
        let posted = span
            .within(self.client.post(client, body, hook.timeout))
            .await;
        drop(span);
        let content = posted.map_err(|error| FailedCall {
            why: format!("failed to call webhook: {error}"),
            code: error.status.unwrap_or(UNANSWERED),
        })?;
        offload_if_large(Work::Object, &content).await;
        let answer = answer::read(&content, hook, uid, mutating);
        answer.map_err(|error| FailedCall {
            why: error.to_string(),
            code: UNANSWERED,
        })
    }
}

/// Returns the outcome of a call without a valid answer: it fails the request, or goes on without.
fn failed(hook: &Hook, why: String, code: u16) -> Result<CallOutcome, CallError> {
    let why = format!("failed calling webhook {:?}: {why}", hook.name);
    if hook.fails {
        return Err(CallError::Failed(FailedCall { why, code }));
    }
    tracing::warn!("{why}; the request goes on without");
    Ok(CallOutcome::Ignored(code))
}
