//! Requests that are refused, or dry runs, leave no trace, whichever way they come in.

use super::*;

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const SERVICES: &str = "/api/v1/namespaces/default/services";

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

fn warnings(answer: &Answer) -> Vec<String> {
    let values = answer.head.headers.get_all("warning").into_iter();
    let texts = values.map(|it| it.to_str().expect("text").replace('\\', ""));
    texts.collect()
}

/// The newest revision of the store, which every write raises.
async fn revision(fixture: &Fixture) -> Value {
    fixture.get(CONFIG_MAPS).await.json()["metadata"]["resourceVersion"].take()
}

/// The addresses that services have.
async fn addresses(fixture: &Fixture) -> Value {
    const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
    fixture.get(ADDRESSES).await.json()["items"].take()
}

async fn put(fixture: &Fixture, path: &str, body: &str) -> Answer {
    let body = body.to_owned().into();
    fixture.ask(request("PUT", path, body)).await
}

async fn send(fixture: &Fixture, way: &str, path: &str, body: &str) -> Answer {
    if way == "PUT" {
        return put(fixture, path, body).await;
    }
    let mut request = request("PATCH", path, body.to_owned().into());
    let media_type = format!("application/{way}").parse().expect("a header");
    request.headers_mut().insert(CONTENT_TYPE, media_type);
    fixture.ask(request).await
}

