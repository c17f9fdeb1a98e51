//! The rows of each kind.

use std::fs;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// When rows are written here.
const NOW: &str = "2026-11-22T12:00:00Z";

fn row(group: &str, kind: &str, object: &Value) -> Row {
    let now: Timestamp = NOW.parse().expect("a time");
    TableConvertor::of_kind(group, kind).row(object, now)
}

/// The cells of an object that was created five minutes ago, without its name and its age.
fn cells(group: &str, kind: &str, mut object: Value) -> Value {
    object["metadata"]["name"] = json!("a-name");
    object["metadata"]["creationTimestamp"] = json!("2026-11-22T11:55:00Z");
    let columns = TableConvertor::of_kind(group, kind).columns();
    let cells = row(group, kind, &object).cells;
    assert_eq!(cells.len(), columns.len());
    let rest = columns.iter().zip(cells).filter(|(column, cell)| {
        match column.name {
            "Name" => assert_eq!(cell, "a-name"),
            "Age" => assert_eq!(cell, "5m"),
            _ => return true,
        }
        false
    });
    rest.map(|(_, cell)| cell).collect()
}

#[test]
fn every_object_has_a_cell_for_each_column() {
    let Ok(folder) = std::env::var("RINGWATCH_TESTDATA") else {
        eprintln!("SKIPPED rows of the testdata: RINGWATCH_TESTDATA names no folder");
        return;
    };
    let mut rows = 0;
    for file in fs::read_dir(Path::new(&folder)).expect("the testdata") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let object: Value =
            serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let group = version.split_once('/').map_or("", |(group, _)| group);
        // An object, and a bookmark, which is nothing but its metadata.
        for object in [&object, &json!({"metadata": {}})] {
            let convertor = TableConvertor::of_kind(group, &kind);
            let found = row(group, &kind, object).cells;
            assert_eq!(found.len(), convertor.columns().len(), "{kind}");
            let plain = |cell: &Value| !(cell.is_null() || cell.is_array() || cell.is_object());
            assert!(found.iter().all(plain), "{kind}: {found:?}");
            rows += 1;
        }
    }
    assert!(rows > 100, "{rows}");
}

#[test]
fn a_bookmark_is_a_row_of_an_empty_object() {
    let bookmark = json!({"metadata": {"resourceVersion": "7"}});
    assert_eq!(
        json!(row("", "ConfigMap", &bookmark).cells),
        json!(["", 0, "<unknown>"])
    );
    assert_eq!(
        json!(row("", "Pod", &bookmark).cells),
        json!([
            "",
            "0/0",
            "",
            "0",
            "<unknown>",
            "<none>",
            "<none>",
            "<none>",
            "<none>"
        ])
    );
}

#[test]
fn kinds_without_columns_show_when_they_were_created() {
    let object = json!({"metadata": {"name": "r", "creationTimestamp": "2026-11-22T11:00:00Z"}});
    for (group, kind) in [
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("", "LimitRange"),
        ("example.com", "Whatever"),
    ] {
        let columns = TableConvertor::of_kind(group, kind).columns();
        assert_eq!((columns[1].name, columns[1].kind), ("Created At", "date"));
        assert_eq!(
            json!(row(group, kind, &object).cells),
            json!(["r", "2026-11-22T11:00:00Z"])
        );
    }
}

mod pods {
    use super::*;

    /// Ready, status and restarts.
    fn shown(spec: Value, status: Value) -> Value {
        let pod = json!({"metadata": {}, "spec": spec, "status": status});
        json!(cells("", "Pod", pod).as_array().expect("cells")[..3])
    }

    fn one_container(state: Value) -> Value {
        json!({"phase": "Running", "containerStatuses":
            [{"name": "c", "ready": true, "restartCount": 0, "state": state}]})
    }

    fn spec() -> Value {
        json!({"containers": [{"name": "c"}]})
    }

