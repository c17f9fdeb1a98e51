//! Services, but for the allocation of their addresses and ports.
//!
//! Follows pkg/apis/core/validation/validation.go of Kubernetes 1.36.

use std::collections::{BTreeSet, HashSet};

use ringwatch_apimachinery::validation::formats;
use ringwatch_apimachinery::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use super::source_ranges::{LOAD_BALANCERS_ALONE, source_ranges};
use crate::validation::field::{Errors, Field};
use crate::validation::labels::labels;
use crate::validation::values::{PROTOCOLS, address, has_both_families, ip, ordinary_address};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: &[&str] = &["ClientIP", "None"];
pub(super) const TRAFFIC: &[&str] = &["Cluster", "Local"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const FAMILY_POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
/// Maximum time for which a client may stay with a pod, in seconds: a day.
const AFFINITY_SECONDS_MAX: i64 = 86_400;

/// The annotation that says how traffic follows the topology of the cluster, and its former name.
pub(super) const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
pub(super) const OLD_TOPOLOGY: &str = "service.kubernetes.io/topology-aware-hints";

/// Checks a new Service. Follows `ValidateServiceCreate`.
pub(crate) fn new_service(object: &Field<'_, '_>, errors: &mut Errors) {
    service(object, &Field::root(&Value::Null), errors);
}

/// Checks a Service; addresses that the old one has stay as they are. Follows `validateService`.
fn service(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (object.at("spec"), old.at("spec"));
    topology(object, errors);
    let kind = spec.at("type").text();
    let headless = is_headless(&spec);
    if spec.at("ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(spec.at("ports").required(""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let ips = spec.at("clusterIPs");
            let why = format!("may not be set to 'None' for {kind} services");
            errors.extend(ips.items("").next().map(|first| first.invalid(why)));
        }
        "ExternalName" => external_name(&spec, errors),
        _ => {}
    }
    ports(&spec, errors);
    labels(&spec.at("selector"), errors);
    affinity(&spec, errors);
    if kind != "ExternalName" {
        addresses(&spec, &was, errors);
    }
    let known = was.items("externalIPs");
    let known: HashSet<&str> = known.map(|one| one.text()).collect();
    for address in spec.items("externalIPs") {
        let before = errors.len();
        address.must_conform_unless_known(ip, &known, errors);
        if errors.len() == before {
            ordinary_address(&address, errors);
        }
    }
    spec.at("type").must_be_one_of(TYPES, errors);
    port_numbers(&spec, errors);
    source_ranges(object, old, errors);
    let allocation = spec.at("allocateLoadBalancerNodePorts");
    if kind != "LoadBalancer" {
        allocation.must_be_unset(LOAD_BALANCERS_ALONE, errors);
    }
    class(&spec, errors);
    traffic(&spec, errors);
}

/// Returns true if the service is headless: its only cluster IP is `None`.
fn is_headless(spec: &Field<'_, '_>) -> bool {
    let mut ips = spec.items("clusterIPs");
    let first = ips.next();
    ips.next().is_none() && first.is_some_and(|first| first.text() == "None")
}

fn external_name(spec: &Field<'_, '_>, errors: &mut Errors) {
    for member in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let why = "may not be set for ExternalName services";
        spec.at(member).must_be_unset(why, errors);
    }
    let name = spec.at("externalName");
    let text = name.text();
    let text = text.strip_suffix('.').unwrap_or(text);
    if text.is_empty() {
        errors.push(name.required(""));
    } else {
        let wrong = formats::dns_subdomain(text).into_iter();
        errors.extend(wrong.map(|why| name.invalid_value(text, why)));
    }
}

