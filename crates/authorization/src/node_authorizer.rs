//! The Node authorizer, which decides what kubelets may do.
//!
//! A kubelet is a user `system:node:NAME` in the group `system:nodes`. It may read the objects that the pods of its
//! node refer to ([`NodeGraph`]), and write its own node, lease and the like; the other rules are the same for every
//! node.

use std::sync::Arc;

use ringwatch_apimachinery::User;

use super::{Attributes, NodeGraph, Rule};

const GROUP: &str = "system:nodes";
const PREFIX: &str = "system:node:";
/// The namespace of the leases of nodes.
const LEASES: &str = "kube-node-lease";

/// Authorizes the requests of kubelets.
#[derive(Debug)]
pub struct NodeAuthorizer {
    /// The objects that the pods of each node need.
    pub graph: Arc<NodeGraph>,
    /// The rules that apply to every node.
    pub rules: Vec<Rule>,
}

/// Returns the name of the node whose kubelet a user is; empty for a kubelet of no particular node.
#[must_use]
pub fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(PREFIX)?;
    user.groups
        .iter()
        .any(|group| group == GROUP)
        .then_some(name)
}

impl NodeAuthorizer {
    /// Decides whether a kubelet may make a request.
    ///
    /// # Errors
    /// The reason of the refusal; empty for users that are no kubelets.
    pub(super) fn decide(&self, attributes: &Attributes<'_>) -> Result<(), String> {
        let Some(node) = node_of(attributes.user) else {
            return Err(String::new());
        };
        if node.is_empty() {
            return Err(format!("unknown node for user {:?}", attributes.user.name));
        }
        if !attributes.is_resource {
            return self.by_rules(attributes);
        }
        match (attributes.group, attributes.resource) {
            ("", "secrets" | "configmaps") => self.read_related(node, attributes),
            ("", "persistentvolumeclaims") if attributes.subresource == "status" => {
                self.update_status(node, attributes)
            }
            ("", "persistentvolumeclaims" | "persistentvolumes")
            | ("resource.k8s.io", "resourceclaims")
            | ("storage.k8s.io", "volumeattachments") => self.get_related(node, attributes),
            ("", "serviceaccounts") if attributes.subresource == "token" => {
                self.create_token(node, attributes)
            }
            ("", "serviceaccounts") => self.get_related(node, attributes),
            ("coordination.k8s.io", "leases") => own_lease(node, attributes),
            ("storage.k8s.io", "csinodes") => own(node, attributes, "CSINode"),
            ("resource.k8s.io", "resourceslices") => self.slices(node, attributes),
            ("", "nodes") => own_node(node, attributes),
            ("", "pods") => self.pods(node, attributes),
            _ => self.by_rules(attributes),
        }
    }

    fn by_rules(&self, attributes: &Attributes<'_>) -> Result<(), String> {
        let allows = self.rules.iter().any(|rule| rule.allows(attributes));
        if allows { Ok(()) } else { Err(String::new()) }
    }

    /// Decides on gets, lists and watches of one object in a namespace.
    fn read_related(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        match attributes.verb {
            "get" | "list" | "watch" => {}
            _ => return refuse("can only read resources of this type"),
        }
        if !attributes.subresource.is_empty() {
            return refuse("cannot read subresource");
        }
        if attributes.namespace.is_empty() {
            return refuse("can only read namespaced object of this type");
        }
        self.related(node, attributes)
    }

    fn get_related(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        if attributes.verb != "get" {
            return refuse("can only get individual resources of this type");
        }
        if !attributes.subresource.is_empty() {
            return refuse("cannot get subresource");
        }
        self.related(node, attributes)
    }

    fn update_status(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        match attributes.verb {
            "update" | "patch" => self.related(node, attributes),
            _ => refuse("can only get/update/patch this type"),
        }
    }

    fn create_token(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        if attributes.verb == "create" {
            self.related(node, attributes)
        } else {
            refuse("can only create tokens for individual service accounts")
        }
    }

    fn related(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        let Attributes {
            resource,
            namespace,
            name,
            ..
        } = attributes;
        if name.is_empty() {
            return refuse("No Object name found");
        }
        if self.graph.relates(node, resource, namespace, name) {
            return Ok(());
        }
        Err(format!(
            "no relationship found between node '{node}' and this object"
        ))
    }

    /// Decides on ResourceSlices, in which a node lists its devices.
    fn slices(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        if !attributes.subresource.is_empty() {
            return refuse("cannot authorize ResourceSlice subresources");
        }
        match attributes.verb {
            // The NodeRestriction plugin checks that the object is the kubelet's own.
            "create" => Ok(()),
            "get" | "update" | "patch" | "delete" => self.related(node, attributes),
            "watch" | "list" | "deletecollection"
                if attributes.selects_exactly("spec.nodeName") == Some(node) =>
            {
                Ok(())
            }
            "watch" | "list" | "deletecollection" => refuse(
                "can only list/watch/deletecollection resourceslices with nodeName field selector",
            ),
            _ => refuse(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn pods(&self, node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
        match (attributes.subresource, attributes.verb) {
            ("", "get") => self.get_related(node, attributes),
            ("", "list" | "watch") if attributes.selects_exactly("spec.nodeName") == Some(node) => {
                Ok(())
            }
            ("", "list" | "watch") => {
                refuse("can only list/watch pods with spec.nodeName field selector")
            }
            // The NodeRestriction plugin checks that the object is the kubelet's own.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
                Ok(())
            }
            _ => Err(String::new()),
        }
    }
}

fn refuse(why: &str) -> Result<(), String> {
    Err(why.to_owned())
}

fn own_node(node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
    match (attributes.subresource, attributes.verb) {
        // The NodeRestriction plugin checks that the object is the kubelet's own.
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Ok(()),
        ("", "get" | "list" | "watch") if attributes.name == node => Ok(()),
        ("", "get" | "list" | "watch") if attributes.name.is_empty() => Err(format!(
            "node '{node}' cannot read all nodes, only its own Node object"
        )),
        ("", "get" | "list" | "watch") => Err(format!(
            "node '{node}' cannot read '{}', only its own Node object",
            attributes.name
        )),
        _ => Err(String::new()),
    }
}

fn own_lease(node: &str, attributes: &Attributes<'_>) -> Result<(), String> {
    let verbs = ["get", "create", "update", "patch", "delete"];
    if !verbs.contains(&attributes.verb) {
        return refuse("can only get, create, update, patch, or delete a node lease");
    }
    if attributes.namespace != LEASES {
        return Err(format!(
            "can only access leases in the {LEASES:?} system namespace"
        ));
    }
    if attributes.verb != "create" && attributes.name != node {
        return refuse("can only access node lease with the same name as the requesting node");
    }
    Ok(())
}

fn own(node: &str, attributes: &Attributes<'_>, kind: &str) -> Result<(), String> {
    let verbs = ["get", "create", "update", "patch", "delete"];
    if !verbs.contains(&attributes.verb) {
        return Err(format!(
            "can only get, create, update, patch, or delete a {kind}"
        ));
    }
    if !attributes.subresource.is_empty() {
        return Err(format!("cannot authorize {kind} subresources"));
    }
    if attributes.verb != "create" && attributes.name != node {
        return Err(format!(
            "can only access {kind} with the same name as the requesting node"
        ));
    }
    Ok(())
}
