//! Numbers of services, from the service's point of view, and what the repair gives back.

use std::time::Duration;

use async_trait::async_trait;
use ringwatch::codec;
use ringwatch::storage::{GetOptions, ListOptions};
use ringwatch_admission::{Chain, Plugin};
use ringwatch_registry::Request;
use ringwatch_registry::testing::{MemoryStorage, context, patch};
use ringwatch_registry::{CreateOptions, DeleteOptions, UpdateOptions};
use ringwatch_testing::eventually::{DEADLINE, eventually};

use super::*;
use crate::ensure_service_range;
use crate::service_ranges::{Families, Family, ServiceRanges};

/// The time limit of requests in these tests.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(50);

/// A server: several of them may have the same storages.
struct World {
    services: Store,
    addresses: Store,
    repair: Repair,
}

/// The storages that servers share.
struct Storages {
    all: [Arc<MemoryStorage>; 4],
    ranges: ServiceRanges,
    node_ports: PortRange,
}

impl Storages {
    fn new() -> Self {
        let prefixes = [
            "/services/specs",
            "/ipaddresses",
            "/servicecidrs",
            "/ranges",
        ];
        Self {
            all: prefixes.map(MemoryStorage::new),
            ranges: ServiceRanges::parse("").expect("the default"),
            node_ports: PortRange::default(),
        }
    }

    async fn server(&self) -> World {
        let [services, addresses, ranges, ports] = &self.all;
        let store = |plural: &str, storage: &Arc<MemoryStorage>| {
            let mut all = crate::built_in().into_iter();
            let resource = all.find(|it| it.plural == plural).expect("built in");
            Store::new(resource, Arc::clone(storage) as _)
        };
        let clock = context().clock;
        let addresses = store("ipaddresses", addresses);
        let ranges = store("servicecidrs", ranges);
        let ensured = ensure_service_range(&ranges, &self.ranges, &clock).await;
        ensured.expect("a range");
        let ports = (Arc::clone(ports) as _, self.node_ports.clone());
        let allocator = ServiceAllocator::new(
            addresses.clone(),
            ranges,
            ports,
            self.ranges.families(),
            clock.clone(),
        );
        let allocator = Arc::new(allocator);
        let services = store("services", services).with_allocator(Arc::clone(&allocator) as _);
        let repair = Repair {
            allocator,
            services: Arc::new(services.clone()),
            request_timeout: REQUEST_TIMEOUT,
            is_alone: false,
            clock,
        };
        World {
            services,
            addresses,
            repair,
        }
    }

    async fn ready(&self) -> World {
        let world = self.server().await;
        world.repair.begin().await.expect("begun");
        world
    }
}

fn service(name: &str, spec: &Value) -> Value {
    let mut service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"selector": {"app": "d"}, "ports": [{"port": 80}]}});
    for (member, value) in spec.as_object().expect("members") {
        service["spec"][member] = value.clone();
    }
    service
}

impl World {
    async fn create(&self, name: &str, spec: Value) -> Result<Value, String> {
        self.try_create(name, &spec, false).await
    }

    async fn try_create(&self, name: &str, spec: &Value, dry_run: bool) -> Result<Value, String> {
        let options = CreateOptions { dry_run };
        let object = service(name, spec);
        let created = self
            .services
            .create(&context(), "a", object, &options)
            .await;
        let created = created.map_err(|error| error.to_string())?;
        Ok(codec::tree(&created).expect("an object"))
    }

    async fn change(&self, name: &str, spec: Value) -> Result<Value, String> {
        let mut update = patch(|it| {
            for (member, value) in spec.as_object().expect("members") {
                it["spec"][member] = value.clone();
            }
        });
        let options = UpdateOptions::default();
        let context = context();
        let updated = self
            .services
            .update(&context, "a", name, &mut update, &options)
            .await;
        let (updated, _) = updated.map_err(|error| error.to_string())?;
        Ok(codec::tree(&updated).expect("an object"))
    }

