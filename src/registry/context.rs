//! Who asks, and on what terms.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use indexmap::IndexSet;
use serde_json::Value;

use super::Error;
use super::authorization::{Attributes, Authorizer};
use crate::clock::Clock;

/// How many warnings are kept: of more, clients are never told, however short they are.
pub(super) const WARNINGS_MAX: usize = 4096;

/// An authenticated user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The uid, if the authenticator knows one.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What else the authenticator says.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The prefix of the names that service accounts have as users.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The namespace and name of the service account that has this name as a user.
#[must_use]
pub fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let whole = !namespace.is_empty() && !name.is_empty() && !name.contains(':');
    whole.then_some((namespace, name))
}

/// The circumstances of one request, handed down to strategies.
#[derive(Debug)]
pub struct RequestContext {
    /// Who asks.
    pub user: User,
    /// The name under which fields are managed: `fieldManager`, or the start of the user agent.
    pub field_manager: String,
    /// The subresource that is written; empty for the object itself.
    pub subresource: String,
    /// The time.
    pub clock: Clock,
    /// What the user may do; `None` for the server itself, which may do everything.
    pub authorizer: Option<Arc<Authorizer>>,
    /// What the client has said about how to write, such as CreateOptions; not for the server itself.
    pub options: OnceLock<Value>,
    /// What the client will be told in Warning headers.
    warnings: Mutex<IndexSet<String>>,
}

impl RequestContext {
    /// The circumstances of a request.
    #[must_use]
    pub fn new(user: User, field_manager: String, clock: Clock) -> Self {
        Self {
            user,
            field_manager,
            subresource: String::new(),
            clock,
            authorizer: None,
            options: OnceLock::new(),
            warnings: Mutex::default(),
        }
    }

    /// Checks that the user may do something, besides what the request itself is.
    ///
    /// # Errors
    /// [`Error::Forbidden`]
    pub async fn check(&self, asked: &Attributes<'_>) -> Result<(), Error> {
        let Some(authorizer) = &self.authorizer else {
            return Ok(());
        };
        let decision = authorizer.decide(asked).await;
        if decision.allowed {
            return Ok(());
        }
        let mut resource = asked.resource.to_owned();
        if !asked.group.is_empty() {
            resource = format!("{resource}.{}", asked.group);
        }
        Err(Error::Forbidden {
            resource,
            name: asked.name.to_owned(),
            message: decision.explain(asked),
            cause: None,
        })
    }

    /// Tells the client something, once.
    pub fn warn(&self, text: impl Into<String>) {
        let mut warnings = self
            .warnings
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            warnings.insert(text.into());
        }
    }

    /// What was told so far.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock();
        let warnings = warnings.unwrap_or_else(std::sync::PoisonError::into_inner);
        warnings.iter().cloned().collect()
    }
}
