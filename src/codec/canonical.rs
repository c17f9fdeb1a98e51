//! Normalises an object as Go does by decoding it into its types and encoding it again.
//!
//! In Go, a field that is not a pointer and has its zero value is the same as an absent one: defaults apply to it, and
//! clients that send protobuf send all such strings, numbers and booleans. A quantity is a number in Go, whatever its
//! notation. So [`canonicalize`] removes zero fields, so that defaults apply to them, and normalises quantities. Go
//! writes some zero fields; [`complete`] adds those again. After both, two objects differ only where Go's values
//! differ.
//!
//! Lists, maps and pointers without a value are not added: they would be `null`, which is the same as absent, but for
//! server-side apply ([`complete_with_nulls`]).

use serde_json::{Map, Value};

use super::message::{Arity, Field, FieldType, Kind, Message, Shape};
use super::quantity;

/// Removes the fields that are null or zero to Go, and canonicalises quantities. Fields behind pointers stay, and so do
/// structs even if they are empty, since defaults apply within them.
///
/// ```
/// use ringwatch::codec;
/// use serde_json::{Value, json};
///
/// let kind = codec::kind("v1", "ResourceQuota").expect("a built-in kind");
/// let Value::Object(mut object) = json!({
///     "metadata": {"name": "a", "namespace": ""},
///     "spec": {"hard": {"cpu": "1000m"}},
/// }) else {
///     unreachable!("it is an object");
/// };
/// codec::canonicalize(kind, &mut object);
/// assert_eq!(object["metadata"], json!({"name": "a"}));
/// assert_eq!(object["spec"]["hard"]["cpu"], "1");
/// ```
pub fn canonicalize(kind: Kind, object: &mut Map<String, Value>) {
    canonicalize_members(kind.0, object);
}

/// Adds the fields that Go writes although they are zero.
pub fn complete(kind: Kind, object: &mut Map<String, Value>) {
    complete_members(kind.0, object, &zero);
}

/// Adds the fields that Go writes although they are zero, and as null those that have no zero value but nil, such as
/// lists.
pub fn complete_with_nulls(kind: Kind, object: &mut Map<String, Value>) {
    complete_members(kind.0, object, &|field| {
        let is_nil = || (!field.inline).then_some(Value::Null);
        zero(field).or_else(is_nil)
    });
}

/// Returns the zero value of the field at a dotted path, and true with it if the field is a pointer; `None` if there is
/// no such field. A path element that ends with `[]` leads into the items of a list.
#[must_use]
pub fn empty_at(kind: Kind, path: &str) -> Option<(Value, bool)> {
    let (steps, last) = path.rsplit_once('.').unwrap_or(("", path));
    let mut message: &'static Message = kind.0;
    let find = |message: &'static Message, name: &str| {
        let own = message.name_at(name, 0);
        let own = own.map(|at| &message.fields[message.names[at].place]);
        own.or_else(|| message.inline_field(name))
    };
    for step in steps.split('.').filter(|it| !it.is_empty()) {
        let FieldType::Message(id) = find(message, step.trim_end_matches("[]"))?.kind else {
            return None;
        };
        message = id.message();
    }
    let field = find(message, last)?;
    let empty = match (field.arity, field.kind) {
        (Arity::List, _) => Value::Array(Vec::new()),
        (Arity::Map, _) => Map::new().into(),
        (Arity::One, FieldType::Text | FieldType::Bytes) => "".into(),
        (Arity::One, FieldType::Bool) => false.into(),
        (Arity::One, FieldType::Int32 | FieldType::Int64 | FieldType::Double) => 0.into(),
        (Arity::One, FieldType::Message(id)) => match id.message().shape {
            Shape::Object => Map::new().into(),
            Shape::IntOrString => 0.into(),
            _ => Value::Null,
        },
    };
    Some((empty, field.pointer))
}

fn canonicalize_members(message: &'static Message, object: &mut Map<String, Value>) {
    for inner in message.inline_messages() {
        canonicalize_members(inner, object);
    }
    // Names and members are sorted alike: each is found soon after the last one.
    let mut next = 0;
    object.retain(|name, value| {
        let Some(at) = message.name_at(name, next) else {
            return true;
        };
        next = at + 1;
        let field = &message.fields[message.names[at].place];
        for_each_message(field, value, &mut |message, value| match message.shape {
            Shape::Object => {
                if let Some(members) = value.as_object_mut() {
                    canonicalize_members(message, members);
                }
            }
            Shape::Quantity => quantity::canonicalize(value),
            _ => {}
        });
        !vanishes(field, value)
    });
}

/// Returns true if Go does not distinguish the member from an absent one.
fn vanishes(field: &Field, value: &Value) -> bool {
    let may_vanish = field.may_vanish || is_scalar(field);
    match value {
        Value::Array(items) => items.is_empty() && field.arity == Arity::List,
        Value::Object(members) => {
            members.is_empty() && (field.arity == Arity::Map || field.may_vanish)
        }
        Value::String(text) => may_vanish && text.is_empty(),
        Value::Bool(truth) => may_vanish && !truth,
        Value::Number(number) => may_vanish && number.as_f64() == Some(0.0),
        Value::Null => true,
    }
}

