//! The users as whom controllers write.

use ringwatch::clock::Clock;
use ringwatch_apimachinery::{SERVICE_ACCOUNT_PREFIX, User};
use ringwatch_registry::RequestContext;

/// The namespace of the controllers' accounts.
const NAMESPACE: &str = "kube-system";

/// The name under which the controllers manage fields.
const FIELD_MANAGER: &str = "kube-controller-manager";

/// Returns the context of the writes of a controller, whose service account has this name.
pub(crate) fn context(account: &str, clock: &Clock) -> RequestContext {
    let user = User {
        name: format!("{SERVICE_ACCOUNT_PREFIX}{NAMESPACE}:{account}"),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{NAMESPACE}"),
            "system:authenticated".to_owned(),
        ],
        ..User::default()
    };
    RequestContext::new(user, FIELD_MANAGER.to_owned(), clock.clone())
}
