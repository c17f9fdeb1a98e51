//! The range out of which services have their addresses from the start.

use jiff::Timestamp;
use ringwatch::clock::Clock;
use ringwatch::codec;
use ringwatch_apimachinery::Error;
use ringwatch_apimachinery::accessor::format_time;
use ringwatch_registry::{FunctionUpdate, RequestContext, Store, UpdateOptions};
use serde_json::{Value, json};

use super::ensure;
use crate::service_ranges::ServiceRanges;

const NAME: &str = "kubernetes";
/// The field manager of the condition.
const MANAGER: &str = "kubernetes-service-cidr-controller";

/// Creates the ServiceCIDR `kubernetes` unless it exists, and says that it is ready unless it says something about that
/// already. One with the first of two ranges gets the second; any other is left as it is, with a warning.
///
/// Follows `sync` of pkg/controlplane/controller/defaultservicecidr of Kubernetes 1.36, which besides writes an Event.
///
/// # Errors
/// An error of the store if the object can neither be read nor written.
pub async fn ensure_service_range(
    store: &Store,
    ranges: &ServiceRanges,
    clock: &Clock,
) -> Result<(), Error> {
    let cidrs = ranges.cidrs();
    let range = json!({"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": {"name": NAME}, "spec": {"cidrs": cidrs}});
    ensure(store, "", range, clock).await?;
    let context = RequestContext::of_server(clock);
    let mut change = FunctionUpdate::new(|range| {
        if range["spec"]["cidrs"] == json!(cidrs[..1]) {
            range["spec"]["cidrs"] = json!(cidrs);
        }
        Ok(())
    });
    let options = UpdateOptions::default();
    let (written, _) = store
        .update(&context, "", NAME, &mut change, &options)
        .await?;
    let written = codec::tree(&written)?;
    let found = &written["spec"]["cidrs"];
    if *found != json!(cidrs) {
        tracing::warn!(
            "The default ServiceCIDR {found} does not match the controller flag configurations {cidrs:?}; services get \
             addresses of the former"
        );
    }
    let mut context = RequestContext::of_server(clock).on_subresource("status");
    MANAGER.clone_into(&mut context.field_manager);
    let mut change = FunctionUpdate::new(|range| {
        say_ready(range, &cidrs, clock.wall());
        Ok(())
    });
    let updated = store
        .update(&context, "", NAME, &mut change, &options)
        .await;
    updated.map(|_| ())
}

/// Says that the range is ready, unless it says something about that already.
fn say_ready(range: &mut Value, cidrs: &[String], now: Timestamp) {
    let conditions = range["status"]["conditions"].as_array();
    let says = |it: &Value| it["type"] == "Ready" && it["status"] != "Unknown";
    let is_said = conditions.is_some_and(|all| all.iter().any(says));
    let is_ours = range["spec"]["cidrs"] == json!(cidrs);
    if !is_said && is_ours && range["metadata"]["deletionTimestamp"].is_null() {
        let others = conditions.into_iter().flatten();
        let others = others.filter(|it| it["type"] != "Ready").cloned();
        let ready = json!({"type": "Ready", "status": "True", "reason": "",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": format_time(now)});
        let all: Vec<Value> = others.chain([ready]).collect();
        range["status"]["conditions"] = Value::Array(all);
    }
}

#[cfg(test)]
mod tests {
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
        for (flag, cidrs) in [
            ("10.96.0.0/12", json!(["10.96.0.0/12"])),
            ("10.96.0.0/12", json!(["10.96.0.0/12"])),
            (
                "10.96.0.0/12,fd00::/108",
                json!(["10.96.0.0/12", "fd00::/108"]),
            ),
            ("10.96.0.0/12", json!(["10.96.0.0/12", "fd00::/108"])),
            ("10.0.0.0/24", json!(["10.96.0.0/12", "fd00::/108"])),
        ] {
            let configured = ServiceRanges::parse(flag).expect("ranges");
            let ensured = ensure_service_range(&store, &configured, &clock).await;
            ensured.expect("there");
            let found = store.get("", NAME, GetOptions::default()).await;
            let found = found.expect("there");
            let range = codec::tree(&found).expect("an object");
            assert_eq!(range["spec"]["cidrs"], cidrs);
            let ready = &range["status"]["conditions"][0];
            assert_eq!(
                (&ready["type"], &ready["status"]),
                (&json!("Ready"), &json!("True"))
            );
            revisions.push(found.revision());
        }
        assert_eq!(revisions[0], revisions[1], "nothing is written again");
        assert_eq!(revisions[2], revisions[4], "another range is left as it is");
    }
}