    async fn delete(&self, name: &str) {
        let options = DeleteOptions::default();
        let deleted = self.services.delete(&context(), "a", name, options).await;
        deleted.expect("deleted");
    }

    /// Returns the addresses that are noted.
    async fn addresses(&self) -> Vec<String> {
        let list = self.addresses.list("", ListOptions::default()).await;
        let list = list.expect("a list");
        list.items.iter().map(|it| it.name().to_owned()).collect()
    }

    /// Returns the ports that are noted.
    async fn ports(&self) -> Vec<u16> {
        let list = self
            .repair
            .allocator
            .node_ports
            .read()
            .await
            .expect("a list");
        let ports = list
            .items
            .first()
            .map(|it| self.repair.allocator.node_ports.decode(it).expect("ports"));
        ports.unwrap_or_default().0.into_iter().collect()
    }

    /// Runs the repair until nothing is noted.
    async fn repair(self) {
        let (addresses, allocator) = (self.addresses.clone(), Arc::clone(&self.repair.allocator));
        let gone = eventually(DEADLINE, "all is given back", async || {
            let list = addresses.list("", ListOptions::default()).await;
            let ports = allocator.node_ports.read().await.expect("a list");
            let ports = ports
                .items
                .first()
                .map(|it| allocator.node_ports.decode(it).expect("ports"));
            list.expect("a list").items.is_empty() && ports.unwrap_or_default().0.is_empty()
        });
        tokio::select! {
            () = self.repair.run() => unreachable!("it runs until it is dropped"),
            () = gone => {}
        }
    }
}

fn ports_of(service: &Value) -> Vec<u64> {
    let ports = service["spec"]["ports"].as_array().expect("ports").iter();
    ports.filter_map(|port| port["nodePort"].as_u64()).collect()
}

#[tokio::test]
async fn every_service_gets_its_own_address_until_it_goes() {
    let storages = Storages::new();
    let world = storages.ready().await;
    let one = world.create("one", json!({})).await.expect("created");
    let address = one["spec"]["clusterIP"].as_str().expect("an address");
    assert!(address.starts_with("10.0.0."), "{address}");
    assert_eq!(one["spec"]["clusterIPs"], json!([address]));
    let found = world
        .addresses
        .get("", address, GetOptions::default())
        .await;
    let noted = codec::tree(&found.expect("noted")).expect("an object");
    assert_eq!(
        noted["spec"]["parentRef"],
        json!({"resource": "services", "namespace": "a", "name": "one"})
    );
    assert_eq!(
        noted["metadata"]["labels"],
        json!({"ipaddress.kubernetes.io/ip-family": "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"})
    );
    // Another server knows it as well.
    let other = storages.ready().await;
    let error = other.create("two", json!({"clusterIP": address})).await;
    let why = format!(
        "Service \"two\" is invalid: spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: \
         provided IP is already allocated"
    );
    assert_eq!(error, Err(why));
    world.delete("one").await;
    let two = other.create("two", json!({"clusterIP": address})).await;
    assert_eq!(two.expect("created")["spec"]["clusterIP"], address);
    let error = other
        .create("three", json!({"clusterIP": "10.1.0.1"}))
        .await;
    let words =
        "failed to allocate IP 10.1.0.1: the provided network does not match the current range";
    assert!(error.expect_err("elsewhere").ends_with(words));
    let error = other
        .try_create("three", &json!({"clusterIP": "10.1.0.1"}), true)
        .await;
    let words = "failed to allocate IP 10.1.0.1: the provided IP (10.1.0.1) is not in the valid range. \
         The range of valid IPs is 10.0.0.0/24";
    assert!(error.expect_err("elsewhere").ends_with(words));
}

#[tokio::test]
async fn a_full_range_is_said_to_be_full() {
    let world = Storages::new().ready().await;
    let owner = Owner::new(&service("one", &json!({})));
    for last in 1..=254 {
        let address = IpAddr::from([10, 0, 0, last]);
        assert!(
            world
                .repair
                .allocator
                .addresses
                .note(address, &owner)
                .await
                .expect("noted")
        );
    }
    let error = world.create("more", json!({})).await;
    assert_eq!(
        error,
        Err("failed to allocate a serviceIP for Service \"more\": range is full".to_owned())
    );
}

