//! metav1.Status: how the API says that something went well or wrong.

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
    /// For programs; empty when kube-apiserver gives none.
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
    /// The plural resource, or the kind where validation failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry for each thing that is wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When the client may try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// For programs, such as `FieldValueInvalid`; empty when kube-apiserver gives none.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    /// A message for people.
    pub message: String,
    /// The path of the field; empty when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

impl Status {
    /// A failure with its HTTP code, reason and message.
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

    /// A success about `details`.
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

    /// The same status with details.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(details);
        self
    }
}
