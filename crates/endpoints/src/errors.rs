//! Translates errors into HTTP statuses and messages; no other module does.
//!
//! The hard part is that kube-apiserver is not uniform: the same cause is reported in different ways depending on the
//! verb, and some errors are 500s without a reason because it does not translate them. Clients depend on all of that,
//! so it is reproduced.

mod forwarded;
mod handshake;
mod invalid_version;
mod media_types;
mod missing_parts;
mod refusal;

pub use refusal::TextError;
pub use refusal::{NOT_ACCEPTABLE, Refusal, preflight};
pub(crate) use refusal::{PRECONDITION_FAILED, REDIRECTED};

use ringwatch::meta::{Cause, ParseError, Status, StatusDetails};
use ringwatch::storage::{CORRUPT_KEYS_MAX, StorageError, corrupt_object};
use ringwatch_apimachinery::{Error, FieldError, PolicyDenial, PolicyKind};
use ringwatch_authorization::Attributes;
use ringwatch_registry::{Resource, Verb};

/// The verbs that read all objects of a collection.
const COLLECTION_VERBS: [Verb; 3] = [Verb::List, Verb::Watch, Verb::DeleteCollection];

/// Retry-After when the store could not be reached, in seconds.
const UNREACHABLE_RETRY_AFTER_SECONDS: u32 = 2;

/// Retry-After when no free generated name was found, in seconds.
const GENERATED_NAME_RETRY_AFTER_SECONDS: u32 = 1;

/// Retry-After when there is no memory for a list or watch, in seconds: long enough that the retries of thousands of
/// clients cost little.
const MEMORY_RETRY_AFTER_SECONDS: u32 = 5;

/// The Status with which a failed request is answered.
#[derive(Debug)]
pub(crate) struct Failure(Box<Status>);

/// The object that a failed request was about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// The resource that the request is about.
    pub(crate) resource: &'a Resource,
    /// The object's name; empty for collections.
    pub(crate) name: &'a str,
    /// The verb that failed, on which the status and the message depend.
    pub(crate) verb: Verb,
}

impl Failure {
    /// Returns the HTTP status; 500 if the Status has none.
    pub(crate) fn code(&self) -> http::StatusCode {
        let code = self.0.code.unwrap_or(500);
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Returns the failure that a Status tells.
    pub(crate) fn of_status(status: Status) -> Self {
        Self(Box::new(status))
    }

    /// Returns true if the request is told to be bad.
    pub(crate) fn is_bad_request(&self) -> bool {
        self.code() == http::StatusCode::BAD_REQUEST
    }

    /// Returns the retry delay in seconds, if the failure has one.
    pub(crate) fn retry_after_seconds(&self) -> Option<u32> {
        self.0.details.as_ref()?.retry_after_seconds
    }

    /// Returns the Status that the client gets.
    pub(crate) fn status(&self) -> &Status {
        &self.0
    }

    /// Returns the 400 for a malformed request.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(400, "BadRequest", message)))
    }

    /// Returns the 500 for what is wrong with the fields of an object where kube-apiserver does not call it invalid.
    pub(crate) fn wrong_fields(errors: &[FieldError]) -> Self {
        unknown(FieldError::join(errors))
    }

    /// Returns the 403 for a user who may not do this, as the message says.
    pub(crate) fn forbidden(attributes: &Attributes<'_>, message: &str) -> Self {
        let (name, resource) = (attributes.name, attributes.resource);
        let message = if !attributes.is_resource {
            format!("forbidden: {message}")
        } else {
            let dot = if attributes.group.is_empty() { "" } else { "." };
            let qualified = format!("{resource}{dot}{}", attributes.group);
            if name.is_empty() {
                format!("{qualified} is forbidden: {message}")
            } else {
                format!("{qualified} {name:?} is forbidden: {message}")
            }
        };
        let details = StatusDetails {
            name: name.to_owned(),
            group: attributes.group.to_owned(),
            kind: resource.to_owned(),
            ..StatusDetails::default()
        };
        let status = Status::failure(403, "Forbidden", message);
        Self(Box::new(status.with_details(details)))
    }

