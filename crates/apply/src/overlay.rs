//! Merges a configuration into an object, as server-side apply does, but without managers of the fields.

use serde_json::Value;

use super::merge::merge;
use super::merging::MergeSchema;
use super::path::{PathElement, show};
use super::schema::Schema;
use super::shape::Shape;
use super::walk::item_element;

/// Returns the object with the fields of the configuration, as server-side apply merges them.
///
/// # Errors
/// The paths of lists, maps or structures that the configuration names and that merge only as a whole: whoever names a
/// part of one would take away the rest.
pub fn overlay(
    api_version: &str,
    kind: &str,
    custom: Option<&dyn MergeSchema>,
    object: &Value,
    config: &Value,
) -> Result<Value, String> {
    let schema = Schema::new(api_version, kind, custom);
    let mut whole = Vec::new();
    find_whole(schema, &mut Vec::new(), config, &mut whole);
    if !whole.is_empty() {
        return Err(format!(
            "may not mutate atomic arrays, maps or structs: {}",
            whole.join(", ")
        ));
    }
    Ok(merge(schema, &mut Vec::new(), object, config))
}

/// Collects the paths of a configuration that merge only as a whole.
fn find_whole(
    schema: Schema<'_>,
    path: &mut Vec<PathElement>,
    value: &Value,
    found: &mut Vec<String>,
) {
    let shape = schema.shape(path, value);
    if shape == Shape::Leaf && (value.is_object() || value.is_array()) {
        found.push(show(path));
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                path.push(PathElement::field(name));
                find_whole(schema, path, member, found);
                path.pop();
            }
        }
        Value::Array(items) => {
            for item in items {
                let element = item_element(shape, item);
                let depth = path.len();
                path.extend(element);
                find_whole(schema, path, item, found);
                path.truncate(depth);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(config: &Value) -> Result<Value, String> {
        let object = json!({"metadata": {"labels": {"a": "1"}}, "spec": {
            "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}]}});
        overlay("v1", "Pod", None, &object, config)
    }

    #[test]
    fn lists_with_keys_are_merged_and_others_refused() {
        let merged = pod(&json!({"metadata": {"labels": {"b": "2"}},
            "spec": {"containers": [{"name": "b", "image": "z"}], "hostNetwork": true}}));
        let merged = merged.unwrap();
        assert_eq!(merged["metadata"]["labels"], json!({"a": "1", "b": "2"}));
        assert_eq!(
            merged["spec"]["containers"],
            json!([{"name": "a", "image": "x"}, {"name": "b", "image": "z"}])
        );
        assert_eq!(merged["spec"]["hostNetwork"], json!(true));
        let refused = pod(&json!({"spec": {"tolerations": [{"key": "a"}]}}));
        assert_eq!(
            refused.unwrap_err(),
            "may not mutate atomic arrays, maps or structs: .spec.tolerations"
        );
    }
}
