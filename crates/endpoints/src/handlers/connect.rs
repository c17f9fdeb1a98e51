//! Runs admission for a connection (`exec`, `attach`, `portforward`, `proxy`), with its options as the object.

use ringwatch_registry::{Operation, SubresourceCall};
use serde_json::{Map, Value, json};

use crate::call::Call;
use crate::errors::Failure;

/// The boolean options that select streams.
const STREAMS: [&str; 4] = ["stdin", "stdout", "stderr", "tty"];

/// Runs admission for the connection. `more` are options of this subresource alone.
///
/// # Errors
/// 404 for a subresource that does not exist, else the status of admission's refusal.
pub(super) async fn admit_connection(
    call: &Call<'_>,
    more: Map<String, Value>,
) -> Result<(), Failure> {
    let resource = call.store.resource();
    let part = resource.subresource(&call.info.subresource);
    let part = part.ok_or_else(Failure::no_such_resource)?;
    let version = part.group_version.as_ref();
    let version = version.unwrap_or(&resource.group_version).to_string();
    let mut options = json!({"kind": part.kind, "apiVersion": version});
    for stream in STREAMS {
        if call.query.switch(stream) == Some(true) {
            options[stream] = true.into();
        }
    }
    let container = call.query.first("container");
    if !container.is_empty() {
        options["container"] = container.into();
    }
    for (name, value) in more {
        options[name] = value;
    }
    call.store
        .admit_other(
            &call.context,
            SubresourceCall {
                namespace: call.namespace(),
                name: call.name(),
                operation: Operation::Connect,
                old: None,
                dry_run: false,
            },
            &mut options,
        )
        .await
        .map_err(|error| call.fail(error))
}
