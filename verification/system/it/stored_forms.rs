//! Objects in the forms in which they may lie in a store, against those that Kubernetes wrote.

use std::collections::BTreeMap;
use std::fs;

use ringwatch::codec;
use ringwatch::meta::{FieldSchema, Object};
use ringwatch::storage::{StorageMediaType, Versioner};
use ringwatch_resources::built_in;
use serde_json::Value;

use crate::support::{recorded, tell_kinds_of_claims};

const REVISION: u64 = 1_234_567;

/// An object of every kind, as Kubernetes writes it in either form, and its type's fields.
fn objects() -> Vec<(String, Vec<u8>, Value, FieldSchema)> {
    let Some(folder) = recorded::testdata("the forms of stored objects") else {
        return Vec::new();
    };
    let schemas: BTreeMap<(String, String), FieldSchema> = built_in()
        .iter()
        .map(|it| {
            let kind = (it.storage_version.to_string(), it.storage_kind.clone());
            (kind, it.schema.clone())
        })
        .collect();
    let mut objects = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "pb") {
            continue;
        }
        let json = fs::read(path.with_extension("json")).expect("JSON");
        let mut json: Value = serde_json::from_slice(&json).expect("JSON");
        tell_kinds_of_claims(&mut json);
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        if json["metadata"]["name"].is_null() {
            continue;
        }
        let schema = schemas.get(&(text("apiVersion"), text("kind")));
        let name = path.file_stem().expect("a name").to_string_lossy();
        let bytes = fs::read(&path).expect("protobuf");
        objects.push((
            name.into_owned(),
            bytes,
            json,
            schema.cloned().unwrap_or_default(),
        ));
    }
    assert!(objects.len() > 80, "{} objects", objects.len());
    objects
}

/// The tree with another version, or none.
fn with_version(mut tree: Value, version: Option<u64>) -> Value {
    let metadata = tree["metadata"].as_object_mut().expect("metadata");
    match version {
        Some(version) => metadata.insert("resourceVersion".to_owned(), version.to_string().into()),
        None => metadata.remove("resourceVersion"),
    };
    tree
}

fn tree(object: &Object) -> Value {
    codec::tree(object).expect("a tree")
}

#[test]
fn either_form_is_the_same_object() {
    for (name, protobuf, json, schema) in objects() {
        let text = json.to_string();
        let json_object = codec::object(text.as_bytes(), REVISION, &schema).expect(&name);
        let object = codec::object(&protobuf, REVISION, &schema).expect(&name);
        assert_eq!(object.attributes(), json_object.attributes(), "{name}");
        let expected = with_version(json, Some(REVISION));
        assert_eq!(tree(&object), expected, "{name}");
        assert_eq!(tree(&json_object), expected, "{name}");
    }
}

#[test]
fn the_version_comes_and_goes_without_a_trace() {
    for (name, protobuf, _, schema) in objects() {
        let object = codec::object(&protobuf, REVISION, &schema).expect(&name);
        let stored = object.stored();
        assert_ne!(*stored, protobuf, "{name} had a version");
        for revision in [1, REVISION, u64::MAX] {
            let read = codec::object(stored, revision, &schema).expect(&name);
            assert_eq!(read.bytes(), object.at_revision(revision).bytes(), "{name}");
            assert_eq!(read.stored(), stored, "{name}");
            assert_eq!(
                tree(&read)["metadata"]["resourceVersion"],
                revision.to_string()
            );
        }
        let unstored = codec::object(&protobuf, 0, &schema).expect(&name);
        assert_eq!(unstored.bytes(), stored, "{name}");
        let shared = codec::object_sharing(stored.clone(), 1, &schema).expect(&name);
        assert_eq!(shared.stored().as_ptr(), stored.as_ptr(), "{name}");
        let message = object.item().to_bytes();
        let head = codec::list_item_head(message.len());
        let item = codec::list_item(&tree(&object)).expect("a kind");
        assert_eq!([&head[..], &message].concat(), item, "{name}");
    }
}

