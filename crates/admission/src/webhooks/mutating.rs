//! Webhooks that change an object. They are called one after the other, each with what those before it
//! have made of the object.

use async_trait::async_trait;
use ringwatch_apimachinery::json_patch::Operation;
use ringwatch_apimachinery::{Error, numbers};
use ringwatch_audit::Level;
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use ringwatch_registry::store::admitted_to_storage_version;
use serde_json::{Value, json};

use super::Webhooks;
use super::call_error::CallOutcome;
use super::configuration::Hook;
use crate::chain::{Plugin, Round};
use crate::patching::{self, PatchFailure, check_types, type_of};
use crate::review::is_own_kind;

/// The webhooks of MutatingWebhookConfigurations.
#[derive(Debug)]
pub struct MutatingWebhooks(pub Webhooks);

#[async_trait]
impl Plugin for MutatingWebhooks {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    async fn admit_in(
        &self,
        request: &Request<'_>,
        object: &mut Value,
        round: &mut Round,
    ) -> Result<(), Error> {
        let configurations = self.0.configurations(request, object).await?;
        if round.second {
            round.webhooks.begin_again(object);
        }
        let mut namespace = self.0.match_context.namespace_of(request);
        let mut any_called = false;
        for (place, hook) in configurations.iter().flat_map(|it| &it.hooks).enumerate() {
            if round.second && !round.webhooks.is_outdated(&hook.id) {
                continue;
            }
            let applies = self.0.applies(hook, request, &mut namespace, object);
            let Some(resource) = applies.await? else {
                continue;
            };
            any_called = true;
            let record = CallRecord {
                hook,
                request,
                place: format!("round_{}_index_{place}", u8::from(round.second)),
            };
            let called = self.0.call(hook, request, &resource, object, true).await;
            let next = match called {
                Ok(CallOutcome::Allowed(Some((patch, shown)))) => {
                    let next = patched(hook, request, &resource, shown, &patch);
                    next.inspect(|_| record.patched(&patch)).map(Some)
                }
                Ok(CallOutcome::Allowed(None)) => Ok(None),
                Ok(CallOutcome::Ignored(_)) => {
                    record.failed_open();
                    Ok(None)
                }
                Err(error) => Err(error),
            };
            let next = next.map(|next| next.filter(|next| next != object));
            record.mutated(matches!(next, Ok(Some(_))));
            if let Some(next) = next? {
                round.note_change(object);
                *object = next;
                round.webhooks.outdate();
            }
            if hook.reinvoked {
                round.webhooks.has_seen(hook.id.clone());
            }
        }
        if any_called && !round.second {
            round.webhooks.leave(object);
        }
        Ok(())
    }
}

/// The record of a call for the audit log, in annotations that `webhookAnnotator` of Kubernetes 1.36 names
/// (`admission/plugin/webhook/mutating/dispatcher.go`).
struct CallRecord<'a> {
    hook: &'a Hook,
    request: &'a Request<'a>,
    /// The round, and the place of the webhook among all.
    place: String,
}

impl CallRecord<'_> {
    fn failed_open(&self) {
        let key = format!(
            "failed-open.mutation.webhook.admission.k8s.io/{}",
            self.place
        );
        let context = self.request.context;
        context.annotate(key, || self.hook.name.as_str());
    }

    /// Tells if the call has changed the object.
    fn mutated(&self, is_mutated: bool) {
        let key = format!("mutation.webhook.admission.k8s.io/{}", self.place);
        let value = || format!("{{{},\"mutated\":{is_mutated}}}", self.names());
        self.request.context.annotate(key, value);
    }

    /// Tells the patch, where objects of requests are recorded.
    fn patched(&self, patch: &[u8]) {
        let recording = self.request.context.recording.as_ref();
        if recording.is_none_or(|it| it.level() < Level::Request) {
            return;
        }
        let patch: Value = serde_json::from_slice(patch).unwrap_or_default();
        let key = format!("patch.webhook.admission.k8s.io/{}", self.place);
        let value = || {
            format!(
                "{{{},\"patch\":{patch},\"patchType\":\"JSONPatch\"}}",
                self.names()
            )
        };
        self.request.context.annotate(key, value);
    }

    /// Returns the members that both annotations begin with.
    fn names(&self) -> String {
        let (configuration, webhook) = (json!(self.hook.id.0), json!(self.hook.name));
        format!("\"configuration\":{configuration},\"webhook\":{webhook}")
    }
}

/// Returns the object after a patch of what the webhook was shown.
fn patched(
    hook: &Hook,
    request: &Request<'_>,
    resource: &Resource,
    mut shown: Value,
    patch: &[u8],
) -> Result<Value, Error> {
    let internal = |error: String| Error::Internal(error);
    let patch: Value =
        serde_json::from_slice(patch).map_err(|error| internal(error.to_string()))?;
    let operations = Operation::read_all(patch)
        .ok_or_else(|| internal("the patch is no list of operations".to_owned()))?;
    if shown.is_null() && !operations.is_empty() {
        return Err(internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    }
    if request.resource.is_custom() {
        // What is patched is the text that the webhook was sent.
        numbers::normalize(&mut shown);
    }
    let type_before = type_of(&shown);
    let mut shown = patching::patched(shown, &operations).map_err(|failure| {
        internal(match failure {
            PatchFailure::TooLong | PatchFailure::TooLarge => {
                format!("the patch of admission webhook {:?} {failure}", hook.name)
            }
            PatchFailure::Untrue(why) | PatchFailure::Impossible(why) => why,
        })
    })?;
    if type_of(&shown) != type_before {
        return Err(internal(format!(
            "admission webhook {:?} changed apiVersion or kind of the object",
            hook.name
        )));
    }
    check_types(&mut shown, false).map_err(internal)?;
    if !is_own_kind(request) {
        return Ok(shown);
    }
    admitted_to_storage_version(request.resource, resource, shown)
}
