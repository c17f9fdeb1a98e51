//! Errors of requests to the registry. The endpoints turn these into HTTP statuses and Status objects.

use std::borrow::Cow;
use std::collections::HashSet;

use ringwatch::meta::Status;
use ringwatch::storage::{ObjectError, StorageError};

use crate::go_text;

/// The refusal of a request by an admission policy.
#[derive(Clone, Debug)]
pub struct PolicyDenial {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The reason of the Status, as the policy gives it.
    pub reason: Cow<'static, str>,
    /// The message of the Status.
    pub message: String,
    /// The group of the resource.
    pub group: String,
    /// The plural of the resource.
    pub resource: String,
    /// The name of the object.
    pub name: String,
    /// The messages of all expressions that refuse it.
    pub causes: Vec<String>,
}

/// The kind of an admission policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// A ValidatingAdmissionPolicy, which refuses a write by its validations.
    Validating,
    /// A MutatingAdmissionPolicy, which changes objects, and refuses them if it cannot.
    Mutating,
}

/// An error of a request to the registry. Each variant corresponds to a reason of a Status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object does not exist.
    #[error("{resource} {name:?} not found")]
    NotFound {
        /// The qualified resource, such as `deployments.apps`.
        resource: String,
        /// The name of the object, as in the request.
        name: String,
    },
    /// An object of this name exists already.
    #[error(
        "{}{resource} {name:?} already exists{}",
        if *.being_deleted { "object is being deleted: " } else { "" },
        if *.generated { ", the server was not able to generate a unique name for the object" } else { "" }
    )]
    AlreadyExists {
        /// The resource with its group, such as `deployments.apps`.
        resource: String,
        /// The name of the object, as in the request.
        name: String,
        /// True if the existing object is being deleted.
        being_deleted: bool,
        /// True if the object has a `generateName`: the client may retry after a second.
        generated: bool,
    },
    /// The object is not as the request assumes. Read again and retry.
    #[error("Operation cannot be fulfilled on {resource} {name:?}: {message}")]
    Conflict {
        /// The resource with its group, such as `deployments.apps`.
        resource: String,
        /// The name of the object, as in the request.
        name: String,
        /// The explanation, such as that the object has been modified.
        message: String,
    },
    /// Server-side apply would take fields from other managers.
    #[error("Apply failed with {}: {}", conflict_count(.causes.len()), conflict_list(.causes))]
    ApplyConflict {
        /// The message and field of each conflict, those of one manager together.
        causes: Vec<(String, String)>,
    },
    /// The object is not valid; the client corrects the fields that the errors name.
    #[error("{kind} {name:?} is invalid: {}", FieldError::join(.errors))]
    Invalid {
        /// The qualified kind, such as `Deployment.apps`.
        kind: String,
        /// The name of the object, as in the request.
        name: String,
        /// The errors of the object's fields.
        errors: Vec<FieldError>,
    },
    /// The request is malformed or contradicts itself.
    #[error("{0}")]
    BadRequest(String),
    /// The user may not do this, or the state of the cluster forbids it.
    #[error(
        "{resource}{} is forbidden: {message}",
        if .name.is_empty() { String::new() } else { format!(" {name:?}") }
    )]
    Forbidden {
        /// The resource with its group, such as `deployments.apps`.
        resource: String,
        /// The name of the object, as in the request.
        name: String,
        /// The explanation that the client gets.
        message: String,
        /// The reason and field of a cause, if there is one.
        cause: Option<(&'static str, String)>,
    },
    /// The request cannot be served now, since something else has to happen first. Retry after a while.
    #[error("{message}")]
    TooManyRequests {
        /// The explanation that the client gets, such as that an eviction is not allowed now.
        message: String,
        /// The reason and message of the cause.
        cause: (&'static str, String),
        /// The seconds for the Retry-After header, if a time is known.
        retry_after_seconds: Option<u32>,
    },
    /// The object has a shape that takes too much memory or stack, however few its bytes are. Send one with fewer maps
    /// or levels.
    #[error("Request entity too large: {0}")]
    TooLarge(String),
    /// An admission policy or webhook refuses the request with a Status of its own.
    #[error("{}", .0.message)]
    Denied(Box<Status>),
    /// An admission policy refuses the request.
    #[error("{}", .0.message)]
    DeniedByPolicy(Box<PolicyDenial>),
    /// The words of an error that Kubernetes does not translate into a Status of its own, such as that an applied or a
    /// patched object does not fit its type. It is answered as a failure of the server, without a reason.
    #[error("{0}")]
    Untranslated(String),
    /// A patch cannot be applied to the object.
    #[error("the server rejected our request due to an error in our request")]
    Unprocessable,
    /// The store cannot be reached. Retry after two seconds.
    #[error(
        "The {operation} operation against {resource} could not be completed at this time, please try again."
    )]
    ServerTimeout {
        /// The resource with its group, such as `deployments.apps`.
        resource: String,
        /// The operation that failed, such as `create`. It takes the place of the name in the Status details.
        operation: &'static str,
    },
    /// An error of the storage for which there is no variant here.
    #[error(transparent)]
    Storage(StorageError),
    /// A failure inside the server.
    #[error("{0}")]
    Internal(String),
}

