//! The `log` subresource of pods. No kubelet is asked, so there is something to say only about pods
//! that have no node: nothing was logged yet.

use http::header::CACHE_CONTROL;
use http::{HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::super::body::{ResponseBody, full};
use super::super::call::Call;
use super::super::errors::Failure;
use super::get::get_options;
use crate::codec;
use crate::registry::Error;

/// Where a pod has containers.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Answers with nothing for a pod without a node.
///
/// # Errors
/// 404, 400 for a container that the pod does not have, 405 for a pod on a node.
pub(in super::super) async fn pod_log(call: &Call<'_>) -> Result<Response<ResponseBody>, Failure> {
    let options = get_options(call)?;
    let pod = call
        .store
        .get(call.namespace(), call.name(), options)
        .await
        .map_err(|error| call.fail(error))?;
    let pod = codec::tree(&pod).map_err(Failure::internal)?;
    check_container(call, &pod)?;
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str);
    if node.is_some_and(|node| !node.is_empty()) {
        return Err(call.fail(Error::MethodNotSupported(
            "this server reaches no kubelets, so it has no logs of pods that are on nodes"
                .to_owned(),
        )));
    }
    let mut response = Response::new(full(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let no_cache = HeaderValue::from_static("no-cache, private");
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    Ok(response)
}

/// Whether the query names a container of the pod, or need not.
fn check_container(call: &Call<'_>, pod: &Value) -> Result<(), Failure> {
    let names = |list: &str| -> Vec<&str> {
        let containers = pod.pointer(&format!("/spec/{list}"));
        let containers = containers.and_then(Value::as_array).into_iter().flatten();
        containers
            .filter_map(|container| container.get("name").and_then(Value::as_str))
            .collect()
    };
    let (wanted, name) = (call.query.first("container"), call.name());
    if !wanted.is_empty() {
        return if CONTAINER_LISTS
            .iter()
            .any(|list| names(list).contains(&wanted))
        {
            Ok(())
        } else {
            Err(Failure::bad_request(format!(
                "container {wanted} is not valid for pod {name}"
            )))
        };
    }
    let containers = names("containers");
    if containers.len() == 1 {
        return Ok(());
    }
    let containers = containers.join(" ");
    Err(Failure::bad_request(format!(
        "a container name must be specified for pod {name}, choose one of: [{containers}]"
    )))
}
