//! Admission: the trait of the chain of plugins, and the attributes of a request that plugins get.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use ringwatch_apimachinery::accessor::text;
use ringwatch_apimachinery::{Error, FieldError, GroupVersion};
use serde_json::Value;

use crate::{RequestContext, Resource};

/// Changes or refuses writes before they are stored, as `admission.MutationInterface` and `ValidationInterface` in Go.
#[async_trait]
pub trait Admission: Debug + Send + Sync {
    /// Changes the object that is written, or refuses it, before the strategy prepares and checks it. Returns true if a
    /// webhook or a policy has changed it: these write whatever they like, unlike the server's own plugins.
    ///
    /// # Errors
    /// The refusal of a plugin, or a failure to decide.
    async fn admit(&self, request: &Request<'_>, object: &mut Value) -> Result<bool, Error>;

    /// Refuses an object as it is about to be stored.
    ///
    /// # Errors
    /// The refusal of a plugin, or a failure to decide.
    async fn validate(&self, request: &Request<'_>, object: &Value) -> Result<(), Error>;
}

/// The operation that admission sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A new object, or one created through a subresource, such as a binding.
    Create,
    /// An update of an object.
    Update,
    /// A deletion.
    Delete,
    /// A connection through a subresource such as exec or proxy.
    Connect,
}

impl Operation {
    /// Returns the name in the API, such as `CREATE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

/// A write before it is stored.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The user, the options and the subresource of the request.
    pub context: &'a RequestContext,
    /// The operation that is admitted.
    pub operation: Operation,
    /// The resource, in the version that the client uses.
    pub resource: &'a Arc<Resource>,
    /// The namespace; empty for resources that have none.
    pub namespace: &'a str,
    /// The name; empty while it is not known, such as before a name is generated.
    pub name: &'a str,
    /// The stored object, in its storage version; none on creation.
    pub old: Option<&'a Value>,
    /// True if nothing will be stored.
    pub dry_run: bool,
}

impl Request<'_> {
    /// Returns the subresource that is written; empty for the object itself.
    #[must_use]
    pub fn subresource(&self) -> &str {
        &self.context.subresource
    }

    /// Returns true if the request is about the objects of this group and plural themselves, rather than a subresource.
    #[must_use]
    pub fn is_of(&self, group: &str, plural: &str) -> bool {
        let resource = self.resource;
        self.subresource().is_empty()
            && resource.plural == plural
            && resource.group_version.group == group
    }

    /// Returns true if the request creates an object of this group and plural.
    #[must_use]
    pub fn creates(&self, group: &str, plural: &str) -> bool {
        self.operation == Operation::Create && self.is_of(group, plural)
    }

    /// Returns the version and kind of what is written: the resource's, or those of the subresource.
    #[must_use]
    pub fn kind(&self) -> (&GroupVersion, &str) {
        let resource = self.resource;
        match resource.subresource(self.subresource()) {
            Some(part) => (
                part.group_version
                    .as_ref()
                    .unwrap_or(&resource.group_version),
                &part.kind,
            ),
            None => (&resource.group_version, &resource.kind),
        }
    }

    /// Returns the refusal of an object that has these errors.
    #[must_use]
    pub fn invalid(&self, errors: Vec<FieldError>) -> Error {
        Error::Invalid {
            kind: self.resource.qualified_kind(),
            name: self.name.to_owned(),
            errors: FieldError::as_told(errors),
        }
    }

    /// Returns a refusal, in the words of kube-apiserver's plugins.
    #[must_use]
    pub fn forbid(&self, object: &Value, message: impl Into<String>) -> Error {
        let known = [
            self.name,
            text(object, "name"),
            text(object, "generateName"),
        ];
        let name = known.into_iter().find(|name| !name.is_empty());
        Error::Forbidden {
            resource: self.resource.qualified_name(),
            name: name.unwrap_or("Unknown").to_owned(),
            message: message.into(),
            cause: None,
        }
    }
}
