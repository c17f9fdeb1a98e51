//! Access to values in objects by dotted paths of member names, such as `spec.template`.

use serde_json::{Map, Value};

/// Returns the value at a path; null counts as a value.
pub fn get<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |at, name| at.get(name))
}

/// Returns the string at a path; empty if there is none.
pub fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    get(object, path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the list at a path; empty if there is none.
pub fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    get(object, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the value at a path for changing.
pub fn get_mut<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.')
        .try_fold(object, |at, name| at.get_mut(name))
}

/// Calls `change` on an object, which may drop empty lists, and puts those at these paths back.
pub fn keeping_empty_lists(paths: &[&str], object: &mut Value, change: impl FnOnce(&mut Value)) {
    let mut empty = empties(paths, object);
    empty.retain(|(_, value)| value.is_array());
    change(object);
    for (path, list) in empty {
        set(object, path, list);
    }
}

/// Returns the empty lists and maps that there are at these paths.
pub fn empties<'a>(paths: &[&'a str], object: &Value) -> Vec<(&'a str, Value)> {
    let at = |path: &&'a str| Some((*path, get(object, path)?));
    let is_empty = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    let empty = paths
        .iter()
        .filter_map(at)
        .filter(|(_, value)| is_empty(value));
    empty.map(|(path, value)| (path, value.clone())).collect()
}

/// Writes a value at a path and makes the objects that lead there. Does nothing if a value on the way is neither an
/// object nor null: decoding has refused such objects before.
pub fn set(object: &mut Value, path: &str, value: Value) {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut at = object;
    for step in parent.split('.').filter(|step| !step.is_empty()) {
        let Some(members) = at.as_object_mut() else {
            return;
        };
        let next = members.entry(step).or_insert(Value::Null);
        if next.is_null() {
            *next = Value::Object(Map::new());
        }
        at = next;
    }
    if let Some(members) = at.as_object_mut() {
        members.insert(name.to_owned(), value);
    }
}

/// Removes the value at a path and returns it.
pub fn remove(object: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let parent = if parent.is_empty() {
        object
    } else {
        get_mut(object, parent)?
    };
    parent.as_object_mut()?.remove(name)
}

/// Makes what is at a path as it was in the old object: copied, or absent.
pub fn keep(object: &mut Value, old: &Value, path: &str) {
    match get(old, path) {
        Some(value) => set(object, path, value.clone()),
        None => drop(remove(object, path)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_are_read_written_and_taken_away() {
        let mut object = json!({"spec": {"a": "x", "list": [1]}, "status": null});
        set(&mut object, "spec.b.c", json!(2));
        set(&mut object, "status.phase", json!("Active"));
        set(&mut object, "spec.a.c", json!(3));
        assert_eq!(get(&object, "spec.b.c"), Some(&json!(2)));
        assert_eq!(get(&object, "status.phase"), Some(&json!("Active")));
        assert_eq!(get(&object, "spec.a"), Some(&json!("x")));
        assert_eq!(remove(&mut object, "spec.b.c"), Some(json!(2)));
        assert_eq!(remove(&mut object, "spec.x.c"), None);
        keep(&mut object, &json!({"spec": {"z": 1}}), "spec.z");
        keep(&mut object, &json!({}), "spec.a");
        assert_eq!(object["spec"], json!({"b": {}, "list": [1], "z": 1}));
    }

    #[test]
    fn what_is_empty_is_found() {
        let object = json!({"a": [], "b": {"c": {}, "d": [1]}, "e": null, "f": ""});
        let found = empties(&["a", "b", "b.c", "b.d", "e", "f", "g"], &object);
        assert_eq!(found, [("a", json!([])), ("b.c", json!({}))]);
    }
}
