//! Tests of who may act as whom: facts of `constrained_impersonation_test.go` and `impersonation_test.go`, Kubernetes
//! 1.36.

use std::sync::Mutex;

use super::modes::first_allowed;
use super::*;

fn user(name: &str) -> User {
    User {
        name: name.to_owned(),
        ..User::default()
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

/// Allows what it has, and notes what it is asked.
struct Rules {
    allowed: Vec<&'static str>,
    asked: Mutex<Vec<String>>,
}

/// Returns an action on one line: verb, resource with its group, namespace, name.
fn line(attributes: &Attributes<'_>) -> String {
    let verb = attributes.verb;
    if !attributes.is_resource {
        return format!("{verb} {}", attributes.path);
    }
    let resource = attributes.combined_resource();
    let (group, namespace, name) = (attributes.group, attributes.namespace, attributes.name);
    let group = if group.is_empty() {
        String::new()
    } else {
        format!(".{group}")
    };
    format!("{verb} {resource}{group} {namespace}/{name}")
}

#[async_trait]
impl Deciding for Rules {
    async fn decide(&self, _: Mode, attributes: &Attributes<'_>) -> Decision {
        let line = line(attributes);
        let allowed = self.allowed.contains(&&*line);
        self.asked.lock().expect("sound").push(line);
        Decision {
            allowed,
            ..Decision::default()
        }
    }
}

/// The outcome of a request that impersonates.
struct Tried {
    allowed: Result<(Mode, User), String>,
    asked: Vec<String>,
}

impl Tried {
    /// Returns the mode and the groups of an allowed request.
    fn mode_and_groups(&self) -> (Mode, Vec<&str>) {
        let (mode, user) = self.allowed.as_ref().expect("allowed");
        (*mode, user.groups.iter().map(String::as_str).collect())
    }

    fn refusal(&self) -> &str {
        self.allowed.as_ref().expect_err("refused")
    }
}

/// Tries to read the pod `bar/foo` as another user.
async fn read_pod_as(allowed: &[&'static str], requestor: &User, wanted: &User) -> Tried {
    let attributes = Attributes {
        namespace: "bar",
        name: "foo",
        ..Attributes::of_resource(requestor, "get", "", "pods")
    };
    tried(allowed, None, wanted, &attributes).await
}

async fn tried(
    allowed: &[&'static str],
    last: Option<Mode>,
    wanted: &User,
    attributes: &Attributes<'_>,
) -> Tried {
    let rules = Rules {
        allowed: allowed.to_vec(),
        asked: Mutex::default(),
    };
    let allowed = first_allowed(&rules, last, wanted, attributes).await;
    Tried {
        allowed: allowed.map_err(|failure| failure.status().message.clone()),
        asked: rules.asked.into_inner().expect("sound"),
    }
}

const ON_USER: &str = "impersonate-on:user-info:get pods bar/foo";
const AS_ANY: &str = "impersonate:user-info users.authentication.k8s.io /joe";

#[tokio::test]
async fn the_action_and_each_part_must_be_allowed() {
    let ann = user("ann");
    let joe = User {
        uid: "7".to_owned(),
        groups: texts(&["ops"]),
        extra: [("acme.io/scopes".to_owned(), texts(&["a"]))].into(),
        ..user("joe")
    };
    let parts = [
        ON_USER,
        AS_ANY,
        "impersonate:user-info uids.authentication.k8s.io /7",
        "impersonate:user-info groups.authentication.k8s.io /ops",
        "impersonate:user-info userextras/acme.io/scopes.authentication.k8s.io /a",
    ];
    let as_joe = read_pod_as(&parts, &ann, &joe).await;
    let groups = vec!["ops", "system:authenticated"];
    assert_eq!(as_joe.mode_and_groups(), (Mode::UserInfo, groups));
    assert_eq!(as_joe.asked, parts);
    for (missing, words) in [
        (
            0,
            "pods \"foo\" is forbidden: User \"ann\" cannot impersonate-on:user-info:get resource \"pods\" in API group \
             \"\" in the namespace \"bar\"",
        ),
        (
            1,
            "users.authentication.k8s.io \"joe\" is forbidden: User \"ann\" cannot impersonate:user-info resource \
             \"users\" in API group \"authentication.k8s.io\" at the cluster scope",
        ),
        (2, "uids.authentication.k8s.io \"7\" is forbidden"),
        (3, "groups.authentication.k8s.io \"ops\" is forbidden"),
        (
            4,
            "userextras.authentication.k8s.io \"a\" is forbidden: User \"ann\" cannot impersonate:user-info resource \
             \"userextras/acme.io/scopes\" in API group",
        ),
    ] {
        let mut fewer = parts.to_vec();
        fewer.remove(missing);
        let refused = read_pod_as(&fewer, &ann, &joe).await;
        assert!(
            refused.refusal().starts_with(words),
            "{}",
            refused.refusal()
        );
    }

    let path = Attributes::of_path(&ann, "get", "/healthz");
    let allowed = ["impersonate-on:user-info:get /healthz", AS_ANY];
    let healthy = tried(&allowed, None, &user("joe"), &path).await;
    assert_eq!(healthy.mode_and_groups().0, Mode::UserInfo);
}

#[tokio::test]
async fn users_of_each_kind_have_a_mode() {
    let ann = user("ann");
    let on = |mode| format!("impersonate-on:{mode}:get pods bar/foo");
    for (name, mode, part, groups) in [
        ("joe", Mode::UserInfo, AS_ANY, &["system:authenticated"][..]),
        (
            "system:anonymous",
            Mode::UserInfo,
            "impersonate:user-info users.authentication.k8s.io /system:anonymous",
            &["system:unauthenticated"],
        ),
        (
            "system:node:Node1",
            Mode::UserInfo,
            "impersonate:user-info users.authentication.k8s.io /system:node:Node1",
            &["system:authenticated"],
        ),
        (
            "system:serviceaccount:ns:Not_Valid",
            Mode::UserInfo,
            "impersonate:user-info users.authentication.k8s.io /system:serviceaccount:ns:Not_Valid",
            &["system:authenticated"],
        ),
        (
            "system:node:node1",
            Mode::ArbitraryNode,
            "impersonate:arbitrary-node nodes.authentication.k8s.io /node1",
            &["system:nodes", "system:authenticated"],
        ),
        (
            "system:serviceaccount:a:robot",
            Mode::ServiceAccount,
            "impersonate:serviceaccount serviceaccounts.authentication.k8s.io a/robot",
            &[
                "system:serviceaccounts",
                "system:serviceaccounts:a",
                "system:authenticated",
            ],
        ),
    ] {
        let on = on(mode.name());
        let allowed = [&*on.leak(), part];
        let as_other = read_pod_as(&allowed, &ann, &user(name)).await;
        assert_eq!(
            as_other.mode_and_groups(),
            (mode, groups.to_vec()),
            "{name}"
        );
        assert_eq!(as_other.asked, allowed, "{name}");
    }
    // Nodes and service accounts are nothing but a name in constrained modes.
    for name in ["system:node:node1", "system:serviceaccount:a:robot"] {
        let mut wanted = user(name);
        wanted.groups = texts(&["ops"]);
        let refused = read_pod_as(&[], &ann, &wanted).await;
        assert!(refused.refusal().contains("cannot impersonate resource"));
        assert_eq!(refused.asked.len(), 1, "{:?}", refused.asked);
    }
}

#[tokio::test]
async fn a_service_account_acts_as_the_node_of_its_pod() {
    let on = |node: &str| User {
        extra: [
            (
                "authentication.kubernetes.io/node-name".to_owned(),
                texts(&[node]),
            ),
            (
                "authentication.kubernetes.io/pod-name".to_owned(),
                texts(&["p"]),
            ),
        ]
        .into(),
        ..user("system:serviceaccount:a:agent")
    };
    let node = user("system:node:node1");
    let allowed = [
        "impersonate-on:associated-node:get pods bar/foo",
        "impersonate:associated-node nodes.authentication.k8s.io /*",
    ];
    let as_node = read_pod_as(&allowed, &on("node1"), &node).await;
    let groups = vec!["system:nodes", "system:authenticated"];
    assert_eq!(as_node.mode_and_groups(), (Mode::AssociatedNode, groups));
    let (_, found) = as_node.allowed.expect("allowed");
    assert_eq!((&*found.name, found.extra.len()), ("system:node:node1", 0));
    // Of another node, or none, or somebody who is no service account.
    let stranger = User {
        name: "ann".to_owned(),
        ..on("node1")
    };
    for requestor in [on("node2"), user("system:serviceaccount:a:agent"), stranger] {
        let refused = read_pod_as(&allowed, &requestor, &node).await;
        assert!(
            refused
                .refusal()
                .contains("impersonate-on:arbitrary-node:get")
        );
        let associated = |it: &&String| it.contains("associated");
        assert_eq!(refused.asked.iter().find(associated), None);
    }
}

#[tokio::test]
async fn an_account_is_authorized_for_its_node_whichever_that_is() {
    /// Notes the extra fields of whom it is asked about.
    struct Noting(Mutex<Vec<BTreeMap<String, Vec<String>>>>);

    #[async_trait]
    impl Deciding for Noting {
        async fn decide(&self, _: Mode, attributes: &Attributes<'_>) -> Decision {
            let extra = attributes.user.extra.clone();
            self.0.lock().expect("sound").push(extra);
            Decision {
                allowed: true,
                ..Decision::default()
            }
        }
    }
    let key = "authentication.kubernetes.io/node-name";
    let agent = User {
        extra: [(key.to_owned(), texts(&["node1"]))].into(),
        ..user("system:serviceaccount:a:agent")
    };
    let noting = Noting(Mutex::default());
    let attributes = Attributes::of_resource(&agent, "list", "", "pods");
    let node = user("system:node:node1");
    let allowed = first_allowed(&noting, None, &node, &attributes).await;
    assert!(allowed.is_ok_and(|(mode, _)| mode == Mode::AssociatedNode));
    let keys = "authentication.kubernetes.io/associated-node-keys".to_owned();
    let expected = BTreeMap::from([(keys, texts(&[key]))]);
    assert_eq!(
        noting.0.into_inner().expect("sound"),
        [expected.clone(), expected]
    );
}

#[tokio::test]
async fn many_parts_may_be_allowed_at_once() {
    let ann = user("ann");
    let mut joe = user("joe");
    joe.groups = texts(&["a", "b", "c", "d"]);
    let all = "impersonate:user-info groups.authentication.k8s.io /*";
    let as_joe = read_pod_as(&[ON_USER, AS_ANY, all], &ann, &joe).await;
    assert_eq!(as_joe.asked, [ON_USER, AS_ANY, all]);
    joe.groups.truncate(3);
    let refused = read_pod_as(&[ON_USER, AS_ANY, all], &ann, &joe).await;
    assert!(
        refused
            .refusal()
            .contains("groups.authentication.k8s.io \"a\"")
    );

    joe.groups.clear();
    joe.extra = [("acme.io/a".to_owned(), texts(&["1", "2", "3", "4"]))].into();
    let all = "impersonate:user-info userextras/*.authentication.k8s.io /*";
    let as_joe = read_pod_as(&[ON_USER, AS_ANY, all], &ann, &joe).await;
    assert_eq!(as_joe.asked, [ON_USER, AS_ANY, all]);

    // Each of them will do as well.
    let each = ["1", "2", "3", "4"].map(|value| {
        let line =
            format!("impersonate:user-info userextras/acme.io/a.authentication.k8s.io /{value}");
        &*line.leak()
    });
    let allowed: Vec<_> = [ON_USER, AS_ANY].into_iter().chain(each).collect();
    let as_joe = read_pod_as(&allowed, &ann, &joe).await;
    assert_eq!(as_joe.mode_and_groups().0, Mode::UserInfo);
    assert_eq!(as_joe.asked.len(), 7);
}

#[tokio::test]
async fn some_parts_are_never_allowed_but_by_legacy() {
    let ann = user("ann");
    let legacy = "impersonate users /joe";
    let with_groups = |groups: &[&str]| User {
        groups: texts(groups),
        ..user("joe")
    };
    let with_extra = |key: &str, value: &str| User {
        extra: [(key.to_owned(), texts(&[value]))].into(),
        ..user("joe")
    };
    for (wanted, why, part) in [
        (
            with_groups(&["system:masters"]),
            "impersonating the system:masters group is not allowed",
            "impersonate groups /system:masters",
        ),
        (
            with_groups(&[""]),
            "impersonating the empty string group is not allowed",
            "impersonate groups /",
        ),
        (
            with_extra("", "a"),
            "impersonating the empty string key in extra is not allowed",
            "impersonate userextras.authentication.k8s.io /a",
        ),
        (
            with_extra("scopes", "a"),
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"scopes\": must be a \
             domain-prefixed path (such as \"acme.io/foo\")",
            "impersonate userextras/scopes.authentication.k8s.io /a",
        ),
        (
            with_extra("acme.io/Scopes", "a"),
            "impersonating a non-lowercase key in extra is not allowed: \"acme.io/Scopes\"",
            "impersonate userextras/acme.io/Scopes.authentication.k8s.io /a",
        ),
        (
            with_extra("acme.io/scopes", ""),
            "impersonating the empty string value in extra is not allowed",
            "impersonate userextras/acme.io/scopes.authentication.k8s.io /",
        ),
        (
            with_extra("acme.io/a b", "a"),
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"a b\": Invalid path \
             (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')",
            "impersonate userextras/acme.io/a b.authentication.k8s.io /a",
        ),
    ] {
        let refused = read_pod_as(&[ON_USER, AS_ANY], &ann, &wanted).await;
        assert!(refused.refusal().ends_with(why), "{}", refused.refusal());
        let allowed = [ON_USER, AS_ANY, legacy, part];
        let as_joe = read_pod_as(&allowed, &ann, &wanted).await;
        assert_eq!(as_joe.mode_and_groups().0, Mode::Legacy, "{why}");
    }
}

#[tokio::test]
async fn the_last_mode_is_tried_first() {
    let (ann, joe) = (user("ann"), user("joe"));
    let legacy = "impersonate users /joe";
    let attributes = Attributes::of_resource(&ann, "list", "", "pods");
    let first = tried(&[legacy], None, &joe, &attributes).await;
    assert_eq!(
        first.mode_and_groups(),
        (Mode::Legacy, vec!["system:authenticated"])
    );
    assert_eq!(
        first.asked,
        ["impersonate-on:user-info:list pods /", legacy]
    );
    let again = tried(&[legacy], Some(Mode::Legacy), &joe, &attributes).await;
    assert_eq!(again.asked, [legacy]);
    // Its refusal is what the client gets.
    let refused = tried(&[], Some(Mode::Legacy), &joe, &attributes).await;
    assert_eq!(
        refused.refusal(),
        "users \"joe\" is forbidden: User \"ann\" cannot impersonate resource \"users\" in API group \"\" at the \
         cluster scope"
    );
    assert_eq!(
        refused.asked,
        [legacy, "impersonate-on:user-info:list pods /"]
    );
}

#[tokio::test]
async fn legacy_parts_are_resources_of_several_groups() {
    let ann = user("ann");
    let wanted = User {
        name: "system:serviceaccount:a:robot".to_owned(),
        uid: "7".to_owned(),
        groups: texts(&["devs", UNAUTHENTICATED]),
        extra: [("scopes".to_owned(), texts(&["all"]))].into(),
    };
    let parts = [
        "impersonate serviceaccounts a/robot",
        "impersonate uids.authentication.k8s.io /7",
        "impersonate groups /devs",
        "impersonate groups /system:unauthenticated",
        "impersonate userextras/scopes.authentication.k8s.io /all",
    ];
    let as_robot = read_pod_as(&parts, &ann, &wanted).await;
    assert_eq!(as_robot.asked, parts);
    let groups = vec!["devs", UNAUTHENTICATED];
    assert_eq!(as_robot.mode_and_groups(), (Mode::Legacy, groups));
}

const UNAUTHENTICATED: &str = "system:unauthenticated";

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().expect("a value"));
    }
    headers
}

#[test]
fn all_parts_of_an_identity_are_read() {
    let read = |pairs: &[(&'static str, &str)]| wanted(&headers(pairs));
    let jane = read(&[
        (USER, "jane"),
        (UID, "7"),
        (GROUP, "b"),
        (GROUP, "a"),
        ("impersonate-extra-acme.com%2fproject", "a"),
        ("impersonate-extra-acme.com%2fproject", "b"),
        ("impersonate-extra-100%", "c"),
        ("impersonate-other", "ignored"),
    ]);
    let jane = jane.expect("a user").expect("a user");
    assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
    assert_eq!(jane.groups, ["b", "a"]);
    assert_eq!(jane.extra["acme.com/project"], ["a", "b"]);
    assert_eq!(jane.extra["100%"], ["c"]);
    let nobody = read(&[("impersonate-other", "ignored"), (USER, "")]);
    assert_eq!(nobody.expect("nobody"), None);
    let nobody = read(&[(GROUP, "a")]).expect_err("no user");
    assert!(matches!(nobody, NotImpersonated::NoUser(_)));
}

#[tokio::test]
async fn attempts_and_checks_are_counted() {
    let mut registry = Registry::default();
    let always = Authorizer::always_allow();
    let impersonation = Impersonation::new(always, Clock::real(), &mut registry);
    let info = RequestInfo::new(&http::Method::GET, "/api/v1/pods", "");
    let headers = headers(&[(USER, "joe")]);
    let ann = user("ann");
    let as_joe = impersonation.impersonated(&ann, &info, "", &headers);
    let as_joe = as_joe.await.expect("allowed").expect("a user");
    assert_eq!(as_joe.constraint, Some("impersonate:user-info"));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
    for line in [
        "apiserver_impersonation_attempts_total{mode=\"user-info\",decision=\"allowed\"} 1",
        "apiserver_impersonation_attempts_duration_seconds_count{mode=\"user-info\",decision=\"allowed\"} 1",
        "apiserver_impersonation_authorization_attempts_total{mode=\"user-info\",decision=\"allowed\"} 2",
        "apiserver_impersonation_authorization_attempts_duration_seconds_count{mode=\"user-info\",decision=\"allowed\"} 2",
    ] {
        assert!(text.contains(line), "{text}");
    }
}