    #[test]
    fn the_status_is_what_says_most() {
        for (state, ready, status) in [
            (json!({"running": {}}), "1/1", "Running"),
            (
                json!({"waiting": {"reason": "CrashLoopBackOff"}}),
                "0/1",
                "CrashLoopBackOff",
            ),
            (json!({"waiting": {}}), "0/1", "Running"),
            (
                json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
                "0/1",
                "Completed",
            ),
            (json!({"terminated": {"exitCode": 3}}), "0/1", "ExitCode:3"),
            (
                json!({"terminated": {"exitCode": 137, "signal": 9}}),
                "0/1",
                "Signal:9",
            ),
            (
                json!({"terminated": {"exitCode": 1, "reason": "OOMKilled"}}),
                "0/1",
                "OOMKilled",
            ),
        ] {
            assert_eq!(
                shown(spec(), one_container(state)),
                json!([ready, status, "0"])
            );
        }
        for (status, words) in [
            (json!({"phase": "Pending"}), "Pending"),
            (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
            (
                json!({"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
                "SchedulingGated",
            ),
        ] {
            assert_eq!(shown(spec(), status), json!(["0/1", words, "0"]));
        }
    }

    #[test]
    fn a_container_that_completed_beside_one_that_runs_is_not_the_end() {
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let status = |ready: &str| {
            json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [
                    {"ready": false, "state": {"terminated": {"reason": "Completed"}}},
                    {"ready": true, "state": {"running": {}}}]})
        };
        assert_eq!(
            shown(spec.clone(), status("True")),
            json!(["1/2", "Running", "0"])
        );
        assert_eq!(
            shown(spec, status("False")),
            json!(["1/2", "NotReady", "0"])
        );
    }

    #[test]
    fn init_containers_come_first() {
        let spec = json!({"containers": [{"name": "c"}],
            "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]});
        let done =
            json!({"name": "i", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
        for (statuses, ready, status, restarts) in [
            (
                json!([{"name": "i", "state": {"running": {}}}]),
                "0/2",
                "Init:0/2",
                "0",
            ),
            (
                json!([{"name": "i", "state": {"waiting": {"reason": "PodInitializing"}}}]),
                "0/2",
                "Init:0/2",
                "0",
            ),
            (
                json!([{"name": "i", "restartCount": 4,
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]),
                "0/2",
                "Init:CrashLoopBackOff",
                "4",
            ),
            (
                json!([{"name": "i", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]),
                "0/2",
                "Init:Error",
                "0",
            ),
            (
                json!([{"name": "i", "state": {"terminated": {"exitCode": 2}}}]),
                "0/2",
                "Init:ExitCode:2",
                "0",
            ),
            (
                json!([done, {"name": "s", "state": {"running": {}}}]),
                "0/2",
                "Init:1/2",
                "1",
            ),
            // Those that stay count among the containers, and their restarts with them.
            (
                json!([done, {"name": "s", "started": true, "ready": true, "restartCount": 3,
                    "state": {"running": {}}}]),
                "1/2",
                "Pending",
                "3",
            ),
        ] {
            let status_ = json!({"phase": "Pending", "initContainerStatuses": statuses});
            let found = shown(spec.clone(), status_);
            assert_eq!(found, json!([ready, status, restarts]), "{statuses}");
        }
        // Initialized once, an init container that runs again does not hide what the others do.
        let status = json!({"phase": "Running",
            "conditions": [{"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "Error"}}}],
            "containerStatuses": [{"ready": false, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]});
        assert_eq!(shown(spec, status), json!(["0/2", "ImagePullBackOff", "0"]));
    }

    #[test]
    fn restarts_tell_when_the_last_was() {
        let status = json!({"phase": "Running", "containerStatuses": [
            {"ready": true, "restartCount": 2, "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": "2026-11-22T11:00:00Z"}}},
            {"ready": true, "restartCount": 5, "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": "2026-11-22T11:57:57Z"}}}]});
        let spec = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        assert_eq!(
            shown(spec, status),
            json!(["2/2", "Running", "7 (2m3s ago)"])
        );
    }

    #[test]
    fn deletion_says_more_than_everything_else() {
        for (phase, reason, expected) in [
            ("Running", "", "Terminating"),
            ("Succeeded", "", "Succeeded"),
            ("Running", "NodeLost", "Unknown"),
        ] {
            let pod = json!({"metadata": {"deletionTimestamp": NOW}, "spec": spec(),
                "status": {"phase": phase, "reason": reason}});
            assert_eq!(cells("", "Pod", pod)[1], expected);
        }
    }

    #[test]
    fn there_is_more_where_there_is_room() {
        let pod = json!({"metadata": {},
            "spec": {"nodeName": "n", "containers": [{}],
                "readinessGates": [{"conditionType": "x"}, {"conditionType": "y"}]},
            "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.2"}], "nominatedNodeName": "m",
                "conditions": [{"type": "x", "status": "True"}, {"type": "y", "status": "False"}]}});
        let found = cells("", "Pod", pod);
        assert_eq!(
            json!(found.as_array().expect("cells")[3..]),
            json!(["10.0.0.2", "n", "m", "1/2"])
        );
        let columns = TableConvertor::of_kind("", "Pod").columns();
        let wide: Vec<_> = columns
            .iter()
            .filter(|it| it.priority == 1)
            .map(|it| it.name)
            .collect();
        assert_eq!(wide, ["IP", "Node", "Nominated Node", "Readiness Gates"]);
    }

    #[test]
    fn pods_that_are_through_say_so_beside_the_cells() {
        let reason = |phase: &str| {
            let row = row("", "Pod", &json!({"status": {"phase": phase}}));
            row.conditions
                .first()
                .map(|it| (it.kind, it.status, it.reason))
        };
        assert_eq!(
            reason("Succeeded"),
            Some(("Completed", "True", "Succeeded"))
        );
        assert_eq!(reason("Failed"), Some(("Completed", "True", "Failed")));
        assert_eq!(reason("Running"), None);
    }
}

#[test]
fn workloads_show_replicas_and_containers() {
    let selector = json!({"matchLabels": {"app": "x"}});
    let template = json!({"spec": {"nodeSelector": {"disk": "ssd"},
        "containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}]}});
    let spec = json!({"replicas": 3, "selector": selector, "template": template});
    let status = json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2,
        "availableReplicas": 1, "desiredNumberScheduled": 5, "currentNumberScheduled": 4,
        "numberReady": 3, "updatedNumberScheduled": 2, "numberAvailable": 1});
    let object = json!({"spec": spec, "status": status});
    for (kind, expected) in [
        ("Deployment", json!(["1/3", 2, 1, "a,b", "i:1,j", "app=x"])),
        ("ReplicaSet", json!([3, 2, 1, "a,b", "i:1,j", "app=x"])),
        ("StatefulSet", json!(["1/3", "a,b", "i:1,j"])),
        (
            "DaemonSet",
            json!([5, 4, 3, 2, 1, "disk=ssd", "a,b", "i:1,j", "app=x"]),
        ),
    ] {
        assert_eq!(cells("apps", kind, object.clone()), expected);
    }
    let mut controller = object;
    controller["spec"]["selector"] = json!({"app": "x"});
    assert_eq!(
        cells("", "ReplicationController", controller),
        json!([3, 2, 1, "a,b", "i:1,j", "app=x"])
    );
    let mut template = template;
    template["metadata"] = json!({"labels": {"app": "x"}});
    let template = json!({"template": template});
    assert_eq!(
        cells("", "PodTemplate", template),
        json!(["a,b", "i:1,j", "app=x"])
    );
    let budget = json!({"spec": {"maxUnavailable": "30%"}, "status": {"disruptionsAllowed": 2}});
    let budget = cells("policy", "PodDisruptionBudget", budget);
    assert_eq!(budget, json!(["N/A", "30%", 2]));
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true});
    let revision = json!({"metadata": {"ownerReferences": [owner]}, "revision": 7});
    assert_eq!(
        cells("apps", "ControllerRevision", revision),
        json!(["daemonset.apps/d", 7])
    );
    assert_eq!(
        cells("apps", "ControllerRevision", json!({})),
        json!(["<none>", 0])
    );
}

#[test]
fn jobs_show_how_far_they_are() {
    let spec = json!({"completions": 3, "selector": {"matchLabels": {"j": "1"}},
        "template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}});
    let started = json!({"succeeded": 1, "startTime": "2026-11-22T11:58:00Z"});
    let job = json!({"spec": spec, "status": started});
    assert_eq!(
        cells("batch", "Job", job),
        json!(["Running", "1/3", "2m", "a", "i", "j=1"])
    );
    for (condition, deleted, status) in [
        ("Complete", false, "Complete"),
        ("Failed", true, "Failed"),
        ("Suspended", true, "Terminating"),
        ("Suspended", false, "Suspended"),
        ("FailureTarget", false, "FailureTarget"),
    ] {
        let mut job = json!({"metadata": {}, "spec": {"parallelism": 2}, "status": {
            "startTime": "2026-11-22T11:00:00Z", "completionTime": "2026-11-22T11:00:09Z",
            "conditions": [{"type": condition, "status": "True"}]}});
        if deleted {
            job["metadata"]["deletionTimestamp"] = json!(NOW);
        }
        let expected = json!([status, "0/1 of 2", "9s", "", "", "<none>"]);
        assert_eq!(cells("batch", "Job", job), expected);
    }
    let cron = json!({"spec": {"schedule": "* * * * *", "suspend": false, "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}},
        "status": {"active": [{}, {}], "lastScheduleTime": "2026-11-22T11:59:30Z"}});
    assert_eq!(
        cells("batch", "CronJob", cron),
        json!([
            "* * * * *",
            "Etc/UTC",
            "False",
            2,
            "30s",
            "a",
            "i",
            "<none>"
        ])
    );
    let bare = cells("batch", "CronJob", json!({"spec": {"schedule": "@daily"}}));
    assert_eq!(
        bare,
        json!(["@daily", "<none>", "<unset>", 0, "<none>", "", "", "<none>"])
    );
}

#[test]
fn nodes_and_namespaces_show_their_state() {
    let node = json!({
        "metadata": {"labels": {"node-role.kubernetes.io/control-plane": "",
            "kubernetes.io/role": "edge", "node-role.kubernetes.io/": "x"}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "Hostname", "address": "n"}, {"type": "InternalIP", "address": "10.0.0.5"},
                {"type": "ExternalIP", "address": "1.2.3.4"}],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Debian", "kernelVersion": "6.1",
                "architecture": "amd64", "containerRuntimeVersion": "containerd://2.0"}}});
    assert_eq!(
        cells("", "Node", node),
        json!([
            "Ready,SchedulingDisabled",
            "control-plane,edge",
            "v1.36.2",
            "10.0.0.5",
            "1.2.3.4",
            "Debian",
            "6.1 (amd64)",
            "containerd://2.0"
        ])
    );
    let lost = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    let unknown = json!([
        "<none>",
        "",
        "<none>",
        "<none>",
        "<unknown>",
        "<unknown>",
        "<unknown>"
    ]);
    for (node, status) in [(lost, "NotReady"), (json!({}), "Unknown")] {
        let found = cells("", "Node", node);
        assert_eq!(found[0], status);
        assert_eq!(json!(found.as_array().expect("cells")[1..]), unknown);
    }
    let namespace = json!({"status": {"phase": "Terminating"}});
    assert_eq!(cells("", "Namespace", namespace), json!(["Terminating"]));
    let lease = json!({"spec": {"holderIdentity": "me"}});
    assert_eq!(cells("coordination.k8s.io", "Lease", lease), json!(["me"]));
}

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
fn networking_shows_hosts_and_selectors() {
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
    let parent = json!({"resource": "services", "namespace": "ns", "name": "web"});
    let address = json!({"spec": {"parentRef": parent}});
    assert_eq!(
        cells(group, "IPAddress", address),
        json!(["services/ns/web"])
    );
}

#[test]
fn configuration_is_counted() {
    let map = json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": ""}});
    assert_eq!(cells("", "ConfigMap", map), json!([3]));
    let secret = json!({"type": "Opaque", "data": {"a": ""}});
    assert_eq!(cells("", "Secret", secret), json!(["Opaque", 1]));
    let account = json!({"secrets": [{"name": "s"}]});
    assert_eq!(cells("", "ServiceAccount", account), json!([1]));
    let quota = json!({"status": {
        "hard": {"pods": "4", "limits.cpu": "2", "requests.cpu": "1"}, "used": {"pods": "1", "limits.cpu": "500m"}}});
    assert_eq!(
        cells("", "ResourceQuota", quota),
        json!(["pods: 1/4, requests.cpu: 0/1", "limits.cpu: 500m/2"])
    );
}

#[test]
fn events_of_both_kinds_show_when_they_were_seen() {
    let event = json!({"metadata": {}, "type": "Warning", "reason": "BackOff", "message": " no luck\n",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
        "source": {"component": "kubelet", "host": "n"}, "count": 4,
        "firstTimestamp": "2026-11-22T11:00:00Z", "lastTimestamp": "2026-11-22T11:59:00Z"});
    assert_eq!(
        cells("", "Event", event),
        json!([
            "60s",
            "Warning",
            "BackOff",
            "pod/p",
            "spec.containers{c}",
            "kubelet, n",
            "no luck",
            "60m",
            4
        ])
    );
    let newer = json!({"metadata": {}, "type": "Normal", "reason": "Scheduled", "message": "ok",
        "involvedObject": {"kind": "Node"}, "reportingComponent": "scheduler", "reportingInstance": "s-1",
        "firstTimestamp": null, "lastTimestamp": null, "eventTime": "2026-11-22T11:50:00.000000Z"});
    assert_eq!(
        cells("events.k8s.io", "Event", newer.clone()),
        json!([
            "10m",
            "Normal",
            "Scheduled",
            "node",
            "",
            "scheduler, s-1",
            "ok",
            "10m",
            1
        ])
    );
    let mut series = newer;
    series["series"] = json!({"count": 9, "lastObservedTime": "2026-11-22T11:59:59.5Z"});
    let found = cells("events.k8s.io", "Event", series);
    assert_eq!((&found[0], &found[8]), (&json!("0s"), &json!(9)));
}

#[test]
fn volumes_show_their_claims_and_classes() {
    let volume = json!({"metadata": {}, "spec": {"capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "ns", "name": "c"}, "storageClassName": "fast", "volumeMode": "Block"},
        "status": {"phase": "Bound"}});
    assert_eq!(
        cells("", "PersistentVolume", volume),
        json!([
            "5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "<unset>", "", "Block"
        ])
    );
    let claim = json!({"metadata": {"deletionTimestamp": NOW, "annotations":
            {"volume.beta.kubernetes.io/storage-class": "old"}},
        "spec": {"volumeName": "v", "storageClassName": "new"},
        "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOncePod"]}});
    assert_eq!(
        cells("", "PersistentVolumeClaim", claim),
        json!([
            "Terminating",
            "v",
            "1Gi",
            "RWOP",
            "old",
            "<unset>",
            "<unset>"
        ])
    );
    let pending = json!({"spec": {}, "status": {"phase": "Pending"}});
    assert_eq!(
        cells("", "PersistentVolumeClaim", pending),
        json!(["Pending", "", "", "", "", "<unset>", "<unset>"])
    );
    let class = json!({"metadata": {"name": "std", "annotations":
        {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"});
    assert_eq!(
        json!(row("storage.k8s.io", "StorageClass", &class).cells),
        json!([
            "std (default)",
            "p",
            "Delete",
            "Immediate",
            false,
            "<unknown>"
        ])
    );
}

#[test]
fn storage_shows_its_drivers() {
    let group = "storage.k8s.io";
    let driver = json!({"spec": {"podInfoOnMount": true, "volumeLifecycleModes": ["Persistent", "Ephemeral"],
        "tokenRequests": [{"audience": "a"}, {"audience": "b"}]}});
    assert_eq!(
        cells(group, "CSIDriver", driver),
        json!([true, true, false, "a,b", false, "Persistent,Ephemeral"])
    );
    assert_eq!(
        cells(
            group,
            "CSIDriver",
            json!({"spec": {"attachRequired": false}})
        ),
        json!([false, false, false, "<unset>", false, "<none>"])
    );
    assert_eq!(
        cells(group, "CSINode", json!({"spec": {"drivers": [{}]}})),
        json!([1])
    );
    let room = json!({"storageClassName": "fast", "capacity": "1Gi"});
    assert_eq!(
        cells(group, "CSIStorageCapacity", room),
        json!(["fast", "1Gi"])
    );
    let attachment = json!({"spec": {"attacher": "a", "nodeName": "n",
        "source": {"persistentVolumeName": "v"}}, "status": {"attached": true}});
    assert_eq!(
        cells(group, "VolumeAttachment", attachment),
        json!(["a", "v", "n", true])
    );
    let class = json!({"driverName": "d"});
    assert_eq!(cells(group, "VolumeAttributesClass", class), json!(["d"]));
}

#[test]
fn bindings_show_whom_they_bind() {
    let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [
        {"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}, {"kind": "User", "name": "w"},
        {"kind": "ServiceAccount", "namespace": "ns", "name": "s"}]});
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        assert_eq!(
            cells("rbac.authorization.k8s.io", kind, binding.clone()),
            json!(["ClusterRole/view", "u, w", "g", "ns/s"])
        );
    }
}

#[test]
fn autoscalers_show_what_they_measure() {
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 80}}});
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "1k"}}});
    let external = json!({"type": "External", "external": {"target": {"value": "30"}}});
    let object = json!({"type": "Object", "object": {"target": {"averageValue": "3"}}});
    let memory = json!({"type": "ContainerResource", "containerResource":
        {"name": "memory", "target": {"averageValue": "1Gi"}}});
    let measured = json!([{"resource": {"current": {"averageUtilization": 12}}},
        {"pods": {"current": {"averageValue": "900"}}}]);
    let shown = |metrics: &[&Value], current: &Value| {
        let autoscaler = json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"},
            "minReplicas": 1, "maxReplicas": 4, "metrics": metrics},
            "status": {"currentReplicas": 2, "currentMetrics": current}});
        let found = cells("autoscaling", "HorizontalPodAutoscaler", autoscaler);
        assert_eq!(found[0], "Deployment/d");
        assert_eq!(
            json!(found.as_array().expect("cells")[2..]),
            json!(["1", 4, 2])
        );
        found[1].clone()
    };
    assert_eq!(shown(&[], &json!(null)), "<none>");
    assert_eq!(shown(&[&cpu, &pods], &measured), "cpu: 12%/80%, 900/1k");
    assert_eq!(shown(&[&cpu], &json!([])), "cpu: <unknown>/80%");
    assert_eq!(
        shown(&[&external, &object], &json!([])),
        "<unknown>/30, <unknown>/3 (avg)"
    );
    assert_eq!(
        shown(&[&memory, &cpu, &pods], &json!([])),
        "memory: <unknown>/1Gi, cpu: <unknown>/80% + 1 more..."
    );
}