fn ports(spec: &Field<'_, '_>, errors: &mut Errors) {
    let many = spec.at("ports").len() > 1;
    let mut names = BTreeSet::new();
    for port in spec.items("ports") {
        let name = port.at("name");
        if many {
            name.must_be_set(errors);
        }
        if !name.is_empty() {
            name.must_conform(formats::dns_label, errors);
            if !names.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        port.at("port").must_be_a_port(errors);
        port.at("protocol").must_be_one_of(PROTOCOLS, errors);
        port.at("targetPort").must_be_a_port_or_its_name(errors);
        if port.at("appProtocol").is_set() {
            port.at("appProtocol")
                .must_conform(formats::label_key, errors);
        }
    }
}

fn affinity(spec: &Field<'_, '_>, errors: &mut Errors) {
    let affinity = spec.at("sessionAffinity");
    affinity.must_be_one_of(AFFINITIES, errors);
    let config = spec.at("sessionAffinityConfig");
    match affinity.text() {
        "ClientIP" => {
            let why = "when session affinity type is ClientIP";
            let seconds = config.at("clientIP.timeoutSeconds");
            match seconds.number() {
                None if !config.is_set() => errors.push(config.required(why)),
                None => errors.push(seconds.required(why)),
                Some(1..=AFFINITY_SECONDS_MAX) => {}
                Some(_) => {
                    let why =
                        format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
                    errors.push(seconds.invalid(why));
                }
            }
        }
        "None" => {
            let why = "must not be set when session affinity is None";
            config.must_be_unset(why, errors);
        }
        _ => {}
    }
}

/// Checks that the cluster IPs and the IP families go together. Follows `ValidateServiceClusterIPsRelatedFields`.
pub(super) fn addresses(spec: &Field<'_, '_>, was: &Field<'_, '_>, errors: &mut Errors) {
    let (own, ips) = (spec.at("clusterIP"), spec.at("clusterIPs"));
    let first = ips.items("").next().map(|first| first.text());
    if !own.is_empty() {
        match first {
            None => errors.push(ips.required("")),
            Some(first) if first != own.text() => {
                errors.push(ips.invalid("first value must match `clusterIP`"));
            }
            Some(_) => {}
        }
    } else if first.is_some() {
        errors.push(ips.invalid("must be empty when `clusterIP` is not specified"));
    }
    let mut seen = BTreeSet::new();
    for family in spec.items("ipFamilies") {
        family.may_be_one_of(FAMILIES, errors);
        if !seen.insert(family.text()) {
            errors.push(family.duplicate());
        }
    }
    spec.at("ipFamilyPolicy")
        .may_be_one_of(FAMILY_POLICIES, errors);
    let before = errors.len();
    let known = was.items("clusterIPs");
    let known: HashSet<&str> = known.map(|one| one.text()).collect();
    for (index, one) in spec.items("clusterIPs").enumerate() {
        if index == 0 && one.text() == "None" {
            if ips.len() > 1 {
                errors.push(ips.invalid("'None' must be the first and only value"));
            }
        } else {
            one.must_conform_unless_known(ip, &known, errors);
        }
    }
    let is_wrong = errors.len() > before;
    if ips.len() > 2 {
        errors.push(ips.invalid("may only hold up to 2 values"));
    }
    if !is_wrong {
        families(spec, &ips, errors);
    }
}

/// Checks that cluster IPs are of different families, and of those that the service has.
fn families(spec: &Field<'_, '_>, ips: &Field<'_, '_>, errors: &mut Errors) {
    if ips.len() > 1 {
        let all: Vec<_> = ips.items("").map(|one| one.text()).collect();
        let both = has_both_families(&all);
        if let Err(why) = &both {
            let why = format!("failed to check for dual stack with error:{why}");
            let kind = FieldErrorKind::Internal;
            errors.push(FieldError::new(kind, ips.field(), why));
        }
        if both != Ok(true) {
            errors.push(ips.invalid("may specify no more than one IP for each IP family"));
        }
    }
    if is_headless(spec) {
        return;
    }
    let pairs = spec.items("clusterIPs").zip(spec.items("ipFamilies"));
    for (index, (one, family)) in pairs.enumerate() {
        let is_ipv6 = address(one.text()).is_some_and(|ip| ip.is_ipv6());
        if matches!((family.text(), is_ipv6), ("IPv4", true) | ("IPv6", false)) {
            let family = family.text();
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.push(one.invalid(why));
        }
    }
}

/// Checks that no two ports have the same number and protocol, neither at the service nor at the nodes.
fn port_numbers(spec: &Field<'_, '_>, errors: &mut Errors) {
    let (mut seen, mut on_nodes) = (BTreeSet::new(), BTreeSet::new());
    if spec.at("type").text() == "ClusterIP" {
        for port in spec.items("ports") {
            let on_node = port.at("nodePort");
            if on_node.number().unwrap_or(0) != 0 {
                errors.push(on_node.forbidden("may not be used when `type` is 'ClusterIP'"));
            }
        }
    }
    for port in spec.items("ports") {
        let on_node = port.at("nodePort");
        let number = on_node.number().unwrap_or(0);
        if number != 0 && !on_nodes.insert((port.at("protocol").text(), number)) {
            errors.push(on_node.duplicate());
        }
    }
    for port in spec.items("ports") {
        let protocol = port.at("protocol").text();
        let number = port.at("port").number().unwrap_or(0);
        if !seen.insert((protocol, number)) {
            let mut error = port.duplicate();
            // As Kubernetes shows its own type.
            error.detail = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json!(protocol)
            );
            errors.push(error);
        }
    }
}

