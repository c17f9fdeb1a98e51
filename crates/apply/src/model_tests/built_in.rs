//! Random configurations of objects of built-in kinds, in which members are left out, null or empty.

use proptest::prelude::*;
use ringwatch::codec;
use ringwatch_apimachinery::Error;
use serde_json::{Map, Value, json};

use super::schemas::{Choices, at, others};
use crate::managed_fields::ManagedFields;
use crate::schema::Schema;
use crate::{Manager, apply};

/// The members in which the kinds have their content.
const CONTENT: [&str; 5] = ["binaryData", "data", "roleRef", "spec", "subjects"];

/// Objects of built-in kinds with many members.
pub(super) fn built_in() -> [Value; 7] {
    let metadata = json!({"name": "n", "labels": {"l": "1"}, "annotations": {"a": "1"}});
    let of = |version: &str, kind: &str, rest: Value| {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        for (name, value) in rest.as_object().expect("an object") {
            object[name] = value.clone();
        }
        object
    };
    [
        of(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 2, "paused": true, "minReadySeconds": 1,
                "selector": {"matchLabels": {"a": "b"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                    "nodeSelector": {"n": "1"}, "terminationGracePeriodSeconds": 5,
                    "securityContext": {"runAsUser": 1}, "tolerations": [{"key": "k"}],
                    "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "1"}],
                        "ports": [{"containerPort": 1, "protocol": "TCP"}],
                        "resources": {"limits": {"cpu": "1"}}}]}}}}),
        ),
        of(
            "v1",
            "Service",
            json!({"spec": {"selector": {"a": "b"}, "sessionAffinity": "ClientIP",
                "externalIPs": ["1.2.3.4"], "ports": [{"port": 80, "protocol": "TCP", "name": "p"}]}}),
        ),
        of(
            "v1",
            "ConfigMap",
            json!({"data": {"a": "1"}, "binaryData": {"b": "eA=="}}),
        ),
        of(
            "v1",
            "Secret",
            json!({"data": {"a": "eA=="}, "type": "Opaque"}),
        ),
        of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {}, "ingress": [{}], "policyTypes": ["Ingress"]}}),
        ),
        of(
            "rbac.authorization.k8s.io/v1",
            "ClusterRoleBinding",
            json!({"roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": "g"},
                "subjects": [{"kind": "User", "name": "u"}]}),
        ),
        of(
            "v1",
            "Node",
            json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"}}),
        ),
    ]
}

/// Makes a configuration of an object: members are left out, null or empty.
fn thinned(object: &Value, choices: &mut Choices<'_>, keeps: bool) -> Value {
    match object {
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let is_key = [
                    "apiVersion",
                    "kind",
                    "name",
                    "containerPort",
                    "port",
                    "protocol",
                ]
                .contains(&name.as_str());
                let found = match choices.next(8) {
                    _ if keeps || is_key => thinned(value, choices, keeps),
                    0 | 1 => continue,
                    2 => Value::Null,
                    3 if value.is_object() => json!({}),
                    3 if value.is_array() => json!([]),
                    _ => thinned(value, choices, keeps),
                };
                kept.insert(name.clone(), found);
            }
            kept.into()
        }
        Value::Array(items) => {
            let kept = items.iter().map(|item| thinned(item, choices, keeps));
            kept.collect()
        }
        other => other.clone(),
    }
}

/// Returns the object as Go's types have it.
fn canonical(mut object: Value) -> Value {
    let kind = codec::kind(
        object["apiVersion"].as_str().expect("a version"),
        object["kind"].as_str().expect("a kind"),
    );
    let members = object.as_object_mut().expect("an object");
    let kind = kind.expect("a built-in kind");
    codec::canonicalize(kind, members);
    codec::complete(kind, members);
    object
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_value_of_a_built_in_kind_goes(
        kind in 0..7_usize,
        one in prop::collection::vec(any::<u8>(), 60),
        other in prop::collection::vec(any::<u8>(), 60),
    ) {
        let object = &built_in()[kind];
        let version = object["apiVersion"].as_str().expect("a version");
        let schema = Schema::new(version, object["kind"].as_str().expect("a kind"), None);
        let config = thinned(object, &mut Choices(one.iter()), true);
        let manager = |name| Manager::for_tests(name, version, "");
        let live = canonical(apply(None, &config, &manager("one"), false).expect("an object"));
        let null = thinned(object, &mut Choices(other.iter()), false);
        let owned = others(&live, "two");
        let next = match apply(Some(&live), &null, &manager("two"), false) {
            Ok(next) => {
                let next = canonical(next);
                for path in &owned {
                    let (old, new) = (at(schema, &live, path), at(schema, &next, path));
                    prop_assert!(old == new || new.is_some_and(|new| !new.is_null()), "{path:?} {null}");
                }
                for name in CONTENT {
                    prop_assert_eq!(&live[name], &next[name], "{}", null);
                }
                next
            }
            Err(Error::ApplyConflict { causes }) => {
                let of_one = |(manager, _): &(String, String)| manager == "conflict with \"one\"";
                prop_assert!(causes.iter().all(of_one), "{causes:?}");
                canonical(apply(Some(&live), &null, &manager("two"), true).expect("an object"))
            }
            Err(error) => panic!("{error}"),
        };
        // And another time changes nothing.
        let again = apply(Some(&next), &null, &manager("two"), false).expect("no conflict");
        let again = canonical(again);
        let fields = |object: &Value| {
            let managed = ManagedFields::decode(object).expect("entries");
            let entries = managed.entries.into_iter();
            entries.map(|(identity, entry)| (identity, entry.fields)).collect::<Vec<_>>()
        };
        prop_assert_eq!(fields(&again), fields(&next));
        for name in CONTENT {
            prop_assert_eq!(&again[name], &next[name], "{}", null);
        }
    }
}
