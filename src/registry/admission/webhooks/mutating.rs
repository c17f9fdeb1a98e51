//! Webhooks that change an object. They are asked one after the other, each with what those before it
//! have made of the object.

use std::collections::HashSet;

use async_trait::async_trait;
use json_patch::{PatchOperation, patch_unsafe};
use serde_json::Value;

use super::super::chain::{Plugin, Round};
use super::super::request::Request;
use super::super::review::is_own_kind;
use super::Webhooks;
use super::call::Called;
use super::configuration::Hook;
use crate::codec;
use crate::registry::store::bring_in;
use crate::registry::{Error, Resource};

/// How many operations a patch may have.
const OPERATIONS_MAX: usize = 1_000;

/// How deep an object may become by patches.
const LEVELS_MAX: usize = 256;

/// How large an object may become by patches, in bytes of JSON.
const OBJECT_BYTES_MAX: usize = 8 << 20;

/// The webhooks of MutatingWebhookConfigurations.
#[derive(Debug)]
pub struct MutatingWebhooks(pub Webhooks);

/// Which webhooks have seen what in the first round, for the second.
#[derive(Debug, Default)]
pub(in super::super) struct Seen {
    /// Those that wish to see later changes, and have been asked since the last one.
    current: HashSet<(String, usize)>,
    /// Those that wish to see later changes, and have not seen them.
    outdated: HashSet<(String, usize)>,
    /// The object as the webhooks have left it.
    left: Option<Value>,
}

impl Seen {
    /// The object has changed after those who were asked.
    fn outdate(&mut self) {
        self.outdated.extend(self.current.drain());
    }
}

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
        if round.second && round.seen.left.as_ref() != Some(object) {
            round.seen.outdate();
        }
        let mut namespace = self.0.scene.namespace_of(request);
        let mut asked = false;
        for hook in configurations.iter().flat_map(|it| &it.hooks) {
            if round.second && !round.seen.outdated.remove(&hook.id) {
                continue;
            }
            let applies = self.0.applies(hook, request, &mut namespace, object);
            let Some(resource) = applies.await? else {
                continue;
            };
            asked = true;
            let called = self.0.call(hook, request, &resource, object, true).await?;
            if let Called::Allowed(Some((patch, shown))) = called {
                let next = patched(hook, request, &resource, shown, &patch)?;
                if next != *object {
                    *object = next;
                    round.seen.outdate();
                    round.again = true;
                }
            }
            if hook.reinvoked {
                round.seen.current.insert(hook.id.clone());
            }
        }
        if asked && !round.second {
            round.seen.left = Some(object.clone());
        }
        Ok(())
    }
}

/// The object after a patch of what the webhook was shown.
fn patched(
    hook: &Hook,
    request: &Request<'_>,
    resource: &Resource,
    mut shown: Value,
    patch: &[u8],
) -> Result<Value, Error> {
    let internal = |error: String| Error::Internal(error);
    let operations: Vec<PatchOperation> =
        serde_json::from_slice(patch).map_err(|error| internal(error.to_string()))?;
    if shown.is_null() && !operations.is_empty() {
        return Err(internal(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            hook.name
        )));
    }
    if operations.len() > OPERATIONS_MAX {
        return Err(internal(format!(
            "the patch of admission webhook {:?} has more than {OPERATIONS_MAX} operations",
            hook.name
        )));
    }
    let mut bytes = shown.to_string().len();
    let type_before = type_of(&shown);
    for operation in &operations {
        let (added, levels) = grown(operation, &shown);
        bytes = bytes.saturating_add(added);
        if bytes > OBJECT_BYTES_MAX || levels > LEVELS_MAX {
            return Err(internal(format!(
                "the patch of admission webhook {:?} makes the object too large",
                hook.name
            )));
        }
        patch_unsafe(&mut shown, std::slice::from_ref(operation))
            .map_err(|error| internal(error.to_string()))?;
    }
    if type_of(&shown) != type_before {
        return Err(internal(format!(
            "admission webhook {:?} changed apiVersion or kind of the object",
            hook.name
        )));
    }
    check_types(&mut shown).map_err(internal)?;
    if !is_own_kind(request) {
        return Ok(shown);
    }
    bring_in(resource, shown)
}

/// By how much an operation makes an object longer at most, and how deep what it puts in reaches.
fn grown(operation: &PatchOperation, object: &Value) -> (usize, usize) {
    let at = operation.path().tokens().count();
    let (put, added) = match operation {
        PatchOperation::Copy(copy) => (object.pointer(copy.from.as_str()), true),
        PatchOperation::Move(moved) => (object.pointer(moved.from.as_str()), false),
        PatchOperation::Add(add) => (Some(&add.value), true),
        PatchOperation::Replace(replace) => (Some(&replace.value), true),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => (None, false),
    };
    let Some(put) = put else { return (0, at) };
    let bytes = if added { put.to_string().len() } else { 0 };
    (bytes, at + levels(put))
}

/// How deep a value is.
fn levels(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(members) => members.values().map(levels).max(),
        _ => None,
    };
    inner.map_or(0, |inner| inner + 1)
}

fn type_of(object: &Value) -> [Option<String>; 2] {
    ["apiVersion", "kind"].map(|name| {
        let text = object.get(name).and_then(Value::as_str);
        text.map(str::to_owned)
    })
}

/// Whether the fields are of the types that the object's kind has; those that it does not have go.
fn check_types(object: &mut Value) -> Result<(), String> {
    let [version, kind] = type_of(object);
    let known = codec::kind(&version.unwrap_or_default(), &kind.unwrap_or_default());
    match (known, object.as_object_mut()) {
        (_, None) => Err("the patched object is no object".to_owned()),
        (None, _) => Ok(()),
        (Some(kind), Some(members)) => codec::check_types(kind, members)
            .map(|_| ())
            .map_err(|error| error.to_string()),
    }
}
