//! Authorizes requests, and builds the response to a forbidden one.

use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderMap, HeaderValue, Response};
use ringwatch::clock::Clock;
use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_apimachinery::User;
use ringwatch_audit::Recording;
use ringwatch_authorization::{Attributes, Authorizer, Decision};
use ringwatch_http::ResponseBody;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_registry::Verb;

use super::errors::{Failure, TextError};
use super::negotiation::{status_format, wants_pretty};
use super::params::Query;
use super::request_info::RequestInfo;
use super::response;

/// The annotations of a request's decision, and their values.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

/// Returns the refusal of a request that its user may not make; `None` if it is allowed. The decision is recorded.
///
/// The attributes come from the same [`RequestInfo`] by which the request is answered, so that nothing can be
/// authorised as one thing and served as another.
pub async fn refusal(
    authorizer: &Authorizer,
    user: &User,
    info: &RequestInfo,
    query: &str,
    headers: &HeaderMap,
    recording: Option<(&Recording, &Clock)>,
) -> Option<Response<ResponseBody>> {
    offload_if_large(Work::Body, query.as_bytes()).await;
    let query = Query::parse(query);
    let selection = Selection::new(info, &query);
    let attributes = selection.attributes(user, info);
    let Some((recording, clock)) = recording else {
        return refusal_of(authorizer, &attributes, &query, headers).await;
    };
    let from = clock.now();
    let decision = authorizer.decide(&attributes).await;
    recording.took("authorization", clock.now().duration_since(from));
    recording.annotate(DECISION, if decision.allowed { "allow" } else { "forbid" });
    recording.annotate(REASON, decision.reason.as_str());
    refused(&decision, &attributes, &query, headers)
}

/// The objects that a request selects by its query.
pub(super) struct Selection {
    fields: Option<FieldSelector>,
    labels: Option<LabelSelector>,
    /// The one object, if it is known to be one.
    name: Option<String>,
}

impl Selection {
    pub(super) fn new(info: &RequestInfo, query: &Query) -> Self {
        let selector = selector(info, query);
        let verb = info.verb.on_resource();
        let selects = matches!(
            verb,
            Some(Verb::DeleteCollection | Verb::List | Verb::Watch)
        );
        let narrows = knows_selectors(info) && selects;
        let fields = narrows.then(|| FieldSelector::parse(query.first("fieldSelector")));
        let labels = narrows.then(|| LabelSelector::parse(query.first("labelSelector")));
        Self {
            fields: fields.and_then(Result::ok).filter(|it| !it.is_empty()),
            labels: labels.and_then(Result::ok).filter(|it| !it.is_empty()),
            name: name_selected_by(info, selector.as_ref()),
        }
    }

    /// Returns the attributes of a request of a user.
    pub(super) fn attributes<'a>(
        &'a self,
        user: &'a User,
        info: &'a RequestInfo,
    ) -> Attributes<'a> {
        Attributes {
            user,
            asker: user,
            verb: info.verb.name(),
            is_resource: info.is_resource,
            namespace: &info.namespace,
            group: &info.group,
            version: &info.version,
            resource: &info.resource,
            subresource: &info.subresource,
            name: self.name.as_deref().unwrap_or(&info.name),
            fields: self.fields.as_ref(),
            labels: self.labels.as_ref(),
            path: &info.path,
        }
    }
}

/// Returns the name of the one object that a list or watch selects; `None` if it selects others too.
#[must_use]
pub fn selected_name(info: &RequestInfo, query: &str) -> Option<String> {
    let selector = selector(info, &Query::parse(query));
    name_selected_by(info, selector.as_ref())
}

/// Returns the refusal of an action that is not allowed; `None` if it is.
pub(super) async fn refusal_of(
    authorizer: &Authorizer,
    attributes: &Attributes<'_>,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    let decision = authorizer.decide(attributes).await;
    refused(&decision, attributes, query, headers)
}

fn refused(
    decision: &Decision,
    attributes: &Attributes<'_>,
    query: &Query,
    headers: &HeaderMap,
) -> Option<Response<ResponseBody>> {
    if decision.allowed {
        return None;
    }
    tracing::debug!(
        user = attributes.user.name,
        reason = decision.reason,
        "forbidden"
    );
    if !decision.error.is_empty() {
        let path = attributes.path;
        let text = format!("Internal Server Error: {path:?}: {}", decision.error);
        return Some(TextError::Internal(&text).response());
    }
    let failure = Failure::forbidden(attributes, &decision.explain(attributes));
    let pretty = wants_pretty(query, headers);
    let mut refusal = response::failure(status_format(headers, pretty), &failure);
    let no_sniff = HeaderValue::from_static("nosniff");
    refusal
        .headers_mut()
        .insert(X_CONTENT_TYPE_OPTIONS, no_sniff);
    Some(refusal)
}

/// Returns false for paths with the old `/watch/` prefix, whose selectors are not used for authorization.
fn knows_selectors(info: &RequestInfo) -> bool {
    info.is_resource && !info.legacy_watch
}

/// Returns the field selector of a list or watch.
fn selector(info: &RequestInfo, query: &Query) -> Option<FieldSelector> {
    let verb = info.verb.on_resource();
    let selects = knows_selectors(info) && matches!(verb, Some(Verb::List | Verb::Watch));
    let selector = Some(query.first("fieldSelector")).filter(|it| selects && !it.is_empty())?;
    FieldSelector::parse(selector).ok()
}

/// Returns the name to which a list or watch is restricted by a field selector; a rule that allows this name allows the
/// request.
fn name_selected_by(info: &RequestInfo, selector: Option<&FieldSelector>) -> Option<String> {
    if !info.name.is_empty() {
        return None;
    }
    let name = selector?.requires_exact("metadata.name")?;
    let is_segment = !matches!(name, "." | "..") && !name.contains(['/', '%']);
    is_segment.then(|| name.to_owned())
}
