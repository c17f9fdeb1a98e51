//! Services: each gets an address of the cluster, and ports on the nodes if it asks for them.

mod changes;
mod pool;

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use self::pool::Pool;
use super::path::{get, list, set, text};
use super::peculiar::Peculiar;
use crate::registry::{FieldError, RequestContext};

/// The first address of the services' range, 10.0.0.0/24, which nobody gets.
const NETWORK: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
/// How many addresses the range has for services; the last is for broadcasts.
const ADDRESSES: u32 = 254;
/// The first ports and addresses are given away only when the others are: people ask for them.
const ASKED_FOR: u32 = 16;
/// The first port of the nodes that services may have.
const NODE_PORT_MIN: u32 = 30_000;
/// How many ports of the nodes services may have.
const NODE_PORTS: u32 = 2768;

/// Services without an address of their own.
const HEADLESS: &str = "None";

/// What is peculiar about services. It remembers who has which address; at start the server shows
/// it the services that are stored.
#[derive(Debug)]
pub(super) struct Services {
    addresses: Pool,
    node_ports: Pool,
}

impl Services {
    pub(super) fn new() -> Self {
        Self {
            addresses: Pool::new(1, ADDRESSES, ASKED_FOR),
            node_ports: Pool::new(NODE_PORT_MIN, NODE_PORTS, 0),
        }
    }

    /// Gives a service its addresses, or notes those that it brings.
    fn allocate_address(&self, service: &mut Value) {
        if text(service, "spec.type") == "ExternalName" {
            return;
        }
        let owner = owner(service);
        let asked = match text(service, "spec.clusterIP") {
            "" => list(service, "spec.clusterIPs")
                .first()
                .and_then(Value::as_str),
            asked => Some(asked),
        };
        let address = match asked.map(str::to_owned) {
            Some(asked) => {
                if let Some(number) = number_of(&asked) {
                    // Whether it is free is told when the service is validated.
                    self.addresses.claim(number, &owner);
                }
                Some(asked)
            }
            None => self
                .addresses
                .allocate(&owner)
                .map(|number| Ipv4Addr::from(u32::from(NETWORK) + number).to_string()),
        };
        if let Some(address) = address {
            set(service, "spec.clusterIP", json!(address));
            if list(service, "spec.clusterIPs").is_empty() {
                set(service, "spec.clusterIPs", json!([address]));
            }
        }
        choose_families(service);
    }

    /// Gives the ports of a service ports on the nodes if its type has them.
    fn allocate_node_ports(&self, service: &mut Value) {
        let wanted = match text(service, "spec.type") {
            "NodePort" => true,
            "LoadBalancer" => {
                get(service, "spec.allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
            }
            _ => return,
        };
        let owner = owner(service);
        let mut ports = list(service, "spec.ports").to_vec();
        for port in &mut ports {
            let asked = get(port, "nodePort").and_then(Value::as_u64).unwrap_or(0);
            if let Some(asked) = u32::try_from(asked).ok().filter(|asked| *asked > 0) {
                self.node_ports.claim(asked, &owner);
            } else if wanted && let Some(number) = self.node_ports.allocate(&owner) {
                set(port, "nodePort", json!(number));
            }
        }
        if !ports.is_empty() {
            set(service, "spec.ports", Value::Array(ports));
        }
        self.allocate_health_check(service, &owner);
    }
}

impl Services {
    /// Gives a service a port at which nodes answer for its pods' health, if it has need of one.
    fn allocate_health_check(&self, service: &mut Value, owner: &str) {
        const PATH: &str = "spec.healthCheckNodePort";
        if !changes::is_health_checked(service) {
            return;
        }
        let asked = get(service, PATH).and_then(Value::as_u64).unwrap_or(0);
        if let Some(asked) = u32::try_from(asked).ok().filter(|asked| *asked > 0) {
            self.node_ports.claim(asked, owner);
        } else if let Some(number) = self.node_ports.allocate(owner) {
            set(service, PATH, json!(number));
        }
    }
}

impl Peculiar for Services {
    fn prepare_for_create(&self, _context: &RequestContext, object: &mut Value) {
        self.allocate_address(object);
        self.allocate_node_ports(object);
    }

