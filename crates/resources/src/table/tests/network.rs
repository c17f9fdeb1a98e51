//! Tests of the tables of Services, their endpoints and addresses, and NetworkPolicies.

use serde_json::{Value, json};

use super::cells;

#[test]
fn services_show_where_they_are_reached() {
    let service = |spec: Value, ingress: Value| {
        let object = json!({"spec": spec, "status": {"loadBalancer": {"ingress": ingress}}});
        cells("", "Service", object)
    };
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]);
    assert_eq!(
        service(
            json!({"type": "NodePort", "clusterIPs": ["10.0.0.1", "fd00::1"], "ports": ports,
                "selector": {"b": "2", "a": "1"}}),
            json!([])
        ),
        json!([
            "NodePort",
            "10.0.0.1",
            "<none>",
            "80/TCP,53:30053/UDP",
            "a=1,b=2"
        ])
    );
    let balancer = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"});
    for (ingress, extra, expected) in [
        (json!([]), json!([]), "<pending>"),
        (
            json!([{"hostname": "b.example"}, {"ip": "1.1.1.1"}]),
            json!([]),
            "1.1.1.1,b.example",
        ),
        (
            json!([{"ip": "1.1.1.1"}]),
            json!(["9.9.9.9"]),
            "1.1.1.1,9.9.9.9",
        ),
    ] {
        let mut spec = balancer.clone();
        spec["externalIPs"] = extra;
        assert_eq!(service(spec, ingress)[2], expected);
    }
    assert_eq!(
        service(
            json!({"type": "ExternalName", "externalName": "x.example"}),
            json!([])
        ),
        json!(["ExternalName", "<none>", "x.example", "<none>", "<none>"])
    );
}

#[test]
fn endpoints_name_the_first_few() {
    let addresses = |count: usize| -> Vec<Value> {
        (1..=count)
            .map(|it| json!({"ip": format!("10.0.0.{it}")}))
            .collect()
    };
    for (subsets, expected) in [
        (json!([]), "<none>"),
        (
            json!([{"addresses": addresses(2), "ports": [{"port": 80}]}]),
            "10.0.0.1:80,10.0.0.2:80",
        ),
        (
            json!([{"addresses": addresses(3), "ports": [{"port": 80}, {"port": 81}]}]),
            "10.0.0.1:80,10.0.0.2:80,10.0.0.3:80 + 3 more...",
        ),
        (json!([{"addresses": addresses(1)}]), "10.0.0.1"),
        (
            json!([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]),
            "[fd00::1]:80",
        ),
    ] {
        assert_eq!(
            cells("", "Endpoints", json!({"subsets": subsets})),
            json!([expected])
        );
    }
    let slice = json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "web"}, {}],
        "endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}, {"addresses": ["10.0.0.3", "10.0.0.4"]}]});
    assert_eq!(
        cells("discovery.k8s.io", "EndpointSlice", slice),
        json!(["IPv4", "80,web,*", "10.0.0.1,10.0.0.2,10.0.0.3 + 1 more..."])
    );
    let empty = cells(
        "discovery.k8s.io",
        "EndpointSlice",
        json!({"addressType": "IPv6"}),
    );
    assert_eq!(empty, json!(["IPv6", "<unset>", "<unset>"]));
}

#[test]
fn policies_and_ranges_show_what_they_select() {
    let group = "networking.k8s.io";
    let policy = json!({"spec": {"podSelector": {"matchExpressions": [
        {"key": "a", "operator": "In", "values": ["y", "x"]}, {"key": "b", "operator": "DoesNotExist"}]}}});
    assert_eq!(
        cells(group, "NetworkPolicy", policy),
        json!(["a in (x,y),!b"])
    );
    let everything = json!({"spec": {"podSelector": {}}});
    assert_eq!(cells(group, "NetworkPolicy", everything), json!(["<none>"]));
    let range = json!({"spec": {"cidrs": ["10.0.0.0/24", "fd00::/112"]}});
    assert_eq!(
        cells(group, "ServiceCIDR", range),
        json!(["10.0.0.0/24,fd00::/112"])
    );
    let parent = json!({"resource": "Services", "namespace": "ns", "name": "Web"});
    let address = json!({"spec": {"parentRef": parent}});
    assert_eq!(
        cells(group, "IPAddress", address),
        json!(["services/ns/Web"])
    );
}
