//! The tables of the Pod Security Standards: for each check what passes and what fails, and since when.

use serde_json::{Value, json};

use super::{Change, MINOR, changed, details};

/// Checks that a changed pod passes a level in all these minor versions.
fn passes(level: &str, minors: impl IntoIterator<Item = u64>, changes: &[Change]) {
    let pod = changed(changes);
    for minor in minors {
        let found = details(&format!("{level}:v1.{minor}"), &pod);
        assert_eq!(found, "", "{level}:v1.{minor} {changes:?}");
    }
}

/// Checks that a changed pod violates a level, with this alone, in all these minor versions.
fn fails(level: &str, minors: impl IntoIterator<Item = u64>, changes: &[Change], expected: &str) {
    let pod = changed(changes);
    for minor in minors {
        let found = details(&format!("{level}:v1.{minor}"), &pod);
        assert_eq!(found, expected, "{level}:v1.{minor} {changes:?}");
    }
}

const A: &str = "/spec/initContainers/0/securityContext";
const B: &str = "/spec/containers/0/securityContext";

#[test]
fn allow_privilege_escalation() {
    let a = "/spec/initContainers/0/securityContext/allowPrivilegeEscalation";
    let b = "/spec/containers/0/securityContext/allowPrivilegeEscalation";
    let windows = || ("/spec/os", json!({"name": "windows"}));
    for value in [json!(true), Value::Null] {
        passes("baseline", 0..=MINOR, &[(a, value.clone())]);
        passes("restricted", 0..8, &[(a, value.clone())]);
        let one = "allowPrivilegeEscalation != false (container \"a\" must set \
            securityContext.allowPrivilegeEscalation=false)";
        fails("restricted", 8..=MINOR, &[(a, value.clone())], one);
        let both = [(a, value.clone()), (b, value.clone())];
        let two = "allowPrivilegeEscalation != false (containers \"a\", \"b\" must set \
            securityContext.allowPrivilegeEscalation=false)";
        fails("restricted", 8..=MINOR, &both, two);
        fails("restricted", 8..25, &[(a, value.clone()), windows()], one);
        passes("restricted", 25..=MINOR, &[(a, value), windows()]);
    }
}

#[test]
fn app_armor_profile() {
    let annotation = "/metadata/annotations/container.apparmor.security.beta.kubernetes.io~1b";
    let (pod, b) = (
        "/spec/securityContext/appArmorProfile",
        "/spec/containers/0/securityContext/appArmorProfile",
    );
    for value in ["", "runtime/default", "localhost/x"] {
        passes("restricted", 0..=MINOR, &[(annotation, json!(value))]);
    }
    for value in ["RuntimeDefault", "Localhost"] {
        let profile = json!({"type": value});
        passes(
            "baseline",
            0..=MINOR,
            &[(pod, profile.clone()), (b, profile)],
        );
    }
    let key = "container.apparmor.security.beta.kubernetes.io/b";
    for (changes, expected) in [
        (
            vec![(annotation, json!("unconfined"))],
            format!(
                "forbidden AppArmor profile (annotation must not set AppArmor profile type to \"{key}=\"unconfined\"\")"
            ),
        ),
        (
            vec![(pod, json!({"type": "Unconfined"}))],
            "forbidden AppArmor profile (pod must not set AppArmor profile type to \"Unconfined\")"
                .to_owned(),
        ),
        (
            vec![
                (annotation, json!("x")),
                (pod, json!({"type": "Unconfined"})),
                (b, json!({"type": "Other"})),
            ],
            format!(
                "forbidden AppArmor profiles (pod and container \"b\" and annotation must not set AppArmor profile \
                 type to \"Other\", \"Unconfined\", \"{key}=\"x\"\")"
            ),
        ),
    ] {
        fails("baseline", 0..=MINOR, &changes, &expected);
        fails("restricted", 0..=MINOR, &changes, &expected);
    }
}

