//! The resource that is written: secrets, or a custom resource.

use serde_json::Value;

use crate::client::{Client, ClientRequest, Encoding};
use crate::custom_resource::CustomResource;
use crate::error::LoadError;

/// The resource of a run's objects, and the encodings that the server has for it.
#[derive(Clone, Debug)]
pub(super) struct Resource {
    pub(super) api_version: String,
    pub(super) kind: String,
    /// The path of the group's version.
    root: String,
    plural: String,
    pub(super) encodings: &'static [Encoding],
}

impl Resource {
    /// Returns secrets: nobody but who writes them touches them, and they can be selected by a field beside their
    /// names, their type. They hold nothing.
    pub(super) fn secrets() -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            root: "/api/v1".to_owned(),
            plural: "secrets".to_owned(),
            encodings: &[Encoding::Json, Encoding::Protobuf],
        }
    }

    /// Finds the kind of a custom resource, which is served in JSON alone.
    ///
    /// # Errors
    /// The server does not serve it, or not in this version.
    pub(super) async fn custom(client: &Client, name: &CustomResource) -> Result<Self, LoadError> {
        let what = || format!("find {name}");
        let answer = client
            .connect()
            .await?
            .request(ClientRequest::get(name.root()))
            .await;
        let body = answer
            .and_then(|answer| answer.success())
            .map_err(LoadError::request(what()))?;
        let discovered: Value = serde_json::from_slice(&body).unwrap_or_default();
        let resources = discovered["resources"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let found = resources
            .iter()
            .find(|it| it["name"] == name.plural.as_str());
        let found = found.ok_or_else(|| LoadError::UnexpectedAnswer {
            what: what(),
            why: format!("{} has no such resource", name.root()),
        })?;
        Ok(Self {
            api_version: format!("{}/{}", name.group, name.version),
            kind: found["kind"].as_str().unwrap_or_default().to_owned(),
            root: name.root(),
            plural: name.plural.clone(),
            encodings: &[Encoding::Json],
        })
    }

    /// Returns the path of the collection in a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
    }

    /// Returns the path of the collection in all namespaces.
    pub(super) fn everywhere(&self) -> String {
        format!("{}/{}", self.root, self.plural)
    }
}
