//! The codec against objects that Kubernetes wrote, and against random bytes.
//!
//! Tests that need objects or answers recorded from Kubernetes are named as skipped without them.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use ringwatch_testing::recorded;
use serde_json::{Map, Value, json};

use super::message::{Arity, Field, FieldType, Message, Shape};
use super::tables::all_kinds;
use super::unknown_fields::OldMessage;
use super::wire::{Content, Fields};
use super::*;

const UNTYPED: (&str, &str) = ("", "");

#[test]
fn kubernetes_objects_are_read_and_written() {
    let Some(folder) = recorded::testdata("Kubernetes' objects in the codec") else {
        return;
    };
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|it| it != "pb") {
            continue;
        }
        seen += 1;
        let bytes = fs::read(&path).expect("protobuf");
        let json = fs::read(path.with_extension("json")).expect("JSON");
        let mut expected: Value = serde_json::from_slice(&json).expect("JSON");
        tell_kinds_of_claims(&mut expected);
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        // A WatchEvent has neither kind nor version.
        let typed = expected.get("kind").is_some();
        let mut compare = |bytes: &[u8]| match decode(bytes, ("v1", "WatchEvent")) {
            Err(error) => wrong.push(format!("{name}: {error}")),
            Ok(mut found) => {
                if let Some(members) = found.as_object_mut().filter(|_| !typed) {
                    members.retain(|name, _| !matches!(name.as_str(), "kind" | "apiVersion"));
                }
                difference(&name, &found, &expected, &mut wrong);
            }
        };
        compare(&bytes);
        let watch_event = || kind("v1", "WatchEvent").map(|it| encode(it, &expected));
        let written = encode_value(&expected).or_else(watch_event);
        let written = written.expect("a known kind");
        compare(&written);
        if written != bytes {
            let (found, expected) = (written.len(), bytes.len());
            wrong.push(format!("{name}: {expected} bytes are {found} when written"));
        }
    }
    assert!(seen > 100, "{seen} objects");
    assert!(
        wrong.is_empty(),
        "{} of {seen}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The objects were written by their types alone; kube-apiserver adds the kind and version of the claims in a stateful
/// set.
fn tell_kinds_of_claims(object: &mut Value) {
    let claims = object.pointer_mut("/spec/volumeClaimTemplates");
    for claim in claims.and_then(Value::as_array_mut).into_iter().flatten() {
        claim["kind"] = json!("PersistentVolumeClaim");
        claim["apiVersion"] = json!("v1");
    }
}

/// Collects the paths at which two values differ.
fn difference(path: &str, found: &Value, expected: &Value, wrong: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
            for name in names {
                let path = format!("{path}.{name}");
                let null = Value::String("(absent)".to_owned());
                let (found, expected) = (found.get(name), expected.get(name));
                difference(
                    &path,
                    found.unwrap_or(&null),
                    expected.unwrap_or(&null),
                    wrong,
                );
            }
        }
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                difference(&format!("{path}.{index}"), found, expected, wrong);
            }
        }
        _ if found == expected => {}
        _ => wrong.push(format!("{path}: {found} instead of {expected}")),
    }
}

#[test]
fn recorded_answers_are_written_to_the_byte() {
    let Some(folder) = recorded::answers("recorded answers in the codec") else {
        return;
    };
    for name in [
        "166-poml-list-protobuf",
        "170-protobuf-get-pod",
        "172-protobuf-get-deployment",
        "173-protobuf",
        "174-protobuf-cr",
        "176-protobuf-create-configmap",
    ] {
        let path = folder.join(format!("{name}.http"));
        let answer = fs::read(path).expect("a recorded answer");
        let end = answer
            .windows(2)
            .position(|two| two == b"\n\n")
            .expect("a head");
        let body = &answer[end + 2..];
        let value = decode(body, UNTYPED).expect(name);
        let written = encode_value(&value).expect(name);
        assert_eq!(
            written.escape_ascii().to_string(),
            body.escape_ascii().to_string(),
            "{name}"
        );
    }
}

