//! Checks that the defaults of a schema are valid under it; otherwise no object could be written. Follows
//! `ValidateDefaults`, rules aside.

use ringwatch_apimachinery::accessor::type_name;
use ringwatch_apimachinery::{FieldError, accessor};
use serde_json::{Map, Value, json};

use super::keyword_checks::META_FIELDS;
use super::node::SchemaNode;
use super::outcome::SchemaErrors;
use super::path::Path;
use super::schema_reader::SchemaReader;
use super::walk::ObjectWalk;
use super::{embedded, prune, validate};

/// Maximum number of bytes of the names on the way into metadata. An object is made with them for each default.
const NAME_BYTES_MAX: usize = 4 << 10;

/// A step from an object into its metadata.
enum MetadataStep<'n> {
    /// Into a member.
    Member(&'n str),
    /// Into the only item of a list.
    Item,
}

impl SchemaReader {
    /// Adds the errors of all defaults of a schema, those below `additionalProperties` aside.
    pub(super) fn check_defaults(&mut self, root: &SchemaNode) {
        self.defaults_of(root, true, &mut Vec::new());
    }

    /// `steps` lead from the closest object around into its metadata, if this schema is there.
    fn defaults_of<'n>(
        &mut self,
        node: &'n SchemaNode,
        is_root: bool,
        steps: &mut Vec<MetadataStep<'n>>,
    ) {
        let is_object = is_root || node.embedded;
        let outer = is_object.then(|| std::mem::take(steps));
        let is_inside = !steps.is_empty();
        if let Some(default) = &node.default {
            self.under("default", |reader| match is_inside {
                true => reader.check_default_of_metadata(node, default, steps),
                false => reader.check_default(node, default, is_object),
            });
        }
        if let Some(items) = node.items.as_deref() {
            steps.extend(is_inside.then_some(MetadataStep::Item));
            self.under("items", |it| it.defaults_of(items, false, steps));
            if is_inside {
                steps.pop();
            }
        }
        for (name, property) in &node.properties {
            let is_inside = is_inside || is_object && META_FIELDS.contains(&name.as_str());
            steps.extend(is_inside.then_some(MetadataStep::Member(name)));
            self.under("properties", |reader| {
                let mark = reader.path.key(name);
                reader.defaults_of(property, false, steps);
                reader.path.leave(mark);
            });
            if is_inside {
                steps.pop();
            }
        }
        if let Some(outer) = outer {
            *steps = outer;
        }
    }

    fn check_default(&mut self, node: &SchemaNode, default: &Value, is_object: bool) {
        let pruned = prune::pruned_part(node, default, is_object, self.path.field());
        if !pruned.is_known {
            self.invalid(default, "must not have unknown fields");
        }
        if let Some(wrong) = pruned.wrong {
            let mut found = SchemaErrors::default();
            found.push(&self.path, || wrong);
            return self.add(found);
        }
        // The metadata of objects in it are those that are decoded.
        let default = if pruned.is_known {
            &pruned.value
        } else {
            default
        };
        let mut embedded = SchemaErrors::default();
        embedded::validate_part(node, default, is_object, &mut self.path, &mut embedded);
        if embedded.is_valid() {
            self.check_default_by_schema(node, default);
        } else {
            self.add(embedded);
        }
    }

    /// Checks a default in the metadata of an object, with an object around it.
    fn check_default_of_metadata(
        &mut self,
        node: &SchemaNode,
        default: &Value,
        steps: &[MetadataStep<'_>],
    ) {
        let bytes = steps.iter().map(|step| match step {
            MetadataStep::Member(name) => name.len(),
            MetadataStep::Item => 0,
        });
        if bytes.sum::<usize>() > NAME_BYTES_MAX {
            let why = format!("must not be below names of more than {NAME_BYTES_MAX} bytes");
            return self.invalid(default, &why);
        }
        let around = |inner: Value, step: &MetadataStep<'_>| match step {
            MetadataStep::Member(name) => {
                Value::Object(Map::from_iter([((*name).to_owned(), inner)]))
            }
            MetadataStep::Item => Value::Array(vec![inner]),
        };
        let mut object = steps.iter().rev().fold(default.clone(), around);
        for (name, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
            if object.get(name).is_none() {
                object[name] = json!(value);
            }
        }
        match wrong_metadata(&object) {
            Some(why) => self.invalid(default, &format!("must result in valid metadata: {why}")),
            None => self.check_default_by_schema(node, default),
        }
    }

    fn check_default_by_schema(&mut self, node: &SchemaNode, default: &Value) {
        let mut path = Path::below(self.path.field());
        let mut walk = ObjectWalk::of_default(&mut path);
        let found = validate::validate(node, default, None, &mut walk);
        let found = walk.end(found);
        self.add(found);
    }
}

/// Returns what is wrong with the metadata of an object, in the words of one error.
fn wrong_metadata(object: &Value) -> Option<String> {
    let said = |error: FieldError| format!("{}: {}", error.field, error.message());
    for name in ["apiVersion", "kind"] {
        if let Some(value) = object.get(name).filter(|it| !it.is_string()) {
            return Some(said(FieldError::invalid(name, value, "must be a string")));
        }
    }
    if let Some(metadata) = object.get("metadata") {
        let wrong = match metadata.clone() {
            Value::Object(mut members) => {
                let checked = accessor::decode_members(&mut members);
                checked.err().map(|error| error.to_string())
            }
            other => Some(format!(
                "json: cannot unmarshal {} into Go value of type v1.ObjectMeta",
                type_name(&other)
            )),
        };
        if let Some(why) = wrong {
            return Some(said(FieldError::invalid("metadata", metadata, why)));
        }
    }
    let whole = SchemaNode {
        embedded: true,
        ..SchemaNode::default()
    };
    let mut found = SchemaErrors::default();
    embedded::validate(&whole, object, &mut Path::default(), &mut found);
    let said: Vec<String> = found.into_errors().into_iter().map(said).collect();
    match said.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    }
}
