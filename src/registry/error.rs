//! What can go wrong with a request, in the registry's words. The endpoints turn these into HTTP.

use std::collections::HashSet;

use crate::meta::Status;
use crate::storage::StorageError;

/// An error of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such object.
    #[error("{resource} {name:?} not found")]
    NotFound {
        /// The qualified resource, such as `deployments.apps`.
        resource: String,
        /// The object's name.
        name: String,
    },
    /// There is such an object already.
    #[error(
        "{}{resource} {name:?} already exists{}",
        if *.being_deleted { "object is being deleted: " } else { "" },
        if *.generated { ", the server was not able to generate a unique name for the object" } else { "" }
    )]
    AlreadyExists {
        /// The qualified resource.
        resource: String,
        /// The object's name.
        name: String,
        /// Whether the one there is on its way out.
        being_deleted: bool,
        /// Whether the object has a `generateName`: the client may retry after a second.
        generated: bool,
    },
    /// The object is not as the request assumes. Read again and retry.
    #[error("Operation cannot be fulfilled on {resource} {name:?}: {message}")]
    Conflict {
        /// The qualified resource.
        resource: String,
        /// The object's name.
        name: String,
        /// In which way.
        message: String,
    },
    /// Server-side apply would take fields from other managers.
    #[error("Apply failed with {}: {}", conflict_count(.causes.len()), conflict_list(.causes))]
    ApplyConflict {
        /// The message and field of each conflict, those of one manager together.
        causes: Vec<(String, String)>,
    },
    /// The object is not valid.
    #[error("{kind} {name:?} is invalid: {}", FieldError::join(.errors))]
    Invalid {
        /// The qualified kind, such as `Deployment.apps`.
        kind: String,
        /// The object's name.
        name: String,
        /// What is wrong.
        errors: Vec<FieldError>,
    },
    /// The request makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// The user may not do this, or the state of the cluster forbids it.
    #[error("{resource} {name:?} is forbidden: {message}")]
    Forbidden {
        /// The qualified resource.
        resource: String,
        /// The object's name.
        name: String,
        /// Why.
        message: String,
        /// The reason and field of a cause, if there is one.
        cause: Option<(&'static str, String)>,
    },
    /// Not now: something else has to happen first. Retry after a while.
    #[error("{message}")]
    TooManyRequests {
        /// What is not done.
        message: String,
        /// The reason and message of the cause.
        cause: (&'static str, String),
        /// After how long, if that is known.
        retry_after_seconds: Option<u32>,
    },
    /// The object has a shape that takes too much memory or stack, however few its bytes are. Send one with fewer maps or levels.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// Somebody who was asked about the request refuses it in words of their own.
    #[error("{}", .0.message)]
    Denied(Box<Status>),
    /// A configuration has what its type cannot have.
    #[error("{0}")]
    NotTyped(String),
    /// A patch cannot be applied to the object.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable,
    /// The store cannot be reached. Retry after two seconds.
    #[error(
        "The {operation} operation against {resource} could not be completed at this time, please try again."
    )]
    ServerTimeout {
        /// The qualified resource.
        resource: String,
        /// What was asked for, such as `create`; the details call it the name.
        operation: &'static str,
    },
    /// The store's own error.
    #[error(transparent)]
    Storage(StorageError),
    /// A fault of this program.
    #[error("{0}")]
    Internal(String),
}

/// How many bytes of errors are told of an object at most. What else is wrong is not told, but the object is refused all
/// the same.
pub(super) const ERROR_BYTES_MAX: usize = 256 << 10;

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// In which way.
    pub kind: FieldErrorKind,
    /// The path, such as `spec.containers[0].name`.
    pub field: String,
    /// What follows the kind's own words: value and explanation, as [`FieldErrorKind`] says.
    pub detail: String,
}

/// In which way a field is wrong: Kubernetes' `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// `Required value`, then an optional explanation.
    Required,
    /// `Invalid value: VALUE: explanation`.
    Invalid,
    /// The same words, for a value of the wrong type.
    TypeInvalid,
    /// `Unsupported value: VALUE: supported values: ...`.
    NotSupported,
    /// `Forbidden: explanation`.
    Forbidden,
    /// `Duplicate value: VALUE`.
    Duplicate,
    /// `Too long: explanation`.
    TooLong,
    /// `Too many: N: explanation`.
    TooMany,
    /// `Not found: VALUE`.
    NotFound,
    /// `Internal error: explanation`.
    Internal,
}

impl FieldErrorKind {
    /// The cause's reason in a Status.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::NotFound => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::NotFound => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

impl FieldError {
    /// An error without a value.
    #[must_use]
    pub fn new(kind: FieldErrorKind, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            field: field.into(),
            detail: detail.into(),
        }
    }

    /// A required field is missing.
    #[must_use]
    pub fn required(field: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, "")
    }

    /// A value (written as JSON) is invalid, and why.
    #[must_use]
    pub fn invalid(
        field: impl Into<String>,
        value: &serde_json::Value,
        why: impl AsRef<str>,
    ) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            field,
            format!("{value}: {}", why.as_ref()),
        )
    }

    /// A field may not be set or changed.
    #[must_use]
    pub fn forbidden(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, why)
    }

    /// The cause's message: everything but the field.
    #[must_use]
    pub fn message(&self) -> String {
        if self.detail.is_empty() {
            self.kind.words().to_owned()
        } else {
            format!("{}: {}", self.kind.words(), self.detail)
        }
    }

    /// The first of them, as many as are told.
    #[must_use]
    pub(super) fn as_told(mut errors: Vec<Self>) -> Vec<Self> {
        let mut bytes = 0;
        let too_many = errors.iter().position(|error| {
            let has_room = bytes < ERROR_BYTES_MAX;
            bytes += error.field.len() + error.detail.len();
            !has_room
        });
        errors.truncate(too_many.unwrap_or(errors.len()));
        errors
    }

    /// All errors in one line, as kube-apiserver joins them: in brackets if several.
    #[must_use]
    pub fn join(errors: &[Self]) -> String {
        let line = |error: &Self| format!("{}: {}", error.field, error.message());
        let lines: Vec<String> = errors.iter().map(line).collect();
        let mut seen = HashSet::new();
        let lines = lines.iter().map(String::as_str);
        let lines: Vec<&str> = lines.filter(|line| seen.insert(*line)).collect();
        if let [line] = lines[..] {
            return line.to_owned();
        }
        format!("[{}]", lines.join(", "))
    }
}

fn conflict_count(count: usize) -> String {
    if count == 1 {
        "1 conflict".to_owned()
    } else {
        format!("{count} conflicts")
    }
}

/// One conflict in a line; several as a list under each manager, as kube-apiserver has them.
fn conflict_list(causes: &[(String, String)]) -> String {
    if let [(message, field)] = causes {
        return format!("{message}: {field}");
    }
    let mut lines: Vec<String> = Vec::new();
    let mut last = None;
    for (message, field) in causes {
        if last.replace(message) != Some(message) {
            lines.push(format!("{}:", message.replacen("conflict", "conflicts", 1)));
        }
        lines.push(format!("- {field}"));
    }
    lines.join("\n")
}
