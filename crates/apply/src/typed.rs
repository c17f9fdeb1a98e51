//! Checks that the values of an object have the types of its schema, in the words of structured-merge-diff.
//!
//! Follows `Validate` of structured-merge-diff, which goes through an object as it merges: an item of a list is named
//! by its key, so one that has none, or that of an earlier item, is told too. It looks into wholes as well. Null is of
//! every type. Members come in the order of their names, where Go has another order each time; of an object's members
//! that its type does not have, and what comes after, the first is told and nothing else.

use std::collections::BTreeSet;

use ringwatch::codec::{MemberTypes, StructType, ValueType};
use ringwatch_apimachinery::go_values;
use serde_json::{Map, Value};

use super::merging::{MemberSchema, Takes, ValueSchema};
use super::path::{PathElement, show};
use super::schema::{Schema, item_key};
use super::shape::Shape;

/// Maximum number of bytes of an error about types and repeated items, or of the paths of conflicts with a manager: one
/// key of a megabyte may stand above all of them.
pub(super) const ERROR_BYTES_MAX: usize = 256 << 10;

/// The side of an apply that an object is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ApplySide {
    /// A configuration that is applied.
    Applied,
    /// The object that is there, which may have members that its type does not have.
    Live {
        /// True if its items may share a key.
        repeats: bool,
    },
}

/// Returns the complaints about the values of an object, until they have so many bytes.
pub(super) fn complaints(
    schema: Schema<'_>,
    object: &Value,
    side: ApplySide,
    bytes_max: usize,
) -> Vec<String> {
    let mut check = TypeCheck {
        schema,
        side,
        complaints: Vec::new(),
        bytes_left: bytes_max,
    };
    check.inside(Type::root(schema), &mut Vec::new(), object);
    check.complaints
}

/// Returns the complaints about an object that is stored or about to be, as far as it can be of other types than its
/// schema has: what is of a built-in type is so, but for items of a few that need no key, as the references of a
/// ServiceAccount.
pub(super) fn complaints_of_live(schema: Schema<'_>, object: &Value) -> Vec<String> {
    if schema.custom_values().is_none() && !schema.has_optional_keys() {
        return Vec::new();
    }
    let side = ApplySide::Live { repeats: true };
    complaints(schema, object, side, ERROR_BYTES_MAX)
}

/// Returns true if the values of an object are of its types.
pub(super) fn is_typed(schema: Schema<'_>, object: &Value, side: ApplySide) -> bool {
    complaints(schema, object, side, 1).is_empty()
}

/// The type of a value.
#[derive(Clone, Copy)]
enum Type<'a> {
    /// One of the built-in types.
    BuiltIn(ValueType),
    /// The type that a custom resource's schema has.
    Custom(CustomType<'a>),
    /// Anything, of which the lists merge as their paths say.
    Unknown,
}

/// The type that a custom resource's schema has.
#[derive(Clone, Copy)]
struct CustomType<'a> {
    schema: &'a dyn ValueSchema,
    /// True if members that are not named may be anything.
    preserves: bool,
    /// True for a Kubernetes object.
    is_object: bool,
}

impl<'a> CustomType<'a> {
    fn new(schema: &'a dyn ValueSchema, around: Option<Self>) -> Self {
        Self {
            schema,
            preserves: around.is_some_and(|it| it.preserves) || schema.preserves_unknown(),
            is_object: around.is_none() || schema.is_whole_object(),
        }
    }

    /// Returns the type of a member, if it may be there.
    fn member(self, name: &str) -> Option<Type<'a>> {
        if self.is_object {
            match name {
                "apiVersion" | "kind" => return Some(Type::BuiltIn(ValueType::Text)),
                "metadata" => {
                    let metadata = StructType::metadata();
                    return Some(Type::BuiltIn(ValueType::Struct(metadata)));
                }
                _ => {}
            }
        }
        match self.schema.member(name) {
            MemberSchema::Known(schema) => Some(Type::Custom(Self::new(schema, Some(self)))),
            MemberSchema::Undeclared if !self.preserves => None,
            // Kubernetes adds the members of an object to it, so that it never is one without any.
            MemberSchema::Any if self.is_object && !self.preserves => None,
            MemberSchema::Any | MemberSchema::Undeclared => Some(Type::BuiltIn(ValueType::Any)),
        }
    }
}

