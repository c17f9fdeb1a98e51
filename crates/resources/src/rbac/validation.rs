//! Checks of Roles, ClusterRoles and their bindings.
//!
//! Follows pkg/apis/rbac/validation/validation.go of Kubernetes 1.36.

use ringwatch_apimachinery::validation::formats;
use serde_json::{Value, json};

use crate::networking::validation::path_segment;
use crate::validation::field::{Errors, Field};
use crate::validation::labels::{is_unreadable, selector_with};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Checks a Role. Follows `ValidateRole`.
pub(crate) fn role(object: &Field<'_, '_>, errors: &mut Errors) {
    for rule in object.items("rules") {
        policy_rule(&rule, true, errors);
    }
}

/// Checks a new ClusterRole. Follows `ValidateClusterRole`.
pub(crate) fn cluster_role(object: &Field<'_, '_>, errors: &mut Errors) {
    cluster_role_with(object, false, errors);
}

/// Checks an update of a ClusterRole: values in its selectors are not told if the old one has a selector that cannot be
/// read. Follows `ValidateClusterRoleUpdate`.
pub(crate) fn cluster_role_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let mut selectors = old.items("aggregationRule.clusterRoleSelectors");
    let any_values = selectors.any(|one| is_unreadable(&one));
    cluster_role_with(object, any_values, errors);
}

fn cluster_role_with(object: &Field<'_, '_>, any_values: bool, errors: &mut Errors) {
    for rule in object.items("rules") {
        policy_rule(&rule, false, errors);
    }
    if object.at("aggregationRule").is_set() {
        let selectors = object.at("aggregationRule.clusterRoleSelectors");
        if selectors.is_empty() {
            let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
            errors.push(selectors.required(why));
        }
        for one in selectors.items("") {
            selector_with(&one, any_values, errors);
            if is_unreadable(&one) {
                // Kubernetes shows the selector that it could not make.
                errors.push(one.invalid_value(Value::Null, "invalid label selector."));
            }
        }
    }
}

fn policy_rule(rule: &Field<'_, '_>, namespaced: bool, errors: &mut Errors) {
    let urls = rule.at("nonResourceURLs");
    if rule.at("verbs").is_empty() {
        let why = "verbs must contain at least one value";
        errors.push(rule.at("verbs").required(why));
    }
    if !urls.is_empty() {
        if namespaced {
            errors.push(urls.invalid("namespaced rules cannot apply to non-resource URLs"));
        }
        let resources = ["apiGroups", "resources", "resourceNames"];
        if resources.iter().any(|it| !rule.at(it).is_empty()) {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(urls.invalid(why));
        }
        return;
    }
    if rule.at("apiGroups").is_empty() {
        let why = "resource rules must supply at least one api group";
        errors.push(rule.at("apiGroups").required(why));
    }
    if rule.at("resources").is_empty() {
        let why = "resource rules must supply at least one resource";
        errors.push(rule.at("resources").required(why));
    }
}

/// Checks a RoleBinding. Follows `ValidateRoleBinding`.
pub(crate) fn role_binding(object: &Field<'_, '_>, errors: &mut Errors) {
    binding(object, &["Role", "ClusterRole"], errors);
}

/// Checks a ClusterRoleBinding. Follows `ValidateClusterRoleBinding`.
pub(crate) fn cluster_role_binding(object: &Field<'_, '_>, errors: &mut Errors) {
    binding(object, &["ClusterRole"], errors);
}

fn binding(object: &Field<'_, '_>, kinds: &[&str], errors: &mut Errors) {
    let role = object.at("roleRef");
    must_be(&role.at("apiGroup"), &[GROUP], errors);
    must_be(&role.at("kind"), kinds, errors);
    role.at("name")
        .must_be_set_and_conform(path_segment, errors);
    let everywhere = kinds.len() == 1;
    for subject in object.items("subjects") {
        let [kind, name, group, namespace] =
            ["kind", "name", "apiGroup", "namespace"].map(|member| subject.at(member));
        name.must_be_set(errors);
        match kind.text() {
            "ServiceAccount" => {
                name.may_conform(formats::dns_subdomain, errors);
                must_be(&group, &[""], errors);
                if everywhere {
                    namespace.must_be_set(errors);
                }
            }
            "User" | "Group" => must_be(&group, &[GROUP], errors),
            _ => errors.push(kind.unsupported(&["ServiceAccount", "User", "Group"])),
        }
    }
}

/// Checks that a text is one of these words, and not empty.
fn must_be(at: &Field<'_, '_>, words: &[&str], errors: &mut Errors) {
    if !words.contains(&at.text()) {
        errors.push(at.unsupported(words));
    }
}

/// Checks an update of a binding: its role is immutable. Follows `ValidateRoleBindingUpdate` and
/// `ValidateClusterRoleBindingUpdate`.
pub(crate) fn binding_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let role = object.at("roleRef");
    if role.value() != old.at("roleRef").value() {
        // As Kubernetes shows its own type.
        let part = |name: &str| -> Value { json!(role.at(name).text()) };
        let mut error = role.invalid("");
        error.detail = format!(
            "{{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}: cannot change roleRef",
            part("apiGroup"),
            part("kind"),
            part("name")
        );
        errors.push(error);
    }
}
