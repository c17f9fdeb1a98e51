//! Refusals by the checks of containers, in a pod.

use serde_json::{Value, json};

use super::{Case, good_pod, refused};

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

/// Returns a container of this name with further members.
fn container(name: &str, members: &Value) -> Value {
    let mut container = json!({"name": name, "image": "i", "terminationMessagePolicy": "File",
        "imagePullPolicy": "Always"});
    for (member, value) in members.as_object().into_iter().flatten() {
        container[member.as_str()] = value.clone();
    }
    container
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

fn what_fields_containers_read() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            at("env"),
            json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.host"}}},
                {"name": "B", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.labels['a']"}}},
                {"name": "C", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name['a']"}}},
                {"name": "D", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.labels['-']"}}},
                {"name": "E", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.phase"}}},
                {"name": "F", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.nominatedNodeName"}}}]),
            &[
                "spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.labels['a']\": error converting fieldPath: unsupported pod version: v2",
                "spec.containers[0].env[2].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name['a']\": error converting fieldPath: field label does not support subscript: metadata.name['a']",
                "spec.containers[0].env[3].valueFrom.fieldRef: Invalid value: \"-\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                "spec.containers[0].env[4].valueFrom.fieldRef.fieldPath: Unsupported value: \"status.phase\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
                "spec.containers[0].env[5].valueFrom.fieldRef.fieldPath: Invalid value: \"status.nominatedNodeName\": error converting fieldPath: field label not supported: status.nominatedNodeName",
            ],
        ),
        (
            at("volumeMounts"),
            json!([{"name": "v", "mountPath": "/v", "subPath": "/a", "subPathExpr": "/b"}]),
            &[
                "spec.containers[0].volumeMounts.subPath: Invalid value: \"/a\": must be a relative path",
                "spec.containers[0].volumeMounts[0].subPathExpr: Invalid value: \"/b\": subPathExpr and subPath are mutually exclusive",
                "spec.containers[0].volumeMounts.subPathExpr: Invalid value: \"/b\": must be a relative path",
            ],
        ),
    ]
}

fn how_other_containers_are() -> Vec<(String, Value, &'static [&'static str])> {
    vec![
        (
            "spec.initContainers".into(),
            json!([
                container("x", &json!({})),
                container(
                    "y",
                    &json!({"ports": [
                {"containerPort": 1, "hostPort": 9, "protocol": "TCP"},
                {"containerPort": 2, "hostPort": 9, "protocol": "TCP"}]})
                )
            ]),
            &["spec.initContainers[0].ports[1].hostPort: Duplicate value: \"TCP//9\""],
        ),
        (
            "spec.initContainers".into(),
            json!([container("x", &json!({"restartPolicyRules": [{}]}))]),
            &[
                "spec.initContainers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are used",
            ],
        ),
        (
            "spec.initContainers".into(),
            json!([container(
                "x",
                &json!({"restartPolicy": "Never", "restartPolicyRules": vec![json!({"action": "Restart", "exitCodes": {"operator": "In"}}); 21]})
            )]),
            &[
                "spec.initContainers[0].restartPolicyRules: Too many: 21: must have at most 20 items",
            ],
        ),
        (
            "spec.ephemeralContainers".into(),
            json!([container(
                "x",
                &json!({"resources": {"limits": {"cpu": "1"}}, "lifecycle": {}, "ports": [],
                "restartPolicy": "Always"})
            )]),
            &[
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].restartPolicy: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container",
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
                "spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
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

/// Returns a place in the first container.
fn at(path: &str) -> String {
    format!("spec.containers.0/{path}")
}

fn what_containers_mount_and_read() -> Vec<(String, Value, &'static [&'static str])> {
    let file = |volume: &str| json!([{"name": "A", "valueFrom": {"fileKeyRef": {"key": "K", "volumeName": volume, "path": "f"}}}]);
    let mount = |mount: Value| {
        let mut whole = json!({"name": "v", "mountPath": "/v"});
        for (name, value) in mount.as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        json!([whole])
    };
    vec![
        (at("env"), file("v"), &[]),
        (
            at("env"),
            file("c"),
            &[
                "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Invalid value: \"c\": referenced volume must be of type emptyDir",
            ],
        ),
        (
            at("env"),
            file("x"),
            &["spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName: Not found: \"x\""],
        ),
        (
            at("env"),
            json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v2", "fieldPath": "metadata.name"}}}]),
            &[
                "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"metadata.name\": error converting fieldPath: unsupported pod version: v2",
            ],
        ),
        (
            at("volumeMounts"),
            mount(json!({"readOnly": true, "recursiveReadOnly": "Enabled"})),
            &[],
        ),
        (
            at("volumeMounts"),
            mount(json!({"recursiveReadOnly": "Enabled"})),
            &[
                "spec.containers[0].volumeMounts.recursiveReadOnly: Forbidden: may only be specified when readOnly is true",
            ],
        ),
        (
            at("volumeMounts"),
            mount(json!({"recursiveReadOnly": "x"})),
            &[
                "spec.containers[0].volumeMounts.recursiveReadOnly: Unsupported value: \"x\": supported values: \"Disabled\", \"Enabled\", \"IfPossible\"",
            ],
        ),
        (
            at("resources.claims"),
            json!([{"name": "c"}]),
            &[
                "spec.containers[0].resources.claims[0]: Not found: \"c\": must be one of the names in pod.spec.resourceClaims which is empty",
            ],
        ),
        (
            at("securityContext"),
            json!({"seccompProfile": {"type": "Unconfined", "localhostProfile": "p"}}),
            &[
                "spec.containers[0].securityContext.seccompProfile.localhostProfile: Invalid value: {\"Type\":\"Unconfined\",\"LocalhostProfile\":\"p\"}: can only be set when seccomp type is Localhost",
            ],
        ),
    ]
}

#[test]
fn pods_whose_containers_are_wrong() {
    for cases in [
        what_containers_are_and_serve(),
        what_containers_are_told(),
        what_fields_containers_read(),
        how_other_containers_are(),
        what_containers_mount(),
        what_containers_mount_and_read(),
        how_containers_live(),
    ] {
        let cases: Vec<Case<'_>> = cases
            .iter()
            .map(|(path, value, wrong)| (path.as_str(), value.clone(), *wrong))
            .collect();
        refused(crate::core::pod::validation::pod, &good_pod(), &cases);
    }
}