impl<'a> Type<'a> {
    fn root(schema: Schema<'a>) -> Self {
        if let Some(kind) = schema.codec_kind() {
            return Self::BuiltIn(ValueType::Struct(StructType::of(kind)));
        }
        schema.custom_values().map_or(Self::Unknown, |values| {
            Self::Custom(CustomType::new(values, None))
        })
    }

    /// Returns the reason why a value is not of the type itself, whatever is in it.
    fn refuses(self, value: &Value, bytes_max: usize) -> Option<String> {
        let takes = match self {
            Self::Unknown => Takes::Any,
            Self::Custom(custom) => custom.schema.takes(),
            Self::BuiltIn(built_in) => match built_in {
                ValueType::Any => Takes::Any,
                ValueType::AnyScalar => Takes::AnyScalar,
                ValueType::Text => Takes::Text,
                ValueType::Number => Takes::Number,
                ValueType::Boolean => Takes::Boolean,
                ValueType::List(_) => Takes::List,
                ValueType::AnyMembers | ValueType::Map(_) | ValueType::Struct(_) => Takes::Members,
            },
        };
        let shown = || go_values::plain(value, bytes_max);
        let why = match (takes, value) {
            (Takes::Any, _)
            | (_, Value::Null)
            | (Takes::AnyScalar, Value::String(_) | Value::Number(_) | Value::Bool(_))
            | (Takes::Text, Value::String(_))
            | (Takes::Number, Value::Number(_))
            | (Takes::Boolean, Value::Bool(_))
            | (Takes::List, Value::Array(_))
            | (Takes::Members, Value::Object(_)) => return None,
            (Takes::AnyScalar, _) => format!("expected any scalar, got &{{{}}}", shown()),
            (Takes::Text, _) => {
                let value = go_values::syntax(value, bytes_max);
                format!("expected string, got &value.valueUnstructured{{Value:{value}}}")
            }
            (Takes::Number, _) => {
                let found = go_values::go_type(value);
                format!("expected numeric (int or float), got {found}")
            }
            (Takes::Boolean, _) => format!("expected boolean, got &{{{}}}", shown()),
            (Takes::List, _) => format!("expected list, got &{{{}}}", shown()),
            (Takes::Members, _) => format!("expected map, got &{{{}}}", shown()),
        };
        Some(why)
    }

    /// Returns the type of the items of a list.
    fn items(self) -> Self {
        match self {
            Self::Unknown => Self::Unknown,
            Self::BuiltIn(ValueType::List(item)) => Self::BuiltIn(item.value_type()),
            Self::BuiltIn(_) => Self::BuiltIn(ValueType::Any),
            Self::Custom(list) => match list.schema.items() {
                Some(schema) => Self::Custom(CustomType::new(schema, Some(list))),
                None => Self::BuiltIn(ValueType::Any),
            },
        }
    }
}

/// The types of the members of an object.
enum Members<'a> {
    Struct(MemberTypes),
    Each(Type<'a>),
    Custom(CustomType<'a>),
}

impl<'a> Members<'a> {
    fn of(owner: Type<'a>) -> Self {
        match owner {
            Type::BuiltIn(ValueType::Struct(of)) => Self::Struct(of.members()),
            Type::BuiltIn(ValueType::Map(item)) => Self::Each(Type::BuiltIn(item.value_type())),
            Type::BuiltIn(_) => Self::Each(Type::BuiltIn(ValueType::Any)),
            Type::Custom(custom) => Self::Custom(custom),
            Type::Unknown => Self::Each(Type::Unknown),
        }
    }

    fn find(&mut self, name: &str) -> Option<Type<'a>> {
        match self {
            Self::Struct(members) => members.find(name).map(Type::BuiltIn),
            Self::Each(of) => Some(*of),
            Self::Custom(custom) => custom.member(name),
        }
    }
}

struct TypeCheck<'a> {
    schema: Schema<'a>,
    side: ApplySide,
    complaints: Vec<String>,
    bytes_left: usize,
}

