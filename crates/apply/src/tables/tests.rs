//! Compares the table of lists with the published schemas of all built-in kinds: each kind's fields are walked, down
//! through its lists and maps, except for types within themselves.

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use crate::path::PathElement;
use crate::schema::Schema;
use crate::shape::{Keys, Shape};

/// The schemas of the types of this server, from which the published OpenAPI documents are made: a line each with a
/// name, the kinds, and the schema.
const SCHEMAS: &str = "../openapi/src/schemas.txt.gz";

/// The walk over the fields of one kind.
struct Fields<'a> {
    types: &'a Map<String, Value>,
    schema: Schema<'a>,
    /// The types around a field, into which the walk does not go again.
    around: Vec<&'a str>,
    path: Vec<PathElement>,
    lists: usize,
    wrong: Vec<String>,
}

impl<'a> Fields<'a> {
    fn of_type(&mut self, name: &'a str) {
        if self.around.contains(&name) {
            return;
        }
        self.around.push(name);
        let fields = self.types[name]["properties"].as_object();
        for (name, field) in fields.into_iter().flatten() {
            self.path.push(PathElement::field(name));
            self.field(field);
            self.path.pop();
        }
        self.around.pop();
    }

    fn field(&mut self, field: &'a Value) {
        if let Some(items) = field.get("items") {
            self.list(field);
            self.path.push(PathElement::Index(0));
            self.field(items);
            self.path.pop();
        } else if let Some(values) = field.get("additionalProperties") {
            self.path.push(PathElement::field("key"));
            self.field(values);
            self.path.pop();
        } else if let Some(name) = reference(field) {
            self.of_type(name);
        }
    }

    fn list(&mut self, field: &Value) {
        let said = match field["x-kubernetes-list-type"].as_str() {
            Some("set") => vec!["a set".to_owned()],
            Some("map") => texts(&field["x-kubernetes-list-map-keys"]),
            _ => vec![],
        };
        let known = match self.schema.declared_list(&self.path) {
            Shape::Set => vec!["a set".to_owned()],
            Shape::Keyed(Keys::Known(keys)) => {
                keys.iter().map(|(key, _)| (*key).to_owned()).collect()
            }
            _ => vec![],
        };
        self.lists += 1;
        if said != known {
            self.wrong
                .push(format!("{:?}: {said:?}, not {known:?}", self.path));
        }
    }
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the name of the type that a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    let own = schema.get("$ref");
    let reference = own.or_else(|| schema.pointer("/allOf/0/$ref"))?.as_str()?;
    reference.rsplit('/').next()
}

#[test]
fn lists_are_those_of_the_published_schemas() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SCHEMAS);
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the schemas");
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("text");
    let mut kinds = Vec::new();
    let mut types = Map::new();
    for line in text.lines() {
        let mut words = line.splitn(3, ' ');
        let mut word = || words.next().expect("three words");
        let (name, of, schema) = (word(), word(), word());
        kinds.extend(of.split(',').map(|kind| (kind, name)));
        types.insert(
            name.to_owned(),
            serde_json::from_str(schema).expect("a schema"),
        );
    }
    let mut lists = 0;
    for (kind, name) in kinds {
        let Some((api_version, kind)) = kind.rsplit_once('/') else {
            continue;
        };
        if types[name].pointer("/properties/metadata").is_none() || kind.ends_with("List") {
            continue;
        }
        let mut fields = Fields {
            types: &types,
            schema: Schema::new(api_version, kind, None),
            around: vec![],
            path: vec![],
            lists: 0,
            wrong: vec![],
        };
        fields.of_type(name);
        assert!(fields.wrong.is_empty(), "{kind}: {:#?}", fields.wrong);
        lists += fields.lists;
    }
    assert!(lists > 1000, "{lists} lists were compared");
}