/// Returns true if the field is one string, number or boolean, and no pointer to it.
fn is_scalar(field: &Field) -> bool {
    let is_message = matches!(field.kind, FieldType::Bytes | FieldType::Message(_));
    field.arity == Arity::One && !field.pointer && !is_message
}

fn complete_members(
    message: &'static Message,
    object: &mut Map<String, Value>,
    zero: &dyn Fn(&Field) -> Option<Value>,
) {
    for inner in message.inline_messages() {
        complete_members(inner, object, zero);
    }
    let mut at = message.first_required;
    while let Some(field) = message.fields.get(at) {
        at = field.next_required.into();
        let missing = object.get(field.name).is_none_or(Value::is_null);
        if let Some(zero) = zero(field).filter(|_| missing) {
            object.insert(field.name.to_owned(), zero);
        }
    }
    let mut next = 0;
    for (name, value) in object.iter_mut() {
        let Some(at) = message.name_at(name, next) else {
            continue;
        };
        next = at + 1;
        let field = &message.fields[message.names[at].place];
        for_each_message(field, value, &mut |message, value| {
            if let (Shape::Object, Some(members)) = (message.shape, value.as_object_mut()) {
                if field.tells_kind {
                    members.insert("kind".to_owned(), message.name.into());
                    members.insert("apiVersion".to_owned(), message.api_version.into());
                }
                complete_members(message, members, zero);
            }
        });
    }
}

/// Returns the value that Go writes for a field without one; `None` if that is `null`.
fn zero(field: &Field) -> Option<Value> {
    if field.pointer || field.inline || field.arity != Arity::One {
        return None;
    }
    match field.kind {
        FieldType::Text => Some("".into()),
        FieldType::Bool => Some(false.into()),
        FieldType::Int32 | FieldType::Int64 | FieldType::Double => Some(0.into()),
        FieldType::Bytes => None,
        FieldType::Message(id) => match id.message().shape {
            Shape::Object => Some(Map::new().into()),
            Shape::Quantity => Some("0".into()),
            Shape::IntOrString => Some(0.into()),
            Shape::Duration => Some("0s".into()),
            _ => None,
        },
    }
}

