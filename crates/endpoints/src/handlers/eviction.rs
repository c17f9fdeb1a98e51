//! The `eviction` subresource of pods, which `kubectl drain` uses: deletes the pod if its PodDisruptionBudget allows
//! it, after setting its condition `DisruptionTarget`.

mod budget;
mod condition;

use http::Response;
use ringwatch_apimachinery::{Error, GroupVersion};
use ringwatch_http::{RequestBody, ResponseBody};
use ringwatch_registry::DeleteOptions;
use ringwatch_resources::can_ignore_budgets;
use ringwatch_resources::disruption_budget::still_processed;
use serde_json::{Value, json};

use self::budget::Permission;
use super::posted;
use crate::call::Call;
use crate::decode::REVIEW_BYTES_MAX;
use crate::errors::Failure;
use crate::params::{WriteKind, WriteParams, read_delete_options};

/// Maximum number of attempts to delete a pod that others change meanwhile, as in kube-apiserver.
const ATTEMPTS_MAX: u32 = 20;

/// Deletes a pod with the options in the Eviction. For a running pod, its budget must allow a disruption, and the pod
/// gets the condition `DisruptionTarget` first.
///
/// # Errors
/// 400, 413, 415 and 422 for a bad Eviction, 404, 409 when a precondition fails, 429 when the budget
/// allows no disruption, 500 when there are several budgets.
pub(crate) async fn evict(
    call: &Call<'_>,
    body: RequestBody,
) -> Result<Response<ResponseBody>, Failure> {
    let output = call.output()?;
    let content = call.read_body(body, REVIEW_BYTES_MAX).await?;
    let params = WriteParams::read(call.query, WriteKind::Create)?;
    let version = GroupVersion::new("policy", "v1");
    let mut eviction = call.decode(&content, &version, "Eviction", &params)?;
    posted::place(call, &mut eviction)?;
    let name = eviction.pointer("/metadata/name").and_then(Value::as_str);
    if name != Some(call.name()) {
        return Err(Failure::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    posted::admit(call, call.name(), &mut eviction, params.dry_run).await?;
    let options = eviction.get("deleteOptions").filter(|it| !it.is_null());
    let options = options.cloned().unwrap_or_else(|| json!({}));
    let mut options = read_delete_options(call.query, Some(options), false)?;
    options.dry_run |= params.dry_run;
    evict_pod(call, &params, options).await?;
    posted::created(output)
}

async fn evict_pod(
    call: &Call<'_>,
    params: &WriteParams,
    options: DeleteOptions,
) -> Result<(), Failure> {
    let unset = options.precondition_resource_version.is_none();
    let mut attempts = ATTEMPTS_MAX;
    loop {
        attempts -= 1;
        let pod = call
            .store
            .get(call.namespace(), call.name(), Default::default());
        let pod = pod.await.map_err(|error| call.fail(error))?;
        let tree = ringwatch::codec::tree(&pod).map_err(Failure::internal)?;
        if !can_ignore_budgets(&tree) {
            let permission = budget::ask(call, &pod, &tree, options.dry_run).await?;
            return evict_guarded(call, params, options, permission).await;
        }
        let mut now = options.clone();
        let may_run_yet = tree["status"]["phase"] == "Pending";
        if unset && may_run_yet && tree["metadata"]["deletionTimestamp"].is_null() {
            now.precondition_resource_version = Some(pod.revision().to_string());
        }
        match delete(call, now).await {
            Err(Error::Conflict { .. }) if unset && attempts > 0 => {}
            result => return result.map_err(|error| call.fail(error)),
        }
    }
}

/// Deletes a running pod.
async fn evict_guarded(
    call: &Call<'_>,
    params: &WriteParams,
    mut options: DeleteOptions,
    permission: Permission,
) -> Result<(), Failure> {
    let mut spared_by = None;
    if let Permission::Uncounted { budget, version } = permission {
        // If the pod became ready meanwhile, the budget would have to count it.
        let unset = options.precondition_resource_version.is_none();
        options.precondition_resource_version = Some(version);
        spared_by = unset.then_some(budget);
    }
    let mut result = Ok(());
    if !options.dry_run {
        result = condition::set(call, params, &mut options).await;
    }
    if result.is_ok() {
        result = delete(call, options).await;
    }
    let error = match (result, spared_by) {
        (Ok(()), _) => return Ok(()),
        (Err(Error::Conflict { .. }), Some(budget)) => still_processed(&budget),
        (Err(error), _) => error,
    };
    Err(call.fail(error))
}

async fn delete(call: &Call<'_>, options: DeleteOptions) -> Result<(), Error> {
    let store = call.store.admitted();
    let deleted = store.delete(&call.context, call.namespace(), call.name(), options);
    deleted.await.map(|_| ())
}
