//! Checks of Ingresses, IngressClasses and NetworkPolicies.
//!
//! Follows pkg/apis/networking/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;
use std::net::IpAddr;

use ringwatch_apimachinery::NameRule;
use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};
use crate::validation::labels::{is_unreadable, selector_with};
use crate::validation::values::{
    PROTOCOLS, address, cidr, domain_prefixed_path, network, port_name,
};

/// Parts that paths may not contain, and ends that they may not have.
const PATH_PARTS: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS: &[&str] = &["/..", "/."];
/// The lists of a policy's rules, and in each rule that of peers.
const PEERS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];
const CONTROLLER_BYTES_MAX: usize = 250;
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The rules that an older Ingress may break, from before it was checked.
#[derive(Clone, Copy, Debug, Default)]
struct Leniency {
    /// True if the names of secrets are not checked.
    any_secrets: bool,
    /// True if rules for hosts with wildcards are not checked.
    any_wildcard_rules: bool,
}

/// Checks a new Ingress, which does not name two classes. Follows `ValidateIngressCreate`.
pub(crate) fn ingress(object: &Field<'_, '_>, errors: &mut Errors) {
    ingress_spec(&object.at("spec"), Leniency::default(), errors);
    let class = object.at("spec.ingressClassName");
    let annotations = object.at("metadata.annotations");
    let annotated = annotations.value().get(CLASS_ANNOTATION);
    if let Some(annotated) = annotated.filter(|it| class.is_set() && *it != class.value()) {
        let mut error = class.invalid_value(
            annotated.clone(),
            "must match `ingressClassName` when both are specified",
        );
        error.field = format!("annotations.{CLASS_ANNOTATION}");
        errors.push(error);
    }
}

/// Checks an update of an Ingress, which may have such secrets and rules as the old one. Follows
/// `ValidateIngressUpdate`.
pub(crate) fn ingress_update(object: &Field<'_, '_>, old: &Field<'_, '_>, errors: &mut Errors) {
    let is_wrong_secret = |tls: Field<'_, '_>| {
        let name = tls.at("secretName").text();
        !name.is_empty() && !formats::dns_subdomain(name).is_empty()
    };
    let is_wrong_wildcard = |rule: Field<'_, '_>| {
        let mut wrong = Errors::new();
        if rule.at("host").text().contains('*') {
            rule_value(&rule, &mut wrong);
        }
        !wrong.is_empty()
    };
    let was = old.at("spec");
    let leniency = Leniency {
        any_secrets: was.items("tls").any(is_wrong_secret),
        any_wildcard_rules: was.items("rules").any(is_wrong_wildcard),
    };
    ingress_spec(&object.at("spec"), leniency, errors);
}

/// Checks the spec of an Ingress. Follows `ValidateIngressSpec`.
fn ingress_spec(spec: &Field<'_, '_>, leniency: Leniency, errors: &mut Errors) {
    let rules = spec.at("rules");
    let default = spec.at("defaultBackend");
    if rules.is_empty() && !default.is_set() {
        let why = "either `defaultBackend` or `rules` must be specified";
        errors.push(spec.invalid_value(rules.value().clone(), why));
    }
    if default.is_set() {
        backend(&default, errors);
    }
    for rule in spec.items("rules") {
        let host = rule.at("host");
        if !host.is_empty() {
            if address(host.text()).is_some() {
                errors.push(host.invalid("must be a DNS name, not an IP address"));
            }
            host.must_conform(host_name, errors);
        }
        if !(leniency.any_wildcard_rules && host.text().contains('*')) {
            rule_value(&rule, errors);
        }
    }
    for tls in spec.items("tls") {
        for host in tls.items("hosts") {
            host.must_conform(host_name, errors);
        }
        if !leniency.any_secrets {
            tls.at("secretName")
                .may_conform(formats::dns_subdomain, errors);
        }
    }
    if spec.at("ingressClassName").is_set() {
        spec.at("ingressClassName")
            .must_conform(formats::dns_subdomain, errors);
    }
}

/// Checks what a rule does with requests. Follows `validateIngressRuleValue`.
fn rule_value(rule: &Field<'_, '_>, errors: &mut Errors) {
    let http = rule.at("http");
    if http.is_set() {
        http.at("paths").must_be_set(errors);
    }
    for path in http.items("paths") {
        http_path(&path, errors);
    }
}

fn host_name(name: &str) -> Vec<String> {
    if !name.contains('*') {
        return formats::dns_subdomain(name);
    }
    let rest = name.strip_prefix("*.").unwrap_or_default();
    if formats::dns_subdomain(rest).is_empty() {
        return Vec::new();
    }
    vec![formats::mismatch(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
        r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        &["*.example.com"],
    )]
}