/// Checks the class of a load balancer, which nothing else has. Follows `validateLoadBalancerClassField`.
fn class(spec: &Field<'_, '_>, errors: &mut Errors) {
    let class = spec.at("loadBalancerClass");
    if spec.at("type").text() != "LoadBalancer" {
        class.must_be_unset(LOAD_BALANCERS_ALONE, errors);
    } else if class.is_set() {
        class.must_conform(formats::label_key, errors);
    }
}

/// Checks that both annotations about the topology of a cluster say the same.
fn topology(object: &Field<'_, '_>, errors: &mut Errors) {
    let annotations = object.at("metadata.annotations");
    let both = [TOPOLOGY_MODE, OLD_TOPOLOGY].map(|it| annotations.value().get(it));
    if let [Some(mode), Some(old)] = both
        && mode != old
    {
        let field = format!("{}[{TOPOLOGY_MODE}]", annotations.field());
        let why = format!("must match annotations[{OLD_TOPOLOGY}] when both are specified");
        errors.push(FieldError::invalid(field, mode, why));
    }
}

fn traffic(spec: &Field<'_, '_>, errors: &mut Errors) {
    let kind = spec.at("type").text();
    let policy = spec.at("externalTrafficPolicy");
    let outside = matches!(kind, "LoadBalancer" | "NodePort")
        || (kind == "ClusterIP" && !spec.at("externalIPs").is_empty());
    if outside {
        policy.must_be_one_of(TRAFFIC, errors);
    } else if !policy.is_empty() {
        errors.push(policy.invalid("may only be set for externally-accessible services"));
    }
    let checked = kind == "LoadBalancer" && policy.text() == "Local";
    let port = spec.at("healthCheckNodePort");
    if checked {
        if port.number().unwrap_or(0) == 0 {
            errors.push(port.required(""));
        } else {
            port.must_be_a_port(errors);
        }
    } else if port.number().unwrap_or(0) != 0 {
        let why =
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(port.invalid(why));
    }
    spec.at("internalTrafficPolicy")
        .may_be_one_of(TRAFFIC, errors);
    spec.at("trafficDistribution")
        .may_be_one_of(DISTRIBUTIONS, errors);
}

/// Checks an update of a Service: cluster IPs are immutable as long as its type has any. Follows
/// `ValidateServiceUpdate`.
pub(crate) fn service_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    changes(object, old, errors);
    service(object, old, errors);
}

