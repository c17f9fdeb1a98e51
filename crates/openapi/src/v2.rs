//! Operations and schemas as OpenAPI v2 writes them.
//!
//! Shared parameters are defined once and referenced. Schemas lose what v2 cannot express.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::names::Names;
use super::operations::{Body, Media, Operation, PathItem};
use super::parameters::Parameter;
use super::v3;

/// The prefix of references to schemas.
pub(super) const REFERENCE: &str = "#/definitions/";

/// The members of a parameter in the order in which Go writes them.
const MEMBERS: [&str; 7] = [
    "uniqueItems",
    "type",
    "description",
    "name",
    "in",
    "required",
    "schema",
];

/// Number of bytes of a hash that distinguish parameters of one name.
const HASH_BYTES: usize = 6;

/// Parameters that are not shared, so that old versions of kubectl find them, and so that names say of which kind they
/// are.
const NOT_SHARED: [&str; 3] = ["dryRun", "fieldValidation", "name"];

/// Returns the FNV-1 hash, which multiplies before it adds a byte.
fn fnv(bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(start, |hash: u64, byte| {
        hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)
    })
}

/// The parameters that a document defines once, by their names.
#[derive(Debug, Default)]
pub(super) struct SharedParameters(BTreeMap<String, Value>);

impl SharedParameters {
    /// Moves a parameter among the shared ones, and returns a reference to it.
    ///
    /// Its name there is that of `collectSharedParameters` of kube-openapi, which hashes the JSON that Go writes.
    fn refer(&mut self, parameter: Value) -> Value {
        let name = parameter["name"].as_str().unwrap_or_default();
        let members = MEMBERS.iter().filter_map(|member| {
            let value = parameter.get(member)?;
            Some(format!("\"{member}\":{value}"))
        });
        let text = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
        let hash = &fnv(text.as_bytes()).to_be_bytes()[..HASH_BYTES];
        let name = format!("{name}-{}", URL_SAFE_NO_PAD.encode(hash));
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        self.0.entry(name).or_insert(parameter);
        reference
    }

    /// Returns the document's `parameters` object.
    pub(super) fn into_value(self) -> Value {
        Value::Object(self.0.into_iter().collect())
    }
}

/// Returns a path item of OpenAPI v2, and notes the schemas and shared parameters that it refers to.
pub(super) fn item(item: &PathItem, names: &mut Names<'_>, shared: &mut SharedParameters) -> Value {
    let mut value = Map::new();
    for one in &item.operations {
        value.insert(one.method.to_owned(), operation(one, names, shared));
    }
    if !item.parameters.is_empty() {
        let parameters = item.parameters.iter().map(|it| parameter(it, shared));
        value.insert("parameters".to_owned(), parameters.collect());
    }
    Value::Object(value)
}

fn operation(operation: &Operation, names: &mut Names<'_>, shared: &mut SharedParameters) -> Value {
    let body = operation.body.as_ref();
    let takes = body.map_or_else(
        || operation.media.questions(),
        |it| operation.media.takes(it),
    );
    let answer = to_v2(v3::schema(&operation.answer, names));
    let codes = operation.codes.iter().map(|(code, description)| {
        let response = json!({"description": description, "schema": answer});
        ((*code).to_owned(), response)
    });
    let mut responses: Map<String, Value> = codes.collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut value = json!({
        "description": operation.description,
        "produces": operation.media.answers(),
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
        "responses": responses,
    });
    if !takes.is_empty() {
        value["consumes"] = json!(takes);
    }
    let body = body.map(|body| {
        let (schema, required) = v3::body(body, names);
        let mut parameter = json!({"name": "body", "in": "body", "schema": to_v2(schema)});
        if required {
            parameter["required"] = json!(true);
        }
        match operation.body {
            Some(Body::Object(_)) => parameter,
            _ => shared.refer(parameter),
        }
    });
    let mut parameters: Vec<Value> = body.into_iter().collect();
    parameters.extend(operation.parameters.iter().map(|it| parameter(it, shared)));
    if !parameters.is_empty() {
        value["parameters"] = Value::Array(parameters);
    }
    if let Some((action, group_version, kind)) = &operation.action {
        value["x-kubernetes-action"] = json!(action);
        value["x-kubernetes-group-version-kind"] = json!({
            "group": group_version.group, "version": group_version.version, "kind": kind});
    }
    value
}

fn parameter(parameter: &Parameter, shared: &mut SharedParameters) -> Value {
    let Parameter {
        name,
        place,
        kind,
        description,
    } = parameter;
    let mut value = json!({"uniqueItems": true, "type": kind, "description": description,
        "name": name, "in": place});
    if *place == "path" {
        value["required"] = json!(true);
    }
    if NOT_SHARED.contains(name) {
        value
    } else {
        shared.refer(value)
    }
}

impl Media {
    /// Returns the media types that requests without a body consume.
    fn questions(self) -> &'static [&'static str] {
        match self {
            Self::Discovery | Self::Custom | Self::Json => self.answers(),
            Self::Keys | Self::KeyConfiguration => &[],
            Self::Object | Self::List | Self::Log | Self::Anything => &["*/*"],
        }
    }
}

/// Converts a built-in schema of v3 to v2: without `oneOf` and defaults, which kubectl would take for the client's.
pub(super) fn to_v2(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(to_v2).collect(),
        Value::Object(mut members) => {
            let first = members.get("allOf").and_then(|all| all.get(0));
            if let Some(reference) = first.and_then(|it| it.get("$ref")).cloned() {
                members.remove("allOf");
                members.insert("$ref".to_owned(), reference);
            }
            if members.remove("oneOf").is_some() {
                members.insert("type".to_owned(), json!("string"));
            }
            members.remove("default");
            let members = members.into_iter().map(|(name, member)| {
                let member = match member {
                    Value::Object(properties) if name == "properties" => {
                        let each = properties.into_iter().map(|(name, it)| (name, to_v2(it)));
                        Value::Object(each.collect())
                    }
                    other => to_v2(other),
                };
                (name, member)
            });
            Value::Object(members.collect())
        }
        Value::String(text) => match text.strip_prefix(v3::REFERENCE) {
            Some(name) => Value::String(format!("{REFERENCE}{name}")),
            None => Value::String(text),
        },
        other => other,
    }
}
