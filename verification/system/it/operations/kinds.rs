//! An object of each kind whose operations the conformance suite tries. The server's own controllers write none of
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

/// A kind: the way in which it is served, and an object of it.
pub(super) struct Kind {
    /// Group and version, as in paths.
    pub(super) version: &'static str,
    pub(super) plural: &'static str,
    pub(super) namespaced: bool,
    /// The content beside metadata.
    pub(super) content: Value,
    pub(super) parts: &'static [Part],
    /// True if deleted objects wait for a controller.
    pub(super) waits: bool,
    /// The name of the first object, by which all are labelled.
    pub(super) first: &'static str,
    /// True if the object can have no other name.
    pub(super) alone: bool,
}

/// A subresource by which an object is written.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// True if annotations may be written by it.
    pub(super) annotates: bool,
}

const STATUS: &[Part] = &[part("status", true)];
/// A status, and a verdict.
const DECIDED: &[Part] = &[part("status", true), part("approval", true)];
/// A status by which metadata is not written.
const BARE_STATUS: &[Part] = &[part("status", false)];

const fn part(name: &'static str, annotates: bool) -> Part {
    Part { name, annotates }
}

impl Kind {
    fn new(version: &'static str, plural: &'static str, content: Value) -> Self {
        Self {
            version,
            plural,
            namespaced: true,
            content,
            parts: &[],
            waits: false,
            first: "first",
            alone: false,
        }
    }

    fn cluster(mut self) -> Self {
        self.namespaced = false;
        self
    }

    fn parts(mut self, parts: &'static [Part]) -> Self {
        self.parts = parts;
        self
    }

    fn waits(mut self) -> Self {
        self.waits = true;
        self
    }

    fn called(mut self, name: &'static str) -> Self {
        self.first = name;
        self
    }

    fn only(mut self, name: &'static str) -> Self {
        self.alone = true;
        self.called(name)
    }
}

pub(super) fn kinds() -> Vec<Kind> {
    let mut all = core();
    all.extend(workloads());
    all.extend(network());
    all.extend(storage());
    all.extend(admission());
    all.extend(others());
    all
}

fn template(policy: &str) -> Value {
    json!({"metadata": {"labels": {"a": "b"}},
        "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]}})
}

fn core() -> Vec<Kind> {
    const V1: &str = "api/v1";
    let of = |plural, content| Kind::new(V1, plural, content);
    let always = template("Always");
    let controller = json!({"spec": {"replicas": 1, "selector": {"a": "b"}, "template": always}});
    let subsets = json!([{"addresses": [{"ip": "10.0.0.24"}], "ports": [{"port": 80}]}]);
    let claim =
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let volume = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp/x"}, "persistentVolumeReclaimPolicy": "Retain"});
    vec![
        of("configmaps", json!({"data": {"a": "b"}})),
        of("secrets", json!({"data": {"a": "Yg=="}})),
        of("serviceaccounts", json!({})),
        of("podtemplates", json!({"template": always})),
        of("pods", json!({"spec": always["spec"]})).parts(STATUS),
        of("replicationcontrollers", controller)
            .parts(STATUS)
            .waits(),
        of(
            "services",
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
        )
        .parts(STATUS),
        of("endpoints", json!({"subsets": subsets})),
        of(
            "events",
            json!({"message": "m", "involvedObject": {"namespace": "lives"}}),
        ),
        of(
            "limitranges",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
        ),
        of(
            "resourcequotas",
            json!({"spec": {"hard": {"count/widgets.example.com": "9"}}}),
        )
        .parts(STATUS),
        of("persistentvolumeclaims", json!({"spec": claim}))
            .parts(STATUS)
            .waits(),
        of("persistentvolumes", json!({"spec": volume}))
            .cluster()
            .parts(STATUS)
            .waits(),
        of("nodes", json!({})).cluster().parts(STATUS),
    ]
}

fn workloads() -> Vec<Kind> {
    let apps = |plural, content| Kind::new("apis/apps/v1", plural, content);
    let batch = |plural, content| Kind::new("apis/batch/v1", plural, content);
    let of_pods = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template("Always")});
    let job = json!({"template": template("Never")});
    vec![
        apps("deployments", json!({"spec": of_pods})).parts(STATUS),
        apps("replicasets", json!({"spec": of_pods})).parts(STATUS),
        apps("statefulsets", json!({"spec": of_pods})).parts(STATUS),
        apps("daemonsets", json!({"spec": of_pods})).parts(STATUS),
        apps("controllerrevisions", json!({"revision": 1, "data": {"x": 1}})),
        batch("jobs", json!({"spec": job})).parts(STATUS).waits(),
        batch("cronjobs", json!({"spec": {"schedule": "* */1 * * ?", "jobTemplate": {"spec": job}}}))
            .parts(STATUS),
        Kind::new("apis/policy/v1", "poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}})).parts(STATUS),
        Kind::new("apis/autoscaling/v2", "horizontalpodautoscalers",
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}))
            .parts(STATUS),
        Kind::new("apis/coordination.k8s.io/v1", "leases",
            json!({"spec": {"holderIdentity": "h", "leaseDurationSeconds": 30}})),
    ]
}

