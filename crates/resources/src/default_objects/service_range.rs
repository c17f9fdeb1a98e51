//! The range out of which services have their addresses from the start.

use async_trait::async_trait;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_registry::{RequestContext, Store, UpdateOptions, UpdatedObject};
use serde_json::{Value, json};

use super::{ensure, own_context};

const NAME: &str = "kubernetes";
const RANGE: &str = "10.0.0.0/24";

/// Creates the range unless it exists, and says that it is ready unless it says something about that already.
///
/// # Errors
/// When it can neither be created nor is there.
pub async fn ensure_service_range(ranges: &Store, clock: &Clock) -> Result<(), Error> {
    let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": NAME}, "spec": {"cidrs": [RANGE]}});
    ensure(ranges, "", range, clock).await?;
    let mut context = own_context(clock);
    "status".clone_into(&mut context.subresource);
    let options = UpdateOptions::default();
    let updated = ranges
        .update(&context, "", NAME, &mut Ready, &options)
        .await;
    updated.map(|_| ())
}

/// Says that the range is ready.
struct Ready;

#[async_trait]
impl UpdatedObject for Ready {
    async fn updated(
        &mut self,
        context: &RequestContext,
        existing: Option<&Value>,
    ) -> Result<Value, Error> {
        let mut range = existing.cloned().unwrap_or_default();
        let conditions = range["status"]["conditions"].as_array();
        let says = |it: &Value| it["type"] == "Ready" && it["status"] != "Unknown";
        let is_said = conditions.is_some_and(|all| all.iter().any(says));
        let is_ours = range["spec"]["cidrs"] == json!([RANGE]);
        if !is_said && is_ours && range["metadata"]["deletionTimestamp"].is_null() {
            let others = conditions.into_iter().flatten();
            let others = others.filter(|it| it["type"] != "Ready").cloned();
            let ready = json!({"type": "Ready", "status": "True", "reason": "",
                "message": "Kubernetes default Service CIDR is ready",
                "lastTransitionTime": format_time(context.clock.wall())});
            let all: Vec<Value> = others.chain([ready]).collect();
            range["status"]["conditions"] = Value::Array(all);
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use ringwatch::codec;
    use ringwatch::storage::GetOptions;
    use ringwatch_registry::testing::{MemoryStorage, context};

    use super::*;

    #[tokio::test]
    async fn the_range_is_there_and_ready() {
        let storage = MemoryStorage::new("/servicecidrs");
        let resources = crate::built_in().into_iter();
        let mut ranges = resources.filter(|it| it.plural == "servicecidrs");
        let store = Store::new(ranges.next().expect("built in"), storage as _);
        let clock = context().clock;
        let mut revisions = Vec::new();
        for _ in 0..2 {
            ensure_service_range(&store, &clock).await.expect("there");
            let found = store
                .get("", NAME, GetOptions::default())
                .await
                .expect("there");
            let range = codec::tree(&found).expect("an object");
            assert_eq!(range["spec"]["cidrs"], json!([RANGE]));
            let ready = &range["status"]["conditions"][0];
            assert_eq!(
                (&ready["type"], &ready["status"]),
                (&json!("Ready"), &json!("True"))
            );
            revisions.push(found.revision());
        }
        assert_eq!(revisions[0], revisions[1], "nothing is written again");
    }
}
