//! Requests that can be made as large as a client likes.

use http::request::Builder;
use http::{Request, StatusCode};
use serde_json::{Value, json};

/// A request whose work grows with what is in it.
pub struct Growing {
    /// A name for it.
    pub name: &'static str,
    /// The number of items in it, such as operations or finalizers, in the smaller of its two measurements.
    pub size: usize,
    /// Makes an object that it changes.
    pub first: Option<fn(usize) -> Message>,
    /// The request.
    pub message: fn(usize) -> Message,
    /// The status of its answer.
    pub status: StatusCode,
}

/// A request, ready to be sent.
pub struct Message {
    /// All but the body.
    pub head: Builder,
    /// The body.
    pub body: String,
}

impl Message {
    /// Makes an object.
    pub fn post(uri: &str, body: &str) -> Self {
        Self::new(Request::post(uri), "application/json", body)
    }

    fn patch(uri: &str, content_type: &str, body: &Value) -> Self {
        Self::new(Request::patch(uri), content_type, &body.to_string())
    }

    fn new(head: Builder, content_type: &str, body: &str) -> Self {
        Self {
            head: head.header("content-type", content_type),
            body: body.to_owned(),
        }
    }
}

const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// All requests.
pub const REQUESTS: &[Growing] = &[
    created("unknown fields, deep", 400, |n| {
        let repeated: String = (0..n).map(|_| r#","a":1"#).collect();
        let (open, close) = (r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"x":{open}{{"a":1{repeated}}}{close}}}"#
        );
        Message::post(
            &format!("{CONFIG_MAPS}?dryRun=All&fieldValidation=Warn"),
            &body,
        )
    }),
    Growing {
        first: Some(|n| config_map("merged", n, "finalizers", finalizer)),
        ..answered("merged finalizers", 1_000, |n| {
            merge_config_map("merged", n, "finalizers", |i| {
                json!(format!("example.com/new-{i}"))
            })
        })
    },
    Growing {
        first: Some(|n| config_map("owned", n, "ownerReferences", |i| owner(&format!("u{i}")))),
        ..answered("merged owner references", 500, |n| {
            merge_config_map("owned", n, "ownerReferences", |i| {
                owner(&format!("new-{i}"))
            })
        })
    },
    Growing {
        first: Some(|n| deployment("merged", n)),
        ..answered("merged variables", 500, |n| {
            let patch = json!({"spec": {"template": {"spec": template(n, "new")}}});
            Message::patch(
                &format!("{DEPLOYMENTS}/merged-{n}?dryRun=All"),
                STRATEGIC,
                &patch,
            )
        })
    },
    Growing {
        first: Some(|n| deployment("applied", n)),
        ..answered("applied variables", 500, |n| {
            let body = json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("applied-{n}")}, "spec": {"template": {"spec": template(n, "new")}}});
            let uri = format!("{DEPLOYMENTS}/applied-{n}?dryRun=All&fieldManager=m&force=true");
            Message::patch(&uri, "application/apply-patch+yaml", &body)
        })
    },
    Growing {
        first: Some(|n| config_map("patched", n, "finalizers", finalizer)),
        ..answered("operations of a JSON patch", 500, |n| {
            let add = |i| json!({"op": "add", "path": "/metadata/finalizers/-", "value": format!("example.com/op-{i}")});
            let uri = format!("{CONFIG_MAPS}/patched-{n}?dryRun=All");
            Message::patch(&uri, "application/json-patch+json", &list(n, add))
        })
    },
    created("spread constraints", 500, |n| {
        pod(
            json!({"topologySpreadConstraints": list(n, |i| json!({"maxSkew": 1,
            "topologyKey": format!("example.com/{i}"), "whenUnsatisfiable": "DoNotSchedule"}))}),
        )
    }),
    created("tolerations", 1_000, |n| {
        pod(
            json!({"tolerations": list(n, |i| json!({"key": format!("example.com/{i}"), "operator": "Exists"}))}),
        )
    }),
    created("volumes", 500, |n| {
        pod(json!({"volumes": list(n, |i| json!({"name": format!("v{i}"), "emptyDir": {}}))}))
    }),
    created("mounts", 500, |n| {
        let mounts = list(n, |i| json!({"name": "v", "mountPath": format!("/m{i}")}));
        pod(json!({"volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "a", "image": "a", "volumeMounts": mounts}]}))
    }),
    created("ports", 1_000, |n| {
        let ports = list(n, |i| json!({"containerPort": i + 1, "hostPort": i + 1}));
        pod(json!({"containers": [{"name": "a", "image": "a", "ports": ports}]}))
    }),
    created("variables", 1_000, |n| pod(template(n, "variable"))),
    created("containers", 500, |n| {
        pod(json!({"containers": list(n, |i| json!({"name": format!("c{i}"), "image": "a"}))}))
    }),
    created("profiles in annotations", 500, |n| {
        let profile = |i| {
            let key = format!("container.apparmor.security.beta.kubernetes.io/c{i}");
            (key, json!("runtime/default"))
        };
        let containers = list(n, |i| json!({"name": format!("c{i}"), "image": "a"}));
        annotated_pod(
            (0..n).map(profile).collect(),
            json!({"containers": containers}),
        )
    }),
    created("items of a custom resource", 500, |n| {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": {"name": "a"},
            "books": list(n, |i| json!({"title": format!("t{i}")})),
            "tags": list(n, |i| json!(format!("t{i}")))});
        Message::post(&format!("{SHELVES}?dryRun=All"), &body.to_string())
    }),
    Growing {
        first: Some(|n| {
            let metadata = json!({"name": format!("kept-{n}"), "finalizers": list(n, finalizer)});
            let body =
                json!({"apiVersion": "example.com/v1", "kind": "Shelf", "metadata": metadata});
            Message::post(SHELVES, &body.to_string())
        }),
        ..answered("finalizers of a custom resource", 1_000, |n| {
            let patch = json!({"metadata": {"labels": {"a": "b"}}});
            let uri = format!("{SHELVES}/kept-{n}?dryRun=All");
            Message::patch(&uri, "application/merge-patch+json", &patch)
        })
    },
    Growing {
        first: Some(|n| {
            let book =
                json!({"title": "t", "chapters": list(n, |i| json!({"name": format!("c{i}")}))});
            let body = json!({"apiVersion": "example.com/v1", "kind": "Shelf",
                "metadata": {"name": format!("repeated-{n}")}, "books": [book]});
            Message::post(SHELVES, &body.to_string())
        }),
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..answered("items with the keys of one", 1_000, |n| {
            let books = list(n, |_| json!({"title": "t", "chapters": []}));
            let uri = format!("{SHELVES}/repeated-{n}?dryRun=All");
            let patch = json!({"books": books});
            Message::patch(&uri, "application/merge-patch+json", &patch)
        })
    },
    Growing {
        first: Some(|n| {
            let mut definition: Value = serde_json::from_str(DEFINITION).unwrap();
            definition["metadata"]["name"] = json!(format!("shelves.example{n}.com"));
            definition["spec"]["group"] = json!(format!("example{n}.com"));
            definition["spec"]["versions"] = versions(n, 20);
            Message::post(DEFINITIONS, &definition.to_string())
        }),
        status: StatusCode::UNPROCESSABLE_ENTITY,
        ..answered("versions of a definition", 10, |n| {
            let patch = json!({"spec": {"versions": versions(n, 1_000_000)}});
            let uri = format!("{DEFINITIONS}/shelves.example{n}.com?dryRun=All");
            Message::patch(&uri, "application/merge-patch+json", &patch)
        })
    },
    answered("values of a selector", 2_000, |n| {
        let values: Vec<_> = (0..n).map(|i| format!("v{i}")).collect();
        let uri = format!("{CONFIG_MAPS}?labelSelector=a+notin+({})", values.join(","));
        Message::new(Request::get(uri), "application/json", "")
    }),
    answered("terms of a selector", 2_000, |n| {
        let terms: Vec<_> = (0..n).map(|i| format!("a!=v{i}")).collect();
        let uri = format!("{CONFIG_MAPS}?labelSelector={}", terms.join(","));
        Message::new(Request::get(uri), "application/json", "")
    }),
    answered("ranges of a shard selector", 350, |n| {
        let range = |i| {
            let (start, end) = (2 * i, 2 * i + 1);
            format!("shardRange(object.metadata.uid,'0x{start:016x}','0x{end:016x}')")
        };
        let ranges: Vec<_> = (0..n).map(range).collect();
        let uri = format!("{CONFIG_MAPS}?shardSelector={}", ranges.join("||"));
        Message::new(Request::get(uri), "application/json", "")
    }),
];

