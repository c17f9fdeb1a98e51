//! Tests of the rows of each kind, in modules like those of the tables.

mod admission;
mod autoscaling;
mod batch;
mod certificates;
mod cluster;
mod configuration;
mod devices;
mod events;
mod flowcontrol;
mod ingress;
mod network;
mod nodes;
mod pods;
mod rbac;
mod volumes;
mod workloads;

use std::fs;

use jiff::Timestamp;
use ringwatch_testing::recorded;
use serde_json::{Value, json};

use super::*;
use crate::printer::convertor_of;

/// Time of the rows in these tests.
const NOW: &str = "2026-11-22T12:00:00Z";

fn row(group: &str, kind: &str, object: &Value) -> Row {
    let now: Timestamp = NOW.parse().expect("a time");
    convertor_of(group, kind).row(object, now)
}

/// Returns the cells of an object that was created five minutes ago, without its name and its age.
fn cells(group: &str, kind: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = json!("a-name");
    object["metadata"]["creationTimestamp"] = json!("2026-11-22T11:55:00Z");
    let columns = convertor_of(group, kind).columns();
    let cells = row(group, kind, &object).cells;
    assert_eq!(cells.len(), columns.len());
    let rest = columns.iter().zip(cells).filter(|(column, cell)| {
        match column.name {
            "Name" => assert_eq!(cell, "a-name"),
            "Age" => assert_eq!(cell, "5m"),
            _ => return true,
        }
        false
    });
    rest.map(|(_, cell)| cell).collect()
}

#[test]
fn every_object_has_a_cell_for_each_column() {
    let Some(folder) = recorded::testdata("rows of Kubernetes' objects") else {
        return;
    };
    let mut rows = 0;
    for file in fs::read_dir(&folder).expect("the testdata") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let object: Value =
            serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        // An object, and a bookmark, which is nothing but its metadata.
        for object in [&object, &json!({"metadata": {}})] {
            let convertor = convertor_of(group, &kind);
            let found = row(group, &kind, object).cells;
            assert_eq!(found.len(), convertor.columns().len(), "{kind}");
            let plain = |cell: &Value| !(cell.is_null() || cell.is_array() || cell.is_object());
            assert!(found.iter().all(plain), "{kind}: {found:?}");
            rows += 1;
        }
    }
    assert!(rows > 100, "{rows}");
}

#[test]
fn a_bookmark_is_a_row_of_an_empty_object() {
    let bookmark = json!({"metadata": {"resourceVersion": "7"}});
    assert_eq!(
        json!(row("", "ConfigMap", &bookmark).cells),
        json!(["", 0, "<unknown>"])
    );
    assert_eq!(
        json!(row("", "Pod", &bookmark).cells),
        json!([
            "",
            "0/0",
            "",
            "0",
            "<unknown>",
            "<none>",
            "<none>",
            "<none>",
            "<none>"
        ])
    );
}

#[test]
fn kinds_without_columns_show_when_they_were_created() {
    let object = json!({"metadata": {"name": "r", "creationTimestamp": "2026-11-22T11:00:00Z"}});
    for (group, kind) in [
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "LimitRange"),
        ("example.com", "Whatever"),
    ] {
        let columns = convertor_of(group, kind).columns();
        assert_eq!((columns[1].name, columns[1].kind), ("Created At", "date"));
        assert_eq!(
            json!(row(group, kind, &object).cells),
            json!(["r", "2026-11-22T11:00:00Z"])
        );
    }
}