#[test]
fn capabilities() {
    let (a, b) = (
        "/spec/initContainers/0/securityContext/capabilities",
        "/spec/containers/0/securityContext/capabilities",
    );
    for capability in [
        "AUDIT_WRITE",
        "CHOWN",
        "SYS_CHROOT",
        "NET_BIND_SERVICE",
        "MKNOD",
    ] {
        let adds = json!({"add": [capability], "drop": ["ALL"]});
        passes(
            "baseline",
            0..=MINOR,
            &[(a, adds.clone()), (b, adds.clone())],
        );
        passes("restricted", 0..22, &[(a, adds)]);
    }
    let adds = json!({"add": ["NET_RAW", "ALL", "KILL"], "drop": ["ALL"]});
    fails(
        "baseline",
        0..=MINOR,
        &[(a, adds.clone())],
        "non-default capabilities (container \"a\" must not include \"ALL\", \"NET_RAW\" in \
         securityContext.capabilities.add)",
    );
    fails(
        "restricted",
        22..=MINOR,
        &[(a, adds.clone()), (b, adds)],
        "unrestricted capabilities (containers \"a\", \"b\" must not include \"ALL\", \"KILL\", \"NET_RAW\" in \
         securityContext.capabilities.add)",
    );
    let keeps = json!({"drop": ["NET_RAW"], "add": ["NET_BIND_SERVICE"]});
    let undropped = "unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"])";
    for value in [keeps.clone(), Value::Null] {
        passes("restricted", 0..22, &[(a, value.clone())]);
        fails("restricted", 22..=MINOR, &[(a, value.clone())], undropped);
        let windows = ("/spec/os", json!({"name": "windows"}));
        fails(
            "restricted",
            22..25,
            &[(a, value.clone()), windows.clone()],
            undropped,
        );
        passes("restricted", 25..=MINOR, &[(a, value), windows]);
    }
    fails(
        "restricted",
        22..=MINOR,
        &[(a, keeps), (b, json!({"drop": ["ALL"], "add": ["KILL"]}))],
        "unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]; container \
         \"b\" must not include \"KILL\" in securityContext.capabilities.add)",
    );
}

#[test]
fn host_namespaces() {
    let all = ["/spec/hostNetwork", "/spec/hostPID", "/spec/hostIPC"];
    for field in all {
        passes("restricted", 0..=MINOR, &[(field, json!(false))]);
        let name = field.trim_start_matches("/spec/");
        let expected = format!("host namespaces ({name}=true)");
        fails("baseline", 0..=MINOR, &[(field, json!(true))], &expected);
    }
    let expected = "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)";
    fails(
        "restricted",
        0..=MINOR,
        &all.map(|it| (it, json!(true))),
        expected,
    );
}

#[test]
fn volumes() {
    let volumes = |list: Value| [("/spec/volumes", list)];
    for kind in [
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ] {
        passes(
            "restricted",
            0..=MINOR,
            &volumes(json!([{"name": "v", kind: {}}])),
        );
    }
    for kind in [
        "awsElasticBlockStore",
        "azureDisk",
        "azureFile",
        "cephfs",
        "cinder",
        "fc",
        "flexVolume",
        "flocker",
        "gcePersistentDisk",
        "gitRepo",
        "glusterfs",
        "iscsi",
        "nfs",
        "photonPersistentDisk",
        "portworxVolume",
        "quobyte",
        "rbd",
        "scaleIO",
        "storageos",
        "vsphereVolume",
    ] {
        let list = volumes(json!([{"name": "v", kind: {}}]));
        passes("baseline", 0..=MINOR, &list);
        let expected = format!(
            "restricted volume types (volume \"v\" uses restricted volume type \"{kind}\")"
        );
        fails("restricted", 0..=MINOR, &list, &expected);
    }
    let list = volumes(
        json!([{"name": "v", "hostPath": {}}, {"name": "w", "hostPath": {}}, {"name": "x", "new": {}}]),
    );
    fails(
        "baseline",
        0..=MINOR,
        &list,
        "hostPath volumes (volumes \"v\", \"w\")",
    );
    fails(
        "restricted",
        0..=MINOR,
        &list,
        "restricted volume types (volumes \"v\", \"w\", \"x\" use restricted volume types \"hostPath\", \"unknown\")",
    );
}

