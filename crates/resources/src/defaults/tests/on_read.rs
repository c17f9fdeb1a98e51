//! Objects that lie in the store without a default, and get it when they are read.

use std::sync::Arc;

use ringwatch::codec;
use ringwatch::meta::Object;
use ringwatch::storage::{Completion, Versioner};
use ringwatch_registry::{DefaultsOnRead, Resource};
use serde_json::{Value, json};

use super::table::{all_fields, stored};

fn object(bytes: &[u8]) -> Object {
    codec::object(bytes, 7, &Default::default()).expect("an object")
}

/// Returns an object in the protobuf of its storage version; `None` if the tables of protobuf do not know all of it.
fn encoded(resource: &Resource, object: &Value) -> Option<Vec<u8>> {
    let mut object = object.clone();
    object["apiVersion"] = resource.storage_version.to_string().into();
    codec::encode_value(&object)
}

/// Returns how a resource's object is read from its bytes.
fn read(resource: &Arc<Resource>, bytes: &[u8]) -> Value {
    let completion = Arc::new(DefaultsOnRead::new(Arc::clone(resource)));
    let versioner = Versioner::default().completing(completion);
    let bytes = bytes.to_vec().into();
    let object = versioner.update_object(bytes, 7).expect("an object");
    codec::tree(&object).expect("a tree")
}

/// Objects that have their defaults are not parsed, or every read of them would be slow; those that lack one get all.
#[test]
fn what_lacks_a_default_and_nothing_else_is_parsed() {
    let (mut count, mut differ) = (0, Vec::new());
    for (resource, sample, field) in all_fields() {
        let name = format!("{} {}", resource.qualified_name(), field.path);
        let absent = field.forms(&sample, &Value::Null).absent;
        let whole = stored(&resource, &absent);
        let Some((lacking, complete)) = encoded(&resource, &absent).zip(encoded(&resource, &whole))
        else {
            continue;
        };
        let completion = DefaultsOnRead::new(Arc::clone(&resource));
        assert!(
            completion.is_complete(&object(&complete)),
            "{name}: {whole}"
        );
        // Zeros are not looked for, nor are some of the defaults that functions give.
        // Nodes have their info on the wire also if it is empty.
        if !field.is_looked_for || field.path == "status.nodeInfo" {
            continue;
        }
        let expected = codec::tree(&object(&complete)).expect("a tree");
        let found = read(&resource, &lacking);
        if found != expected {
            println!("DIFFERS {name}: {found} instead of {expected}");
            differ.push(name);
        }
        count += 1;
    }
    assert!(differ.is_empty(), "{differ:?}");
    assert!(count > 300, "{count} fields");
}

#[test]
fn defaults_of_functions_and_of_another_version_are_given() {
    let policy = json!({"matchConstraints": {"matchPolicy": "Exact"}});
    let cases = [
        (
            "nodes",
            json!({"apiVersion": "v1", "kind": "Node", "status": {"capacity": {"cpu": "4"}}}),
            "/status/allocatable/cpu",
            "4",
        ),
        (
            "limitranges",
            json!({"apiVersion": "v1", "kind": "LimitRange",
                "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]}}),
            "/spec/limits/0/defaultRequest/cpu",
            "2",
        ),
        (
            "mutatingadmissionpolicies",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "spec": policy}),
            "/spec/failurePolicy",
            "Fail",
        ),
        (
            "mutatingadmissionpolicies",
            json!({"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "MutatingAdmissionPolicy", "spec": policy}),
            "/spec/failurePolicy",
            "Fail",
        ),
    ];
    for (plural, object, path, value) in cases {
        let mut resources = crate::built_in().into_iter();
        let resource = resources.find(|one| one.plural == plural);
        let bytes = codec::encode_value(&object).expect("protobuf");
        let found = read(&resource.expect("a resource"), &bytes);
        let default = found.pointer(path).and_then(Value::as_str);
        assert_eq!(default, Some(value), "{found}");
    }
}