/// A way in, the path below the deployment, what is sent, and how it is refused.
type Way = (&'static str, &'static str, String, u16, &'static str);

fn ways() -> Vec<Way> {
    const ODD: &str = "unknown field \"spec.odd\"";
    const AGAIN: &str = "duplicate field \"spec.replicas\"";
    let mut unknown = deployment();
    unknown["spec"]["odd"] = json!(1);
    let unknown = unknown.to_string();
    let twice = deployment().to_string();
    let twice = twice.replacen("\"replicas\":1", "\"replicas\":1,\"replicas\":1", 1);
    let in_yaml = "line 1: key \"replicas\" already set in map";
    let added = json!([{"op": "add", "path": "/spec/odd", "value": 1}]).to_string();
    let odd = r#"{"spec":{"odd":1}}"#.to_owned();
    vec![
        ("PUT", "", unknown.clone(), 400, ODD),
        ("PUT", "/status", unknown.clone(), 400, ODD),
        ("PUT", "", twice.clone(), 400, AGAIN),
        ("json-patch+json", "", added, 422, ODD),
        ("merge-patch+json", "", odd.clone(), 422, ODD),
        ("merge-patch+json", "/status", odd.clone(), 422, ODD),
        ("strategic-merge-patch+json", "", odd, 422, ODD),
        ("apply-patch+yaml", "", twice, 400, in_yaml),
    ]
}

#[tokio::test]
async fn fields_are_validated_by_whatever_way_they_come() {
    let fixture = Fixture::start(true).await;
    let created = fixture.post(DEPLOYMENTS, deployment()).await;
    created.has_created();
    for (way, part, body, code, word) in ways() {
        let applies = way.starts_with("apply");
        let force = if applies { "&force=true" } else { "" };
        let path = |how: &str| {
            format!("{DEPLOYMENTS}/d{part}?fieldManager=m{force}&fieldValidation={how}")
        };
        let before = revision(&fixture).await;
        let answer = send(&fixture, way, &path("Strict"), &body).await;
        assert_ne!(answer.head.status, StatusCode::OK, "{way} {part} {word}");
        let (found, message) = answer.failure();
        assert!(message.contains(word), "{way} {part}: {message}");
        assert_eq!(found, code, "{way} {part}: {message}");
        assert_eq!(revision(&fixture).await, before, "{way} {part}");
        for (how, told) in [("Warn", 1), ("Ignore", 0)] {
            let answer = send(&fixture, way, &path(how), &body).await;
            let status = answer.head.status;
            assert_eq!(
                status,
                StatusCode::OK,
                "{way} {part} {how}: {}",
                answer.text()
            );
            let warnings = warnings(&answer);
            assert_eq!(warnings.len(), told, "{way} {part}: {warnings:?}");
            assert!(warnings.iter().all(|it| it.contains(word)), "{warnings:?}");
        }
    }
}

#[tokio::test]
async fn what_is_only_tried_is_not_stored() {
    let fixture = Fixture::start(true).await;
    for (path, object) in [(DEPLOYMENTS, deployment()), (SERVICES, service("s"))] {
        let created = fixture.post(path, object).await;
        created.has_created();
    }
    let object = format!("{DEPLOYMENTS}/d");
    let mut changed = deployment();
    changed["spec"]["replicas"] = json!(7);
    let changed = changed.to_string();
    let merge = r#"{"spec":{"replicas":7}}"#;
    let replace = json!([{"op": "replace", "path": "/spec/replicas", "value": 7}]).to_string();
    let scale = r#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"d","namespace":"default"},"spec":{"replicas":7}}"#;
    let before = revision(&fixture).await;
    for (way, path, body) in [
        ("PUT", object.clone(), changed.as_str()),
        ("PUT", format!("{object}/status"), &changed),
        ("PUT", format!("{object}/scale"), scale),
        ("merge-patch+json", object.clone(), merge),
        ("strategic-merge-patch+json", object.clone(), merge),
        ("json-patch+json", object.clone(), &replace),
        ("apply-patch+yaml", object.clone(), &changed),
    ] {
        let force = if way.starts_with("apply") {
            "&force=true"
        } else {
            ""
        };
        let path = format!("{path}?dryRun=All&fieldManager=m{force}");
        let answer = send(&fixture, way, &path, body).await;
        assert_eq!(
            answer.head.status,
            StatusCode::OK,
            "{way} {path}: {}",
            answer.text()
        );
        assert_eq!(revision(&fixture).await, before, "{way} {path}");
    }
    for (method, path) in [("DELETE", object.as_str()), ("DELETE", DEPLOYMENTS)] {
        let answer = fixture
            .ask(request(method, &format!("{path}?dryRun=All"), Bytes::new()))
            .await;
        assert_eq!(
            answer.head.status,
            StatusCode::OK,
            "{path}: {}",
            answer.text()
        );
        assert_eq!(revision(&fixture).await, before, "{path}");
    }
}

#[tokio::test]
async fn what_is_only_tried_takes_no_address() {
    let fixture = Fixture::start(true).await;
    let mut tried = service("s");
    tried["spec"]["clusterIP"] = json!("10.0.0.99");
    tried["spec"]["ports"][0]["nodePort"] = json!(30_099);
    let path = format!("{SERVICES}?dryRun=All");
    for _ in 0..2 {
        let answer = fixture.post(&path, tried.clone()).await;
        answer.has_created();
    }
    tried["metadata"]["name"] = json!("other");
    let answer = fixture.post(SERVICES, tried.clone()).await;
    answer.has_created();
    tried["metadata"]["name"] = json!("third");
    let refused = "provided IP is already allocated";
    let (code, message) = fixture.post(SERVICES, tried.clone()).await.failure();
    assert!(code == 422 && message.contains(refused), "{message}");
    tried["spec"]["clusterIP"] = json!("10.0.0.98");
    let refused = "provided port is already allocated";
    let (code, message) = fixture.post(SERVICES, tried).await.failure();
    assert!(code == 422 && message.contains(refused), "{message}");
}

#[tokio::test]
async fn what_is_invalid_is_not_stored() {
    let fixture = Fixture::start(true).await;
    let mut before = revision(&fixture).await;
    let taken = addresses(&fixture).await;
    let in_default =
        |group: &str, plural: &str| format!("/apis/{group}/namespaces/default/{plural}");
    for (path, object, words) in [
        (
            "/api/v1/namespaces/default/pods".to_owned(),
            json!({"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i",
                "ports": [{"containerPort": 0}]}]}}),
            "Pod \"x\" is invalid: spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            SERVICES.to_owned(),
            json!({"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80, "nodePort": 30000}]}}),
            "Service \"x\" is invalid: spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            in_default("batch/v1", "jobs"),
            json!({"metadata": {"name": "x"}, "spec": {"template": {"spec": {
                "containers": [{"name": "c", "image": "i"}]}}}}),
            "Job.batch \"x\" is invalid: spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
        ),
        (
            in_default("networking.k8s.io/v1", "ingresses"),
            json!({"metadata": {"name": "x"}, "spec": {}}),
            "Ingress.networking.k8s.io \"x\" is invalid: spec: Invalid value: null: either `defaultBackend` or `rules` must be specified",
        ),
        (
            "/api/v1/namespaces/default/persistentvolumeclaims".to_owned(),
            json!({"metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"]}}),
            "PersistentVolumeClaim \"x\" is invalid: spec.resources[storage]: Required value",
        ),
        (
            in_default("rbac.authorization.k8s.io/v1", "roles"),
            json!({"metadata": {"name": "x"}, "rules": [{"verbs": ["get"], "apiGroups": [""]}]}),
            "Role.rbac.authorization.k8s.io \"x\" is invalid: rules[0].resources: Required value: resource rules must supply at least one resource",
        ),
        (
            "/api/v1/namespaces/default/pods".to_owned(),
            json!({"metadata": {"name": "x"}, "spec": {"priorityClassName": "nope",
                "containers": [{"name": "c", "image": "i"}]}}),
            "pods \"x\" is forbidden: no PriorityClass with name nope was found",
        ),
    ] {
        let answer = fixture.post(&path, object).await;
        let (code, message) = answer.failure();
        let reason = answer.json()["reason"].take();
        let expected = if code == 403 { "Forbidden" } else { "Invalid" };
        assert!(matches!(code, 403 | 422), "{path}: {code} {message}");
        assert_eq!(reason, expected);
        assert_eq!(message, words);
        if path == SERVICES {
            // It gets its address before it is validated, as in kube-apiserver, and gives it back.
            assert_eq!(addresses(&fixture).await, taken);
            before = revision(&fixture).await;
        }
        assert_eq!(revision(&fixture).await, before, "{path}");
    }
}