/// Objects that are made before the requests: the path, and the object.
pub const FIRST: &[(&str, &str)] = &[
    (
        "/api/v1/namespaces/default/serviceaccounts",
        r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#,
    ),
    (DEFINITIONS, DEFINITION),
];

/// A custom resource with a list that is a map and one that is a set.
const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"shelves.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"shelves","singular":"shelf","kind":"Shelf","listKind":"ShelfList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{
"books":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["title"],
"items":{"type":"object","required":["title"],"properties":{"title":{"type":"string"},"pages":{"type":"integer","default":1},
"chapters":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}},
"tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}}}]}}"#;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SHELVES: &str = "/apis/example.com/v1/namespaces/default/shelves";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The depth to which unknown fields are nested.
const DEPTH: usize = 100;

/// A request that is answered with 200.
const fn answered(name: &'static str, size: usize, message: fn(usize) -> Message) -> Growing {
    Growing {
        name,
        size,
        first: None,
        message,
        status: StatusCode::OK,
    }
}

/// A request that makes an object.
const fn created(name: &'static str, size: usize, message: fn(usize) -> Message) -> Growing {
    Growing {
        status: StatusCode::CREATED,
        ..answered(name, size, message)
    }
}

fn list(n: usize, item: impl Fn(usize) -> Value) -> Value {
    (0..n).map(item).collect()
}

/// Makes versions of a definition, each with a default for which a rule is evaluated. With many items allowed, the rule
/// costs too much.
fn versions(n: usize, items_max: usize) -> Value {
    let books = json!({"type": "array", "default": vec![0; 20], "maxItems": items_max, "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a == b))"}]});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"books": books}}});
    list(
        n,
        |i| json!({"name": format!("v{}", i + 1), "served": true, "storage": i == 0, "schema": schema}),
    )
}

