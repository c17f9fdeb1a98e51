//! Checks and updates the PodDisruptionBudget of a pod that is to be evicted.

use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::ListOptions;
use ringwatch_apimachinery::Error;
use ringwatch_registry::{FunctionUpdate, RequestContext, Store, UpdateOptions, Verb};
use ringwatch_resources::disruption_budget::{covers, spares, take};
use serde_json::Value;

use crate::call::Call;
use crate::errors::{About, Failure};

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
    let clock = &call.context.clock;
    let context = RequestContext::of_server(clock).on_subresource("status");
    let options = UpdateOptions {
        dry_run,
        ..UpdateOptions::default()
    };
    let mut taken = FunctionUpdate::new(|budget| take(budget, pod.name(), clock.wall()));
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
