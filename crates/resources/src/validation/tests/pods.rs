//! Refusals by the checks of pods as a whole.

use ringwatch_apimachinery::FieldError;
use serde_json::json;

use super::*;

#[test]
fn pods_that_are_wrong_as_a_whole() {
    refused(
        crate::core::pod::validation::pod,
        &good_pod(),
        &[
            (
                "spec.restartPolicy",
                json!("Sometimes"),
                &[
                    "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
                ],
            ),
            (
                "spec.volumes",
                json!([{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}},
                    {"name": "W", "configMap": {}}, {"name": "x"}]),
                &[
                    "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
                    "spec.volumes[1].configMap.name: Required value",
                    "spec.volumes[1].name: Invalid value: \"W\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                    "spec.volumes[2]: Required value: must specify a volume type",
                    "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
                ],
            ),
            (
                "spec.volumes",
                json!([{"name": "v", "projected": {"sources": [{},
                    {"serviceAccountToken": {"expirationSeconds": 600}},
                    {"downwardAPI": {"items": [{"path": "a"}, {"path": "b"}]}}]}}]),
                &[
                    "spec.volumes[0].projected.path: Required value",
                    "spec.volumes[0].projected.sources[2].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
                    "spec.volumes[0].projected.sources[2].downwardAPI: Required value: one of fieldRef and resourceFieldRef is required",
                    "spec.containers[0].volumeMounts[0].name: Not found: \"v\"",
                ],
            ),
            (
                "spec.activeDeadlineSeconds",
                json!(0),
                &[
                    "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
                ],
            ),
            (
                "spec.dnsPolicy",
                json!("None"),
                &[
                    "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
                ],
            ),
            (
                "spec.preemptionPolicy",
                json!(""),
                &["spec.preemptionPolicy: Required value"],
            ),
            (
                "spec.hostAliases",
                json!([{"ip": "1.2.3"}]),
                &[
                    "spec.hostAliases[0].ip: Invalid value: \"1.2.3\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                ],
            ),
            (
                "spec.hostNetwork",
                json!(true),
                &[
                    "spec.containers[0].ports[0].hostPort: Invalid value: 0: must match `containerPort` when `hostNetwork` is true",
                ],
            ),
        ],
    );
}

#[test]
fn pods_whose_disks_or_kernel_settings_are_wrong() {
    refused(
        crate::core::pod::validation::pod,
        &good_pod(),
        &[
            (
                "spec.volumes",
                json!([{"name": "v", "emptyDir": {}}, {"name": "c", "azureDisk":
                    {"diskName": "d", "diskURI": "x", "cachingMode": "", "kind": ""}}]),
                &[
                    "spec.volumes[1].azureDisk.cachingMode: Unsupported value: \"\": supported values: \"None\", \"ReadOnly\", \"ReadWrite\"",
                    "spec.volumes[1].azureDisk.kind: Unsupported value: \"\": supported values: \"Dedicated\", \"Managed\", \"Shared\"",
                    "spec.volumes[1].azureDisk.diskURI: Unsupported value: \"x\": supported values: \"https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd\"",
                ],
            ),
            (
                "spec.volumes",
                json!([{"name": "v", "emptyDir": {}}, {"name": "c", "azureDisk":
                    {"diskName": "d", "diskURI": "/x", "kind": "Managed"}}]),
                &[
                    "spec.volumes[1].azureDisk.diskURI: Unsupported value: \"/x\": supported values: \"/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}\"",
                ],
            ),
            (
                "spec.securityContext.sysctls",
                json!([{"name": "net.ipv4/tcp_syncookies"}, {"name": "Net"}, {"name": "a..b"}, {"name": "-a"},
                    {"name": ""}, {"name": "net.ipv4/tcp_syncookies"}]),
                &[
                    "spec.securityContext.sysctls[1].name: Invalid value: \"Net\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                    "spec.securityContext.sysctls[2].name: Invalid value: \"a..b\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                    "spec.securityContext.sysctls[3].name: Invalid value: \"-a\": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$",
                    "spec.securityContext.sysctls[4].name: Required value",
                    "spec.securityContext.sysctls[5].name: Duplicate value: \"net.ipv4/tcp_syncookies\"",
                ],
            ),
        ],
    );
}