fn finalizer(number: usize) -> Value {
    json!(format!("example.com/{number}"))
}

/// Makes a ConfigMap with a list in its metadata.
fn config_map(name: &str, n: usize, member: &str, item: fn(usize) -> Value) -> Message {
    let metadata = json!({"name": format!("{name}-{n}"), member: list(n, item)});
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    Message::post(CONFIG_MAPS, &body.to_string())
}

/// Adds to the list of such a ConfigMap.
fn merge_config_map(name: &str, n: usize, member: &str, item: fn(usize) -> Value) -> Message {
    let uri = format!("{CONFIG_MAPS}/{name}-{n}?dryRun=All");
    let patch = json!({"metadata": {member: list(n, item)}});
    Message::patch(&uri, STRATEGIC, &patch)
}

fn owner(uid: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid})
}

/// The start of a pod's spec, with a container that has environment variables.
fn template(n: usize, prefix: &str) -> Value {
    let variables = list(n, |i| json!({"name": format!("{prefix}{i}"), "value": "a"}));
    json!({"containers": [{"name": "a", "image": "a", "env": variables}]})
}

fn deployment(name: &str, n: usize) -> Message {
    let labels = json!({"app": "a"});
    let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("{name}-{n}")},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": template(n, "variable")}}});
    Message::post(DEPLOYMENTS, &body.to_string())
}

/// Makes a pod, if only to see whether that could be done.
fn pod(spec: Value) -> Message {
    annotated_pod(json!({}), spec)
}

fn annotated_pod(annotations: Value, mut spec: Value) -> Message {
    let containers = json!([{"name": "a", "image": "a"}]);
    if spec.get("containers").is_none() {
        spec["containers"] = containers;
    }
    let metadata = json!({"name": "a", "annotations": annotations});
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Message::post(
        "/api/v1/namespaces/default/pods?dryRun=All",
        &body.to_string(),
    )
}
