//! The labels by which requests are counted: their verb, resource and scope.

use prometheus_client::encoding::EncodeLabelSet;
use ringwatch_registry::Verb;

use super::request_info::RequestInfo;

/// The label `component` of all samples.
pub(super) const COMPONENT: &str = "apiserver";

/// The subresources whose requests kube-apiserver counts as `CONNECT`, whatever their method (`CleanVerb` of
/// `apiserver/pkg/endpoints/metrics/metrics.go`, 1.36).
const CONNECT_SUBRESOURCES: [&str; 5] = ["log", "exec", "portforward", "attach", "proxy"];

/// The labels of a request's resource and verb.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestKind {
    /// `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE` or `CONNECT`.
    pub(crate) verb: &'static str,
    /// The API group; empty for the core.
    pub(crate) group: String,
    /// The API version, such as `v1`.
    pub(crate) version: String,
    /// The plural name of the resource.
    pub(crate) resource: String,
    /// The subresource; empty for the resource itself.
    pub(crate) subresource: String,
    /// `resource`, `namespace` or `cluster`.
    pub(crate) scope: &'static str,
    /// The value `apiserver` on every sample, as in kube-apiserver.
    pub(crate) component: &'static str,
}

impl RequestKind {
    /// Returns the labels of a request on a known resource.
    pub(crate) fn new(info: &RequestInfo, namespaced: bool) -> Self {
        let on_resource = info.verb.on_resource();
        let scope = if !info.name.is_empty() || on_resource == Some(Verb::Create) {
            "resource"
        } else if namespaced && !info.namespace.is_empty() {
            "namespace"
        } else {
            "cluster"
        };
        let verb = if CONNECT_SUBRESOURCES.contains(&info.subresource.as_str()) {
            "CONNECT"
        } else {
            on_resource.map_or("", verb_label)
        };
        Self {
            verb,
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            scope,
            component: COMPONENT,
        }
    }

    /// Returns the labels of any other request. They contain nothing of its path, since clients choose that.
    pub(crate) fn unknown(info: &RequestInfo) -> Self {
        let verb = match info.verb.name() {
            "get" | "list" | "head" => "GET",
            "watch" => "WATCH",
            "create" | "post" => "POST",
            "update" | "put" => "PUT",
            "patch" => "PATCH",
            "delete" | "deletecollection" => "DELETE",
            _ => "other",
        };
        Self {
            verb,
            component: COMPONENT,
            ..Self::default()
        }
    }
}

/// Returns the label of a verb: its method in upper case, or the verb where a GET has several.
fn verb_label(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "POST",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Patch => "PATCH",
        Verb::Update => "PUT",
        Verb::Watch => "WATCH",
    }
}
