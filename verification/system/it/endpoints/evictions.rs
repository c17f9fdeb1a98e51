//! Evictions, with and without disruption budgets.

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

impl Fixture {
    /// A pod with the label `app`, that runs and is ready or not.
    async fn running(&self, name: &str, app: &str, ready: bool) {
        let pod = json!({"metadata": {"name": name, "labels": {"app": app}},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "nginx"}]}});
        self.made(PODS, pod).await;
        let ready = if ready { "True" } else { "False" };
        let status = json!({"status": {"phase": "Running",
            "conditions": [{"type": "Ready", "status": ready}]}});
        self.status(&format!("{PODS}/{name}"), status).await;
    }

    /// The budget of an app, with what its controller has found.
    async fn budget(&self, name: &str, app: &str, policy: Option<&str>, status: Value) {
        let budget = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1,
            "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": [app]}]},
            "unhealthyPodEvictionPolicy": policy}});
        self.made(BUDGETS, budget).await;
        self.status(&format!("{BUDGETS}/{name}"), json!({"status": status}))
            .await;
    }

    async fn made(&self, path: &str, object: Value) {
        let made = self.post(path, object).await;
        made.has_created();
    }

    async fn status(&self, path: &str, patch: Value) {
        let path = format!("{path}/status");
        let patched = self.patch(&path, "merge-patch+json", patch).await;
        assert_eq!(patched.head.status, StatusCode::OK, "{}", patched.text());
    }

    async fn evict(&self, pod: &str, options: Value) -> Answer {
        let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1",
            "metadata": {"name": pod}, "deleteOptions": options});
        self.post(&format!("{PODS}/{pod}/eviction"), eviction).await
    }

    async fn is_going(&self, pod: &str) -> bool {
        let pod = self.get(&format!("{PODS}/{pod}")).await;
        pod.head.status == StatusCode::NOT_FOUND
            || !pod.json()["metadata"]["deletionTimestamp"].is_null()
    }
}