    /// Returns the 405 for a method that the path does not know.
    pub(crate) fn method_not_allowed() -> Self {
        Self::plain(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// Returns the 404 for a resource that is not served.
    pub(crate) fn no_such_resource() -> Self {
        Self::plain(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    /// Returns the 413 for a body that is too large.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self(Box::new(Status::failure(
            413,
            "RequestEntityTooLarge",
            message,
        )))
    }

    /// Returns the 429 when there is no memory for another list or watch.
    pub(crate) fn out_of_memory() -> Self {
        let message = "the server is short of memory and begins no lists and watches now, please try \
                       again later";
        Self::plain(429, "TooManyRequests", message).retry_after(Some(MEMORY_RETRY_AFTER_SECONDS))
    }

    /// Returns the 500 for a shard selector that cannot be read: kube-apiserver's stores read it, whose errors are not
    /// translated.
    pub(crate) fn invalid_shard_selector(error: &ParseError) -> Self {
        unknown(format!("invalid shard selector: {error}"))
    }

    /// Returns the 500 for an internal error.
    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        internal(&message.to_string())
    }

    /// Returns the 422 for parameters of an object's subresource that are not valid.
    pub(crate) fn invalid_parameters(kind: &str, name: &str, errors: Vec<FieldError>) -> Self {
        invalid(&Error::Invalid {
            kind: kind.to_owned(),
            name: name.to_owned(),
            errors,
        })
    }

    /// Parameters of the group `meta.k8s.io` are not valid.
    pub(crate) fn invalid_options(kind: &str, errors: Vec<FieldError>) -> Self {
        invalid(&Error::Invalid {
            kind: format!("{kind}.meta.k8s.io"),
            name: String::new(),
            errors,
        })
    }

    /// Translates an error of the registry.
    pub(crate) fn from_error(error: &Error, about: About<'_>) -> Self {
        let message = error.to_string();
        match error {
            Error::NotFound { resource, name } => named(404, "NotFound", message, resource, name),
            Error::AlreadyExists {
                resource,
                name,
                generated,
                ..
            } => {
                let failure = named(409, "AlreadyExists", message, resource, name);
                let retry = generated.then_some(GENERATED_NAME_RETRY_AFTER_SECONDS);
                failure.retry_after(retry)
            }
            Error::Conflict { resource, name, .. } => {
                named(409, "Conflict", message, resource, name)
            }
            Error::ApplyConflict { causes } => apply_conflict(message, causes),
            Error::Invalid { kind, .. } => {
                let mut failure = invalid(error);
                let group = &about.resource.group_version.group;
                let named = kind.strip_suffix(group).and_then(|it| it.strip_suffix('.'));
                if let (Some(kind), Some(details)) = (named, &mut failure.0.details) {
                    // The kind that a custom resource says it has may have dots.
                    details.kind = kind.to_owned();
                    details.group.clone_from(group);
                }
                failure
            }
            Error::BadRequest(message) => Self::bad_request(message),
            Error::Forbidden {
                resource,
                name,
                cause,
                ..
            } => {
                let mut failure = named(403, "Forbidden", message, resource, name);
                if let (Some((reason, field)), Some(details)) = (cause, &mut failure.0.details) {
                    details.causes.push(forbidden_cause(error, reason, field));
                }
                failure
            }
            Error::TooManyRequests {
                cause,
                retry_after_seconds,
                ..
            } => too_many(message, cause, *retry_after_seconds),
            Error::TooLarge(_) => Self::too_large(message),
            Error::Denied(status) => Self(status.clone()),
            Error::DeniedByPolicy(denial) => denied(denial),
            Error::Untranslated(_) => unknown(message),
            Error::Unprocessable => Self::plain(422, "Invalid", message),
            Error::ServerTimeout {
                resource,
                operation,
            } => unreachable(message, resource, operation),
            Error::Internal(message) => internal(message),
            Error::Storage(error) => Self::from_storage_error(error, about),
        }
    }

    /// Translates an error of the store.
    pub(crate) fn from_storage_error(error: &StorageError, about: About<'_>) -> Self {
        let message = error.to_string();
        let resource = about.resource.qualified_name();
        match error {
            StorageError::KeyNotFound { .. } => {
                let message = format!("{resource} {:?} not found", about.name);
                named(404, "NotFound", message, &resource, about.name)
            }
            StorageError::KeyExists { .. } if about.verb == Verb::Create => {
                let message = format!("{resource} {:?} already exists", about.name);
                named(409, "AlreadyExists", message, &resource, about.name)
            }
            StorageError::KeyExists { .. }
            | StorageError::Conflict { .. }
            | StorageError::InvalidObject { .. } => {
                let message = format!(
                    "Operation cannot be fulfilled on {resource} {:?}: {message}",
                    about.name
                );
                named(409, "Conflict", message, &resource, about.name)
            }
            StorageError::TooLargeResourceVersion {
                retry_after_seconds,
                ..
            } => too_fresh(&message, *retry_after_seconds),
            StorageError::TooOld { .. }
            | StorageError::WatchExpired
            | StorageError::ListExpired => Self(Box::new(Status::failure(410, "Expired", message))),
            StorageError::ContinueExpired { token } => {
                let mut status = Status::failure(410, "Expired", message);
                status.metadata.continue_token = Some(token.clone());
                Self(Box::new(status))
            }
            StorageError::InvalidContinue(_) | StorageError::ContinueWithVersion => {
                Self::bad_request(message)
            }
            StorageError::NotReady {
                retry_after_seconds,
                ..
            } => {
                Self::plain(429, "TooManyRequests", message).retry_after(Some(*retry_after_seconds))
            }
            StorageError::OutOfMemory(_) => Self::out_of_memory(),
            StorageError::Unreachable { .. } => store_unreachable(&resource, about.verb),
            StorageError::Timeout { .. } if about.verb == Verb::List => {
                store_unreachable(&resource, about.verb)
            }
            StorageError::Corrupt { keys } if COLLECTION_VERBS.contains(&about.verb) => {
                corrupt_list(&resource, keys)
            }
            StorageError::Corrupt { .. } => internal(&message),
            StorageError::Internal { message } => internal(message),
            StorageError::Rejected(rejection) => match rejection.downcast_ref::<Error>() {
                Some(error) => Self::from_error(error, about),
                None => unknown(message),
            },
            StorageError::Shared(error) => Self::from_storage_error(error, about),
            StorageError::VersionOnCreate
            | StorageError::InvalidKey(_)
            | StorageError::InvalidResourceVersion(_)
            | StorageError::Timeout { .. }
            | StorageError::NoSpace { .. }
            | StorageError::TooLarge { .. } => unknown(message),
        }
    }

    /// Sets the retry delay in seconds.
    fn retry_after(mut self, seconds: Option<u32>) -> Self {
        if let Some(details) = &mut self.0.details {
            details.retry_after_seconds = seconds.filter(|seconds| *seconds > 0);
        }
        self
    }

    /// Returns a failure with empty details.
    fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let status = Status::failure(code, reason, message);
        Self(Box::new(status.with_details(StatusDetails::default())))
    }
}