fn changes(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let (spec, was) = (object.at("spec"), old.at("spec"));
    let external = |spec: &Field<'_, '_>| spec.at("type").text() == "ExternalName";
    let headless = (is_headless(&spec), is_headless(&was));
    if !external(&spec) && !external(&was) {
        if headless != (true, true) {
            addresses_update(&spec, &was, errors);
        }
        if headless == (false, false) {
            families_update(&spec, &was, errors);
        }
    }
    let balanced = |spec: &Field<'_, '_>| spec.at("type").text() == "LoadBalancer";
    let class = spec.at("loadBalancerClass");
    if balanced(&spec) && balanced(&was) && class.value() != was.at("loadBalancerClass").value() {
        errors.push(class.invalid_value(class.value().clone(), "may not change once set"));
    }
    self::class(&spec, errors);
    let port = spec.at("healthCheckNodePort");
    let before = was.at("healthCheckNodePort");
    let local = |spec: &Field<'_, '_>| spec.at("externalTrafficPolicy").text() == "Local";
    let both = [&spec, &was].iter().all(|it| balanced(it) && local(it));
    if both && port.value() != before.value() {
        errors.push(port.forbidden("field is immutable"));
    }
}

/// Checks that an update keeps cluster IPs, but that it may add or release the second. Follows
/// `validateUpgradeDowngradeClusterIPs`.
fn addresses_update(spec: &Field<'_, '_>, was: &Field<'_, '_>, errors: &mut Errors) {
    let (now, before) = (spec.at("clusterIPs"), was.at("clusterIPs"));
    let blame = |index: usize, why: &str| {
        let mut error = now.invalid_value(now.value().clone(), why);
        error.field = format!("{}[{index}]", now.field());
        error
    };
    if !before.is_empty() && now.is_empty() {
        errors.push(blame(0, "primary clusterIP can not be unset"));
    }
    let is_same_size = now.len() == before.len();
    let pairs = now.items("").zip(before.items("")).enumerate();
    let compared = if is_same_size { before.len() } else { 1 };
    let pairs = pairs.take(compared);
    let changed = pairs.filter(|(_, (now, before))| now.text() != before.text());
    errors.extend(changed.map(|(index, _)| blame(index, "may not change once set")));
    if before.len() > now.len() {
        must_be_single(
            spec,
            now.len(),
            "must be set to 'SingleStack' when releasing the secondary clusterIP",
            errors,
        );
    }
}

/// Checks that an update keeps IP families, but that it may add or release the second. Follows
/// `validateUpgradeDowngradeIPFamilies`.
fn families_update(spec: &Field<'_, '_>, was: &Field<'_, '_>, errors: &mut Errors) {
    let (now, before) = (spec.at("ipFamilies"), was.at("ipFamilies"));
    let blame = |value: &Field<'_, '_>, why: &str| {
        let mut error = now.invalid_value(value.value().clone(), why);
        error.field = format!("{}[0]", now.field());
        error
    };
    let pairs = now.items("").zip(before.items(""));
    let mut changed = pairs.map(|(now, before)| now.text() != before.text());
    let why = "may not change once set";
    if now.len() == before.len() {
        errors.extend(changed.filter(|it| *it).map(|_| blame(&now, why)));
        return;
    }
    let ips = spec.at("clusterIPs");
    if before.len() > now.len() && ips.is_empty() {
        errors.push(blame(&now, "primary ipFamily can not be unset"));
    }
    if changed.next() == Some(true) {
        // Kubernetes shows the addresses here.
        errors.push(blame(&ips, why));
    }
    if before.len() > now.len() {
        must_be_single(
            spec,
            now.len(),
            "must be set to 'SingleStack' when releasing the secondary ipFamily",
            errors,
        );
    }
}