#[tokio::test]
async fn pods_are_evicted() {
    let fixture = Fixture::start(true).await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
        "containers": [{"name": "c", "image": "nginx"}]}});
    let created = fixture.post(PODS, pod).await;
    created.has_created();
    let path = format!("{PODS}/p");
    let running = json!({"status": {"phase": "Running"}});
    let status = format!("{path}/status");
    fixture.patch(&status, "merge-patch+json", running).await;
    let evict = |options: Value| {
        let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1",
            "metadata": {"name": "p"}, "deleteOptions": options});
        let path = format!("{path}/eviction");
        async { fixture.post(&{ path }, eviction).await }
    };
    let before = fixture.get(&path).await.json();
    let dry = evict(json!({"dryRun": ["All"]})).await;
    assert_eq!(
        dry.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "code": 201})
    );
    for wrong in [
        json!({"preconditions": {"resourceVersion": "1"}}),
        json!({"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}}),
    ] {
        assert_eq!(evict(wrong).await.failure().0, 409);
    }
    assert_eq!(fixture.get(&path).await.json(), before);
    let version = before["metadata"]["resourceVersion"].clone();
    let done = evict(json!({"preconditions": {"resourceVersion": version}})).await;
    done.has_created();
    let after = fixture.get(&path).await.json();
    assert_eq!(after["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        after["metadata"]["managedFields"],
        before["metadata"]["managedFields"]
    );
    let conditions = after["status"]["conditions"]
        .as_array()
        .expect("conditions");
    let last = conditions.last().expect("a condition");
    assert_eq!(last["type"], "DisruptionTarget");
    let other = json!({"metadata": {"name": "q"}});
    let refused = fixture.post(&format!("{path}/eviction"), other).await;
    assert_eq!(refused.failure().0, 400);
    evict(json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(fixture.get(&path).await.failure().0, 404);
    assert_eq!(evict(json!({})).await.failure().0, 404);
}

#[tokio::test]
async fn a_budget_is_taken_from_and_then_refuses() {
    let fixture = Fixture::start(true).await;
    let found = json!({"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 3,
        "desiredHealthy": 2, "expectedPods": 3});
    fixture.budget("b", "web", None, found).await;
    fixture.running("one", "web", true).await;
    fixture.running("two", "web", true).await;
    fixture.running("other", "db", true).await;
    let before = fixture.get(&format!("{BUDGETS}/b")).await.json();
    let dry = fixture.evict("one", json!({"dryRun": ["All"]})).await;
    dry.has_created();
    assert_eq!(fixture.get(&format!("{BUDGETS}/b")).await.json(), before);
    let first = fixture.evict("one", json!({})).await;
    first.has_created();
    assert!(fixture.is_going("one").await);
    let after = fixture.get(&format!("{BUDGETS}/b")).await.json();
    assert_eq!(after["status"]["disruptionsAllowed"], 0);
    assert!(
        after["status"]["disruptedPods"]["one"].is_string(),
        "{after}"
    );
    assert_eq!(
        after["status"]["conditions"][0]["reason"],
        "InsufficientPods"
    );
    let manager = |entry: &Value| entry["manager"].as_str().map(str::to_owned);
    let managers = after["metadata"]["managedFields"].as_array();
    let mut managers = managers.expect("managers").iter().filter_map(manager);
    assert!(managers.any(|it| it == "kube-apiserver"), "{after}");
    let second = fixture.evict("two", json!({})).await;
    assert_eq!(second.head.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(second.head.headers.get("retry-after"), None);
    assert_eq!(
        second.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Cannot evict pod as it would violate the pod's disruption budget.",
            "reason": "TooManyRequests", "code": 429,
            "details": {"causes": [{"reason": "DisruptionBudget",
                "message": "The disruption budget b does not allow evicting pods currently"}]}})
    );
    assert!(!fixture.is_going("two").await);
    // Going already, so that it disturbs nothing more.
    let again = fixture.evict("one", json!({})).await;
    again.has_created();
    let other = fixture.evict("other", json!({})).await;
    other.has_created();
    assert_eq!(fixture.get(&format!("{BUDGETS}/b")).await.json(), after);
}

#[tokio::test]
async fn a_budget_that_is_not_known_yet_asks_for_patience() {
    let fixture = Fixture::start(true).await;
    fixture
        .budget("b", "web", None, json!({"disruptionsAllowed": 5}))
        .await;
    fixture.running("one", "web", true).await;
    let refused = fixture.evict("one", json!({})).await;
    assert_eq!(refused.head.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.head.headers["retry-after"], "10");
    let details = refused.json()["details"].clone();
    let why = "The disruption budget b is still being processed by the server.";
    assert_eq!(
        details,
        json!({"retryAfterSeconds": 10,
            "causes": [{"reason": "DisruptionBudget", "message": why}]})
    );
    let pending = json!({"metadata": {"name": "new", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    fixture.made(PODS, pending).await;
    let evicted = fixture.evict("new", json!({})).await;
    evicted.has_created();
    assert!(fixture.is_going("new").await);
}

#[tokio::test]
async fn several_budgets_of_a_pod_are_refused() {
    let fixture = Fixture::start(true).await;
    let found = json!({"observedGeneration": 1, "disruptionsAllowed": 1});
    fixture.budget("b", "web", None, found.clone()).await;
    fixture.budget("c", "web", None, found).await;
    fixture.running("one", "web", true).await;
    let refused = fixture.evict("one", json!({})).await;
    assert_eq!(
        refused.json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            "code": 500})
    );
    assert!(!fixture.is_going("one").await);
}

#[tokio::test]
async fn pods_that_are_not_ready_are_not_counted() {
    let fixture = Fixture::start(true).await;
    let spent = |current: u32| {
        json!({"observedGeneration": 1, "disruptionsAllowed": 0,
            "currentHealthy": current, "desiredHealthy": 2})
    };
    fixture.budget("whole", "whole", None, spent(2)).await;
    fixture.budget("hurt", "hurt", None, spent(1)).await;
    fixture
        .budget("lenient", "lenient", Some("AlwaysAllow"), spent(1))
        .await;
    for (app, ready, code) in [
        ("whole", false, 201),
        ("whole", true, 429),
        ("hurt", false, 429),
        ("lenient", false, 201),
        ("lenient", true, 429),
    ] {
        let name = format!("{app}-{ready}");
        fixture.running(&name, app, ready).await;
        let answer = fixture.evict(&name, json!({})).await;
        assert_eq!(answer.head.status, code, "{name}: {}", answer.text());
        assert_eq!(fixture.is_going(&name).await, code == 201, "{name}");
    }
}

#[tokio::test]
async fn a_budget_is_never_overdrawn() {
    const ALLOWED: usize = 3;
    let fixture = Fixture::start(true).await;
    let found = json!({"observedGeneration": 1, "disruptionsAllowed": ALLOWED});
    fixture.budget("b", "web", None, found).await;
    let names: Vec<_> = (0..12).map(|number| format!("p{number}")).collect();
    for name in &names {
        fixture.running(name, "web", true).await;
    }
    let evictions = names.iter().map(|name| fixture.evict(name, json!({})));
    let answers = futures::future::join_all(evictions).await;
    let evicted = answers
        .iter()
        .filter(|answer| answer.head.status == StatusCode::CREATED);
    assert_eq!(evicted.count(), ALLOWED);
    let mut going = 0;
    for name in &names {
        going += usize::from(fixture.is_going(name).await);
    }
    assert_eq!(going, ALLOWED);
    let budget = fixture.get(&format!("{BUDGETS}/b")).await.json();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    let disrupted = budget["status"]["disruptedPods"].as_object();
    assert_eq!(disrupted.map(|pods| pods.len()), Some(ALLOWED));
}
