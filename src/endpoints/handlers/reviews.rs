//! Reviews: what is asked about the user who asks. They are answered from the request alone; nothing
//! is stored.
//!
//! Everything is allowed to whoever is authenticated, so that the answers about access are short.

use http::{HeaderMap, Response, StatusCode};
use serde_json::{Value, json};

use super::super::body::{RequestBody, ResponseBody};
use super::super::decode::{self, Expected, read_body};
use super::super::errors::{About, Failure};
use super::super::negotiation::{OBJECT_MEDIA_TYPES, negotiate};
use super::super::params::{Query, WriteKind, WriteParams};
use super::super::response;
use super::super::routes::Routes;
use crate::codec;
use crate::registry::field_manager::{self, Manager};
use crate::registry::{Error, FieldError, RequestContext, Resource, User};

/// One question.
#[derive(Debug)]
pub(in super::super) struct Review<'a> {
    /// What is served.
    pub(in super::super) routes: &'a Routes,
    /// Which review.
    pub(in super::super) resource: &'a Resource,
    /// The parameters.
    pub(in super::super) query: &'a Query,
    /// The headers.
    pub(in super::super) headers: &'a HeaderMap,
    /// Who asks.
    pub(in super::super) context: &'a RequestContext,
    /// Whether people will read the answer.
    pub(in super::super) pretty: bool,
}

/// Answers with the review in the body, its status filled in.
///
/// # Errors
/// 400, 406, 413, 415 and 422 for a bad review.
pub(in super::super) async fn review(
    review: Review<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let resource = review.resource;
    let version = resource.group_version.to_string();
    let in_protobuf = codec::kind(&version, &resource.kind).is_some();
    let output = negotiate(
        review.headers,
        review.pretty,
        OBJECT_MEDIA_TYPES,
        in_protobuf,
    )?;
    let content = read_body(review.headers, body).await?;
    let params = WriteParams::read(review.query, WriteKind::Create)?;
    let expected = Expected {
        group_version: &resource.group_version,
        kind: &resource.kind,
        strategy: None,
        custom: false,
    };
    let asked = decode::object(
        review.headers,
        &content,
        expected,
        &|group_version, kind| review.routes.knows(group_version, kind),
        params.field_validation,
        review.context,
    )?;
    let about = About {
        resource,
        name: "",
        verb: "create",
    };
    let answer =
        answer(review.context, &version, asked).map_err(|error| Failure::of(&error, about))?;
    response::serialized(StatusCode::CREATED, output.format, &answer)
}

fn answer(context: &RequestContext, version: &str, mut asked: Value) -> Result<Value, Error> {
    let kind = asked
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    match kind {
        "SelfSubjectReview" => Ok(json!({
            "kind": kind,
            "apiVersion": version,
            "metadata": {"creationTimestamp": time(context)},
            "status": {"userInfo": user_info(&context.user)},
        })),
        "SelfSubjectAccessReview" => {
            check_attributes(&asked)?;
            note_manager(context, version, &mut asked);
            asked["status"] = json!({"allowed": true});
            Ok(asked)
        }
        "SelfSubjectRulesReview" => {
            let namespace = asked.pointer("/spec/namespace").and_then(Value::as_str);
            if namespace.unwrap_or_default().is_empty() {
                return Err(Error::BadRequest("no namespace on request".to_owned()));
            }
            note_manager(context, version, &mut asked);
            asked["status"] = json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            });
            Ok(asked)
        }
        other => Err(Error::Internal(format!("no answer to a {other}"))),
    }
}

/// Whether a review asks about resources or about paths, and not about both.
fn check_attributes(asked: &Value) -> Result<(), Error> {
    let attributes = |name: &str| {
        asked
            .pointer(&format!("/spec/{name}"))
            .filter(|it| !it.is_null())
    };
    let resource = attributes("resourceAttributes");
    let error = match (resource, attributes("nonResourceAttributes")) {
        (None, None) => FieldError::invalid(
            "spec.resourceAttributes",
            &Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (Some(_), Some(path)) => FieldError::invalid(
            "spec.nonResourceAttributes",
            path,
            "cannot be specified in combination with resourceAttributes",
        ),
        _ => return Ok(()),
    };
    Err(Error::Invalid {
        kind: ".authorization.k8s.io".to_owned(),
        name: String::new(),
        errors: vec![error],
    })
}

/// Notes who manages the fields, as with any object that is created.
fn note_manager(context: &RequestContext, version: &str, asked: &mut Value) {
    if !asked.get("metadata").is_some_and(Value::is_object) {
        asked["metadata"] = json!({});
    }
    let manager = Manager {
        name: &context.field_manager,
        api_version: version,
        subresource: "",
        has_status_subresource: true,
        custom: None,
        time: Some(context.clock.wall()),
    };
    field_manager::update(None, asked, &manager);
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