#[tokio::test]
async fn headless_and_external_services_have_no_address() {
    let world = Storages::new().ready().await;
    let headless = world
        .create("one", json!({"clusterIP": "None"}))
        .await
        .expect("created");
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    let external = world.create("two", external).await.expect("created");
    assert!(external["spec"]["clusterIP"].is_null());
    assert_eq!(world.addresses().await, [""; 0]);
    // It gets one when it becomes something else, and gives it up when it is external again.
    let inside = world
        .change("two", json!({"type": "ClusterIP"}))
        .await
        .expect("changed");
    assert_eq!(
        world.addresses().await,
        [inside["spec"]["clusterIP"].as_str().expect("one")]
    );
    world
        .change("two", json!({"type": "ExternalName"}))
        .await
        .expect("changed");
    assert_eq!(world.addresses().await, [""; 0]);
}

#[tokio::test]
async fn ports_of_the_nodes_are_taken_and_given_up() {
    let world = Storages::new().ready().await;
    let outside = |ports: Value| json!({"type": "NodePort", "ports": ports});
    let both = json!([{"name": "t", "port": 53, "protocol": "TCP"},
        {"name": "u", "port": 53, "protocol": "UDP"}, {"name": "o", "port": 54}]);
    let one = world.create("one", outside(both)).await.expect("created");
    let ports = ports_of(&one);
    assert_eq!(ports[0], ports[1], "two protocols of one port share it");
    assert_eq!(world.ports().await.len(), 2);

    let wanted = json!([{"port": 80, "nodePort": ports[0]}]);
    let error = world
        .create("two", outside(wanted.clone()))
        .await
        .expect_err("taken");
    let why = "spec.ports[0].nodePort: Invalid value: ";
    let why = format!("{why}{}: provided port is already allocated", ports[0]);
    assert!(error.ends_with(&why), "{error}");
    assert_eq!(
        world.addresses().await.len(),
        1,
        "its address is given back"
    );
    for number in [99_999, -1] {
        let no_port = outside(json!([{"port": 80, "nodePort": number}]));
        let error = world.create("two", no_port).await.expect_err("no port");
        let why = format!("nodePort: Invalid value: {number}: provided port is not in the valid");
        assert!(error.contains(&why), "{error}");
    }
    let elsewhere = outside(json!([{"port": 80, "nodePort": 20_000}]));
    let error = world.create("two", elsewhere).await.expect_err("elsewhere");
    assert!(
        error.ends_with("The range of valid ports is 30000-32767"),
        "{error}"
    );

    let kept = world
        .change("one", json!({"selector": {"app": "e"}}))
        .await
        .expect("changed");
    assert_eq!(ports_of(&kept), ports);
    let inside = world
        .change("one", json!({"type": "ClusterIP"}))
        .await
        .expect("changed");
    assert_eq!((ports_of(&inside), world.ports().await), (vec![], vec![]));
    let two = world
        .create("two", outside(wanted))
        .await
        .expect("free again");
    assert_eq!(ports_of(&two), ports[..1]);
    world.delete("two").await;
    assert_eq!(world.ports().await, [0; 0]);
}

#[tokio::test]
async fn the_port_of_the_health_check_is_held() {
    let world = Storages::new().ready().await;
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local",
        "allocateLoadBalancerNodePorts": false, "healthCheckNodePort": 31_001});
    world.create("one", local.clone()).await.expect("created");
    assert_eq!(world.ports().await, [31_001]);
    let error = world.create("two", local).await;
    let why = "failed to allocate requested HealthCheck NodePort 31001: provided port is already allocated";
    assert_eq!(error, Err(why.to_owned()));
    let far = json!({"externalTrafficPolicy": "Cluster"});
    world.change("one", far).await.expect("changed");
    assert_eq!(world.ports().await, [0; 0]);
}

