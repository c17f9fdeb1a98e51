//! Sets the condition `DisruptionTarget` of a pod that is evicted.

use async_trait::async_trait;
use ringwatch_apimachinery::Error;
use ringwatch_registry::{DeleteOptions, RequestContext, UpdatedObject};
use ringwatch_resources::mark_evicted;
use serde_json::Value;

use crate::call::Call;
use crate::handlers::update::update_options;
use crate::params::WriteParams;

/// Sets the condition in the stored pod. A version that `options` require of the pod becomes the new one.
pub(super) async fn set(
    call: &Call<'_>,
    params: &WriteParams,
    options: &mut DeleteOptions,
) -> Result<(), Error> {
    let mut evicted = ConditionUpdate {
        name: call.name().to_owned(),
        options: options.clone(),
    };
    let (pod, _) = call
        .store
        .admitted()
        .update(
            &call.context,
            call.namespace(),
            call.name(),
            &mut evicted,
            &update_options(params),
        )
        .await?;
    if let Some(version) = &mut options.precondition_resource_version {
        *version = pod.revision().to_string();
    }
    Ok(())
}

/// The update of a pod that sets the condition.
struct ConditionUpdate {
    name: String,
    options: DeleteOptions,
}

#[async_trait]
impl UpdatedObject for ConditionUpdate {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing = existing.ok_or_else(|| Error::not_found("pods", &self.name))?;
        let version = existing.pointer("/metadata/resourceVersion");
        let version = version.and_then(Value::as_str).unwrap_or_default();
        if let Some(wanted) = &self.options.precondition_resource_version
            && wanted != version
        {
            return Err(Error::Conflict {
                resource: "pods".to_owned(),
                name: self.name.clone(),
                message: format!(
                    "the ResourceVersion in the precondition ({wanted}) does not match the \
                     ResourceVersion in record ({version}). The object might have been modified"
                ),
            });
        }
        let mut pod = existing.clone();
        mark_evicted(&mut pod, context.clock.wall());
        Ok(pod)
    }

    /// Returns true, so that the fields keep their managers: an eviction is no claim to fields.
    fn managed_fields_are_current(&self) -> bool {
        true
    }

    fn precondition_uid(&self) -> Option<String> {
        self.options.precondition_uid.clone()
    }
}
