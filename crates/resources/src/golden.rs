//! Tests that compare the table of built-in resources with recorded discovery answers of kube-apiserver.
//!
//! Without recordings the tests are reported as skipped.

use std::collections::BTreeMap;
use std::fs;

use ringwatch_registry::{Resource, Verb};
use ringwatch_testing::recorded;
use serde_json::Value;

use super::built_in;

/// Returns the body of the recorded answer of this name.
fn answer(name: &str) -> Option<Value> {
    let cases = recorded::answers("the built-in resources and recorded discovery")?;
    let text = fs::read_to_string(cases.join(name)).expect("a recorded answer");
    let (_, body) = text.split_once("\n\n").expect("a head and a body");
    Some(serde_json::from_str(body).expect("a JSON body"))
}

fn words(value: &Value) -> Vec<&str> {
    let list = value.as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect()
}

fn names(verbs: &[Verb]) -> Vec<&'static str> {
    verbs.iter().map(|verb| verb.name()).collect()
}

/// Compares one recorded resource with its row.
fn check(resource: &Resource, row: &Value) {
    let name = resource.qualified_name();
    assert_eq!(row["singularName"], resource.singular, "{name}");
    assert_eq!(row["kind"], resource.kind, "{name}");
    assert_eq!(row["namespaced"], resource.namespaced, "{name}");
    assert_eq!(words(&row["verbs"]), names(&resource.verbs), "{name}");
    assert_eq!(words(&row["shortNames"]), resource.short_names, "{name}");
    assert_eq!(words(&row["categories"]), resource.categories, "{name}");
    assert_eq!(
        row["storageVersionHash"].as_str(),
        resource.storage_version_hash().as_deref(),
        "{name}"
    );
}

#[test]
fn the_rows_are_those_of_discovery() {
    for (number, group) in [
        (8, "api-v1"),
        (11, "apis-admissionregistration.k8s.io-v1"),
        (12, "apis-apiextensions.k8s.io-v1"),
        (13, "apis-apiregistration.k8s.io-v1"),
        (15, "apis-authorization.k8s.io-v1"),
        (17, "apis-batch-v1"),
        (18, "apis-coordination.k8s.io-v1"),
        (19, "apis-discovery.k8s.io-v1"),
        (20, "apis-events.k8s.io-v1"),
        (21, "apis-networking.k8s.io-v1"),
        (22, "apis-node.k8s.io-v1"),
        (23, "apis-policy-v1"),
        (24, "apis-rbac.authorization.k8s.io-v1"),
        (25, "apis-scheduling.k8s.io-v1"),
        (26, "apis-storage.k8s.io-v1"),
        (27, "apis-flowcontrol.apiserver.k8s.io-v1"),
        (28, "apis-resource.k8s.io-v1"),
    ] {
        let Some(list) = answer(&format!("{number:03}-{group}.http")) else {
            return;
        };
        let resources: Vec<_> = built_in()
            .into_iter()
            .filter(|it| list["groupVersion"] == it.group_version.to_string())
            .collect();
        let mut expected = Vec::new();
        for resource in &resources {
            expected.push(resource.plural.clone());
            for part in &resource.subresources {
                expected.push(format!("{}/{}", resource.plural, part.name));
            }
        }
        let rows = list["resources"].as_array().expect("resources");
        let found: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(found, expected, "{group}");
        let rows: BTreeMap<_, _> = found.into_iter().zip(rows).collect();
        for resource in &resources {
            check(resource, rows[resource.plural.as_str()]);
            for part in &resource.subresources {
                let name = format!("{}/{}", resource.plural, part.name);
                let row = rows[name.as_str()];
                assert_eq!(row["kind"], part.kind, "{name}");
                assert_eq!(words(&row["verbs"]), names(&part.verbs), "{name}");
                let group = part.group_version.as_ref().map(|it| it.group.as_str());
                assert_eq!(row["group"].as_str(), group, "{name}");
            }
        }
    }
}

#[test]
fn all_groups_are_there_in_order() {
    let Some(list) = answer("005-apis-aggregated.http") else {
        return;
    };
    let mut recorded = Vec::new();
    for group in list["items"].as_array().expect("groups") {
        for version in group["versions"].as_array().expect("versions") {
            for row in version["resources"].as_array().expect("resources") {
                let parts = row["subresources"]
                    .as_array()
                    .map_or(&[][..], Vec::as_slice);
                recorded.push((
                    group["metadata"]["name"].to_string(),
                    version["version"].to_string(),
                    row["resource"].to_string(),
                    row["responseKind"]["kind"].to_string(),
                    format!(
                        "{:?}{:?}",
                        words(&row["shortNames"]),
                        words(&row["categories"])
                    ),
                    parts
                        .iter()
                        .map(|it| it["subresource"].to_string())
                        .collect::<Vec<_>>(),
                ));
            }
        }
    }
    let ours: Vec<_> = built_in()
        .iter()
        .filter(|it| !it.group_version.group.is_empty())
        .map(|it| {
            let quoted = |text: &str| Value::from(text).to_string();
            (
                quoted(&it.group_version.group),
                quoted(&it.group_version.version),
                quoted(&it.plural),
                quoted(&it.kind),
                format!("{:?}{:?}", it.short_names, it.categories),
                it.subresources
                    .iter()
                    .map(|part| quoted(&part.name))
                    .collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(recorded, ours);
}