#[test]
fn pods_in_namespaces_of_the_host_do_not_change_its_kernel_settings() {
    let pod = |shared: &str| {
        let mut pod = good_pod();
        pod["spec"][shared] = json!(true);
        pod["spec"]["securityContext"] = json!({"sysctls": [
            {"name": "net.ipv4.tcp_syncookies"}, {"name": "net/ipv4/conf/eth0.1/rp_filter"},
            {"name": "kernel.shm_rmid_forced"}, {"name": "fs.mqueue.msg_max"},
            {"name": "kernel.panic"}, {"name": "network.a"}]});
        pod
    };
    let check = crate::core::pod::validation::pod;
    let of_settings = |errors: &[FieldError]| {
        let mut lines = messages(errors);
        lines.retain(|line| line.contains("sysctls"));
        lines
    };
    let refused = |shared: &str, places: [usize; 2], settings: [&str; 2]| {
        let line = |(place, setting): (usize, &str)| {
            format!(
                "spec.securityContext.sysctls[{place}].name: Invalid value: \"{setting}\": may not be specified when '{shared}' is true"
            )
        };
        let lines: Vec<_> = places.into_iter().zip(settings).map(line).collect();
        let pod = pod(shared);
        assert_eq!(of_settings(&found(check, &pod)), lines);
        let stored = found_in_update(check, &pod, &pod);
        assert_eq!(of_settings(&stored), [""; 0]);
    };
    let net = ["net.ipv4.tcp_syncookies", "net/ipv4/conf/eth0.1/rp_filter"];
    refused("hostNetwork", [0, 1], net);
    refused(
        "hostIPC",
        [2, 3],
        ["kernel.shm_rmid_forced", "fs.mqueue.msg_max"],
    );
    assert_eq!(of_settings(&found(check, &pod("hostPID"))), [""; 0]);
}

#[test]
fn pods_with_users_of_their_own_share_little() {
    let why = "when `hostUsers` is false";
    let mut pod = good_pod();
    pod["spec"]["hostUsers"] = json!(false);
    let check = crate::core::pod::validation::pod;
    assert_eq!(messages(&found(check, &pod)), [""; 0]);
    for shared in ["hostPID", "hostIPC"] {
        pod["spec"][shared] = json!(true);
    }
    pod["spec"]["initContainers"][0]["volumeDevices"] = json!([{"name": "c", "devicePath": "/d"}]);
    let of_namespaces = [
        format!("spec.HostPID: Forbidden: {why}"),
        format!("spec.HostIPC: Forbidden: {why}"),
    ];
    let of_devices = format!("spec.initContainers[0].volumeDevices: Forbidden: {why}");
    let [pid, ipc] = of_namespaces.clone();
    assert_eq!(messages(&found(check, &pod)), [pid, ipc, of_devices]);
    let stored = found_in_update(check, &pod, &pod);
    assert_eq!(messages(&stored), of_namespaces);
}

#[test]
fn annotations_of_pods_are_checked_in_order() {
    let mirror = "kubernetes.io/config.mirror";
    let tolerations = "scheduler.alpha.kubernetes.io/tolerations";
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    let seccomp = "seccomp.security.alpha.kubernetes.io/pod";
    let mut pod = good_pod();
    pod["metadata"]["annotations"] = json!({mirror: "x", tolerations: r#"[{"Operator": "Equal"}]"#,
        cost: "x", seccomp: "x", "container.apparmor.security.beta.kubernetes.io/a": "x"});
    let check = crate::core::pod::validation::pod;
    let fields = |errors: Vec<FieldError>| -> Vec<String> {
        errors.into_iter().map(|it| it.field).collect()
    };
    let at = "metadata.annotations";
    let expected = [
        format!("{at}[{mirror}]"),
        format!("{at}.{tolerations}[0].operator"),
        format!("{at}[{cost}]"),
        format!("{at}.{seccomp}"),
        format!("{at}[container.apparmor.security.beta.kubernetes.io/a]"),
    ];
    assert_eq!(fields(found(check, &pod)), expected);
    let mut rest = expected.to_vec();
    rest.remove(2);
    assert_eq!(fields(found_in_update(check, &pod, &pod)), rest);
    pod["metadata"]["annotations"] = json!({tolerations: "{}"});
    assert_eq!(
        messages(&found(check, &pod)),
        [format!(
            "{at}: Invalid value: {tolerations:?}: json: cannot unmarshal object into Go value of type []core.Toleration"
        )]
    );
}