#[test]
fn empty_fields_are_those_that_go_writes() {
    let config_map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let bytes = encode_value(&config_map).expect("a known kind");
    assert_eq!(
        bytes.escape_ascii().to_string(),
        concat!(
            "k8s\\x00\\n\\x0f\\n\\x02v1\\x12\\tConfigMap\\x12\\x13\\n\\x11\\n\\x01a\\x12\\x00\\x1a\\x00",
            "\\\"\\x00*\\x002\\x008\\x00B\\x00\\x1a\\x00\\\"\\x00"
        )
    );
    let read = decode(&bytes, UNTYPED).expect("a ConfigMap");
    assert_eq!(
        read,
        json!({"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": "a"}})
    );
}

#[test]
fn envelopes_may_leave_out_the_type() {
    let bytes = [&MAGIC[..], &[0x12, 0]].concat();
    let value = decode(&bytes, ("v1", "ConfigMap")).expect("a ConfigMap");
    assert_eq!(value["kind"], "ConfigMap");
    let error = |bytes: &[u8]| decode(bytes, UNTYPED).expect_err("broken").to_string();
    assert_eq!(error(b""), "empty data");
    assert_eq!(error(&MAGIC), "empty body");
    assert!(error(b"{}").ends_with("expected prefix [107 56 115 0]"));
    assert_eq!(error(b"k8s\0\x0a\x05"), "unexpected EOF");
    assert!(error(&bytes).starts_with("no kind"));
}

#[test]
fn a_version_that_is_none_is_left_out() {
    let content = [&envelope::begin("a/b/c", "ConfigMap")[..], envelope::END].concat();
    let object = decode(&content, ("v1", "ConfigMap")).expect("a ConfigMap");
    assert_eq!(object["apiVersion"], "v1");
    let content = [&envelope::begin("b/c", "ConfigMap")[..], envelope::END].concat();
    assert!(decode(&content, ("v1", "ConfigMap")).is_err());
}

#[test]
fn wire_types_are_looked_at_where_go_does() {
    let read = |kind: &str, raw: &[u8]| {
        let mut content = envelope::begin("apps/v1", kind);
        wire::put_bytes(&mut content, 2, raw);
        decode(&content, ("", "")).map_err(|error| error.to_string())
    };
    // The data of a ControllerRevision, and a label whose key and value say that they are numbers.
    let refused = read("ControllerRevision", b"\x12\x02\x08\x01").expect_err("a number");
    assert!(refused.contains("wrong wireType = 0"), "{refused}");
    let label = b"\x0a\x0a\x5a\x08\x08\x01a\0\0\x10\x01b";
    let object = read("ControllerRevision", label).expect("an object");
    assert_eq!(object["metadata"]["labels"], json!({"a": "b"}));
    let mut content = MAGIC.to_vec();
    wire::put_number(&mut content, 2, 1);
    let refused = decode(&content, ("v1", "ConfigMap")).expect_err("a number");
    assert!(refused.to_string().contains("wrong wireType = 0"));
}

#[test]
fn odd_members_are_left_out() {
    let value = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": 7, "generation": 1.0},
        "spec": {"containers": [null, 3, {"name": "c"}], "hostNetwork": "yes", "future": true}});
    let bytes = encode_value(&value).expect("a known kind");
    let read = decode(&bytes, UNTYPED).expect("a Pod");
    assert_eq!(read["metadata"]["generation"], 1);
    assert_eq!(read["spec"]["containers"][2]["name"], "c");
    assert!(read["spec"].get("future").is_none());
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
    let crd = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
        "spec": {"versions": [{"schema": {"openAPIV3Schema": deep}}]}});
    let bytes = encode_value(&crd).expect("a known kind");
    let error = decode(&bytes, UNTYPED).expect_err("too deep");
    assert_eq!(error.to_string(), "proto: nested too deeply");
    let many = vec![json!({}); 100_000];
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "spec": {"imagePullSecrets": many}});
    let mut bytes = encode_value(&pod).expect("a known kind");
    assert!(decode(&bytes, UNTYPED).is_ok());
    // Containers of no bytes, which Go would never write, become large when they are completed.
    bytes = [
        &b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x84\x80\x04\x12\x80\x80\x04"[..],
        &[0x12, 0].repeat(32 * 1024),
    ]
    .concat();
    let error = decode(&bytes, UNTYPED).expect_err("too long");
    assert_eq!(error.to_string(), "proto: too long in JSON for its size");
}

