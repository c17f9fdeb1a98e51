//! The flow schemas and priority levels that are there from the start.

use ringwatch::clock::Clock;
use ringwatch_apimachinery::Error;
use ringwatch_flowcontrol::{FlowTable, Level, Schema};
use ringwatch_registry::Store;
use serde_json::Value;

use super::ensure;

const OBJECTS: &str = include_str!("flow_control.json");

/// Creates those of the default levels and schemas that do not exist.
///
/// # Errors
/// When one can neither be created nor is there; those before it exist.
pub async fn ensure_flow_control(
    levels: &Store,
    schemas: &Store,
    clock: &Clock,
) -> Result<(), Error> {
    for object in objects() {
        let store = if is_level(&object) { levels } else { schemas };
        ensure(store, "", object, clock).await?;
    }
    Ok(())
}

/// Returns the flow control configuration that holds until the stored one is known.
#[must_use]
pub fn default_flows() -> FlowTable {
    let (levels, schemas): (Vec<_>, Vec<_>) = objects().into_iter().partition(is_level);
    let schemas = schemas
        .into_iter()
        .filter_map(|schema| Schema::read(schema).ok());
    FlowTable::new(schemas, levels.iter().map(Level::read).collect())
}

/// Returns one of the default schemas.
pub(crate) fn default_schema(name: &str) -> Option<Value> {
    let all = objects().into_iter();
    all.filter(|it| !is_level(it))
        .find(|it| it["metadata"]["name"] == name)
}

fn is_level(object: &Value) -> bool {
    object["kind"] == "PriorityLevelConfiguration"
}

fn objects() -> Vec<Value> {
    serde_json::from_str(OBJECTS).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ringwatch_apimachinery::User;
    use ringwatch_authorization::Attributes;

    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().chain(&["system:authenticated"]);
        User {
            name: name.to_owned(),
            groups: groups.map(ToString::to_string).collect(),
            ..User::default()
        }
    }

    /// Returns the schema, the level and the distinguisher of a request.
    fn found(attributes: &Attributes<'_>) -> String {
        let table = default_flows();
        let flow = table.find(attributes).expect("a flow");
        format!("{} {} {}", flow.key.0, flow.level.name, flow.key.1)
    }

    #[test]
    fn requests_belong_where_kube_apiserver_puts_them() {
        let pods = |user: &User| found(&Attributes::of_resource(user, "list", "", "pods"));
        let account = |namespace: &str| {
            let name = format!("system:serviceaccount:{namespace}:a");
            user(&name, &["system:serviceaccounts"])
        };
        let scheduler = user("system:kube-scheduler", &[]);
        assert_eq!(pods(&user("boss", &["system:masters"])), "exempt exempt ");
        assert_eq!(
            pods(&user("jane", &[])),
            "global-default global-default jane"
        );
        assert_eq!(
            pods(&scheduler),
            "kube-scheduler workload-high system:kube-scheduler"
        );
        assert_eq!(
            pods(&account("kube-system")),
            "kube-system-service-accounts workload-high system:serviceaccount:kube-system:a"
        );
        assert_eq!(
            pods(&account("default")),
            "service-accounts workload-low system:serviceaccount:default:a"
        );
        let lease = Attributes {
            namespace: "kube-system",
            ..Attributes::of_resource(&scheduler, "update", "coordination.k8s.io", "leases")
        };
        assert_eq!(
            found(&lease),
            "system-leader-election leader-election system:kube-scheduler"
        );
    }

    #[test]
    fn nodes_and_probes_have_their_own_flows() {
        let (jane, node) = (user("jane", &[]), user("system:node:a", &["system:nodes"]));
        let of_node = |resource| found(&Attributes::of_resource(&node, "get", "", resource));
        assert_eq!(of_node("nodes"), "system-node-high node-high system:node:a");
        assert_eq!(of_node("pods"), "system-nodes system system:node:a");
        let path = |path| found(&Attributes::of_path(&jane, "get", path));
        assert_eq!(path("/readyz"), "probes exempt ");
        assert_eq!(path("/readyz/x"), "global-default global-default jane");
    }

    #[test]
    fn all_objects_are_read() {
        assert_eq!(objects().len(), 21);
        assert_eq!(default_flows().levels().len(), 8);
    }
}
