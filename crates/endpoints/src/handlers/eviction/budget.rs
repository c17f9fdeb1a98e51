//! Checks and updates the PodDisruptionBudget of a pod that is to be evicted.

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::{Error, User};
use ringwatch_registry::{RequestContext, Store, UpdateOptions, UpdatedObject, Verb};
use ringwatch_resources::disruption_budget::{covers, spares, take};
use serde_json::Value;

use crate::call::Call;
use crate::errors::{About, Failure};

/// The field manager of writes of a PodDisruptionBudget's status.
const MANAGER: &str = "kube-apiserver";

/// The decision of the PodDisruptionBudget of a pod that is to be evicted.
pub(super) enum Permission {
    /// The pod may be evicted: no budget applies, or the budget has counted the disruption.
    Given,
    /// The pod may be evicted without being counted, if it is still at this version.
    Uncounted {
        /// The name of the budget.
        budget: String,
        /// The version of the pod.
        version: String,
    },
}

/// Checks the budget of a running pod, if it has one, and records the disruption in its status.
///
/// # Errors
/// 429 when the budget allows no disruption, 500 when there are several.
pub(super) async fn ask(
    call: &Call<'_>,
    pod: &Object,
    tree: &Value,
    dry_run: bool,
) -> Result<Permission, Failure> {
    let budgets = call.routes.needed("policy", "v1", "poddisruptionbudgets")?;
    let fail = |error: Error, name: &str| {
        let about = About {
            resource: budgets.resource(),
            name,
            verb: Verb::Update,
        };
        Failure::from_error(&error, about)
    };
    let mut found = budgets_of(budgets, pod)
        .await
        .map_err(|error| fail(error, ""))?;
    let Some(budget) = found.pop() else {
        return Ok(Permission::Given);
    };
    if !found.is_empty() {
        return Err(Failure::untranslated(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does \
             not support.",
        ));
    }
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    if spares(&budget, tree) {
        return Ok(Permission::Uncounted {
            budget: name.to_owned(),
            version: pod.revision().to_string(),
        });
    }
    let (user, clock) = (User::default(), call.context.clock.clone());
    let mut context = RequestContext::new(user, MANAGER.to_owned(), clock);
    "status".clone_into(&mut context.subresource);
    let options = UpdateOptions {
        dry_run,
        ..UpdateOptions::default()
    };
    let mut taken = DisruptionUpdate {
        budget: name,
        pod: pod.name(),
    };
    let updated = budgets.update(&context, pod.namespace(), name, &mut taken, &options);
    let updated = updated.await;
    updated.map_err(|error| fail(error, name))?;
    Ok(Permission::Given)
}

/// Returns the budgets of a pod.
async fn budgets_of(budgets: &Store, pod: &Object) -> Result<Vec<Value>, Error> {
    let all = budgets
        .list(pod.namespace(), ListOptions::default())
        .await?;
    let mut found = Vec::new();
    for budget in all.items {
        let tree = codec::tree(&budget)?;
        if covers(&tree, pod.attributes().labels()) {
            found.push(tree);
        }
    }
    Ok(found)
}

/// The update of a PodDisruptionBudget that counts one disruption.
struct DisruptionUpdate<'a> {
    budget: &'a str,
    pod: &'a str,
}

#[async_trait]
impl UpdatedObject for DisruptionUpdate<'_> {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let existing = existing.cloned();
        let mut budget =
            existing.ok_or_else(|| Error::not_found("poddisruptionbudgets.policy", self.budget))?;
        take(&mut budget, self.pod, context.clock.wall())?;
        Ok(budget)
    }
}
