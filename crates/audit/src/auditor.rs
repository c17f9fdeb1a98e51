//! Decides which requests are recorded, and begins their records.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use ringwatch::budget::Ledger;
use ringwatch::clock::{Clock, Instant};
use ringwatch_authorization::Attributes;

use crate::backend::EventQueue;
use crate::event::{AuditEvent, ObjectReference};
use crate::level::Level;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::recorder::Recorder;
use crate::recording::Recording;

/// Maximum number of bytes of a client program's name, and the mark of one that was longer.
const USER_AGENT_BYTES_MAX: usize = 1024;
const USER_AGENT_CUT: &str = "...TRUNCATED";

/// The parts of a request that every event has, besides its attributes.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// The audit id.
    pub audit_id: &'a str,
    /// Path and query.
    pub uri: &'a str,
    /// The header User-Agent.
    pub user_agent: &'a str,
    /// The addresses that the request came from.
    pub source_ips: Vec<IpAddr>,
    /// The time at which it came, in monotonic and in wall time.
    pub began: (Instant, Timestamp),
}

/// The policy, and the way to the backends.
#[derive(Debug)]
pub struct Auditor {
    /// Decides about each request.
    policy: Policy,
    recorder: Arc<Recorder>,
}

impl Auditor {
    /// Creates an auditor that sends its events to these queues.
    #[must_use]
    pub fn new(
        policy: Policy,
        queues: Vec<EventQueue>,
        metrics: Metrics,
        ledger: Ledger,
        clock: Clock,
    ) -> Self {
        let recorder = Recorder::new(queues, metrics, ledger, clock);
        Self {
            policy,
            recorder: Arc::new(recorder),
        }
    }

    /// Decides about a request, once; returns `None` if nothing is recorded about it.
    #[must_use]
    pub fn begin(
        &self,
        attributes: &Attributes<'_>,
        head: RequestHead<'_>,
    ) -> Option<Arc<Recording>> {
        let terms = self.policy.evaluate(attributes);
        self.recorder.metrics().level(terms.level);
        if terms.level == Level::None {
            return None;
        }
        let (began, received) = head.began;
        let object_ref = || ObjectReference {
            resource: attributes.resource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
            api_group: attributes.group.to_owned(),
            api_version: attributes.version.to_owned(),
            subresource: attributes.subresource.to_owned(),
            ..ObjectReference::default()
        };
        let event = AuditEvent {
            level: terms.level,
            audit_id: head.audit_id.to_owned(),
            request_uri: head.uri.to_owned(),
            verb: attributes.verb.to_owned(),
            user: attributes.user.clone(),
            source_ips: head.source_ips,
            user_agent: cut(head.user_agent),
            object_ref: attributes.is_resource.then(object_ref),
            received,
            at: received,
            omit_managed_fields: terms.omit_managed_fields,
            ..AuditEvent::default()
        };
        let recording = Recording::new(Arc::clone(&self.recorder), terms, began, event);
        Some(Arc::new(recording))
    }
}

/// Returns a client program's name, cut to the bound.
fn cut(user_agent: &str) -> String {
    if user_agent.len() <= USER_AGENT_BYTES_MAX {
        return user_agent.to_owned();
    }
    let mut end = USER_AGENT_BYTES_MAX;
    while !user_agent.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{USER_AGENT_CUT}", &user_agent[..end])
}