#[tokio::test]
async fn a_health_check_gets_a_port_when_the_service_is_created_or_becomes_local() {
    let world = Storages::new().ready().await;
    let check = |service: &Value| service["spec"]["healthCheckNodePort"].as_u64();
    let local = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local"});
    let tried = world.try_create("one", &local, true).await.expect("tried");
    assert_eq!(check(&tried), Some(32_770), "after the port of its node");
    assert_eq!(world.ports().await, [0; 0]);
    let one = world.create("one", local.clone()).await.expect("created");
    let given = check(&one).expect("a port");
    assert!((30_000..32_768).contains(&given), "{given}");
    assert_eq!(world.ports().await.len(), 2);
    // A client that leaves it out keeps it.
    let silent = json!({"healthCheckNodePort": null, "selector": {"app": "e"}});
    let kept = world.change("one", silent).await.expect("changed");
    assert_eq!(check(&kept), Some(given));

    world.create("two", json!({})).await.expect("created");
    let two = world.change("two", local).await.expect("changed");
    assert!(check(&two).is_some_and(|it| it != given), "{two}");
    assert_eq!(world.ports().await.len(), 4);
    // What validation refuses takes nothing.
    let wrong =
        json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "sessionAffinity": "Odd"});
    let error = world.create("three", wrong).await.expect_err("refused");
    let why = "spec.sessionAffinity: Unsupported value: \"Odd\": supported values: \"ClientIP\", \"None\"";
    assert_eq!(error, format!("Service \"three\" is invalid: {why}"));
    let unnamed = world.create("a/b", json!({})).await.expect_err("no name");
    assert!(unnamed.contains("metadata.name"), "{unnamed}");
    assert_eq!(
        (world.addresses().await.len(), world.ports().await.len()),
        (2, 4)
    );
    let inside = world.change("two", json!({"type": "ClusterIP"})).await;
    assert_eq!(check(&inside.expect("changed")), None);
    assert_eq!(world.ports().await.len(), 2);
}

#[tokio::test]
async fn a_status_of_a_service_allocates_nothing() {
    let world = Storages::new().ready().await;
    world.create("one", json!({})).await.expect("created");
    let mut context = context();
    context.subresource = "status".into();
    let mut update = patch(|it| {
        it["spec"]["type"] = json!("NodePort");
        it["status"]["conditions"] = json!([]);
    });
    let options = UpdateOptions::default();
    let services = &world.services;
    let updated = services.update(&context, "a", "one", &mut update, &options);
    updated.await.expect("updated");
    assert_eq!(world.ports().await, [0; 0]);
}

#[tokio::test]
async fn node_ports_follow_the_names_of_their_ports() {
    let world = Storages::new().ready().await;
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let outside = json!({"type": "NodePort", "ports": ports});
    let one = world.create("one", outside).await.expect("created");
    let given = ports_of(&one);
    let moved = json!({"ports": [{"name": "b", "port": 90}, {"name": "c", "port": 80}]});
    let moved = ports_of(&world.change("one", moved).await.expect("changed"));
    assert_eq!(moved[0], given[1]);
    assert!(!given.contains(&moved[1]), "{moved:?} after {given:?}");
    let mut held = world.ports().await;
    held.sort_unstable();
    let mut expected: Vec<u16> = moved
        .iter()
        .filter_map(|it| u16::try_from(*it).ok())
        .collect();
    expected.sort_unstable();
    assert_eq!(held, expected);
    // To a type without them, with a port more.
    let inside = json!({"type": "ClusterIP", "ports": [{"name": "b", "port": 90, "nodePort": moved[0]}, {"name": "d", "port": 91}]});
    let inside = world.change("one", inside).await.expect("changed");
    assert_eq!((ports_of(&inside), world.ports().await), (vec![], vec![]));
}

