//! The attributes of a request that authorization decides on.

use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_apimachinery::User;

/// A user's request to act on a resource or on a path.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    /// The user who makes the request.
    pub user: &'a User,
    /// The user who asks if it is allowed: another one in a review of somebody's access.
    pub asker: &'a User,
    /// The verb, such as `list`; for paths the HTTP method in lower case.
    pub verb: &'a str,
    /// True for a request on a resource; if false, only `path` counts.
    pub is_resource: bool,
    /// The namespace; empty for all, or if the resource has none.
    pub namespace: &'a str,
    /// The API group; empty for the core.
    pub group: &'a str,
    /// The version of the group; `*` where any is meant.
    pub version: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The subresource; empty for the resource itself.
    pub subresource: &'a str,
    /// The object's name; empty for all.
    pub name: &'a str,
    /// The field selector of the request, as far as it can be parsed.
    pub fields: Option<&'a FieldSelector>,
    /// The label selector of the request, as far as it can be parsed.
    pub labels: Option<&'a LabelSelector>,
    /// The path of a request that is not about a resource.
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// Returns the attributes of a request to a path that is not about a resource.
    #[must_use]
    pub fn of_path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        Self {
            user,
            asker: user,
            verb,
            is_resource: false,
            namespace: "",
            group: "",
            version: "",
            resource: "",
            subresource: "",
            name: "",
            fields: None,
            labels: None,
            path,
        }
    }

    /// Returns the attributes of a request on all objects of a resource, in all namespaces; the caller narrows them.
    #[must_use]
    pub fn of_resource(user: &'a User, verb: &'a str, group: &'a str, resource: &'a str) -> Self {
        Self {
            is_resource: true,
            group,
            version: "*",
            resource,
            ..Self::of_path(user, verb, "")
        }
    }

    /// Returns the one value of a field that is selected.
    pub(super) fn selects_exactly(&self, field: &str) -> Option<&'a str> {
        self.fields?.requires_exact(field)
    }

    /// Says that the user cannot do it, in kube-apiserver's words.
    #[must_use]
    pub fn refusal(&self) -> String {
        let (user, verb) = (&self.user.name, self.verb);
        let text = if self.is_resource {
            let resource = self.combined_resource();
            let place = if self.namespace.is_empty() {
                "at the cluster scope".to_owned()
            } else {
                format!("in the namespace {:?}", self.namespace)
            };
            let group = self.group;
            format!(
                "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}"
            )
        } else {
            format!("User {user:?} cannot {verb} path {:?}", self.path)
        };
        // What a client sent comes back to it, and some clients are browsers.
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
    }

    /// Returns the resource with its subresource, as rules name it.
    #[must_use]
    pub fn combined_resource(&self) -> String {
        if self.subresource.is_empty() {
            self.resource.to_owned()
        } else {
            format!("{}/{}", self.resource, self.subresource)
        }
    }
}
