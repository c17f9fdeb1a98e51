//! Tests of the tables of Ingresses and IngressClasses.

use serde_json::json;

use super::cells;

#[test]
fn ingresses_show_hosts_and_classes() {
    let group = "networking.k8s.io";
    let ingress = json!({"spec": {"ingressClassName": "nginx", "tls": [{}],
            "rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "1.1.1.1"}]}}});
    assert_eq!(
        cells(group, "Ingress", ingress),
        json!(["nginx", "a,b,c + 1 more...", "1.1.1.1", "80, 443"])
    );
    assert_eq!(
        cells(group, "Ingress", json!({})),
        json!(["<none>", "*", "", "80"])
    );
    let class = json!({"spec": {"controller": "example.com/c",
        "parameters": {"apiGroup": "k8s.example.com", "kind": "Params", "name": "p"}}});
    assert_eq!(
        cells(group, "IngressClass", class),
        json!(["example.com/c", "Params.k8s.example.com/p"])
    );
}
