//! The ResourceClaims of a pod, and those of them that its containers use.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::BTreeSet;

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use crate::validation::field::{Errors, Field};

const CLAIM: &str = "resourceClaimName";
const TEMPLATE: &str = "resourceClaimTemplateName";

/// Checks the claims of a pod. Follows `validatePodResourceClaims`.
pub(super) fn of_pod(spec: &Field<'_, '_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for claim in spec.items("resourceClaims") {
        let name = claim.at("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !names.insert(name.text()) {
            errors.push(name.duplicate());
        } else {
            name.must_conform(formats::dns_label, errors);
        }
        let both = [CLAIM, TEMPLATE].map(|it| claim.at(it));
        let why = match both.iter().filter(|it| it.is_set()).count() {
            0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            1 => None,
            _ => Some(
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            ),
        };
        if let Some(why) = why {
            // As Kubernetes shows its own type.
            let [direct, template] = both.map(|it| it.value().clone());
            let shown = format!(
                "{{\"Name\":{},\"ResourceClaimName\":{direct},\"ResourceClaimTemplateName\":{template}}}: {why}",
                json!(name.text())
            );
            let kind = FieldErrorKind::Invalid;
            errors.push(FieldError::new(kind, claim.field(), shown));
        }
        for it in both.iter().filter(|it| it.is_set()) {
            it.must_conform(formats::dns_subdomain, errors);
        }
    }
}

/// Checks the claims that a container, or the pod as a whole, uses. Follows `validateResourceClaimNames`.
pub(super) fn used(spec: &Field<'_, '_>, resources: &Field<'_, '_>, errors: &mut Errors) {
    let own = spec.items("resourceClaims").map(|it| it.at("name").text());
    let own: BTreeSet<&str> = own.filter(|it| !it.is_empty()).collect();
    let mut whole = BTreeSet::new();
    let mut parts: BTreeSet<(&str, &str)> = BTreeSet::new();
    for claim in resources.items("claims") {
        let (name, request) = (claim.at("name").text(), claim.at("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if whole.contains(name) {
            errors.push(claim.duplicate_of(name));
        } else if request.is_empty() {
            if parts.iter().any(|(claim, _)| *claim == name) {
                errors.push(claim.duplicate_of(name));
            }
            whole.insert(name);
        } else {
            request.must_conform(formats::dns_label, errors);
            if !parts.insert((name, request.text())) {
                errors.push(claim.duplicate_of(&format!("{name}/{}", request.text())));
            }
        }
        if !own.contains(name) {
            let known = own.iter().copied().collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() {
                " which is empty".to_owned()
            } else {
                format!(": {known}")
            };
            let why = format!(
                "{}: must be one of the names in pod.spec.resourceClaims{known}",
                json!(name)
            );
            errors.push(FieldError::new(
                FieldErrorKind::NotFound,
                claim.field(),
                why,
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::validation::messages;

    fn wrong(spec: &Value, check: fn(&Field<'_, '_>, &mut Errors)) -> Vec<String> {
        let pod = json!({ "spec": spec });
        let mut errors = Errors::new();
        check(&Field::root(&pod).at("spec"), &mut errors);
        messages(&errors)
    }

    #[test]
    fn a_pod_has_claims_of_different_names() {
        for (claims, why) in [
            (
                json!([{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimTemplateName": "t"}]),
                None,
            ),
            (
                json!([{"name": "", "resourceClaimName": "c"}]),
                Some("spec.resourceClaims[0].name: Required value"),
            ),
            (
                json!([{"name": "a", "resourceClaimName": "c"}, {"name": "a", "resourceClaimName": "d"}]),
                Some("spec.resourceClaims[1].name: Duplicate value: \"a\""),
            ),
            (
                json!([{"name": "a"}]),
                Some(
                    "spec.resourceClaims[0]: Invalid value: {\"Name\":\"a\",\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                ),
            ),
            (
                json!([{"name": "a", "resourceClaimName": "c", "resourceClaimTemplateName": "t"}]),
                Some(
                    "spec.resourceClaims[0]: Invalid value: {\"Name\":\"a\",\"ResourceClaimName\":\"c\",\"ResourceClaimTemplateName\":\"t\"}: at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
                ),
            ),
        ] {
            let expected: Vec<&str> = why.into_iter().collect();
            assert_eq!(
                wrong(&json!({ "resourceClaims": claims }), of_pod),
                expected
            );
        }
    }

    #[test]
    fn a_container_uses_claims_of_its_pod() {
        let spec = |used: Value| json!({"resourceClaims": [{"name": "a"}, {"name": "b"}], "resources": {"claims": used}});
        let check: fn(&Field<'_, '_>, &mut Errors) =
            |spec, errors| used(spec, &spec.at("resources"), errors);
        let wrong = |used: Value| wrong(&spec(used), check);
        assert_eq!(
            wrong(json!([{"name": "a"}, {"name": "b", "request": "r"}])),
            [""; 0]
        );
        for (claims, why) in [
            (
                json!([{"name": "a"}, {"name": "a"}]),
                "spec.resources.claims[1]: Duplicate value: \"a\"",
            ),
            (
                json!([{"name": "a", "request": "r"}, {"name": "a"}]),
                "spec.resources.claims[1]: Duplicate value: \"a\"",
            ),
            (
                json!([{"name": "a", "request": "r"}, {"name": "a", "request": "r"}]),
                "spec.resources.claims[1]: Duplicate value: \"a/r\"",
            ),
            (
                json!([{"name": "c"}]),
                "spec.resources.claims[0]: Not found: \"c\": must be one of the names in pod.spec.resourceClaims: a, b",
            ),
            (json!([{}]), "spec.resources.claims[0]: Required value"),
        ] {
            assert_eq!(wrong(claims), [why]);
        }
    }
}