#[tokio::test]
async fn what_is_only_tried_is_not_noted() {
    let world = Storages::new().ready().await;
    let outside = json!({"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]});
    let tried = world
        .try_create("one", &outside, true)
        .await
        .expect("possible");
    assert_eq!(
        ports_of(&tried),
        [32_769, 32_770],
        "dummies, as in kube-apiserver"
    );
    assert_eq!(tried["spec"]["clusterIP"], "10.0.0.0");
    assert_eq!(
        (world.addresses().await, world.ports().await),
        (vec![], vec![])
    );
    world.create("one", json!({})).await.expect("created");
    let error = world.create("one", json!({"type": "NodePort"})).await;
    error.expect_err("it exists");
    assert_eq!(
        (world.addresses().await.len(), world.ports().await),
        (1, vec![])
    );
}

#[tokio::test]
async fn what_is_stored_is_noted_before_anything_is_handed_out() {
    let storages = Storages::new();
    let storage = Arc::clone(&storages.all[0]);
    let stored = service(
        "old",
        &json!({"type": "NodePort", "clusterIP": "10.0.0.7",
        "ports": [{"name": "a", "port": 80, "nodePort": 31_000}, {"name": "b", "port": 81, "nodePort": 20_000}]}),
    );
    let key = "/services/specs/a/old";
    storage.create(key, &stored, None).await.expect("stored");
    let world = storages.server().await;
    let error = world.create("new", json!({})).await;
    assert_eq!(error, Err("allocator not ready".to_owned()));
    world.repair.begin().await.expect("begun");
    assert_eq!(world.addresses().await, ["10.0.0.7"]);
    assert_eq!(world.ports().await, [31_000]);
    // What another range gave may stay.
    world
        .change("old", json!({"selector": {"app": "e"}}))
        .await
        .expect("changed");
    assert_eq!(world.ports().await, [31_000]);
}

/// A storage that never answers.
#[derive(Debug)]
struct Hanging;

#[async_trait]
impl Plugin for Hanging {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    async fn validate(&self, _: &Request<'_>, _: &Value) -> Result<(), Error> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn what_abandoned_writes_leave_behind_is_given_back() {
    let storages = Storages::new();
    let mut world = storages.ready().await;
    let external = json!({"type": "ExternalName", "externalName": "example.com"});
    world.create("two", external).await.expect("created");
    let chain = Chain::new(vec![Arc::new(Hanging) as _]);
    world.services = world.services.with_admission(Arc::new(chain));
    let outside = || json!({"type": "NodePort"});
    let abandoned = async {
        tokio::join!(
            world.create("one", outside()),
            world.change("two", outside())
        )
    };
    let both_noted = eventually(DEADLINE, "both are noted", async || {
        world.ports().await.len() == 2
    });
    tokio::select! {
        _ = abandoned => unreachable!("nobody answers"),
        () = both_noted => {}
    }
    assert_eq!(world.addresses().await.len(), 2);
    world.repair().await;
}

#[tokio::test]
async fn a_server_that_is_alone_releases_at_once_what_an_earlier_one_has_left() {
    let storages = Storages::new();
    let ended = storages.ready().await;
    let kept = ended.create("kept", json!({"type": "NodePort"})).await;
    let kept = kept.expect("created");
    // It ends between its notes and the write of the service.
    let allocator = &ended.repair.allocator;
    let owner = Owner::new(&service("lost", &json!({})));
    let address = IpAddr::from([10, 0, 0, 1]);
    let noted = allocator.addresses.note(address, &owner).await;
    assert!(noted.expect("noted"));
    let port = u16::try_from(ports_of(&kept)[0]).expect("a port");
    let other = if port == 30_000 { 30_001 } else { 30_000 };
    allocator.node_ports.hold(&[other]).await.expect("noted");
    // Another server may be about to write the service.
    let beside = storages.ready().await;
    assert_eq!(beside.addresses().await.len(), 2);
    assert_eq!(beside.ports().await.len(), 2);
    let mut alone = storages.server().await;
    alone.repair.is_alone = true;
    alone.repair.begin().await.expect("begun");
    assert_eq!(
        alone.addresses().await,
        [kept["spec"]["clusterIP"].as_str().expect("an address")]
    );
    assert_eq!(alone.ports().await, [port]);
    let found = alone
        .create("found", json!({"clusterIP": "10.0.0.1"}))
        .await;
    found.expect("created");
}

#[tokio::test]
async fn a_service_of_both_families_has_an_address_of_each() {
    let mut storages = Storages::new();
    storages.ranges = ServiceRanges::parse("10.0.0.0/24,fd00::/120").expect("two ranges");
    let world = storages.ready().await;
    let ips = |service: &Value| -> Vec<IpAddr> {
        let all = service["spec"]["clusterIPs"].as_array().expect("addresses");
        let all = all.iter().map(|it| it.as_str().expect("text"));
        all.map(|it| it.parse().expect("an address")).collect()
    };
    let families =
        |service: &Value| -> Vec<Family> { ips(service).into_iter().map(Family::of).collect() };
    let both = json!({"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv6"]});
    let one = world.create("one", both).await.expect("created");
    assert_eq!(families(&one), [Family::IPv6, Family::IPv4]);
    assert_eq!(one["spec"]["clusterIP"], one["spec"]["clusterIPs"][0]);
    assert_eq!(world.addresses().await.len(), 2);
    let taken = json!({"ipFamilyPolicy": "RequireDualStack",
        "clusterIP": "10.0.0.77", "clusterIPs": ["10.0.0.77", one["spec"]["clusterIP"]]});
    let error = world.create("two", taken).await.expect_err("taken");
    assert!(
        error.ends_with("provided IP is already allocated"),
        "{error}"
    );
    assert_eq!(world.addresses().await.len(), 2, "the first is given back");

    let single = world
        .change("one", json!({"ipFamilyPolicy": "SingleStack"}))
        .await
        .expect("changed");
    assert_eq!(families(&single), [Family::IPv6]);
    assert_eq!(single["spec"]["ipFamilies"], json!(["IPv6"]));
    assert_eq!(world.addresses().await.len(), 1);
    let again = world
        .change("one", json!({"ipFamilyPolicy": "RequireDualStack"}))
        .await
        .expect("changed");
    assert_eq!(families(&again), [Family::IPv6, Family::IPv4]);
    assert_eq!(ips(&again)[0], ips(&single)[0]);
    let default = world.create("three", json!({})).await.expect("created");
    assert_eq!(families(&default), [Family::IPv4]);
    // A server without that range leaves what is there, and gives out none of it.
    storages.ranges = ServiceRanges::parse("10.0.0.0/24").expect("a range");
    let single = storages.ready().await;
    assert_eq!(
        single
            .repair
            .allocator
            .addresses
            .all()
            .await
            .expect("all")
            .len(),
        3
    );
    let error = single.create("four", json!({"ipFamilies": ["IPv6"]})).await;
    let error = error.expect_err("not here");
    assert!(error.contains("not configured on this cluster"), "{error}");
    assert_eq!(storages.ranges.families(), Families::default());
    single.delete("one").await;
    assert_eq!(single.addresses().await.len(), 1);
}

#[tokio::test]
async fn node_ports_follow_a_range_that_was_changed() {
    let mut storages = Storages::new();
    let world = storages.ready().await;
    for (name, port) in [("in", 31_000), ("out", 32_000)] {
        let ports = json!([{"port": 80, "nodePort": port}]);
        let outside = json!({"type": "NodePort", "ports": ports});
        world.create(name, outside).await.expect("created");
    }
    storages.node_ports = PortRange::parse("31000-31001").expect("a range");
    let narrower = storages.ready().await;
    assert_eq!(narrower.ports().await, [31_000]);
    let next = narrower.create("next", json!({"type": "NodePort"})).await;
    assert_eq!(ports_of(&next.expect("created")), [31_001]);
    let error = narrower.create("more", json!({"type": "NodePort"})).await;
    let full = "failed to allocate a nodePort: range is full";
    assert_eq!(error.map(|_| ()), Err(full.to_owned()));
    // The server that was started with the other range takes no ports that this one does not know.
    let error = world.create("late", json!({"type": "NodePort"})).await;
    let error = error.expect_err("another range");
    assert!(error.contains("the range \"31000-31001\""), "{error}");
}
