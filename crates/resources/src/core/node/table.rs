//! Printer columns of Nodes, as in pkg/printers/internalversion/printers.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use crate::table::{Column, TableConvertor, cells, field_docs, subject::RowSubject};

const UNKNOWN: &str = "<unknown>";

/// Table of Nodes, with status, roles, versions and addresses.
pub(crate) static NODES: TableConvertor = TableConvertor::new(
    &[
        Column::NAME,
        Column::text("Status", "The status of the node"),
        Column::text("Roles", "The roles of the node"),
        Column::AGE,
        Column::text("Version", field_docs::NODE_KUBELET_VERSION),
        Column::text("Internal-IP", field_docs::NODE_ADDRESSES).wide(),
        Column::text("External-IP", field_docs::NODE_ADDRESSES).wide(),
        Column::text("OS-Image", field_docs::NODE_OS_IMAGE).wide(),
        Column::text("Kernel-Version", field_docs::NODE_KERNEL_VERSION).wide(),
        Column::text(
            "Container-Runtime",
            field_docs::NODE_CONTAINER_RUNTIME_VERSION,
        )
        .wide(),
    ],
    |node| {
        cells![
            node.name(),
            status(node),
            roles(node),
            node.age(),
            node.text("status.nodeInfo.kubeletVersion"),
            address(node, "InternalIP"),
            address(node, "ExternalIP"),
            node.text_or("status.nodeInfo.osImage", UNKNOWN),
            kernel(node),
            node.text_or("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
        ]
    },
);

fn status(node: &RowSubject<'_>) -> String {
    let mut conditions = node.list("status.conditions").rev();
    let ready = conditions.find(|condition| condition.text("type") == "Ready");
    let ready = match ready.map(|condition| condition.text("status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    if node.boolean("spec.unschedulable") == Some(true) {
        format!("{ready},SchedulingDisabled")
    } else {
        ready.to_owned()
    }
}

/// Returns the roles that labels name: `node-role.kubernetes.io/ROLE`, or the value of the older `kubernetes.io/role`.
fn roles(node: &RowSubject<'_>) -> String {
    let labels = node.pairs("metadata.labels");
    let roles: BTreeSet<&str> = labels
        .filter_map(|(name, value)| match name {
            "kubernetes.io/role" => Some(value),
            _ => name.strip_prefix("node-role.kubernetes.io/"),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() {
        return "<none>".to_owned();
    }
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &RowSubject<'a>, kind: &str) -> &'a str {
    let mut addresses = node.list("status.addresses");
    let found = addresses.find(|address| address.text("type") == kind);
    found.map_or("<none>", |address| address.text("address"))
}

/// Returns the kernel's version with the processor architecture in parentheses.
fn kernel(node: &RowSubject<'_>) -> String {
    let version = node.text_or("status.nodeInfo.kernelVersion", UNKNOWN);
    match node.text("status.nodeInfo.architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}