#[test]
fn rules_that_came_later_do_not_hold_for_stored_pods() {
    let check = crate::core::pod::validation::pod;
    let bad = json!(["a b"]);
    let selector = json!({"matchExpressions": [{"key": "a", "operator": "In", "values": bad}]});
    let term = json!({"topologyKey": "t", "labelSelector": selector});
    for (path, value) in [
        (
            "spec.affinity",
            json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}),
        ),
        (
            "spec.affinity",
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [selector]}}}),
        ),
        (
            "spec.topologySpreadConstraints",
            json!([{"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]),
        ),
        (
            "spec.initContainers.0/resizePolicy",
            json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]),
        ),
        (
            "spec.securityContext",
            json!({"seLinuxChangePolicy": "MountOption"}),
        ),
    ] {
        let pod = with(&good_pod(), path, value);
        let errors = found(check, &pod);
        assert_eq!(errors.len(), 1, "{path}: {errors:?}");
        assert_eq!(found_in_update(check, &pod, &good_pod()), errors);
        assert_eq!(found_in_update(check, &pod, &pod), [], "{path}");
    }
}

#[test]
fn pods_that_are_wrong_about_their_nodes() {
    refused(
        crate::core::pod::validation::pod,
        &good_pod(),
        &[
            (
                "spec.tolerations",
                json!([{"operator": "Equal", "value": "x"}, {"key": "a", "operator": "Exists",
                    "value": "y", "effect": "NoSchedule", "tolerationSeconds": 1}]),
                &[
                    "spec.tolerations[0].operator: Invalid value: \"Equal\": operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
                    "spec.tolerations[1].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set",
                    "spec.tolerations[1].operator: Invalid value: \"y\": value must be empty when `operator` is 'Exists'",
                ],
            ),
            (
                "spec.tolerations",
                json!([{"key": "a", "operator": "Lt", "value": "1"}]),
                &[
                    "spec.tolerations[0].operator: Unsupported value: \"Lt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\"",
                ],
            ),
            (
                "spec.affinity",
                json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
                    "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 101, "podAffinityTerm": {"topologyKey": "t"}}]}}),
                &[
                    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
                    "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100",
                ],
            ),
            (
                "spec.topologySpreadConstraints",
                json!([{"maxSkew": 0, "whenUnsatisfiable": "Never"}]),
                &[
                    "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
                    "spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty",
                    "spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: \"Never\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\"",
                ],
            ),
        ],
    );
}

#[test]
fn claims_hosts_and_what_pods_look_up() {
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let bad_override = format!("spec.hostnameOverride: Invalid value: \"A\": {subdomain}");
    let bad_credentials = format!(
        "spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: \"A\": {subdomain}"
    );
    refused(
        crate::core::pod::validation::pod,
        &good_pod(),
        &[
            ("spec.hostnameOverride", json!("A"), &[&bad_override]),
            (
                "spec.dnsConfig",
                json!({"searches": [".", "a.example.com.", "_b.c"]}),
                &[],
            ),
            (
                "spec.dnsConfig",
                json!({"searches": ["A"]}),
                &[
                    "spec.dnsConfig.searches[0]: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')",
                ],
            ),
            (
                "spec.overhead",
                json!({"x": "1"}),
                &[
                    "spec.overhead.limits[x]: Invalid value: \"x\": must be a standard resource type or fully qualified",
                    "spec.overhead.limits[x]: Invalid value: \"x\": must be a standard resource for containers",
                ],
            ),
            (
                "spec.overhead",
                json!({"hugepages-2Mi": "3Mi"}),
                &[
                    "spec.overhead.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                    "spec.overhead: Forbidden: HugePages require cpu or memory",
                ],
            ),
            (
                "spec.securityContext",
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": ""},
                    "appArmorProfile": {"type": "Localhost", "localhostProfile": "x".repeat(4096)}}),
                &[
                    "spec.securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes",
                ],
            ),
            (
                "spec.securityContext",
                json!({"windowsOptions": {"gmsaCredentialSpecName": "A"}}),
                &[&bad_credentials],
            ),
            (
                "spec.securityContext",
                json!({"seLinuxChangePolicy": "MountOption"}),
                &[
                    "spec.securityContext.seLinuxChangePolicy: Unsupported value: \"MountOption\": supported values: \"Recursive\"",
                ],
            ),
            (
                "spec.resourceClaims",
                json!([{"name": "c"}]),
                &[
                    "spec.resourceClaims[0]: Invalid value: {\"Name\":\"c\",\"ResourceClaimName\":null,\"ResourceClaimTemplateName\":null}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                ],
            ),
        ],
    );
}