#[test]
fn host_ports() {
    let (a, b) = ("/spec/initContainers/0/ports", "/spec/containers/0/ports");
    passes(
        "restricted",
        0..=MINOR,
        &[(a, json!([{"containerPort": 1, "hostPort": 0}]))],
    );
    fails(
        "baseline",
        0..=MINOR,
        &[(a, json!([{"hostPort": 80}]))],
        "hostPort (container \"a\" uses hostPort 80)",
    );
    fails(
        "restricted",
        0..=MINOR,
        &[
            (a, json!([{"hostPort": 80}, {"hostPort": 8080}])),
            (b, json!([{"hostPort": 443}])),
        ],
        "hostPort (containers \"a\", \"b\" use hostPorts 443, 80, 8080)",
    );
}

#[test]
fn host_probes_and_lifecycle() {
    for (member, action) in [
        ("/spec/containers/0/livenessProbe", "httpGet"),
        ("/spec/containers/0/readinessProbe", "tcpSocket"),
        ("/spec/containers/0/startupProbe", "httpGet"),
        ("/spec/containers/0/lifecycle/postStart", "tcpSocket"),
        ("/spec/containers/0/lifecycle/preStop", "httpGet"),
    ] {
        passes(
            "restricted",
            0..=MINOR,
            &[(member, json!({action: {"host": "", "port": 1}}))],
        );
        let named = [(member, json!({action: {"host": "127.0.0.1"}}))];
        passes("restricted", 0..34, &named);
        let expected =
            "probe or lifecycle host (container \"b\" uses probe or lifecycle host \"127.0.0.1\")";
        fails("baseline", 34..=MINOR, &named, expected);
    }
    fails(
        "restricted",
        34..=MINOR,
        &[
            (
                "/spec/containers/0/livenessProbe",
                json!({"httpGet": {"host": "y"}}),
            ),
            (
                "/spec/containers/0/startupProbe",
                json!({"httpGet": {"host": "x"}}),
            ),
            (
                "/spec/initContainers/0/startupProbe",
                json!({"httpGet": {"host": "y"}}),
            ),
        ],
        "probe or lifecycle host (containers \"a\", \"b\" use probe or lifecycle hosts \"x\", \"y\")",
    );
}

#[test]
fn privileged() {
    let of = |value: bool| {
        [(
            "/spec/initContainers/0/securityContext/privileged",
            json!(value),
        )]
    };
    passes("restricted", 0..=MINOR, &of(false));
    let expected = "privileged (container \"a\" must not set securityContext.privileged=true)";
    fails("baseline", 0..=MINOR, &of(true), expected);
    fails("restricted", 0..=MINOR, &of(true), expected);
}

#[test]
fn proc_mount() {
    let a = "/spec/initContainers/0/securityContext/procMount";
    passes("restricted", 0..=MINOR, &[(a, json!("Default"))]);
    let expected =
        "procMount (container \"a\" must not set securityContext.procMount to \"Unmasked\")";
    let unmasked = (a, json!("Unmasked"));
    fails(
        "baseline",
        0..=MINOR,
        std::slice::from_ref(&unmasked),
        expected,
    );
    let own_users = [unmasked, ("/spec/hostUsers", json!(false))];
    fails("baseline", 0..35, &own_users, expected);
    passes("baseline", 35..=MINOR, &own_users);
    fails("restricted", 0..=MINOR, &own_users, expected);
}

