//! The record of one request, from the time it comes until its response is sent.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use ringwatch::budget::Share;
use ringwatch::clock::Instant;
use ringwatch::meta::json_text;
use ringwatch_apimachinery::{User, go_text};
use serde_json::Value;

use crate::body::{AuditBody, Encoding};
use crate::event::{AuditEvent, Response};
use crate::held_event::NotStored;
use crate::level::{Level, Stage};
use crate::policy::AuditDecision;
use crate::recorder::Recorder;

/// The time after which a request is slow, so that its events tell how long its parts took.
const SLOW: Duration = Duration::from_millis(500);
/// Maximum number of annotations of an event, and bytes of one; further ones are left out.
const ANNOTATIONS_MAX: usize = 256;
const ANNOTATION_BYTES_MAX: usize = 1 << 20;

/// The record of one request. Parts of the server add to it while the request is served; the filter records the stages.
#[derive(Debug)]
pub struct Recording {
    recorder: Arc<Recorder>,
    terms: AuditDecision,
    began: Instant,
    state: Mutex<RecordingState>,
}

#[derive(Debug)]
struct RecordingState {
    event: AuditEvent,
    /// The memory of the bodies.
    memory: Share,
    /// True if a body was left out for want of memory.
    lacks_body: bool,
    /// The times that parts of the request took, under the names of their annotations.
    latencies: Vec<(&'static str, Duration)>,
    /// True if the last event has been recorded.
    is_complete: bool,
}

impl Recording {
    pub(crate) fn new(
        recorder: Arc<Recorder>,
        terms: AuditDecision,
        began: Instant,
        event: AuditEvent,
    ) -> Self {
        let memory = recorder.share();
        Self {
            recorder,
            terms,
            began,
            state: Mutex::new(RecordingState {
                event,
                memory,
                lacks_body: false,
                latencies: Vec::new(),
                is_complete: false,
            }),
        }
    }

    /// Returns how much is recorded.
    #[must_use]
    pub fn level(&self) -> Level {
        self.terms.level
    }

    /// Adds an annotation. The first value of a key stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let annotations = &mut self.state().event.annotations;
        if annotations.len() < ANNOTATIONS_MAX && value.len() <= ANNOTATION_BYTES_MAX {
            annotations.entry(key).or_insert(value);
        }
    }

    /// Notes how long a part of the request took, such as `authorization`. Only slow requests tell it.
    pub fn took(&self, part: &'static str, time: Duration) {
        self.state().latencies.push((part, time));
    }

    /// Notes the user that the request is made as, and the verb of constrained impersonation that allowed it.
    pub fn impersonated(&self, user: &User, constraint: Option<&'static str>) {
        let event = &mut self.state().event;
        event.impersonated_user = Some(user.clone());
        event.impersonation_constraint = constraint;
    }

    /// Notes the object of a request, which completes the reference to the object.
    pub fn request_object(&self, object: &Value) {
        let metadata = &object["metadata"];
        let fill = |member: &mut String, name: &str| {
            if member.is_empty() {
                metadata[name]
                    .as_str()
                    .unwrap_or_default()
                    .clone_into(member);
            }
        };
        let mut state = self.state();
        if let Some(reference) = &mut state.event.object_ref {
            fill(&mut reference.namespace, "namespace");
            fill(&mut reference.name, "name");
            fill(&mut reference.uid, "uid");
            fill(&mut reference.resource_version, "resourceVersion");
        }
        drop(state);
        if self.level() >= Level::Request {
            let json = json_text(object);
            self.request_body(AuditBody::whole(Encoding::Json, json.into()));
        }
    }

    /// Notes the patch of a request, as the client wrote it.
    pub fn request_patch(&self, patch: &Bytes) {
        if self.level() >= Level::Request {
            self.request_body(AuditBody::whole(Encoding::Yaml, patch.clone()));
        }
    }

    fn request_body(&self, body: AuditBody) {
        if self.admit(body.bytes()) {
            self.state().event.request_object = Some(body);
        }
    }

    /// Admits more bytes of a body to the memory budget. If it returns false, the body is not recorded, and the event
    /// says so.
    #[must_use]
    pub fn admit(&self, bytes: u64) -> bool {
        let mut state = self.state();
        let admitted = state.memory.admit(bytes).is_ok();
        state.lacks_body |= !admitted;
        admitted
    }

    /// Records that the request has come.
    ///
    /// # Errors
    /// [`NotStored`] if the request must not be served.
    pub async fn received(&self) -> Result<(), NotStored> {
        let stored = self.record(Stage::RequestReceived).await;
        if stored.is_err() {
            self.recorder.metrics().rejected();
            // Nothing else is recorded about it.
            self.state().is_complete = true;
        }
        stored
    }

    /// Records that the response begins, of a request that may take any time.
    pub async fn started(&self, response: Response) {
        self.state().event.response = Some(response);
        // Only the first stage can still refuse the request.
        let _ = self.record(Stage::ResponseStarted).await;
    }

    /// Records the failed authentication of a request, which is its only event.
    pub async fn refused(&self, response: Response) {
        self.started(response).await;
        self.state().is_complete = true;
    }

    /// Records that the handler panicked.
    pub async fn panicked(&self, why: &str) {
        let response = Response {
            code: 500,
            status: "Failure",
            reason: "InternalError",
            message: format!("APIServer panic'd: {why}"),
            body: None,
        };
        self.end(response);
        let _ = self.record(Stage::Panic).await;
    }

    /// Records that the response is sent, and waits until that is stored if a backend demands it.
    pub async fn complete(&self, response: Response) {
        if self.end(response) {
            let _ = self.record(Stage::ResponseComplete).await;
        }
    }

    /// Records that the response is sent or given up, without waiting. Where a backend has no room the event is lost,
    /// and counted. Without a response the request ended before there was one.
    pub fn complete_now(&self, response: Option<Response>) {
        let early = || Response {
            code: 200,
            status: "Success",
            message: "Connection closed early".to_owned(),
            ..Response::default()
        };
        if self.end(response.unwrap_or_else(early))
            && let Some(event) = self.event(Stage::ResponseComplete)
        {
            self.recorder.store_now(event);
        }
    }

    /// Notes the outcome; returns false if the last event has been recorded before.
    fn end(&self, response: Response) -> bool {
        let took = self.recorder.clock().now().duration_since(self.began);
        let mut state = self.state();
        if std::mem::replace(&mut state.is_complete, true) {
            return false;
        }
        state.event.response = Some(response);
        if took > SLOW && !state.latencies.is_empty() {
            let mut latencies = std::mem::take(&mut state.latencies);
            latencies.push(("total", took));
            for (part, time) in latencies {
                let key = format!("apiserver.latency.k8s.io/{part}");
                state
                    .event
                    .annotations
                    .entry(key)
                    .or_insert_with(|| go_text::duration(time));
            }
        }
        true
    }

    async fn record(&self, stage: Stage) -> Result<(), NotStored> {
        match self.event(stage) {
            Some(event) => self.recorder.store(event).await,
            None => Ok(()),
        }
    }

    /// Returns the event of a stage; `None` if the policy omits it.
    fn event(&self, stage: Stage) -> Option<AuditEvent> {
        if self.terms.omit_stages.contains(stage) {
            return None;
        }
        let mut state = self.state();
        state.event.stage = stage;
        state.event.at = match stage {
            Stage::RequestReceived => state.event.received,
            _ => self.recorder.clock().wall(),
        };
        let mut event = state.event.clone();
        if state.lacks_body {
            event.note_truncation();
        }
        Some(event)
    }

    fn state(&self) -> MutexGuard<'_, RecordingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
