//! The types of a schema as rules see them, with how large values may be.
//!
//! Where a schema bounds nothing, the size of a request does: so many items fit as each takes the fewest
//! bytes that its own schema allows.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use imbl::OrdMap;
use ringwatch_cel::{DeclaredType, Object, SizedType, Type};

use super::cel_value::escaped;
use super::kind::JsonType;
use super::node::{Additional, Checks, SchemaNode};

/// Bytes of a request at most.
const REQUEST_BYTES_MAX: u64 = 3 << 20;

/// Bytes of the name of a type at most.
const NAME_BYTES_MAX: usize = 1024;

/// Bytes of a character at most.
const CHARACTER_BYTES_MAX: u64 = 4;

/// Returns the type of a whole object, and with it those of all parts that rules see.
///
/// Each object in the schema is of a type of its own, even if it has the same members as another one: types are told
/// apart by their names, which are paths. Follows `MaybeAssignTypeName`.
pub(super) fn declare(root: &SchemaNode) -> Option<DeclaredType> {
    declare_part(root, true, "selfType")
}

/// Returns the type of a part of an object by itself; none if rules cannot see it.
pub(super) fn declare_inner(node: &SchemaNode) -> Option<DeclaredType> {
    declare_part(node, node.embedded, "selfType")
}

/// Returns the type of a value; none if rules cannot see it. A root has kind, apiVersion and metadata besides.
fn declare_part(node: &SchemaNode, is_root: bool, name: &str) -> Option<DeclaredType> {
    let plain = |of: Type, max: u64, min_bytes: u64| DeclaredType {
        form: SizedType::Plain(of),
        max,
        min_bytes,
    };
    if node.int_or_string {
        return Some(plain(Type::Dyn, longest(node), 1));
    }
    Some(match node.kind? {
        JsonType::Array => {
            let items = node.items.as_deref()?;
            let items = declare_part(items, items.embedded, &name_of_part(name, "@idx"))?;
            let max = bound(items_max(node)).unwrap_or_else(|| fitting(items.min_bytes + 1));
            DeclaredType {
                form: SizedType::List(Arc::new(items)),
                max,
                min_bytes: 2,
            }
        }
        JsonType::Object => match &node.additional {
            Some(Additional::Schema(values)) => {
                let values = declare_part(values, values.embedded, &name_of_part(name, "@elem"))?;
                let max =
                    bound(properties_max(node)).unwrap_or_else(|| fitting(values.min_bytes + 6));
                DeclaredType {
                    form: SizedType::Map(Arc::new(values)),
                    max,
                    min_bytes: 2,
                }
            }
            _ => object(node, is_root, name),
        },
        JsonType::String => match format(node) {
            "byte" => plain(
                Type::Bytes,
                bound(length_max(node)).unwrap_or(REQUEST_BYTES_MAX - 2),
                2,
            ),
            "duration" => plain(Type::Duration, 32, 4),
            "date" => plain(Type::Timestamp, 12, 12),
            "date-time" => plain(Type::Timestamp, 29, 21),
            _ => plain(Type::String, longest(node), 2),
        },
        JsonType::Boolean => plain(Type::Bool, 0, 4),
        JsonType::Number => plain(Type::Double, 0, 1),
        JsonType::Integer => plain(Type::Int, 0, 1),
    })
}

/// Returns how many values of so many bytes fit into a request.
pub(super) fn fitting(bytes: u64) -> u64 {
    (REQUEST_BYTES_MAX - 2) / bytes.max(1)
}

/// Returns how many values of so many bytes a request has at most, each after a comma. Follows `maxCardinality`.
pub(super) fn values_of_request(bytes: u64) -> u64 {
    REQUEST_BYTES_MAX / (bytes + 1)
}

/// Returns the name of the type of a part. What is too long is told apart by its hash: each of ten thousand objects has
/// the path of all that is around it in its name.
fn name_of_part(of_whole: &str, part: &str) -> String {
    let name = format!("{of_whole}.{part}");
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("selfType.@{:016x}", hasher.finish())
}

