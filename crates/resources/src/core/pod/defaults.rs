//! Defaults of pods and pod templates.
//!
//! Follows `SetDefaults_Pod`, `SetDefaults_PodSpec` and `SetDefaults_Container` in pkg/apis/core/v1/defaults.go, of
//! Kubernetes 1.36.

use ringwatch_apimachinery::path::{get, list, remove, set, text};
use serde_json::{Value, json};

use crate::core::field_reference::FIELD_REF;
use crate::core::image::fill_pull_policy;
use crate::core::volume::defaults::VOLUME;
use crate::defaults::DefaultRule::{self, Fill, In, Quantities, Run, Set, With, Zero};
use crate::defaults::Literal::{Empty, False, Int, Text, True};
use crate::validation::quantities::is_pages;
use crate::{RequestsOrLimits, resources_of_containers};

/// Resources with pod-level limits of which a pod may request less.
const SHARED: [&str; 2] = ["cpu", "memory"];

/// The paths of the ports that a pod in the host's network takes on the host.
const HOST_PORTS: &[&str] = &[
    "containers[].ports[].hostPort",
    "initContainers[].ports[].hostPort",
];

/// Defaults of a Pod, relative to the object.
pub(crate) const POD: &[DefaultRule] = &[
    Set("spec", Empty),
    In("spec", POD_SPEC),
    In("spec", &[Run(HOST_PORTS, open_host_ports)]),
    Set("spec.enableServiceLinks", True),
    Run(&["spec.terminationGracePeriodSeconds"], positive_grace),
    In("spec.containers[]", REQUESTS),
    In("spec.initContainers[]", REQUESTS),
    With(
        "spec.resources",
        &[In(
            "spec",
            &[
                Run(&["resources.limits"], whole_limits),
                Run(&["resources.requests"], whole_requests),
            ],
        )],
    ),
    In("status.conditions[]", CONDITION),
    In("status.containerStatuses[]", ALLOCATED),
    In("status.initContainerStatuses[]", ALLOCATED),
    In("status.ephemeralContainerStatuses[]", ALLOCATED),
    In("status", ALLOCATED),
    Run(&["status.podIP", "status.podIPs"], pair_pod_ips),
];

/// Defaults of the spec of a pod, on its own or in a template.
pub(super) const POD_SPEC: &[DefaultRule] = &[
    Set("restartPolicy", Text("Always")),
    Set("terminationGracePeriodSeconds", Int(30)),
    Set("dnsPolicy", Text("ClusterFirst")),
    Set("securityContext", Empty),
    Set("schedulerName", Text("default-scheduler")),
    Run(
        &["serviceAccountName", "serviceAccount"],
        pair_service_account,
    ),
    Quantities("overhead"),
    Quantities("resources.limits"),
    Quantities("resources.requests"),
    In("containers[]", CONTAINER),
    In("initContainers[]", CONTAINER),
    In("ephemeralContainers[]", CONTAINER),
    In("volumes[]", VOLUME),
];

/// Defaults of a pod's conditions, whose times are written even if there are none.
const CONDITION: &[DefaultRule] = &[
    Set("lastProbeTime", crate::defaults::Literal::Null),
    Set("lastTransitionTime", crate::defaults::Literal::Null),
];

/// Defaults of the resources in the status of a container or a pod.
const ALLOCATED: &[DefaultRule] = &[
    Quantities("allocatedResources"),
    Quantities("resources.limits"),
    Quantities("resources.requests"),
];

const CONTAINER: &[DefaultRule] = &[
    Set("resources", Empty),
    Quantities("resources.limits"),
    Quantities("resources.requests"),
    Set("terminationMessagePath", Text("/dev/termination-log")),
    Set("terminationMessagePolicy", Text("File")),
    Fill("imagePullPolicy", pull_policy),
    In("ports[]", &[Set("protocol", Text("TCP"))]),
    In("env[].valueFrom.fieldRef", FIELD_REF),
    In("env[].valueFrom.fileKeyRef", &[Set("optional", False)]),
    In("livenessProbe", PROBE),
    In("readinessProbe", PROBE),
    In("startupProbe", PROBE),
    In("lifecycle.postStart.httpGet", HTTP_GET),
    In("lifecycle.preStop.httpGet", HTTP_GET),
];

const PROBE: &[DefaultRule] = &[
    Set("timeoutSeconds", Int(1)),
    Set("periodSeconds", Int(10)),
    Set("successThreshold", Int(1)),
    Set("failureThreshold", Int(3)),
    In("httpGet", HTTP_GET),
    In("grpc", &[Set("service", Text(""))]),
];

const HTTP_GET: &[DefaultRule] = &[Set("path", Text("/")), Set("scheme", Text("HTTP"))];

const REQUESTS: &[DefaultRule] = &[With(
    "resources.limits",
    &[Fill("resources.requests", request_the_limits)],
)];

