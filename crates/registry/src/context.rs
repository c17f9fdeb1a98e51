//! The context of a request: its user, field manager, options and warnings.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use indexmap::IndexSet;
use ringwatch::clock::Clock;
use ringwatch_apimachinery::{Error, User};
use ringwatch_audit::Recording;
use ringwatch_authorization::{Attributes, Authorizer};
use serde_json::Value;

/// Maximum number of warnings that are kept for one request; further ones are dropped, since no answer carries so many.
pub const WARNINGS_MAX: usize = 4096;

/// The context of one request, handed down to admission and strategies.
#[derive(Debug)]
pub struct RequestContext {
    /// The user who makes the request.
    pub user: User,
    /// The name under which fields are managed: `fieldManager`, or the start of the user agent.
    pub field_manager: String,
    /// The verb of the request, as the authorizer knows it; empty for requests of the server itself.
    pub verb: &'static str,
    /// The subresource that is written; empty for the object itself.
    pub subresource: String,
    /// The clock that gives timestamps in objects.
    pub clock: Clock,
    /// The authorizer for further permissions that a write needs; `None` for the server itself, which may do
    /// everything.
    pub authorizer: Option<Arc<Authorizer>>,
    /// The options of the request, such as CreateOptions, as admission sees them; unset for requests of the server
    /// itself.
    pub options: OnceLock<Value>,
    /// The record of the request for the audit log; `None` if nothing is recorded, and for requests of the server
    /// itself.
    pub recording: Option<Arc<Recording>>,
    /// The distinct texts for the Warning headers of the answer, in the order in which they came.
    warnings: Mutex<IndexSet<String>>,
    /// The time that admission webhooks have taken.
    webhook_time: Mutex<Duration>,
}

impl RequestContext {
    /// Makes the context of a request to the object itself, with no authorizer, options or warnings.
    #[must_use]
    pub fn new(user: User, field_manager: String, clock: Clock) -> Self {
        Self {
            user,
            field_manager,
            verb: "",
            subresource: String::new(),
            clock,
            authorizer: None,
            options: OnceLock::new(),
            recording: None,
            warnings: Mutex::default(),
            webhook_time: Mutex::default(),
        }
    }

    /// Makes the context of the server's own writes, with `kube-apiserver` as field manager.
    #[must_use]
    pub fn of_server(clock: &Clock) -> Self {
        Self::new(User::default(), "kube-apiserver".to_owned(), clock.clone())
    }

    /// Makes the context that of a write to a subresource.
    #[must_use]
    pub fn on_subresource(self, subresource: &str) -> Self {
        Self {
            subresource: subresource.to_owned(),
            ..self
        }
    }

    /// Checks that the user may do something that the write needs besides the request itself, such as approving
    /// certificates of a signer.
    ///
    /// # Errors
    /// [`Error::Forbidden`] if the authorizer does not allow it.
    pub async fn check(&self, attributes: &Attributes<'_>) -> Result<(), Error> {
        let Some(authorizer) = &self.authorizer else {
            return Ok(());
        };
        let decision = authorizer.decide(attributes).await;
        if decision.allowed {
            return Ok(());
        }
        let mut resource = attributes.resource.to_owned();
        if !attributes.group.is_empty() {
            resource = format!("{resource}.{}", attributes.group);
        }
        Err(Error::Forbidden {
            resource,
            name: attributes.name.to_owned(),
            message: decision.explain(attributes),
            cause: None,
        })
    }

    /// Adds an annotation to the record of the request, if there is one. The first value of a key stays.
    pub fn annotate<V: Into<String>>(&self, key: impl Into<String>, value: impl FnOnce() -> V) {
        if let Some(recording) = &self.recording {
            recording.annotate(key, value());
        }
    }

    /// Adds a warning for the client, unless it is empty, the same text is there already or 4096 others are.
    pub fn warn(&self, text: impl Into<String>) {
        let text = text.into();
        if text.is_empty() {
            return;
        }
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() < WARNINGS_MAX {
            warnings.insert(text);
        }
    }

    /// Returns the warnings so far, in the order in which they came.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warnings = self.warnings.lock();
        let warnings = warnings.unwrap_or_else(PoisonError::into_inner);
        warnings.iter().cloned().collect()
    }

    /// Adds time that admission webhooks took; of several that were called at once, the longest.
    pub fn webhooks_took(&self, time: Duration) {
        let whole = self.webhook_time.lock();
        *whole.unwrap_or_else(PoisonError::into_inner) += time;
    }

    /// Returns the time that admission webhooks have taken so far.
    #[must_use]
    pub fn webhook_time(&self) -> Duration {
        let whole = self.webhook_time.lock();
        *whole.unwrap_or_else(PoisonError::into_inner)
    }
}
