//! The ResourceClaims of a pod, and those of them that its containers use.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use ringwatch_apimachinery::error::ERROR_BYTES_MAX;
use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::json;

use crate::core::pod::annotations::NO_PATH;
use crate::validation::field::{Errors, Field};

const CLAIM: &str = "resourceClaimName";
const TEMPLATE: &str = "resourceClaimTemplateName";

/// The claims of a pod by their names.
pub(super) struct OwnClaims<'v> {
    names: BTreeSet<&'v str>,
    /// The bytes of the errors so far that show all names.
    shown_bytes: Cell<usize>,
}

/// Checks the claims of a pod, and returns them. Follows `validatePodResourceClaims`.
pub(super) fn of_pod<'v>(
    spec: &Field<'v, '_>,
    is_mirror: bool,
    errors: &mut Errors,
) -> OwnClaims<'v> {
    let mut names = BTreeSet::new();
    for claim in spec.items("resourceClaims") {
        if is_mirror {
            names.insert(claim.at("name").text());
            let why = "static pods do not support resource claims";
            errors.push(FieldError::forbidden(NO_PATH, why));
            continue;
        }
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
    OwnClaims {
        names,
        shown_bytes: Cell::new(0),
    }
}

/// Checks the claims that a container, or the pod as a whole, uses. Follows `validateResourceClaimNames`.
pub(super) fn used(own: &OwnClaims<'_>, resources: &Field<'_, '_>, errors: &mut Errors) {
    let mut whole = BTreeSet::new();
    let mut parts: BTreeSet<(&str, &str)> = BTreeSet::new();
    // How many parts there were of each claim.
    let mut with_parts: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in resources.items("claims") {
        let (name, request) = (claim.at("name").text(), claim.at("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        if whole.contains(name) {
            errors.push(claim.duplicate_of(name));
        } else if request.is_empty() {
            let again = with_parts.get(name).copied().unwrap_or(0);
            errors.extend((0..again).map(|_| claim.duplicate_of(name)));
            whole.insert(name);
        } else {
            request.must_conform(formats::dns_label, errors);
            if parts.insert((name, request.text())) {
                *with_parts.entry(name).or_default() += 1;
            } else {
                errors.push(claim.duplicate_of(&format!("{name}/{}", request.text())));
            }
        }
        if !own.names.contains(name) {
            errors.extend(own.unknown(name, &claim));
        }
    }
}

impl OwnClaims<'_> {
    /// Returns the error that there is no claim of this name. It shows the names of all, so there is none after
    /// [`ERROR_BYTES_MAX`] of such errors: the pod is refused all the same.
    fn unknown(&self, name: &str, at: &Field<'_, '_>) -> Option<FieldError> {
        let shown_bytes = self.shown_bytes.get();
        if shown_bytes > ERROR_BYTES_MAX {
            return None;
        }
        let known = if self.names.is_empty() {
            " which is empty".to_owned()
        } else {
            let names: Vec<_> = self.names.iter().copied().collect();
            format!(": {}", names.join(", "))
        };
        let why = format!(
            "{}: must be one of the names in pod.spec.resourceClaims{known}",
            json!(name)
        );
        self.shown_bytes.set(shown_bytes + why.len());
        Some(FieldError::new(FieldErrorKind::NotFound, at.field(), why))
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

    fn own(spec: &Field<'_, '_>, errors: &mut Errors) {
        of_pod(spec, false, errors);
    }

    /// Checks what is used, and not the claims themselves.
    fn uses(spec: &Field<'_, '_>, errors: &mut Errors) {
        let own = of_pod(spec, false, &mut Errors::new());
        used(&own, &spec.at("resources"), errors);
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
            assert_eq!(wrong(&json!({ "resourceClaims": claims }), own), expected);
        }
    }

    #[test]
    fn a_static_pod_has_no_claims() {
        let of_mirror = |spec: &Field<'_, '_>, errors: &mut Errors| {
            let own = of_pod(spec, true, errors);
            used(&own, &spec.at("resources"), errors);
        };
        let spec = json!({"resourceClaims": [{"name": "a"}, {}], "resources": {"claims": [{"name": "a"}]}});
        let why = "[]: Forbidden: static pods do not support resource claims";
        assert_eq!(wrong(&spec, of_mirror), [why; 2]);
    }

    #[test]
    fn a_container_uses_claims_of_its_pod() {
        let spec = |used: Value| json!({"resourceClaims": [{"name": "a"}, {"name": "b"}], "resources": {"claims": used}});
        let wrong = |used: Value| wrong(&spec(used), uses);
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
        let parts =
            json!([{"name": "a", "request": "r"}, {"name": "a", "request": "s"}, {"name": "a"}]);
        let why = "spec.resources.claims[2]: Duplicate value: \"a\"";
        assert_eq!(wrong(parts), [why; 2]);
    }

    #[test]
    fn errors_that_show_all_claims_are_not_without_end() {
        let own: Vec<_> = (0..1000)
            .map(|it| json!({"name": format!("c{it}")}))
            .collect();
        let unknown: Vec<_> = (0..20_000)
            .map(|it| json!({"name": format!("u{it}")}))
            .collect();
        let pod = json!({"spec": {"resourceClaims": own, "resources": {"claims": unknown}}});
        let root = Field::root(&pod);
        let spec = root.at("spec");
        let (own, mut errors) = (of_pod(&spec, false, &mut Errors::new()), Errors::new());
        for _container in 0..2 {
            used(&own, &spec.at("resources"), &mut errors);
        }
        let bytes: usize = errors.iter().map(|it| it.detail.len()).sum();
        assert!(
            (ERROR_BYTES_MAX..2 * ERROR_BYTES_MAX).contains(&bytes),
            "{bytes}"
        );
    }
}
