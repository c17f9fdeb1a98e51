//! Replaces an object, or a subresource that is written like one: PUT.

use async_trait::async_trait;
use http::{Response, StatusCode};
use ringwatch_apimachinery::Error;
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::{RequestContext, Resource, UpdateOptions, UpdatedObject};
use serde_json::Value;

use crate::call::Call;
use crate::decode::BODY_BYTES_MAX;
use crate::errors::Failure;
use crate::negotiation::Output;
use crate::object_response;
use crate::params::{WriteKind, WriteParams};

/// Replaces the object by the one in the body and answers with it.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad request, 404, 409 when it changed meanwhile.
pub(crate) async fn update(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, BODY_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Update)?;
    let resource = call.store.resource();
    let object = call.decode(&content, &resource.group_version, &resource.kind, &params)?;
    check_name(call, &object)?;
    let mut replacement = Replacement {
        uid: uid_of(&object),
        object: Some(object),
        call,
        content: &content,
        params: &params,
    };
    write(call, output, &mut replacement, &update_options(&params)).await
}

/// Stores the object that an update makes, and answers with it.
pub(super) async fn write(
    call: &Call<'_>,
    output: Output,
    update: &mut dyn UpdatedObject,
    options: &UpdateOptions,
) -> Result<Response<ResponseBody>, Failure> {
    let (namespace, name) = (call.namespace(), call.name());
    let written = call
        .store
        .update(&call.context, namespace, name, update, options);
    let (object, created) = written.await.map_err(|error| call.fail(error))?;
    let code = if created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    object_response::object(code, output, call, object).await
}

/// Returns the options of an update by its query parameters.
pub(super) fn update_options(params: &WriteParams) -> UpdateOptions {
    UpdateOptions {
        dry_run: params.dry_run,
        ..UpdateOptions::default()
    }
}

/// Checks that the body is about the object that the path names.
pub(super) fn check_name(call: &Call<'_>, object: &Value) -> Result<(), Failure> {
    let checked = check_names(object, call.store.resource(), call.namespace(), call.name());
    checked.map_err(Failure::bad_request)
}

/// Checks that an object is the one of a resource that has this namespace and this name.
///
/// # Errors
/// The words about another name, or none, or another namespace.
pub(super) fn check_names(
    object: &Value,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), String> {
    let text = |name: &str| {
        let value = object.get("metadata").and_then(|meta| meta.get(name));
        value.and_then(Value::as_str).unwrap_or_default()
    };
    let said_namespace = text("namespace");
    let is_elsewhere = !said_namespace.is_empty() && said_namespace != namespace;
    // An object of no namespace that names one loses it.
    if resource.namespaced && is_elsewhere {
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(why.to_owned());
    }
    match text("name") {
        "" => Err(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )),
        said if said != name => Err(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )),
        _ => Ok(()),
    }
}

/// The update of an object that replaces it by the body of a PUT.
///
/// Nearly all updates take one attempt, to which the object is given as it is. Later attempts read the body again,
/// which costs less in all than a copy for every update.
struct Replacement<'a> {
    /// The object, until the first attempt has taken it.
    object: Option<Value>,
    uid: Option<String>,
    call: &'a Call<'a>,
    content: &'a [u8],
    params: &'a WriteParams,
}

/// Returns the uid in an object, if it has one.
fn uid_of(object: &Value) -> Option<String> {
    let uid = object["metadata"]["uid"].as_str()?;
    (!uid.is_empty()).then(|| uid.to_owned())
}

#[async_trait]
impl UpdatedObject for Replacement<'_> {
    async fn updated(
        &mut self,
        _context: &RequestContext,
        _existing: Option<&Value>,
    ) -> Result<Value, Error> {
        if let Some(object) = self.object.take() {
            return Ok(object);
        }
        let resource = self.call.store.resource();
        let object = self.call.decode_again(
            self.content,
            &resource.group_version,
            &resource.kind,
            self.params,
        );
        object.map_err(|failure| Error::Internal(failure.status().message.clone()))
    }

    fn precondition_uid(&self) -> Option<String> {
        self.uid.clone()
    }
}