#[test]
fn administration_shows_what_matters() {
    let group = "admissionregistration.k8s.io";
    let webhooks = json!({"webhooks": [{}, {}]});
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        assert_eq!(cells(group, kind, webhooks.clone()), json!([2]));
    }
    let policy = json!({"spec": {"validations": [{}], "mutations": [{}, {}],
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}});
    assert_eq!(
        cells(group, "ValidatingAdmissionPolicy", policy.clone()),
        json!([1, "v1/ConfigMap"])
    );
    assert_eq!(
        cells(group, "MutatingAdmissionPolicy", policy),
        json!([2, "v1/ConfigMap"])
    );
    for (reference, expected) in [
        (json!(null), "<unset>"),
        (json!({"name": "p"}), "*/p"),
        (json!({"name": "p", "namespace": "ns"}), "ns/p"),
    ] {
        let binding = json!({"spec": {"policyName": "x", "paramRef": reference}});
        let found = cells(group, "ValidatingAdmissionPolicyBinding", binding);
        assert_eq!(found, json!(["x", expected]));
    }
    let request = json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 3600},
        "status": {"certificate": "eA==", "conditions": [{"type": "Approved"}]}});
    assert_eq!(
        cells("certificates.k8s.io", "CertificateSigningRequest", request),
        json!(["s", "u", "60m", "Approved,Issued"])
    );
    let class = json!({"value": 100, "globalDefault": true, "preemptionPolicy": "Never"});
    assert_eq!(
        cells("scheduling.k8s.io", "PriorityClass", class),
        json!([100, true, "Never"])
    );
    assert_eq!(
        cells("node.k8s.io", "RuntimeClass", json!({"handler": "h"})),
        json!(["h"])
    );
}