impl Error {
    /// Makes the error of an object that does not exist.
    #[must_use]
    pub fn not_found(resource: impl Into<String>, name: impl Into<String>) -> Self {
        Self::NotFound {
            resource: resource.into(),
            name: name.into(),
        }
    }
}

impl From<ObjectError> for Error {
    /// Makes the error of a stored object that cannot be read.
    fn from(error: ObjectError) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Bytes of field paths and details after which no further error of an object is reported. The object is refused all
/// the same.
pub const ERROR_BYTES_MAX: usize = 256 << 10;

/// A validation error of one field: Kubernetes' `field.Error`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// The type of the error, which decides the words in front of the detail.
    pub kind: FieldErrorKind,
    /// The path of the field, such as `spec.containers[0].name`.
    pub field: String,
    /// The text after the kind's own words: value and explanation, as [`FieldErrorKind`] says.
    pub detail: String,
    /// The name of the rule that is broken, if objects may have been stored before there was it: an update is not
    /// refused for breaking a rule that the stored object breaks as well.
    pub later_rule: Option<&'static str>,
}

/// The type of a validation error: Kubernetes' `field.ErrorType`. The variants are shown as their messages begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// `Required value`, then an optional explanation.
    Required,
    /// A malformed value, shown as `Invalid value: VALUE: explanation`.
    Invalid,
    /// `Invalid value: VALUE: explanation`, for a value of the wrong type.
    TypeInvalid,
    /// `Unsupported value: VALUE: supported values: ...`.
    NotSupported,
    /// A value that may not be set, shown as `Forbidden: explanation`.
    Forbidden,
    /// A value that occurs twice in a list, shown as `Duplicate value: VALUE`.
    Duplicate,
    /// A text or value of too many bytes, shown as `Too long: explanation`.
    TooLong,
    /// A list or map of too many elements, shown as `Too many: N: explanation`.
    TooMany,
    /// A reference to something that does not exist, shown as `Not found: VALUE`.
    NotFound,
    /// A check that could not be made, shown as `Internal error: explanation`.
    Internal,
}

impl FieldErrorKind {
    /// Returns the reason that a cause of this kind has in a Status.
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
    /// Makes an error from its parts; `detail` has to contain the value where the kind's message shows one.
    #[must_use]
    pub fn new(kind: FieldErrorKind, field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            field: field.into(),
            detail: detail.into(),
            later_rule: None,
        }
    }

    /// Says that the broken rule came after objects may have been stored, by its name.
    #[must_use]
    pub fn by_later_rule(mut self, rule: &'static str) -> Self {
        self.later_rule = Some(rule);
        self
    }

    /// Makes the error of a required field that is missing.
    #[must_use]
    pub fn required(field: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, "")
    }

    /// Makes the error of an invalid value, which is shown as [`go_text::bad_value`] writes it, with an explanation.
    #[must_use]
    pub fn invalid(
        field: impl Into<String>,
        value: &serde_json::Value,
        why: impl AsRef<str>,
    ) -> Self {
        Self::new(
            FieldErrorKind::Invalid,
            field,
            format!("{}: {}", go_text::bad_value(value), why.as_ref()),
        )
    }

    /// Makes the error of a field that may not be set or changed, with an explanation.
    #[must_use]
    pub fn forbidden(field: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, why)
    }

    /// Returns the message of a Status cause: the kind's words and the detail, without the field's path.
    #[must_use]
    pub fn message(&self) -> String {
        if self.detail.is_empty() {
            self.kind.words().to_owned()
        } else {
            format!("{}: {}", self.kind.words(), self.detail)
        }
    }

    /// Returns the errors that are reported: all until their paths and details reach [`ERROR_BYTES_MAX`].
    #[must_use]
    pub fn as_told(mut errors: Vec<Self>) -> Vec<Self> {
        let mut bytes = 0;
        let too_many = errors.iter().position(|error| {
            let has_room = bytes < ERROR_BYTES_MAX;
            bytes += error.field.len() + error.detail.len();
            !has_room
        });
        errors.truncate(too_many.unwrap_or(errors.len()));
        errors
    }

    /// Joins distinct errors in one line, as kube-apiserver does: in brackets if there are several.
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

/// Formats one conflict in a line, and several as a list under each manager, as kube-apiserver does.
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
