//! The messages of gnostic, as far as the tests read documents in protobuf by them; declared here once more.

use prost::Message as _;

use super::api;
use crate::built_in::BuiltIn;
use crate::document::Assembly;
use crate::{OpenApiVersion, Syntax};

#[derive(prost::Message)]
struct V2Document {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "9")]
    definitions: Option<V2Schemas>,
}

#[derive(prost::Message)]
struct V2Schemas {
    #[prost(message, repeated, tag = "1")]
    all: Vec<V2Named>,
}

#[derive(prost::Message)]
struct V2Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<V2Schema>,
}

#[derive(prost::Message)]
struct V2Schema {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(message, optional, tag = "22")]
    kind: Option<Texts>,
    #[prost(message, optional, tag = "25")]
    properties: Option<V2Schemas>,
    #[prost(message, repeated, tag = "31")]
    extensions: Vec<NamedAny>,
}

#[derive(prost::Message)]
struct Texts {
    #[prost(string, repeated, tag = "1")]
    all: Vec<String>,
}

#[derive(prost::Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Any>,
}

#[derive(prost::Message)]
struct Any {
    #[prost(string, tag = "2")]
    yaml: String,
}

#[derive(prost::Message)]
struct V3Document {
    #[prost(string, tag = "1")]
    openapi: String,
    #[prost(message, optional, tag = "5")]
    components: Option<V3Components>,
}

#[derive(prost::Message)]
struct V3Components {
    #[prost(message, optional, tag = "1")]
    schemas: Option<V3Schemas>,
}

#[derive(prost::Message)]
struct V3Schemas {
    #[prost(message, repeated, tag = "1")]
    all: Vec<V3Named>,
}

#[derive(prost::Message)]
struct V3Named {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<V3Either>,
}

#[derive(prost::Message)]
struct V3Either {
    #[prost(message, optional, tag = "1")]
    schema: Option<V3Schema>,
    #[prost(message, optional, tag = "2")]
    reference: Option<Reference>,
}

#[derive(prost::Message)]
struct Reference {
    #[prost(string, tag = "1")]
    reference: String,
}

#[derive(prost::Message)]
struct V3Schema {
    #[prost(string, repeated, tag = "23")]
    required: Vec<String>,
    #[prost(string, tag = "25")]
    kind: String,
    #[prost(message, repeated, tag = "26")]
    all_of: Vec<V3Either>,
    #[prost(message, optional, tag = "31")]
    properties: Option<V3Schemas>,
    #[prost(string, tag = "34")]
    description: String,
}

/// Returns the document of apps, or of everything, in protobuf.
async fn in_protobuf(form: OpenApiVersion) -> Vec<u8> {
    let (api, schemas) = (api(), BuiltIn::unpack().await);
    let index = schemas.index();
    let mut assembly = Assembly::new(form, Syntax::Protobuf, &index);
    api.add(&mut assembly, "apis/apps/v1", &api.roots["apis/apps/v1"])
        .await;
    assembly.finish(&api.version, &api.custom).await
}

#[tokio::test]
async fn the_second_version_in_protobuf_is_what_gnostic_reads() {
    let document = V2Document::decode(&in_protobuf(OpenApiVersion::V2).await[..]);
    let document = document.expect("a document");
    assert_eq!(document.swagger, "2.0");
    let schemas = document.definitions.expect("definitions").all;
    let spec = schemas
        .iter()
        .find(|it| it.name == "io.k8s.api.apps.v1.DeploymentSpec");
    let spec = spec.and_then(|it| it.value.as_ref()).expect("a schema");
    assert_eq!(spec.kind.as_ref().expect("a type").all, ["object"]);
    let members = &spec.properties.as_ref().expect("members").all;
    let strategy = members
        .iter()
        .find(|it| it.name == "strategy")
        .expect("a member");
    let strategy = strategy.value.as_ref().expect("a schema");
    assert_eq!(
        strategy.reference,
        "#/definitions/io.k8s.api.apps.v1.DeploymentStrategy"
    );
    let extension = &strategy.extensions[0];
    let yaml = extension.value.as_ref().map(|it| it.yaml.as_str());
    assert_eq!(
        (extension.name.as_str(), yaml),
        ("x-kubernetes-patch-strategy", Some("\"retainKeys\""))
    );
}

#[tokio::test]
async fn the_third_version_in_protobuf_is_what_gnostic_reads() {
    let document = V3Document::decode(&in_protobuf(OpenApiVersion::V3).await[..]);
    let document = document.expect("a document");
    assert_eq!(document.openapi, "3.0.0");
    let schemas = document
        .components
        .and_then(|it| it.schemas)
        .expect("schemas")
        .all;
    let spec = schemas
        .iter()
        .find(|it| it.name == "io.k8s.api.apps.v1.DeploymentSpec");
    let spec = spec
        .and_then(|it| it.value.as_ref()?.schema.as_ref())
        .expect("a schema");
    assert_eq!(
        (spec.kind.as_str(), &spec.required[..]),
        (
            "object",
            &["selector".to_owned(), "template".to_owned()][..]
        )
    );
    let members = &spec.properties.as_ref().expect("members").all;
    let template = members
        .iter()
        .find(|it| it.name == "template")
        .expect("a member");
    let template = template
        .value
        .as_ref()
        .and_then(|it| it.schema.as_ref())
        .expect("a schema");
    assert!(
        template
            .description
            .starts_with("Template describes the pods")
    );
    let reference = template.all_of[0]
        .reference
        .as_ref()
        .map(|it| it.reference.as_str());
    assert_eq!(
        reference,
        Some("#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec")
    );
}
