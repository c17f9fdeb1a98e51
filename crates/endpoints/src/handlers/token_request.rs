//! The `token` subresource of service accounts: issues a token, as a TokenRequest asks.

use http::{Response, StatusCode};
use jiff::Timestamp;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::GetOptions;
use ringwatch_apimachinery::accessor::normalize;
use ringwatch_apimachinery::{Error, FieldError, GroupVersion};
use ringwatch_apply::Manager;
use ringwatch_authentication::service_accounts::{BoundObject, Grant, Reference, TokenIssuer};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::Store;
use serde_json::{Value, json};

use super::posted;
use crate::call::Call;
use crate::decode::REVIEW_BYTES_MAX;
use crate::errors::Failure;
use crate::params::{WriteKind, WriteParams};
use crate::response;

const KIND: &str = "TokenRequest";
const QUALIFIED_KIND: &str = "TokenRequest.authentication.k8s.io";

/// The default lifetime of a token, in seconds, and the bounds of requested lifetimes.
const SECONDS_DEFAULT: i64 = 3600;
const SECONDS_MIN: i64 = 600;
const SECONDS_MAX: i64 = 1 << 32;

/// Answers with the TokenRequest in the body and the token in its status.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad TokenRequest; 404 without the account or what the token is to be bound to; 409 when
/// one of them is another.
pub(crate) async fn request_token(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, REVIEW_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let version = GroupVersion::new("authentication.k8s.io", "v1");
    let mut request = call.decode(&content, &version, KIND, &params)?;
    answer(call, &version.to_string(), &mut request, params.dry_run).await?;
    response::serialized(StatusCode::CREATED, output.format, &request)
}

async fn answer(
    call: &Call<'_>,
    version: &str,
    request: &mut Value,
    dry_run: bool,
) -> Result<(), Failure> {
    let fail = |error| call.fail(error);
    normalize(request, "v1", KIND).map_err(fail)?;
    let kind = codec::kind(version, KIND);
    if let (Some(kind), Some(members)) = (kind, request.as_object_mut()) {
        codec::canonicalize(kind, members);
    }
    posted::place(call, request)?;
    check_metadata(call, request).map_err(fail)?;
    let account = found(call, call.store, call.namespace(), call.name()).await?;
    let seconds = match &request["spec"]["expirationSeconds"] {
        Value::Null => SECONDS_DEFAULT,
        named => named.as_i64().unwrap_or_default(),
    };
    for part in ["metadata", "spec"] {
        if !request[part].is_object() {
            request[part] = json!({});
        }
    }
    request["spec"]["expirationSeconds"] = json!(seconds);
    note_manager(call, version, request);
    complete_metadata(call, &account, request).map_err(fail)?;
    check_seconds(seconds).map_err(fail)?;
    posted::admit(call, call.name(), request, dry_run).await?;
    let issuer = call.token_issuer.ok_or_else(Failure::no_such_resource)?;
    let mut audiences = texts(&request["spec"]["audiences"]);
    if audiences.is_empty() {
        audiences = issuer.default_audiences().to_vec();
    }
    let reference = request["spec"]["boundObjectRef"].take();
    let seconds = shortened(call, issuer, seconds);
    let grant = Grant {
        namespace: call.namespace(),
        account,
        audiences: audiences.clone(),
        seconds,
        bound: bound(call, &reference).await?,
    };
    let now = call.context.clock.wall();
    let token = issuer.issue(grant, now);
    let token =
        token.map_err(|error| Failure::internal(format!("failed to generate token: {error}")))?;
    let expires = Timestamp::from_second(now.as_second().saturating_add(seconds));
    let expires = expires.map_err(Failure::internal)?;
    request["spec"] = json!({"audiences": audiences, "expirationSeconds": seconds,
        "boundObjectRef": reference});
    request["status"] = json!({"token": token, "expirationTimestamp": rfc3339(expires)});
    Ok(())
}

/// Returns the lifetime that the token gets, in seconds; a client that asked for a longer one is warned.
fn shortened(call: &Call<'_>, issuer: &TokenIssuer, seconds: i64) -> i64 {
    let shortened = issuer.longest(seconds);
    if shortened < seconds {
        call.context.warn(format!(
            "requested expiration of {seconds} seconds shortened to {shortened} seconds"
        ));
    }
    shortened
}

/// Checks that the name in the body is the account's.
fn check_metadata(call: &Call<'_>, request: &Value) -> Result<(), Error> {
    let named = text(&request["metadata"], "name");
    if !named.is_empty() && named != call.name() {
        let why = "must match the service account name if specified";
        let error = FieldError::invalid("metadata.name", &json!(named), why);
        return Err(invalid(call.name(), error));
    }
    Ok(())
}