#[tokio::test]
async fn a_service_that_changes_its_type_gives_up_what_it_no_longer_has() {
    let fixture = Fixture::start(true).await;
    let created = fixture.post(SERVICES, service("s")).await.json();
    assert!(
        created["spec"]["ports"][0]["nodePort"].is_u64(),
        "{created}"
    );
    let path = format!("{SERVICES}/s");
    let inside = json!({"spec": {"type": "ClusterIP"}});
    let patched = fixture.patch(&path, "merge-patch+json", inside).await;
    assert_eq!(patched.head.status, StatusCode::OK, "{}", patched.text());
    let spec = &patched.json()["spec"];
    assert!(spec["ports"][0].get("nodePort").is_none(), "{spec}");
    assert!(spec.get("externalTrafficPolicy").is_none(), "{spec}");
    assert_eq!(spec["clusterIP"], created["spec"]["clusterIP"]);
}

#[tokio::test]
async fn there_is_one_class_for_pods_without_one() {
    const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let fixture = Fixture::start(true).await;
    let class = |name: &str, usual: bool| json!({"metadata": {"name": name}, "value": 7, "globalDefault": usual});
    for (name, usual) in [("first", true), ("plain", false)] {
        let created = fixture.post(CLASSES, class(name, usual)).await;
        assert_eq!(created.head.status, StatusCode::CREATED, "{name}");
    }
    let words = "is forbidden: PriorityClass first is already marked as default. Only one default can exist";
    let second = fixture.post(CLASSES, class("second", true)).await;
    let message = format!("priorityclasses.scheduling.k8s.io \"second\" {words}");
    assert_eq!(second.failure(), (403, message));
    let usual = json!({"globalDefault": true});
    let plain = format!("{CLASSES}/plain");
    let marked = fixture.patch(&plain, "merge-patch+json", usual).await;
    let message = format!("priorityclasses.scheduling.k8s.io \"plain\" {words}");
    assert_eq!(marked.failure(), (403, message));
    let described = json!({"description": "still the default"});
    let first = format!("{CLASSES}/first");
    let changed = fixture.patch(&first, "merge-patch+json", described).await;
    assert_eq!(changed.head.status, StatusCode::OK, "{}", changed.text());
}

