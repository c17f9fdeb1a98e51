//! The objects that are written to, and how their watches ask.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::api::{Api, Line};
use super::protocol::{Opening, Protocol};
use super::{Failed, event};

/// How long the line of an event is, unless the object is longer without any padding.
const EVENT_BYTES: usize = 1_024;
/// The path of the namespace of all objects.
const NAMESPACE: &str = "/api/v1/namespaces/bench";

/// A kind of objects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    ConfigMaps,
    /// Pods, each bound to a node of its own: `n0`, `n1`...
    Pods,
}

/// Objects with nothing written to them yet: the next event is number 1.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) kind: Kind,
    pub(crate) paths: Vec<String>,
    /// From here a watch gets every event that is written later.
    pub(crate) revision: u64,
    /// One of them, as the server shows it.
    pub(crate) sample: String,
}

impl Kind {
    /// The path of all objects.
    pub(crate) fn collection(self) -> String {
        let resource = match self {
            Self::ConfigMaps => "configmaps",
            Self::Pods => "pods",
        };
        format!("{NAMESPACE}/{resource}")
    }

    fn object(self, index: usize) -> Value {
        let metadata = json!({"name": format!("o{index}")});
        match self {
            Self::ConfigMaps => {
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})
            }
            Self::Pods => json!({
                "kind": "Pod",
                "apiVersion": "v1",
                "metadata": metadata,
                "spec": {
                    "nodeName": format!("n{index}"),
                    "containers": [{"name": "c", "image": "i"}],
                },
            }),
        }
    }
}

impl Objects {
    /// Creates objects whose events all are of the same length.
    pub(crate) async fn create(api: &Api, kind: Kind, count: usize) -> Result<Self, Failed> {
        let mut line = api.connect().await?;
        let namespace =
            json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "bench"}});
        line.create("/api/v1/namespaces", &namespace).await?;
        let mut objects = Self {
            kind,
            paths: Vec::new(),
            revision: 0,
            sample: String::new(),
        };
        for index in 0..count {
            objects.add(&mut line, index).await?;
        }
        let list = line.get(&format!("{}?limit=1", kind.collection())).await?;
        let list: Value = serde_json::from_slice(&list)?;
        let revision = list["metadata"]["resourceVersion"].as_str();
        objects.revision = revision.ok_or("a list without a version")?.parse()?;
        Ok(objects)
    }

    async fn add(&mut self, line: &mut Line, index: usize) -> Result<(), Failed> {
        line.create(&self.kind.collection(), &self.kind.object(index))
            .await?;
        let path = format!("{}/o{index}", self.kind.collection());
        // The server's own notes about who set what are as long as they will be from here on.
        for padding in ["", "x"] {
            let patch = json!({"metadata": {"annotations": {"padding": padding}}});
            line.patch(&path, patch.to_string()).await?;
            line.patch(&path, event::patch(0, SystemTime::now()))
                .await?;
        }
        let unpadded = object(line, &path).await?;
        let short = EVENT_BYTES.saturating_sub(event::line(&unpadded).len());
        let patch = json!({"metadata": {"annotations": {"padding": "x".repeat(short + 1)}}});
        line.patch(&path, patch.to_string()).await?;
        self.sample = object(line, &path).await?;
        self.paths.push(path);
        Ok(())
    }

    /// Watches of all events, each watch of all objects.
    pub(crate) fn watches(&self, api: &Api, watches: usize) -> Opening {
        Opening {
            address: api.address,
            authority: api.authority.clone(),
            protocol: Protocol::Http1,
            watches,
            path: format!("{}?watch=true", self.kind.collection()),
            revision: self.revision,
            next: 1,
            resumes: false,
            small_buffers: false,
        }
    }
}

/// An object as watches show it: without a line break at its end.
async fn object(line: &mut Line, path: &str) -> Result<String, Failed> {
    let object = line.get(path).await?;
    Ok(std::str::from_utf8(&object)?.trim_end().to_owned())
}