    /// What was given stays, though a client that never read it leaves it out.
    fn prepare_for_update(&self, _context: &RequestContext, object: &mut Value, old: &Value) {
        changes::carry_over(object, old);
        self.allocate_address(object);
        self.allocate_node_ports(object);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        self.taken(object, &Value::Null)
    }

    fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.taken(object, old)
    }

    fn hold(&self, object: &Value) {
        let owner = owner(object);
        for number in address_of(object) {
            self.addresses.claim(number, &owner);
        }
        for number in node_ports_of(object) {
            self.node_ports.claim(number, &owner);
        }
    }

    fn hands_out(&self) -> bool {
        true
    }

    fn begin_change(&self, object: &Value) {
        let owner = owner(object);
        self.addresses.begin_change(&owner);
        self.node_ports.begin_change(&owner);
    }

    fn end_change(&self, object: &Value, revision: Option<u64>) {
        let owner = owner(object);
        let stored = |numbers: Vec<u32>| revision.map(|revision| (revision, numbers));
        self.addresses
            .end_change(&owner, stored(address_of(object)));
        self.node_ports
            .end_change(&owner, stored(node_ports_of(object)));
    }

    fn release(&self, object: &Value) {
        let owner = owner(object);
        self.addresses.release(&owner);
        self.node_ports.release(&owner);
    }
}

impl Services {
    /// What the service wants and somebody else has, or nobody can have. What it had before stays its own,
    /// be it of a range that another server gave it from.
    fn taken(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        if text(service, "spec.type") == "ExternalName" {
            return Vec::new();
        }
        let mut errors = self.taken_address(service, old);
        // A service without node ports is told so, and not that they are taken.
        if text(service, "spec.type") != "ClusterIP" {
            errors.extend(self.taken_node_ports(service, old));
        }
        errors
    }

    fn taken_address(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        let owner = owner(service);
        let mut errors = Vec::new();
        let address = text(service, "spec.clusterIP");
        if address.is_empty() {
            let why = "failed to allocate a serviceIP: range is full";
            let kind = crate::registry::FieldErrorKind::Internal;
            errors.push(FieldError::new(kind, "spec.clusterIPs", why));
        } else if address != HEADLESS && address != text(old, "spec.clusterIP") {
            let free = number_of(address).map(|number| self.addresses.belongs_to(number, &owner));
            let why = match free {
                Some(true) => None,
                Some(false) => Some("provided IP is already allocated".to_owned()),
                None => Some(format!(
                    "the provided IP ({address}) is not in the valid range. The range of valid IPs is {NETWORK}/24"
                )),
            };
            errors.extend(why.map(|why| {
                let addresses = json!([address]);
                let why = format!("failed to allocate IP {address}: {why}");
                FieldError::invalid("spec.clusterIPs", &addresses, why)
            }));
        }
        errors
    }

    fn taken_node_ports(&self, service: &Value, old: &Value) -> Vec<FieldError> {
        let owner = owner(service);
        let mut errors = Vec::new();
        for (index, port) in list(service, "spec.ports").iter().enumerate() {
            let had = |number| {
                let mut before = list(old, "spec.ports").iter();
                before.any(|port| get(port, "nodePort") == Some(number))
            };
            let Some(value) = get(port, "nodePort").filter(|number| !had(number)) else {
                continue;
            };
            let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
            if !number.is_some_and(|number| self.node_ports.belongs_to(number, &owner)) {
                let why = if number.is_some_and(|number| self.node_ports.contains(number)) {
                    "provided port is already allocated"
                } else {
                    "provided port is not in the valid range. The range of valid ports is 30000-32767"
                };
                let field = format!("spec.ports[{index}].nodePort");
                errors.push(FieldError::invalid(field, value, why));
            }
        }
        errors
    }
}

/// Who has what: the object's uid.
fn owner(service: &Value) -> String {
    text(service, "metadata.uid").to_owned()
}

/// What a service has of the range of addresses.
fn address_of(service: &Value) -> Vec<u32> {
    let address = number_of(text(service, "spec.clusterIP"));
    address.into_iter().collect()
}

