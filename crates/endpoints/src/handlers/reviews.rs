//! Access reviews and token reviews, which are answered and never stored.

mod access;
mod metadata;
mod token;

use http::{HeaderMap, Response, StatusCode};
use ringwatch::codec;
use ringwatch_apimachinery::{Error, User};
use ringwatch_apply::Manager;
use ringwatch_authentication::Authenticator;
use ringwatch_authorization::Authorizer;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_offload::{Work, offload};
use ringwatch_registry::store::{
    ensure_namespace, normalize_sent_metadata, to_storage_version, wipe_system_fields,
};
use ringwatch_registry::{RequestContext, Resource, Verb};
use serde_json::{Value, json};

use crate::decode::{self, ExpectedKind, REVIEW_BYTES_MAX, read_body};
use crate::errors::{About, Failure};
use crate::memory_gate::MemoryGate;
use crate::negotiation::{OBJECT_MEDIA_TYPES, negotiate_whole};
use crate::params::{Query, WriteKind, WriteParams};
use crate::response;

/// A request for a review, such as a SubjectAccessReview: it is answered and never stored.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    /// The kind of review that is asked for.
    pub(crate) resource: &'a Resource,
    /// The query parameters.
    pub(crate) query: &'a Query,
    /// The HTTP headers of the request.
    pub(crate) headers: &'a HeaderMap,
    /// The user and the time of the request.
    pub(crate) context: &'a RequestContext,
    /// Decides for access reviews whether a user may do something.
    pub(crate) authorizer: &'a Authorizer,
    /// Reserves memory for the request's body.
    pub(crate) memory: &'a MemoryGate,
    /// Authenticates the token of a TokenReview.
    pub(crate) authenticator: &'a Authenticator,
    /// The namespace of the request; empty for none.
    pub(crate) namespace: &'a str,
    /// True if the answer is indented for people.
    pub(crate) pretty: bool,
}

/// Answers with the review in the body, its status filled in.
///
/// # Errors
/// 400, 406, 413, 415 and 422 for a bad review.
pub(crate) async fn review(
    review: Review<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let resource = review.resource;
    let version = resource.group_version.to_string();
    let in_protobuf = codec::kind(&version, &resource.kind).is_some();
    let output = negotiate_whole(
        review.headers,
        review.pretty,
        Some(OBJECT_MEDIA_TYPES),
        in_protobuf,
    )?;
    let content = read_body(
        review.memory,
        &review.context.user,
        review.headers,
        body,
        REVIEW_BYTES_MAX,
    )
    .await?;
    let params = WriteParams::read(review.query, WriteKind::Create)?;
    let expected = ExpectedKind {
        group_version: &resource.group_version,
        kind: &resource.kind,
        strategy: None,
        custom: false,
    };
    let object = decode::object(
        review.headers,
        &content,
        expected,
        params.field_validation,
        review.context,
    )?;
    if let Some(recording) = &review.context.recording {
        recording.request_object(&object);
    }
    let about = About {
        resource,
        name: "",
        verb: Verb::Create,
    };
    let answer = answer(&review, &version, object).await;
    let answer = answer.map_err(|error| Failure::from_error(&error, about))?;
    response::serialized(StatusCode::CREATED, output.format, &answer)
}

async fn answer(review: &Review<'_>, version: &str, object: Value) -> Result<Value, Error> {
    let context = review.context;
    let mut object = to_storage_version(review.resource, object)?;
    wipe_system_fields(&mut object);
    ensure_namespace(review.resource, review.namespace, &mut object)?;
    normalize_sent_metadata(context, &mut object);
    note_manager(context, version, &mut object);
    let status = match review.resource.kind.as_str() {
        "SelfSubjectReview" => {
            return Ok(json!({
                "kind": review.resource.kind,
                "apiVersion": version,
                "metadata": {"creationTimestamp": time(context)},
                "status": {"userInfo": user_info(&context.user)},
            }));
        }
        "SelfSubjectAccessReview" => {
            access::check_attributes(&object)?;
            let user = &context.user;
            access::decide(review.authorizer, user, user, &object).await
        }
        "SubjectAccessReview" => {
            access::check_subject(&object)?;
            let (asker, user) = (&context.user, access::subject(&object));
            access::decide(review.authorizer, asker, &user, &object).await
        }
        "LocalSubjectAccessReview" => {
            access::check_local(&object, review.namespace)?;
            let (asker, user) = (&context.user, access::subject(&object));
            access::decide(review.authorizer, asker, &user, &object).await
        }
        "SelfSubjectRulesReview" => {
            let namespace = object.pointer("/spec/namespace").and_then(Value::as_str);
            let namespace = namespace.unwrap_or_default().to_owned();
            if namespace.is_empty() {
                return Err(Error::BadRequest("no namespace on request".to_owned()));
            }
            // A user may have any number of rules.
            offload(Work::Permissions).await;
            // The answer says nothing of the question.
            object = json!({"kind": review.resource.kind, "apiVersion": version});
            access::rules(&review.authorizer.rules(&context.user, &namespace))
        }
        "TokenReview" => token::status(review.authenticator, context, &object).await?,
        other => return Err(Error::Internal(format!("no answer to a {other}"))),
    };
    object["status"] = status;
    if let (Some(kind), Some(members)) = (
        codec::kind(version, &review.resource.kind),
        object.as_object_mut(),
    ) {
        codec::complete(kind, members);
    }
    Ok(object)
}

/// Records the field manager, as for any created object. Even the status that the client sent counts as its own.
fn note_manager(context: &RequestContext, version: &str, object: &mut Value) {
    let manager = Manager {
        name: &context.field_manager,
        api_version: version,
        subresource: "",
        has_status_subresource: false,
        custom: None,
        time: Some(context.clock.wall()),
    };
    ringwatch_apply::update(None, object, &manager);
}

fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name});
    if !user.uid.is_empty() {
        info["uid"] = json!(user.uid);
    }
    if !user.groups.is_empty() {
        info["groups"] = json!(user.groups);
    }
    if !user.extra.is_empty() {
        info["extra"] = json!(user.extra);
    }
    info
}

fn time(context: &RequestContext) -> String {
    let now = context.clock.wall();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