#[test]
fn frames_tell_their_length() {
    let frame = event_frame("ADDED", b"k8s\0");
    assert_eq!(frame, b"\0\0\0\x0f\x0a\x05ADDED\x12\x06\x0a\x04k8s\0");
}

#[test]
fn lists_come_in_parts() {
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}});
    let item = list_item(&pod).expect("a known kind");
    let meta = json!({"resourceVersion": "7"});
    let head = list_head("v1", "PodList", &meta, item.len());
    let whole = json!({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": [pod]});
    assert_eq!(
        [&head[..], &item, LIST_END].concat(),
        encode_value(&whole).expect("a known kind")
    );
}

/// Returns a random object of a message, in which no field that may be left out is empty.
pub(super) fn sample(message: &Message, random: &mut StdRng, depth: usize) -> Value {
    let number = random.random_range(1..=i32::MAX);
    match message.shape {
        Shape::Items => json!(["a", number.to_string()]),
        Shape::IntOrString if random.random() => json!(number),
        Shape::IntOrString | Shape::Quantity => json!(number.to_string()),
        Shape::Time => {
            let text = time::seconds(number.into()).expect("a time");
            json!(String::from_utf8_lossy(&text))
        }
        Shape::MicroTime => json!(time::micros(number.into(), 7_000).expect("a time")),
        Shape::Duration => json!(duration::format(number.into())),
        Shape::RawExtension | Shape::Json => json!({"x": [number, null, true]}),
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts => json!({}),
        Shape::Object => {
            let mut members = Map::new();
            fill(message, random, depth, &mut members);
            Value::Object(members)
        }
    }
}

/// Some fields of a message.
fn fill(message: &Message, random: &mut StdRng, depth: usize, members: &mut Map<String, Value>) {
    for field in &message.fields {
        if let (true, FieldType::Message(id)) = (field.inline, field.kind) {
            fill(id.message(), random, depth, members);
            continue;
        }
        let message = matches!(field.kind, FieldType::Message(_));
        let deep = depth > 6 && message;
        if deep || random.random_bool(if message { 0.7 } else { 0.5 }) {
            continue;
        }
        let mut one = || match field.kind {
            FieldType::Text => json!(format!("t{}", random.random::<u32>())),
            FieldType::Bytes => json!("AAEC"),
            FieldType::Bool => json!(true),
            FieldType::Int32 => json!(random.random_range(i32::MIN..0)),
            FieldType::Int64 => json!(random.random_range(1..i64::MAX)),
            FieldType::Double => json!(random.random_range(1e-9..1e9)),
            FieldType::Message(id) => sample(id.message(), random, depth + 1),
        };
        let value = match field.arity {
            Arity::One => one(),
            Arity::List => json!([one(), one()]),
            Arity::Map => json!({"k": one(), "": one()}),
        };
        members.insert(field.name.to_owned(), value);
    }
}

/// Returns true if the second value contains the first.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(name, part)| whole.get(name).is_some_and(|whole| is_part(part, whole))),
        (Value::Array(part), Value::Array(whole)) => {
            let both = part.iter().zip(whole);
            part.len() == whole.len() && both.fold(true, |all, (a, b)| all && is_part(a, b))
        }
        _ => part == whole,
    }
}

/// Returns the message with its fields in any order, and its messages in parts.
fn scramble(message: &Message, bytes: &[u8], random: &mut StdRng) -> Vec<u8> {
    if message.shape != Shape::Object {
        return bytes.to_vec();
    }
    let mut queues: Vec<(u32, Vec<Vec<u8>>)> = Vec::new();
    let mut fields = Fields::new(bytes);
    let mut rest = bytes;
    while let Some((number, content)) = fields.next_field().expect("a message") {
        let (raw, after) = rest.split_at(rest.len() - fields.bytes_left());
        rest = after;
        let parts = match (message.field(number), content) {
            (Some(field), Content::Bytes(content)) => scramble_field(field, content, raw, random),
            _ => vec![raw.to_vec()],
        };
        match queues.iter_mut().find(|it| it.0 == number) {
            Some((_, queue)) => queue.extend(parts),
            None => queues.push((number, parts)),
        }
    }
    let mut out = Vec::new();
    while !queues.is_empty() {
        let at = random.random_range(0..queues.len());
        out.extend(queues[at].1.remove(0));
        queues.retain(|it| !it.1.is_empty());
    }
    out
}