/// Checks that a service that keeps one of two says that it is for one family.
fn must_be_single(spec: &Field<'_, '_>, kept: usize, why: &str, errors: &mut Errors) {
    let policy = spec.at("ipFamilyPolicy");
    if kept == 1 && policy.text() != "SingleStack" {
        errors.push(policy.invalid(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(spec: Value) -> Vec<String> {
        let object = json!({"spec": spec});
        crate::validation::messages(&crate::validation::found(new_service, &object))
    }

    fn good() -> Value {
        json!({"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
            "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]})
    }

    fn with(members: Value) -> Value {
        let mut spec = good();
        for (name, value) in members.as_object().expect("members") {
            spec[name] = value.clone();
        }
        spec
    }

    #[test]
    fn annotations_about_the_topology_agree() {
        let of = |mode: &str| {
            let annotations = json!({TOPOLOGY_MODE: mode, OLD_TOPOLOGY: "Auto"});
            let object = json!({"metadata": {"annotations": annotations}, "spec": good()});
            crate::validation::messages(&crate::validation::found(new_service, &object))
        };
        assert_eq!(of("Auto"), [""; 0]);
        let why = "metadata.annotations[service.kubernetes.io/topology-mode]: Invalid value: \"Other\": must match annotations[service.kubernetes.io/topology-aware-hints] when both are specified";
        assert_eq!(of("Other"), [why]);
    }

    #[test]
    fn changes_are_judged_before_the_service() {
        let balanced = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Cluster",
            "loadBalancerClass": "a"});
        let old = json!({"spec": with(balanced)});
        let mut new = old.clone();
        new["spec"]["clusterIP"] = json!("10.0.0.2");
        new["spec"]["clusterIPs"] = json!(["10.0.0.2"]);
        new["spec"]["loadBalancerClass"] = json!("-");
        new["spec"]["ports"] = json!([]);
        let errors = crate::validation::found_in_change(service_update, &new, &old);
        let fields: Vec<_> = errors.iter().map(|it| it.field.as_str()).collect();
        let class = "spec.loadBalancerClass";
        assert_eq!(
            fields,
            ["spec.clusterIPs[0]", class, class, "spec.ports", class]
        );
    }

    #[test]
    fn what_is_wrong_with_services_is_told() {
        let port = |number: i64, name: &str| json!({"port": number, "name": name, "targetPort": "web", "protocol": "TCP"});
        let cases: &[(Value, &[&str])] = &[
            (json!({}), &[]),
            (json!({"ports": []}), &["spec.ports: Required value"]),
            (
                json!({"ports": [port(80, ""), port(0, "a")]}),
                &[
                    "spec.ports[0].name: Required value",
                    "spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive",
                ],
            ),
            (
                json!({"type": "Odd", "sessionAffinity": "Odd"}),
                &[
                    "spec.sessionAffinity: Unsupported value: \"Odd\": supported values: \"ClientIP\", \"None\"",
                    "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
                ],
            ),
            (
                json!({"clusterIP": "10.0.0.2"}),
                &[
                    "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: first value must match `clusterIP`",
                ],
            ),
            (
                json!({"externalIPs": ["127.0.0.1", "x"]}),
                &[
                    "spec.externalIPs[0]: Invalid value: \"127.0.0.1\": may not be in the loopback range (127.0.0.0/8, ::1/128)",
                    "spec.externalIPs[1]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                    "spec.externalTrafficPolicy: Required value",
                ],
            ),
            (
                json!({"clusterIPs": ["10.0.0.1", "10.0.0.2", "::1"], "ipFamilies": ["IPv6", "Odd"],
                    "ipFamilyPolicy": "RequireDualStack"}),
                &[
                    "spec.ipFamilies[1]: Unsupported value: \"Odd\": supported values: \"IPv4\", \"IPv6\"",
                    "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\",\"::1\"]: may only hold up to 2 values",
                    "spec.clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by `ipFamilies[0]`",
                ],
            ),
            (
                json!({"trafficDistribution": "Odd"}),
                &[
                    "spec.trafficDistribution: Unsupported value: \"Odd\": supported values: \"PreferClose\", \"PreferSameZone\", \"PreferSameNode\"",
                ],
            ),
            (
                json!({"externalTrafficPolicy": "Local", "loadBalancerClass": "a.b/c"}),
                &[
                    "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
                    "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for externally-accessible services",
                ],
            ),
            (
                json!({"ports": [port(80, "a"), port(80, "b")]}),
                &[
                    "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
                ],
            ),
        ];
        for (members, wrong) in cases {
            assert_eq!(messages(with(members.clone())), *wrong, "{members}");
        }
        let external = json!({"type": "ExternalName", "sessionAffinity": "None"});
        assert_eq!(messages(external), ["spec.externalName: Required value"]);
    }
}
