//! Checks of Ingresses, IngressClasses and NetworkPolicies.
//!
//! Follows pkg/apis/networking/validation/validation.go of Kubernetes 1.36.

use std::collections::HashSet;

use ringwatch_apimachinery::NameRule;
use ringwatch_apimachinery::validation::formats;

use crate::validation::field::{Errors, Field};
use crate::validation::labels::selector;
use crate::validation::values::{PROTOCOLS, address, cidr, network, port_name};

/// Parts that paths may not contain, and ends that they may not have.
const PATH_PARTS: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const PATH_ENDS: &[&str] = &["/..", "/."];
/// The lists of a policy's rules, and in each rule that of peers.
const PEERS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];
const CONTROLLER_BYTES_MAX: usize = 250;
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Checks an Ingress. Follows `ValidateIngressSpec`.
pub(crate) fn ingress(object: &Field<'_, '_>, errors: &mut Errors) {
    let spec = object.at("spec");
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
        let http = rule.at("http");
        if http.is_set() {
            http.at("paths").must_be_set(errors);
        }
        for path in http.items("paths") {
            http_path(&path, errors);
        }
    }
    for tls in spec.items("tls") {
        for host in tls.items("hosts") {
            host.must_conform(host_name, errors);
        }
        tls.at("secretName")
            .may_conform(formats::dns_subdomain, errors);
    }
    if spec.at("ingressClassName").is_set() {
        spec.at("ingressClassName")
            .must_conform(formats::dns_subdomain, errors);
    }
}

/// Checks a new Ingress: it does not name two classes. Follows `ValidateIngressCreate`.
pub(crate) fn new_ingress(object: &Field<'_, '_>, errors: &mut Errors) {
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
        if it.is_empty() {
            errors.push(it.required(&format!("{member} is required")));
        } else {
            it.must_conform(path_segment, errors);
        }
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

/// Checks a name of the form domain/path.
fn domain_prefixed_path(at: &Field<'_, '_>, errors: &mut Errors) {
    if at.is_empty() {
        errors.push(at.required(""));
        return;
    }
    match at.text().split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let wrong = formats::dns_subdomain(domain).into_iter();
            errors.extend(wrong.map(|why| at.invalid_value(domain, why)));
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(at.invalid(why));
        }
    }
}

/// Checks a new NetworkPolicy. Follows `ValidateNetworkPolicy`.
pub(crate) fn new_network_policy(object: &Field<'_, '_>, errors: &mut Errors) {
    network_policy(object, &HashSet::new(), errors);
}

/// Checks an update of a NetworkPolicy: networks that the old one has, in whatever rule, stay as they are. Follows
/// `ValidateNetworkPolicyUpdate`.
pub(crate) fn network_policy_update(
    object: &Field<'_, '_>,
    old: &Field<'_, '_>,
    errors: &mut Errors,
) {
    let mut known = HashSet::new();
    for (rules, peers) in PEERS {
        for rule in old.at("spec").items(rules) {
            for peer in rule.items(peers) {
                let block = peer.at("ipBlock");
                if block.is_set() {
                    known.insert(block.at("cidr").text());
                    known.extend(block.items("except").map(|it| it.text()));
                }
            }
        }
    }
    network_policy(object, &known, errors);
}

/// Checks a NetworkPolicy, but not its known networks.
fn network_policy(object: &Field<'_, '_>, known: &HashSet<&str>, errors: &mut Errors) {
    const DIRECTIONS: &[&str] = &["Ingress", "Egress"];
    let spec = object.at("spec");
    selector(&spec.at("podSelector"), errors);
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
    if port.is_set() {
        port.must_be_a_port_or_its_name(errors);
    }
    if !end.is_set() {
        return;
    }
    match port.number() {
        Some(first) => {
            if end.number() < Some(first) {
                errors.push(end.invalid_value(first, "must be greater than or equal to `port`"));
            }
            end.must_be_a_port(errors);
        }
        None if port.is_set() => {
            errors.push(end.invalid("may not be specified when `port` is non-numeric"));
        }
        None => errors.push(end.invalid("may not be specified when `port` is not specified")),
    }
}

fn policy_peer(at: &Field<'_, '_>, known: &HashSet<&str>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"];
    for one in selectors {
        selector(&at.at(one), errors);
    }
    let block = at.at("ipBlock");
    let selects = selectors.iter().any(|one| at.at(one).is_set());
    if block.is_set() {
        ip_block(&block, known, errors);
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

fn is_strictly_within(inner: (std::net::IpAddr, u8), outer: (std::net::IpAddr, u8)) -> bool {
    use std::net::IpAddr::{V4, V6};
    let same_bits = match (inner.0, outer.0) {
        (V4(inner), V4(outer)) => (u32::from(inner) ^ u32::from(outer)).leading_zeros(),
        (V6(inner), V6(outer)) => (u128::from(inner) ^ u128::from(outer)).leading_zeros(),
        _ => return false,
    };
    same_bits >= u32::from(outer.1) && inner.1 > outer.1
}