/// Returns a failure about an object, its resource given as `deployments.apps`.
fn named(code: u16, reason: &'static str, message: String, resource: &str, name: &str) -> Failure {
    let (kind, group) = resource.split_once('.').unwrap_or((resource, ""));
    Failure(Box::new(
        Status::failure(code, reason, message).with_details(StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..StatusDetails::default()
        }),
    ))
}

/// Returns the refusal of an admission policy. For mutating policies the status is 403, whatever the reason is.
fn denied(denial: &PolicyDenial) -> Failure {
    let code = match (denial.kind, denial.reason.as_ref()) {
        (PolicyKind::Mutating, _) | (PolicyKind::Validating, "Forbidden") => 403,
        (PolicyKind::Validating, "Unauthorized") => 401,
        (PolicyKind::Validating, "RequestEntityTooLarge") => 413,
        (PolicyKind::Validating, _) => 422,
    };
    let cause = |message: &String| Cause {
        reason: "".into(),
        message: message.clone(),
        field: String::new(),
    };
    let details = StatusDetails {
        name: denial.name.clone(),
        group: denial.group.clone(),
        kind: denial.resource.clone(),
        causes: denial.causes.iter().map(cause).collect(),
        ..StatusDetails::default()
    };
    let status = Status::failure(code, denial.reason.clone(), denial.message.clone());
    Failure(Box::new(status.with_details(details)))
}

