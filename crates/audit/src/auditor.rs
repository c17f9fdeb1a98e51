//! Decides which requests are recorded, and hands events to the backends.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use ringwatch::budget::{Account, Ledger, Share};
use ringwatch::clock::{Clock, Instant};
use ringwatch_authorization::Attributes;

use crate::backend::Queue;
use crate::event::{Event, ObjectReference};
use crate::level::Level;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::recording::{NotStored, Recording};

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

/// The policy and the queues of the backends.
#[derive(Debug)]
pub struct Auditor {
    /// Decides about each request.
    policy: Policy,
    /// The queues of the backends.
    queues: Vec<Queue>,
    metrics: Metrics,
    /// The memory budget of events.
    ledger: Ledger,
    clock: Clock,
}

/// An event that waits in the queues, with its share of the memory budget.
#[derive(Debug)]
pub(crate) struct HeldEvent {
    /// The event.
    pub(crate) event: Event,
    /// The memory that is counted for it.
    memory: Share,
    /// True if the budget had room for it, so that it may wait in a queue whose length no request bounds.
    pub(crate) may_wait: bool,
}

impl HeldEvent {
    /// Returns about how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.memory.bytes()
    }
}

impl Auditor {
    /// Creates an auditor that sends its events to these queues.
    #[must_use]
    pub fn new(
        policy: Policy,
        queues: Vec<Queue>,
        metrics: Metrics,
        ledger: Ledger,
        clock: Clock,
    ) -> Self {
        Self {
            policy,
            queues,
            metrics,
            ledger,
            clock,
        }
    }

    /// Decides about a request, once; returns `None` if nothing is recorded about it.
    #[must_use]
    pub fn begin(
        self: &Arc<Self>,
        attributes: &Attributes<'_>,
        head: RequestHead<'_>,
    ) -> Option<Arc<Recording>> {
        let terms = self.policy.evaluate(attributes);
        self.metrics.level(terms.level);
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
        let event = Event {
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
            ..Event::default()
        };
        let recording = Recording::new(Arc::clone(self), terms, began, event);
        Some(Arc::new(recording))
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn share(&self) -> Share {
        self.ledger.share(Account::Requests)
    }

    /// Hands an event to all backends, and waits for those that are to have stored it.
    pub(crate) async fn store(&self, event: Event) -> Result<(), NotStored> {
        self.metrics.event();
        let held = self.hold(event);
        let mut stored = Ok(());
        for queue in &self.queues {
            stored = stored.and(queue.store(&held, &self.metrics).await);
        }
        stored
    }

    /// Hands an event to all backends without waiting.
    pub(crate) fn store_now(&self, event: Event) {
        self.metrics.event();
        let held = self.hold(event);
        for queue in &self.queues {
            queue.store_now(&held, &self.metrics);
        }
    }

    /// Counts the memory of an event. One whose bodies have no room in the budget goes on without them.
    fn hold(&self, mut event: Event) -> Arc<HeldEvent> {
        let mut memory = self.share();
        let bodies = event.bytes_of_bodies();
        let mut may_wait = memory.admit(event.bytes_without_bodies() + bodies).is_ok();
        if !may_wait {
            if bodies > 0 {
                event.truncate();
            }
            let bytes = event.bytes_without_bodies();
            may_wait = memory.admit(bytes).is_ok();
            memory.set(bytes);
        }
        Arc::new(HeldEvent {
            event,
            memory,
            may_wait,
        })
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