#[test]
fn flow_control_and_devices_show_their_numbers() {
    let group = "flowcontrol.apiserver.k8s.io";
    let schema = json!({"spec": {"priorityLevelConfiguration": {"name": "l"},
        "matchingPrecedence": 7, "distinguisherMethod": {"type": "ByUser"}},
        "status": {"conditions": [{"type": "Dangling", "status": "False"}]}});
    assert_eq!(
        cells(group, "FlowSchema", schema),
        json!(["l", 7, "ByUser", "False"])
    );
    let queuing = json!({"queues": 64, "handSize": 6, "queueLengthLimit": 50});
    let level = json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 30,
        "limitResponse": {"type": "Queue", "queuing": queuing}}}});
    let kind = "PriorityLevelConfiguration";
    assert_eq!(cells(group, kind, level), json!(["Limited", 30, 64, 6, 50]));
    let exempt = json!({"spec": {"type": "Exempt"}});
    assert_eq!(
        cells(group, kind, exempt),
        json!(["Exempt", "<none>", "<none>", "<none>", "<none>"])
    );
    let group = "resource.k8s.io";
    let claim = json!({"status": {"allocation": {}, "reservedFor": [{}]}});
    assert_eq!(
        cells(group, "ResourceClaim", claim),
        json!(["allocated,reserved"])
    );
    assert_eq!(cells(group, "ResourceClaim", json!({})), json!(["pending"]));
    let slice = json!({"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}});
    assert_eq!(cells(group, "ResourceSlice", slice), json!(["n", "d", "p"]));
    assert_eq!(cells(group, "DeviceClass", json!({})), json!([]));
}

#[test]
fn api_services_show_whether_they_are_there() {
    let shown = |spec: Value, conditions: Value| {
        let object = json!({"spec": spec, "status": {"conditions": conditions}});
        cells("apiregistration.k8s.io", "APIService", object)
    };
    let local = shown(
        json!({}),
        json!([{"type": "Available", "status": "True", "reason": "Local"}]),
    );
    assert_eq!(local, json!(["Local", "True"]));
    let remote = json!({"service": {"namespace": "ns", "name": "s"}});
    let failed = json!([{"type": "Available", "status": "False", "reason": "MissingEndpoints"}]);
    assert_eq!(
        shown(remote, failed),
        json!(["ns/s", "False (MissingEndpoints)"])
    );
    assert_eq!(shown(json!({}), json!([])), json!(["Local", "Unknown"]));
}
