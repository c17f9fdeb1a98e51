//! The encoder of text against that of trees.

use std::fs;

use proptest::prelude::*;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use ringwatch_testing::recorded;
use serde_json::{Value, json};

use super::*;
use crate::codec::tables::all_kinds;
use crate::codec::tests::sample;
use crate::codec::{encode_value, list_item};

/// Compares both encoders on a text, and returns true if the text is taken.
fn agree(text: &str) -> bool {
    let tree: Value = serde_json::from_str(text).expect("JSON");
    let found = encode_text(text.as_bytes());
    let item = list_item_of_text(text.as_bytes());
    assert_eq!(found.is_some(), item.is_some(), "{text}");
    if found.is_none() {
        return false;
    }
    assert_eq!(found, encode_value(&tree), "{text}");
    assert_eq!(item, list_item(&tree), "{text}");
    true
}

#[test]
fn objects_of_kubernetes_are_encoded_as_their_trees() {
    let Some(folder) = recorded::testdata("Kubernetes' objects as text in the codec") else {
        return;
    };
    let (mut seen, mut taken) = (0, 0);
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let json = fs::read(&path).expect("JSON");
        let object: Value = serde_json::from_slice(&json).expect("JSON");
        seen += 1;
        taken += usize::from(agree(&object.to_string()));
    }
    assert!(seen > 100 && taken * 10 > seen * 9, "{taken} of {seen}");
}

#[test]
fn odd_members_are_as_in_trees() {
    let head = r#""kind":"Pod","apiVersion":"v1""#;
    for rest in [
        r#""metadata":{"name":7,"labels":{"b":"2","a":"1","b":"3","c":null},"name":"last"}"#,
        r#""metadata":{"labels":{"\\\"":"x","Z":"y","a":"z"},"annotations":{"n\n\t\/":"\b\f\r"}}"#,
        r#""metadata":null,"spec":[],"status":"x","unknown":{"a":[1,{}]}"#,
        r#""metadata":{"finalizers":["a",null,1],"ownerReferences":[null,{},{"uid":"u","controller":true}]}"#,
        r#""metadata":{"generation":-5,"creationTimestamp":"2026-01-01T00:00:00Z","deletionTimestamp":null}"#,
        r#""metadata":{"managedFields":[{"fieldsV1":{"f:b":{},"f:a":{}}},{"fieldsV1":{"f:a":{".":{}},"k:{\"n\":\"x\"}":{}}}]}"#,
        r#""metadata":{"managedFields":[{"fieldsV1":{"Z":{},"\"":{}}},{"fieldsV1":null},{"fieldsV1":{"a":{},"a":null}}]}"#,
        r#""metadata":{"managedFields":[{"fieldsV1":{"f:a\/":{}}},{"fieldsV1":{"v:\"<é>\"":[1,"x",null]}}]}"#,
        r#""spec":{"containers":[{"name":"c","ports":[{"containerPort":80,"hostPort":99999999999}],
            "resources":{"limits":{"memory":"1Gi","cpu":2}},"livenessProbe":{"httpGet":{"port":"x"},"exec":[]}}]}"#,
        r#""spec":{"hostNetwork":1,"nodeName":true,"restartPolicy":"","activeDeadlineSeconds":"5"}"#,
    ] {
        let text = format!("{{{head},{rest}}}").replace("\n            ", "");
        assert!(agree(&text), "{text}");
    }
    let secret = r#"{"apiVersion":"v1","data":{"a":"eA==","b":"?","c":5},"kind":"Secret"}"#;
    assert!(agree(secret));
    for left in [
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"\u0061"}}"#,
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"generation":1.0}}"#,
        r#"{"kind":"Mine","apiVersion":"example.com/v1"}"#,
        r#"{"kind":"Pod"}"#,
        r#"{"kind":1,"apiVersion":"v1"}"#,
        "[]",
    ] {
        assert!(!agree(left), "{left}");
    }
}

proptest! {
    /// Random objects of all kinds, as this server writes them.
    #[test]
    fn random_objects_are_encoded_as_their_trees(seed: u64, index: prop::sample::Index) {
        let mut kinds: Vec<_> = all_kinds().collect();
        kinds.sort_unstable();
        let (api_version, name) = kinds[index.index(kinds.len())];
        let message = kind(api_version, name).expect("a known kind").0;
        let mut object = sample(message, &mut StdRng::seed_from_u64(seed), 0);
        object["apiVersion"] = api_version.into();
        object["kind"] = name.into();
        agree(&object.to_string());
    }

    /// Members of the right names and of any type.
    #[test]
    fn members_of_wrong_types_are_as_in_trees(values in prop::collection::vec(odd(), 6)) {
        let [a, b, c, d, e, f] = values.try_into().expect("six");
        let object = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": a, "labels": b, "ownerReferences": [c], "managedFields": [{"fieldsV1": d}]},
            "spec": {"containers": [e], "nodeSelector": {"k": f}}, "status": d});
        agree(&object.to_string());
    }
}

/// Values of all types, in which numbers have no point.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a\"\\\\/<é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("(name|ports|uid|[a\"\\\\]{0,2})", inner, 0..3)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    })
}