/// Sets the pull policy of a container: `Always` for the tag `latest`, else `IfNotPresent`.
fn pull_policy(container: &mut Value) {
    fill_pull_policy(container, "imagePullPolicy", "image");
}

/// Sets missing requests of a container to its limits.
fn request_the_limits(container: &mut Value) {
    let limits = get(container, "resources.limits").and_then(Value::as_object);
    for (name, limit) in limits.cloned().unwrap_or_default() {
        let Some(resources) = container
            .get_mut("resources")
            .and_then(Value::as_object_mut)
        else {
            return;
        };
        let requests = resources
            .entry("requests")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
        if let Some(requests) = requests.as_object_mut() {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// Sets missing pod-level limits of huge pages to those of the containers together, in a pod with pod-level resources.
/// Page sizes that the pod requests are left alone.
fn whole_limits(spec: &mut Value) {
    let [limits, requests] =
        ["limits", "requests"].map(|which| crate::ResourceList::read(&spec["resources"][which]));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    let of_containers = resources_of_containers(spec, RequestsOrLimits::Limits).to_value();
    fill(spec, RequestsOrLimits::Limits, &of_containers, |name| {
        is_pages(name) && requests.get(name).is_none()
    });
}

/// Sets missing pod-level requests in a pod with pod-level limits: CPU and memory to the requests of the containers
/// together, then CPU, memory and huge pages that are still missing to the limits.
fn whole_requests(spec: &mut Value) {
    let limits = spec["resources"]["limits"].clone();
    if crate::ResourceList::read(&limits).is_empty() {
        return;
    }
    let of_containers = resources_of_containers(spec, RequestsOrLimits::Requests).to_value();
    fill(spec, RequestsOrLimits::Requests, &of_containers, |name| {
        SHARED.contains(&name)
    });
    fill(spec, RequestsOrLimits::Requests, &limits, |name| {
        SHARED.contains(&name) || is_pages(name)
    });
}

/// Adds quantities of wanted resources to the pod-level ones, without replacing any. Those stay as they are written.
fn fill(spec: &mut Value, which: RequestsOrLimits, amounts: &Value, wanted: impl Fn(&str) -> bool) {
    let amounts = amounts.as_object().into_iter().flatten();
    let mut missing = amounts.filter(|(name, _)| wanted(name)).peekable();
    if missing.peek().is_none() {
        return;
    }
    let there = &mut spec["resources"][which.member()];
    if !there.is_object() {
        *there = json!({});
    }
    for (name, amount) in missing {
        let there = there.as_object_mut();
        there.map(|it| it.entry(name).or_insert_with(|| amount.clone()));
    }
}

/// Sets the host ports of a pod in the host's network to its container ports. Templates are left alone: the pods that
/// are made of them get the ports.
fn open_host_ports(spec: &mut Value) {
    if get(spec, "hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                let number = port.get("containerPort").cloned();
                let taken = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0);
                if let (0, Some(number)) = (taken, number) {
                    set(port, "hostPort", number);
                }
            }
        }
    }
}

/// Makes a negative grace period one second, in pods and not in templates. Follows `Convert_v1_Pod_To_core_Pod`.
fn positive_grace(pod: &mut Value) {
    const GRACE: &str = "spec.terminationGracePeriodSeconds";
    let seconds = get(pod, GRACE).and_then(Value::as_i64);
    if seconds.is_some_and(|seconds| seconds < 0) {
        set(pod, GRACE, json!(1));
    }
}

/// Makes `serviceAccountName` and the deprecated `serviceAccount` equal; if both are given, `serviceAccountName` wins.
fn pair_service_account(spec: &mut Value) {
    let name = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if name.is_empty() {
        remove(spec, "serviceAccountName");
        remove(spec, "serviceAccount");
        return;
    }
    let name = Value::from(name);
    set(spec, "serviceAccount", name.clone());
    set(spec, "serviceAccountName", name);
}

/// Makes `status.podIP` and the first of `status.podIPs` equal; if both are given and differ, `status.podIP` wins.
fn pair_pod_ips(pod: &mut Value) {
    let first = list(pod, "status.podIPs").first();
    let first = first.and_then(|entry| entry.get("ip")).cloned();
    match (get(pod, "status.podIP").cloned(), first) {
        (None, Some(first)) => set(pod, "status.podIP", first),
        (Some(alone), first) if first.as_ref() != Some(&alone) => {
            set(pod, "status.podIPs", json!([{"ip": alone}]));
        }
        _ => {}
    }
}

/// Defaults of a pod template.
pub(crate) const TEMPLATE: &[DefaultRule] = &[
    Zero("metadata", Empty),
    Set("spec", Empty),
    In("spec", POD_SPEC),
];

/// Defaults of PodTemplates.
pub(crate) const POD_TEMPLATE: &[DefaultRule] = &[Set("template", Empty), In("template", TEMPLATE)];