impl<'a> TypeCheck<'a> {
    /// Checks the value at one step.
    fn at(
        &mut self,
        of: Type<'a>,
        path: &mut Vec<PathElement>,
        element: impl FnOnce() -> PathElement,
        value: &Value,
    ) {
        let is_any = matches!(of, Type::BuiltIn(ValueType::Any));
        if self.bytes_left == 0 || is_any {
            return;
        }
        let why = of.refuses(value, self.bytes_left);
        if why.is_none() && !value.is_object() && !value.is_array() {
            return;
        }
        path.push(element());
        match why {
            Some(why) => self.complain(path, &why),
            None => self.inside(of, path, value),
        }
        path.pop();
    }

    /// Checks what is in a value of the type.
    fn inside(&mut self, of: Type<'a>, path: &mut Vec<PathElement>, value: &Value) {
        match value {
            Value::Object(members) => self.members(of, path, members),
            Value::Array(items) => self.items(of, path, items),
            _ => {}
        }
    }

    fn members(&mut self, of: Type<'a>, path: &mut Vec<PathElement>, members: &Map<String, Value>) {
        let mut types = Members::of(of);
        // Go compares objects without their managed fields, so these are not checked.
        let has_entries = self.side != ApplySide::Applied
            && matches!(path.as_slice(), [PathElement::Field(name)] if name == "metadata");
        for (name, member) in members {
            if self.bytes_left == 0 {
                return;
            }
            if has_entries && name == "managedFields" {
                continue;
            }
            let element = || PathElement::field(name);
            match types.find(name) {
                Some(of) => self.at(of, path, element, member),
                None if self.side != ApplySide::Applied => {}
                None => {
                    path.push(element());
                    self.complain(path, "field not declared in schema");
                    path.pop();
                    return;
                }
            }
        }
    }

    fn items(&mut self, of: Type<'a>, path: &mut Vec<PathElement>, items: &[Value]) {
        let item_type = of.items();
        let shape = self.schema.declared_list(path);
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if self.bytes_left == 0 {
                return;
            }
            if matches!(shape, Shape::Leaf | Shape::Object) {
                let element = || PathElement::Index(index as u64);
                self.at(item_type, path, element, item);
                continue;
            }
            let element = match told_apart(shape, item) {
                Ok(element) => element,
                // Nothing can be said of the others.
                Err(why) => return self.complain(path, &format!("element {index}: {why}")),
            };
            let may_repeat = self.side == ApplySide::Live { repeats: true };
            if !may_repeat && !seen.insert(element.clone()) {
                self.complain(path, &format!("duplicate entries for key {element}"));
            }
            self.at(item_type, path, || element, item);
        }
    }

    fn complain(&mut self, path: &[PathElement], why: &str) {
        let complaint = format!("{}: {why}", show(path));
        self.bytes_left = self.bytes_left.saturating_sub(complaint.len());
        self.complaints.push(complaint);
    }
}

