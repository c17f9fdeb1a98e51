//! Tests of validation, family by family: a valid object is changed at one place, and the errors are compared.

use ringwatch_apimachinery::path::{remove, set};
use serde_json::{Value, json};

use super::*;

/// A change of an object, and what is wrong afterwards.
type Case<'a> = (&'a str, Value, &'a [&'a str]);

/// Checks that nothing is wrong with an object, and with each change what the case says.
fn refused(check: Check, good: &Value, cases: &[Case<'_>]) {
    assert_eq!(messages(&found(check, good)), [""; 0], "{good}");
    for (path, value, wrong) in cases {
        let changed = with(good, path, value.clone());
        assert_eq!(messages(&found(check, &changed)), *wrong, "{path} {value}");
    }
}

/// The object with another value at a path, or without one if the value is null. A number in the
/// path leads to an item.
fn with(object: &Value, path: &str, value: Value) -> Value {
    let mut changed = object.clone();
    let steps: Vec<&str> = path.split('/').collect();
    let (last, lists) = steps.split_last().expect("a path");
    let mut at = &mut changed;
    for list in lists {
        at = at
            .pointer_mut(&format!("/{}", list.replace('.', "/")))
            .expect("an item");
    }
    if value.is_null() {
        drop(remove(at, last));
    } else {
        set(at, last, value);
    }
    changed
}

fn good_pod() -> Value {
    json!({"metadata": {"name": "p"}, "spec": {
        "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
        "serviceAccountName": "default",
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "d"}}],
        "containers": [{"name": "a", "image": "i", "terminationMessagePolicy": "File",
            "imagePullPolicy": "Always", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}],
            "env": [{"name": "A", "value": "b"}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "successThreshold": 1}}],
        "initContainers": [{"name": "b", "image": "i"}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}],
    }})
}

fn what_containers_are_and_serve() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            "spec.containers".into(),
            Value::Null,
            &["spec.containers: Required value"],
        ),
        (
            at("image"),
            json!(""),
            &["spec.containers[0].image: Required value"],
        ),
        (
            at("image"),
            json!(" i"),
            &[
                "spec.containers[0].image: Invalid value: \" i\": must not have leading or trailing whitespace",
            ],
        ),
        (
            at("name"),
            json!("b"),
            &["spec.initContainers[0].name: Duplicate value: \"b\""],
        ),
        (
            at("imagePullPolicy"),
            json!("Sometimes"),
            &[
                "spec.containers[0].imagePullPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"IfNotPresent\", \"Never\"",
            ],
        ),
    ]
}

fn what_containers_are_told() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            at("ports"),
            json!([{"containerPort": 70000, "protocol": "tcp", "name": "Web"}, {"hostPort": -1}]),
            &[
                "spec.containers[0].ports[0].name: Invalid value: \"Web\": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
                "spec.containers[0].ports[0].protocol: Unsupported value: \"tcp\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
                "spec.containers[0].ports[1].containerPort: Required value",
                "spec.containers[0].ports[1].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
            ],
        ),
        (
            at("ports"),
            json!([{"containerPort": 1, "hostPort": 9, "protocol": "TCP"},
                {"containerPort": 2, "hostPort": 9, "protocol": "TCP"}]),
            &["spec.containers[0].ports[1].hostPort: Duplicate value: \"TCP//9\""],
        ),
        (
            at("env"),
            json!([{"value": "x"}, {"name": "A=B"}, {"name": "C", "value": "x", "valueFrom": {
                "fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostname"}}},
                {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s"}}}]),
            &[
                "spec.containers[0].env[0].name: Required value",
                "spec.containers[0].env[1].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
                "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Invalid value: \"status.hostname\": error converting fieldPath: field label not supported: status.hostname",
                "spec.containers[0].env[2].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty",
                "spec.containers[0].env[3].valueFrom.secretKeyRef.key: Required value",
            ],
        ),
    ]
}

fn what_containers_mount() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            at("envFrom"),
            json!([{}]),
            &[
                "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`",
            ],
        ),
        (
            at("volumeMounts"),
            json!([{"name": "w", "mountPath": "/v"}, {"name": "v", "mountPath": "/v", "subPath": "../x"}]),
            &[
                "spec.containers[0].volumeMounts[0].name: Not found: \"w\"",
                "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/v\": must be unique",
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"../x\": must not contain '..'",
            ],
        ),
        (
            at("volumeDevices"),
            json!([{"name": "v", "devicePath": "/dev/x"}]),
            &[
                "spec.containers[0].volumeMounts[0].name: Invalid value: \"v\": must not already exist in volumeDevices",
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode",
                "spec.containers[0].volumeDevices[0].name: Invalid value: \"v\": must not already exist in volumeMounts",
            ],
        ),
    ]
}