/// The rule for kinds whose pod template is `spec.template`.
pub(crate) const SPEC_TEMPLATE: DefaultRule = In("spec.template", TEMPLATE);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults::apply;

    #[test]
    fn a_negative_grace_period_is_a_second_in_pods_alone() {
        for (given, stored) in [(-1, 1), (-30, 1), (0, 0), (5, 5)] {
            let mut pod = json!({"spec": {"terminationGracePeriodSeconds": given}});
            apply(POD, &mut pod);
            assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], stored);
            let mut template = json!({"terminationGracePeriodSeconds": given});
            apply(POD_SPEC, &mut template);
            assert_eq!(template["terminationGracePeriodSeconds"], given);
        }
    }

    #[test]
    fn a_pod_is_completed() {
        let mut pod = json!({"spec": {"containers": [
            {"name": "c", "image": "nginx:1.27", "ports": [{"containerPort": 80}]}]}});
        apply(POD, &mut pod);
        assert_eq!(
            pod["spec"],
            json!({
                "containers": [{
                    "name": "c",
                    "image": "nginx:1.27",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
                "enableServiceLinks": true,
            })
        );
    }

    #[test]
    fn amounts_are_whole_thousandths() {
        let mut pod = json!({"spec": {"overhead": {"cpu": "1u"}, "containers": [
            {"resources": {"limits": {"cpu": "2500u", "memory": "1Gi"}}}]},
            "status": {"containerStatuses": [{"allocatedResources": {"cpu": "10n"}}]}});
        apply(POD, &mut pod);
        let rounded = json!({"cpu": "3m", "memory": "1Gi"});
        let resources = &pod["spec"]["containers"][0]["resources"];
        assert_eq!(*resources, json!({"limits": rounded, "requests": rounded}));
        assert_eq!(pod["spec"]["overhead"]["cpu"], "1m");
        let given = &pod["status"]["containerStatuses"][0]["allocatedResources"];
        assert_eq!(given["cpu"], "1m");
    }

    /// Returns the resources of a pod as a whole, with these containers, after defaulting.
    fn whole(resources: Value, containers: Value, init: Value) -> Value {
        let mut pod = json!({"spec": {"resources": resources, "containers": containers,
            "initContainers": init}});
        apply(POD, &mut pod);
        pod["spec"]["resources"].take()
    }

    #[test]
    fn a_pod_requests_what_its_containers_do_or_what_it_limits() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let none = || json!([]);
        let limits = json!({"cpu": "2", "memory": "1Gi"});
        assert_eq!(
            whole(json!({"limits": limits}), json!([{}]), none()),
            json!({"limits": limits, "requests": limits})
        );
        assert_eq!(
            whole(
                json!({"limits": limits}),
                json!([cpu("500m"), cpu("250m")]),
                none()
            ),
            json!({"limits": limits, "requests": {"cpu": "750m", "memory": "1Gi"}})
        );
        assert_eq!(
            whole(
                json!({"limits": {"memory": "1Gi"}}),
                json!([cpu("1")]),
                json!([cpu("2")])
            ),
            json!({"limits": {"memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}),
            "what an init container needs counts, and what is not limited as well"
        );
        let said = json!({"limits": limits, "requests": {"cpu": "1"}});
        assert_eq!(
            whole(said, json!([cpu("500m")]), none()),
            json!({"limits": limits, "requests": {"cpu": "1", "memory": "1Gi"}})
        );
        for silent in [json!({}), json!({"requests": {"cpu": "1"}})] {
            assert_eq!(whole(silent.clone(), json!([cpu("500m")]), none()), silent);
        }
    }

    #[test]
    fn a_pod_limits_the_huge_pages_of_its_containers() {
        let pages = json!([{"resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}},
            {"resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}}]);
        assert_eq!(
            whole(json!({"limits": {"cpu": "3"}}), pages.clone(), json!([])),
            json!({"limits": {"cpu": "3", "hugepages-2Mi": "6Mi"},
                "requests": {"cpu": "2", "hugepages-2Mi": "6Mi"}})
        );
        assert_eq!(whole(json!({}), pages.clone(), json!([])), json!({}));
        let given = json!({"requests": {"hugepages-2Mi": "6Mi"}});
        assert_eq!(whole(given.clone(), pages, json!([])), given);
    }

    #[test]
    fn limits_are_requested_and_host_ports_opened() {
        let mut pod = json!({"spec": {"hostNetwork": true, "serviceAccount": "old", "containers": [
            {"name": "c", "image": "i", "ports": [{"containerPort": 80}],
             "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}]}});
        apply(POD, &mut pod);
        let container = &pod["spec"]["containers"][0];
        assert_eq!(
            container["resources"]["requests"],
            json!({"cpu": "500m", "memory": "1Gi"})
        );
        assert_eq!(container["ports"][0]["hostPort"], 80);
        assert_eq!(pod["spec"]["serviceAccountName"], "old");
    }
}