/// kube-apiserver answers 500: it does not translate what its store says of such keys.
#[tokio::test]
async fn no_namespace_leads_out_of_a_type() {
    for cached in [true, false] {
        let fixture = Fixture::start(cached).await;
        for query in ["", "?watch=true", "/x"] {
            let path = format!("/api/v1/namespaces/%2e%2e/configmaps{query}");
            let answer = fixture.get(&path).await;
            assert_eq!(answer.head.status, 400, "{path}");
            let status = answer.json();
            let message = r#"Namespace parameter invalid: "..": may not be '..'"#;
            assert_eq!(status["message"], message, "{path}");
            assert_eq!(status["reason"], "BadRequest", "{path}");
        }
        let dots = fixture.get("/api/v1/namespaces/a..b/configmaps").await;
        assert_eq!(dots.head.status, 200);
    }
}

/// Three bytes make a container, and its defaults some two kilobytes.
#[tokio::test]
async fn small_maps_without_number_are_refused_before_their_defaults_are_added() {
    let fixture = Fixture::start(true).await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = vec![json!({}); 200_000];
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}}).to_string();
    let answer = fixture.ask(request("POST", pods, pod.into())).await;
    assert_eq!(answer.head.status, 413);
    let status = answer.json();
    assert_eq!(status["reason"], "RequestEntityTooLarge");
    let message =
        "Request entity too large: the object has 200003 maps within it, the limit is 150000";
    assert_eq!(status["message"], message);
}

/// In UTC these are years that JSON cannot write: stored, neither they nor the list that they are in could be read.
#[tokio::test]
async fn what_is_stored_has_times_that_can_be_written() {
    let fixture = Fixture::start(true).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    for time in [
        "0000-01-01T00:00:00.000000+01:00",
        "9999-12-31T23:59:59.000000-01:00",
    ] {
        let lease = json!({"metadata": {"name": "a"}, "spec": {"renewTime": time}});
        let answer = fixture
            .ask(request("POST", leases, lease.to_string().into()))
            .await;
        assert_eq!(answer.head.status, 400, "{time}: {}", answer.text());
    }
    let list = fixture.get(leases).await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(0));
}

/// Deeper ones were stored, and then neither they nor the list that they are in could be read.
#[tokio::test]
async fn what_is_stored_is_not_nested_too_deep_to_be_read() {
    const LEVELS_MAX: usize = 90;
    let fixture = Fixture::start(true).await;
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
    // The object itself is a level.
    for (levels, code) in [(LEVELS_MAX - 1, 201), (LEVELS_MAX, 413), (120, 413)] {
        let name = format!("nested-{levels}");
        let revision = json!({"metadata": {"name": name}, "revision": 1, "data": nested(levels)});
        let body = revision.to_string().into();
        let answer = fixture.ask(request("POST", revisions, body)).await;
        assert_eq!(answer.head.status, code, "{levels}: {}", answer.text());
    }
    let list = fixture.get(revisions).await.json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
    let first = format!("{revisions}/nested-{}", LEVELS_MAX - 1);
    let patch = json!([{"op": "copy", "from": "/data", "path": "/data/a/a/a"}]).to_string();
    let answer = send(&fixture, "json-patch+json", &first, &patch).await;
    assert_eq!(answer.head.status, 413, "{}", answer.text());
    let deleted = fixture.ask(request("DELETE", &first, Bytes::new())).await;
    assert_eq!(deleted.head.status, 200);
}