/// Calls a function for the messages in the value of a field: itself, or the items of a list or map.
fn for_each_message(
    field: &Field,
    value: &mut Value,
    visit: &mut dyn FnMut(&'static Message, &mut Value),
) {
    let FieldType::Message(id) = field.kind else {
        return;
    };
    let message = id.message();
    match (field.arity, value) {
        (Arity::One, value) => visit(message, value),
        (Arity::List, Value::Array(items)) => {
            items.iter_mut().for_each(|item| visit(message, item));
        }
        (Arity::Map, Value::Object(entries)) => {
            entries.values_mut().for_each(|entry| visit(message, entry));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::codec::{decode, encode_value, kind};
    use ringwatch_testing::recorded;

    fn canonicalized(mut object: Value) -> Value {
        let found = kind(
            object["apiVersion"].as_str().expect("a version"),
            object["kind"].as_str().expect("a kind"),
        );
        let members = object.as_object_mut().expect("an object");
        canonicalize(found.expect("a built-in kind"), members);
        object
    }

    fn completed(mut object: Value) -> Value {
        let version = object["apiVersion"].as_str().expect("a version").to_owned();
        let name = object["kind"].as_str().expect("a kind").to_owned();
        let members = object.as_object_mut().expect("an object");
        complete(kind(&version, &name).expect("a built-in kind"), members);
        object
    }

    fn without_nulls(value: &mut Value) {
        match value {
            Value::Object(members) => members.retain(|_, member| {
                without_nulls(member);
                !member.is_null()
            }),
            Value::Array(items) => items.iter_mut().for_each(without_nulls),
            _ => {}
        }
    }

    #[test]
    fn zeros_vanish_where_go_leaves_them_out() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {}},
            "spec": {"hostNetwork": false, "nodeSelector": {}, "automountServiceAccountToken": false,
                "terminationGracePeriodSeconds": 0, "securityContext": {},
                "containers": [{"name": "", "image": "", "tty": false, "args": [],
                    "env": [{"name": "EMPTY", "value": ""}],
                    "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]}});
        assert_eq!(
            canonicalized(pod),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                "spec": {"automountServiceAccountToken": false,
                    "terminationGracePeriodSeconds": 0, "securityContext": {},
                    "containers": [{"env": [{"name": "EMPTY"}],
                        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}})
        );
    }

    #[test]
    fn zeros_vanish_where_go_writes_them_too() {
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "b"}, "roleRef": {"apiGroup": "", "kind": "Role", "name": "r"}});
        let canonicalized = canonicalized(binding.clone());
        assert_eq!(
            canonicalized["roleRef"],
            json!({"kind": "Role", "name": "r"})
        );
        assert_eq!(completed(canonicalized)["roleRef"], binding["roleRef"]);
    }

    /// The sources of a volume and the handlers of a probe are structs of their own to Go, whose members JSON
    /// has among those of the volume and the probe.
    #[test]
    fn zeros_vanish_in_merged_structs() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
            "volumes": [{"name": "v", "iscsi": {"targetPortal": "t", "iscsiInterface": "", "fsType": ""}}],
            "ephemeralContainers": [{"name": "", "tty": false, "targetContainerName": ""}],
            "containers": [{"name": "c", "livenessProbe": {
                "httpGet": {"path": "", "port": 80, "scheme": ""}, "periodSeconds": 0}}]}});
        let canonicalized = canonicalized(pod);
        let spec = &canonicalized["spec"];
        assert_eq!(spec["volumes"][0]["iscsi"], json!({"targetPortal": "t"}));
        assert_eq!(spec["ephemeralContainers"], json!([{}]));
        let probe = &spec["containers"][0]["livenessProbe"];
        assert_eq!(*probe, json!({"httpGet": {"port": 80}}));
        let completed = completed(canonicalized);
        assert_eq!(
            completed["spec"]["volumes"][0]["iscsi"],
            json!({"targetPortal": "t", "iqn": "", "lun": 0})
        );
        assert_eq!(
            completed["spec"]["ephemeralContainers"],
            json!([{"name": "", "resources": {}}])
        );
    }

    #[test]
    fn zeros_come_where_go_writes_them() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"env": [{"name": "LIMIT", "valueFrom": {
                "resourceFieldRef": {"resource": "limits.cpu"}}}]}]}});
        assert_eq!(
            completed(pod),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {},
                "spec": {"containers": [{"name": "", "resources": {}, "env": [{"name": "LIMIT", "valueFrom": {
                    "resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]}]}})
        );
    }

    #[test]
    fn null_is_no_value() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": null,
            "metadata": {"name": "m", "labels": null, "annotations": {"a": ""}}});
        assert_eq!(
            canonicalized(map),
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "m", "annotations": {"a": ""}}})
        );
        let mut role = json!({"metadata": {"name": "r"}});
        let found = kind("rbac.authorization.k8s.io/v1", "ClusterRole").expect("a built-in kind");
        complete_with_nulls(found, role.as_object_mut().expect("an object"));
        assert_eq!(role, json!({"metadata": {"name": "r"}, "rules": null}));
    }

    /// Both functions together do to an object what encoding and decoding does.
    #[test]
    fn objects_are_as_after_the_wire() {
        let Some(folder) = recorded::testdata("Kubernetes' objects in their canonical form") else {
            return;
        };
        let mut seen = 0;
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.extension().is_none_or(|it| it != "json") {
                continue;
            }
            let text = std::fs::read(&path).expect("JSON");
            let object: Value = serde_json::from_slice(&text).expect("JSON");
            if object.get("kind").is_none() {
                continue;
            }
            seen += 1;
            let bytes = encode_value(&object).expect("a known kind");
            let mut expected = decode(&bytes, ("", "")).expect("an object");
            let mut found = completed(canonicalized(object));
            without_nulls(&mut expected);
            without_nulls(&mut found);
            assert_eq!(found, expected, "{}", path.display());
        }
        assert!(seen > 0, "there are objects");
    }

    proptest! {
        /// The same for a pod of which members are missing, zero or there.
        #[test]
        fn odd_pods_are_as_after_the_wire(choices in prop::collection::vec(0..3_u8, 12)) {
            let values = [
                json!({"name": "a"}), json!([{"name": "c"}]), json!("x"), json!(true), json!(7),
            ];
            let zeros = [json!({}), json!([]), json!(""), json!(false), json!(0)];
            let places = [
                ("metadata", 0), ("spec", 0), ("spec/containers", 1), ("spec/hostname", 2),
                ("spec/hostIPC", 3), ("spec/priority", 4), ("spec/containers/0/image", 2),
                ("spec/containers/0/stdin", 3), ("spec/containers/0/ports", 1),
                ("spec/containers/0/ports/0/hostPort", 4), ("spec/securityContext", 0),
                ("spec/serviceAccountName", 2),
            ];
            let mut pod = json!({"apiVersion": "v1", "kind": "Pod"});
            for (choice, (place, form)) in choices.iter().zip(places) {
                let (parent, name) = place.rsplit_once('/').unwrap_or(("", place));
                let parent = if parent.is_empty() { String::new() } else { format!("/{parent}") };
                let value = match choice {
                    0 => continue,
                    1 => &zeros[form],
                    _ if name == "ports" => &json!([{"containerPort": 1}]),
                    _ if matches!(name, "spec" | "securityContext") => &zeros[0],
                    _ => &values[form],
                };
                if let Some(members) = pod.pointer_mut(&parent).and_then(Value::as_object_mut) {
                    members.insert(name.to_owned(), value.clone());
                }
            }
            let bytes = encode_value(&pod).expect("a known kind");
            let mut expected = decode(&bytes, ("", "")).expect("an object");
            let mut found = completed(canonicalized(pod));
            without_nulls(&mut expected);
            without_nulls(&mut found);
            prop_assert_eq!(found, expected);
        }
    }
}