fn object(node: &SchemaNode, is_root: bool, type_name: &str) -> DeclaredType {
    let mut fields = OrdMap::new();
    let mut min_bytes = 2;
    for (name, property) in &node.properties {
        let identifier = escaped(name);
        let part_name = name_of_part(type_name, &identifier);
        let Some(declared) = declare_part(property, property.embedded, &part_name) else {
            continue;
        };
        if required(node).contains(name) && property.default.is_none() {
            min_bytes += name.len() as u64 + declared.min_bytes + 4;
        }
        fields.insert(identifier, declared);
    }
    if is_root {
        add_root_fields(&mut fields, type_name);
    }
    DeclaredType {
        form: SizedType::Plain(Type::Object(Arc::new(Object {
            name: type_name.to_owned(),
            fields,
            others: None,
        }))),
        max: 0,
        min_bytes,
    }
}

fn add_root_fields(fields: &mut OrdMap<String, DeclaredType>, root_name: &str) {
    let text = || DeclaredType {
        form: SizedType::Plain(Type::String),
        max: REQUEST_BYTES_MAX - 2,
        min_bytes: 2,
    };
    for name in ["apiVersion", "kind"] {
        fields.insert(name.to_owned(), text());
    }
    let of_metadata = ["name", "generateName"].map(|name| (name.to_owned(), text()));
    let metadata = Object {
        name: format!("{root_name}.metadata"),
        fields: of_metadata.into_iter().collect(),
        others: None,
    };
    let metadata = DeclaredType {
        form: SizedType::Plain(Type::Object(Arc::new(metadata))),
        max: 0,
        min_bytes: 2,
    };
    fields.insert("metadata".to_owned(), metadata);
}

/// Returns the most bytes of a text.
fn longest(node: &SchemaNode) -> u64 {
    if let Some(length) = bound(length_max(node)) {
        return length.saturating_mul(CHARACTER_BYTES_MAX);
    }
    let allowed = checks(node).map_or(&[][..], |checks| checks.allowed.values());
    let lengths = allowed.iter().map(|it| it.as_str().map_or(0, str::len));
    match lengths.max() {
        Some(length) if !node.int_or_string => length as u64,
        _ => REQUEST_BYTES_MAX - 2,
    }
}

fn bound(limit: Option<i64>) -> Option<u64> {
    limit.map(|it| u64::try_from(it).unwrap_or(0))
}

fn checks(node: &SchemaNode) -> Option<&Checks> {
    node.checks.as_deref()
}

fn format(node: &SchemaNode) -> &'static str {
    let format = checks(node).and_then(|checks| checks.format);
    format.map_or("", |format| format.name())
}

fn required(node: &SchemaNode) -> &[String] {
    checks(node).map_or(&[], |checks| &checks.required)
}

fn length_max(node: &SchemaNode) -> Option<i64> {
    checks(node)?.sizes.length_max
}

/// Returns the most items of a list.
pub(super) fn items_max(node: &SchemaNode) -> Option<i64> {
    checks(node)?.sizes.items_max
}

/// Returns the most members of a map.
pub(super) fn properties_max(node: &SchemaNode) -> Option<i64> {
    checks(node)?.sizes.properties_max
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rule_tests::about_x;
    use super::*;

    #[test]
    fn names_of_types_are_short_and_differ() {
        let object = json!({"type": "object"});
        let mut x = json!({"type": "object", "properties": {"a": object, "b": object}});
        let long = "n".repeat(NAME_BYTES_MAX / 2);
        for _ in 0..5 {
            x = json!({"type": "object", "properties": {&long: x}});
        }
        let declared = declare(&about_x(x).root).expect("a type");
        let mut inner = declared.field("spec").and_then(|it| it.field("x"));
        let mut names = Vec::new();
        let name = |of: Option<&DeclaredType>| match &of.expect("a part").form {
            SizedType::Plain(Type::Object(object)) => object.name.clone(),
            other => panic!("{other:?}"),
        };
        for _ in 0..5 {
            names.push(name(inner));
            inner = inner.and_then(|it| it.field(&long));
        }
        let parts = ["a", "b"].map(|part| name(inner.and_then(|it| it.field(part))));
        names.extend(parts);
        assert_eq!(names[1], format!("selfType.spec.x.{long}"));
        assert!(names.iter().all(|it| it.len() <= NAME_BYTES_MAX));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 7);
    }
}
