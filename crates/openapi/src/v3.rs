//! Operations as OpenAPI v3 writes them.

use serde_json::{Map, Value, json};

use super::names::Names;
use super::operations::{Body, Media, Operation, PathItem, Type};
use super::parameters::Parameter;

/// The prefix of references to schemas.
pub(super) const REFERENCE: &str = "#/components/schemas/";

const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// Returns a path item of OpenAPI v3, and notes the schemas that it refers to.
pub(super) fn item(item: &PathItem, names: &mut Names<'_>) -> Value {
    let mut value = Map::new();
    for one in &item.operations {
        value.insert(one.method.to_owned(), operation(one, names));
    }
    if !item.parameters.is_empty() {
        let parameters = item.parameters.iter().map(parameter);
        value.insert("parameters".to_owned(), parameters.collect());
    }
    Value::Object(value)
}

fn operation(operation: &Operation, names: &mut Names<'_>) -> Value {
    let mut value = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses(operation, names),
    });
    if !operation.parameters.is_empty() {
        value["parameters"] = operation.parameters.iter().map(parameter).collect();
    }
    if let Some(body) = &operation.body {
        value["requestBody"] = request_body(body, operation.media, names);
    }
    if let Some((action, group_version, kind)) = &operation.action {
        value["x-kubernetes-action"] = json!(action);
        value["x-kubernetes-group-version-kind"] = json!({
            "group": group_version.group, "version": group_version.version, "kind": kind});
    }
    value
}

fn responses(operation: &Operation, names: &mut Names<'_>) -> Value {
    let schema = schema(&operation.answer, names);
    let content = content(operation.media.answers(), &schema);
    let codes = operation.codes.iter().map(|(code, description)| {
        let response = json!({"description": description, "content": content});
        ((*code).to_owned(), response)
    });
    let mut responses: Map<String, Value> = codes.collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    Value::Object(responses)
}

fn request_body(body: &Body, media: Media, names: &mut Names<'_>) -> Value {
    let (schema, required) = self::body(body, names);
    let mut value = json!({"content": content(media.takes(body), &schema)});
    if required {
        value["required"] = json!(true);
    }
    value
}

/// Returns the schema of a body, and whether there must be one.
pub(super) fn body(body: &Body, names: &mut Names<'_>) -> (Value, bool) {
    let about = match body {
        Body::Object(about) => about,
        Body::DeleteOptions => &Type::Named(DELETE_OPTIONS),
        Body::Patch => &Type::Named(PATCH),
    };
    (schema(about, names), !matches!(body, Body::DeleteOptions))
}

fn content(media_types: &[&str], schema: &Value) -> Value {
    let one = |media_type: &&str| ((*media_type).to_owned(), json!({"schema": schema}));
    Value::Object(media_types.iter().map(one).collect())
}

/// Returns the schema of a type: a reference.
pub(super) fn schema(about: &Type, names: &mut Names<'_>) -> Value {
    match names.require(about) {
        Some(name) => json!({"$ref": format!("{REFERENCE}{name}")}),
        None => json!({"type": "string"}),
    }
}

fn parameter(parameter: &Parameter) -> Value {
    let Parameter {
        name,
        place,
        kind,
        description,
    } = parameter;
    let mut value = json!({"name": name, "in": place, "description": description,
        "schema": {"type": kind, "uniqueItems": true}});
    if *place == "path" {
        value["required"] = json!(true);
    }
    value
}

impl Media {
    /// Returns the media types of the operations' responses.
    pub(super) fn answers(self) -> &'static [&'static str] {
        match self {
            Self::Object | Self::Discovery => &[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ],
            Self::List => &[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
                "application/json;stream=watch",
                "application/vnd.kubernetes.protobuf;stream=watch",
            ],
            Self::Custom => &["application/json", "application/yaml"],
            Self::Json | Self::KeyConfiguration => &["application/json"],
            Self::Keys => &["application/jwk-set+json"],
            Self::Log => &[
                "text/plain",
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ],
            Self::Anything => &["*/*"],
        }
    }

    /// Returns the media types of the bodies that the operations take.
    pub(super) fn takes(self, body: &Body) -> &'static [&'static str] {
        let custom = self == Self::Custom;
        match (body, custom) {
            (Body::Patch, false) => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/strategic-merge-patch+json",
                "application/apply-patch+yaml",
            ],
            (Body::Patch, true) => &[
                "application/json-patch+json",
                "application/merge-patch+json",
                "application/apply-patch+yaml",
            ],
            (_, false) => &["*/*"],
            (_, true) => &["application/json", "application/yaml"],
        }
    }
}
