//! Refusals of verbs and parts that a resource does not have.

use ringwatch::meta::{Status, StatusDetails};
use ringwatch_registry::{Resource, Verb};

use super::Failure;

impl Failure {
    /// Returns the 405 for a verb that a resource does not have.
    pub(crate) fn verb_not_supported(resource: &Resource, verb: Verb) -> Self {
        let name = resource.qualified_name();
        let verb = verb.name();
        let message = format!("{verb} is not supported on resources of kind {name:?}");
        let details = StatusDetails {
            group: resource.group_version.group.clone(),
            kind: resource.plural.clone(),
            ..StatusDetails::default()
        };
        let status = Status::failure(405, "MethodNotAllowed", message);
        Self(Box::new(status.with_details(details)))
    }

    /// Returns the 404 for a part that a custom resource does not have, which is told as if the object were not there.
    pub(crate) fn no_such_part(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} not found", resource.qualified_name());
        let details = StatusDetails {
            name: name.to_owned(),
            group: resource.group_version.group.clone(),
            kind: resource.plural.clone(),
            ..StatusDetails::default()
        };
        let status = Status::failure(404, "NotFound", message);
        Self(Box::new(status.with_details(details)))
    }
}