/// The ports that a service has on the nodes.
fn node_ports_of(service: &Value) -> Vec<u32> {
    let ports = list(service, "spec.ports").iter();
    let ports = ports.filter_map(|port| get(port, "nodePort"));
    let all = ports.chain(get(service, "spec.healthCheckNodePort"));
    all.filter_map(|port| u32::try_from(port.as_u64()?).ok())
        .collect()
}

/// The number of an address in the range.
fn number_of(address: &str) -> Option<u32> {
    let address: Ipv4Addr = address.parse().ok()?;
    let number = u32::from(address).checked_sub(u32::from(NETWORK))?;
    (1..=ADDRESSES).contains(&number).then_some(number)
}

/// The cluster has addresses of version 4 alone; a headless service that selects nothing may be
/// told of both.
fn choose_families(service: &mut Value) {
    let headless = text(service, "spec.clusterIP") == HEADLESS;
    let both = headless && get(service, "spec.selector").is_none();
    let (policy, families) = if both {
        ("RequireDualStack", json!(["IPv4", "IPv6"]))
    } else {
        ("SingleStack", json!(["IPv4"]))
    };
    if get(service, "spec.ipFamilyPolicy").is_none() {
        set(service, "spec.ipFamilyPolicy", policy.into());
    }
    if list(service, "spec.ipFamilies").is_empty() {
        set(service, "spec.ipFamilies", families);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::registry::User;
    use crate::registry::resources::checks::{found, found_in_change, services as checks};
    use crate::registry::resources::defaults;

    fn context() -> RequestContext {
        RequestContext::new(User::default(), String::new(), Clock::real())
    }

    /// A service with its defaults.
    fn service(uid: &str, spec: Value) -> Value {
        let mut service = json!({"metadata": {"uid": uid}, "spec": {"type": "ClusterIP",
            "selector": {"app": "d"}, "ports": [{"port": 80}]}});
        for (name, value) in spec.as_object().expect("members") {
            set(&mut service, &format!("spec.{name}"), value.clone());
        }
        defaults::apply(defaults::core::SERVICE, &mut service);
        service
    }

    fn create(services: &Services, uid: &str, spec: Value) -> (Value, Vec<FieldError>) {
        let mut service = service(uid, spec);
        services.prepare_for_create(&context(), &mut service);
        let mut errors = found(checks::service, &service);
        errors.extend(services.validate_create(&service));
        (service, errors)
    }

    #[test]
    fn every_service_gets_its_own_address() {
        let services = Services::new();
        let (one, errors) = create(&services, "1", json!({}));
        assert_eq!(errors, []);
        let address = text(&one, "spec.clusterIP");
        assert!(address.starts_with("10.0.0."), "{address}");
        assert_eq!(one["spec"]["clusterIPs"], json!([address]));
        assert_eq!(one["spec"]["ipFamilies"], json!(["IPv4"]));
        assert_eq!(one["spec"]["ipFamilyPolicy"], "SingleStack");

        let (_, errors) = create(&services, "2", json!({"clusterIP": address}));
        assert_eq!(errors.len(), 1);
        let words = errors[0].message();
        assert!(
            words.ends_with("provided IP is already allocated"),
            "{words}"
        );
        services.release(&one);
        let (_, errors) = create(&services, "2", json!({"clusterIP": address}));
        assert_eq!(errors, []);
        let (_, errors) = create(&services, "3", json!({"clusterIP": "10.1.0.1"}));
        assert!(errors[0].message().contains("not in the valid range"));
    }

    #[test]
    fn what_is_stored_is_held() {
        let services = Services::new();
        for number in 1..=ADDRESSES {
            let address = Ipv4Addr::from(u32::from(NETWORK) + number).to_string();
            services.hold(&service(&number.to_string(), json!({"clusterIP": address})));
        }
        let (_, errors) = create(&services, "more", json!({}));
        assert_eq!(
            errors[0].message(),
            "Internal error: failed to allocate a serviceIP: range is full"
        );
    }

    #[test]
    fn headless_and_external_services_have_none() {
        let services = Services::new();
        let (headless, errors) = create(&services, "1", json!({"clusterIP": "None"}));
        assert_eq!(errors, []);
        assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
        let external = json!({"type": "ExternalName", "externalName": "example.com"});
        let (external, errors) = create(&services, "2", external);
        assert_eq!(errors, []);
        assert_eq!(get(&external, "spec.clusterIP"), None);
    }

    #[test]
    fn updates_keep_what_was_given() {
        let services = Services::new();
        let (old, _) = create(&services, "1", json!({"type": "NodePort"}));
        let port = &old["spec"]["ports"][0]["nodePort"];
        assert!(
            port.as_u64()
                .is_some_and(|port| (30_000..32_768).contains(&port))
        );
        let mut new = service("1", json!({"type": "NodePort"}));
        services.prepare_for_update(&context(), &mut new, &old);
        assert_eq!(new["spec"], old["spec"]);
        assert_eq!(found(checks::service, &new), []);
        assert_eq!(services.validate_update(&new, &old), []);
        set(&mut new, "spec.clusterIP", json!("10.0.0.9"));
        set(&mut new, "spec.clusterIPs", json!(["10.0.0.9"]));
        let errors = found_in_change(checks::service_update, &new, &old);
        assert_eq!(errors[0].field, "spec.clusterIPs[0]");
    }

    #[test]
    fn what_a_change_did_not_keep_is_given_back() {
        let services = Services::new();
        let outside = |ports: Value| json!({"type": "NodePort", "ports": ports});
        let wanted = json!([{"port": 80, "protocol": "TCP", "nodePort": 31_000}]);
        let (old, _) = create(&services, "1", json!({}));
        let is_free = || {
            let (other, errors) = create(&services, "2", outside(wanted.clone()));
            services.release(&other);
            errors.is_empty()
        };
        let change = || {
            let mut new = service("1", outside(wanted.clone()));
            services.begin_change(&old);
            services.prepare_for_update(&context(), &mut new, &old);
            new
        };
        change();
        assert!(!is_free(), "as long as the change is under way");
        services.end_change(&old, Some(5));
        assert!(is_free(), "it was refused");
        change();
        services.end_change(&old, None);
        assert!(!is_free(), "nobody knows what became of it");
        // Of two changes at a time the later counts, in whichever order they end.
        let with = change();
        change();
        services.end_change(&with, Some(7));
        services.end_change(&old, Some(6));
        assert!(!is_free(), "it is stored");
        let address = old["spec"]["clusterIP"].clone();
        assert_eq!(with["spec"]["clusterIP"], address);
        services.begin_change(&with);
        services.end_change(&old, Some(8));
        assert!(is_free(), "another change took the port away");
        let (_, errors) = create(&services, "2", json!({"clusterIP": address}));
        assert_eq!(errors.len(), 1, "the address stays");
    }

    #[test]
    fn the_port_of_the_health_check_is_held() {
        let services = Services::new();
        services.hold(&service("1", json!({"healthCheckNodePort": 31_001})));
        let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": 31_001}]);
        let (_, errors) = create(&services, "2", json!({"type": "NodePort", "ports": ports}));
        assert_eq!(errors.len(), 1);
    }

    #[test]
    fn what_another_range_gave_may_stay() {
        let services = Services::new();
        let old = service(
            "1",
            json!({"type": "NodePort", "clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"],
                "ports": [{"port": 80, "protocol": "TCP", "nodePort": 20_000}]}),
        );
        let updated = |spec: Value| {
            let mut new = old.clone();
            for (name, value) in spec.as_object().expect("members") {
                set(&mut new, &format!("spec.{name}"), value.clone());
            }
            defaults::apply(defaults::core::SERVICE, &mut new);
            services.prepare_for_update(&context(), &mut new, &old);
            let mut errors = found(checks::service, &new);
            errors.extend(services.validate_update(&new, &old));
            errors
        };
        assert_eq!(updated(json!({"selector": {"app": "e"}})), []);
        let ports = json!([{"port": 80, "protocol": "TCP", "nodePort": 20_001}]);
        let errors = updated(json!({"ports": ports}));
        assert!(errors[0].message().contains("not in the valid range"));
    }
}
