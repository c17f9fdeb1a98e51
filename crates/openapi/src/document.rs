//! Builds a document, path by path and schema by schema.

use std::collections::BTreeSet;

use ringwatch_apimachinery::GroupVersion;
use serde_json::{Value, json};

use super::built_in::Index;
use super::custom::CustomSchemas;
use super::form::{OpenApiVersion, Syntax};
use super::names::Names;
use super::operations::PathItem;
use super::protobuf::{self, Piece};
use super::{v2, v3};

/// Number of schemas that are written before the task yields.
const STEP_SCHEMAS: usize = 16;

/// A document that is being written.
#[derive(Debug)]
pub(super) struct Assembly<'a> {
    form: OpenApiVersion,
    syntax: Syntax,
    names: Names<'a>,
    paths: Vec<u8>,
    schemas: Vec<u8>,
    /// The parameters that a v2 document defines once and refers to.
    shared: v2::SharedParameters,
    /// The only version that the document is about.
    only: Option<GroupVersion>,
    /// True if the document is about custom resources alone.
    of_definitions: bool,
}

impl<'a> Assembly<'a> {
    /// Starts a document without content.
    pub(super) fn new(form: OpenApiVersion, syntax: Syntax, index: &'a Index<'a>) -> Self {
        Self {
            form,
            syntax,
            names: Names::new(index),
            paths: Vec::new(),
            schemas: Vec::new(),
            shared: v2::SharedParameters::default(),
            only: None,
            of_definitions: false,
        }
    }

    /// Gives the document the head of those about custom resources, which tells nothing of the server. Follows
    /// `getOpenAPIV3Config` of apiextensions.
    pub(super) fn describe_definitions(&mut self) {
        self.of_definitions = self.form == OpenApiVersion::V3;
    }

    /// Restricts the document to one version.
    pub(super) fn limit_to(&mut self, only: &GroupVersion) {
        if self.form == OpenApiVersion::V3 {
            self.only = Some(only.clone());
        }
    }

    /// Adds a path with its operations, and notes the schemas that these refer to.
    pub(super) fn add(&mut self, item: &PathItem) {
        let value = match self.form {
            OpenApiVersion::V2 => v2::item(item, &mut self.names, &mut self.shared),
            OpenApiVersion::V3 => v3::item(item, &mut self.names),
        };
        put(
            self.syntax,
            Piece::path(self.form),
            &mut self.paths,
            &item.path,
            &value,
        );
    }

    /// Adds the schemas that are referred to, and ends the document.
    pub(super) async fn finish(mut self, version: &str, custom: &CustomSchemas) -> Vec<u8> {
        let mut written = BTreeSet::new();
        while let Some(name) = self.names.wanted.pop_first() {
            if !written.insert(name.clone()) {
                continue;
            }
            self.schema(&name, custom).await;
            if written.len().is_multiple_of(STEP_SCHEMAS) {
                tokio::task::yield_now().await;
            }
        }
        self.whole(version)
    }

    async fn schema(&mut self, name: &str, custom: &CustomSchemas) {
        let known = self.names.index.schema(name);
        let schema = match (known, self.names.custom.get(name)) {
            (Some(known), _) => {
                self.want_referred(known.json);
                if self.is_verbatim() && !known.of_many {
                    member(&mut self.schemas, name, known.json);
                    return;
                }
                let schema = serde_json::from_str(known.json).unwrap_or_default();
                self.of_built_in(schema, known.of_many)
            }
            (None, Some((group_version, kind))) => {
                let template = self.names.index;
                let schema = custom
                    .schema(group_version, kind, self.form, template)
                    .await;
                self.want_referred(&schema.to_string());
                match self.form {
                    OpenApiVersion::V2 => v2::to_v2(schema),
                    OpenApiVersion::V3 => schema,
                }
            }
            (None, None) => json!({"type": "object"}),
        };
        let piece = Piece::schema(self.form);
        put(self.syntax, piece, &mut self.schemas, name, &schema);
    }

    /// Returns true if built-in schemas are written as they are.
    fn is_verbatim(&self) -> bool {
        (self.form, self.syntax) == (OpenApiVersion::V3, Syntax::Json)
    }

    fn of_built_in(&self, mut schema: Value, of_many: bool) -> Value {
        const KINDS: &str = "x-kubernetes-group-version-kind";
        if let (true, Some(only), Some(kinds)) = (
            of_many,
            &self.only,
            schema.get_mut(KINDS).and_then(Value::as_array_mut),
        ) {
            kinds.retain(|it| it["group"] == only.group && it["version"] == only.version);
        }
        match self.form {
            OpenApiVersion::V2 => v2::to_v2(schema),
            OpenApiVersion::V3 => schema,
        }
    }

    /// Adds the schemas that a schema refers to.
    fn want_referred(&mut self, schema: &str) {
        for after in schema.split(v3::REFERENCE).skip(1) {
            if let Some((name, _)) = after.split_once('"') {
                self.names.wanted.insert(name.to_owned());
            }
        }
    }

    fn whole(self, version: &str) -> Vec<u8> {
        let token = json!({"type": "apiKey", "description": "Bearer Token authentication",
            "name": "authorization", "in": "header"});
        let info = match self.of_definitions {
            true => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
            false => json!({"title": "Kubernetes", "version": version}),
        };
        let (head, tail) = match self.form {
            OpenApiVersion::V2 => (
                json!({"swagger": "2.0", "info": info}),
                json!({"parameters": self.shared.into_value(),
                    "securityDefinitions": {"BearerToken": token},
                    "security": [{"BearerToken": []}]}),
            ),
            OpenApiVersion::V3 if self.of_definitions => {
                (json!({"openapi": "3.0.0", "info": info}), json!({}))
            }
            OpenApiVersion::V3 => (
                json!({"openapi": "3.0.0", "info": info}),
                json!({"securitySchemes": {"BearerToken": token}}),
            ),
        };
        match self.syntax {
            Syntax::Protobuf => {
                protobuf::document(self.form, &head, &self.paths, &self.schemas, &tail)
            }
            Syntax::Json => json_document(self.form, &head, &self.paths, &self.schemas, &tail),
        }
    }
}

fn put(syntax: Syntax, piece: Piece, out: &mut Vec<u8>, name: &str, value: &Value) {
    match syntax {
        Syntax::Json => member(out, name, &value.to_string()),
        Syntax::Protobuf => piece.write(out, name, value),
    }
}

/// Writes a member of an object, with a comma in front if it is not the first.
fn member(out: &mut Vec<u8>, name: &str, json: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(Value::from(name).to_string().as_bytes());
    out.push(b':');
    out.extend_from_slice(json.as_bytes());
}

fn json_document(
    form: OpenApiVersion,
    head: &Value,
    paths: &[u8],
    schemas: &[u8],
    tail: &Value,
) -> Vec<u8> {
    let (head, tail) = (head.to_string(), tail.to_string());
    // Both are objects, whose braces are those of the document.
    let (head, tail) = (&head[..head.len() - 1], &tail[1..]);
    let (before, end) = match form {
        OpenApiVersion::V2 => ("},\"definitions\":{", ""),
        OpenApiVersion::V3 => ("},\"components\":{\"schemas\":{", "}"),
    };
    let after = if tail == "}" { "}" } else { "}," };
    [
        head.as_bytes(),
        b",\"paths\":{",
        paths,
        before.as_bytes(),
        schemas,
        after.as_bytes(),
        tail.as_bytes(),
        end.as_bytes(),
    ]
    .concat()
}
