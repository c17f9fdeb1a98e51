//! Answers the permission checks that expressions make by `authorizer`.

use std::sync::Arc;

use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_apimachinery::User;
use ringwatch_authorization::{Attributes, Authorizer};
use ringwatch_cel::{AuthorizerCheck, CheckAttributes};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::match_context::namespace_name;

/// Answers permission checks for the user of a request.
#[derive(Debug)]
pub(super) struct RequestAuthorizer {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) user: User,
}

impl RequestAuthorizer {
    /// Returns the attributes of a check of a user but for its selectors.
    fn attributes<'a>(&'a self, user: &'a User, check: &'a CheckAttributes) -> Attributes<'a> {
        let attributes = match &check.path {
            Some(path) => Attributes::of_path(user, &check.verb, path),
            None => Attributes {
                namespace: &check.namespace,
                subresource: &check.subresource,
                name: &check.name,
                ..Attributes::of_resource(user, &check.verb, &check.group, &check.resource)
            },
        };
        // An expression may check any account: the calls to webhooks are of the user whose request it is.
        Attributes {
            asker: &self.user,
            ..attributes
        }
    }
}

impl AuthorizerCheck for RequestAuthorizer {
    fn decide(&self, check: &CheckAttributes) -> (bool, String) {
        let account = check.account.as_ref().map(|(namespace, name)| User {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            ..User::default()
        });
        let user = account.as_ref().unwrap_or(&self.user);
        // What cannot be read is left out, which requires more than is meant.
        let fields = FieldSelector::parse(&check.fields).ok();
        let labels = LabelSelector::parse(&check.labels).ok();
        let attributes = Attributes {
            fields: fields.as_ref().filter(|it| !it.is_empty()),
            labels: labels.as_ref().filter(|it| !it.is_empty()),
            ..self.attributes(user, check)
        };
        let decision = match Handle::try_current() {
            // It waits for another server, for as long as a check may take, so this thread's other tasks go on
            // elsewhere.
            Ok(runtime)
                if self.authorizer.asks_webhooks()
                    && runtime.runtime_flavor() == RuntimeFlavor::MultiThread =>
            {
                block_in_place(|| runtime.block_on(self.authorizer.decide(&attributes)))
            }
            _ => self.authorizer.decide_now(&attributes),
        };
        (decision.allowed, decision.reason)
    }
}

/// Returns the attributes that `authorizer.requestResource` checks.
pub(super) fn request_resource(request: &Request<'_>, resource: &Resource) -> CheckAttributes {
    CheckAttributes {
        group: resource.group_version.group.clone(),
        resource: resource.plural.clone(),
        subresource: request.subresource().to_owned(),
        namespace: namespace_name(request).to_owned(),
        name: request.name.to_owned(),
        ..CheckAttributes::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_the_request_asks_about_other_accounts() {
        let user = |name: &str| User {
            name: name.to_owned(),
            ..User::default()
        };
        let authorizer = RequestAuthorizer {
            authorizer: Arc::new(Authorizer::new(Vec::new())),
            user: user("mallory"),
        };
        let account = user("system:serviceaccount:default:ann");
        for path in [Some("/metrics".to_owned()), None] {
            let check = CheckAttributes {
                path,
                ..CheckAttributes::default()
            };
            let attributes = authorizer.attributes(&account, &check);
            assert_eq!(attributes.user.name, account.name);
            assert_eq!(attributes.asker.name, "mallory");
        }
    }
}
