//! The objects that parametrise a policy.

use ringwatch::codec;
use ringwatch::meta::{Object, ResourceVersion};
use ringwatch::storage::{GetOptions, ListOptions};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use serde_json::Value;

use super::binding::ParamRef;
use super::policy::Policy;
use crate::match_context::{MatchContext, namespace_name};

/// Maximum number of params of a binding.
const PARAMS_MAX: u64 = 1_000;

impl MatchContext {
    /// Returns the params of a policy under a binding; one that is null if it has none.
    ///
    /// # Errors
    /// A message if they cannot be looked up, or there are none and the binding has `parameterNotFoundAction: Deny`.
    pub(super) async fn params(
        &self,
        policy: &Policy,
        selected: Option<&ParamRef>,
        request: &Request<'_>,
    ) -> Result<Vec<Value>, String> {
        let (Some((version, kind)), Some(selected)) = (&policy.param_kind, selected) else {
            return Ok(vec![Value::Null]);
        };
        let found = self.types.of_kind(version, kind);
        let (resource, storage) =
            found.ok_or_else(|| format!("paramKind kind `{version}, Kind={kind}` not known"))?;
        let root = root(&resource, selected, namespace_name(request))?;
        let params = if selected.name.is_empty() {
            let mut options = ListOptions {
                resource_version: Some(ResourceVersion(0)),
                recursive: true,
                ..ListOptions::default()
            };
            options.predicate.limit = PARAMS_MAX;
            options.predicate.label = selected.selector.clone();
            let list = storage.get_list(&root, options).await;
            list.map_err(|error| error.to_string())?.items
        } else {
            let key = format!("{root}{}", selected.name);
            let cached = GetOptions {
                resource_version: Some(ResourceVersion(0)),
            };
            match storage.get(&key, cached).await {
                Ok(found) => vec![found],
                Err(error) if error.is_absent() => Vec::new(),
                Err(error) => return Err(error.to_string()),
            }
        };
        if params.is_empty() && selected.required {
            return Err(
                "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
            );
        }
        let served = |object: &Object| {
            let tree = codec::tree(object).map_err(|error| error.to_string())?;
            Ok(resource.strategy.to_served(tree))
        };
        params.iter().map(|object| served(object)).collect()
    }
}

/// Returns the prefix of the storage keys of all params.
fn root(resource: &Resource, selected: &ParamRef, namespace: &str) -> Result<String, String> {
    let prefix = &resource.storage_prefix;
    match (resource.namespaced, selected.namespace.as_str(), namespace) {
        (false, "", _) => Ok(format!("/{prefix}/")),
        (false, ..) => Err(
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned(),
        ),
        (true, "", "") => Err(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                .to_owned(),
        ),
        (true, "", namespace) | (true, namespace, _) => Ok(format!("/{prefix}/{namespace}/")),
    }
}