/// Returns other encodings of a field: an item stays one, a message may come in two parts, a scalar may have had
/// another value before.
fn scramble_field(field: &Field, content: &[u8], raw: &[u8], random: &mut StdRng) -> Vec<Vec<u8>> {
    let as_field = |content: &[u8]| {
        let mut out = Vec::new();
        wire::put_bytes(&mut out, field.number, content);
        out
    };
    match (field.arity, field.kind) {
        (Arity::List, FieldType::Message(id)) => {
            vec![as_field(&scramble(id.message(), content, random))]
        }
        (Arity::One, FieldType::Message(id)) if id.message().shape == Shape::Object => {
            let content = scramble(id.message(), content, random);
            let mut fields = Fields::new(&content);
            if random.random() {
                let _ = fields.next_field();
            }
            let (first, second) = content.split_at(content.len() - fields.bytes_left());
            vec![as_field(first), as_field(second)]
        }
        (Arity::Map, _) => vec![as_field(&[0x0a, 1, b'k']), raw.to_vec()],
        (Arity::One, FieldType::Text) => vec![as_field(b"earlier"), raw.to_vec()],
        _ => vec![raw.to_vec()],
    }
}

/// Returns the message with fields that no table knows in it and in most of the messages within.
fn with_unknown(message: &Message, bytes: &[u8], random: &mut StdRng) -> Vec<u8> {
    let is_union = matches!(
        message.shape,
        Shape::SchemaOrArray | Shape::SchemaOrBool | Shape::SchemaOrTexts
    );
    if message.shape != Shape::Object && !is_union {
        return bytes.to_vec();
    }
    let mut out = Vec::new();
    let mut fields = Fields::new(bytes);
    let mut rest = bytes;
    while let Some((number, content)) = fields.next_field().expect("a message") {
        let (raw, after) = rest.split_at(rest.len() - fields.bytes_left());
        rest = after;
        match (message.field(number).map(|it| (it.arity, it.kind)), content) {
            (Some((Arity::Map, FieldType::Message(id))), Content::Bytes(entry)) => {
                let (key, value) = wire::entry_of(entry).expect("an entry");
                let value = value.expect("a value").run().expect("a message");
                let value = with_unknown(id.message(), value, random);
                wire::put_nested(&mut out, number, |out| {
                    wire::put_bytes(out, 1, key);
                    wire::put_bytes(out, 2, &value);
                });
            }
            (Some((Arity::One | Arity::List, FieldType::Message(id))), Content::Bytes(content)) => {
                let content = with_unknown(id.message(), content, random);
                wire::put_bytes(&mut out, number, &content);
            }
            _ => out.extend_from_slice(raw),
        }
    }
    if random.random_bool(0.8) {
        wire::put_number(&mut out, 500, random.random());
        wire::put_bytes(&mut out, 501, b"future");
    }
    out
}

/// Every kind's JSON begins as that of a stored object, whose metadata is not looked for.
#[test]
fn metadata_come_first_and_nothing_comes_twice() {
    for (api_version, name) in all_kinds() {
        let kind = kind(api_version, name).expect("a kind");
        let fields = &kind.0.fields;
        assert!(
            fields
                .iter()
                .all(|it| !matches!(it.name, "kind" | "apiVersion")),
            "{name}"
        );
        let meta = fields.iter().position(|it| it.name == "metadata");
        let is_stored = !name.ends_with("List");
        assert!(
            !is_stored || meta.is_none_or(|at| at == 0),
            "{api_version} {name}"
        );
    }
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a<b"}});
    let bytes = encode_value(&pod).expect("a known kind");
    let json = to_json(&bytes, UNTYPED).expect("a Pod");
    let expected = concat!(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\u003cb"},"#,
        r#""spec":{"containers":null},"status":{}}"#
    );
    assert_eq!(String::from_utf8(json).expect("text"), expected);
}

