//! An event: what is known of a request at one of its stages.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use ringwatch_apimachinery::User;
use serde::Serialize;

use crate::body::AuditBody;
use crate::level::{Level, Stage};

/// The memory of an event besides its texts and objects, in bytes: the structs, and the parts that are always there.
const BYTES: u64 = 1 << 10;

/// An event of `audit.k8s.io/v1`, with bodies as they were sent.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent {
    /// The level of the event: the amount of the request that it records.
    pub level: Level,
    /// The audit id, which all events of a request have.
    pub audit_id: String,
    /// The stage.
    pub stage: Stage,
    /// Path and query.
    pub request_uri: String,
    /// The verb, as authorization has it.
    pub verb: String,
    /// The authenticated user; its name is empty for requests without valid credentials.
    pub user: User,
    /// The user that the request was made as, if that is another.
    pub impersonated_user: Option<User>,
    /// The verb of constrained impersonation that allowed it; `None` if another did.
    pub impersonation_constraint: Option<&'static str>,
    /// The addresses that the request came from, the client's first.
    pub source_ips: Vec<IpAddr>,
    /// The client program, cut to a bound.
    pub user_agent: String,
    /// The object of the request; `None` for paths that are not about a resource.
    pub object_ref: Option<ObjectReference>,
    /// The outcome, once there is one.
    pub response: Option<Response>,
    /// The object or patch of the request.
    pub request_object: Option<AuditBody>,
    /// The time at which the request came.
    pub received: Timestamp,
    /// The time of the stage.
    pub at: Timestamp,
    /// Remarks of parts of the server about the request.
    pub annotations: BTreeMap<String, String>,
    /// True if objects are written without managed fields.
    pub omit_managed_fields: bool,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The HTTP status.
    pub code: u16,
    /// The status, reason and message where the server says more than the body does.
    pub status: &'static str,
    /// The reason for programs.
    pub reason: &'static str,
    /// The message for people.
    pub message: String,
    /// The body; if it is a Status, it says the outcome too.
    pub body: Option<AuditBody>,
}

/// The object of a request. Members that are empty are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The plural name of the resource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid in the object of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The API version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The resource version in the object of the request.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// The subresource.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

impl AuditEvent {
    /// Returns about how many bytes of memory it takes without its bodies.
    #[must_use]
    pub fn bytes_without_bodies(&self) -> u64 {
        let user = |user: &User| {
            let extra = user
                .extra
                .iter()
                .flat_map(|(key, values)| values.iter().chain([key]));
            let texts = user
                .groups
                .iter()
                .chain(extra)
                .chain([&user.name, &user.uid]);
            texts
                .map(|it| it.len() + size_of::<String>())
                .sum::<usize>()
        };
        let annotations = self.annotations.iter();
        let annotations: usize = annotations
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let texts = self.request_uri.len() + self.audit_id.len() + self.user_agent.len();
        let message = self.response.as_ref().map_or(0, |it| it.message.len());
        let users = user(&self.user) + self.impersonated_user.as_ref().map_or(0, user);
        BYTES + (annotations + texts + message + users) as u64
    }

    /// Returns how many bytes its bodies have.
    #[must_use]
    pub fn bytes_of_bodies(&self) -> u64 {
        let response = self.response.as_ref().and_then(|it| it.body.as_ref());
        let bodies = self.request_object.iter().chain(response);
        bodies.map(AuditBody::bytes).sum()
    }

    /// Removes the bodies, and says so, as kube-apiserver does with events that are too large.
    pub fn truncate(&mut self) {
        self.request_object = None;
        if let Some(response) = &mut self.response {
            response.body = None;
        }
        self.note_truncation();
    }

    /// Says that a body is missing.
    pub(crate) fn note_truncation(&mut self) {
        self.annotations
            .insert("audit.k8s.io/truncated".to_owned(), "true".to_owned());
    }
}
