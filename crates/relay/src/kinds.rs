//! The kinds of the upstream's resources: their columns, selectable fields and encodings.
//!
//! Built-in kinds are those of this program. Those of custom resources are read out of the upstream's definitions.

use std::collections::HashMap;
use std::sync::Arc;

use ringwatch::storage::StorageError;
use ringwatch_apiextensions::Definition;
use ringwatch_apimachinery::GroupVersion;
use ringwatch_offload::{Work, offload_if_large};
use ringwatch_registry::{Resource, ServedBy, Verb};
use ringwatch_resources::built_in;
use serde_json::{Value, json};

use super::discovery::{ANSWER_TIMEOUT, DescribedResource};
use super::error::{MalformedAnswer, too_late};
use super::refusal::{Refusal, RefusedRequest};
use super::resource::escaped;
use super::upstream::Upstream;

/// The path of reviews of the relay's own access.
const OWN_ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

/// The verbs that are answered from caches.
const VERBS: [Verb; 3] = [Verb::Get, Verb::List, Verb::Watch];

/// A resource as it is served from a cache, and the definition that says so; `None` for a built-in one.
#[derive(Clone, Debug)]
pub(crate) struct CachedKind {
    pub(crate) resource: Arc<Resource>,
    pub(crate) definition: Option<Definition>,
}

impl CachedKind {
    /// Returns true if another answer describes the same kind.
    pub(crate) fn is_the_same(&self, other: &Self) -> bool {
        match (&self.definition, &other.definition) {
            (Some(one), Some(other)) => one.uid() == other.uid() && one.defines_the_same(other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns true if the objects of this kind are those of another one, and are read in the same way.
    pub(crate) fn is_read_like(&self, other: &Self) -> bool {
        match (&self.definition, &other.definition) {
            (Some(one), Some(other)) => one.is_stored_as(other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// The kinds of the resources of an upstream.
#[derive(Debug)]
pub(crate) struct Kinds {
    upstream: Arc<Upstream>,
    built_in: HashMap<(GroupVersion, String), Arc<Resource>>,
}

impl Kinds {
    /// Creates the kinds of an upstream.
    pub(crate) fn new(upstream: Arc<Upstream>) -> Self {
        let resources = built_in().into_iter();
        let resources = resources.filter(|it| it.served == ServedBy::Store);
        let built_in = resources.map(|it| ((it.group_version.clone(), it.plural.clone()), it));
        Self {
            upstream,
            built_in: built_in.collect(),
        }
    }

    /// Returns the kind of a resource that the upstream describes; `None` if it cannot be cached: this relay may not
    /// read it, an aggregated API serves it, or this program knows it in another form.
    ///
    /// # Errors
    /// The upstream cannot be asked for the definition of a custom resource, or sends a broken one.
    pub(crate) async fn find(
        &self,
        version: &GroupVersion,
        plural: &str,
        described: &DescribedResource,
    ) -> Result<Option<CachedKind>, StorageError> {
        if !self.may_follow(&version.group, plural).await? {
            return Ok(None);
        }
        let key = (version.clone(), plural.to_owned());
        let Some(known) = self.built_in.get(&key) else {
            return self.custom(version, plural).await;
        };
        // Objects are asked for as they are served. What is stored in another version is read by fields of that.
        let is_served_as_stored = known.storage_version == known.group_version;
        let is_same = known.kind == described.kind && known.namespaced == described.namespaced;
        Ok((is_served_as_stored && is_same).then(|| CachedKind {
            resource: read_only(Resource::clone(known)),
            definition: None,
        }))
    }

    /// Returns false if the upstream says that this relay may not read a resource. Clients who may are passed on then.
    /// Any other answer counts as yes: an upstream without these reviews tells when the cache is filled.
    async fn may_follow(&self, group: &str, plural: &str) -> Result<bool, StorageError> {
        for verb in ["get", "list", "watch"] {
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": plural}},
            });
            let review = review.to_string().into();
            let answer = self.upstream.review(OWN_ACCESS, review);
            let answer = self.upstream.clock().timeout(ANSWER_TIMEOUT, answer).await;
            let answer = answer.map_err(|_| too_late())??;
            let review: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if review["status"]["allowed"] == false {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the definition of a custom resource.
    async fn custom(
        &self,
        version: &GroupVersion,
        plural: &str,
    ) -> Result<Option<CachedKind>, StorageError> {
        let name = escaped(&format!("{plural}.{}", version.group));
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        let answer = self.upstream.get(&path, "application/json");
        let answer = self.upstream.clock().timeout(ANSWER_TIMEOUT, answer).await;
        let answer = answer.map_err(|_| too_late())??;
        if answer.is_missing() {
            return Ok(None);
        }
        if !answer.status.is_success() {
            return Err(Refusal::answer(&answer).error(RefusedRequest::Object(&path)));
        }
        offload_if_large(Work::Body, &answer.body).await;
        let mut object: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| MalformedAnswer(format!("the definition at {path}: {error}")))?;
        store_as(&mut object, &version.version);
        let definition = Definition::new(object);
        let resources = definition.resources();
        let resources = resources.map_err(|error| MalformedAnswer(error.to_string()))?;
        let mut resources = resources.into_iter();
        let resource = resources.find(|it| it.group_version == *version);
        Ok(resource.map(|resource| CachedKind {
            resource: read_only(resource),
            definition: Some(definition),
        }))
    }
}

/// Makes one version that in which objects are stored, which they are in the cache of that version.
fn store_as(definition: &mut Value, version: &str) {
    let versions = definition["spec"]["versions"].as_array_mut();
    for it in versions.into_iter().flatten() {
        let is_version = it["name"] == version;
        it["storage"] = json!(is_version);
    }
}

/// Returns the resource with no more than is answered from caches.
fn read_only(resource: Resource) -> Arc<Resource> {
    Arc::new(Resource {
        verbs: VERBS.to_vec(),
        subresources: Vec::new(),
        ..resource
    })
}
