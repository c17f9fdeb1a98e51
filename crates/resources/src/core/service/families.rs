//! The IP families of services, which clients may leave out in part or altogether.
//!
//! Follows `initIPFamilyFields` of pkg/registry/core/service/storage/alloc.go of Kubernetes 1.36.

use ringwatch_apimachinery::FieldError;
use ringwatch_apimachinery::path::{get, list, set, text};
use serde_json::{Value, json};

use super::validation::addresses;
use super::{HEADLESS, has_address};
use crate::service_ranges::{Families, Family};
use crate::validation::values::address;
use crate::validation::{CheckOfChange, found_in_change};

const IPS: &str = "spec.clusterIPs";
const FAMILIES: &str = "spec.ipFamilies";
const POLICY: &str = "spec.ipFamilyPolicy";
const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Fills in the fields of services about families, for a server with these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completion(pub(super) Families);

impl Completion {
    /// Fills in the policy and the families of a service that may leave them out. On an error the service is completed
    /// in part.
    ///
    /// # Errors
    /// The fields about addresses that are wrong, contradict each other, or ask for a family that services do not get
    /// here.
    pub(super) fn complete(
        self,
        service: &mut Value,
        old: Option<&Value>,
    ) -> Result<(), Vec<FieldError>> {
        if !has_address(service) || old.is_some_and(|old| stays_as_it_prefers(service, old)) {
            return Ok(());
        }
        if get(service, POLICY).is_none() {
            set(service, POLICY, default_policy(service, old));
        }
        // Contradictions within the fields are told alone, and what follows need not consider them.
        let check: CheckOfChange =
            |it, old, errors| addresses(&it.at("spec"), &old.at("spec"), errors);
        let wrong = found_in_change(check, service, old.unwrap_or(&Value::Null));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let policy = text(service, POLICY).to_owned();
        let mut errors = Vec::new();
        let wrong_policy = |why: &str| FieldError::invalid(POLICY, &json!(policy), why);
        if let Some(old) = old {
            for (path, what) in [(IPS, "cluster IP"), (FAMILIES, "IP family")] {
                let (now, before) = (list(service, path), list(old, path));
                if policy == SINGLE {
                    if now == before && now.len() > 1 {
                        set(service, path, json!([before[0]]));
                    }
                } else if !now.is_empty() && now.len() < before.len() {
                    let why = format!("must be 'SingleStack' to release the secondary {what}");
                    errors.push(wrong_policy(&why));
                }
            }
        }
        for (path, what) in [(IPS, "cluster IPs"), (FAMILIES, "IP families")] {
            if policy == SINGLE && list(service, path).len() == 2 {
                errors.push(wrong_policy(&format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
                )));
            }
        }
        errors.extend(self.infer(service));
        if !errors.is_empty() {
            return Err(errors);
        }
        if text(service, "spec.clusterIP") == HEADLESS && has_no_selector(service) {
            // Its endpoints are written by others, and may be of any family.
            self.add_missing(service, policy != SINGLE);
            return Ok(());
        }
        if policy == REQUIRE && !self.0.dual {
            let why = "this cluster is not configured for dual-stack services";
            errors.push(wrong_policy(why));
        }
        for (index, family) in list(service, FAMILIES).iter().enumerate() {
            if Family::parse(family).is_some_and(|it| !self.0.has(it)) {
                let why = "not configured on this cluster";
                errors.push(FieldError::invalid(
                    format!("{FAMILIES}[{index}]"),
                    family,
                    why,
                ));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        self.add_missing(service, policy != SINGLE && self.0.dual);
        Ok(())
    }

    /// Adds the families of cluster IPs that name none. Returns the errors of those that services do not get here.
    fn infer(self, service: &mut Value) -> Vec<FieldError> {
        let ips = list(service, IPS).to_vec();
        let mut families = list(service, FAMILIES).to_vec();
        let mut errors = Vec::new();
        for (index, ip) in ips.iter().enumerate().skip(families.len()) {
            let Some(found) = ip.as_str().and_then(address) else {
                break;
            };
            let family = Family::of(found);
            if self.0.has(family) {
                families.push(json!(family.name()));
            } else {
                let why = format!("{} is not configured on this cluster", family.name());
                errors.push(FieldError::invalid(
                    format!("{IPS}[{index}]"),
                    &json!(ips),
                    why,
                ));
            }
        }
        if !families.is_empty() {
            set(service, FAMILIES, json!(families));
        }
        errors
    }

    /// Adds the default family if there is none, and the other one if there are to be both.
    fn add_missing(self, service: &mut Value, both: bool) {
        let mut families = list(service, FAMILIES).to_vec();
        if families.is_empty() {
            families.push(json!(self.0.first.name()));
        }
        if let [only] = families.as_slice()
            && both
            && let Some(family) = Family::parse(only)
        {
            families.push(json!(family.other().name()));
        }
        set(service, FAMILIES, json!(families));
    }
}

/// Returns the policy of a service that names none: that of before, if there is one.
fn default_policy(service: &Value, old: Option<&Value>) -> Value {
    if let Some(policy) = old.and_then(|old| get(old, POLICY)) {
        return policy.clone();
    }
    let headless = text(service, "spec.clusterIP") == HEADLESS;
    if headless && has_no_selector(service) {
        json!(REQUIRE)
    } else {
        json!(SINGLE)
    }
}

/// Returns true if an update changes nothing about the families of a service that prefers both: it keeps what it has,
/// also after the server's ranges have changed.
fn stays_as_it_prefers(service: &Value, old: &Value) -> bool {
    let same = |path: &str| list(service, path) == list(old, path);
    text(service, "spec.type") == text(old, "spec.type")
        && text(service, POLICY) == PREFER
        && matches!(text(old, POLICY), PREFER | "")
        && same(IPS)
        && same(FAMILIES)
}

fn has_no_selector(service: &Value) -> bool {
    let selector = get(service, "spec.selector").and_then(Value::as_object);
    selector.is_none_or(|it| it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: Families = Families {
        first: Family::IPv4,
        dual: false,
    };
    const BOTH: Families = Families {
        first: Family::IPv6,
        dual: true,
    };

    fn completed(
        families: Families,
        spec: Value,
        old: Option<Value>,
    ) -> Result<Value, Vec<String>> {
        let mut service = json!({"spec": {"type": "ClusterIP", "selector": {"a": "b"}}});
        for (name, value) in spec.as_object().expect("members") {
            service["spec"][name] = value.clone();
        }
        let old = old.map(|spec| json!({"spec": spec}));
        match Completion(families).complete(&mut service, old.as_ref()) {
            Ok(()) => Ok(json!([
                text(&service, POLICY),
                list(&service, FAMILIES),
                list(&service, IPS)
            ])),
            Err(errors) => Err(crate::validation::messages(&errors)),
        }
    }

    #[test]
    fn families_follow_policy_addresses_and_the_servers_ranges() {
        for (families, spec, expected) in [
            (V4, json!({}), json!(["SingleStack", ["IPv4"], []])),
            (BOTH, json!({}), json!(["SingleStack", ["IPv6"], []])),
            (
                V4,
                json!({"ipFamilyPolicy": "PreferDualStack"}),
                json!(["PreferDualStack", ["IPv4"], []]),
            ),
            (
                BOTH,
                json!({"ipFamilyPolicy": "PreferDualStack"}),
                json!(["PreferDualStack", ["IPv6", "IPv4"], []]),
            ),
            (
                BOTH,
                json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4"]}),
                json!(["RequireDualStack", ["IPv4", "IPv6"], []]),
            ),
            (
                BOTH,
                json!({"clusterIPs": ["10.0.0.7"], "clusterIP": "10.0.0.7"}),
                json!(["SingleStack", ["IPv4"], ["10.0.0.7"]]),
            ),
            (
                V4,
                json!({"clusterIPs": ["None"], "clusterIP": "None", "selector": null}),
                json!(["RequireDualStack", ["IPv4", "IPv6"], ["None"]]),
            ),
            (
                V4,
                json!({"clusterIPs": ["None"], "clusterIP": "None"}),
                json!(["SingleStack", ["IPv4"], ["None"]]),
            ),
        ] {
            assert_eq!(
                completed(families, spec.clone(), None),
                Ok(expected),
                "{spec}"
            );
        }
    }

    #[test]
    fn contradictions_and_families_that_nobody_gets_are_refused() {
        for (spec, expected) in [
            (
                json!({"ipFamilyPolicy": "RequireDualStack"}),
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack services",
            ),
            (
                json!({"ipFamilies": ["IPv6"]}),
                "spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster",
            ),
            (
                json!({"clusterIP": "fd00::7", "clusterIPs": ["fd00::7"]}),
                "spec.clusterIPs[0]: Invalid value: [\"fd00::7\"]: IPv6 is not configured on this cluster",
            ),
            (
                json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4", "IPv6"]}),
                "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified",
            ),
        ] {
            let expected = Err(vec![expected.to_owned()]);
            assert_eq!(completed(V4, spec.clone(), None), expected, "{spec}");
        }
    }

    #[test]
    fn an_update_goes_to_one_family_only_if_it_says_so() {
        let both = || {
            json!({"type": "ClusterIP", "ipFamilyPolicy": "RequireDualStack",
                "clusterIP": "fd00::7", "clusterIPs": ["fd00::7", "10.0.0.7"],
                "ipFamilies": ["IPv6", "IPv4"]})
        };
        let mut single = both();
        single["ipFamilyPolicy"] = json!("SingleStack");
        assert_eq!(
            completed(BOTH, single, Some(both())),
            Ok(json!(["SingleStack", ["IPv6"], ["fd00::7"]]))
        );
        let mut silent = both();
        silent["clusterIPs"] = json!(["fd00::7"]);
        let members = silent.as_object_mut().expect("members");
        members.remove("ipFamilyPolicy");
        let silent = completed(BOTH, silent, Some(both())).expect_err("not said");
        assert_eq!(
            silent,
            [
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary cluster IP"
            ]
        );
        // One that prefers both keeps what it has, though the server gives out both by now.
        let prefers = || {
            json!({"type": "ClusterIP", "ipFamilyPolicy": "PreferDualStack",
                "clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "ipFamilies": ["IPv4"]})
        };
        assert_eq!(
            completed(BOTH, prefers(), Some(prefers())),
            Ok(json!(["PreferDualStack", ["IPv4"], ["10.0.0.7"]]))
        );
    }
}