fn http_path(at: &Field<'_, '_>, errors: &mut Errors) {
    let (path, kind) = (at.at("path"), at.at("pathType"));
    if !kind.is_set() {
        errors.push(kind.required("pathType must be specified"));
        return;
    }
    let text = path.text();
    let blame = |why: String| path.invalid_value(text, why);
    let absolute = text.starts_with('/');
    match kind.text() {
        "Exact" | "Prefix" => {
            if !absolute {
                errors.push(blame("must be an absolute path".into()));
            }
            let parts = PATH_PARTS.iter().filter(|part| text.contains(**part));
            errors.extend(parts.map(|part| blame(format!("must not contain '{part}'"))));
            let ends = PATH_ENDS.iter().filter(|end| text.ends_with(**end));
            errors.extend(ends.map(|end| blame(format!("cannot end with '{end}'"))));
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !absolute {
                errors.push(blame("must be an absolute path".into()));
            }
        }
        _ => errors.push(kind.unsupported(&["Exact", "ImplementationSpecific", "Prefix"])),
    }
    backend(&at.at("backend"), errors);
}

fn backend(at: &Field<'_, '_>, errors: &mut Errors) {
    let (resource, service) = (at.at("resource"), at.at("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => {
            let why = "cannot set both resource and service backends";
            errors.push(at.invalid_value("", why));
        }
        (true, false) => reference(&resource, errors),
        (false, true) => {
            let name = service.at("name");
            name.must_be_set_and_conform(formats::dns_label, errors);
            let (name, number) = (service.at("port.name"), service.at("port.number"));
            match (!name.is_empty(), number.number().unwrap_or(0) != 0) {
                (true, true) => {
                    errors.push(at.invalid_value("", "cannot set both port name & port number"));
                }
                (true, false) => name.must_conform(port_name, errors),
                (false, true) => number.must_be_a_port(errors),
                (false, false) => errors.push(at.required("port name or number is required")),
            }
        }
        (false, false) => {
            errors.push(at.invalid_value("", "resource or service backend is required"));
        }
    }
}

/// Checks a reference to an object.
fn reference(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.at("apiGroup").is_set() {
        at.at("apiGroup")
            .must_conform(formats::dns_subdomain, errors);
    }
    for member in ["kind", "name"] {
        let it = at.at(member);
        it.must_be_set_and_conform(path_segment, errors);
    }
}

/// Returns a whole segment of a path.
pub(crate) fn path_segment(text: &str) -> Vec<String> {
    formats::name(text, NameRule::PathSegment, false)
}

/// Checks an IngressClass. Follows `ValidateIngressClass`.
pub(crate) fn ingress_class(object: &Field<'_, '_>, errors: &mut Errors) {
    let controller = object.at("spec.controller");
    controller.must_have_at_most(CONTROLLER_BYTES_MAX, errors);
    domain_prefixed_path(&controller, errors);
    let parameters = object.at("spec.parameters");
    if !parameters.is_set() {
        return;
    }
    reference(&parameters, errors);
    let (scope, namespace) = (parameters.at("scope"), parameters.at("namespace"));
    scope.must_point_to_one_of(&["Cluster", "Namespace"], errors);
    match scope.text() {
        "Namespace" if !namespace.is_set() => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => namespace.must_conform(formats::dns_label, errors),
        "Cluster" => {
            namespace.must_be_unset("`parameters.scope` is set to 'Cluster'", errors);
        }
        _ => {}
    }
}

/// Checks an update of an IngressClass: its controller is immutable. Follows `ValidateIngressClassUpdate`.
pub(crate) fn ingress_class_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let controller = object.at("spec.controller");
    controller.must_stay_text(&old.at("spec.controller"), errors);
}

/// Checks a new NetworkPolicy. Follows `ValidateNetworkPolicy`.
pub(crate) fn new_network_policy(object: &Field<'_, '_>, errors: &mut Errors) {
    let known = KeptParts {
        networks: HashSet::new(),
        any_values: false,
    };
    network_policy(object, &known, errors);
}

/// The parts of an old NetworkPolicy that an update may keep without a check.
struct KeptParts<'v> {
    networks: HashSet<&'v str>,
    /// True if selectors may have values that no label can have.
    any_values: bool,
}