fn how_containers_live() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            at("livenessProbe"),
            json!({"successThreshold": 2, "periodSeconds": -1}),
            &[
                "spec.containers[0].livenessProbe: Required value: must specify a handler type",
                "spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1",
            ],
        ),
        (
            at("livenessProbe"),
            json!({"successThreshold": 1, "exec": {}, "tcpSocket": {"port": 0}}),
            &[
                "spec.containers[0].livenessProbe.exec.command: Required value",
                "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
            ],
        ),
        (
            at("lifecycle"),
            json!({"preStop": {"sleep": {"seconds": 31}}}),
            &[
                "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
            ],
        ),
        (
            at("securityContext"),
            json!({"runAsUser": -1, "allowPrivilegeEscalation": false, "privileged": true}),
            &[
                "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 4294967295, inclusive",
                "spec.containers[0].securityContext: Invalid value: {\"allowPrivilegeEscalation\":false,\"privileged\":true,\"runAsUser\":-1}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            ],
        ),
        (
            "spec.initContainers.0/readinessProbe".into(),
            json!({"exec": {"command": ["x"]}}),
            &[
                "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always",
            ],
        ),
    ]
}

/// A place in the first container.
fn at(path: &str) -> String {
    format!("spec.containers.0/{path}")
}

#[test]
fn pods_whose_containers_are_wrong() {
    for cases in [
        what_containers_are_and_serve(),
        what_containers_are_told(),
        what_containers_mount(),
        how_containers_live(),
    ] {
        let cases: Vec<Case<'_>> = cases
            .iter()
            .map(|(path, value, wrong)| (path.as_str(), value.clone(), *wrong))
            .collect();
        refused(crate::core::pod::validation::pod, &good_pod(), &cases);
    }
}

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
        json!({"spec": {shared: true, "securityContext": {"sysctls": [
            {"name": "net.ipv4.tcp_syncookies"}, {"name": "net/ipv4/conf/eth0.1/rp_filter"},
            {"name": "kernel.shm_rmid_forced"}, {"name": "fs.mqueue.msg_max"},
            {"name": "kernel.panic"}, {"name": "network.a"}]}}})
    };
    let refused = |shared: &str, places: [usize; 2], settings: [&str; 2]| {
        let line = |(place, setting): (usize, &str)| {
            format!(
                "spec.securityContext.sysctls[{place}].name: Invalid value: \"{setting}\": may not be specified when '{shared}' is true"
            )
        };
        let lines: Vec<_> = places.into_iter().zip(settings).map(line).collect();
        assert_eq!(
            messages(&found(crate::core::pod::validation::new_pod, &pod(shared))),
            lines
        );
    };
    let net = ["net.ipv4.tcp_syncookies", "net/ipv4/conf/eth0.1/rp_filter"];
    refused("hostNetwork", [0, 1], net);
    refused(
        "hostIPC",
        [2, 3],
        ["kernel.shm_rmid_forced", "fs.mqueue.msg_max"],
    );
    assert_eq!(
        messages(&found(
            crate::core::pod::validation::new_pod,
            &pod("hostPID")
        )),
        [""; 0]
    );
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

fn good_deployment() -> Value {
    let mut pod = good_pod();
    pod["metadata"] = json!({"labels": {"a": "b"}});
    json!({"metadata": {"name": "d"}, "spec": {"replicas": 1, "progressDeadlineSeconds": 600,
        "selector": {"matchLabels": {"a": "b"}}, "template": pod,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}})
}