fn network() -> Vec<Kind> {
    let of = |plural, content| Kind::new("apis/networking.k8s.io/v1", plural, content);
    let backend = json!({"service": {"name": "d", "port": {"number": 80}}});
    let parent = json!({"resource": "services", "namespace": "x", "name": "y"});
    let policy = json!({"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]});
    vec![
        of("ingresses", json!({"spec": {"defaultBackend": backend}})).parts(STATUS),
        of("networkpolicies", json!({"spec": policy})),
        of(
            "ingressclasses",
            json!({"spec": {"controller": "example.com/c"}}),
        )
        .cluster(),
        of("servicecidrs", json!({"spec": {"cidrs": ["10.1.1.0/24"]}}))
            .cluster()
            .parts(BARE_STATUS),
        of("ipaddresses", json!({"spec": {"parentRef": parent}}))
            .cluster()
            .only("10.2.0.1"),
        Kind::new(
            "apis/discovery.k8s.io/v1",
            "endpointslices",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}]}),
        ),
        Kind::new(
            "apis/events.k8s.io/v1",
            "events",
            json!({"note": "n", "reason": "R", "type": "Normal", "action": "Do",
                "reportingController": "c", "reportingInstance": "i", "regarding": {"namespace": "lives"},
                "eventTime": "2024-01-01T00:00:00.000000Z"}),
        ).called("newer"),
    ]
}

fn storage() -> Vec<Kind> {
    let of = |plural, content| Kind::new("apis/storage.k8s.io/v1", plural, content).cluster();
    let attachment =
        json!({"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "p"}});
    let mut capacities = of(
        "csistoragecapacities",
        json!({"storageClassName": "x", "capacity": "1Gi"}),
    );
    capacities.namespaced = true;
    vec![
        capacities,
        of("storageclasses", json!({"provisioner": "e2e-fake"})),
        of("csidrivers", json!({"spec": {"attachRequired": false}})),
        of("csinodes", json!({"spec": {"drivers": []}})),
        of("volumeattachments", json!({"spec": attachment})).parts(BARE_STATUS),
        of(
            "volumeattributesclasses",
            json!({"driverName": "d", "parameters": {"a": "b"}}),
        )
        .waits(),
    ]
}

fn admission() -> Vec<Kind> {
    let of = |plural, content| {
        Kind::new("apis/admissionregistration.k8s.io/v1", plural, content).cluster()
    };
    let matched = json!({"namespaceSelector": {"matchLabels": {"chosen": "yes"}},
        "resourceRules": [{"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
            "resources": ["deployments"]}]});
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration":
        {"expression": "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"}});
    vec![
        of("validatingwebhookconfigurations", json!({"webhooks": []})),
        of("mutatingwebhookconfigurations", json!({"webhooks": []})),
        of(
            "validatingadmissionpolicies",
            json!({"spec": {"matchConstraints": matched,
            "validations": [{"expression": "object.spec.replicas <= 100"}]}}),
        )
        .parts(BARE_STATUS),
        of(
            "validatingadmissionpolicybindings",
            json!({"spec": {"policyName": "p", "validationActions": ["Deny"]}}),
        ),
        of(
            "mutatingadmissionpolicies",
            json!({"spec": {"matchConstraints": matched,
            "reinvocationPolicy": "Never", "mutations": [mutation]}}),
        ),
        of(
            "mutatingadmissionpolicybindings",
            json!({"spec": {"policyName": "p"}}),
        ),
    ]
}

fn others() -> Vec<Kind> {
    const DEVICES: &str = "apis/resource.k8s.io/v1";
    const RIGHTS: &str = "apis/rbac.authorization.k8s.io/v1";
    let role = |kind: &str| json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "x"}});
    let asked = json!({"devices": {"requests": [{"name": "r",
        "exactly": {"deviceClassName": "d.example.com"}}]}});
    let slice = json!({"driver": "d.example.com", "nodeName": "n", "devices": [],
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}});
    let selector = json!({"cel": {"expression": "device.driver == 'd'"}});
    let signed = json!({"request": request(), "signerName": "example.com/e2e",
        "usages": ["server auth"]});
    vec![
        Kind::new(DEVICES, "resourceclaims", json!({"spec": asked})).parts(BARE_STATUS),
        Kind::new(
            DEVICES,
            "resourceclaimtemplates",
            json!({"spec": {"spec": asked}}),
        ),
        Kind::new(
            DEVICES,
            "deviceclasses",
            json!({"spec": {"selectors": [selector]}}),
        )
        .cluster(),
        Kind::new(DEVICES, "resourceslices", json!({"spec": slice})).cluster(),
        Kind::new(RIGHTS, "roles", json!({"rules": []})),
        Kind::new(RIGHTS, "rolebindings", role("Role")),
        Kind::new(RIGHTS, "clusterroles", json!({"rules": []})).cluster(),
        Kind::new(RIGHTS, "clusterrolebindings", role("ClusterRole")).cluster(),
        Kind::new(
            "apis/node.k8s.io/v1",
            "runtimeclasses",
            json!({"handler": "h"}),
        )
        .cluster(),
        Kind::new(
            "apis/scheduling.k8s.io/v1",
            "priorityclasses",
            json!({"value": 1000}),
        )
        .cluster(),
        Kind::new(
            "apis/certificates.k8s.io/v1",
            "certificatesigningrequests",
            json!({"spec": signed}),
        )
        .cluster()
        .parts(DECIDED),
    ]
}

/// A request for a certificate, in PEM and base64.
fn request() -> String {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "e2e");
    let request = params.serialize_request(&key).expect("a request");
    STANDARD.encode(request.pem().expect("PEM"))
}
