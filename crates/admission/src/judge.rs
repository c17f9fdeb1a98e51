//! Answers the permission checks that expressions make by `authorizer`.

use std::sync::Arc;

use ringwatch::meta::{FieldSelector, LabelSelector};
use ringwatch_apimachinery::User;
use ringwatch_authorization::{Attributes, Authorizer};
use ringwatch_cel::{Judge, Question};
use ringwatch_registry::Resource;
use ringwatch_registry::admission::Request;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::match_context::namespace_name;

/// Answers permission checks for the user of a request.
#[derive(Debug)]
pub(super) struct RequestJudge {
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) user: User,
}

impl RequestJudge {
    /// Returns the attributes of a question about a user but for its selectors.
    fn attributes<'a>(&'a self, user: &'a User, question: &'a Question) -> Attributes<'a> {
        let attributes = match &question.path {
            Some(path) => Attributes::of_path(user, &question.verb, path),
            None => Attributes {
                namespace: &question.namespace,
                subresource: &question.subresource,
                name: &question.name,
                ..Attributes::of_resource(user, &question.verb, &question.group, &question.resource)
            },
        };
        // An expression may ask about any account: the calls to webhooks are of the user whose request it is.
        Attributes {
            asker: &self.user,
            ..attributes
        }
    }
}

impl Judge for RequestJudge {
    fn decide(&self, question: &Question) -> (bool, String) {
        let account = question.account.as_ref().map(|(namespace, name)| User {
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
        let fields = FieldSelector::parse(&question.fields).ok();
        let labels = LabelSelector::parse(&question.labels).ok();
        let attributes = Attributes {
            fields: fields.as_ref().filter(|it| !it.is_empty()),
            labels: labels.as_ref().filter(|it| !it.is_empty()),
            ..self.attributes(user, question)
        };
        let decision = match Handle::try_current() {
            // It waits for another server, for as long as a question may take, so this thread's other tasks go on
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
pub(super) fn request_resource(request: &Request<'_>, resource: &Resource) -> Question {
    Question {
        group: resource.group_version.group.clone(),
        resource: resource.plural.clone(),
        subresource: request.subresource().to_owned(),
        namespace: namespace_name(request).to_owned(),
        name: request.name.to_owned(),
        ..Question::default()
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
        let judge = RequestJudge {
            authorizer: Arc::new(Authorizer::new(Vec::new())),
            user: user("mallory"),
        };
        let account = user("system:serviceaccount:default:ann");
        for path in [Some("/metrics".to_owned()), None] {
            let question = Question {
                path,
                ..Question::default()
            };
            let attributes = judge.attributes(&account, &question);
            assert_eq!(attributes.user.name, account.name);
            assert_eq!(attributes.asker.name, "mallory");
        }
    }
}