#[test]
fn what_is_written_is_what_kubernetes_would_have_written() {
    for (name, protobuf, json, schema) in objects() {
        let versioner = Versioner::new(schema.clone()).writing(StorageMediaType::Protobuf);
        let written = versioner.prepare_for_storage(&json, &[]).expect(&name);
        // The self link is never stored; the version is empty.
        let mut without = with_version(json.clone(), None);
        let metadata = without["metadata"].as_object_mut().expect("metadata");
        metadata.remove("selfLink");
        let kind = codec::kind(
            json["apiVersion"].as_str().expect("a version"),
            json["kind"].as_str().expect("a kind"),
        );
        let expected = codec::encode(kind.expect("a message"), &without);
        assert_eq!(*written.stored(), expected, "{name}");
        assert_eq!(written.bytes(), expected, "{name}");
        assert!(protobuf.len() > expected.len(), "{name}");
        let as_json = Versioner::new(schema).prepare_for_storage(&json, &[]);
        let as_json = as_json.expect(&name);
        assert_eq!(tree(&as_json), without, "{name}");
        assert_eq!(as_json.attributes(), written.attributes(), "{name}");
    }
}

#[test]
fn an_update_of_one_field_changes_nothing_else() {
    for (name, protobuf, json, schema) in objects() {
        let object = codec::object(&protobuf, REVISION, &schema).expect(&name);
        let stored = object.stored();
        let versioner = Versioner::new(schema).writing(StorageMediaType::Protobuf);
        let written = |tree: &Value, over: &[u8]| {
            let written = versioner.prepare_for_storage(tree, over);
            written.expect(&name)
        };
        let mut labelled = tree(&object);
        labelled["metadata"]["labels"]["seen"] = "yes".into();
        let updated = written(&labelled, stored);
        // The self link is the only other thing that goes: it is never stored.
        let mut expected = with_version(json, None);
        let metadata = expected["metadata"].as_object_mut().expect("metadata");
        metadata.remove("selfLink");
        let before = written(&expected, &[]).stored().clone();
        expected["metadata"]["labels"]["seen"] = "yes".into();
        assert_eq!(tree(&updated), expected, "{name}");
        let mut unlabelled = tree(&updated);
        let labels = unlabelled["metadata"]["labels"].as_object_mut();
        labels.expect("labels").remove("seen");
        let back = written(&unlabelled, updated.stored());
        assert_eq!(*back.stored(), before, "{name}");
    }
}

#[test]
fn parts_in_another_order_are_put_right() {
    /// A field of a number below 16 with a short content.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, content.len() as u8];
        out.extend_from_slice(content);
        out
    }
    let types = field(1, &[field(1, b"v1"), field(2, b"ConfigMap")].concat());
    let name = field(1, b"a");
    let label = field(11, &[field(1, b"app"), field(2, b"x")].concat());
    let data = field(2, &[field(1, b"k"), field(2, b"v")].concat());
    let early = [label.clone(), field(6, b"99")].concat();
    let late = [field(6, b""), name.clone()].concat();
    let message = [field(1, &early), data.clone(), field(1, &late)].concat();
    let envelope = [field(4, b""), field(2, &message), types.clone()].concat();
    let odd = [b"k8s\0", &envelope[..]].concat();
    let read = codec::object(&odd, 7, &FieldSchema::default()).expect("an object");
    let metadata = [name, field(6, b"7"), label].concat();
    let message = [field(1, &metadata), data].concat();
    let even = [b"k8s\0", &types[..], &field(2, &message), &field(4, b"")].concat();
    assert_eq!(read.bytes()[..], even);
    assert_eq!(read.name(), "a");
    assert_eq!(read.attributes().labels().get("app"), Some("x"));
}

#[test]
fn what_is_no_object_is_refused() {
    for (bytes, why) in [
        (&b""[..], "EOF"),
        (b"nonsense", "expected"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x12\x00", "no kind \"\" is registered"),
        (
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Gadget\x12\x00",
            "no kind \"Gadget\" is registered for version \"v1\"",
        ),
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x05",
            "unexpected EOF",
        ),
        // Broken in a part that is not looked at for anything.
        (
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x04\x12\x02\x0a\x05",
            "unexpected EOF",
        ),
        (b"k8s:enc:aesgcm:v1:key:", "expected value"),
    ] {
        let error = codec::object(bytes, 1, &FieldSchema::default()).expect_err(why);
        assert!(error.to_string().contains(why), "{error}");
    }
}