#[test]
fn deployments_that_are_wrong() {
    refused(
        crate::apps::validation::deployment,
        &good_deployment(),
        &[
            (
                "spec.selector",
                Value::Null,
                &["spec.selector: Required value"],
            ),
            (
                "spec.selector",
                json!({}),
                &["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            ),
            (
                "spec.template.metadata.labels",
                json!({"a": "c"}),
                &[
                    "spec.template.metadata.labels: Invalid value: {\"a\":\"c\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                "spec.replicas",
                json!(-1),
                &["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                "spec.template.spec.restartPolicy",
                json!("Never"),
                &[
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                ],
            ),
            (
                "spec.strategy",
                json!({"type": "Odd"}),
                &[
                    "spec.strategy: Unsupported value: {\"Type\":\"Odd\",\"RollingUpdate\":null}: supported values: \"Recreate\", \"RollingUpdate\"",
                ],
            ),
            (
                "spec.strategy",
                json!({"type": "Recreate", "rollingUpdate": {}}),
                &[
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
                ],
            ),
            (
                "spec.strategy.rollingUpdate",
                json!({"maxSurge": 0, "maxUnavailable": "0%"}),
                &[
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
                ],
            ),
            (
                "spec.minReadySeconds",
                json!(600),
                &[
                    "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
                ],
            ),
        ],
    );
}

#[test]
fn stateful_sets_mount_their_claims_and_change_little() {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}});
    let mut good = good_deployment();
    set(&mut good, "spec.podManagementPolicy", json!("Parallel"));
    set(
        &mut good,
        "spec.updateStrategy",
        json!({"type": "OnDelete"}),
    );
    set(&mut good, "spec.volumeClaimTemplates", json!([claim]));
    let mounts = json!([{"name": "data", "mountPath": "/data"}]);
    let good = with(
        &good,
        "spec.template.spec.containers.0/volumeMounts",
        mounts,
    );
    refused(
        crate::apps::validation::stateful_set,
        &good,
        &[
            (
                "spec.volumeClaimTemplates",
                json!([]),
                &["spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"data\""],
            ),
            (
                "spec.podManagementPolicy",
                json!("Odd"),
                &[
                    "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
                ],
            ),
            (
                "spec.updateStrategy",
                json!({"type": "Odd"}),
                &[
                    "spec.updateStrategy: Invalid value: {\"Type\":\"Odd\",\"RollingUpdate\":null}: must be 'RollingUpdate' or 'OnDelete'",
                ],
            ),
        ],
    );
    let changed = |path: &str, value: Value| {
        let new = with(&good, path, value);
        found_in_change(crate::apps::validation::stateful_set_update, &new, &good).len()
    };
    assert_eq!(changed("spec.replicas", json!(3)), 0);
    assert_eq!(changed("spec.serviceName", json!("s")), 1);
}

fn good_job() -> Value {
    let labels = json!({"controller-uid": "u", "job-name": "j",
        "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j"});
    let mut pod = good_pod();
    pod["metadata"] = json!({"labels": labels});
    set(&mut pod, "spec.restartPolicy", json!("Never"));
    json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"completions": 1, "parallelism": 1,
        "completionMode": "NonIndexed", "podReplacementPolicy": "TerminatingOrFailed",
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "template": pod}})
}

#[test]
fn jobs_that_are_wrong() {
    let good = good_job();
    refused(
        crate::batch::validation::job,
        &good,
        &[
            (
                "spec.template.spec.restartPolicy",
                json!("Always"),
                &[
                    "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
                ],
            ),
            (
                "spec.backoffLimit",
                json!(-1),
                &["spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                "spec.completionMode",
                json!("Odd"),
                &[
                    "spec.completionMode: Unsupported value: \"Odd\": supported values: \"NonIndexed\", \"Indexed\"",
                ],
            ),
            (
                "spec.backoffLimitPerIndex",
                json!(1),
                &["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
            ),
            (
                "spec.podFailurePolicy",
                json!({"rules": [{"action": "Ignore"}]}),
                &[
                    "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
                    "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": supported values: \"Failed\"",
                ],
            ),
        ],
    );
    let fields = |path: &str, value: Value| -> Vec<String> {
        let new = with(&good, path, value);
        let errors = found_in_change(crate::batch::validation::job_update, &new, &good);
        errors.into_iter().map(|error| error.field).collect()
    };
    assert_eq!(fields("spec.parallelism", json!(3)), [""; 0]);
    assert_eq!(fields("spec.completions", json!(3)), ["spec.completions"]);
    assert_eq!(
        fields("spec.template.spec.nodeName", json!("n")),
        ["spec.template"]
    );
    assert_eq!(fields("spec.selector", Value::Null), ["spec.selector"]);
    let suspended = with(&good, "spec.suspend", json!(true));
    let moved = with(
        &suspended,
        "spec.template.spec.nodeSelector",
        json!({"a": "b"}),
    );
    assert_eq!(
        found_in_change(crate::batch::validation::job_update, &moved, &suspended),
        []
    );
}

#[test]
fn cron_jobs_that_are_wrong() {
    let mut job = good_job();
    drop(remove(&mut job, "spec.selector"));
    let good = json!({"metadata": {"name": "c"}, "spec": {"schedule": "*/5 * * * *",
        "concurrencyPolicy": "Allow", "jobTemplate": {"spec": job["spec"]}}});
    refused(
        crate::batch::validation::cron_job,
        &good,
        &[
            (
                "spec.schedule",
                json!(""),
                &["spec.schedule: Required value"],
            ),
            (
                "spec.schedule",
                json!("TZ=UTC 0 0 * * *"),
                &[
                    "spec.schedule: Invalid value: \"TZ=UTC 0 0 * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ],
            ),
            (
                "spec.timeZone",
                json!("Nowhere"),
                &["spec.timeZone: Invalid value: \"Nowhere\": unknown time zone Nowhere"],
            ),
            (
                "spec.concurrencyPolicy",
                json!("Odd"),
                &[
                    "spec.concurrencyPolicy: Unsupported value: \"Odd\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
                ],
            ),
        ],
    );
}

mod access;
mod admission;
mod api_services;
mod autoscaling;
mod claims;
mod cluster;
mod endpoints;
mod flowcontrol;
mod networking;
mod quotas;
mod storage;