#[test]
fn run_as_non_root() {
    let pod = "/spec/securityContext/runAsNonRoot";
    let (a, b) = (
        "/spec/initContainers/0/securityContext/runAsNonRoot",
        "/spec/containers/0/securityContext/runAsNonRoot",
    );
    passes(
        "restricted",
        0..=MINOR,
        &[(pod, Value::Null), (a, json!(true)), (b, json!(true))],
    );
    for (changes, expected) in [
        (
            vec![(pod, Value::Null)],
            "runAsNonRoot != true (pod or containers \"a\", \"b\" must set securityContext.runAsNonRoot=true)",
        ),
        (
            vec![(pod, Value::Null), (b, json!(true))],
            "runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true)",
        ),
        (
            vec![(pod, json!(false)), (a, json!(true))],
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        (
            vec![(a, json!(false))],
            "runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false)",
        ),
        (
            vec![(pod, json!(false)), (a, json!(false)), (b, json!(false))],
            "runAsNonRoot != true (pod and containers \"a\", \"b\" must not set securityContext.runAsNonRoot=false)",
        ),
    ] {
        passes("baseline", 0..=MINOR, &changes);
        fails("restricted", 0..=MINOR, &changes, expected);
        let mut own_users = changes;
        own_users.push(("/spec/hostUsers", json!(false)));
        fails("restricted", 0..35, &own_users, expected);
        passes("restricted", 35..=MINOR, &own_users);
    }
}

#[test]
fn run_as_user() {
    let pod = "/spec/securityContext/runAsUser";
    let a = "/spec/initContainers/0/securityContext/runAsUser";
    passes(
        "restricted",
        0..=MINOR,
        &[(pod, json!(1)), (a, json!(1000))],
    );
    let root = [(pod, json!(0)), (a, json!(0))];
    passes("restricted", 0..23, &root);
    passes("baseline", 0..=MINOR, &root);
    fails(
        "restricted",
        23..=MINOR,
        &root,
        "runAsUser=0 (pod and container \"a\" must not set runAsUser=0)",
    );
    let own_users = [(a, json!(0)), ("/spec/hostUsers", json!(false))];
    fails(
        "restricted",
        23..35,
        &own_users,
        "runAsUser=0 (container \"a\" must not set runAsUser=0)",
    );
    passes("restricted", 35..=MINOR, &own_users);
}

#[test]
fn se_linux_options() {
    let pod = "/spec/securityContext/seLinuxOptions";
    let b = "/spec/containers/0/securityContext/seLinuxOptions";
    for named in ["", "container_t", "container_init_t", "container_kvm_t"] {
        let options = json!({"type": named, "level": "s0", "user": "", "role": ""});
        passes(
            "restricted",
            0..=MINOR,
            &[(pod, options.clone()), (b, options)],
        );
    }
    let engine = [(pod, json!({"type": "container_engine_t"}))];
    passes("restricted", 31..=MINOR, &engine);
    fails(
        "baseline",
        0..31,
        &engine,
        "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"container_engine_t\")",
    );
    fails(
        "restricted",
        0..=MINOR,
        &[
            (pod, json!({"type": "y", "user": "u"})),
            (b, json!({"type": "x", "role": "r"})),
        ],
        "seLinuxOptions (pod and container \"b\" set forbidden securityContext.seLinuxOptions: types \"x\", \"y\"; user \
         may not be set; role may not be set)",
    );
}

#[test]
fn seccomp_annotations() {
    let pod = "/metadata/annotations/seccomp.security.alpha.kubernetes.io~1pod";
    let a = "/metadata/annotations/container.seccomp.security.alpha.kubernetes.io~1a";
    let other = "/metadata/annotations/container.seccomp.security.alpha.kubernetes.io~1other";
    for value in ["runtime/default", "docker/default", "localhost/x"] {
        passes(
            "restricted",
            0..=MINOR,
            &[(pod, json!(value)), (a, json!(value))],
        );
    }
    passes("restricted", 0..=MINOR, &[(other, json!("unconfined"))]);
    let wrong = [(pod, json!("unconfined")), (a, json!(""))];
    passes("restricted", 19..=MINOR, &wrong);
    fails(
        "restricted",
        0..19,
        &wrong,
        "seccompProfile (forbidden annotations container.seccomp.security.alpha.kubernetes.io/a=\"\", \
         seccomp.security.alpha.kubernetes.io/pod=\"unconfined\")",
    );
}

#[test]
fn seccomp_profiles() {
    let pod = "/spec/securityContext/seccompProfile";
    let (a, b) = (
        "/spec/initContainers/0/securityContext/seccompProfile",
        "/spec/containers/0/securityContext/seccompProfile",
    );
    let local = json!({"type": "Localhost"});
    passes(
        "restricted",
        0..=MINOR,
        &[(pod, Value::Null), (a, local.clone()), (b, local.clone())],
    );
    passes("baseline", 0..=MINOR, &[(pod, Value::Null)]);
    fails(
        "restricted",
        19..=MINOR,
        &[(pod, Value::Null), (b, local)],
        "seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
         \"Localhost\")",
    );
    let unconfined = json!({"type": "Unconfined"});
    for level in ["baseline", "restricted"] {
        fails(
            level,
            19..=MINOR,
            &[(pod, unconfined.clone()), (a, unconfined.clone())],
            "seccompProfile (pod and container \"a\" must not set securityContext.seccompProfile.type to \"Unconfined\")",
        );
        passes(level, 0..19, &[(pod, unconfined.clone())]);
    }
    let windows = [(pod, Value::Null), ("/spec/os", json!({"name": "windows"}))];
    passes("restricted", 25..=MINOR, &windows);
    fails(
        "restricted",
        19..25,
        &windows,
        "seccompProfile (pod or containers \"a\", \"b\" must set securityContext.seccompProfile.type to \
         \"RuntimeDefault\" or \"Localhost\")",
    );
}

#[test]
fn sysctls() {
    let of = |name: &str| {
        [(
            "/spec/securityContext/sysctls",
            json!([{"name": name, "value": "1"}]),
        )]
    };
    for (name, since) in [
        ("kernel.shm_rmid_forced", 0),
        ("net.ipv4.ip_local_port_range", 0),
        ("net.ipv4.tcp_syncookies", 0),
        ("net.ipv4.ping_group_range", 0),
        ("net.ipv4.ip_unprivileged_port_start", 0),
        ("net.ipv4.ip_local_reserved_ports", 27),
        ("net.ipv4.tcp_keepalive_time", 29),
        ("net.ipv4.tcp_fin_timeout", 29),
        ("net.ipv4.tcp_keepalive_intvl", 29),
        ("net.ipv4.tcp_keepalive_probes", 29),
        ("net.ipv4.tcp_rmem", 32),
        ("net.ipv4.tcp_wmem", 32),
    ] {
        passes("restricted", since..=MINOR, &of(name));
        let expected = format!("forbidden sysctls ({name})");
        fails("baseline", 0..since, &of(name), &expected);
    }
    fails(
        "restricted",
        0..=MINOR,
        &of("kernel.msgmax"),
        "forbidden sysctls (kernel.msgmax)",
    );
}

#[test]
fn windows_host_process() {
    let pod = "/spec/securityContext/windowsOptions";
    let b = "/spec/containers/0/securityContext/windowsOptions";
    passes(
        "restricted",
        0..=MINOR,
        &[(pod, json!({"hostProcess": false}))],
    );
    let process = json!({"hostProcess": true});
    fails(
        "baseline",
        0..=MINOR,
        &[(pod, process.clone()), (b, process)],
        "hostProcess (pod and container \"b\" must not set securityContext.windowsOptions.hostProcess=true)",
    );
}

#[test]
fn ephemeral_containers_are_checked_too() {
    let debugger = (
        "/spec/ephemeralContainers",
        json!([{"name": "e", "securityContext": {"privileged": true}}]),
    );
    let expected = "privileged (container \"e\" must not set securityContext.privileged=true)";
    fails("baseline", 0..=MINOR, &[debugger], expected);
}

#[test]
fn containers_without_security_context_have_none_of_its_members() {
    passes("baseline", 0..=MINOR, &[(A, Value::Null), (B, Value::Null)]);
    let pod = changed(&[(A, Value::Null)]);
    let found = details("restricted:latest", &pod);
    assert!(found.contains("container \"a\" must set"), "{found}");
    assert!(!found.contains("\"b\""), "{found}");
}