/// Returns the step to an item of a list that merges item by item, or the reason why it has none.
fn told_apart(shape: Shape<'_>, item: &Value) -> Result<PathElement, String> {
    let why = match (shape, item) {
        (Shape::Keyed(_), Value::Null) => "associative list with keys may not have a null element",
        (Shape::Keyed(keys), Value::Object(_)) => {
            return item_key(keys, item).ok_or_else(|| {
                let names: Vec<_> = keys.names().iter().map(|it| format!("{it:?}")).collect();
                format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have \
                     default values for any key fields)",
                    names.join(" ")
                )
            });
        }
        (Shape::Keyed(_), _) => "associative list with keys may not have non-map elements",
        (_, Value::Null) => "associative list without keys has an element that's an explicit null",
        (_, Value::Object(_)) => "associative list without keys has an element that's a map type",
        (_, Value::Array(_)) => "not supported: associative list with lists as elements",
        _ => return Ok(PathElement::value(item)),
    };
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(api_version: &str, kind: &str, object: &Value) -> Vec<String> {
        let schema = Schema::new(api_version, kind, None);
        complaints(schema, object, ApplySide::Applied, usize::MAX)
    }

    #[test]
    fn what_is_of_another_type_is_told() {
        let object = |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
        let text = "expected string, got &value.valueUnstructured{Value:";
        for (spec, complaint) in [
            (json!([]), ".spec: expected map, got &{[]}".to_owned()),
            (json!("a"), ".spec: expected map, got &{a}".to_owned()),
            (
                json!({"containers": {"a": 1}}),
                ".spec.containers: expected list, got &{map[a:1]}".to_owned(),
            ),
            (json!({"hostname": 5}), format!(".spec.hostname: {text}5}}")),
            (
                json!({"hostname": ["a", null]}),
                format!(".spec.hostname: {text}[]interface {{}}{{\"a\", interface {{}}(nil)}}}}"),
            ),
            (
                json!({"priority": ""}),
                ".spec.priority: expected numeric (int or float), got string".to_owned(),
            ),
            (
                json!({"priority": []}),
                ".spec.priority: expected numeric (int or float), got []interface {}".to_owned(),
            ),
            (
                json!({"hostPID": 0}),
                ".spec.hostPID: expected boolean, got &{0}".to_owned(),
            ),
            (
                json!({"overhead": {"cpu": {}}}),
                ".spec.overhead.cpu: expected any scalar, got &{map[]}".to_owned(),
            ),
            (
                json!({"nodeSelector": {"a": true}}),
                format!(".spec.nodeSelector.a: {text}true}}"),
            ),
            (
                json!({"containers": [{"name": "a", "args": [1]}]}),
                format!(".spec.containers[name=\"a\"].args[0]: {text}1}}"),
            ),
            (
                json!({"containers": [{"name": true}]}),
                format!(".spec.containers[name=true].name: {text}true}}"),
            ),
            (
                json!({"tolerations": [null, {"a": 1}]}),
                ".spec.tolerations[1].a: field not declared in schema".to_owned(),
            ),
        ] {
            assert_eq!(told("v1", "Pod", &object(spec)), [complaint]);
        }
        let fine = json!({"hostname": null, "nodeSelector": {"a": null}, "containers": null,
            "overhead": {"cpu": 1.5, "memory": true}, "activeDeadlineSeconds": 1.5,
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": 1}}]});
        assert!(told("v1", "Pod", &object(fine)).is_empty());
    }

    #[test]
    fn what_reads_its_own_json_is_anything() {
        let service = json!({"spec": {"ports": [{"port": 80, "targetPort": {}}]}});
        assert!(told("v1", "Service", &service).is_empty());
        let schema = |schema: Value| json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}});
        let definition = |of| {
            told(
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                &schema(of),
            )
        };
        let fine = json!({"items": 5, "additionalProperties": "", "default": [{"a": null}], "enum": [1, {}]});
        assert!(definition(fine).is_empty());
        assert_eq!(
            definition(json!({"properties": {"a": {"x-zz": 1}}})),
            [
                ".spec.versions[0].schema.openAPIV3Schema.properties.a.x-zz: field not declared in schema"
            ]
        );
        let managed =
            |fields: Value| json!({"metadata": {"managedFields": [{"fieldsV1": fields}]}});
        assert!(told("v1", "Pod", &managed(json!({"f:a": {}}))).is_empty());
        assert_eq!(
            told("v1", "Pod", &managed(json!(5))),
            [".metadata.managedFields[0].fieldsV1: expected map, got &{5}"]
        );
    }

    #[test]
    fn of_members_that_are_not_there_the_first_is_told() {
        let map = json!({"binaryData": 5, "data": {"a": 1}, "x": 1, "y": 2});
        let text = "expected string, got &value.valueUnstructured{Value:1}";
        assert_eq!(
            told("v1", "ConfigMap", &map),
            [
                ".binaryData: expected map, got &{5}",
                &format!(".data.a: {text}"),
                ".x: field not declared in schema"
            ]
        );
        let schema = Schema::new("v1", "ConfigMap", None);
        assert_eq!(complaints(schema, &map, ApplySide::Applied, 1).len(), 1);
        let stored = json!({"x": 1, "metadata": {"finalizers": ["a", "a"]}});
        for (repeats, complaint) in [
            (true, &[][..]),
            (
                false,
                &[".metadata.finalizers: duplicate entries for key [=\"a\"]"],
            ),
        ] {
            assert_eq!(
                complaints(schema, &stored, ApplySide::Live { repeats }, 1),
                complaint
            );
        }
    }

    /// A type whose `spec` has a few members.
    #[derive(Debug)]
    enum Custom {
        Root,
        Spec,
        Takes(Takes),
        Free,
    }

    impl crate::MergeSchema for Custom {
        fn merging(&self, _: &mut dyn Iterator<Item = Option<&str>>) -> Option<crate::Merging<'_>> {
            None
        }

        fn values(&self) -> Option<&dyn ValueSchema> {
            Some(self)
        }
    }

    impl ValueSchema for Custom {
        fn takes(&self) -> Takes {
            match self {
                Self::Root | Self::Spec => Takes::Members,
                Self::Takes(takes) => *takes,
                Self::Free => Takes::Any,
            }
        }

        fn is_whole_object(&self) -> bool {
            false
        }

        fn preserves_unknown(&self) -> bool {
            matches!(self, Self::Free)
        }

        fn member(&self, name: &str) -> MemberSchema<'_> {
            MemberSchema::Known(match (self, name) {
                (Self::Root, "spec") => &Self::Spec,
                (Self::Spec, "free") => &Self::Free,
                (Self::Spec, "list") => &Self::Takes(Takes::List),
                (Self::Spec | Self::Free, "text") => &Self::Takes(Takes::Text),
                (Self::Spec, "date") => &Self::Takes(Takes::AnyScalar),
                _ => return MemberSchema::Undeclared,
            })
        }

        fn items(&self) -> Option<&dyn ValueSchema> {
            matches!(self, Self::Takes(Takes::List)).then_some(&Self::Takes(Takes::Boolean))
        }
    }

    #[test]
    fn custom_types_are_those_of_their_schema() {
        let schema = Schema::new("example.com/v1", "Thing", Some(&Custom::Root));
        let told = |spec: Value| {
            let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "spec": spec});
            complaints(schema, &thing, ApplySide::Applied, usize::MAX)
        };
        assert!(
            told(json!({"free": {"a": [{}], "text": "b"}, "list": [true, null], "date": 5}))
                .is_empty()
        );
        assert_eq!(
            told(json!({"date": [], "free": {"text": 5}, "list": ["a"], "more": 1})),
            [
                ".spec.date: expected any scalar, got &{[]}",
                ".spec.free.text: expected string, got &value.valueUnstructured{Value:5}",
                ".spec.list[0]: expected boolean, got &{a}",
                ".spec.more: field not declared in schema",
            ]
        );
        let metadata = json!({"kind": 5, "metadata": {"labels": {"a": 1}, "zz": 1}});
        assert_eq!(
            complaints(schema, &metadata, ApplySide::Applied, usize::MAX),
            [
                ".kind: expected string, got &value.valueUnstructured{Value:5}",
                ".metadata.labels.a: expected string, got &value.valueUnstructured{Value:1}",
                ".metadata.zz: field not declared in schema",
            ]
        );
    }

    #[test]
    fn items_that_have_no_step_are_told() {
        for (kind, object, complaint) in [
            (
                "Pod",
                json!({"spec": {"containers": [null]}}),
                ".spec.containers: element 0: associative list with keys may not have a null element",
            ),
            (
                "Pod",
                json!({"spec": {"containers": [{"name": "a"}, 1, null]}}),
                ".spec.containers: element 1: associative list with keys may not have non-map elements",
            ),
            (
                "Pod",
                json!({"metadata": {"finalizers": ["a", null]}}),
                ".metadata.finalizers: element 1: associative list without keys has an element that's an explicit null",
            ),
            (
                "Pod",
                json!({"metadata": {"finalizers": [{}]}}),
                ".metadata.finalizers: element 0: associative list without keys has an element that's a map type",
            ),
            (
                "Pod",
                json!({"metadata": {"finalizers": [[]]}}),
                ".metadata.finalizers: element 0: not supported: associative list with lists as elements",
            ),
            (
                "ServiceAccount",
                json!({"secrets": [{"kind": "a"}]}),
                ".secrets: element 0: associative list with keys has an element that omits all key fields [\"name\"] \
                 (and doesn't have default values for any key fields)",
            ),
        ] {
            assert_eq!(told("v1", kind, &object), [complaint]);
        }
        let pod = json!({"spec": {"imagePullSecrets": [{}], "tolerations": [{}, {}, null]}});
        assert!(told("v1", "Pod", &pod).is_empty());
        let node = json!({"status": {"addresses": [{"type": "IP", "address": "1"}, {"type": "IP", "address": "2"}]}});
        let complaint = ".status.addresses: duplicate entries for key [type=\"IP\"]";
        assert_eq!(told("v1", "Node", &node), [complaint]);
    }
}