/// Says which account it is, and when.
fn complete_metadata(
    call: &Call<'_>,
    account: &Reference,
    request: &mut Value,
) -> Result<(), Error> {
    let uid = text(&request["metadata"], "uid");
    if !uid.is_empty() && uid != account.uid {
        return Err(Error::Conflict {
            resource: QUALIFIED_KIND.to_owned(),
            name: account.name.clone(),
            message: format!(
                "the UID in the token request ({uid}) does not match the UID of the service account ({})",
                account.uid
            ),
        });
    }
    let now = call.context.clock.wall();
    let metadata = &mut request["metadata"];
    metadata["name"] = json!(account.name);
    metadata["namespace"] = json!(call.namespace());
    metadata["uid"] = json!(account.uid);
    metadata["creationTimestamp"] = json!(rfc3339(now));
    Ok(())
}

fn note_manager(call: &Call<'_>, version: &str, request: &mut Value) {
    let manager = Manager {
        name: &call.context.field_manager,
        api_version: version,
        subresource: &call.context.subresource,
        has_status_subresource: true,
        custom: None,
        time: Some(call.context.clock.wall()),
    };
    ringwatch_apply::update(None, request, &manager);
}

fn check_seconds(seconds: i64) -> Result<(), Error> {
    let why = if seconds < SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let error = FieldError::invalid("spec.expirationSeconds", &json!(seconds), why);
    Err(invalid("", error))
}

fn invalid(name: &str, error: FieldError) -> Error {
    Error::Invalid {
        kind: QUALIFIED_KIND.to_owned(),
        name: name.to_owned(),
        errors: vec![error],
    }
}

/// Returns the object that the token is bound to. It must exist, and have the uid that is given.
async fn bound(call: &Call<'_>, reference: &Value) -> Result<BoundObject, Failure> {
    if reference.is_null() {
        return Ok(BoundObject::Account);
    }
    let name = text(reference, "name");
    // An `apiVersion` that cannot be read is as none, as in `schema.FromAPIVersionAndKind`.
    let api_version = GroupVersion::parse(text(reference, "apiVersion"))
        .unwrap_or_else(|| GroupVersion::new("", ""));
    let kind = text(reference, "kind");
    let (uid, bound) = match (api_version.group.as_str(), kind) {
        ("", "Pod") => bound_pod(call, name).await?,
        ("", "Secret") => {
            let secrets = call.routes.needed("", "v1", "secrets")?;
            let secret = found(call, secrets, call.namespace(), name).await?;
            (secret.uid.clone(), BoundObject::Secret(secret))
        }
        ("", "Node") => {
            let nodes = call.routes.needed("", "v1", "nodes")?;
            let node = found(call, nodes, "", name).await?;
            (node.uid.clone(), BoundObject::Node(node))
        }
        _ => {
            let GroupVersion { group, version } = api_version;
            return Err(Failure::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let meant = text(reference, "uid");
    if meant.is_empty() || meant == uid {
        return Ok(bound);
    }
    Err(call.fail(Error::Conflict {
        resource: kind.to_owned(),
        name: name.to_owned(),
        message: format!(
            "the UID in the bound object reference ({meant}) does not match the UID in record. The object might have been deleted and then recreated"
        ),
    }))
}

/// Finds a pod of the account, and the node that it is on.
async fn bound_pod(call: &Call<'_>, name: &str) -> Result<(String, BoundObject), Failure> {
    let fail = |error| call.fail(error);
    let pods = call.routes.needed("", "v1", "pods")?;
    let pod = pods
        .get(call.namespace(), name, GetOptions::default())
        .await;
    let pod = pod.map_err(fail)?;
    let tree = pods.served_value(&pod).map_err(fail)?;
    if text(&tree["spec"], "serviceAccountName") != call.name() {
        return Err(Failure::bad_request(format!(
            "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
            call.name()
        )));
    }
    let pod = reference(&pod);
    let node_name = text(&tree["spec"], "nodeName");
    let node = if node_name.is_empty() {
        None
    } else {
        let nodes = call.routes.needed("", "v1", "nodes")?;
        match nodes.get("", node_name, GetOptions::default()).await {
            Ok(node) => Some(reference(&node)),
            // A node that does not exist is included by name only.
            Err(Error::NotFound { .. }) => Some(Reference {
                name: node_name.to_owned(),
                uid: String::new(),
            }),
            Err(error) => return Err(fail(error)),
        }
    };
    Ok((pod.uid.clone(), BoundObject::Pod { pod, node }))
}

async fn found(
    call: &Call<'_>,
    store: &Store,
    namespace: &str,
    name: &str,
) -> Result<Reference, Failure> {
    let object = store.get(namespace, name, GetOptions::default()).await;
    object
        .map(|object| reference(&object))
        .map_err(|error| call.fail(error))
}

/// Returns a time as objects have it.
fn rfc3339(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn reference(object: &Object) -> Reference {
    Reference {
        name: object.name().to_owned(),
        uid: object.uid().to_owned(),
    }
}

fn text<'a>(object: &'a Value, member: &str) -> &'a str {
    object[member].as_str().unwrap_or_default()
}

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(String::from).collect()
}
