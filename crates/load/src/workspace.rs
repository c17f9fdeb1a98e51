//! The namespace in which everything happens. Nothing outside it is ever written.
//!
//! Where controllers run, the namespace is emptied and finished by them. Where none do, as with a
//! bare API server, nobody fills it with a service account and nobody would ever finish it; so that
//! is done here, once it holds nothing.

use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};

use super::client::{Client, ClientError, ClientRequest, Connection, RequestContent};
use super::custom_resource::CustomResource;
use super::error::LoadError;
use super::payload::ObjectKind;

const NAME_PREFIX: &str = "ringwatch-load-";
/// The number of random characters that follow, and their alphabet.
const NAME_RANDOM_CHARACTERS: usize = 5;
const NAME_ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const MANAGER: &str = "ringwatch-load";
/// The resources of what may have been written here, beside Leases.
const WRITTEN: [&str; 3] = ["configmaps", "pods", "secrets"];
/// The most tries of what belongs to the clean-up, and the pause between them: a minute in all.
const TRIES_MAX: u32 = 120;
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A namespace of our own, in which everything is written.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    name: String,
    /// The custom resource that is written, if any.
    custom: Option<CustomResource>,
    /// True if its creation was requested and not refused.
    asked_for: bool,
}

impl Workspace {
    /// Returns a namespace that does not exist yet: of this name, else of one that nobody else has.
    pub(crate) fn new(name: Option<&str>) -> Self {
        Self {
            name: name.map_or_else(random_name, str::to_owned),
            custom: None,
            asked_for: false,
        }
    }

    /// Also deletes the objects of a custom resource in the end.
    pub(crate) fn with_custom(self, custom: Option<CustomResource>) -> Self {
        Self { custom, ..self }
    }

    /// Returns the paths of the collections that may have been written.
    fn written(&self) -> impl Iterator<Item = String> {
        let custom = self.custom.as_ref().map(|it| it.in_namespace(&self.name));
        let others = [self.leases()].into_iter().chain(custom);
        WRITTEN.into_iter().map(|it| self.path(it)).chain(others)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if it may exist and be ours.
    pub(crate) fn may_exist(&self) -> bool {
        self.asked_for
    }

    /// Returns the path of a collection in it.
    pub(crate) fn collection(&self, kind: ObjectKind) -> String {
        self.path(kind.resource())
    }

    /// Returns the path of the collection of a resource in it.
    pub(crate) fn path(&self, resource: &str) -> String {
        format!("{}/{resource}", self.own_path())
    }

    /// Returns the path of the collection of Leases in it.
    pub(crate) fn leases(&self) -> String {
        let name = &self.name;
        format!("/apis/coordination.k8s.io/v1/namespaces/{name}/leases")
    }

    fn own_path(&self) -> String {
        format!("/api/v1/namespaces/{}", self.name)
    }

    /// Creates it. One that exists already is not ours and stays as it is.
    pub(crate) async fn create(&mut self, connection: &mut Connection) -> Result<(), LoadError> {
        let namespace = json!({
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "labels": {MANAGED_BY: MANAGER}},
        });
        let request = ClientRequest::post("/api/v1/namespaces", RequestContent::json(&namespace));
        let what = format!("create the namespace {}", self.name);
        self.asked_for = true;
        let answer = connection.request(request).await;
        let created = answer.and_then(|answer| answer.success());
        if matches!(created, Err(ClientError::Refused { .. })) {
            self.asked_for = false;
        }
        created.map_err(LoadError::request(what))?;
        Ok(())
    }

    /// Deletes it with all that is in it and waits until it is gone. A server that is away for a
    /// while is waited for.
    pub(crate) async fn delete(&self, client: &Client) -> Result<(), LoadError> {
        let mut last = ClientError::Malformed("the namespace does not go away");
        for _ in 0..TRIES_MAX {
            match self.try_delete(client).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => last = error,
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        let what = format!(
            "delete the namespace {}; kubectl delete namespace {} does it",
            self.name, self.name
        );
        Err(LoadError::request(what)(last))
    }

    /// Goes on with deleting it. Says whether it is gone.
    async fn try_delete(&self, client: &Client) -> Result<bool, ClientError> {
        let mut connection = client.connect().await?;
        let Some(namespace) = get(&mut connection, &self.own_path()).await? else {
            return Ok(true);
        };
        for collection in self.written() {
            let request = ClientRequest::delete(collection).with(RequestContent::json(&json!({
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "gracePeriodSeconds": 0,
            })));
            connection.request(request).await?.success()?;
        }
        if namespace["metadata"]["deletionTimestamp"].is_null() {
            let answer = connection
                .request(ClientRequest::delete(self.own_path()))
                .await?;
            if answer.status.as_u16() != 404 {
                answer.success()?;
            }
        }
        self.finish(&mut connection).await?;
        Ok(get(&mut connection, &self.own_path()).await?.is_none())
    }

    /// Finalizes the namespace if no controller does: nothing is in it, and nothing can come any more.
    async fn finish(&self, connection: &mut Connection) -> Result<(), ClientError> {
        let Some(mut namespace) = get(connection, &self.own_path()).await? else {
            return Ok(());
        };
        for collection in self.written().chain([self.path("serviceaccounts")]) {
            let path = collection + "?limit=1";
            let list = get(connection, &path).await?.unwrap_or_default();
            if list["items"]
                .as_array()
                .is_none_or(|items| !items.is_empty())
            {
                return Ok(());
            }
        }
        namespace["spec"]["finalizers"] = json!([]);
        let path = self.path("finalize");
        let request = ClientRequest::put(path, RequestContent::json(&namespace));
        let answer = connection.request(request).await?;
        // Somebody else was faster.
        if !matches!(answer.status.as_u16(), 404 | 409) {
            answer.success()?;
        }
        Ok(())
    }
}

fn random_name() -> String {
    let mut random = rand::rng();
    let mut character = || NAME_ALPHABET[random.random_range(0..NAME_ALPHABET.len())];
    let suffix: Vec<u8> = (0..NAME_RANDOM_CHARACTERS).map(|_| character()).collect();
    format!("{NAME_PREFIX}{}", String::from_utf8_lossy(&suffix))
}

/// Gets a document; `None` if there is none.
async fn get(connection: &mut Connection, path: &str) -> Result<Option<Value>, ClientError> {
    let answer = connection.request(ClientRequest::get(path)).await?;
    if answer.status.as_u16() == 404 {
        return Ok(None);
    }
    let document = serde_json::from_slice(&answer.success()?);
    document
        .map(Some)
        .map_err(|_| ClientError::Malformed("not JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_our_own_and_differ() {
        let names: Vec<Workspace> = (0..3).map(|_| Workspace::new(None)).collect();
        for workspace in &names {
            assert!(workspace.name().starts_with(NAME_PREFIX));
            assert_eq!(
                workspace.name().len(),
                NAME_PREFIX.len() + NAME_RANDOM_CHARACTERS
            );
            let path = format!("/api/v1/namespaces/{}/pods", workspace.name());
            assert_eq!(workspace.collection(ObjectKind::Pods), path);
        }
        assert!(names[0].name() != names[1].name() || names[1].name() != names[2].name());
    }
}
