//! Places that the body of a response holds until it is sent or dropped.

use ringwatch_flowcontrol::fairness::{Turn, WatchPlace};
use ringwatch_http::BodyGuard;

use super::Permit;
use super::drain::OpenWatch;
use ringwatch_observe::running_requests::RunningRequest;

/// A place among the requests in flight, the request's seats, and its place among those that run.
#[derive(Debug)]
pub(super) struct RequestGuard {
    pub(super) _permit: Permit,
    pub(super) _turn: Option<Turn>,
    pub(super) running: RunningRequest,
}

impl BodyGuard for RequestGuard {
    fn sent(&self, bytes: usize) {
        self.running.sent(bytes);
    }
}

/// A place among the watches of a user, and one among the watches that end one by one.
#[derive(Debug)]
pub(super) struct WatchGuard {
    pub(super) _place: Option<WatchPlace>,
    pub(super) _open: Option<OpenWatch>,
}

impl BodyGuard for WatchGuard {}