/// Checks an update of a NetworkPolicy: networks that the old one has, in whatever rule, stay as they are. Follows
/// `ValidateNetworkPolicyUpdate`.
pub(crate) fn network_policy_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let mut networks = HashSet::new();
    for (rules, peers) in PEERS {
        for rule in old.at("spec").items(rules) {
            for peer in rule.items(peers) {
                let block = peer.at("ipBlock");
                if block.is_set() {
                    networks.insert(block.at("cidr").text());
                    networks.extend(block.items("except").map(|it| it.text()));
                }
            }
        }
    }
    let known = KeptParts {
        networks,
        any_values: is_unreadable(&old.at("spec.podSelector")),
    };
    network_policy(object, &known, errors);
}

/// Checks a NetworkPolicy, but not what it keeps. Follows `ValidateNetworkPolicySpec`.
fn network_policy(object: &Field<'_, '_>, known: &KeptParts<'_>, errors: &mut Errors) {
    const DIRECTIONS: &[&str] = &["Ingress", "Egress"];
    let spec = object.at("spec");
    selector_with(&spec.at("podSelector"), known.any_values, errors);
    for (rules, peers) in PEERS {
        for rule in spec.items(rules) {
            for port in rule.items("ports") {
                policy_port(&port, errors);
            }
            for peer in rule.items(peers) {
                policy_peer(&peer, known, errors);
            }
        }
    }
    let types = spec.at("policyTypes");
    if types.len() > DIRECTIONS.len() {
        errors.push(types.invalid("may not specify more than two policyTypes"));
        return;
    }
    for direction in types.items("") {
        direction.may_be_one_of(DIRECTIONS, errors);
    }
}

fn policy_port(at: &Field<'_, '_>, errors: &mut Errors) {
    let protocol = at.at("protocol");
    if protocol.is_set() && !PROTOCOLS.contains(&protocol.text()) {
        errors.push(protocol.unsupported(&["TCP", "UDP", "SCTP"]));
    }
    let (port, end) = (at.at("port"), at.at("endPort"));
    match port.number() {
        Some(first) => {
            port.must_be_a_port(errors);
            if end.is_set() && end.number() < Some(first) {
                errors.push(end.invalid_value(first, "must be greater than or equal to `port`"));
            }
            if end.is_set() {
                end.must_be_a_port(errors);
            }
        }
        None if port.is_set() => {
            let why = "may not be specified when `port` is non-numeric";
            errors.extend(end.is_set().then(|| end.invalid(why)));
            port.must_conform(port_name, errors);
        }
        None => {
            let why = "may not be specified when `port` is not specified";
            errors.extend(end.is_set().then(|| end.invalid(why)));
        }
    }
}

fn policy_peer(at: &Field<'_, '_>, known: &KeptParts<'_>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"];
    for one in selectors {
        selector_with(&at.at(one), known.any_values, errors);
    }
    let block = at.at("ipBlock");
    let selects = selectors.iter().any(|one| at.at(one).is_set());
    if block.is_set() {
        ip_block(&block, &known.networks, errors);
        if selects {
            errors.push(at.forbidden("may not specify both ipBlock and another peer"));
        }
    } else if !selects {
        errors.push(at.required("must specify a peer"));
    }
}

fn ip_block(at: &Field<'_, '_>, known: &HashSet<&str>, errors: &mut Errors) {
    let whole = at.at("cidr");
    if whole.is_empty() {
        errors.push(whole.required(""));
        return;
    }
    whole.must_conform_unless_known(cidr, known, errors);
    let Some(outer) = network(whole.text()) else {
        return;
    };
    for except in at.items("except") {
        except.must_conform_unless_known(cidr, known, errors);
        if network(except.text()).is_some_and(|inner| !is_strictly_within(inner, outer)) {
            errors.push(except.invalid("must be a strict subset of `cidr`"));
        }
    }
}

/// Returns true if a network is a part of another one. A mapped address of IPv4 is one, whose network keeps the bits
/// that are written. Follows Go's `IPNet.Contains`.
fn is_strictly_within(inner: (IpAddr, u8), outer: (IpAddr, u8)) -> bool {
    let (first, whole) = (inner.0.to_canonical(), outer.0.to_canonical());
    let mapped_bits = if whole == outer.0 { 0 } else { 96 };
    let bits = outer.1.saturating_sub(mapped_bits);
    let same_bits = match (first, whole) {
        (IpAddr::V4(first), IpAddr::V4(whole)) => {
            (u32::from(first) ^ u32::from(whole)).leading_zeros()
        }
        (IpAddr::V6(first), IpAddr::V6(whole)) => {
            (u128::from(first) ^ u128::from(whole)).leading_zeros()
        }
        _ => return false,
    };
    same_bits >= u32::from(bits) && inner.1 > outer.1
}