proptest! {
    #[test]
    fn doubles_survive_to_the_last_digit(number in prop::num::f64::NORMAL) {
        let schema = json!({"maximum": number});
        let definition = json!({"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1",
            "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]}});
        let definition: Value = serde_json::from_str(&definition.to_string()).expect("JSON");
        let read = decode(&encode_value(&definition).expect("a known kind"), UNTYPED).expect("an object");
        let found = &read["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["maximum"];
        prop_assert_eq!(found.as_f64(), Some(number));
    }

    #[test]
    fn the_order_of_fields_does_not_matter(seed: u64, index: prop::sample::Index) {
        let kinds: Vec<_> = all_kinds().collect();
        let (api_version, name) = kinds[index.index(kinds.len())];
        let mut random = StdRng::seed_from_u64(seed);
        let message = kind(api_version, name).expect("a kind").0;
        let mut raw = Vec::new();
        let value = sample(message, &mut random, 0);
        encode::message(&mut raw, message, Some(&value), OldMessage::default());
        let scrambled = scramble(message, &raw, &mut random);
        let expected = transcode::object(message, &raw, api_version, name);
        let found = transcode::object(message, &scrambled, api_version, name);
        let text = |json: Vec<u8>| String::from_utf8(json).expect("text");
        prop_assert_eq!(found.map(text), expected.map(text));
    }

    #[test]
    fn unknown_fields_survive_wherever_they_are(seed: u64, index: prop::sample::Index) {
        let kinds: Vec<_> = all_kinds().collect();
        let (api_version, name) = kinds[index.index(kinds.len())];
        let mut random = StdRng::seed_from_u64(seed);
        let kind = kind(api_version, name).expect("a kind");
        let mut value = sample(kind.0, &mut random, 0);
        value["kind"] = json!(name);
        value["apiVersion"] = json!(api_version);
        let mut raw = Vec::new();
        encode::message(&mut raw, kind.0, Some(&value), OldMessage::default());
        let mut old = envelope::begin(api_version, name);
        wire::put_bytes(&mut old, 2, &with_unknown(kind.0, &raw, &mut random));
        old.extend_from_slice(LIST_END);
        let written = encode_over(kind, &value, &old);
        prop_assert_eq!(written.escape_ascii().to_string(), old.escape_ascii().to_string());
    }

    #[test]
    fn random_objects_come_back(seed: u64, index: prop::sample::Index) {
        let kinds: Vec<_> = all_kinds().collect();
        let (api_version, name) = kinds[index.index(kinds.len())];
        let mut random = StdRng::seed_from_u64(seed);
        let kind = kind(api_version, name).expect("a kind");
        let mut object = sample(kind.0, &mut random, 0);
        object["kind"] = json!(name);
        object["apiVersion"] = json!(api_version);
        let read = decode(&encode(kind, &object), UNTYPED).expect("an object");
        prop_assert!(is_part(&object, &read), "{object} became {read}");
        prop_assert_eq!(decode(&encode(kind, &read), UNTYPED), Ok(read));
    }

    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>, index: prop::sample::Index) {
        let kinds: Vec<_> = all_kinds().collect();
        let (api_version, kind) = kinds[index.index(kinds.len())];
        let mut body = envelope::begin(api_version, kind);
        wire::put_bytes(&mut body, 2, &bytes);
        if let Ok(value) = decode(&body, UNTYPED) {
            // What was read can be written, and is then read the same.
            let written = encode_value(&value).expect("a known kind");
            prop_assert_eq!(decode(&written, UNTYPED), Ok(value));
        }
        let _ = decode(&bytes, (api_version, kind));
    }

    #[test]
    fn broken_objects_never_panic(cut: prop::sample::Index, flip: prop::sample::Index, byte: u8) {
        let value = json!({"kind": "Pod", "apiVersion": "v1",
            "metadata": {"name": "a", "labels": {"a": "b"}, "managedFields": [{"fieldsV1": {"f:a": {}}}]},
            "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}}, "livenessProbe": {"httpGet": {"port": "x"}}}]}});
        let mut bytes = encode_value(&value).expect("a known kind");
        let at = flip.index(bytes.len());
        bytes[at] = byte;
        let _ = decode(&bytes, UNTYPED);
        let _ = decode(&bytes[..cut.index(bytes.len())], UNTYPED);
    }
}
