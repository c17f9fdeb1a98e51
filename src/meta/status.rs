//! metav1.Status: the result of a request that is not an object.

use std::borrow::Cow;

use serde::Serialize;

/// The body of every answer that is not an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Always `Status`.
    pub kind: &'static str,
    /// Always `v1`.
    pub api_version: &'static str,
    /// Always empty here; kept because clients expect the field.
    pub metadata: StatusMeta,
    /// `Success` or `Failure`.
    pub status: &'static str,
    /// A message for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The reason for programs; empty when kube-apiserver gives none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// The object of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status; absent on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
}

/// The list metadata of a [`Status`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusMeta {
    /// The continue token with which an expired list can go on inconsistently.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub continue_token: Option<String>,
}

/// The object that a [`Status`] is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusDetails {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural resource, or the kind if validation failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry for each error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// The retry delay in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One of several errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The reason for programs, such as `FieldValueInvalid`; empty when kube-apiserver gives none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// A message for people.
    pub message: String,
    /// The path of the field; empty when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// Creates a failure with its HTTP code, reason and message.
    #[must_use]
    pub fn failure(
        code: u16,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: StatusMeta::default(),
            status: "Failure",
            message: message.into(),
            reason: reason.into(),
            details: None,
            code: Some(code),
        }
    }

    /// Creates a success about `details`.
    #[must_use]
    pub fn success(details: StatusDetails) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: StatusMeta::default(),
            status: "Success",
            message: String::new(),
            reason: Cow::Borrowed(""),
            details: Some(details),
            code: None,
        }
    }

    /// Returns the status with details.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(details);
        self
    }
}