/// Returns the failure for an error that kube-apiserver does not translate.
fn unknown(message: String) -> Failure {
    Failure(Box::new(Status::failure(500, "", message)))
}

fn internal(message: &str) -> Failure {
    let text = format!("Internal error occurred: {message}");
    let details = StatusDetails {
        causes: vec![Cause {
            reason: "".into(),
            message: message.to_owned(),
            field: String::new(),
        }],
        ..StatusDetails::default()
    };
    Failure(Box::new(
        Status::failure(500, "InternalError", text).with_details(details),
    ))
}

fn invalid(error: &Error) -> Failure {
    let Error::Invalid { kind, name, errors } = error else {
        return internal(&error.to_string());
    };
    let mut failure = named(422, "Invalid", error.to_string(), kind, name);
    if let Some(details) = &mut failure.0.details {
        details.causes = errors
            .iter()
            .map(|error| Cause {
                reason: error.kind.reason().into(),
                message: error.message(),
                field: error.field.clone(),
            })
            .collect();
    }
    failure
}

fn too_many(message: String, cause: &(&'static str, String), retry_after: Option<u32>) -> Failure {
    let mut failure = Failure::plain(429, "TooManyRequests", message).retry_after(retry_after);
    if let Some(details) = &mut failure.0.details {
        details.causes.push(Cause {
            reason: cause.0.into(),
            message: cause.1.clone(),
            field: String::new(),
        });
    }
    failure
}

fn apply_conflict(message: String, causes: &[(String, String)]) -> Failure {
    let causes = causes
        .iter()
        .map(|(message, field)| Cause {
            reason: "FieldManagerConflict".into(),
            message: message.clone(),
            field: field.clone(),
        })
        .collect();
    let details = StatusDetails {
        causes,
        ..StatusDetails::default()
    };
    Failure(Box::new(
        Status::failure(409, "Conflict", message).with_details(details),
    ))
}

/// Returns the cause of a refusal: what follows `because` names the namespace itself.
fn forbidden_cause(error: &Error, reason: &'static str, field: &str) -> Cause {
    let message = match error {
        Error::Forbidden { message, .. } => message
            .strip_prefix("unable to create new content in ")
            .and_then(|rest| rest.split_once(" because it "))
            .map_or_else(|| message.clone(), |(what, why)| format!("{what} {why}")),
        other => other.to_string(),
    };
    Cause {
        reason: reason.into(),
        message,
        field: field.to_owned(),
    }
}

fn too_fresh(message: &str, retry_after_seconds: u32) -> Failure {
    let details = StatusDetails {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after_seconds: Some(retry_after_seconds).filter(|seconds| *seconds > 0),
        ..StatusDetails::default()
    };
    let text = format!("Timeout: {message}");
    Failure(Box::new(
        Status::failure(504, "Timeout", text).with_details(details),
    ))
}

fn store_unreachable(resource: &str, verb: Verb) -> Failure {
    let verb = verb.name();
    let message = format!(
        "The {verb} operation against {resource} could not be completed at this time, please try \
         again."
    );
    unreachable(message, resource, verb)
}

fn unreachable(message: String, resource: &str, operation: &str) -> Failure {
    named(500, "ServerTimeout", message, resource, operation)
        .retry_after(Some(UNREACHABLE_RETRY_AFTER_SECONDS))
}

/// Returns the failure of a list with objects that cannot be read; an administrator must repair or delete each of them.
fn corrupt_list(resource: &str, keys: &[(String, String)]) -> Failure {
    let shown = keys.iter().take(CORRUPT_KEYS_MAX);
    let cause = |(key, why): &(String, String)| Cause {
        reason: "UnexpectedServerResponse".into(),
        message: corrupt_object(key, why),
        field: key.clone(),
    };
    let more = (keys.len() > CORRUPT_KEYS_MAX).then(|| Cause {
        reason: "FieldValueTooMany".into(),
        message: "too many errors, the list is truncated".to_owned(),
        field: String::new(),
    });
    let message = format!("failed to read one or more {resource} from the storage");
    let mut failure = named(500, "StorageReadError", message, resource, "list");
    if let Some(details) = &mut failure.0.details {
        details.causes = shown.map(cause).chain(more).collect();
    }
    failure
}
