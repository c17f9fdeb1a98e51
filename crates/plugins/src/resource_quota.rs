//! Refuses writes that would exceed a quota of the namespace. Kubernetes' ResourceQuota plugin.
//!
//! The quotas' status holds their usage. A write that adds to it is charged there, in the same update that checks
//! whether there is room, so that concurrent writes cannot overdraw a quota. The quota controller recounts the usage,
//! and so corrects charges for writes that failed later.

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::ResourceVersion;
use ringwatch::storage::ListOptions;
use ringwatch_admission::Plugin;
use ringwatch_apimachinery::quantity::Quantity;
use ringwatch_apimachinery::{Error, accessor};
use ringwatch_registry::{FunctionUpdate, Operation, Request};
use ringwatch_registry::{RequestContext, Store, UpdateOptions};
use ringwatch_resources::ResourceList;
use serde_json::Value;

use super::empty_namespaces::EmptyNamespaces;
use crate::quota::{CountedType, QuotaScope};

/// The plugin, with the store of ResourceQuotas.
#[derive(Debug)]
pub struct ResourceQuota {
    quotas: Store,
    /// Namespaces that had none a moment ago.
    without: EmptyNamespaces,
}

impl ResourceQuota {
    /// Creates the plugin over this store of quotas, whose own updates must not pass through admission.
    #[must_use]
    pub fn new(quotas: Store) -> Self {
        Self {
            quotas,
            without: EmptyNamespaces::default(),
        }
    }

    /// Returns the current quotas of the request's namespace. A namespace without quotas is read from the store only
    /// now and then.
    async fn of_namespace(&self, request: &Request<'_>) -> Result<Vec<Value>, Error> {
        let (namespace, now) = (request.namespace, request.context.clock.now());
        let cached = ListOptions {
            resource_version: Some(ResourceVersion(0)),
            ..ListOptions::default()
        };
        let cached = self.quotas.list(namespace, cached).await?;
        if cached.items.is_empty() && self.without.contains(namespace, now) {
            return Ok(Vec::new());
        }
        let list = self.quotas.list(namespace, ListOptions::default()).await?;
        if list.items.is_empty() {
            self.without.insert(namespace, now);
        }
        let trees = list.items.iter().map(|object| codec::tree(object));
        Ok(trees.collect::<Result<_, _>>()?)
    }

    /// Charges a quota with what a write adds.
    async fn charge(
        &self,
        request: &Request<'_>,
        object: &Value,
        quota: &Value,
        added: &ResourceList,
    ) -> Result<(), Error> {
        let context = RequestContext::of_server(&request.context.clock).on_subresource("status");
        // There has to be room when it is written.
        let mut charge = FunctionUpdate::new(|quota| {
            let after = refuse_exceeding(request, object, quota, added)?;
            quota["status"]["used"] = after.to_value();
            Ok(())
        });
        let name = accessor::text(quota, "name");
        let options = UpdateOptions::default();
        let namespace = request.namespace;
        let charged = self
            .quotas
            .update(&context, namespace, name, &mut charge, &options)
            .await;
        match charged {
            // It limits nothing any more.
            Err(Error::NotFound { .. }) => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

#[async_trait]
impl Plugin for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error> {
        let counted = CountedType::from_resource(request.resource);
        let changes = counted.changes_by(
            request.operation,
            request.subresource(),
            object,
            request.old,
        );
        if request.namespace.is_empty() || !request.resource.namespaced || !changes {
            return Ok(());
        }
        let quotas = self.of_namespace(request).await?;
        let mut concerned = Vec::new();
        for quota in &quotas {
            if concerns(&counted, request, object, quota)? {
                concerned.push(quota);
            }
        }
        let usage = usage(&counted, request, object)?;
        let mut charges = Vec::new();
        for quota in concerned {
            let added = added(&counted, request, &usage, quota);
            if !added.is_empty() {
                refuse_exceeding(request, object, quota, &added)?;
                charges.push((quota, added));
            }
        }
        if request.dry_run {
            return Ok(());
        }
        for (quota, added) in charges {
            self.charge(request, object, quota, &added).await?;
        }
        Ok(())
    }
}

/// Returns true if a quota counts this object. The object must then specify the resources that the quota limits.
fn concerns(
    counted: &CountedType,
    request: &Request<'_>,
    object: &Value,
    quota: &Value,
) -> Result<bool, Error> {
    let limited = ResourceList::read(&quota["status"]["hard"]);
    let names: Vec<&str> = limited
        .names()
        .filter(|name| counted.counts(name))
        .collect();
    if names.is_empty() || !counted.is_in_scope(&QuotaScope::all_of(quota), object) {
        return Ok(false);
    }
    let quota_name = accessor::text(quota, "name");
    if let Some(unsaid) = counted.unsaid(&names, object) {
        return Err(request.forbid(object, format!("failed quota: {quota_name}: {unsaid}")));
    }
    let used = ResourceList::read(&quota["status"]["used"]);
    let unknown: Vec<&str> = names
        .into_iter()
        .filter(|name| used.get(name).is_none())
        .collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(",");
        let message = format!("status unknown for quota: {quota_name}, resources: {unknown}");
        return Err(request.forbid(object, message));
    }
    Ok(true)
}

/// Returns what the object uses.
///
/// # Errors
/// [`Error::Forbidden`] if it requests a negative amount.
fn usage(
    counted: &CountedType,
    request: &Request<'_>,
    object: &Value,
) -> Result<ResourceList, Error> {
    let usage = counted.usage(object);
    let negative = usage.negative();
    if negative.is_empty() {
        return Ok(usage);
    }
    let negative = negative.join(",");
    let message = format!("quota usage is negative for resource(s): {negative}");
    Err(request.forbid(object, message))
}

/// Returns the increase of a quota's usage by the write. Decreases are left to the quota controller.
fn added(
    counted: &CountedType,
    request: &Request<'_>,
    usage: &ResourceList,
    quota: &Value,
) -> ResourceList {
    let mut added = usage.clone();
    if let (Operation::Update, Some(old)) = (request.operation, request.old)
        && counted.is_in_scope(&QuotaScope::all_of(quota), old)
    {
        added.subtract(&counted.usage(old));
    }
    added.only(|_, amount| amount.quantity > Quantity::default())
}

/// Returns the usage of a quota after a write, for everything that the quota limits.
///
/// # Errors
/// [`Error::Forbidden`] with the requested, used and limited amounts of the resources that would exceed the quota.
fn refuse_exceeding(
    request: &Request<'_>,
    object: &Value,
    quota: &Value,
    added: &ResourceList,
) -> Result<ResourceList, Error> {
    let limited = ResourceList::read(&quota["status"]["hard"]);
    let used = ResourceList::read(&quota["status"]["used"]);
    let requested = added.only(|name, _| limited.get(name).is_some());
    let mut after = used.clone();
    after.add(&requested);
    let exceeds = |name: &str| {
        let (after, most) = (after.get(name), limited.get(name));
        let both = after.zip(most);
        both.is_some_and(|(after, most)| after.quantity > most.quantity)
    };
    let exceeding = requested.only(|name, _| exceeds(name));
    // A status shows what has been given already.
    if exceeding.is_empty() || request.subresource() == "status" {
        return Ok(after);
    }
    let of = |amounts: &ResourceList| amounts.only(|name, _| exceeding.get(name).is_some());
    let message = format!(
        "exceeded quota: {}, requested: {exceeding}, used: {}, limited: {}",
        accessor::text(quota, "name"),
        of(&used),
        of(&limited)
    );
    Err(request.forbid(object, message))
}
